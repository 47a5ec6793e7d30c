"""The storm: tries to break headcount in every way that bad luck or an attacker would, and counts what broke.

python tests/storm/run.py --seed 1 --minutes 10
python tests/storm/run.py --seed 1 --only command-lines --case 1234 --keep
python tests/storm/run.py --few
python tests/storm/run.py --write-docs
"""

import argparse
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path


TESTS = Path(__file__).resolve().parent.parent
sys.path[0] = str(TESTS)  # the helpers of the tests, and this folder as a package

from storm.material import VERBS, Verb, environment, places, prepare  # noqa: E402


SHOWN = 12  # failures of a section that are printed; the rows have all of them
# Of the minutes: each section may take so much, and what it leaves goes to the next.
SHARES = {"broken-files": 0.17, "command-lines": 0.27, "hostile-hub": 0.1, "full-disk": 0.05, "kills": 0.41}
FEW_VERBS = ("train", "data --overwrite", "report")


def main() -> int:
    asked = parse()
    os.environ.update(environment())
    if asked.write_docs:
        from storm.page import write_page

        print(write_page(asked.output))
        return 0
    work = Path(tempfile.mkdtemp(prefix="headcount-storm-"))
    os.environ.update(places(work))
    tempfile.tempdir = str(work / "tmp")  # it has looked at TMPDIR already
    try:
        return storm(asked, work)
    finally:
        if asked.keep:
            print(f"kept: {work}")
        else:
            shutil.rmtree(work, ignore_errors=True)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, help="default: a new one, which is printed")
    parser.add_argument("--minutes", type=float, default=10.0, help="no case is started after so many minutes")
    parser.add_argument("--only", choices=SHARES, action="append", help="these sections alone; may be repeated")
    parser.add_argument("--case", type=int, action="append", help="this case alone, by its number; may be repeated")
    parser.add_argument("--cases", type=int, help="so many cases of each section")
    parser.add_argument("--few", action="store_true", help="the small part that is in `make test`: seed 0, a minute")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="cases at a time")
    parser.add_argument("--output", type=Path, default=TESTS.parent / "build" / "storm", help="folder for the rows")
    parser.add_argument("--keep", action="store_true", help="keep the folders of cases that failed")
    parser.add_argument("--write-docs", action="store_true", help="write the rows of --output into the docs page")
    asked = parser.parse_args()
    if asked.seed is None:
        asked.seed = 0 if asked.few else random.SystemRandom().randrange(10**6)
    return asked


def storm(asked: argparse.Namespace, work: Path) -> int:
    """Prepares, runs the sections one after the other, prints and writes what was found."""
    from headcount.records.rows import write_rows
    from storm.cases import run_section
    from storm.launch import import_everything
    from storm.page import rows_of, summary
    from storm.sections import SECTIONS

    start = time.monotonic()
    import_everything()
    chosen = [section for section in SECTIONS if section.name in (asked.only or SHARES)]
    material = prepare(work, verbs_of({section.name for section in chosen}, asked.few), say)
    say(f"seed {asked.seed}; prepared in {time.monotonic() - start:.0f} s")
    end = start + 60 * asked.minutes
    left = [SHARES[section.name] for section in chosen]
    found, is_whole = [], True
    for section in chosen:
        count = asked.cases or (section.few if asked.few else section.cases)
        numbers = asked.case or range(count)
        now = time.monotonic()
        own_end = now + (end - now) * left[0] / sum(left)
        left.pop(0)
        # Cases of a hostile Hub mostly wait.
        workers = asked.workers * (4 if section.name == "hostile-hub" else 1)
        results = run_section(section, asked.seed, numbers, material, min(workers, len(numbers)), own_end, asked.keep)
        found += results
        say(summary(section, results, time.monotonic() - now))
        if len(results) < len(numbers):
            say(f"  {len(numbers) - len(results)} of {len(numbers)} cases were not tried: the time was over")
            is_whole = False
        failed = [(result, failure) for result in results for failure in result.tried.failures]
        for result, failure in failed[:SHOWN]:
            say(f"  {failure.what}: --seed {asked.seed} --only {section.name} --case {result.number}")
            say(f"    {failure.command[:300]}\n    {failure.message[:300]}")
        if len(failed) > SHOWN:
            say(f"  and {len(failed) - SHOWN} more")
    path = write_rows(asked.output, "storm", rows_of(found, asked.seed, round(time.monotonic() - start)))
    counts = Counter(failure.what for result in found for failure in result.tried.failures)
    say(f"{sum(counts.values())} failures {dict(counts) or ''} in {time.monotonic() - start:.0f} s; rows in {path}")
    return 1 if counts or not is_whole else 0


def verbs_of(sections: set[str], few: bool) -> tuple[Verb, ...]:
    """What must have run once undisturbed."""
    from storm.full_disk import NAMES

    needed = {verb.name for verb in VERBS} if "kills" in sections else set(NAMES) if "full-disk" in sections else set()
    return tuple(verb for verb in VERBS if verb.name in needed and (not few or verb.name in FEW_VERBS))


def say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
