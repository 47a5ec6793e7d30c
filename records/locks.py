"""One process at a time in a folder."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout


SECONDS = 1.0  # a process that is just leaving gets so long


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Keeps a second process out of a folder that this one writes to, or is about to make; for every verb.

    The lock is a hidden file beside the folder, which goes when the work is done; a killed process leaves the file but
    not the lock. A place that cannot be written, or in which another process is at work, is a ValueError.
    """
    folder = folder.absolute()
    path = folder.with_name(f".{folder.name}.lock")
    lock = FileLock(path, timeout=SECONDS)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except Timeout:
        raise ValueError(
            f"another headcount process is at work in {folder}; expected it to end first, or another folder."
        ) from None
    except OSError as error:
        raise ValueError(f"{folder} cannot be written ({error.strerror}); expected a writable place.") from error
    try:
        yield
    finally:
        # Removed while it is still held: whoever waits for it sees that the file is gone and takes a new one.
        with suppress(OSError):
            path.unlink(missing_ok=True)
        lock.release()
