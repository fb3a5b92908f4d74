"""Products of a sparse matrix, which is given by the coordinates and values of its elements, and a dense one.

Elements of a row are added in the order in which they lie, whatever that of the rows is: bits depend neither on it nor
on the number of threads. Loops are in `codegen/kernels/sparse.py`; sparse tensors in `twofold/_sparse`.
"""

from __future__ import annotations

from .. import dims as dm
from .. import dtypes as dt
from .. import ops, rules
from ..errors import InvalidArgumentError
from ..op import Op, primitive
from ..spec import spec
from ..types import AnyTensor, Cotangents, Spec

__all__ = ["sparse_dots", "sparse_matmul"]

_IDS = frozenset({dt.int32, dt.int64})


def _require_forms(op: Op, operands: tuple[Spec, Spec, Spec, Spec], ranks: tuple[int, int, int, int]) -> None:
    """Two operands are indices of one dtype, the others numbers of one dtype, and each has its rank."""
    for n in (0, 1):
        rules.require_dtype(op, operands, n, _IDS)
    rules.same_dtype(op, operands, (0, 1))
    rules.require_dtype(op, operands, 2, frozenset({dt.float32, dt.float64}))
    rules.same_dtype(op, operands, (2, 3))
    for n, rank in enumerate(ranks):
        rules.require_rank(op, operands, n, rank, rank)


def _infer(op: Op, rows: Spec, columns: Spec, values: Spec, dense: Spec, *, size: int) -> Spec:
    operands = (rows, columns, values, dense)
    _require_forms(op, operands, (1, 1, 1, 2))
    if not all(dm.require_eq(x.dims[0], values.dims[0]) for x in (rows, columns)):
        raise rules.fail(op, operands, "there must be a row, a column and a value for each element.")
    if dm.decide(size, "<", 0):
        raise rules.fail(op, operands, f"size is {size}; expected 0 or more.", InvalidArgumentError)
    return spec((size, dense.dims[1]), values.dtype)


def _vjp(ct: AnyTensor, out: Spec, rows: AnyTensor, columns: AnyTensor, values: AnyTensor, dense: AnyTensor, *,
         size: int) -> Cotangents:
    return (None, None, lambda: ops.sparse_dots(rows, columns, ct, dense),
            lambda: ops.sparse_matmul(columns, rows, values, ct, size=dense.dims[0]))


@primitive(infer=_infer, vjp=_vjp, saves=("rows", "columns", "values", "dense"), lower="sparse")
def sparse_matmul(rows: AnyTensor, columns: AnyTensor, values: AnyTensor, dense: AnyTensor, *, size: int) -> AnyTensor:
    """The product of a sparse matrix and a dense one.

    Args:
        rows, columns: int32 or int64 vectors: where the elements of the sparse matrix are, in any order. Elements at
            one place count as their sum.
        values: float32 or float64 vector: the elements.
        dense: matrix of that dtype.
        size: the number of rows of the sparse matrix; it has as many columns as `dense` has rows.
    Returns:
        Matrix of `size` rows.
    Raises:
        InvalidArgumentError: a row or a column is out of range. ShapeError: the shapes do not fit.
    Gradient: for values the dot products of rows of the cotangent and of `dense`; for `dense` the product of the
    transposed sparse matrix and the cotangent.
    """


# -- elements of a product of dense matrices ----------------------------------------------------------
def _dots_infer(op: Op, rows: Spec, columns: Spec, left: Spec, right: Spec) -> Spec:
    operands = (rows, columns, left, right)
    _require_forms(op, operands, (1, 1, 2, 2))
    if not dm.require_eq(rows.dims[0], columns.dims[0]):
        raise rules.fail(op, operands, "there must be a row and a column for each element.")
    if not dm.require_eq(left.dims[1], right.dims[1]):
        raise rules.fail(op, operands, "both matrices must have the same number of columns.")
    return spec(rows.dims, left.dtype)


def _dots_vjp(ct: AnyTensor, out: Spec, rows: AnyTensor, columns: AnyTensor, left: AnyTensor,
              right: AnyTensor) -> Cotangents:
    return (None, None, lambda: ops.sparse_matmul(rows, columns, ct, right, size=left.dims[0]),
            lambda: ops.sparse_matmul(columns, rows, ct, left, size=right.dims[0]))


@primitive(infer=_dots_infer, vjp=_dots_vjp, saves=("rows", "columns", "left", "right"), lower="sparse")
def sparse_dots(rows: AnyTensor, columns: AnyTensor, left: AnyTensor, right: AnyTensor) -> AnyTensor:
    """The dot products of rows of two matrices: elements of the product of the one and the transposed other.

    Args:
        rows, columns: int32 or int64 vectors: the numbers of the rows of `left`, and of `right`.
        left, right: float32 or float64 matrices of as many columns.
    Returns:
        Vector with an element for each of the numbers; products are added in the order of a chunk.
    Raises:
        InvalidArgumentError: a row or a column is out of range. ShapeError: the shapes do not fit.
    Gradient: products of the sparse matrix that has the cotangents at these places, and of its transpose, with the
    other matrix.
    """
