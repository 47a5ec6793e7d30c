"""What the C library does with memory that a tensor gave back."""

import sys


M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # of glibc's malloc.h
LARGEST_TENSOR, LARGEST_HEAP = 2**30, 2**31 - 1


def keep_freed_memory() -> bool:
    """Lets glibc keep the memory of large tensors for the next ones; false where there is no glibc.

    By default it goes back to the system, and the next tensor of that size has to take it again page by page: 6 % of a
    training step of addition, half of the time of a long sequence with FIRE. The price is that a process keeps what
    it once had.
    """
    if sys.platform != "linux":
        return False
    import ctypes

    library = ctypes.CDLL(None)
    if not hasattr(library, "gnu_get_libc_version"):
        return False
    return bool(library.mallopt(M_MMAP_THRESHOLD, LARGEST_TENSOR) and library.mallopt(M_TRIM_THRESHOLD, LARGEST_HEAP))
