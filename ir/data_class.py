"""Classes that are named values, declared by annotations as those of `dataclasses`, whose rules they follow.

`dataclasses` writes and compiles up to six functions for each class when it is declared, half a millisecond a class,
which a process pays for each class that it loads. Here classes share all functions but the constructor, and that is
compiled for classes that have many instances.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any, NoReturn, TypeVar, dataclass_transform

__all__ = ["data_class", "field", "replace"]

_FIELDS = "__data_fields__"
_FEW = 32  # instances that are made in less time than their constructor is compiled
_MISSING = object()  # the default of a field without one
_set = object.__setattr__  # past what keeps frozen ones as they are

C = TypeVar("C", bound=type)
R = TypeVar("R")


class _Field:
    """What a data class knows of one of its values."""

    __slots__ = ("name", "default", "factory", "compare", "repr")

    def __init__(self, default: Any, factory: Callable[[], Any] | None, compare: bool, repr: bool) -> None:
        self.name = ""
        self.default, self.factory, self.compare, self.repr = default, factory, compare, repr


def field(*, default: Any = _MISSING, default_factory: Callable[[], Any] | None = None, compare: bool = True,
          repr: bool = True) -> Any:
    """What is said of a field beside its type, in place of its default.

    Args:
        default: its value where none is given.
        default_factory: a function that makes that value anew for each instance.
        compare: whether it counts where instances are compared and hashed.
        repr: whether the text of an instance shows it.
    """
    return _Field(default, default_factory, compare, repr)


@dataclass_transform(field_specifiers=(field,))
def data_class(*, frozen: bool = False, eq: bool = True) -> Callable[[C], C]:
    """Make a class whose annotations name the values of its instances, in the order of its constructor's arguments;
    they have no other attributes.

    Args:
        frozen: whether the values stay as they are; what is frozen is hashed by its values, where it is compared by
            them.
        eq: whether instances are equal where their values are; else each equals itself alone.

    >>> @data_class(frozen=True)
    ... class Point:
    ...     x: int
    ...     y: int = 0
    >>> Point(1), Point(1) == Point(1, 0), len({Point(1), Point(1)})
    (Point(x=1, y=0), True, 1)
    """
    def make(cls: C) -> C:
        own = {name: _field_of(cls, name) for name in cls.__dict__.get("__annotations__", ())}
        fields = {f.name: f for base in reversed(cls.__mro__[1:]) for f in base.__dict__.get(_FIELDS, ())} | own
        members = {name: value for name, value in cls.__dict__.items() if name not in ("__dict__", "__weakref__")}
        for name in own:
            members.pop(name, None)
        members |= {"__slots__": tuple(own), _FIELDS: tuple(fields.values()), "__match_args__": tuple(fields)}
        members.setdefault("__repr__", _repr)
        if eq:
            members.setdefault("__eq__", _comparison([f.name for f in fields.values() if f.compare]))
            members.setdefault("__hash__", None)
        if frozen:
            members |= {"__setattr__": _refuse, "__delattr__": _refuse, "__reduce__": _reduce}
            if eq and members["__hash__"] is None:
                members["__hash__"] = _hashing([f.name for f in fields.values() if f.compare])
        made: Any = type(cls)(cls.__name__, cls.__bases__, members)
        made.__init__ = _first_constructor(made, frozen)
        return made
    return make


def replace(value: R, **changes: Any) -> R:
    """An instance like `value` with other values of some fields.

    >>> @data_class()
    ... class Point:
    ...     x: int
    ...     y: int
    >>> replace(Point(1, 2), y=3)
    Point(x=1, y=3)
    """
    return type(value)(**{**{f.name: getattr(value, f.name) for f in _fields(value)}, **changes})


def _fields(value: Any) -> tuple[_Field, ...]:
    fields: tuple[_Field, ...] = getattr(value, _FIELDS)
    return fields


def _field_of(cls: type, name: str) -> _Field:
    """The field that an annotation declares, from what the class assigns to it."""
    given = cls.__dict__.get(name, _MISSING)
    declared = given if isinstance(given, _Field) else _Field(given, None, True, True)
    declared.name = name
    return declared


def _first_constructor(cls: Any, frozen: bool) -> Callable[..., None]:
    """The constructor of the first instances, which then compiles the one that stays."""
    fields = _fields(cls)
    names, least = [f.name for f in fields], sum(f.default is _MISSING and f.factory is None for f in fields)
    left = _FEW

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        nonlocal left
        left -= 1
        if kwargs or not least <= len(args) <= len(names) or left <= 0:
            made = cls.__init__ = _constructor(cls, frozen)
            made(self, *args, **kwargs)
            return
        for name, value in zip(names, args, strict=False):
            _set(self, name, value)
        for f in fields[len(args):]:
            _set(self, f.name, f.default if f.factory is None else f.factory())
    return __init__


def _constructor(cls: Any, frozen: bool) -> Callable[..., None]:
    names: dict[str, Any] = {"_set": _set, "_missing": _MISSING}
    parameters, lines = ["self"], []
    for f in _fields(cls):
        value = f.name
        if f.factory is not None:
            names[f"_make_{f.name}"] = f.factory
            parameters.append(f"{f.name}=_missing")
            value = f"_make_{f.name}() if {f.name} is _missing else {f.name}"
        elif f.default is not _MISSING:
            names[f"_default_{f.name}"] = f.default
            parameters.append(f"{f.name}=_default_{f.name}")
        else:
            parameters.append(f.name)
        lines.append(f" _set(self, {f.name!r}, {value})" if frozen else f" self.{f.name} = {value}")
    exec("\n".join([f"def __init__({', '.join(parameters)}):", *(lines or [" pass"])]), names)  # noqa: S102 - our text
    made: Callable[..., None] = names["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    return made


def _repr(self: Any) -> str:
    shown = ", ".join([f"{f.name}={getattr(self, f.name)!r}" for f in _fields(self) if f.repr])
    return f"{type(self).__qualname__}({shown})"


def _values(names: list[str]) -> Callable[[Any], Any]:
    """A function that gives the values of these names of an instance, in a tuple unless there is one."""
    return attrgetter(*names) if names else lambda value: ()


def _comparison(names: list[str]) -> Callable[[Any, object], Any]:
    values = _values(names)

    def __eq__(self: Any, other: object) -> Any:
        return bool(values(self) == values(other)) if type(other) is type(self) else NotImplemented
    return __eq__


def _hashing(names: list[str]) -> Callable[[Any], int]:
    values = _values(names)

    def __hash__(self: Any) -> int:
        return hash(values(self))
    return __hash__


def _refuse(self: Any, name: str, *value: Any) -> NoReturn:
    raise AttributeError(f"{type(self).__qualname__} is frozen: its {name!r} stays as it is")


def _reduce(self: Any) -> tuple[Any, ...]:
    """How a frozen instance is copied and pickled: by its values."""
    return type(self), tuple([getattr(self, f.name) for f in _fields(self)])
