"""`TypeSpec`, the description of a value of a program, and `CompositeTensor`, a value that is made of tensors.

A composite value has a spec, and its spec says how the value comes apart into tensors (`_to_components`) and is made of
such (`_from_components`). To everything inside of the library both are containers (`ir/nest.py`): a function takes and
gives their tensors, and so do branches, loops, tapes and files. What ops and public functions do with composite values
is said where the values are (`twofold/_front/dispatch.py`).

The methods have TensorFlow's names, so that classes which were written for it work here.
"""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeVar

from . import nest
from .errors import CompositeOperand
from .nest import Structure

__all__ = ["CompositeTensor", "Parts", "TypeSpec", "named_spec", "register", "registered_name", "spec_of_composite",
           "with_specs"]


class TypeSpec:
    """The description of a value: of tensors `tf.TensorSpec`, of values that are made of tensors the class that belongs
    to them.

    A class for values of one's own gives `value_type`, `_serialize`, `_component_specs`, `_to_components` and
    `_from_components`; its constructor takes what `_serialize` gives.

    >>> import twofold as tf
    >>> isinstance(tf.TensorSpec([2]), tf.TypeSpec)
    True
    """

    __slots__ = ("__weakref__",)

    __composite__: bool | None = True  # None: not said

    @property
    def value_type(self) -> type:
        """The class of the values."""
        raise AttributeError(f"{type(self).__name__} does not say what its `value_type` is.")

    def _serialize(self) -> tuple[Any, ...]:
        """The arguments that make an equal spec: shapes, dtypes, specs, plain values, or containers of such."""
        raise AttributeError(f"{type(self).__name__} does not say how to write it down (`_serialize`).")

    @classmethod
    def _deserialize(cls, serialization: Sequence[Any]) -> Any:
        return cls(*serialization)

    @property
    def _component_specs(self) -> Structure:
        """The specs of the components, in their structure."""
        raise AttributeError(f"{type(self).__name__} does not say what its values are made of (`_component_specs`).")

    def _to_components(self, value: Any) -> Structure:
        """The tensors that a value is made of, in the structure of `_component_specs`."""
        raise AttributeError(f"{type(self).__name__} does not say how values come apart (`_to_components`).")

    def _from_components(self, components: Any) -> Any:
        """A value made of these tensors."""
        raise AttributeError(f"{type(self).__name__} does not say how values are made (`_from_components`).")

    def _with_component_specs(self, components: Any) -> TypeSpec:
        """The spec of values that are made of tensors of these specs; by default this very spec."""
        del components
        return self

    # -- as a container: see `ir/nest.py` --------------------------------------------------------------------
    @property
    def __composite_spec__(self) -> TypeSpec:
        return self

    @property
    def __entry_spec__(self) -> TypeSpec:
        return self

    def __components__(self) -> Structure:
        return self._component_specs

    def _sizes(self) -> Hashable:
        """What a function that takes values of this spec assumes beyond their form and the sizes of their tensors."""
        return ()

    def _form(self) -> Hashable:
        """All that values of one class must have in common to be joined by a branch: without the sizes of tensors."""
        return _without_sizes(self._serialize())

    def _of(self, components: Any) -> Any:
        """What is made of components: a value of tensors, a spec of specs, `Parts` of anything else, and of specs that
        know more sizes than the spec of a value can say."""
        leaves = nest.flatten(components)
        if leaves and all(isinstance(leaf, TypeSpec) for leaf in leaves):
            spec = self._with_component_specs(components)
            return spec if nest.flatten(spec) == leaves else Parts(spec, components)
        if all(hasattr(leaf, "dtype") and not isinstance(leaf, TypeSpec) for leaf in leaves):
            return self._from_components(components)
        return Parts(self, components)

    # -- batches ------------------------------------------------------------------------------------------------
    def _batched(self, size: int | None) -> TypeSpec:
        """The spec of a batch of values of this spec; its values are made by `_stacked`."""
        raise TypeError(f"{self.value_type.__name__} values cannot be batched.")

    def _unbatched(self) -> TypeSpec:
        """The spec of the rows of a value of this spec; its values are made by `_rows`."""
        raise TypeError(f"{self.value_type.__name__} values cannot be unbatched.")

    def _stacked(self, values: Sequence[Any]) -> Any:
        """One value of several values of this spec, along a new first axis."""
        raise TypeError(f"{self.value_type.__name__} values cannot be batched.")

    def _rows(self, value: Any) -> Sequence[Any]:
        """The rows of a value, along its first axis."""
        raise TypeError(f"{self.value_type.__name__} values cannot be unbatched.")

    # -- rows one by one, also in traces: see `twofold/_front/mapping.py` -----------------------------------------
    def _row_reader(self, value: Any) -> tuple[Any, Callable[[Any], Any]]:
        """How many rows a value has, an integer if it is known, else a scalar tensor; and a function that gives the row
        of a number, which may be a scalar tensor, too."""
        raise TypeError(f"{self.value_type.__name__} values cannot be unbatched.")

    def _converted(self, value: Any) -> Any:
        """What a function gave where a value of this spec was asked for, converted to one where the class can do that
        (a dense tensor to a ragged one); else as it is."""
        return value

    def _empty_batch(self) -> Any:
        """A batch without values, with which batches of values of this spec can be joined."""
        raise TypeError(f"{self.value_type.__name__} values cannot be batched.")

    def _joined(self, rows: Any, more: Any) -> Any:
        """A batch of the values of this spec in one batch, and behind them those in another."""
        raise TypeError(f"{self.value_type.__name__} values cannot be batched.")

    # -- relations between specs -----------------------------------------------------------------------------
    def is_compatible_with(self, spec_or_value: Any) -> bool:
        """Whether a value of this spec could be the other value, or one of the other spec."""
        other = spec_or_value if isinstance(spec_or_value, TypeSpec) else spec_of_composite(spec_or_value)
        return type(other) is type(self) and _compatible(self._serialize(), other._serialize())

    def is_subtype_of(self, other: Any) -> bool:
        """Whether every value of this spec is one of the other spec."""
        return type(other) is type(self) and _is_subtype(self._serialize(), other._serialize())

    def most_specific_common_supertype(self, others: Sequence[Any]) -> Any:
        """The narrowest spec that this one and all others are cases of; None where there is none."""
        parts: Any = self._serialize()
        try:
            for other in others:
                if type(other) is not type(self):
                    return None
                parts = _common(parts, other._serialize())
        except ValueError:
            return None
        return self._deserialize(parts)

    def most_specific_compatible_type(self, other: Any) -> Any:
        """The narrowest spec that both are cases of.

        Raises:
            ValueError: there is none.
        """
        common = self.most_specific_common_supertype([other])
        if common is None:
            raise ValueError(f"No TypeSpec is compatible with both {self!r} and {other!r}")
        return common

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return bool(_comparable(self._serialize()) == _comparable(other._serialize()))

    def __ne__(self, other: object) -> bool:
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else not equal

    def __hash__(self) -> int:
        return hash((type(self), _comparable(self._serialize())))

    def __reduce__(self) -> tuple[Any, ...]:
        return _remade, (type(self), self._serialize())

    def __repr__(self) -> str:
        return f"{type(self).__name__}{self._serialize()!r}"


