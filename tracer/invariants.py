"""The shapes that users say the variables of a loop may have: `shape_invariants`, read and held to the first values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from twofold.ir import errors, nest
from twofold.ir.spec import TensorShape, TensorSpec

from .composite import Composite
from .types import Structure

__all__ = ["of_variables", "of_value"]


def of_variables(given: Any, variables: Sequence[Any] | Mapping[Any, Any]
                 ) -> dict[Any, list[TensorShape | None] | None]:
    """The invariants of each of the variables of `tf.while_loop`, by their numbers or keys; see `of_value`.

    Args:
        given: a structure like `variables`, or None for none.
        variables: the values before the loop.
    Raises:
        TypeError, ValueError: it has another structure, something in it is no shape, or a value does not fit its shape.
    """
    keys = list(variables) if isinstance(variables, Mapping) else list(range(len(variables)))
    if given is None:
        return dict.fromkeys(keys)
    alike = isinstance(given, Mapping) if isinstance(variables, Mapping) else isinstance(given, (list, tuple))
    if not alike or nest.keys_of(given) != nest.keys_of(variables):
        raise ValueError(f"while_loop: 'shape_invariants' must be a structure like 'loop_vars', which has "
                         f"{len(keys)} entries; got {errors.describe(given)}.")
    return {k: of_value(given[k], variables[k], f"loop_vars[{k!r}]") for k in keys}


def of_value(given: Any, value: Structure, name: str) -> list[TensorShape | None]:
    """For each leaf of a variable None, or the shape that all its values must fit.

    Args:
        given: None, a shape, or a TensorSpec, for all leaves; or such in the structure of the value.
        value: the variable before the loop.
        name: of the variable, for errors.
    Raises:
        TypeError, ValueError: see `of_variables`.
    """
    if given is None or isinstance(given, (TensorShape, TensorSpec)) or not nest.is_nested(value):
        return [shape for leaf in nest.flatten(value) for shape in _of_leaf(given, leaf, name)]
    if not nest.is_nested(given) or nest.keys_of(given) != nest.keys_of(value):
        raise ValueError(f"The shape invariant of '{name}' must be a shape, or shapes in the structure of its value; "
                         f"got {errors.describe(given)}.")
    pairs = zip(nest.children(given), nest.children(value), strict=True)
    return [shape for own, child in pairs for shape in of_value(own, child, name)]


def _of_leaf(given: Any, leaf: Any, name: str) -> list[TensorShape | None]:
    if isinstance(leaf, Composite):  # it knows itself what loops may change of it
        return leaf.invariants()
    if given is None:
        return [None]
    shape = given.shape if isinstance(given, TensorSpec) else TensorShape(given)
    own = leaf.shape if hasattr(leaf, "shape") else np.shape(leaf)
    if not shape.is_compatible_with(own):
        raise ValueError(f"'{name}' has shape {TensorShape(own)} before the loop, which does not fit its shape "
                         f"invariant {shape}.")
    return [shape]
