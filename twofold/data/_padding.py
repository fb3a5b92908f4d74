"""The arguments of `padded_batch`: shapes and values for each component of an element."""

from __future__ import annotations

from typing import Any

import numpy as np

import twofold as tf
from twofold._front import iteration as engine

from ._batching import PaddedBatch
from ._structure import Form

__all__ = ["padded", "padded_shapes"]


def padded(dataset: Any, size: Any, shapes: list[Any], values: Any, drop: bool) -> Any:
    """Batches of elements padded to `shapes`, which are flat."""
    node = dataset._node
    return dataset._then(PaddedBatch(node, size, shapes, _values(node.form, values), drop))


def padded_shapes(form: Form, given: Any) -> list[list[Any]]:
    """The shape to pad each component to: sizes, None for the largest of a batch.

    Args:
        form: of the elements.
        given: a structure of shapes like that of an element; None to take the shapes as far as they are known.
    Raises:
        ValueError: a rank is unknown, or a shape does not go with the component.
    """
    shapes = []
    leaves = [s.shape for s in form.flat] if given is None else _leaves(form.spec, given)
    for number, (spec, leaf) in enumerate(zip(form.flat, leaves, strict=True)):
        if given is None and spec.shape.rank is None:
            raise ValueError(f"You must provide `padded_shapes` argument because component {number} has unknown rank.")
        shapes.append(_shape(spec, leaf))
    return shapes


def _shape(spec: Any, leaf: Any) -> list[Any]:
    if isinstance(leaf, (tf.Tensor, np.ndarray)):
        leaf = [None if n == -1 else n for n in np.ravel(engine.array_of(leaf)).tolist()]
    shape = tf.TensorShape([None if n == -1 else n for n in leaf] if isinstance(leaf, (list, tuple)) else leaf)
    if spec.shape.rank is not None and not _covers(shape, spec.shape):
        raise ValueError(f"The padded shape {shape} is not compatible with the shape {spec.shape} of the corresponding "
                         "input component.")
    return list(shape)


def _covers(shape: tf.TensorShape, known: tf.TensorShape) -> bool:
    return shape.rank == known.rank and all(a is None or b is None or a >= b for a, b in
                                            zip(shape, known, strict=True))


def _leaves(spec: Any, given: Any) -> list[Any]:
    """The parts of an argument that go with the components of an element."""
    if not engine.nest.is_nested(spec):
        return [given]
    if isinstance(spec, dict):
        if not isinstance(given, dict) or set(given) != set(spec):
            raise ValueError(f"The two structures don't have the same nested structure: {spec!r} and {given!r}.")
        return [leaf for key in sorted(spec) for leaf in _leaves(spec[key], given[key])]
    if isinstance(spec, tuple):
        if not isinstance(given, (tuple, list)) or len(given) != len(spec):
            raise ValueError(f"The two structures don't have the same nested structure: {spec!r} and {given!r}.")
        return [leaf for s, g in zip(spec, given, strict=True) for leaf in _leaves(s, g)]
    return engine.nest.flatten(given)


def _values(form: Form, given: Any) -> list[np.ndarray]:
    """The padding of each component: 0, "" or False by default; one value may be given for all."""
    if given is None:
        return [_default(s.dtype) for s in form.flat]
    single = not engine.nest.is_nested(given)
    leaves = [given] * len(form.flat) if single else _leaves(form.spec, given)
    return [_default(s.dtype) if leaf is None else _value(s, leaf) for s, leaf in zip(form.flat, leaves, strict=True)]


def _default(dtype: Any) -> np.ndarray:
    if dtype is tf.string:
        return engine.array_of(b"")
    return np.zeros((), dtype.as_numpy_dtype)


def _value(spec: Any, leaf: Any) -> np.ndarray:
    if isinstance(leaf, (int, float, bool)) and spec.dtype is not tf.string:
        array = engine.array_of(leaf, spec.dtype)
    else:
        array = engine.array_of(leaf)
    if array.ndim:
        raise ValueError(f"Invalid `padding_values`. `padding_values` values should be scalars, but got "
                         f"{list(array.shape)}.")
    if engine.dtype_of(array) is not spec.dtype:
        raise TypeError(f"Invalid `padding_values`. `padding_values` values type {engine.dtype_of(array)!r} does not "
                        f"match type {spec.dtype!r} of the corresponding input component.")
    return array
