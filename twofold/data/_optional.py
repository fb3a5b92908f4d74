"""`Optional`: an element, or the knowledge that there is none; and its spec.

It is made of a bool and the tensors of the element, which are zeros where there is none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import twofold as tf
from twofold._front import iteration as engine
from twofold._front.dispatch import CompositeTensor, TypeSpec, register

from ._structure import DatasetSpec, Form, normal, spec_of

__all__ = ["Optional", "OptionalSpec", "fillers", "tensor_specs"]


def tensor_specs(form: Form) -> list[tf.TensorSpec]:
    """The specs of the tensors that stand for an element in a graph."""
    return [tf.TensorSpec([], tf.string) if isinstance(s, DatasetSpec) else s for s in form.flat]


def fillers(specs: Sequence[tf.TensorSpec]) -> list[np.ndarray]:
    """Arrays of these specs, for an element that is not there: empty where a size is open, else zeros."""
    return [np.broadcast_to(np.zeros((), s.dtype.np) if s.dtype != tf.string else np.array(b"", object),
                            [d or 0 for d in s.shape.as_list()] if s.shape.rank is not None else []) for s in specs]


@engine.guarded
class Optional(CompositeTensor):
    """An element, or the knowledge that there is none; see `Iterator.get_next_as_optional`.

    >>> import twofold as tf
    >>> tf.data.experimental.Optional.from_value(42).get_value()
    <tf.Tensor: shape=(), dtype=int32, numpy=42>
    """

    def __init__(self, element_spec: Any, leaves: Sequence[Any] | None, there: Any,
                 spec: OptionalSpec | None = None) -> None:
        self._element_spec, self._leaves, self._there, self._spec = element_spec, leaves, there, spec

    @staticmethod
    def from_value(value: Any) -> Optional:
        """An optional that has a value.

        Args:
            value: a tensor or a structure of tensors.
        """
        element = normal(value)
        return Optional(spec_of(element), engine.nest.flatten(element), True)

    @staticmethod
    def empty(element_spec: Any) -> Optional:
        """An optional without a value.

        Args:
            element_spec: what its value would be; where it is None, branches and loops make it that of what they join
                with it.
        """
        return Optional(element_spec, None, False)

    @property
    def element_spec(self) -> Any:
        """What the value is."""
        return self._element_spec

    def has_value(self, name: str | None = None) -> Any:
        """Whether there is a value: a bool scalar.

        Args:
            name: accepted, without effect.
        """
        return tf.convert_to_tensor(self._there)

    def get_value(self, name: str | None = None) -> Any:
        """The value.

        Args:
            name: accepted, without effect.
        Raises:
            InvalidArgumentError: there is none; in a function, when it runs.
        """
        if self._there is not True:
            message = "The given optional does not have a value."
            if engine.is_symbolic(self._there):
                tf.debugging.Assert(self._there, [message])
            elif not self._there:
                raise tf.errors.InvalidArgumentError(None, None, message)
        return self._type_spec._value_form.pack(self._values())

    # -- as a value that is made of tensors ------------------------------------------------------
    def _values(self) -> list[Any]:
        form = self._type_spec._value_form
        if self._leaves is None or len(self._leaves) != len(form.flat):
            self._leaves = engine.tensors_of(fillers(tensor_specs(form)))
        return list(self._leaves)

    @property
    def _type_spec(self) -> OptionalSpec:
        if self._spec is None or self._spec._element_spec is not self._element_spec:  # which Keras sets
            self._spec = OptionalSpec(self._element_spec)
        return self._spec

    def adapted(self, before: Any) -> Any:
        """An optional from before a loop, or of the other side of a branch, as one of what this one holds.

        Args:
            before: the value there.
        """
        if not isinstance(before, Optional) or before._element_spec is not None:
            return before
        return Optional(self._element_spec, None, before._there)

    def invariants(self) -> list[Any]:
        """The shape of the bool, and of each tensor, with None where a loop may change it."""
        return [None, *[s.shape for s in tensor_specs(self._type_spec._value_form)]]

    def __repr__(self) -> str:
        return f"<tf.experimental.Optional element_spec={self._element_spec!r}>"


@register("tf.OptionalSpec")
class OptionalSpec(TypeSpec):
    """The spec of a `tf.experimental.Optional`.

    Args:
        element_spec: that of its value; None for an optional that never has one.

    >>> import twofold as tf
    >>> tf.OptionalSpec(tf.TensorSpec([2]))
    OptionalSpec(TensorSpec(shape=(2,), dtype=tf.float32, name=None))
    """

    __slots__ = ("_element_spec", "_packing", "_tensors")

    def __init__(self, element_spec: Any) -> None:
        self._element_spec = element_spec
        self._packing: Form | None = None
        self._tensors: tuple[Any, ...] | None = None  # specs, asked for by each call that gives such a value

    @property
    def _value_form(self) -> Form:
        """How the tensors of a value become the value."""
        if self._packing is None:
            self._packing = Form(() if self._element_spec is None else self._element_spec)
        return self._packing

    @staticmethod
    def from_value(value: Optional) -> OptionalSpec:
        """The spec of an optional.

        Args:
            value: the optional.
        """
        return OptionalSpec(value.element_spec)

    @property
    def value_type(self) -> type:
        """The class of the values: `tf.experimental.Optional`."""
        return Optional

    def _serialize(self) -> tuple[Any, ...]:
        return (self._element_spec,)

    @property
    def _component_specs(self) -> Any:
        if self._tensors is None:
            self._tensors = (tf.TensorSpec([], tf.bool), *tensor_specs(self._value_form))
        return list(self._tensors)

    def _to_components(self, value: Optional) -> list[Any]:
        return [value.has_value(), *value._values()]

    def _from_components(self, components: Any) -> Optional:
        there, *leaves = components
        return Optional(self._element_spec, leaves, there, self)

    def _with_component_specs(self, components: Any) -> OptionalSpec:
        _, *leaves = components
        if self._element_spec is None:
            return self
        return OptionalSpec(engine.nest.pack(self._element_spec, leaves))

    def __repr__(self) -> str:
        return f"OptionalSpec({self._element_spec!r})"
