"""One process at a time in a folder."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from .litter import clean
from .progress import say
from .stopping import has_parent


SECONDS_IN_SILENCE = 1.0
SECONDS = 4.0  # a process that is just leaving gets so long more, ...
SECONDS_OF_A_PART = 20.0  # ... and so long in a study, of which an earlier process may have been killed just now


class Busy(ValueError):
    """Another process is at work in the folder."""


@contextmanager
def alone_in(folder: Path, patience: float | None = None) -> Iterator[None]:
    """Keeps a second process out of a folder that this one writes to, or is about to make; for every verb.

    The lock is a hidden file beside the folder, which goes when the work is done; a killed process leaves the file but
    not the lock. What killed processes left in the folder is removed. A place that cannot be written, or in which
    another process is at work and does not leave, is a ValueError. `patience`: wait so many seconds, in silence.
    """
    folder = folder.absolute()
    path = folder.with_name(f".{folder.name}.lock")
    lock = FileLock(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        wait_for(lock, folder, patience)
    except Timeout:
        raise Busy(
            f"another headcount process is at work in {folder}; expected it to end first, or another folder."
        ) from None
    except OSError as error:
        raise ValueError(f"{folder} cannot be written ({error.strerror}); expected a writable place.") from error
    try:
        clean(folder)
        yield
    finally:
        # Removed while it is still held: whoever waits for it sees that the file is gone and takes a new one.
        with suppress(OSError):
            path.unlink(missing_ok=True)
        lock.release()


def wait_for(lock: FileLock, folder: Path, patience: float | None) -> None:
    """Takes the lock, and says so if that takes a while; Timeout if whoever has it keeps it."""
    try:
        lock.acquire(timeout=SECONDS_IN_SILENCE if patience is None else patience)
    except Timeout:
        if patience is not None:
            raise
        say(f"waiting for another headcount process to leave {folder}")
        lock.acquire(timeout=SECONDS_OF_A_PART if has_parent() else SECONDS)
