"""Calls of a traced function: the arguments in canonical form, the key of the trace, and the tensors.

A call has a key and shapes. The key holds all that a trace depends on except sizes: the containers, Python values by
type and equality, dtype and rank of each tensor, variables and other objects by identity, held weakly. Two calls of
one key and the same shapes are the same trace; those of one key differ in sizes only, which is what lets a trace be
relaxed. Which trace serves which call is `tracer/function.py`'s.
"""

from __future__ import annotations

import enum
import functools
import inspect
import math
import types
import weakref
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from twofold.eager import convert
from twofold.eager.tensor import Tensor
from twofold.eager.variable import Variable
from twofold.ir import nest
from twofold.ir.dims import Shape
from twofold.ir.dtypes import DType
from twofold.ir.spec import TensorShape, TensorSpec

from .types import Args, CallForm, Kwargs, PythonFunction, PythonValue, Structure

__all__ = ["Argument", "CallArguments", "CallKey", "CallLeaf", "ObjectReference", "Parameters",
           "form_for", "literal", "numbered", "objects_of", "opened", "replaced", "template", "with_opened"]

#: a tensor of a call; a spec where the call describes its tensors, as those of `get_concrete_function` may
CallLeaf: TypeAlias = Any

#: all that a trace depends on except sizes: types, values, dtypes and ranks, references, and tuples of such
CallKey: TypeAlias = tuple[Hashable, ...]

#: the name of an argument, its kind by the names of `inspect`, and its value
Argument: TypeAlias = tuple[str, str, PythonValue]

_PLAIN = frozenset({int, bool, str, bytes, complex, type(None), range, type(Ellipsis), type, types.ModuleType})
_MISSING = inspect.Parameter.empty

# Methods of classes above this room whose objects reach a trace as one tensor: `TOKEN` gives what a trace depends on
# (it has equality and a hash) and the tensor, `FROM_TOKEN` an object like this one for another such tensor.
TOKEN, FROM_TOKEN = "__trace_token__", "__with_trace_token__"
# Of classes whose objects are leaves to users, and reach a trace as several structures: `PARTS` gives these in a tuple,
# and the class makes an object of such a tuple.
PARTS = "__trace_parts__"
_BY_VALUE = (DType, np.dtype, TensorShape, enum.Enum, type)


class ObjectReference:
    """An object by identity, held weakly where its class allows that; equal while both are the same living object."""

    __slots__ = ("_ref", "_hash", "__weakref__")

    def __init__(self, target: object) -> None:
        self._hash = id(target)
        self._ref: Callable[[], object]
        try:
            self._ref = weakref.ref(target)
        except TypeError:
            self._ref = lambda: target

    def __call__(self) -> Any:  # the object, or None where it is gone
        return self._ref()

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(other) is not ObjectReference:
            return NotImplemented
        target = self._ref()
        return target is not None and target is other._ref()

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return literal(self._ref())


class CallArguments:
    """The arguments of one call.

    Attributes:
        args, kwargs: as the Python function takes them, defaults filled in.
        key: all that its trace depends on besides sizes.
        leaves: its tensors (or specs), in order; arrays are tensors here.
    """

    __slots__ = ("args", "kwargs", "key", "leaves")

    def __init__(self, args: Args, kwargs: Kwargs) -> None:
        self.args, self.kwargs = args, kwargs
        self.leaves: list[CallLeaf] = []
        key: list[Hashable] = []
        for value in args:
            _walk(value, key, self.leaves)
        if kwargs:
            key.append(tuple(kwargs))
            for value in kwargs.values():
                _walk(value, key, self.leaves)
        self.key: CallKey = tuple(key)

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """The shape of each leaf: integers and Dims; None for a spec of unknown rank."""
        return tuple([x.dims for x in self.leaves])

    def with_leaves(self, leaves: Sequence[CallLeaf]) -> CallForm:
        """`(args, kwargs)` with others in the places of the tensors."""
        return form_for((self.args, self.kwargs), leaves)


def _walk(value: Any, key: list[Hashable], leaves: list[CallLeaf]) -> None:  # `kind` tells what a value has
    """Append what `value` adds to a key and to the tensors of a call."""
    kind = type(value)
    if kind is Tensor or isinstance(value, Tensor):
        leaves.append(value)
        key.append((value.dtype, len(value.dims)))
    elif kind in _PLAIN:
        key.append((kind, value))
    elif kind is float:
        # -0.0 and 0.0 are equal, and a NaN equals nothing: neither may decide whether two calls are the same.
        key.append((float, "nan" if math.isnan(value) else (value, math.copysign(1.0, value))))
    elif isinstance(value, Variable):
        key.append(ObjectReference(value))
    elif isinstance(value, (np.ndarray, np.generic)):
        _walk(convert.as_tensor(value), key, leaves)
    elif isinstance(value, TensorSpec):
        leaves.append(value)
        key.append((value.dtype, value.rank))
    elif nest.is_nested(value):
        _walk_container(value, key, leaves)
    elif hasattr(kind, PARTS):
        parts = getattr(value, PARTS)()
        key.append((kind, len(parts)))
        for part in parts:
            _walk(part, key, leaves)
    elif hasattr(kind, TOKEN):
        form, token = getattr(value, TOKEN)()
        key.append((kind, form))
        _walk(token, key, leaves)
    else:
        key.append(_object(value, kind, key, leaves))


