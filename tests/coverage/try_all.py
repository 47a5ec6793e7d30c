"""Every architecture of the installed transformers, tried: masks, ablation, maps, pruning, patching.

python tests/coverage/try_all.py --output build/coverage.jsonl        # goes on where it was stopped
python tests/coverage/page.py build/coverage.jsonl                # writes docs/coverage.md
"""

import argparse
import json
import multiprocessing
import resource
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import transformers
from checks import USES, check
from zoo import model_classes


def work(names: list[str], only: tuple[str, ...], connection: Any) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (12 << 30, 12 << 30))
    for name in names:
        start = time.perf_counter()
        try:
            row = check(name, only)
        except Exception as error:
            row = {"zoo": f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"}
        connection.send({"class": name, **row, "seconds": round(time.perf_counter() - start, 1)})


def rows_of(names: list[str], only: tuple[str, ...], limit: float) -> Iterator[dict[str, Any]]:
    """The rows of some classes, in a process of their own; a crash or a hang costs only the class it happens in."""
    context = multiprocessing.get_context("fork")
    left = list(names)
    while left:
        here, there = context.Pipe(duplex=False)
        process = context.Process(target=work, args=(left, only, there), daemon=True)
        process.start()
        there.close()
        while left:
            name, row = left.pop(0), None
            if here.poll(limit):
                try:
                    row = here.recv()
                except EOFError:
                    row = None
            yield row if row is not None else {"class": name, "zoo": f"died, or longer than {limit:.0f} s"}
            if row is None:
                break
        process.kill()
        process.join()
        here.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("build/coverage.jsonl"))
    parser.add_argument("--types", nargs="*", help="some model types, or classes")
    parser.add_argument("--uses", nargs="*", default=[], choices=list(USES), help="some uses only")
    parser.add_argument("--all", action="store_true", help="every class; default: one of every model type")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds for one class")
    options = parser.parse_args()
    transformers.logging.set_verbosity_error()
    torch.set_num_threads(1)
    done = {}
    if options.output.exists():
        done = {row["class"]: row for row in map(json.loads, options.output.read_text().splitlines())}
    options.output.parent.mkdir(parents=True, exist_ok=True)
    with options.output.open("a") as file:
        for model_type, names in model_classes().items():
            wanted = [n for n in names if not options.types or model_type in options.types or n in options.types]
            wanted = [name for name in (wanted if options.all else wanted[:1]) if name not in done]
            for row in rows_of(wanted, tuple(options.uses), options.limit):
                done[row["class"]] = row = {"type": model_type, **row}
                file.write(json.dumps(row) + "\n")
                file.flush()
                say(model_type, row)
    for use in ("zoo", "heads", *USES):
        counts = Counter(str(row[use]).split(":")[0] for row in done.values() if use in row)
        print(use, dict(counts))


def say(model_type: str, row: dict[str, Any]) -> None:
    wrong = {use: verdict for use, verdict in row.items() if str(verdict).startswith(("WRONG", "FAILED"))}
    print(model_type, row["class"], wrong or "ok", flush=True)


if __name__ == "__main__":
    main()
