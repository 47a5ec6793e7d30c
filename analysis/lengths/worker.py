"""The process behind a length study.

    python -m headcount.analysis.lengths.worker

Reads an order per line (JSON: the cell, its folder, what is asked for), and answers each with a line:
{"error": null}, or a sentence about what went wrong. What it has to say beside that goes to standard error.
"""

import sys

from ...records.stopping import ParentLine, stoppable


def main() -> None:
    with stoppable():
        try:
            orders = ParentLine()  # before torch is imported, which takes seconds: it ends with its parent then, too
            from .cell_work import follow

            follow(orders)
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
