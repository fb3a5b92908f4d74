"""Matrix multiplication: products of (stacks of) matrices, their shape rule and gradient.

Everything else that contracts axes (einsum, tensordot, convolution) is expressed through it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeAlias

from twofold.ir import dims as dm
from twofold.ir import dtypes as dt
from twofold.ir import grad, ops, rules
from twofold.ir.dims import DimLike
from twofold.ir.errors import InvalidArgumentError
from twofold.ir.op import Op, primitive
from twofold.ir.precision import EXACT
from twofold.ir.spec import spec
from twofold.ir.types import AnyTensor, Cotangents, Spec

__all__ = ["int8_matmul", "matmul"]

Product: TypeAlias = Callable[..., AnyTensor]  # `matmul` with the precision of the op whose gradient it is part of


def _infer(op: Op, a: Spec, b: Spec, *, transpose_a: bool, transpose_b: bool, adjoint_a: bool, adjoint_b: bool,
           precision: str) -> Spec:
    operands = (a, b)
    rules.require_precision(op, operands, precision)
    dtype = rules.same_dtype(op, operands)
    rules.require_dtype(op, operands, 0, dt.NUMERIC)
    for which, (transpose, adjoint) in enumerate(((transpose_a, adjoint_a), (transpose_b, adjoint_b))):
        rules.require_rank(op, operands, which, 2)
        if transpose and adjoint:
            raise rules.fail(op, operands, f"transpose_{'ab'[which]} and adjoint_{'ab'[which]} cannot both be True.",
                             InvalidArgumentError)
    return spec(_product_dims(op, a, b, transpose_a or adjoint_a, transpose_b or adjoint_b), dtype)


def _int8_infer(op: Op, a: Spec, b: Spec, *, transpose_a: bool, transpose_b: bool) -> Spec:
    for which in range(2):
        rules.require_dtype(op, (a, b), which, (dt.int8,))
        rules.require_rank(op, (a, b), which, 2)
    return spec(_product_dims(op, a, b, transpose_a, transpose_b), dt.int32)


def _product_dims(op: Op, a: Spec, b: Spec, flip_a: bool, flip_b: bool) -> tuple[DimLike, ...]:
    operands = (a, b)
    rows, inner_a = _matrix_dims(a, flip_a)
    inner_b, columns = _matrix_dims(b, flip_b)
    if not dm.require_eq(inner_a, inner_b):
        raise rules.fail(op, operands, f"inner sizes differ: a gives {inner_a} columns and b {inner_b} rows.")
    try:
        batch = dm.broadcast_shapes(a.dims[:-2], b.dims[:-2])
    except dm.BroadcastError as e:
        raise rules.fail(op, operands, "batch shapes, all axes but the last two, do not broadcast.") from e
    return (*batch, rows, columns)


def _matrix_dims(x: Spec, flipped: bool) -> tuple[DimLike, DimLike]:
    rows, columns = x.dims[-2:]
    return (columns, rows) if flipped else (rows, columns)


def _vjp(ct: AnyTensor, out: Spec, a: AnyTensor, b: AnyTensor, *, transpose_a: bool, transpose_b: bool, adjoint_a: bool,
         adjoint_b: bool, precision: str) -> Cotangents:
    """With A and B the matrices that meet: ct B^H and A^H ct, turned back as the operands were turned."""
    product = functools.partial(ops.matmul, precision=precision)
    if ct.dtype.is_complex:
        flips = transpose_a, adjoint_a, transpose_b, adjoint_b
        return (lambda: grad.unbroadcast(_complex_left(product, ct, b, *flips), a),
                lambda: grad.unbroadcast(_complex_right(product, ct, a, *flips), b))
    flip_a, flip_b = transpose_a or adjoint_a, transpose_b or adjoint_b
    return (lambda: grad.unbroadcast(_real_left(product, ct, b, flip_a, flip_b), a),
            lambda: grad.unbroadcast(_real_right(product, ct, a, b, flip_a, flip_b), b))


def _real_left(product: Product, ct: AnyTensor, b: AnyTensor, flip_a: bool, flip_b: bool) -> AnyTensor:
    if flip_a:
        return product(b, ct, transpose_a=flip_b, transpose_b=True)
    return product(ct, b, transpose_b=not flip_b)


def _real_right(product: Product, ct: AnyTensor, a: AnyTensor, b: Spec, flip_a: bool, flip_b: bool) -> AnyTensor:
    if len(b.dims) == 2 and len(a.dims) > 2 and not flip_a:  # one long product instead of a sum of many
        a, ct = _rows(a), _rows(ct)
    if flip_b:
        return product(ct, a, transpose_a=True, transpose_b=flip_a)
    return product(a, ct, transpose_a=not flip_a)


def _rows(x: AnyTensor) -> AnyTensor:
    return ops.reshape(x, shape=(dm.numel(x.dims[:-1]), x.dims[-1]))


def _complex_left(product: Product, ct: AnyTensor, b: AnyTensor, transpose_a: bool, adjoint_a: bool,
                  transpose_b: bool, adjoint_b: bool) -> AnyTensor:
    turned = {"transpose_a": transpose_b, "adjoint_a": adjoint_b}
    if adjoint_a:
        return product(b, ct, adjoint_b=True, **turned)
    if transpose_a:
        return product(ops.conj(b), ct, transpose_b=True, **turned)
    if transpose_b:
        return product(ct, ops.conj(b))
    return product(ct, b, adjoint_b=not adjoint_b)


def _complex_right(product: Product, ct: AnyTensor, a: AnyTensor, transpose_a: bool, adjoint_a: bool,
                   transpose_b: bool, adjoint_b: bool) -> AnyTensor:
    turned = {"transpose_b": transpose_a, "adjoint_b": adjoint_a}
    if adjoint_b:
        return product(ct, a, adjoint_a=True, **turned)
    if transpose_b:
        return product(ct, ops.conj(a), transpose_a=True, **turned)
    if transpose_a:
        return product(ops.conj(a), ct)
    return product(a, ct, adjoint_a=not adjoint_a)


@primitive(infer=_infer, vjp=_vjp, saves=("a", "b"), lower="matmul", match=(0, 1), traits=("total",))
def matmul(a: AnyTensor, b: AnyTensor, *, transpose_a: bool = False, transpose_b: bool = False, adjoint_a: bool = False,
           adjoint_b: bool = False, precision: str = EXACT) -> AnyTensor:
    """Product of the matrices in the last two axes of `a` and `b`; the axes before them broadcast.

    Args:
        a, b: numeric tensors of one dtype `T`, of rank 2 or more.
        transpose_a, transpose_b: multiply by the transposed matrix.
        adjoint_a, adjoint_b: multiply by the conjugated and transposed matrix.
        precision: "exact", or "fast" for tensor cores of GPUs; processors compute either alike.
    Returns:
        `T[batch, rows, columns]`. 16-bit floats are summed in float32 and rounded once; integers wrap.
    Raises:
        DTypeError: dtypes differ or are not numeric. ShapeError: a rank below 2, inner sizes that differ, or batch
        shapes that do not broadcast. InvalidArgumentError: a matrix is both transposed and adjoint, or the precision is
        none.
    """


@primitive(infer=_int8_infer, vjp=None, lower="int8_matmul", traits=("total",))
def int8_matmul(a: AnyTensor, b: AnyTensor, *, transpose_a: bool = False, transpose_b: bool = False) -> AnyTensor:
    """Product of the matrices of int8 in the last two axes of `a` and `b` in int32; the axes before them broadcast.

    Args:
        a, b: tensors of int8, of rank 2 or more.
        transpose_a, transpose_b: multiply by the transposed matrix.
    Returns:
        `int32[batch, rows, columns]`, exact but for wrapping around.
    Raises:
        DTypeError: dtypes differ from int8. ShapeError: as for `matmul`.
    """
