"""Elements: structures of tensors and datasets, and their form.

Tuples, named tuples, dicts, dataclasses and attrs classes are structure; lists become tensors. Pipelines pass elements
as flat tuples of NumPy arrays (and datasets, where elements hold datasets); `Form` packs and unpacks them at the edges.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import twofold as tf
from twofold._front import iteration as engine

from ._value import dataset_class, is_dataset

__all__ = ["DatasetSpec", "Form", "Item", "NoneTensorSpec", "compatible", "general", "merged", "normal",
           "numpy_leaf", "row_spec", "spec_of"]

Item = tuple[Any, ...]  # the leaves of an element: arrays and datasets


class DatasetSpec(tf.TypeSpec):
    """The spec of a dataset that is itself part of an element.

    Args:
        element_spec: of that dataset's elements.
        dataset_shape: (), as in TensorFlow.

    >>> import twofold as tf
    >>> tf.data.Dataset.range(4).window(2).element_spec
    DatasetSpec(TensorSpec(shape=(), dtype=tf.int64, name=None), TensorShape([]))
    """

    __composite__ = False
    __slots__ = ("dataset_shape", "element_spec")

    def __init__(self, element_spec: Any, dataset_shape: Any = ()) -> None:
        self.element_spec = element_spec
        self.dataset_shape = tf.TensorShape(dataset_shape)

    @classmethod
    def from_value(cls, value: Any) -> DatasetSpec:
        """The spec of a dataset."""
        return cls(value.element_spec)

    @property
    def value_type(self) -> type:
        """The class of the values: `tf.data.Dataset`."""
        return dataset_class()

    def _serialize(self) -> tuple[Any, ...]:
        return self.element_spec, self.dataset_shape

    def is_compatible_with(self, spec_or_value: Any) -> bool:
        """Whether a dataset of this spec could be the other dataset, or one of the other spec."""
        other = spec_or_value
        given = other if isinstance(other, DatasetSpec) else DatasetSpec(getattr(other, "element_spec", None))
        try:
            engine.nest.assert_same_structure(self.element_spec, given.element_spec)
        except (TypeError, ValueError):
            return False
        pairs = zip(engine.nest.flatten(self.element_spec), engine.nest.flatten(given.element_spec), strict=True)
        return all(a.is_compatible_with(b) for a, b in pairs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DatasetSpec) and self.element_spec == other.element_spec

    def __hash__(self) -> int:
        return hash(tuple(engine.nest.flatten(self.element_spec)))

    def __repr__(self) -> str:
        return f"DatasetSpec({self.element_spec!r}, {self.dataset_shape!r})"


@dataclass(frozen=True)
class NoneTensorSpec(tf.TypeSpec):
    """The spec of None in an element: a structure without leaves, so that pipelines pass nothing for it.

    >>> import twofold as tf
    >>> tf.data.Dataset.from_tensors((1, None)).element_spec
    (TensorSpec(shape=(), dtype=tf.int32, name=None), NoneTensorSpec())
    """

    __composite__ = None  # a container of nothing

    @property
    def value_type(self) -> type:
        """The class of None."""
        return type(None)

    def _serialize(self) -> tuple[Any, ...]:
        return ()


def _holds_none(spec: Any) -> bool:
    """Whether there is None in the elements of a spec."""
    if isinstance(spec, NoneTensorSpec):
        return True
    children = spec.values() if isinstance(spec, Mapping) else spec if isinstance(spec, tuple) else (
        vars(spec).values() if _is_structure(spec) else ())
    return any(map(_holds_none, children))


def _with_none(value: Any) -> Any:
    """A structure with None where a `NoneTensorSpec` stands for it."""
    if isinstance(value, NoneTensorSpec):
        return None
    if isinstance(value, (Mapping, tuple)):
        return _rebuilt(value, _with_none)
    if not _is_structure(value):
        return value
    made = copy.copy(value)
    for name, child in vars(value).items():
        object.__setattr__(made, name, _with_none(child))
    return made


def normal(value: Any) -> Any:
    """`value` with tensors and datasets for leaves: lists, numbers, arrays and variables become tensors.

    None becomes a `NoneTensorSpec`, which has no leaves.

    Raises:
        TypeError, ValueError: a leaf cannot be a tensor.
    """
    if is_dataset(value) or type(value) is tf.Tensor or engine.nest.is_composite(value):
        return value
    if _is_structure(value):
        return _rebuilt(value, normal)
    if value is None:
        return NoneTensorSpec()
    return tf.convert_to_tensor(value)


def _is_structure(value: Any) -> bool:
    return not isinstance(value, list) and engine.nest.is_nested(value, expand_composites=False)


def _rebuilt(value: Any, change: Callable[[Any], Any]) -> Any:
    """A container like `value`, each child changed; lists within are children of the caller's making."""
    if isinstance(value, Mapping):
        made = {key: change(child) for key, child in value.items()}
        return made if type(value) is dict else type(value)(made)  # type: ignore[call-arg]
    if isinstance(value, tuple):
        children = [change(child) for child in value]
        return type(value)(*children) if hasattr(value, "_fields") else tuple(children)
    names = [f.name for f in getattr(value, "__attrs_attrs__", ())] or list(value.__dataclass_fields__)
    return engine.nest.pack(value, engine.nest.flatten([change(getattr(value, n)) for n in names]))


def spec_of(value: Any) -> Any:
    """The structure of specs of a normal structure."""
    if is_dataset(value):
        return DatasetSpec(value.element_spec)
    if engine.nest.is_composite(value):
        return tf.type_spec_from_value(value)
    if _is_structure(value):
        return _rebuilt(value, spec_of)
    return tf.TensorSpec(value.shape, value.dtype)


