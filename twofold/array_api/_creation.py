"""Functions that make tensors, and questions about dtypes and devices."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import twofold as tf
from twofold._front.api import public
from twofold._ops import numpy_creation as _shared
from twofold._ops import numpy_picking as _picking
from twofold._ops.numpy_operands import NUMBERS

from ._rules import _DEFAULTS, default_complex, default_float, default_int, joined, on, operand, operands

__all__ = [
    "arange", "asarray", "astype", "can_cast", "empty", "empty_like", "eye", "finfo", "from_dlpack", "full",
    "full_like", "iinfo", "isdtype", "linspace", "meshgrid", "ones", "ones_like", "result_type", "tril", "triu",
    "zeros", "zeros_like", "__array_namespace_info__",
]

_KINDS = {
    "bool": ["bool"], "signed integer": ["int8", "int16", "int32", "int64"],
    "unsigned integer": ["uint8", "uint16", "uint32", "uint64"], "real floating": ["float32", "float64"],
    "complex floating": ["complex64", "complex128"],
}
_KINDS["integral"] = _KINDS["signed integer"] + _KINDS["unsigned integer"]
_KINDS["numeric"] = _KINDS["integral"] + _KINDS["real floating"] + _KINDS["complex floating"]


def _sizes(shape: Any) -> Any:
    return [shape] if isinstance(shape, int) else shape


def _leaves(value: Any) -> list[Any]:
    return [leaf for item in value for leaf in _leaves(item)] if isinstance(value, (list, tuple)) else [value]


def _own_dtype(obj: Any) -> Any:
    """The dtype that a value has without one that is asked for."""
    if isinstance(obj, (tf.Tensor, tf.Variable)):
        return obj.dtype
    leaves = _leaves(obj)
    if leaves and all(type(leaf) in _DEFAULTS for leaf in leaves):
        return _DEFAULTS[max((type(leaf) for leaf in leaves), key=list(_DEFAULTS).index)]
    if any(isinstance(leaf, (tf.Tensor, tf.Variable)) for leaf in leaves):
        return operands(*leaves)[0].dtype
    return tf.as_dtype(np.asarray(obj).dtype) if leaves else default_float


# -- making ---------------------------------------------------------------------------------------
@public
def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None) -> Any:
    """A value as a tensor.

    Args:
        obj: a tensor, array, number, nested sequence, or what has a buffer or `__array__`.
        dtype: by default the value's own, int32, float32 or complex64 for Python numbers.
        device: where it is to be.
        copy: whether it must be copied; a tensor never changes, so that False is an error only where there is none yet.
    Raises:
        ValueError: `copy` is False, and a copy is needed.

    >>> import twofold.array_api as xp
    >>> xp.asarray([1, 2])
    <tf.Tensor: shape=(2,), dtype=int32, numpy=array([1, 2], dtype=int32)>
    """
    is_tensor = isinstance(obj, (tf.Tensor, tf.Variable))
    target = _own_dtype(obj) if dtype is None else tf.as_dtype(dtype)
    if copy is False and not (is_tensor and obj.dtype == target):
        raise ValueError("asarray: tensors never share memory with what may change, so that a copy is needed.")
    if not is_tensor and any(isinstance(leaf, (tf.Tensor, tf.Variable)) for leaf in _leaves(obj)):
        return on(device, lambda: tf.stack([asarray(item, dtype=target) for item in obj]))
    made = tf.convert_to_tensor(obj if is_tensor else _array(obj, target))
    made = made if made.dtype == target else tf.cast(made, target)
    return on(device, lambda: tf.identity(made) if copy else made)


def _array(obj: Any, target: Any) -> Any:
    """What is no tensor as an array of NumPy, Python's integers without a detour through floats."""
    if all(type(leaf) in _DEFAULTS for leaf in _leaves(obj)):
        return np.array(obj, target.as_numpy_dtype)
    return np.asarray(obj)


