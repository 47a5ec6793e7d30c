"""`python -m headcount` and the console script `headcount`."""

import sys


def main() -> None:
    from .scripts.cli import run

    sys.exit(run())


if __name__ == "__main__":
    main()
