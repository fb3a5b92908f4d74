"""`ExtensionType`: classes of users for values that are made of tensors, declared by annotated fields.

A class lists its fields; a constructor that converts and checks them, a spec with the same fields and everything that
composite values need (`ir/type_spec.py`) follow from that. `BatchableExtensionType` values can also be elements of
datasets that are batched.
"""

from __future__ import annotations

import inspect
import sys
import types as python_types
import typing
from abc import ABCMeta
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from twofold._front.api import public
from twofold._front.rows import empty_batch, joined, row_reader, stacked
from twofold._front.tensors import convert_to_tensor
from twofold.eager.tensor import Tensor
from twofold.eager.variable import Variable
from twofold.ir import nest, ops
from twofold.ir.spec import TensorSpec
from twofold.ir.type_spec import CompositeTensor, TypeSpec, register, with_specs

__all__ = ["BatchableExtensionType", "ExtensionType", "ExtensionTypeBatchEncoder", "ExtensionTypeSpec", "as_dict"]

_PLAIN = (bool, int, float, str, bytes, type(None))
_RESERVED = frozenset({"self", "_tf_extension_type_fields", "_type_spec"})


class ImmutableDict(Mapping[str, Any]):
    """A mapping that stays as it was made: what fields of mappings hold."""

    def __init__(self, items: Any = ()) -> None:
        self._items = dict(items)

    def __getitem__(self, key: str) -> Any:
        return self._items[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return hash(tuple(sorted(self._items.items(), key=lambda item: item[0])))

    def __repr__(self) -> str:
        return f"ImmutableDict({self._items!r})"


# -- fields -------------------------------------------------------------------------------------------------------
class Field(typing.NamedTuple):
    """A declared field: its name, its type, and its default or `inspect.Parameter.empty`."""

    name: str
    kind: Any
    default: Any


def _declaring() -> python_types.FrameType:
    """The frame of the class statement that is under way."""
    frame = sys._getframe(2)
    while frame.f_globals.get("__name__") == "abc" and frame.f_back is not None:
        frame = frame.f_back
    return frame


def _declared_fields(cls: type, scope: python_types.FrameType) -> list[Field]:
    """The fields of a class, those of classes above it first.

    Args:
        cls: the class.
        scope: where it is declared, whose names annotations that are texts may use.

    Raises:
        ValueError: a name is reserved. TypeError: a type is none that a field can have.
    """
    fields: dict[str, Field] = {}
    for base in reversed(cls.__mro__):
        if base in (ExtensionType, BatchableExtensionType, CompositeTensor, object):
            continue
        own = base.__dict__.get("__annotations__", {})
        names = {**scope.f_globals, **scope.f_locals, **vars(sys.modules[base.__module__])}
        hints = typing.get_type_hints(python_types.SimpleNamespace(__annotations__=own), names) if own else {}
        for name in own:
            if name in _RESERVED or (name.startswith("__") and name.endswith("__")):
                if name in _RESERVED:
                    raise ValueError(f"The field annotations for {cls.__name__} are invalid. Field '{name}' is "
                                     "reserved.")
                continue
            _check_kind(hints[name], f"{cls.__name__}.{name}")
            default = base.__dict__.get(name, inspect.Parameter.empty)
            if isinstance(default, python_types.MemberDescriptorType):
                default = inspect.Parameter.empty
            fields[name] = Field(name, hints[name], default)
    return list(fields.values())


def _check_kind(kind: Any, where: str) -> None:
    origin, within = typing.get_origin(kind), typing.get_args(kind)
    if kind in (list, dict, set) or origin in (list, dict, set):
        raise TypeError(f"In field '{where.rpartition('.')[2]}' of {where.rpartition('.')[0]}: type annotation "
                        f"{kind!r} is not supported: fields do not change; use tuple or Mapping.")
    if origin is None:
        if kind is Any:
            raise TypeError(f"{where}: type annotation `Any` is not supported.")
        return
    for part in within:
        if part is not Ellipsis:
            _check_kind(part, where)


def _converted(value: Any, kind: Any, path: tuple[Any, ...], for_spec: bool) -> Any:
    """A field's value in the form that its type demands: with tensors, or with specs where `for_spec`.

    Raises:
        TypeError: it does not fit.
    """
    origin, within = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, python_types.UnionType):
        return _of_union(value, within, path, for_spec)
    if kind is None or kind is type(None):
        if value is None:
            return None
    elif kind is Tensor or (isinstance(kind, type) and issubclass(kind, Tensor)):
        return _tensor_field(value, path, for_spec)
    elif origin is tuple or kind is tuple:
        if isinstance(value, (list, tuple)):
            if not within:
                return tuple(value)
            kinds = [within[0]] * len(value) if len(within) == 2 and within[1] is Ellipsis else list(within)
            if len(kinds) == len(value):
                return tuple([_converted(v, k, (*path, n), for_spec)
                              for n, (v, k) in enumerate(zip(value, kinds, strict=True))])
    elif isinstance(origin, type) and issubclass(origin, Mapping):
        if isinstance(value, Mapping):
            return ImmutableDict({k: _converted(v, within[1], (*path, k), for_spec) for k, v in value.items()})
    elif isinstance(kind, TypeSpec):
        if kind.is_compatible_with(value):
            return value
    elif isinstance(kind, type):
        if for_spec and issubclass(kind, CompositeTensor):
            if isinstance(value, TypeSpec) and issubclass(value.value_type, kind):
                return value
        elif isinstance(value, kind) or (kind is float and type(value) is int):
            return value
    raise TypeError(f"{_text(path)}: expected a value of type {_kind_name(kind)}, got {value!r}")


