"""Values into tensors: `tf.constant`, `tf.convert_to_tensor`, and questions about tensors."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from twofold.eager import conversions
from twofold.eager.tensor import Tensor, where_asked
from twofold.eager.variable import Variable
from twofold.ir import ops
from twofold.ir.dims import numel
from twofold.ir.spec import TensorSpec
from twofold.ir.type_spec import spec_of_composite
from twofold.tracer.contents import elements
from twofold.tracer.symbolic import SymbolicValueError
from twofold.tracer.trace import current

from . import weak as weakness
from .api import public, shape_arg, tensor

__all__ = ["constant", "convert_to_tensor", "is_tensor", "get_static_value", "enable_eager_execution",
           "eager_for_good", "register_tensor_conversion_function", "type_spec_from_value"]

eager_for_good: list[bool] = []  # not empty once eager execution was asked for


@public
def constant(value: Any, dtype: Any = None, shape: Any = None, name: str = "Const") -> Tensor:
    """A tensor with a constant value.

    Args:
        value: a Python number, string, (nested) list or NumPy array. Floats give float32, ints int32 (int64
            where they do not fit); arrays keep their dtype.
        dtype: the dtype of the result.
        shape: the shape of the result; a single value is repeated, otherwise the number of elements must match.
        name: accepted, without effect.
    Returns:
        A tensor of its own memory: later changes of an array do not show.
    Raises:
        TypeError: the value does not convert to `dtype`. ValueError: lists are ragged, or `shape` does not fit.

    >>> import twofold as tf
    >>> tf.constant([1, 2, 3])
    <tf.Tensor: shape=(3,), dtype=int32, numpy=array([1, 2, 3], dtype=int32)>
    >>> tf.constant(-1.0, shape=[2, 2]).numpy().tolist()
    [[-1.0, -1.0], [-1.0, -1.0]]
    """
    del name
    out = where_asked(tensor(value, dtype))
    if weakness.constants.weak and dtype is None and weakness.numbers_are_weak(value):
        out = weakness.weak(out)
    if shape is None:
        return out
    dims = shape_arg(shape)
    if numel(dims) == numel(out.dims):
        return ops.reshape(out, shape=dims)
    if numel(out.dims) == 1:
        return ops.fill(ops.reshape(out, shape=()), shape=dims)
    raise TypeError(f"constant: a value of shape {out.shape} does not fit shape {tuple(dims)}.")


@public
def convert_to_tensor(value: Any, dtype: Any = None, dtype_hint: Any = None, name: str | None = None) -> Tensor:
    """`value` as a tensor.

    Args:
        value: a tensor, variable, Python number, string, (nested) list or NumPy array.
        dtype: the dtype that the result must have.
        dtype_hint: the dtype that the result has if the value allows it.
        name: accepted, without effect.
    Returns:
        The tensor; `value` itself when it is one.
    Raises:
        TypeError, ValueError: the value cannot be converted.

    >>> import twofold as tf
    >>> tf.convert_to_tensor(3.0)
    <tf.Tensor: shape=(), dtype=float32, numpy=3.0>
    """
    del name
    made = tensor(value, dtype, dtype_hint)
    return made if isinstance(value, Tensor) or hasattr(value, "_read_tensor") else where_asked(made)


@public
def register_tensor_conversion_function(base_type: Any, conversion_func: Callable[..., Any],
                                        priority: int = 100) -> None:
    """Let a function make tensors of values of a type, wherever a tensor is taken.

    A class can have a method `__tf_tensor__(self, dtype=None, name=None)` instead.

    Args:
        base_type: a class or a tuple of classes; not one of Python's or NumPy's numbers and arrays.
        conversion_func: called as `conversion_func(value, dtype=None, name=None, as_ref=False)`; gives a tensor, of
            `dtype` where that is not None, or NotImplemented, which leaves the value to other functions.
        priority: functions of lower numbers are asked first; of one number, those registered first.
    Raises:
        TypeError: the type is none, or a number's; the function is not callable.

    >>> import twofold as tf
    >>> class Celsius:
    ...     def __init__(self, degrees):
    ...         self.degrees = degrees
    >>> def to_tensor(value, dtype=None, name=None, as_ref=False):
    ...     return tf.constant(value.degrees, dtype or tf.float32)
    >>> tf.register_tensor_conversion_function(Celsius, to_tensor)
    >>> (tf.constant(273.0) + Celsius(20)).numpy().item()
    293.0
    """
    conversions.register(base_type, conversion_func, priority)


@public
def is_tensor(x: Any) -> bool:
    """Whether `x` is a tensor or a variable; ragged and sparse tensors are, too, and values of users that have an
    attribute `is_tensor_like`.

    >>> import twofold as tf
    >>> tf.is_tensor(tf.constant(1)), tf.is_tensor(1)
    (True, False)
    """
    return (isinstance(x, (Tensor, Variable)) or getattr(type(x), "_counts_as_tensor", False)
            or hasattr(x, "is_tensor_like"))


@public
def enable_eager_execution(config: Any = None, device_policy: Any = None, execution_mode: Any = None) -> None:
    """Make ops run at once, for good: they do already, but graphs and sessions of TensorFlow 1 are refused after this.

    Args:
        config, device_policy, execution_mode: accepted, without effect.
    Raises:
        ValueError: `tf.compat.v1.disable_eager_execution` was called.
    """
    del config, device_policy, execution_mode
    mode = sys.modules.get("twofold.compat.v1.mode")
    if mode is not None and mode.builds_graphs():
        raise ValueError("tf.enable_eager_execution must be called at program startup.")
    eager_for_good.append(True)


@public
def get_static_value(tensor: Any, partial: bool = False) -> Any:
    """The value of a tensor as a NumPy array, where it is known without running anything; else None.

    Args:
        tensor: a tensor; what is none is its own value, but for variables and composite values.
        partial: whether of integers in a trace an array of objects may come, with None for those that are not known.

    >>> import twofold as tf
    >>> @tf.function(input_signature=[tf.TensorSpec([None, 3])])
    ... def show(x):
    ...     print(tf.get_static_value(tf.shape(x)), tf.get_static_value(tf.shape(x), partial=True))
    >>> show(tf.ones([2, 3]))
    None [None 3]
    """
    if not is_tensor(tensor):
        return tensor
    try:
        return tensor.numpy() if isinstance(tensor, Tensor) else None
    except (SymbolicValueError, TypeError):  # a tensor of a trace, or of a graph of `tf.compat.v1`
        return _known_part(tensor) if partial else None


def _known_part(symbolic: Any) -> Any:
    """The elements of a tensor of a trace that are known, None for the others; None if there are none."""
    if symbolic.shape.rank is None:
        return None
    array = elements(symbolic.value, symbolic.trace, current())
    if array is None or not any(type(x) is int for x in array.ravel()):
        return None
    part = np.empty(array.shape, object)
    part.ravel()[:] = [x if type(x) is int else None for x in array.ravel()]
    return part


@public
def type_spec_from_value(value: Any) -> Any:
    """The `tf.TypeSpec` of a value.

    Args:
        value: a tensor, variable or composite value, or what becomes a tensor.
    Raises:
        TypeError: it is none of these.

    >>> import twofold as tf
    >>> tf.type_spec_from_value(tf.constant([1, 2]))
    TensorSpec(shape=(2,), dtype=tf.int32, name=None)
    """
    spec = spec_of_composite(value)
    if spec is not None:
        return spec
    if hasattr(value, "element_spec") and hasattr(value, "_type_spec"):
        return value._type_spec
    try:
        own = value if isinstance(value, Tensor) else tensor(value)
    except (TypeError, ValueError):
        raise TypeError(f"Could not build a TypeSpec for {value!r} with type {type(value).__name__}") from None
    return TensorSpec(own.shape, own.dtype)
