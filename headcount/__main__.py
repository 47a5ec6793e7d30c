"""`python -m headcount` and the console script `headcount`."""

import signal
import sys


def main() -> None:
    try:
        from .records.deadline import leave
        from .scripts.cli import run

        code = run()
    except KeyboardInterrupt:  # before or after the work
        print("headcount: interrupted", file=sys.stderr)
        sys.exit(130)
    for number in (signal.SIGINT, signal.SIGTERM):  # nothing is left to be said
        signal.signal(number, signal.SIG_IGN)  # the exit code says how the work ended
    leave(code)


if __name__ == "__main__":
    main()