def _of_union(value: Any, kinds: Sequence[Any], path: tuple[Any, ...], for_spec: bool) -> Any:
    for kind in sorted(kinds, key=lambda k: k is Tensor):  # what would become a tensor may be something else as it is
        try:
            return _converted(value, kind, path, for_spec)
        except (TypeError, ValueError):
            continue
    names = ", ".join(_kind_name(kind) for kind in kinds)
    raise TypeError(f"{_text(path)}: expected a value with type {names}; got {value!r}")


def _tensor_field(value: Any, path: tuple[Any, ...], for_spec: bool) -> Any:
    if for_spec:
        if isinstance(value, TensorSpec):
            return value
        raise TypeError(f"{_text(path)}: expected a TensorSpec, got {value!r}")
    if isinstance(value, Tensor) or (hasattr(value, "dtype") and hasattr(value, "dims")
                                     and not isinstance(value, Variable)):
        return value
    try:
        return convert_to_tensor(value)
    except (TypeError, ValueError) as e:
        raise TypeError(f"{_text(path)}: expected a Tensor, got {type(value).__name__!r}") from e


def _kind_name(kind: Any) -> str:
    return getattr(kind, "__name__", str(kind))


def _text(path: tuple[Any, ...]) -> str:
    return path[0] + "".join([f"[{p!r}]" for p in path[1:]])


def _spec_part(value: Any) -> Any:
    """What a spec has in the place of a field's value."""
    if isinstance(value, tuple):
        return tuple([_spec_part(v) for v in value])
    if isinstance(value, Mapping):
        return ImmutableDict({k: _spec_part(v) for k, v in value.items()})
    if nest.is_composite(value):
        return value.__composite_spec__
    if isinstance(value, Variable) or hasattr(value, "dims"):
        return TensorSpec(value.dims, value.dtype)
    return value


def _leaves(part: Any) -> Iterator[Any]:
    """The tensors and composite values in a field's value, or their specs in a part of a spec."""
    if isinstance(part, tuple):
        for child in part:
            yield from _leaves(child)
    elif isinstance(part, Mapping):
        for key in part:
            yield from _leaves(part[key])
    elif isinstance(part, TypeSpec) or nest.is_composite(part) or hasattr(part, "dims"):
        yield part


def _refilled(part: Any, leaves: Iterator[Any]) -> Any:
    if isinstance(part, tuple):
        return tuple([_refilled(child, leaves) for child in part])
    if isinstance(part, Mapping):
        return ImmutableDict({key: _refilled(part[key], leaves) for key in part})
    if isinstance(part, TypeSpec) or nest.is_composite(part) or hasattr(part, "dims"):
        return next(leaves)
    return part


