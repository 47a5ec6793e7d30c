"""One process at a time in a folder."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout


LOCK = ".lock"
SECONDS = 1.0  # a process that is just leaving gets so long


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Keeps a second process out of a folder that this one writes to; a killed process leaves it free.

    Makes the folder if need be, and takes it away again if nothing was written. A folder that cannot be written, or
    in which another process is at work, is a ValueError.
    """
    made = not folder.exists()
    if not made and not folder.is_dir():
        raise ValueError(f"{folder} is a file; expected a folder, or a name that is not taken.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / LOCK, timeout=SECONDS)
        lock.acquire()
    except Timeout:
        raise ValueError(
            f"another headcount process is at work in {folder}; expected it to end first, or another folder."
        ) from None
    except OSError as error:
        raise ValueError(f"{folder} cannot be written ({error.strerror}); expected a writable folder.") from error
    try:
        yield
    finally:
        # Removed while it is still held: whoever waits for it sees that the file is gone and takes a new one.
        with suppress(OSError):
            (folder / LOCK).unlink(missing_ok=True)
        lock.release()
        if made:
            with suppress(OSError):
                folder.rmdir()  # only if it is empty


def is_empty(folder: Path) -> bool:
    """Whether nothing is in a folder but its lock, or there is none."""
    return not folder.exists() or all(path.name == LOCK for path in folder.iterdir())
