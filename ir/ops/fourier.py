"""Discrete Fourier transforms, by NumPy's pocketfft in the operand's own precision.

Each op works on the last one, two or three axes. They are linear, so gradients are transforms again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import numpy as np

from .. import dims as dm
from .. import dtypes as dt
from .. import grad, ops, rules
from ..dims import Shape
from ..dtypes import DType
from ..errors import InvalidArgumentError
from ..op import Op, primitive
from ..spec import spec
from ..types import AnyTensor, Cotangents, Operand, Spec

__all__ = ["fft", "ifft", "rfft", "irfft"]

_REAL = frozenset({dt.float32, dt.float64})


def _axes(rank: int) -> tuple[int, ...]:
    return tuple(range(-rank, 0))


def _transform(function: Callable[..., np.ndarray], x: np.ndarray, rank: int, **more: object) -> np.ndarray:
    """NumPy's transform of `x` over its last axes, with the same bits wherever its elements lie.

    NumPy transforms several rows at once in vectors and the rest one by one, which rows those are depends on how they
    lie, and on AArch64 the two ways round differently.
    """
    return function(np.asarray(x, order="C"), axes=_axes(rank), **more)


def _complex_of(dtype: DType) -> DType:
    return dt.complex128 if dtype is dt.float64 else dt.complex64


def _require(op: Op, x: Spec, dtypes: Collection[DType], rank: int) -> None:
    rules.require_dtype(op, (x,), 0, dtypes)
    rules.require_rank(op, (x,), 0, rank)
    if any(dm.decide_eq(d, 0) for d in x.dims[-rank:]):
        raise rules.fail(op, (x,), "a transform needs elements along each of its axes.", InvalidArgumentError)


def _fft_infer(op: Op, x: Spec, *, rank: int) -> Spec:
    _require(op, x, dt.COMPLEX, rank)
    return spec(x.dims, x.dtype)


def _size_like(x: Spec, dims: Shape) -> Operand:
    return grad.scalar(dm.numel(dims), like=x)


@primitive(infer=_fft_infer, saves=(), host=lambda x, rank: _transform(np.fft.fftn, x, rank),
           vjp=lambda ct, out, x, *, rank: ops.multiply(ops.ifft(ct, rank=rank), _size_like(ct, x.dims[-rank:])),
           traits=("total",))
def fft(x: AnyTensor, *, rank: int = 1) -> AnyTensor:
    """Fourier transform over the last `rank` axes.

    Args:
        x: complex tensor of rank `rank` or more.
        rank: 1, 2 or 3.
    Returns:
        Tensor like `x`.
    Raises:
        DTypeError: `x` is not complex. ShapeError: its rank is too low. InvalidArgumentError: an axis is empty.
    """


@primitive(infer=_fft_infer, saves=(), host=lambda x, rank: _transform(np.fft.ifftn, x, rank),
           vjp=lambda ct, out, x, *, rank: ops.divide(ops.fft(ct, rank=rank), _size_like(ct, x.dims[-rank:])),
           traits=("total",))
def ifft(x: AnyTensor, *, rank: int = 1) -> AnyTensor:
    """Inverse Fourier transform over the last `rank` axes, divided by the number of their elements.

    Args:
        x: complex tensor of rank `rank` or more.
        rank: 1, 2 or 3.
    Returns:
        Tensor like `x`.
    Raises:
        DTypeError: `x` is not complex. ShapeError: its rank is too low. InvalidArgumentError: an axis is empty.
    """


def _rfft_infer(op: Op, x: Spec, *, rank: int) -> Spec:
    _require(op, x, _REAL, rank)
    return spec((*x.dims[:-1], x.dims[-1] // 2 + 1), _complex_of(x.dtype))


def _rfft_vjp(ct: AnyTensor, out: Spec, x: Spec, *, rank: int) -> Cotangents:
    """The real part of the full transform's gradient, the missing half being zero: transform without conjugation."""
    wide = [(0, 0)] * (len(x.dims) - 1) + [(0, x.dims[-1] - ct.dims[-1])]
    full = ops.pad(ct, grad.scalar(0, like=ct), paddings=tuple(wide))
    return ops.real(ops.multiply(ops.ifft(full, rank=rank), _size_like(ct, x.dims[-rank:])))


@primitive(infer=_rfft_infer, vjp=_rfft_vjp, saves=(), host=lambda x, rank: _transform(np.fft.rfftn, x, rank),
           traits=("total",))
def rfft(x: AnyTensor, *, rank: int = 1) -> AnyTensor:
    """Fourier transform of real numbers over the last `rank` axes: the half of the last axis that is not redundant.

    Args:
        x: float32 or float64 tensor of rank `rank` or more.
        rank: 1, 2 or 3.
    Returns:
        Complex tensor; its last axis has n // 2 + 1 elements for n of `x`.
    Raises:
        DTypeError: `x` has another dtype. ShapeError: its rank is too low. InvalidArgumentError: an axis is empty.
    """


def _irfft_infer(op: Op, x: Spec, *, rank: int, size: int) -> Spec:
    _require(op, x, dt.COMPLEX, rank)
    if not dm.require_eq(size // 2 + 1, x.dims[-1]):
        raise rules.fail(op, (x,), f"the last axis must have {size // 2 + 1} elements for {size} of the result.")
    if dm.decide_eq(size, 0):
        raise rules.fail(op, (x,), "the result's last axis would be empty.", InvalidArgumentError)
    return spec((*x.dims[:-1], size), x.dtype.real_dtype)


def _irfft_host(x: np.ndarray, rank: int, size: int) -> np.ndarray:
    return _transform(np.fft.irfftn, x, rank, s=(*x.shape[x.ndim - rank:-1], size))


def _irfft_vjp(ct: AnyTensor, out: Spec, x: Spec, *, rank: int, size: int) -> Cotangents:
    """Elements whose mirror images `irfft` fills in count twice; the others, and imaginary parts it ignores, once."""
    twice = np.full(size // 2 + 1, 2.0)
    twice[0] = 1.0
    if size % 2 == 0:
        twice[-1] = 1.0
    scale = ops.divide(np.asarray(twice, x.dtype.np), _size_like(x, (*x.dims[-rank:-1], size)))
    return ops.multiply(ops.rfft(ct, rank=rank), scale)


@primitive(infer=_irfft_infer, vjp=_irfft_vjp, saves=(), host=_irfft_host, traits=("total",))
def irfft(x: AnyTensor, *, rank: int = 1, size: int) -> AnyTensor:
    """Inverse of `rfft`: real numbers from the half of a transform that is not redundant.

    Args:
        x: complex tensor of rank `rank` or more.
        rank: 1, 2 or 3.
        size: how many elements the result's last axis has; that of `x` has size // 2 + 1.
    Returns:
        Real tensor.
    Raises:
        DTypeError: `x` is not complex. ShapeError: its rank or last axis does not fit. InvalidArgumentError: an axis is
        empty.
    """
