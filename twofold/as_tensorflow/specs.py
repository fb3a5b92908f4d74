"""Specs of values as libraries know them from TensorFlow's private modules: TensorFlow Probability's distributions and
deferred tensors are composite values, whose specs derive from these classes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

import twofold as tf
from twofold.ir import type_spec as _type_spec
from twofold.ir.dtypes import DType
from twofold.ir.spec import TensorShape

__all__ = ["BatchableTypeSpec", "DenseSpec", "VariableSpec", "convert_variables_to_tensors", "registry",
           "type_spec_from_value"]


class _Compared(tf.TypeSpec):
    """What classes of specs call by the names that Python gives to TensorFlow's methods `__make_cmp_key` and
    `__is_compatible`."""

    __slots__ = ()

    def _TypeSpec__make_cmp_key(self, value: Any) -> Hashable:
        if isinstance(value, Mapping):
            return tuple([(self._TypeSpec__make_cmp_key(k), self._TypeSpec__make_cmp_key(value[k]))
                          for k in sorted(value)])
        if isinstance(value, tuple):
            return tuple([self._TypeSpec__make_cmp_key(part) for part in value])
        if isinstance(value, list):
            return list, tuple([self._TypeSpec__make_cmp_key(part) for part in value])
        if isinstance(value, np.ndarray):
            return np.ndarray, value.shape, tuple(value.ravel().tolist())
        if value is None or isinstance(value, (int, float, np.generic, str, bytes, DType, tf.TypeSpec, TensorShape)):
            return value
        raise ValueError(f"Cannot generate a hashable key for {self} because the _serialize() method returned an "
                         f"unsupported value of type {type(value)}")

    @staticmethod
    def _TypeSpec__is_compatible(a: Any, b: Any) -> bool:
        return _type_spec._compatible(a, b)

    def _with_tensor_ranks_only(self) -> Any:
        return self

    def _without_tensor_names(self) -> Any:
        return self

    def _form(self) -> Hashable:
        try:
            return super()._form()
        except (ValueError, TypeError):  # functions among the parameters: what the class compares by
            return hash(self)


class BatchableTypeSpec(_Compared):
    """The spec of values that batches are made of: `_batch` and `_unbatch` give the specs of these."""

    __slots__ = ()

    def _batched(self, size: int | None) -> Any:
        return self._batch(size)  # type: ignore[attr-defined]

    def _unbatched(self) -> Any:
        return self._unbatch()  # type: ignore[attr-defined]

    def _stacked(self, values: Sequence[Any]) -> Any:
        parts = [tf.nest.flatten(value, expand_composites=True) for value in values]
        stacked = [tf.stack(leaves) for leaves in zip(*parts, strict=True)]
        return tf.nest.pack_sequence_as(self._batched(len(values)), stacked, expand_composites=True)

    def _rows(self, value: Any) -> Sequence[Any]:
        parts = [tf.unstack(leaf) for leaf in tf.nest.flatten(value, expand_composites=True)]
        row = self._unbatched()
        return [tf.nest.pack_sequence_as(row, leaves, expand_composites=True) for leaves in zip(*parts, strict=True)]


class DenseSpec(_Compared):
    """The spec of what has a shape and a dtype."""

    __slots__ = ("_shape", "_dtype", "_name")

    def __init__(self, shape: Any, dtype: Any = tf.float32, name: str | None = None) -> None:
        self._shape, self._dtype, self._name = tf.TensorShape(shape), tf.as_dtype(dtype), name

    @property
    def shape(self) -> Any:
        """The shape."""
        return self._shape

    @property
    def dtype(self) -> Any:
        """The dtype."""
        return self._dtype

    @property
    def name(self) -> str | None:
        """The name."""
        return self._name


class VariableSpec(DenseSpec):
    """The spec of a variable, which stands for itself in structures."""

    __slots__ = ("trainable", "alias_id")
    __composite__ = False

    def __init__(self, shape: Any, dtype: Any = tf.float32, trainable: bool = True,
                 alias_id: int | None = None) -> None:
        super().__init__(shape, dtype)
        self.trainable, self.alias_id = trainable, alias_id

    @property
    def value_type(self) -> type:
        """`tf.Variable`."""
        return tf.Variable

    def _serialize(self) -> tuple[Any, ...]:
        return self.shape, self.dtype, self.trainable, self.alias_id

    @classmethod
    def from_value(cls, value: Any) -> VariableSpec:
        """The spec of a variable."""
        return cls(value.shape, value.dtype, value.trainable)

    def is_compatible_with(self, spec_or_value: Any) -> bool:
        """Whether a variable, or one of another spec, has this shape and dtype and is trainable as this says."""
        return isinstance(spec_or_value, (VariableSpec, tf.Variable)) and bool(
            self.shape.is_compatible_with(spec_or_value.shape) and self.dtype == spec_or_value.dtype
            and self.trainable == spec_or_value.trainable)


def type_spec_from_value(value: Any) -> Any:
    """The spec of a tensor, a variable or a composite value.

    Raises:
        TypeError: it is none of these.
    """
    if isinstance(value, tf.Variable):
        return VariableSpec.from_value(value)
    spec = _type_spec.spec_of_composite(value)
    return spec if spec is not None else tf.type_spec_from_value(value)


def convert_variables_to_tensors(values: Any) -> Any:
    """A structure with the values of its variables, those in composite values that tell how included."""
    def converted(value: Any) -> Any:
        if isinstance(value, tf.Variable):
            return tf.convert_to_tensor(value)
        own = getattr(value, "_convert_variables_to_tensors", None)
        return value if own is None else own()

    return tf.nest.map_structure(converted, values)


def registry() -> dict[str, Any]:
    """`type_spec_registry`: classes of specs by the names that files know them by."""
    def get_name(cls: type) -> str:
        """The name of a class."""
        name = _type_spec.registered_name(cls)
        if name is None:
            raise ValueError(f"TypeSpec {cls.__module__}.{cls.__name__} has not been registered.")
        return name

    def lookup(name: str) -> type:
        """The class of a name."""
        cls = _type_spec.named_spec(name)
        if cls is None:
            raise ValueError(f"No TypeSpec has been registered with name {name!r}")
        return cls

    register: Callable[[str], Any] = _type_spec.register
    return {"register": register, "get_name": get_name, "lookup": lookup,
            "_NAME_TO_TYPE_SPEC": _type_spec._by_name, "_TYPE_SPEC_TO_NAME": _type_spec._names}
