"""Discrete Fourier transforms over the last axes of a tensor, and shifts of their origin.

The ops are in `ir/ops/fourier.py`; gradients of every order are transforms again.
"""

from __future__ import annotations

from typing import Any

from twofold._front.api import axis_span, ints, public, tensor
from twofold.ir import dims as dm
from twofold.ir import ops
from twofold.ir.errors import InvalidArgumentError

__all__ = ["fft", "fft2d", "fft3d", "fftnd", "fftshift", "ifft", "ifft2d", "ifft3d", "ifftnd", "ifftshift", "irfft",
           "irfft2d", "irfft3d", "irfftnd", "rfft", "rfft2d", "rfft3d", "rfftnd"]


def _fitted(name: str, x: Any, sizes: tuple[int, ...]) -> Any:
    """`x` with its last axes cut or filled with zeros at the end, to `sizes`."""
    rank = len(sizes)
    if len(x.dims) < rank:
        raise InvalidArgumentError(f"{name}: the input must have rank {rank} or more; got shape {x.shape}.")
    head = x.dims[:-rank]
    cut = tuple(dm.minimum(have, want) for have, want in zip(x.dims[-rank:], sizes, strict=True))
    if cut != x.dims[-rank:]:
        x = ops.slice(x, begin=(0,) * len(x.dims), size=(*head, *cut))
    if cut != sizes:
        fill = tuple((0, want - have) for have, want in zip(cut, sizes, strict=True))
        x = ops.pad(x, tensor(0, x.dtype), paddings=((0, 0),) * len(head) + fill)
    return x


def _lengths(name: str, fft_length: Any, rank: int) -> tuple[int, ...]:
    sizes = ints(fft_length, "fft_length")
    if len(sizes) != rank or any(dm.decide(s, "<", 1) for s in sizes):
        raise InvalidArgumentError(f"{name}: fft_length must be {rank} positive integer(s); got {fft_length!r}.")
    return sizes


def _forward(name: str, value: Any, fft_length: Any, rank: int) -> Any:
    x = tensor(value)
    if fft_length is not None:
        x = _fitted(name, x, _lengths(name, fft_length, rank))
    return ops.rfft(x, rank=rank)


