"""What the system refused, as one sentence: a full disk, a place without permission, a name that is too long, ..."""

import errno
import os
import re
from collections.abc import Mapping


# What was expected instead, by the kind of error.
EXPECTED: Mapping[int, str] = {
    errno.ENOSPC: "more space on that disk, or a place on another one",
    errno.EDQUOT: "more space on that disk, or a place on another one",
    errno.EFBIG: "more space on that disk, or a place on another one",
    errno.EROFS: "a place that can be written",
    errno.EACCES: "a place with permission",
    errno.EPERM: "a place with permission",
    errno.EEXIST: "a folder, or a name that is not taken",
    errno.ENOTDIR: "a folder",
    errno.EISDIR: "a file",
    errno.ENOENT: "a file or folder that is there",
    errno.ELOOP: "links that lead somewhere",
    errno.ENAMETOOLONG: "a shorter name",
    errno.EMFILE: "a higher limit of open files (ulimit -n)",
    errno.EIO: "a disk that works",
}
# Libraries that are written in other languages tell the system's errors in words.
IN_WORDS = re.compile(r"\(os error (\d+)\)|\berrno (\d+)\b", re.IGNORECASE)


def number_of(error: BaseException) -> int | None:
    """The number of a system's error, whichever way it is told; None of any other error."""
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno
    found = IN_WORDS.search(str(error))
    return int(found[1] or found[2]) if found else None


def is_of_the_system(error: BaseException) -> bool:
    return isinstance(error, OSError) or number_of(error) is not None


def sentence_for(error: BaseException) -> str:
    """One sentence: what was wrong, where, and what is expected.

    >>> explain(OSError(28, "No space left on device", "runs/a/model"))
    'runs/a/model: No space left on device; expected more space on that disk, or a place on another one.'
    """
    number = number_of(error)
    if number is None:  # a library's own sentence, such as that a model is not there
        first = next(iter(str(error).strip().splitlines()), type(error).__name__)
        return first if first.endswith(".") else f"{first}."
    names = [getattr(error, name, None) for name in ("filename", "filename2")]
    where = " and ".join(os.fsdecode(name) for name in names if isinstance(name, (str, bytes, os.PathLike)))
    expected = EXPECTED.get(number, "a place that can be read and written")
    return f"{where + ': ' if where else ''}{os.strerror(number)}; expected {expected}."