def _walk_container(value: Structure, key: list[Hashable], leaves: list[CallLeaf]) -> None:
    names = nest.keys_of(value)
    if nest.is_composite(value):
        names = names, value.__entry_spec__._sizes()  # type: ignore[attr-defined]
    key.append((nest.kind_of(value), names))
    for child in nest.children(value):
        _walk(child, key, leaves)


def _object(value: Any, kind: type, key: list[Hashable], leaves: list[CallLeaf]) -> Hashable:  # likewise
    """The key of an object that is neither tensor nor container nor plain value."""
    if isinstance(value, _BY_VALUE):
        return kind, value
    if kind is slice:
        return kind, value.start, value.stop, value.step
    if isinstance(value, (set, frozenset)):
        return kind, frozenset([(type(v), v) for v in value])
    if kind is types.MethodType:
        return kind, ObjectReference(value.__func__), ObjectReference(value.__self__)
    if hasattr(kind, "__tf_tracing_type__"):
        return (value.__tf_tracing_type__(None),)
    if kind is functools.partial:
        _walk_partial(value, key, leaves)
        return kind
    if kind.__eq__ is object.__eq__:  # type: ignore[comparison-overlap]
        return kind, ObjectReference(value)
    return _by_equality(value, kind)


def _by_equality(value: PythonValue, kind: type) -> Hashable:
    """An object whose class says what equals it; by identity where it has no hash."""
    try:
        hash(value)
    except TypeError:
        return kind, ObjectReference(value)
    try:
        return kind, weakref.ref(value)  # equal while both live and are equal
    except TypeError:
        return kind, value


def _walk_partial(value: functools.partial[Any], key: list[Hashable], leaves: list[CallLeaf]) -> None:
    call = CallArguments((value.func, *value.args), dict(sorted(value.keywords.items())))
    if call.leaves:
        raise TypeError("a functools.partial that holds tensors cannot be an argument of a tf.function: pass the "
                        "tensors as arguments of their own.")
    key.append(call.key)


def replaced(value: PythonValue, leaves: Iterator[CallLeaf]) -> PythonValue:
    """`value` with the next of `leaves` in the place of each tensor; containers without tensors stay themselves."""
    if isinstance(value, (Tensor, np.ndarray, np.generic, TensorSpec)):
        return next(leaves)
    if type(value) is ObjectReference:
        return value()
    kind: Any = type(value)
    if hasattr(kind, PARTS):
        return kind(tuple([replaced(part, leaves) for part in getattr(value, PARTS)()]))
    if hasattr(type(value), TOKEN):
        return getattr(value, FROM_TOKEN)(next(leaves))
    if not nest.is_nested(value) or isinstance(value, TensorShape):
        return value
    children = nest.children(value)
    replacements = [replaced(child, leaves) for child in children]
    if isinstance(value, (list, dict)) or any(a is not b for a, b in zip(children, replacements, strict=True)):
        return _rebuilt(value, replacements)
    return value


def _rebuilt(value: Structure, items: list[Structure]) -> Structure:
    """A container like `value` that holds `items`; of a composite value, as a function takes it."""
    if nest.is_composite(value):
        return value.__entry_spec__._of(items[0])  # type: ignore[attr-defined]
    return nest.rebuilt(value, items)


def numbered(names: Sequence[str]) -> list[str]:
    """Names of tensors, each once: one that is taken gets a number (`x`, `x_1`); empty ones stay."""
    taken: list[str] = []
    for base in names:
        name, number = base, 1
        while base and name in taken:
            name, number = f"{base}_{number}", number + 1
        taken.append(name)
    return taken


def form_for(form: CallForm, leaves: Sequence[CallLeaf]) -> CallForm:
    """`(args, kwargs)` with the next of `leaves` in the place of each tensor; see `replaced`."""
    args, kwargs = form
    following = iter(leaves)
    return tuple([replaced(a, following) for a in args]), {k: replaced(v, following) for k, v in kwargs.items()}


def template(value: PythonValue) -> PythonValue:
    """An argument as signatures keep it: specs for tensors, and no object held."""
    if isinstance(value, TensorSpec):
        return value
    if isinstance(value, (Tensor, np.ndarray, np.generic)):
        spec = TensorSpec.from_tensor(convert.as_tensor(value))
        return TensorSpec(spec.shape, spec.dtype)
    if nest.is_nested(value):
        return _rebuilt(value, [template(child) for child in nest.children(value)])
    kind: Any = type(value)
    if hasattr(kind, PARTS):
        return opened(kind)([template(part) for part in getattr(value, PARTS)()])
    return ObjectReference(value) if any(True for _ in objects_of(CallArguments((value,), {}).key)) else value