def _backward(name: str, value: Any, fft_length: Any, rank: int) -> Any:
    x = tensor(value)
    if fft_length is None:
        return ops.irfft(x, rank=rank, size=2 * (x.dims[-1] - 1) if x.dims else 0)
    sizes = _lengths(name, fft_length, rank)
    return ops.irfft(_fitted(name, x, (*sizes[:-1], sizes[-1] // 2 + 1)), rank=rank, size=sizes[-1])


@public
def fft(input: Any, name: str | None = None) -> Any:
    """Fourier transform over the last axis.

    Args:
        input: complex64 or complex128 tensor of rank 1 or more.
        name: has no effect.
    Returns:
        Tensor like `input`.
    Raises:
        tf.errors.InvalidArgumentError: the dtype is not complex, the rank too low, or an axis empty.

    >>> import twofold as tf
    >>> tf.signal.fft(tf.cast(tf.ones([4]), tf.complex64)).numpy().tolist()
    [(4+0j), 0j, 0j, 0j]
    """
    return ops.fft(input, rank=1)


@public
def ifft(input: Any, name: str | None = None) -> Any:
    """Inverse Fourier transform over the last axis, divided by the number of elements.

    Args:
        input: complex64 or complex128 tensor of rank 1 or more.
        name: has no effect.
    Returns:
        Tensor like `input`.
    Raises:
        tf.errors.InvalidArgumentError: the dtype is not complex, the rank too low, or an axis empty.

    >>> import twofold as tf
    >>> tf.signal.ifft(tf.cast(tf.ones([4]), tf.complex64)).numpy().tolist()
    [(1+0j), 0j, 0j, 0j]
    """
    return ops.ifft(input, rank=1)


@public
def fft2d(input: Any, name: str | None = None) -> Any:
    """Fourier transform over the last two axes.

    Args:
        input: complex64 or complex128 tensor of rank 2 or more.
        name: has no effect.
    Returns:
        Tensor like `input`.
    Raises:
        tf.errors.InvalidArgumentError: the dtype is not complex, the rank too low, or an axis empty.

    >>> import twofold as tf
    >>> tf.signal.fft2d(tf.cast(tf.ones([1, 4]), tf.complex64)).numpy().tolist()
    [[(4+0j), 0j, 0j, 0j]]
    """
    return ops.fft(input, rank=2)


@public
def ifft2d(input: Any, name: str | None = None) -> Any:
    """Inverse Fourier transform over the last two axes, divided by the number of elements.

    Args:
        input: complex64 or complex128 tensor of rank 2 or more.
        name: has no effect.
    Returns:
        Tensor like `input`.
    Raises:
        tf.errors.InvalidArgumentError: the dtype is not complex, the rank too low, or an axis empty.

    >>> import twofold as tf
    >>> tf.signal.ifft2d(tf.cast(tf.ones([1, 4]), tf.complex64)).numpy().tolist()
    [[(1+0j), 0j, 0j, 0j]]
    """
    return ops.ifft(input, rank=2)


@public
def fft3d(input: Any, name: str | None = None) -> Any:
    """Fourier transform over the last three axes.

    Args:
        input: complex64 or complex128 tensor of rank 3 or more.
        name: has no effect.
    Returns:
        Tensor like `input`.
    Raises:
        tf.errors.InvalidArgumentError: the dtype is not complex, the rank too low, or an axis empty.

    >>> import twofold as tf
    >>> tf.signal.fft3d(tf.cast(tf.ones([1, 1, 4]), tf.complex64)).numpy().tolist()
    [[[(4+0j), 0j, 0j, 0j]]]
    """
    return ops.fft(input, rank=3)


@public
def ifft3d(input: Any, name: str | None = None) -> Any:
    """Inverse Fourier transform over the last three axes, divided by the number of elements.

    Args:
        input: complex64 or complex128 tensor of rank 3 or more.
        name: has no effect.
    Returns:
        Tensor like `input`.
    Raises:
        tf.errors.InvalidArgumentError: the dtype is not complex, the rank too low, or an axis empty.

    >>> import twofold as tf
    >>> tf.signal.ifft3d(tf.cast(tf.ones([1, 1, 4]), tf.complex64)).numpy().tolist()
    [[[(1+0j), 0j, 0j, 0j]]]
    """
    return ops.ifft(input, rank=3)


@public
def rfft(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Any:
    """Fourier transform of real numbers over the last axis: the half that is not redundant.

    Args:
        input_tensor: float32 or float64 tensor of rank 1 or more.
        fft_length: 1 integer, to which the axes are cut or filled with zeros first; None for as they are.
        name: has no effect.
    Returns:
        Complex tensor, its last axis of n // 2 + 1 elements.
    Raises:
        tf.errors.InvalidArgumentError: the dtype is another, the rank too low, an axis empty or a length not positive.

    >>> import twofold as tf
    >>> tf.signal.rfft(tf.ones([4])).numpy().tolist()
    [(4+0j), 0j, 0j]
    """
    return _forward("rfft", input_tensor, fft_length, 1)


@public
def irfft(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Any:
    """Real numbers whose `tf.signal.rfft` the input is.

    Args:
        input_tensor: complex tensor of rank 1 or more.
        fft_length: 1 integer, the result's last dimension; None for 2 * (n - 1) along the last axis.
        name: has no effect.
    Returns:
        Real tensor.
    Raises:
        tf.errors.InvalidArgumentError: the dtype is not complex, the rank too low, an axis empty or a length not
            positive.

    >>> import twofold as tf
    >>> tf.signal.irfft(tf.signal.rfft(tf.ones([4])), [4]).numpy().tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    return _backward("irfft", input_tensor, fft_length, 1)


@public
def rfft2d(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Any:
    """Fourier transform of real numbers over the last two axes: the half that is not redundant.

    Args:
        input_tensor: float32 or float64 tensor of rank 2 or more.
        fft_length: 2 integers, to which the axes are cut or filled with zeros first; None for as they are.
        name: has no effect.
    Returns:
        Complex tensor, its last axis of n // 2 + 1 elements.
    Raises:
        tf.errors.InvalidArgumentError: the dtype is another, the rank too low, an axis empty or a length not positive.

    >>> import twofold as tf
    >>> tf.signal.rfft2d(tf.ones([1, 4])).numpy().tolist()
    [[(4+0j), 0j, 0j]]
    """
    return _forward("rfft2d", input_tensor, fft_length, 2)


@public
def irfft2d(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Any:
    """Real numbers whose `tf.signal.rfft2d` the input is.

    Args:
        input_tensor: complex tensor of rank 2 or more.
        fft_length: 2 integers, the result's last dimensions; None for 2 * (n - 1) along the last axis.
        name: has no effect.
    Returns:
        Real tensor.
    Raises:
        tf.errors.InvalidArgumentError: the dtype is not complex, the rank too low, an axis empty or a length not
            positive.

    >>> import twofold as tf
    >>> tf.signal.irfft2d(tf.signal.rfft2d(tf.ones([1, 4])), [1, 4]).numpy().tolist()
    [[1.0, 1.0, 1.0, 1.0]]
    """
    return _backward("irfft2d", input_tensor, fft_length, 2)


@public
def rfft3d(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Any:
    """Fourier transform of real numbers over the last three axes: the half that is not redundant.

    Args:
        input_tensor: float32 or float64 tensor of rank 3 or more.
        fft_length: 3 integers, to which the axes are cut or filled with zeros first; None for as they are.
        name: has no effect.
    Returns:
        Complex tensor, its last axis of n // 2 + 1 elements.
    Raises:
        tf.errors.InvalidArgumentError: the dtype is another, the rank too low, an axis empty or a length not positive.

    >>> import twofold as tf
    >>> tf.signal.rfft3d(tf.ones([1, 1, 4])).numpy().tolist()
    [[[(4+0j), 0j, 0j]]]
    """
    return _forward("rfft3d", input_tensor, fft_length, 3)


@public
def irfft3d(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Any:
    """Real numbers whose `tf.signal.rfft3d` the input is.

    Args:
        input_tensor: complex tensor of rank 3 or more.
        fft_length: 3 integers, the result's last dimensions; None for 2 * (n - 1) along the last axis.
        name: has no effect.
    Returns:
        Real tensor.
    Raises:
        tf.errors.InvalidArgumentError: the dtype is not complex, the rank too low, an axis empty or a length not
            positive.

    >>> import twofold as tf
    >>> tf.signal.irfft3d(tf.signal.rfft3d(tf.ones([1, 1, 4])), [1, 1, 4]).numpy().tolist()
    [[[1.0, 1.0, 1.0, 1.0]]]
    """
    return _backward("irfft3d", input_tensor, fft_length, 3)


# -- any axes -------------------------------------------------------------------------------------------
def _along(name: str, x: Any, axes: Any, lengths: Any) -> tuple[tuple[int, ...], tuple[Any, ...] | None]:
    """The axes that are meant, from 0 on, and the lengths along them, or None."""
    rank = len(x.dims)
    given = tuple(range(rank)) if axes is None else ints(axes, "axes", axis_span(x))
    if len({a % rank if rank else a for a in given}) != len(given) or any(not -rank <= a < rank for a in given):
        raise InvalidArgumentError(f"{name}: axes must be different axes of a tensor of rank {rank}; got {axes!r}.")
    return (tuple(a % rank for a in given),
            None if lengths is None else _lengths(name, lengths, len(given)))


def _lasting(x: Any, axis: int, call: Any) -> Any:
    """`call` of `x` with an axis moved to the end, and back."""
    rank = len(x.dims)
    if axis == rank - 1:
        return call(x)
    perm = [a for a in range(rank) if a != axis] + [axis]
    return ops.transpose(call(ops.transpose(x, perm=tuple(perm))), perm=tuple(perm.index(a) for a in range(rank)))


def _scaled(name: str, x: Any, norm: str | None, count: Any, inverse: bool) -> Any:
    """The result of a transform of `count` elements, of which the inverse is divided by their number."""
    if norm not in (None, "backward", "ortho", "forward"):
        raise ValueError(f"{name}: norm must be 'backward', 'ortho' or 'forward'; got {norm!r}.")
    power = {"ortho": 0.5, "forward": 1.0}.get(norm or "", 0.0)
    if power == 0.0:
        return x
    real = x.dtype.real_dtype
    factor = ops.pow(ops.cast(count, dtype=real), tensor(power if inverse else -power, real))
    return ops.multiply(x, ops.cast(factor, dtype=x.dtype))


def _whole(name: str, x: Any, fft_length: Any, axes: Any, norm: str | None, inverse: bool) -> Any:
    along, lengths = _along(name, x, axes, fft_length)
    count: Any = 1
    for n, axis in enumerate(along):
        size = x.dims[axis] if lengths is None else lengths[n]
        count = count * size
        x = _lasting(x, axis, lambda v, size=size: (ops.ifft if inverse else ops.fft)(_fitted(name, v, (size,)),
                                                                                      rank=1))
    return _scaled(name, x, norm, count, inverse)


@public
def fftnd(input_tensor: Any, fft_length: Any = None, axes: Any = None, norm: str | None = None,
          name: str | None = None) -> Any:
    """Fourier transform over some axes.

    Args:
        input_tensor: complex64 or complex128 tensor.
        fft_length: the lengths along the axes, to which the input is cut or filled with zeros; by default its own.
        axes: which; by default all.
        norm: "backward", no factor; "ortho", divided by the root of the number of elements; "forward", by the number.
        name: has no effect.
    Returns:
        Complex tensor.
    Raises:
        tf.errors.InvalidArgumentError: the dtype is not complex, axes or lengths do not fit.

    >>> import twofold as tf
    >>> tf.signal.fftnd(tf.cast(tf.ones([2, 2]), tf.complex64), axes=[0]).numpy().tolist()
    [[(2+0j), (2+0j)], [0j, 0j]]
    """
    return _whole("fftnd", tensor(input_tensor), fft_length, axes, norm, inverse=False)


@public
def ifftnd(input_tensor: Any, fft_length: Any = None, axes: Any = None, norm: str | None = None,
           name: str | None = None) -> Any:
    """Inverse Fourier transform over some axes.

    Args:
        input_tensor: complex64 or complex128 tensor.
        fft_length: the lengths along the axes, to which the input is cut or filled with zeros; by default its own.
        axes: which; by default all.
        norm: "backward", divided by the number of elements; "ortho", by its root; "forward", no factor.
        name: has no effect.
    Returns:
        Complex tensor.
    Raises:
        tf.errors.InvalidArgumentError: the dtype is not complex, axes or lengths do not fit.

    >>> import twofold as tf
    >>> tf.signal.ifftnd(tf.cast(tf.ones([2, 2]), tf.complex64), axes=[0]).numpy().tolist()
    [[(1+0j), (1+0j)], [0j, 0j]]
    """
    return _whole("ifftnd", tensor(input_tensor), fft_length, axes, norm, inverse=True)


@public
def rfftnd(input_tensor: Any, fft_length: Any = None, axes: Any = None, norm: str | None = None,
           name: str | None = None) -> Any:
    """Fourier transform of real numbers over some axes; along the last of them half of the result is left out.

    Args:
        input_tensor: float32 or float64 tensor.
        fft_length: the lengths along the axes, to which the input is cut or filled with zeros; by default its own.
        axes: which; by default all.
        norm: as for `tf.signal.fftnd`.
        name: has no effect.
    Returns:
        Complex tensor.
    Raises:
        tf.errors.InvalidArgumentError: the dtype is not real, axes or lengths do not fit.

    >>> import twofold as tf
    >>> tf.signal.rfftnd(tf.ones([2, 2]), axes=[0]).numpy().tolist()
    [[(2+0j), (2+0j)], [0j, 0j]]
    """
    x = tensor(input_tensor)
    along, lengths = _along("rfftnd", x, axes, fft_length)
    if not along:
        raise InvalidArgumentError("rfftnd: axes must name an axis.")
    sizes = tuple(x.dims[a] for a in along) if lengths is None else lengths
    x = _lasting(x, along[-1], lambda v: ops.rfft(_fitted("rfftnd", v, sizes[-1:]), rank=1))
    x = _whole("rfftnd", x, sizes[:-1], along[:-1], None, inverse=False) if along[:-1] else x
    return _scaled("rfftnd", x, norm, dm.numel(sizes), inverse=False)


@public
def irfftnd(input_tensor: Any, fft_length: Any = None, axes: Any = None, norm: str | None = None,
            name: str | None = None) -> Any:
    """The real numbers whose transform `tf.signal.rfftnd` gives.

    Args:
        input_tensor: complex64 or complex128 tensor.
        fft_length: the lengths of the result along the axes; by default those of the input, and along the last axis
            twice as much less 2.
        axes: which; by default all.
        norm: as for `tf.signal.ifftnd`.
        name: has no effect.
    Returns:
        Real tensor.
    Raises:
        tf.errors.InvalidArgumentError: the dtype is not complex, axes or lengths do not fit.

    >>> import twofold as tf
    >>> tf.signal.irfftnd(tf.signal.rfftnd(tf.ones([2, 2]))).numpy().tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    x = tensor(input_tensor)
    along, lengths = _along("irfftnd", x, axes, fft_length)
    if not along:
        raise InvalidArgumentError("irfftnd: axes must name an axis.")
    sizes = (*(x.dims[a] for a in along[:-1]), 2 * (x.dims[along[-1]] - 1)) if lengths is None else lengths
    x = _whole("irfftnd", x, sizes[:-1], along[:-1], None, inverse=True) if along[:-1] else x
    last = sizes[-1]
    x = _lasting(x, along[-1], lambda v: ops.irfft(_fitted("irfftnd", v, (last // 2 + 1,)), rank=1, size=last))
    return _scaled("irfftnd", x, norm, dm.numel(sizes), inverse=True)


def _shifted(name: str, value: Any, axes: Any, sign: int) -> Any:
    x = tensor(value)
    rank = len(x.dims)
    for axis in range(rank) if axes is None else ints(axes, "axes", axis_span(x)):
        if not -rank <= axis < rank:
            raise InvalidArgumentError(f"{name}: axis {axis} is out of range for shape {x.shape}.")
        axis, size = axis % rank, x.dims[axis]
        half = size // 2 if sign < 0 else size - size // 2
        begin = [0] * rank
        begin[axis] = half
        tail = ops.slice(x, begin=tuple(begin), size=(*x.dims[:axis], size - half, *x.dims[axis + 1:]))
        head = ops.slice(x, begin=(0,) * rank, size=(*x.dims[:axis], half, *x.dims[axis + 1:]))
        x = ops.concat(tail, head, axis=axis)
    return x


@public
def fftshift(x: Any, axes: Any = None, name: str | None = None) -> Any:
    """Moves the zero frequency of a transform to the middle of each axis.

    Args:
        x: any tensor.
        axes: the axes to shift; None for all.
        name: has no effect.
    Returns:
        Tensor like `x`.
    Raises:
        tf.errors.InvalidArgumentError: an axis is out of range.

    >>> import twofold as tf
    >>> tf.signal.fftshift([0, 1, 2, -2, -1]).numpy().tolist()
    [-2, -1, 0, 1, 2]
    """
    return _shifted("fftshift", x, axes, 1)


@public
def ifftshift(x: Any, axes: Any = None, name: str | None = None) -> Any:
    """Undoes `tf.signal.fftshift`.

    Args:
        x: any tensor.
        axes: the axes to shift; None for all.
        name: has no effect.
    Returns:
        Tensor like `x`.
    Raises:
        tf.errors.InvalidArgumentError: an axis is out of range.

    >>> import twofold as tf
    >>> tf.signal.ifftshift([-2, -1, 0, 1, 2]).numpy().tolist()
    [0, 1, 2, -2, -1]
    """
    return _shifted("ifftshift", x, axes, -1)
