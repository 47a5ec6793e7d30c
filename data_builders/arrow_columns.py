"""numpy arrays to arrow columns without a Python object per row."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


def _offsets(lengths: NDArray[np.integer]) -> pa.Buffer:
    offsets = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    return pa.py_buffer(offsets)


def _kept(matrix: NDArray, lengths: NDArray[np.integer]) -> NDArray:
    """The first `lengths` entries of every row, flat."""
    columns = matrix.shape[1]
    if (lengths == columns).all():
        return np.ascontiguousarray(matrix).reshape(-1)
    return matrix[np.arange(columns) < lengths[:, None]]


def string_column(characters: NDArray[np.uint8], lengths: NDArray[np.integer]) -> pa.StringArray:
    """(N, W) ASCII codes, of which every row keeps its first `lengths`, as N strings."""
    flat = _kept(characters, lengths)
    return pa.StringArray.from_buffers(len(lengths), _offsets(lengths), pa.py_buffer(flat))


def list_column(values: NDArray, lengths: NDArray[np.integer], value_type: pa.DataType) -> pa.ListArray:
    """(N, W) numbers, of which every row keeps its first `lengths`, as N lists."""
    flat = _kept(values, lengths).astype(value_type.to_pandas_dtype(), copy=False)
    return pa.Array.from_buffers(
        pa.list_(value_type), len(lengths), [None, _offsets(lengths)], children=[pa.array(flat, value_type)]
    )


def name_column(names: list[str], index: NDArray[np.integer]) -> pa.Array:
    """The name at each index."""
    return pa.array(names, pa.string()).take(pa.array(index))