def _remade(cls: type[TypeSpec], serialization: tuple[Any, ...]) -> TypeSpec:
    made: TypeSpec = cls._deserialize(serialization)
    return made


class CompositeTensor(metaclass=ABCMeta):
    """A value that is made of tensors: functions take and give it, and branches, loops and tapes pass it on.

    A class gives `_type_spec`, the spec of a value, which says what the value is made of.
    """

    __slots__ = ()
    __composite__ = True

    @property
    @abstractmethod
    def _type_spec(self) -> TypeSpec:
        """The spec of this value."""

    @property
    def __composite_spec__(self) -> TypeSpec:
        """The spec by which the value is put together again of other tensors, which may have other sizes."""
        return self._type_spec

    @property
    def __entry_spec__(self) -> TypeSpec:
        """The spec by which a function that is called with the value takes it."""
        return self.__composite_spec__

    def _joined_spec(self, other: Any) -> TypeSpec:
        """The spec of a value that is this one or another one of the same form."""
        del other
        return self.__composite_spec__

    def __components__(self) -> Structure:
        return self._type_spec._to_components(self)

    def __tf_tensor__(self, dtype: object = None, name: str | None = None) -> Any:
        """Raises what has public functions ask for what is registered for this class."""
        raise CompositeOperand(self)


class Parts(tuple):
    """A container in the place of a composite value whose components are neither tensors nor specs, such as shapes."""

    __slots__ = ()
    __composite__ = True

    def __new__(cls, spec: TypeSpec, components: Structure) -> Parts:
        """What `components` stand for in the place of a value of `spec`."""
        return tuple.__new__(cls, (spec, components))

    def __getnewargs__(self) -> tuple[Any, ...]:
        return tuple(self)

    @property
    def __composite_spec__(self) -> TypeSpec:
        spec: TypeSpec = self[0]
        return spec

    __entry_spec__ = __composite_spec__

    def __components__(self) -> Structure:
        return self[1]

    def __repr__(self) -> str:
        return repr(self[0]) if all(isinstance(leaf, TypeSpec) for leaf in nest.flatten(self[1])) else (
            f"Parts({self[0]!r}, {self[1]!r})")