# -- specs --------------------------------------------------------------------------------------------------------
class ExtensionTypeSpec(TypeSpec):
    """The spec of an `ExtensionType`: the same fields, with specs in the places of tensors.

    Each class has its own as `Spec`.
    """

    __slots__ = ("__dict__",)

    _fields: tuple[Field, ...] = ()
    _value_type: type

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        for name, value in _bound(type(self).__name__, self._fields, args, kwargs).items():
            field = next(f for f in self._fields if f.name == name)
            self.__dict__[name] = _converted(value, field.kind, (name,), for_spec=True)

    @classmethod
    def from_value(cls, value: Any) -> Any:
        """The spec of a value."""
        return value._type_spec

    @property
    def value_type(self) -> type:
        """The class of the values."""
        return self._value_type

    def _serialize(self) -> tuple[Any, ...]:
        return tuple([self.__dict__[f.name] for f in self._fields])

    @classmethod
    def _deserialize(cls, serialization: Sequence[Any]) -> Any:
        made = cls.__new__(cls)
        made.__dict__.update(zip([f.name for f in cls._fields], serialization, strict=True))
        return made

    @property
    def _component_specs(self) -> Any:
        return tuple(_leaves(self._serialize()))

    def _to_components(self, value: Any) -> Any:
        return tuple(_leaves(tuple([getattr(value, f.name) for f in self._fields])))

    def _from_components(self, components: Any) -> Any:
        made: Any = object.__new__(self._value_type)
        fields = _refilled(self._serialize(), iter(components))
        made.__dict__.update(zip([f.name for f in self._fields], fields, strict=True))
        return made

    def _with_component_specs(self, components: Any) -> ExtensionTypeSpec:
        specs = [with_specs(c) for c in components]
        made: ExtensionTypeSpec = self._deserialize(_refilled(self._serialize(), iter(specs)))
        return made

    # -- batches, of values of a `BatchableExtensionType` ---------------------------------------------------
    @property
    def _encoder(self) -> ExtensionTypeBatchEncoder:
        encoder = getattr(self._value_type, "__batch_encoder__", None)
        if not isinstance(encoder, ExtensionTypeBatchEncoder):
            raise TypeError(f"{self._value_type.__name__} values cannot be batched: derive the class from "
                            "tf.experimental.BatchableExtensionType.")
        return encoder

    def _batched(self, size: int | None) -> Any:
        return self._encoder.batch(self, size)

    def _unbatched(self) -> Any:
        return self._encoder.unbatch(self)

    def _stacked(self, values: Sequence[Any]) -> Any:
        encoder = self._encoder
        parts = zip(*[encoder.encode(self, value) for value in values], strict=True)
        whole = [stacked(s, *column) for s, column in zip(encoder.encoding_specs(self), parts, strict=True)]
        return encoder.decode(encoder.batch(self, len(values)), whole)

    def _rows(self, value: Any) -> Sequence[Any]:
        encoder = self._encoder
        rows = [_rows_of(part) for part in encoder.encode(self, value, 1)]
        inner = encoder.unbatch(self)
        return [encoder.decode(inner, list(row)) for row in zip(*rows, strict=True)]

    def _row_reader(self, value: Any) -> tuple[Any, Callable[[Any], Any]]:
        encoder = self._encoder
        parts = [row_reader(part) for part in encoder.encode(self, value, 1)]
        inner = encoder.unbatch(self)
        count = next((count for count, _ in parts if isinstance(count, int)), parts[0][0])
        return count, lambda n: encoder.decode(inner, [take(n) for _, take in parts])

    def _empty_batch(self) -> Any:
        encoder = self._encoder
        return encoder.decode(encoder.batch(self, 0), [empty_batch(s) for s in encoder.encoding_specs(self)])

    def _joined(self, rows: Any, more: Any) -> Any:
        encoder = self._encoder
        whole = encoder.batch(self, None)
        parts = zip(encoder.encoding_specs(self), encoder.encode(whole, rows, 1), encoder.encode(whole, more, 1),
                    strict=True)
        return encoder.decode(whole, [joined(s, a, b) for s, a, b in parts])

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"Cannot mutate attribute `{name}` outside the custom constructor of ExtensionTypeSpec.")

    def __repr__(self) -> str:
        fields = ", ".join([f"{f.name}={self.__dict__[f.name]!r}" for f in self._fields])
        return f"{self._value_type.__qualname__}.Spec({fields})"