class Form:
    """The form of elements: specs in a structure, and ways between structures and flat items.

    Attributes:
        spec: the structure of specs.
        flat: the specs, flat.
        plain: whether all leaves are tensors.
        composite: whether there are values that are made of several tensors, which are leaves of their own each.
    """

    def __init__(self, spec: Any) -> None:
        self.spec = spec
        self.flat: list[Any] = engine.nest.flatten(spec)
        self.plain = not any(isinstance(s, DatasetSpec) for s in self.flat)
        self.composite = any(map(engine.nest.is_composite, engine.nest.flatten(spec, expand_composites=False)))
        self.pack: Callable[[Sequence[Any]], Any] = self._packer()

    def _packer(self) -> Callable[[Sequence[Any]], Any]:
        if _holds_none(self.spec):
            return lambda leaves: _with_none(engine.nest.pack(self.spec, leaves))
        if not engine.nest.is_nested(self.spec):
            return lambda leaves: leaves[0]
        if type(self.spec) is tuple and not any(engine.nest.is_nested(s) for s in self.spec):
            return tuple
        return lambda leaves: engine.nest.pack(self.spec, leaves)

    @functools.cached_property
    def text(self) -> str:
        """The specs as text, which equal forms share."""
        return repr(self.spec)

    @property
    def unpacks(self) -> bool:
        """Whether functions take the parts of an element as arguments of their own."""
        return type(self.spec) is tuple

    def element(self, item: Item) -> Any:
        """The element that users see."""
        if self.plain:
            return self.pack(engine.tensors_of(item))
        return self.pack([x if is_dataset(x) else engine.tensor_of(x) for x in item])

    def item(self, element: Any) -> Item:
        """The leaves of a normal structure of eager tensors."""
        leaves = engine.nest.flatten(element)
        return tuple([x if is_dataset(x) else engine.array_of(x) for x in leaves if x is not None])

    def fits(self, item: Item) -> bool:
        """Whether an item has the dtypes and shapes of this form."""
        return len(item) == len(self.flat) and all(
            is_dataset(x) if isinstance(s, DatasetSpec) else
            not is_dataset(x) and engine.dtype_of(x) is s.dtype and s.shape.is_compatible_with(x.shape)
            for x, s in zip(item, self.flat, strict=True))

    def stacked(self, items: Sequence[Item]) -> Item:
        """One item of several, whose values are stacked along a new first axis; composite values by their class."""
        elements = [engine.nest.flatten(self.element(item), expand_composites=False) for item in items]
        leaves: list[Any] = []
        for spec, values in zip(self.whole, zip(*elements, strict=True), strict=True):
            leaves.append(spec._stacked(values) if engine.nest.is_composite(spec) else tf.stack(values))
        return self.item(leaves)

    def rows(self, item: Item) -> list[Item]:
        """The items of the slices of an item along the first axes of its values.

        Raises:
            InvalidArgumentError: the values have different numbers of rows.
        """
        values = engine.nest.flatten(self.element(item), expand_composites=False)
        rows = [spec._rows(value) if engine.nest.is_composite(spec) else tf.unstack(value)
                for spec, value in zip(self.whole, values, strict=True)]
        if len({len(r) for r in rows}) > 1:
            raise tf.errors.InvalidArgumentError(
                None, None, f"The values have first axes of different sizes: {[len(r) for r in rows]}.")
        return [self.item(list(parts)) for parts in zip(*rows, strict=True)]

    @property
    def whole(self) -> list[Any]:
        """The specs, flat, with one for each composite value."""
        return engine.nest.flatten(self.spec, expand_composites=False)

    def map_whole(self, change: Callable[[Any], Any]) -> Form:
        """The form with each spec changed, those of composite values as a whole."""
        return Form(engine.nest.pack(self.spec, [change(s) for s in self.whole], expand_composites=False))

    def map_specs(self, change: Callable[[Any], Any]) -> Form:
        """The form with each spec changed."""
        return Form(engine.nest.pack(self.spec, [change(s) for s in self.flat]))


def row_spec(spec: Any) -> Any:
    """The spec of the rows of what `spec` describes."""
    if engine.nest.is_composite(spec):
        return spec._unbatched()
    return tf.TensorSpec(None if spec.shape.rank is None else spec.shape[1:], spec.dtype)


def general(spec: Any, size: int | None) -> Any:
    """The spec of a batch of what `spec` describes."""
    if engine.nest.is_composite(spec):
        return spec._batched(size)
    if isinstance(spec, DatasetSpec):
        raise TypeError(f"Batching of dataset elements is not supported: {spec!r}. Use flat_map to turn the inner "
                        "datasets into elements first.")
    shape = spec.shape
    return tf.TensorSpec(None if shape.rank is None else [size, *shape], spec.dtype)


def compatible(first: Form, second: Form) -> bool:
    """Whether the elements of two datasets have one structure and the same dtypes."""
    try:
        engine.nest.assert_same_structure(first.spec, second.spec)
    except (TypeError, ValueError):
        return False
    return all(type(a) is type(b) and (isinstance(a, DatasetSpec) or a.dtype is b.dtype)
               for a, b in zip(first.flat, second.flat, strict=True))


def merged(first: Form, second: Form) -> Form:
    """The narrowest form that covers two compatible ones."""
    specs = [a if isinstance(a, DatasetSpec) else
             tf.TensorSpec(a.shape.most_specific_compatible_shape(b.shape), a.dtype)
             for a, b in zip(first.flat, second.flat, strict=True)]
    return Form(engine.nest.pack(first.spec, specs))


def numpy_leaf(array: np.ndarray) -> Any:
    """A leaf as `as_numpy_iterator` gives it: a NumPy scalar, `bytes`, or an array of the caller's own."""
    array = engine.on_host(array)
    return array[()] if array.ndim == 0 else array.copy()