def with_specs(structure: Structure) -> Structure:
    """A structure with the specs of values in the places of `Parts`."""
    def shown(leaf: Any) -> Any:
        return leaf.__composite_spec__ if isinstance(leaf, Parts) else leaf
    return nest.map_structure(shown, structure, expand_composites=False)


def spec_of_composite(value: Any) -> TypeSpec | None:
    """The spec of a composite value, with the sizes that are known of it; None for any other value."""
    if isinstance(value, CompositeTensor):
        return value._type_spec
    return value.__composite_spec__ if nest.is_composite(value) else None


# -- names of classes of specs, for files -------------------------------------------------------------------------
_by_name: dict[str, type[TypeSpec]] = {}
_names: dict[type[TypeSpec], str] = {}
T = TypeVar("T", bound=type)


def register(name: str) -> Callable[[T], T]:
    """Gives a class of specs a name, by which files know it.

    Raises:
        ValueError: the name is in use.
    """
    def named(cls: T) -> T:
        known = _by_name.get(name)
        if known is not None and (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
            raise ValueError(f"Name {name} has already been registered for class {known.__module__}."
                             f"{known.__qualname__}.")
        _by_name[name], _names[cls] = cls, name
        return cls
    return named


def registered_name(cls: type[TypeSpec]) -> str | None:
    """The name of a class of specs in files; None where it has none."""
    return _names.get(cls)


def named_spec(name: str) -> type[TypeSpec] | None:
    """The class of specs of a name; None where there is none."""
    return _by_name.get(name)


# -- what specs are made of, compared part by part ----------------------------------------------------------------
def _children(part: Any) -> list[Any]:
    return [part[k] for k in sorted(part, key=repr)] if isinstance(part, Mapping) else list(part)


def _is_container(part: Any) -> bool:
    return isinstance(part, (list, tuple, Mapping))


def _pairs(a: Any, b: Any) -> list[tuple[Any, Any]] | None:
    """The children of two containers of one type and with the same keys; None where they differ."""
    if type(a) is not type(b) or len(a) != len(b) or (isinstance(a, Mapping) and set(a) != set(b)):
        return None
    return list(zip(_children(a), _children(b), strict=True))


def _compatible(a: Any, b: Any) -> bool:
    if _is_container(a):
        pairs = _pairs(a, b)
        return pairs is not None and all(_compatible(x, y) for x, y in pairs)
    alike = type(a) is type(b) or isinstance(a, TypeSpec) and isinstance(b, TypeSpec)
    if alike and hasattr(a, "is_compatible_with"):
        return bool(a.is_compatible_with(b))
    return bool(a == b)


def _is_subtype(a: Any, b: Any) -> bool:
    if _is_container(a):
        pairs = _pairs(a, b)
        return pairs is not None and all(_is_subtype(x, y) for x, y in pairs)
    if hasattr(a, "is_subtype_of") and type(a) is type(b):
        return bool(a.is_subtype_of(b))
    return bool(a == b)


def _common(a: Any, b: Any) -> Any:
    """The narrowest part that both are cases of.

    Raises:
        ValueError: there is none.
    """
    if _is_container(a):
        pairs = _pairs(a, b)
        if pairs is None:
            raise ValueError("the containers differ")
        return nest.rebuilt(a, [_common(x, y) for x, y in pairs]) if not isinstance(a, Mapping) else {
            k: _common(a[k], b[k]) for k in a}
    if type(a) is type(b) and hasattr(a, "most_specific_compatible_shape"):
        return a.most_specific_compatible_shape(b)
    if type(a) is type(b) and isinstance(a, TypeSpec):
        return a.most_specific_compatible_type(b)
    if a != b:
        raise ValueError(f"{a!r} and {b!r} differ")
    return a


def _comparable(part: Any) -> Hashable:
    if isinstance(part, Mapping):
        return tuple([(k, _comparable(part[k])) for k in sorted(part, key=repr)])
    if isinstance(part, (list, tuple)):
        return tuple([_comparable(p) for p in part])
    if isinstance(part, TypeSpec):
        return type(part), _comparable(part._serialize())
    if hasattr(part, "most_specific_compatible_shape"):  # a shape
        return None if part.rank is None else tuple(part.as_list())
    return part


def _without_sizes(part: Any) -> Hashable:
    if isinstance(part, Mapping):
        return tuple([(k, _without_sizes(part[k])) for k in sorted(part, key=repr)])
    if isinstance(part, (list, tuple)):
        return tuple([_without_sizes(p) for p in part])
    if hasattr(part, "most_specific_compatible_shape"):
        return part.rank
    if isinstance(part, TypeSpec):
        return part._form()
    return part