def _bound(what: str, fields: Sequence[Field], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The values of fields by their names, defaults filled in."""
    parameters = [inspect.Parameter(f.name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=f.default) for f in fields]
    late = [n for n, p in enumerate(parameters) if p.default is not inspect.Parameter.empty]
    if late:  # fields without a default behind one with are given by name
        parameters = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) if n > late[0] and p.default is
                      inspect.Parameter.empty else p for n, p in enumerate(parameters)]
        parameters.sort(key=lambda p: p.kind is inspect.Parameter.KEYWORD_ONLY)
    try:
        bound = inspect.Signature(parameters).bind(*args, **kwargs)
    except TypeError as e:
        raise TypeError(f"{what}: {e}") from None
    bound.apply_defaults()
    return {f.name: bound.arguments[f.name] for f in fields}


def _rows_of(part: Any) -> Sequence[Any]:
    if nest.is_composite(part):
        return part.__composite_spec__._rows(part)
    return [part[n] for n in range(part.dims[0])]


# -- the classes that users derive from ---------------------------------------------------------------------------
class _Sealing(ABCMeta):
    """The class of extension types: a value is checked when its constructor has set its fields."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        value = super().__call__(*args, **kwargs)
        if isinstance(value, cls) and "_is_open" in vars(value):
            value._sealed()
        return value


class ExtensionType(CompositeTensor, metaclass=_Sealing):
    """A base class for values that are made of tensors: a class lists its fields with their types.

    Fields are tensors (`tf.Tensor`), other values that are made of tensors, `tf.TensorShape`, `tf.DType`, Python's
    numbers, strings, bools and None, tuples and Mappings of such, and unions. They are converted and checked when a
    value is made, and do not change afterwards. A method `__validate__` may check what they must have in common. Values
    are arguments and results of functions, and variables of branches and loops; `tf.experimental.dispatch_for_api` says
    what public functions do with them.

    The nested class `Spec` is the values' spec, whose fields have specs in the places of tensors.

    >>> import twofold as tf
    >>> class Masked(tf.experimental.ExtensionType):
    ...     values: tf.Tensor
    ...     mask: tf.Tensor
    >>> @tf.function
    ... def doubled(m):
    ...     return Masked(m.values * 2, m.mask)
    >>> doubled(Masked([1, 2], [True, False])).values.numpy().tolist()
    [2, 4]
    """

    _tf_extension_type_fields: tuple[Field, ...] = ()
    Spec: Any = ExtensionTypeSpec

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.__dict__.get("_is_batchable_root"):
            return
        fields = tuple(_declared_fields(cls, _declaring()))
        cls._tf_extension_type_fields = fields
        for f in fields:  # defaults are the constructor's affair: an attribute is a value's own
            if f.name in cls.__dict__:
                delattr(cls, f.name)
        own = cls.__dict__.get("Spec")
        bases: tuple[type, ...] = (ExtensionTypeSpec,)
        body: dict[str, Any] = {"_fields": fields, "_value_type": cls, "__module__": cls.__module__,
                                "__qualname__": f"{cls.__qualname__}.Spec"}
        if own is not None:
            body = {**{k: v for k, v in vars(own).items() if k not in ("__dict__", "__weakref__")}, **body}
            bases = tuple([b for b in own.__bases__ if b is not object and b is not ExtensionTypeSpec]) + bases
        cls.Spec = type("Spec", bases, body)
        name = cls.__dict__.get("__name__")
        if isinstance(name, str):
            register(name)(cls.Spec)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.__dict__.update(_bound(type(self).__name__, self._tf_extension_type_fields, args, kwargs))

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """A value whose fields its constructor may still set."""
        del args, kwargs
        if cls in (ExtensionType, BatchableExtensionType):
            raise AssertionError(f"Cannot create an instance of {cls.__name__} because it is an abstract base class.")
        made = object.__new__(cls)
        made.__dict__["_is_open"] = True
        return made

    def _sealed(self) -> None:
        """Convert and check the fields, which do not change from here on.

        Raises:
            AttributeError: one is missing. TypeError, ValueError: one does not fit.
        """
        given = self.__dict__
        names = [f.name for f in self._tf_extension_type_fields]
        extra = sorted(given.keys() - {*names, "_is_open"})
        missing = [name for name in names if name not in given]
        if missing or extra:
            problem = "not set: " + ", ".join(missing) if missing else "not declared: " + ", ".join(extra)
            raise AttributeError(f"The constructor of {type(self).__name__} leaves fields that are {problem}.")
        for field in self._tf_extension_type_fields:
            given[field.name] = _converted(given[field.name], field.kind, (field.name,), for_spec=False)
        del given["_is_open"]
        self.__validate__()

    def __validate__(self) -> None:
        """Raise where the fields do not fit one another; a class gives its own."""

    @property
    def _type_spec(self) -> Any:
        return self.Spec._deserialize([_spec_part(getattr(self, f.name)) for f in self._tf_extension_type_fields])

    def __setattr__(self, name: str, value: Any) -> None:
        if "_is_open" not in self.__dict__:
            raise AttributeError(f"Cannot mutate attribute `{name}` outside the custom constructor of ExtensionType.")
        self.__dict__[name] = value

    def __delattr__(self, name: str) -> None:
        if "_is_open" not in self.__dict__:
            raise AttributeError(f"Cannot mutate attribute `{name}` outside the custom constructor of ExtensionType.")
        self.__dict__.pop(name)

    def __repr__(self) -> str:
        fields = ", ".join([f"{f.name}={getattr(self, f.name)!r}" for f in self._tf_extension_type_fields])
        return f"{type(self).__qualname__}({fields})"

    def __eq__(self, other: object) -> Any:
        if type(self) is not type(other) or not isinstance(other, ExtensionType):
            return False
        if self._type_spec._form() != other._type_spec._form():
            return False
        equal: Any = convert_to_tensor(True)
        for a, b in zip(nest.flatten(self), nest.flatten(other), strict=True):
            if tuple(a.shape) != tuple(b.shape) and None not in (*a.shape, *b.shape):
                return ops.logical_not(equal)
            equal = ops.logical_and(equal, ops.reduce_all(ops.equal(a, b)))
        return equal

    def __ne__(self, other: object) -> Any:
        equal = self.__eq__(other)
        return not equal if isinstance(equal, bool) else ops.logical_not(equal)

    __hash__ = None  # type: ignore[assignment]


class ExtensionTypeBatchEncoder:
    """How values of a `BatchableExtensionType` are batched: by their components, each along a new first axis.

    A class may give another as its `__batch_encoder__`.
    """

    def batch(self, spec: Any, batch_size: int | None) -> Any:
        """The spec of a batch of values of `spec`."""
        return spec._with_component_specs(tuple([
            s._batched(batch_size) if nest.is_composite(s) else TensorSpec([batch_size, *s.shape], s.dtype)
            for s in spec._component_specs]))

    def unbatch(self, spec: Any) -> Any:
        """The spec of a value out of a batch of `spec`."""
        return spec._with_component_specs(tuple([
            s._unbatched() if nest.is_composite(s) else TensorSpec(s.shape[1:], s.dtype)
            for s in spec._component_specs]))

    def encode(self, spec: Any, value: Any, minimum_rank: int = 0) -> Any:
        """The tensors of a value. `minimum_rank` has no effect."""
        del minimum_rank
        return list(spec._to_components(value))

    def encoding_specs(self, spec: Any) -> Any:
        """The specs of what `encode` gives."""
        return list(spec._component_specs)

    def decode(self, spec: Any, encoded_value: Any) -> Any:
        """The value of tensors that `encode` gave."""
        return spec._from_components(tuple(encoded_value))


class BatchableExtensionType(ExtensionType):
    """An `ExtensionType` whose values are batched and taken from batches: in datasets, `tf.map_fn` and the like.

    >>> import twofold as tf
    >>> class Point(tf.experimental.BatchableExtensionType):
    ...     x: tf.Tensor
    ...     y: tf.Tensor
    >>> points = tf.data.Dataset.from_tensor_slices(Point([1, 2, 3], [4, 5, 6])).batch(2)
    >>> [p.x.numpy().tolist() for p in points]
    [[1, 2], [3]]
    """

    _is_batchable_root = True
    __batch_encoder__ = ExtensionTypeBatchEncoder()


@public
def as_dict(value: Any) -> dict[str, Any]:
    """The fields of an `ExtensionType` value by their names.

    >>> import twofold as tf
    >>> class Point(tf.experimental.ExtensionType):
    ...     x: int
    ...     y: int
    >>> tf.experimental.extension_type.as_dict(Point(1, 2))
    {'x': 1, 'y': 2}
    """
    return {f.name: getattr(value, f.name) for f in value._tf_extension_type_fields}
