"""What public functions share: the guard that keeps our frames out of tracebacks, and argument readers."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from twofold.eager import convert
from twofold.eager.tensor import Tensor
from twofold.ir import dtypes as dt
from twofold.ir.dims import Dim
from twofold.ir.errors import SymbolicOperand, is_ours
from twofold.ir.spec import TensorShape
from twofold.runtime import native
from twofold.runtime.native import stand_in, unguarded

__all__ = ["SymbolicOperand", "public", "public_class", "tensor", "ints", "axis_arg", "shape_arg", "is_ours", "staged",
           "stand_in", "unguarded"]

F = TypeVar("F", bound=Callable[..., Any])


def public(fn: F) -> F:
    """Make `fn` a public function: an error it raises shows the user's frames only."""
    return native.guard(fn)  # type: ignore[return-value]


C = TypeVar("C", bound=type)


def public_class(cls: C) -> C:
    """Make the methods of `cls` without an underscore, and its `__init__`, public functions."""
    for name, value in list(vars(cls).items()):
        if isinstance(value, classmethod):
            setattr(cls, name, classmethod(native.as_method(public(value.__func__))))
        elif inspect.isfunction(value) and (name == "__init__" or not name.startswith("_")):
            setattr(cls, name, native.as_method(public(value)))
    return cls


def tensor(value: Any, dtype: Any = None, hint: Any = None) -> Tensor:
    """`value` as a tensor, of `dtype` when one is given; see `eager.convert.as_tensor`."""
    return convert.as_tensor(value, None if dtype is None else dt.as_dtype(dtype),
                             None if hint is None else dt.as_dtype(hint))


def ints(value: Any, what: str = "value") -> tuple[Any, ...]:
    """Integers (or Dims) of an argument: a number, sequence, array, tensor or TensorShape.

    Raises:
        TypeError: it holds something that is not an integer.
    """
    if isinstance(value, (int, np.integer, Dim)) and not isinstance(value, bool):
        return (value if isinstance(value, Dim) else int(value),)
    if isinstance(value, TensorShape):
        return tuple(value.as_list())
    if hasattr(value, "_read_tensor") or isinstance(value, Tensor):
        if hasattr(value, "sizes"):  # a traced tensor
            return value.sizes()
        value = value.numpy()
    if isinstance(value, (np.ndarray, np.generic)):
        if value.dtype.kind not in "iu" and value.size:
            raise TypeError(f"{what} must hold integers; got dtype {value.dtype}.")
        return tuple(int(v) for v in np.ravel(value))
    try:
        return tuple(v if isinstance(v, Dim) else _int(v) for v in value)
    except TypeError:
        raise TypeError(f"{what} must be an integer or a sequence of integers; got {value!r}.") from None


def _int(value: Any) -> Any:
    if hasattr(value, "sizes"):
        if value.dims:
            raise TypeError(value)
        return value.sizes()[0]
    if isinstance(value, (bool, float)) or value is None:
        raise TypeError(value)
    return operator.index(value)


def axis_arg(axis: Any) -> tuple[int, ...] | None:
    """An `axis` argument as ops take it: None for all axes, else a tuple."""
    return None if axis is None else ints(axis, "axis")


def shape_arg(shape: Any) -> tuple[Any, ...]:
    """A `shape` argument as ops take it."""
    return ints(shape, "shape")


def staged(fn: Callable[..., Any]) -> Callable[..., Any]:
    """What to call in a trace in place of a user's function: its form with staged control flow."""
    from twofold.tracer import autograph
    return autograph.callee(fn)