@public
def zeros(shape: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """A tensor of zeros, of float32 by default.

    >>> import twofold.array_api as xp
    >>> xp.zeros(2).numpy().tolist()
    [0.0, 0.0]
    """
    return on(device, lambda: tf.zeros(_sizes(shape), dtype or default_float))


@public
def ones(shape: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """A tensor of ones, of float32 by default.

    >>> import twofold.array_api as xp
    >>> xp.ones(2, dtype=xp.int8).numpy().tolist()
    [1, 1]
    """
    return on(device, lambda: tf.ones(_sizes(shape), dtype or default_float))


@public
def empty(shape: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """A tensor of a shape; its elements are zeros.

    >>> import twofold.array_api as xp
    >>> xp.empty((2, 3)).shape
    TensorShape([2, 3])
    """
    return zeros(shape, dtype=dtype, device=device)


@public
def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """A tensor of one value throughout.

    >>> import twofold.array_api as xp
    >>> xp.full(2, 3).numpy().tolist()
    [3, 3]
    """
    return on(device, lambda: tf.broadcast_to(asarray(fill_value, dtype=dtype), _sizes(shape)))


@public
def zeros_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Any:
    """Zeros in the shape of a tensor.

    >>> import twofold.array_api as xp
    >>> xp.zeros_like(xp.asarray([1, 2])).numpy().tolist()
    [0, 0]
    """
    return on(device, lambda: tf.zeros_like(operand(x), dtype))


@public
def ones_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Any:
    """Ones in the shape of a tensor.

    >>> import twofold.array_api as xp
    >>> xp.ones_like(xp.asarray([1, 2])).numpy().tolist()
    [1, 1]
    """
    return on(device, lambda: tf.ones_like(operand(x), dtype))


@public
def empty_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Any:
    """A tensor of the shape of another; its elements are zeros.

    >>> import twofold.array_api as xp
    >>> xp.empty_like(xp.asarray([1, 2])).shape
    TensorShape([2])
    """
    return zeros_like(x, dtype=dtype, device=device)


@public
def full_like(x: Any, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """One value in the shape of a tensor, and in its dtype unless another is given.

    >>> import twofold.array_api as xp
    >>> xp.full_like(xp.asarray([1, 2]), 7).numpy().tolist()
    [7, 7]
    """
    x = operand(x)
    value = asarray(fill_value, dtype=x.dtype if dtype is None else dtype)
    return on(device, lambda: tf.broadcast_to(value, tf.shape(x)))


@public
def arange(start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None) -> Any:
    """Numbers at equal distances, up to a last one that is not among them.

    Args:
        start: the first number; the last one, from 0, if `stop` is None.
        stop: the last one.
        step: how far each is from the one before.
        dtype: int32 by default, float32 if one of the numbers is a float.
        device: where the result is to be.

    >>> import twofold.array_api as xp
    >>> xp.arange(1, 2, 0.25).numpy().tolist()
    [1.0, 1.25, 1.5, 1.75]
    """
    first, last = (0, start) if stop is None else (start, stop)
    is_float = any(isinstance(x, float) for x in (first, last, step))
    target = tf.as_dtype(dtype) if dtype is not None else default_float if is_float else default_int
    numbers = np.arange(first, last, step, dtype=None if is_float else np.int64)
    return on(device, lambda: tf.cast(tf.constant(numbers), target))


@public
def linspace(start: Any, stop: Any, /, num: int, *, dtype: Any = None, device: Any = None,
             endpoint: bool = True) -> Any:
    """Numbers at equal distances between two.

    Args:
        start, stop: the first and the last.
        num: how many.
        dtype: float32 by default, complex64 if one of the two is complex.
        device: where the result is to be.
        endpoint: whether the last is among them.

    >>> import twofold.array_api as xp
    >>> xp.linspace(0, 1, 5).numpy().tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    is_complex = isinstance(start, complex) or isinstance(stop, complex)
    target = tf.as_dtype(dtype) if dtype is not None else default_complex if is_complex else default_float
    numbers = np.linspace(start, stop, num, endpoint=endpoint)
    return on(device, lambda: tf.cast(tf.constant(numbers), target))


@public
def eye(n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: Any = None) -> Any:
    """A matrix of ones on diagonal `k`, and zeros elsewhere.

    >>> import twofold.array_api as xp
    >>> xp.eye(2, k=1).numpy().tolist()
    [[0.0, 1.0], [0.0, 0.0]]
    """
    return on(device, lambda: _shared.eye(n_rows, n_cols, k, dtype or default_float))


@public
def meshgrid(*arrays: Any, indexing: str = "xy") -> list[Any]:
    """The coordinates of the points of a grid.

    Args:
        arrays: the places along each axis, of one dtype.
        indexing: "xy", where the first axis goes across, or "ij".

    >>> import twofold.array_api as xp
    >>> [t.numpy().tolist() for t in xp.meshgrid(xp.asarray([1, 2]), xp.asarray([3]))]
    [[[1, 2]], [[3, 3]]]
    """
    return list(tf.meshgrid(*[operand(x) for x in arrays], indexing=indexing))


@public
def tril(x: Any, /, *, k: int = 0) -> Any:
    """Matrices with 0 above diagonal `k`.

    >>> import twofold.array_api as xp
    >>> xp.tril(xp.asarray([[1, 2], [3, 4]])).numpy().tolist()
    [[1, 0], [3, 4]]
    """
    return _picking.band(operand(x), k, True)


@public
def triu(x: Any, /, *, k: int = 0) -> Any:
    """Matrices with 0 below diagonal `k`.

    >>> import twofold.array_api as xp
    >>> xp.triu(xp.asarray([[1, 2], [3, 4]])).numpy().tolist()
    [[1, 2], [0, 4]]
    """
    return _picking.band(operand(x), k, False)


@public
def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Any:
    """A tensor of another library's array that has `__dlpack__`.

    Args:
        x: the array.
        device: where the result is to be.
        copy: False is an error for arrays of the host, which others might write to.
    Raises:
        ValueError: a copy is needed, and `copy` is False.

    >>> import numpy as np
    >>> import twofold.array_api as xp
    >>> xp.from_dlpack(np.array([1.0, 2.0])).numpy().tolist()
    [1.0, 2.0]
    """
    if isinstance(x, tf.Tensor):
        return on(device, lambda: tf.identity(x) if copy else x)
    if copy is False and int(x.__dlpack_device__()[0]) == 1:
        raise ValueError("from_dlpack: tensors never share memory with what may change, so that a copy is needed.")
    return on(device, lambda: tf.experimental.dlpack.from_dlpack(x))


# -- dtypes ---------------------------------------------------------------------------------------
@public
def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
    """The elements in another dtype.

    Args:
        x: a tensor.
        dtype: the dtype.
        copy: whether the result is another object where the dtype is the tensor's.
        device: where the result is to be.

    >>> import twofold.array_api as xp
    >>> xp.astype(xp.asarray([1, 2]), xp.float64).dtype
    tf.float64
    """
    x, target = operand(x), tf.as_dtype(dtype)
    made = tf.cast(x, target) if x.dtype != target else tf.identity(x) if copy else x
    return on(device, lambda: made)


@public
def result_type(*arrays_and_dtypes: Any) -> Any:
    """The dtype in which tensors, dtypes and Python numbers meet.

    >>> import twofold.array_api as xp
    >>> xp.result_type(xp.uint8, xp.int8)
    tf.int16
    """
    numbers = [x for x in arrays_and_dtypes if isinstance(x, NUMBERS)]
    dtypes = [_dtype_of(x) for x in arrays_and_dtypes if not isinstance(x, NUMBERS)]
    if not numbers:
        return joined(*dtypes)
    return operands(*[tf.zeros((), dtype) for dtype in dtypes], *numbers)[0].dtype


@public
def can_cast(from_: Any, to: Any, /) -> bool:
    """Whether a dtype, or that of a tensor, meets another one in that other one.

    >>> import twofold.array_api as xp
    >>> xp.can_cast(xp.int8, xp.int16), xp.can_cast(xp.int16, xp.int8)
    (True, False)
    """
    source = tf.as_dtype(from_.dtype if isinstance(from_, (tf.Tensor, tf.Variable)) else from_)
    try:
        return joined(source, tf.as_dtype(to)) == tf.as_dtype(to)
    except TypeError:
        return False


@public
def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether a dtype is of a kind.

    Args:
        dtype: a dtype.
        kind: a dtype; "bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating" or
            "numeric"; or several of these.
    Raises:
        ValueError: the kind is another.

    >>> import twofold.array_api as xp
    >>> xp.isdtype(xp.int8, "integral"), xp.isdtype(xp.int8, ("bool", xp.float32))
    (True, False)
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, each) for each in kind)
    if not isinstance(kind, str):
        return tf.as_dtype(dtype) == tf.as_dtype(kind)
    if kind not in _KINDS:
        raise ValueError(f"isdtype: kind must be a dtype or one of {', '.join(_KINDS)}; got {kind!r}.")
    return tf.as_dtype(dtype).name in _KINDS[kind]


class FloatInfo(NamedTuple):
    """What there is to know of a dtype of floating numbers; of complex ones, of their parts."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: Any


class IntegerInfo(NamedTuple):
    """What there is to know of a dtype of integers."""

    bits: int
    max: int
    min: int
    dtype: Any


def _dtype_of(value: Any) -> Any:
    return value.dtype if isinstance(value, (tf.Tensor, tf.Variable)) else tf.as_dtype(value)


@public
def finfo(type: Any, /) -> FloatInfo:
    """What there is to know of a dtype of floating or complex numbers, or of that of a tensor.

    >>> import twofold.array_api as xp
    >>> xp.finfo(xp.float32).eps
    1.1920928955078125e-07
    """
    real = _dtype_of(type).real_dtype
    info = np.finfo(real.as_numpy_dtype)
    return FloatInfo(info.bits, float(info.eps), float(info.max), float(info.min), float(info.smallest_normal), real)


@public
def iinfo(type: Any, /) -> IntegerInfo:
    """What there is to know of a dtype of integers, or of that of a tensor.

    >>> import twofold.array_api as xp
    >>> xp.iinfo(xp.int8).max
    127
    """
    dtype = _dtype_of(type)
    info = np.iinfo(dtype.as_numpy_dtype)
    return IntegerInfo(info.bits, int(info.max), int(info.min), dtype)


# -- what there is --------------------------------------------------------------------------------
class NamespaceInfo:
    """What the namespace can do: its devices, dtypes and defaults."""

    def capabilities(self) -> dict[str, Any]:
        """Which optional parts of the standard there are, and how many axes there can be."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 32}

    def default_device(self) -> str:
        """The device of new tensors."""
        return tf.zeros(()).device

    def default_dtypes(self, *, device: Any = None) -> dict[str, Any]:
        """The dtypes of new tensors, by kind.

        Args:
            device: accepted, without effect: they are the same on all.
        """
        return {"real floating": default_float, "complex floating": default_complex, "integral": default_int,
                "indexing": default_int}

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, Any]:
        """The dtypes by their names.

        Args:
            device: accepted, without effect: they are the same on all.
            kind: a kind of `isdtype`, or several, to have those only.
        """
        names = ["bool", *_KINDS["numeric"]]
        return {name: tf.as_dtype(name) for name in names if kind is None or isdtype(name, kind)}

    def devices(self) -> list[str]:
        """The names of all devices."""
        return [f"/job:localhost/replica:0/task:0/device:{device.device_type}:{n}"
                for kind in ("CPU", "GPU") for n, device in enumerate(tf.config.list_logical_devices(kind))]


@public
def __array_namespace_info__() -> NamespaceInfo:
    """What the namespace can do.

    >>> import twofold.array_api as xp
    >>> xp.__array_namespace_info__().default_dtypes()["real floating"]
    tf.float32
    """
    return NamespaceInfo()