@functools.cache
def opened(kind: Any) -> Any:
    """The class of containers that stand in graphs' structures for objects of a class with `PARTS`: a container of
    tensors becomes the object when it is made."""
    def new(cls: type, parts: Sequence[Any]) -> Any:
        of_specs = all(leaf is None or isinstance(leaf, (TensorSpec, ObjectReference)) for leaf in nest.flatten(
            list(parts)))
        return tuple.__new__(cls, parts) if of_specs else kind(tuple(parts))
    return type(f"Opened{kind.__name__}", (tuple,), {"__new__": new, "__slots__": ()})


def with_opened(value: PythonValue) -> PythonValue:
    """A structure with containers, of specs alone, in the places of objects with `PARTS`, and the objects' parts."""
    kind: Any = type(value)
    if hasattr(kind, PARTS):
        return tuple.__new__(opened(kind), [with_opened(part) for part in getattr(value, PARTS)()])
    if not nest.is_nested(value) or not any(hasattr(type(leaf), PARTS) for leaf in nest.flatten(value)):
        return value
    return nest.rebuilt(value, [with_opened(child) for child in nest.children(value)])


def objects_of(key: CallKey) -> Iterator[object]:
    """The objects that a key holds weakly."""
    for part in key:
        if isinstance(part, (ObjectReference, weakref.ref)):
            target = part()
            if target is not None:
                yield target
        elif type(part) is tuple:
            yield from objects_of(part)


def literal(value: PythonValue) -> str:
    """A Python value as messages and printed signatures show it."""
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _called(fn: PythonFunction) -> PythonFunction:
    """The function that a call of `fn` calls: of an object whose class has a `__call__` without `self`, that.

    `inspect.signature` takes a parameter away from it, as if there were a `self`.
    """
    call = inspect.getattr_static(type(fn), "__call__", None)
    return call.__get__(fn, type(fn)) if isinstance(call, (staticmethod, classmethod)) else fn


class Parameters:
    """The parameters of a Python function, and calls of it in canonical form."""

    signature: inspect.Signature | None

    def __init__(self, fn: PythonFunction) -> None:
        try:
            # The defaults of NumPy's universal functions exclude one another: they are not to be filled in.
            self.signature = None if isinstance(fn, np.ufunc) else inspect.signature(_called(fn))
        except (TypeError, ValueError):  # a builtin without a signature
            self.signature = None
        kinds = [] if self.signature is None else [p.kind for p in self.signature.parameters.values()]
        plain = all(k in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD) for k in kinds)
        self._count = len(kinds) if plain and self.signature is not None else -1
        self._by_name = plain and inspect.Parameter.POSITIONAL_ONLY not in kinds
        self._params = [] if self.signature is None else [(p.name, p.default) for p in
                                                          self.signature.parameters.values()]

    def call(self, args: Args, kwargs: Kwargs) -> CallArguments:
        """The call with these arguments; however they are spelt, equal calls are equal.

        Raises:
            TypeError: the function does not take them.
        """
        return CallArguments(*self.canonical(args, kwargs))

    def canonical(self, args: Args, kwargs: Kwargs) -> CallForm:
        """The arguments with defaults filled in, by position where they can be."""
        if not kwargs and len(args) == self._count:
            return args, kwargs
        if self.signature is None:
            return args, dict(sorted(kwargs.items()))
        if self._by_name and len(args) <= self._count:
            values, used = list(args), 0
            for name, default in self._params[len(args):]:
                if name in kwargs:
                    values.append(kwargs[name])
                    used += 1
                elif default is _MISSING:
                    break
                else:
                    values.append(default)
            if len(values) == self._count and used == len(kwargs):
                return tuple(values), {}
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as e:
            raise TypeError(f"Binding inputs to tf.function failed due to `{e}`. Received args: {args} and kwargs: "
                            f"{kwargs} for signature: {self.signature}.") from None
        bound.apply_defaults()
        return bound.args, dict(sorted(bound.kwargs.items()))

    def names(self, call: CallArguments) -> list[Argument]:
        """`(name, kind, value)` of each argument."""
        if self.signature is None:
            return [(f"args_{i}", "POSITIONAL_ONLY", v) for i, v in enumerate(call.args)] + [
                (k, "KEYWORD_ONLY", v) for k, v in call.kwargs.items()]
        arguments: list[Argument] = []
        for name, value in self.signature.bind(*call.args, **call.kwargs).arguments.items():
            kind = self.signature.parameters[name].kind
            if kind is inspect.Parameter.VAR_POSITIONAL:
                arguments += [(f"{name}_{i}", "POSITIONAL_ONLY", v) for i, v in enumerate(value)]
            elif kind is inspect.Parameter.VAR_KEYWORD:
                arguments += [(k, "KEYWORD_ONLY", v) for k, v in value.items()]
            else:
                arguments.append((name, kind.name, value))
        return arguments
