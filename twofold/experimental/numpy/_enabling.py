"""`experimental_enable_numpy_behavior`: operators whose operands' dtypes meet, NumPy's indexing, and methods."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Number
from typing import Any

import numpy as np

import twofold as tf
from twofold._front import weak as _weak
from twofold._front.api import public
from twofold._ops.numpy_pairs import shifted_left, shifted_right
from twofold._ops.numpy_products import matmul
from twofold.eager import operators as _operators
from twofold.eager.tensor import Tensor
from twofold.eager.variable import Variable
from twofold.runtime import native

from . import _arrays, _elementwise, _indexing, _pairs, _reductions, _rules

__all__ = ["experimental_enable_numpy_behavior"]

_BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor",
           "lshift", "rshift")
_COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")
_MEET = (Tensor, Variable, np.ndarray, np.generic, Number, list, tuple)
#: operators that tensors have not, or not for vectors
_OURS = {"__matmul__": matmul, "__rmatmul__": lambda x, y: matmul(y, x),
         "__lshift__": shifted_left, "__rlshift__": lambda x, y: shifted_left(y, x),
         "__rshift__": shifted_right, "__rrshift__": lambda x, y: shifted_right(y, x)}
_BEFORE: dict[tuple[type, str], Any] = {}  # the attributes that were there, or None


@public
def experimental_enable_numpy_behavior(prefer_float32: bool = False, dtype_conversion_mode: str = "legacy") -> None:
    """Have tensors behave as NumPy's arrays, for all of the process and from here on.

    Operators promote operands of different dtypes; square brackets take masks and arrays of integers; tensors have
    `T`, `astype`, `clip`, `data`, `flatten`, `max`, `mean`, `min`, `ravel`, `reshape`, `size`, `tolist` and
    `transpose`.

    Args:
        prefer_float32: whether Python's floats count as float32, and not as float64, in "legacy".
        dtype_conversion_mode: how dtypes meet. "legacy": as NumPy's. "all": floats beside integers keep their dtype,
            and what was made of Python's numbers without a dtype gives way. "safe": as "all", and an error where
            something might be lost. "off": operators do not promote.
    Raises:
        ValueError: the mode is another.

    The example is for a process of its own:

        tf.experimental.numpy.experimental_enable_numpy_behavior()
        x = tf.constant([1, 2, 3])
        x[[0, 2]] + 0.5  # [1.5, 3.5], float64
    """
    if dtype_conversion_mode not in _rules.MODES:
        raise ValueError(f"dtype_conversion_mode must be one of {', '.join(_rules.MODES)}; got "
                         f"{dtype_conversion_mode!r}.")
    _rules.set_mode(dtype_conversion_mode, bool(prefer_float32))
    _weak.constants.weak = not _rules.legacy()
    if not _BEFORE:
        _install()


def disable() -> None:
    """Undo `experimental_enable_numpy_behavior`, for tests."""
    _rules.set_mode("legacy", False)
    _weak.constants.weak = False
    for (cls, name), before in _BEFORE.items():
        if before is None:
            delattr(cls, name)
        else:
            setattr(cls, name, before)
    if _BEFORE:
        _operators.renew()
    _BEFORE.clear()


def _put(cls: type, name: str, value: Any) -> None:
    _BEFORE[cls, name] = vars(cls).get(name)
    setattr(cls, name, value)


def _install() -> None:
    for name in (*_BINARY, *_COMPARISONS):
        for form in (f"__{name}__", f"__r{name}__") if name in _BINARY else (f"__{name}__",):
            plain = _OURS.get(form) or getattr(Tensor, form)
            for cls in (Tensor, Variable):
                _put(cls, form, native.as_method(native.guard(_meeting(plain, name in _COMPARISONS), form)))
    _put(Tensor, "__getitem__", native.as_method(native.guard(_indexed(Tensor.__getitem__), "__getitem__")))
    for name, value in _METHODS.items():
        _put(Tensor, name, value)


def _indexed(plain: Any) -> Callable[[Any, Any], Any]:
    """Square brackets with arrays, too."""
    return lambda x, key: _indexing.index(plain, x, key)


def _meeting(plain: Any, compares: bool) -> Callable[[Any, Any], Any]:
    """An operator whose operands are promoted first."""
    takes_numbers = plain not in _OURS.values()

    def call(x: Any, y: Any) -> Any:
        if type(x) is Tensor and (x._memory.dtype == y._memory.dtype if type(y) is Tensor
                                  else takes_numbers and _gives_way(x, y)):
            return plain(x, y)
        x = tf.convert_to_tensor(x) if isinstance(x, Variable) else x
        if not isinstance(y, _MEET) or _rules.mode()[0] == "off" or x.dtype == tf.string:
            return plain(x, y)
        kind = _rules.meeting(x, y)
        result = plain(_rules.tensor(x, kind.dtype), _rules.tensor(y, kind.dtype))
        return _weak.weak(result) if kind.weak and not compares and result.dtype == kind.dtype else result
    return call


def _gives_way(x: Tensor, y: Any) -> bool:
    """Whether a value is a Python number that takes the dtype of a tensor beside it in every mode."""
    kind = type(y)
    return kind is int and x._memory.dtype.kind in "if" or kind is float and x._memory.dtype.kind == "f"


# -- methods --------------------------------------------------------------------------------------
def _reshape(x: Any, *newshape: Any, **kwargs: Any) -> Any:
    """The same elements in another shape; see `tf.experimental.numpy.reshape`."""
    return _arrays.reshape(x, newshape[0] if len(newshape) == 1 else newshape, **kwargs)


def _transpose(x: Any, *axes: Any) -> Any:
    """A tensor with its axes in another order; see `tf.experimental.numpy.transpose`."""
    return _arrays.transpose(x, axes[0] if len(axes) == 1 else axes or None)


def _astype(x: Any, dtype: Any, copy: bool = True) -> Any:
    """The elements in another dtype.

    Args:
        dtype: one of ours or NumPy's, or its name; `float` is float32, as in TensorFlow.
        copy: accepted, without effect: tensors never change.
    """
    return tf.cast(x, tf.int64 if dtype is int else tf.as_dtype(dtype))


def _tolist(x: Any) -> Any:
    """The elements as Python's numbers, in lists."""
    return x.numpy().tolist()


_METHODS: dict[str, Any] = {
    "T": property(_arrays.transpose, doc="The tensor with its axes turned around."),
    "__round__": native.as_method(_elementwise.round),
    "astype": _astype,
    "clip": native.as_method(_pairs.clip),
    "data": property(lambda x: x, doc="The tensor itself."),
    "flatten": native.as_method(_arrays.flatten),
    "max": native.as_method(_reductions.amax),
    "mean": native.as_method(_reductions.mean),
    "min": native.as_method(_reductions.amin),
    "ravel": native.as_method(_arrays.ravel),
    "reshape": _reshape,
    "size": property(_arrays.size, doc="The number of elements."),
    "tolist": _tolist,
    "transpose": _transpose,
}
