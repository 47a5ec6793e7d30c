"""All benchmarks, each in a process of its own with its share of the time, then the table and the figure.

    make bench                                                 # everything, at most 20 minutes on two cores
    python benchmarks/run.py --only training,generation        # some of them
    python benchmarks/run.py --scale 0.1 --output /tmp/bench   # a quick look; at least three rounds of everything

Results are one JSON file per benchmark, with the raw seconds; `benchmarks/table.py` makes docs/benchmarks.md of them.
"""

import argparse
import importlib
import subprocess
import sys
import time
from pathlib import Path

from timing import machine, show, write_result

from headcount.records.provenance import commit


# Name of the module -> seconds; loading and a least number of rounds come on top.
BENCHMARKS = {
    "startup": 45,
    "data": 40,
    "training": 120,
    "generation": 60,
    "classifier": 80,
    "ablation": 110,
    "limits": 60,
    "time_to_accuracy": 400,
}
RESULTS = Path(__file__).parent / "results"


def inside(name: str, seconds: float, output: Path, at: str | None) -> None:
    """Runs one benchmark in this process."""
    import torch
    import transformers

    transformers.logging.set_verbosity_error()
    before, start = machine(at), time.perf_counter()
    with torch.random.fork_rng():
        rows = importlib.import_module(name).measure(seconds)
    write_result(output / f"{name}.json", before, time.perf_counter() - start, rows)
    for row in rows:
        print(show(row), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help=f"names with commas between, of {', '.join(BENCHMARKS)}")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the usual time")
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    parser.add_argument("--at", help=argparse.SUPPRESS)
    options = parser.parse_args()
    names = options.only.split(",") if options.only else list(BENCHMARKS)
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"{unknown[0]!r} is no benchmark; expected names from {', '.join(BENCHMARKS)}.")
    if options.scale <= 0:
        parser.error(f"--scale {options.scale} is not allowed; expected a number above 0.")
    if options.inside:
        inside(options.inside, options.scale * BENCHMARKS[options.inside], options.output, options.at)
        return
    at = commit()  # before results are replaced, which git would call changes
    failed = []
    for name in names:
        print(f"== {name}", flush=True)
        (options.output / f"{name}.json").unlink(missing_ok=True)  # an old figure is no answer to a failure
        command = [sys.executable, __file__, "--inside", name, "--scale", str(options.scale)]
        command += [f"--at={at}"] if at else []
        if subprocess.run([*command, "--output", str(options.output)]).returncode:
            failed.append(name)
    if failed:
        sys.exit(f"these benchmarks failed: {', '.join(failed)}; the results of the others are in {options.output}.")


if __name__ == "__main__":
    main()
