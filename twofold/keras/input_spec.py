"""`InputSpec`: the inputs that a layer expects, and the error that says how one differs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import twofold as tf
from twofold._front.api import listed

from .configs import config_of

__all__ = ["InputSpec", "assert_input_compatibility"]


class InputSpec:
    """The rank, dtype and shape of an input.

    Args:
        dtype: the dtype, or None for any.
        shape: the shape, None for sizes that may be any, or None for any shape.
        ndim: the rank, or None for any.
        max_ndim, min_ndim: bounds of the rank.
        axes: sizes by axis; None where it may be any.
        allow_last_axis_squeeze: accept an input that lacks, or has beyond, a last axis of size 1.
        name: the name under which the input is expected in a dict.
        optional: whether None may be passed.
    Raises:
        ValueError: an axis is beyond the rank.

    >>> import twofold as tf
    >>> tf.keras.InputSpec(ndim=3, axes={-1: 8})
    InputSpec(ndim=3, axes={-1: 8})
    """

    def __init__(self, dtype: Any = None, shape: Any = None, ndim: int | None = None, max_ndim: int | None = None,
                 min_ndim: int | None = None, axes: Mapping[int, int | None] | None = None,
                 allow_last_axis_squeeze: bool = False, name: str | None = None, optional: bool = False):
        self.dtype = None if dtype is None else tf.as_dtype(dtype)
        self.shape = None if shape is None else tuple(listed(shape, "A shape"))
        self.ndim = ndim if self.shape is None else len(self.shape)
        self.max_ndim, self.min_ndim = max_ndim, min_ndim
        self.axes = {int(axis): size for axis, size in (axes or {}).items()}
        self.allow_last_axis_squeeze = allow_last_axis_squeeze
        self.name, self.optional = name, optional
        limit = self.ndim if self.ndim is not None else self.max_ndim
        if self.axes and limit is not None and max(self.axes) > limit - 1:
            raise ValueError(f"Axis {max(self.axes)} is greater than the maximum allowed value: {limit - 1}")

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal spec."""
        return {"dtype": None if self.dtype is None else self.dtype.name, "shape": self.shape, "ndim": self.ndim,
                "max_ndim": self.max_ndim, "min_ndim": self.min_ndim, "axes": dict(self.axes)}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> InputSpec:
        """A spec made from what `get_config` gave."""
        return cls(**config_of(config))

    def __repr__(self) -> str:
        said = {"dtype": None if self.dtype is None else self.dtype.name, "shape": self.shape,
                "ndim": self.ndim, "max_ndim": self.max_ndim, "min_ndim": self.min_ndim, "axes": self.axes or None}
        return f"InputSpec({', '.join([f'{k}={v}' for k, v in said.items() if v is not None])})"

    def fault(self, shape: Sequence[Any], dtype: Any) -> str:
        """How an input differs from the spec; empty when it does not."""
        shown = tuple(listed(shape, "shape"))
        rank = len(shown)
        if self.ndim is not None and not self.allow_last_axis_squeeze and rank != self.ndim:
            return f"expected ndim={self.ndim}, found ndim={rank}. Full shape received: {shown}"
        if self.max_ndim is not None and rank > self.max_ndim:
            return f"expected max_ndim={self.max_ndim}, found ndim={rank}"
        if self.min_ndim is not None and rank < self.min_ndim:
            return f"expected min_ndim={self.min_ndim}, found ndim={rank}. Full shape received: {shown}"
        if self.dtype is not None and dtype != self.dtype:
            return f"expected dtype={self.dtype.name}, found dtype={tf.as_dtype(dtype).name}"
        for axis, size in self.axes.items():
            if size is not None and not -rank <= axis < rank or size is not None and shape[axis] not in (size, None):
                return (f"expected axis {axis} of input shape to have value {size}, but received input with shape "
                        f"{shown}")
        return self._wrong_shape(shape)

    def _wrong_shape(self, shape: Sequence[Any]) -> str:
        if self.shape is None:
            return ""
        expected, given = self.shape, tuple(shape)
        if self.allow_last_axis_squeeze:
            if expected and len(given) == len(expected) + 1 and given[-1] == 1:
                given = given[:-1]
            elif given and len(expected) == len(given) + 1 and expected[-1] == 1:
                expected = expected[:-1]
        fits = len(expected) == len(given) and all(
            e is None or g is None or e == g for e, g in zip(expected, given, strict=True))
        return "" if fits else f"expected shape={self.shape}, found shape={tuple(shape)}"


def assert_input_compatibility(input_spec: Any, inputs: Any, layer_name: str) -> None:
    """Check that inputs fit the specs of a layer.

    Args:
        input_spec: an InputSpec or a structure of them; None for no expectation.
        inputs: tensors in the same structure.
        layer_name: for the error.
    Raises:
        ValueError: one does not, or there are more or fewer.
    """
    if input_spec is None:
        return
    specs = tf.nest.flatten(input_spec)
    if isinstance(inputs, Mapping) and any(s.name for s in specs):
        missing = [s.name for s in specs if s.name not in inputs and not s.optional]
        if missing:
            raise ValueError(f"Missing data for input {missing[0]!r}. You passed a data dictionary with keys "
                             f"{list(inputs)}. Expected the following keys: {[s.name for s in specs]}")
        values = [inputs.get(s.name) for s in specs]
    else:
        values = tf.nest.flatten(inputs)
    if len(values) != len(specs):
        raise ValueError(f'Layer "{layer_name}" expects {len(specs)} input(s), but it received {len(values)} input '
                         f"tensors. Inputs received: {inputs!r}")
    for n, (spec, value) in enumerate(zip(specs, values, strict=True)):
        if spec is None or (value is None and spec.optional):
            continue
        shape: Any = getattr(value, "shape", None)
        if value is None or shape is None or getattr(shape, "rank", 0) is None:
            continue
        fault = spec.fault(tuple(shape), value.dtype)
        if fault:
            raise ValueError(f'Input {n} of layer "{layer_name}" is incompatible with the layer: {fault}')
