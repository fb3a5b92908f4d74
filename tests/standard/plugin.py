"""A plugin of pytest for the conformance tests of the array API standard: tensors behave as NumPy's arrays, and
hypothesis, which takes tuples only for shapes, gets tuples where the tests hand on `x.shape`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import hypothesis.extra.array_api as strategies
from hypothesis.extra import _array_helpers as helpers

import twofold as tf

tf.experimental.numpy.experimental_enable_numpy_behavior(dtype_conversion_mode="all")


def _tupled(value: Any) -> Any:
    return tuple(value.as_list()) if isinstance(value, tf.TensorShape) else value


def _with_tuples(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*map(_tupled, args), **{name: _tupled(value) for name, value in kwargs.items()})
    return call


def _checked(kind: type, value: Any, name: str) -> None:
    """As hypothesis checks arguments, with shapes of tensors for tuples."""
    if not (kind is tuple and isinstance(value, tf.TensorShape)):
        check_type(kind, value, name)


check_type = helpers.check_type
strategies.check_type = helpers.check_type = _checked
for name in ("_arrays", "broadcastable_shapes", "mutually_broadcastable_shapes"):
    for module in (strategies, helpers):
        if hasattr(module, name):
            setattr(module, name, _with_tuples(getattr(module, name)))
