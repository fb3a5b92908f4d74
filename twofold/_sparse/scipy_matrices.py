"""Sparse arrays and matrices of SciPy as sparse tensors, and the other way; SciPy is imported where one is wanted."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from twofold._front import iteration as engine

__all__ = ["from_scipy", "to_scipy"]


def from_scipy(matrix: Any, copy: bool) -> tuple[Any, Any, tuple[int, ...]]:
    """Indices, values and shape of an array of SciPy.

    Args:
        matrix: a sparse array or matrix.
        copy: whether values are copied in any case.
    Raises:
        TypeError: it is something else.
    """
    scipy = sys.modules.get("scipy.sparse")  # who has a matrix has loaded it
    if scipy is None or not scipy.issparse(matrix):
        raise TypeError(f"expected a sparse array or matrix of SciPy; got {type(matrix).__name__}")
    ordered = matrix if matrix.format == "coo" else matrix.tocsr()
    if not _is_ordered(ordered):
        ordered = ordered.copy()
        ordered.sum_duplicates()
    coo = ordered.tocoo(copy=False)
    places, values = np.stack([np.asarray(axis, np.int64) for axis in coo.coords], axis=1), coo.data
    if not _is_ordered(coo):  # which that has sorted by the last axis
        order = np.lexsort(coo.coords[::-1])
        places, values = places[order], values[order]
    if copy or not values.flags.c_contiguous:
        values = values.copy()
    return engine.tensor_of(places), engine.tensor_of(values), coo.shape


def _is_ordered(matrix: Any) -> bool:
    """Whether elements come in row-major order, and none twice."""
    if matrix.format != "coo":
        return bool(matrix.has_canonical_format)
    later, same = np.zeros(max(matrix.nnz - 1, 0), bool), np.ones(max(matrix.nnz - 1, 0), bool)
    for axis in matrix.coords:  # compared as words are in a dictionary
        later |= same & (axis[1:] > axis[:-1])
        same &= axis[1:] == axis[:-1]
    return bool(later.all())


def to_scipy(st: Any, format: str) -> Any:
    """An array of SciPy on the values of a sparse tensor.

    Args:
        st: a `tf.SparseTensor` that has values.
        format: "coo" or "csr".
    Raises:
        ValueError: there is no such format, or "csr" is asked for a tensor of other than 2 axes.
    """
    import scipy.sparse

    indices, values, sizes = (np.asarray(part) for part in (st.indices, st.values, st.dense_shape))
    shape = tuple(sizes.tolist())
    if format not in ("coo", "csr") or format == "csr" and len(shape) != 2:
        raise ValueError(f"format must be 'coo', or 'csr' of a matrix; got {format!r} for shape {list(shape)}")
    coo = scipy.sparse.coo_array((values, tuple(indices.T)), shape)
    if format == "coo" or not _is_ordered(coo):
        return coo if format == "coo" else coo.tocsr()
    starts = np.searchsorted(indices[:, 0], np.arange(shape[0] + 1))
    return scipy.sparse.csr_array((values, indices[:, 1], starts), shape)
