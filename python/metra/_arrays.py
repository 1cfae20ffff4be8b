"""Vectors from whatever holds them, converted once at most.

A C-contiguous numpy array of float32 is used where it lies. Everything else becomes one array of
float32 where that holds the values exactly (float16, integers of up to 16 bits, booleans) and of
float64 otherwise, which is narrowed after its ranges were judged.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def as_rows(vectors: Any) -> np.ndarray:
    """A C-contiguous array of float32 or float64 with one vector a row.

    Parameters
    ----------
    vectors : array-like
        A numpy array (any order, read-only or memory-mapped), a list of vectors, a pandas, Polars or
        PyArrow table of numbers, or a column of fixed-size lists of them.
    """
    array = np.asanyarray(unpacked(vectors))
    if array.ndim != 2:
        hint = "; one vector alone is [vector], or X[:1]" if array.ndim == 1 and len(array) else ""
        raise ValueError(
            f"expected one vector a row, an array of 2 dimensions, but found the shape {array.shape}{hint}"
        )
    return np.ascontiguousarray(array, dtype=working_type(array.dtype))


def working_type(dtype: np.dtype) -> np.dtype:
    """The type that holds these values without loss: float32 or float64."""
    if dtype.kind == "c":
        raise ValueError("complex numbers cannot be compared: expected real ones")
    exact = (dtype.kind == "f" and dtype.itemsize <= 4) or dtype.kind == "b"
    exact = exact or (dtype.kind in "iu" and dtype.itemsize <= 2)
    return np.dtype(np.float32 if exact else np.float64)


def unpacked(vectors: Any) -> Any:
    """The vectors of a column of lists as a two-dimensional array; anything else as it is."""
    if isinstance(vectors, np.ma.MaskedArray):
        if np.ma.is_masked(vectors):
            hidden = int(np.count_nonzero(vectors.mask))
            raise ValueError(f"expected numbers in every cell, but {hidden} are masked")
        return vectors.data
    if isinstance(vectors, np.ndarray):
        if vectors.dtype == object and vectors.ndim == 1 and len(vectors):
            return np.stack([np.asarray(vector) for vector in vectors])
        return vectors
    if hasattr(vectors, "tocsr"):
        raise ValueError(
            "a sparse matrix is not an array of vectors: expected dense ones, as X.toarray() or, for many columns, "
            "sklearn.decomposition.TruncatedSVD before this estimator in a pipeline gives them"
        )
    kind = type(vectors).__module__.partition(".")[0]
    if kind == "pandas":
        return _from_pandas(vectors)
    if kind == "polars":
        if hasattr(vectors, "collect"):
            vectors = vectors.collect()
        return _from_polars(vectors)
    if hasattr(vectors, "__arrow_c_stream__") or hasattr(vectors, "__arrow_c_array__"):
        return _from_arrow(vectors)
    return vectors


def _from_pandas(frame: Any) -> Any:
    if hasattr(frame, "columns"):
        if len(frame.columns) != 1 or not _holds_lists(frame.iloc[:, 0]):
            return frame
        frame = frame.iloc[:, 0]
    if not _holds_lists(frame):
        return frame
    return np.stack([np.asarray(vector) for vector in frame])


def _holds_lists(series: Any) -> bool:
    return len(series) > 0 and np.ndim(series.iloc[0]) == 1


def _from_polars(frame: Any) -> Any:
    if hasattr(frame, "columns"):
        if len(frame.columns) != 1:
            return frame.to_numpy()
        frame = frame.to_series()
    if type(frame.dtype).__name__ == "List":
        return np.stack([np.asarray(vector) for vector in frame])
    return frame.to_numpy()


def _from_arrow(column: Any) -> Any:
    import pyarrow

    if hasattr(column, "__arrow_c_stream__"):
        column = pyarrow.table(column) if _is_table(column) else pyarrow.chunked_array(column)
    else:
        column = pyarrow.array(column)
    if isinstance(column, pyarrow.Table):
        if column.num_columns != 1:
            return np.column_stack([part.to_numpy() for part in column.columns])
        column = column.column(0)
    if isinstance(column, pyarrow.ChunkedArray):
        # One chunk is used where it lies; several have to be joined.
        chunks = column.chunks
        column = chunks[0] if len(chunks) == 1 else pyarrow.concat_arrays(chunks)
    if column.null_count:
        raise ValueError(f"expected a vector in every row, but {column.null_count} are missing")
    if pyarrow.types.is_fixed_size_list(column.type):
        # `flatten` knows where a slice begins, and no value is copied.
        values = column.flatten()
        if values.null_count:
            raise ValueError(f"expected numbers, but {values.null_count} are missing")
        return values.to_numpy(zero_copy_only=False).reshape(len(column), column.type.list_size)
    return np.stack([np.asarray(vector) for vector in column.to_pylist()])


def _is_table(given: Any) -> bool:
    import pyarrow

    if isinstance(given, pyarrow.ChunkedArray):
        return False
    return hasattr(given, "column_names") or hasattr(given, "columns") or hasattr(given, "schema")
