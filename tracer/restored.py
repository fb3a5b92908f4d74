"""Traced functions without their Python: graphs that were kept elsewhere, as `tf.function`s that are complete.

A restored function has the traces that it was kept with and makes no others. A call goes to the trace that it fits as
it is, else to the first that it fits when Python values become tensors; when none fits, the error lists them. Reading
and writing files is for others (`twofold/saved_model/`).
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn, Protocol

from twofold.eager import convert
from twofold.eager.tensor import Tensor
from twofold.eager.variable import Variable
from twofold.ir import graph as g
from twofold.ir import nest
from twofold.ir.ops.random import placed_under
from twofold.ir.spec import TensorSpec
from twofold.runtime import random as streams

from . import options
from .concrete import ConcreteFunction
from .function import Function
from .signature import Argument, CallArguments, CallLeaf, literal
from .trace import Trace
from .traced import Traced
from .types import Args, CallForm, Captured, Kwargs, PythonValue, Structure

__all__ = ["NoFit", "Restored", "fitted", "refusal", "restore_function", "restore_trace"]


class NoFit(Exception):
    """A value differs from the one that a trace was made for."""


def restore_trace(name: str, graph: g.Graph, captures: Sequence[Captured], form: CallForm,
                  arguments: Sequence[Argument], result: Structure, updates: Sequence[Variable],
                  relaxed: bool = False, whole: Traced | None = None) -> Traced:
    """A trace from its parts, as `Traced` describes them.

    Args:
        graph: verified; its inputs are the tensors of a call, then one for each of `captures`.
        captures: tensors and variables.
        form: `(args, kwargs)` with specs for tensors.
        arguments: `(name, kind, value)` of each argument, likewise.
        result: the structure of the result, with specs for tensors and None for None.
        updates: the variables that take the outputs after those of the result.
        whole: what `Traced.whole` is, if it is another trace.
    """
    placed_under(graph.walk(), (streams.new_owner(),))
    count = len(graph.inputs) - len(captures)
    specs = [TensorSpec(v.dims, v.dtype, v.name or None) for v in graph.inputs[:count]]
    traced = Traced(name, graph, captures, specs, result, list(updates), relaxed)
    traced.form, traced.arguments = form, list(arguments)
    traced.reason = "it was restored"
    if whole is not None:
        traced.spared, traced.again = True, lambda _: whole
    return traced


def restore_function(name: str, doc: str | None, signature: inspect.Signature | None,
                     input_signature: Sequence[Structure] | None, traces: Sequence[Traced]) -> Function:
    """A `tf.function` that has these traces and can make no others.

    Args:
        name, doc: of the Python function that is no more.
        signature: its parameters; None where they were never known.
        input_signature: the declared specs, or None.
        traces: all that it can run.
    """
    def gone(*args: PythonValue, **kwargs: PythonValue) -> NoReturn:
        raise ValueError(f"{name}: the Python function is not part of what was restored.")
    gone.__name__ = gone.__qualname__ = name
    gone.__doc__ = doc
    if signature is not None:
        gone.__signature__ = signature  # type: ignore[attr-defined]
    function = Function(gone, options.Options(input_signature, autograph=False, fallback=False))
    function._restored = Restored(function, traces)
    return function


class Restored:
    """The traces of a restored function, and which calls they take."""

    def __init__(self, function: Function, traces: Sequence[Traced]) -> None:
        self._function = function
        self.traces = list(traces)
        for traced in traces:
            family = function._family(CallArguments(*traced.form))
            family.traces += [traced] if traced.whole() is traced else [traced.whole(), traced]
        function._created = True

    @property
    def variables(self) -> list[Variable]:
        """The variables that the traces use."""
        used = {id(variable): variable for traced in self.traces for variable in traced.variables}
        return list(used.values())

    def served(self, call: CallArguments, here: Trace | None) -> CallArguments:
        """The call, with its arguments converted where that is needed, so that a trace takes it.

        Raises:
            ValueError: none does.
        """
        if self._takes(call, here):
            return call
        for traced in self.traces:
            try:
                converted = fitted(traced.form, call)
            except NoFit:
                continue
            if self._takes(converted, here):
                return converted
        raise ValueError(refusal(self._function._name, self.traces, call))

    def concrete(self, args: Args, kwargs: Kwargs) -> ConcreteFunction:
        """The function for these arguments; see `trace_for`."""
        return ConcreteFunction(self._function, self.trace_for(args, kwargs))

    def trace_for(self, args: Args, kwargs: Kwargs) -> Traced:
        """The trace for these arguments, which may have specs for tensors; without arguments, the one of the declared
        signature.

        Raises:
            ValueError: there is none.
        """
        if not args and not kwargs and self.traces and (
                self._function.input_signature is not None or len(self.traces) == 1):
            return self.traces[0]
        call = self._function._parameters.call(args, kwargs)
        for candidate in (call, *self._conversions(call)):
            family = self._function._families.get(candidate.key)
            if family is not None and any(x.dims is None for x in candidate.leaves):
                return family.traces[-1]
            served = None if family is None else family.find(candidate.shapes, None)
            if served is not None:
                return served[0]
        raise ValueError(refusal(self._function._name, self.traces, call))

    def _conversions(self, call: CallArguments) -> Iterator[CallArguments]:
        for traced in self.traces:
            try:
                yield fitted(traced.form, call)
            except NoFit:
                continue

    def _takes(self, call: CallArguments, here: Trace | None) -> bool:
        family = self._function._families.get(call.key)
        return family is not None and family.find(call.shapes, here) is not None


class Restorable(Protocol):
    """What a call may be: a trace, or a graph that is traced when a call takes it."""

    @property
    def form(self) -> CallForm:
        """`(args, kwargs)` with specs for tensors."""


def refusal(name: str, forms: Sequence[Restorable], call: CallArguments) -> str:
    """The message for a call of a function that takes others."""
    if not forms:
        return (f"Found zero restored functions for caller function {name!r}: it had been neither called nor given an "
                "input_signature when it was saved.")
    options_ = [f"Option {n}:\n{_listed(*t.form)}{_sizes(t)}" for n, t in enumerate(forms, 1)]
    return ("Could not find matching concrete function to call loaded from the SavedModel. Got:\n"
            f"{_listed(call.args, call.kwargs)}\n\n{name} can be called as in one of the following "
            f"{len(options_)} option(s):\n\n" + "\n\n".join(options_))


def _listed(args: Args, kwargs: Kwargs) -> str:
    lines = [f"  Positional arguments ({len(args)} total):", *[f"    * {_shown(a)}" for a in args]]
    named = ", ".join([f"{k!r}: {_shown(v)}" for k, v in kwargs.items()])
    return "\n".join([*lines, f"  Keyword arguments: {{{named}}}"])


def _sizes(traced: Restorable) -> str:
    """The text of the guards of a trace: conditions on sizes that its specs leave open."""
    if not isinstance(traced, Traced) or not traced._guards:
        return ""
    inputs = ", ".join([f"{v.name or n}: {v.spec.short()}" for n, v in enumerate(traced.graph.inputs)])
    return f"\n  Sizes: {inputs}, where {' and '.join(map(str, traced._guards))}"


def _shown(value: PythonValue) -> str:
    if isinstance(value, Tensor):
        return repr(TensorSpec.from_tensor(value))
    if nest.is_nested(value):
        return repr(nest.map_structure(lambda x: TensorSpec.from_tensor(x) if isinstance(x, Tensor) else x, value))
    return literal(value)


def fitted(form: CallForm, call: CallArguments) -> CallArguments:
    """The call with tensors where the form of a trace has them.

    Args:
        form: `(args, kwargs)` with specs for tensors.
    Raises:
        NoFit: the arguments are not those of the trace.
    """
    args, kwargs = form
    if len(args) != len(call.args) or kwargs.keys() != call.kwargs.keys():
        raise NoFit
    return CallArguments(tuple([_fit(t, v) for t, v in zip(args, call.args, strict=True)]),
                         {k: _fit(t, call.kwargs[k]) for k, t in kwargs.items()})


def _fit(template: PythonValue, value: PythonValue) -> PythonValue:
    if isinstance(template, TensorSpec):
        return _tensor(template, value)
    if not nest.is_nested(template):
        if nest.is_nested(value) or CallArguments((template,), {}).key != CallArguments((value,), {}).key:
            raise NoFit
        return template
    if not _alike(template, value):
        raise NoFit
    pairs = zip(nest.children(template), nest.children(value), strict=True)
    return nest.rebuilt(template, [_fit(t, v) for t, v in pairs])


def _tensor(wanted: TensorSpec, value: PythonValue) -> CallLeaf:
    try:
        leaf = value if isinstance(value, TensorSpec) else convert.as_tensor(value, hint=wanted.dtype)
    except (TypeError, ValueError):
        raise NoFit from None
    if leaf.dtype is not wanted.dtype or not wanted.shape.is_compatible_with(leaf.shape):
        raise NoFit
    return leaf


def _alike(template: Any, value: Any) -> bool:  # containers, whose kind their attributes tell
    """Whether two containers hold the same: mappings of the same keys, tuples of the same fields, or one type."""
    if not nest.is_nested(value):
        return False
    if nest.is_composite(template):
        return nest.kind_of(template) is nest.kind_of(value) and nest.keys_of(template) == nest.keys_of(value)
    if hasattr(template, "keys"):
        return hasattr(value, "keys") and set(template) == set(value)
    fields = getattr(template, "_fields", None)
    if fields is not None:  # a record of the user's was restored as a namedtuple
        return type(template).__name__ == type(value).__name__ and list(fields) == _names(value)
    return type(template) is type(value) and len(template) == len(value)


def _names(value: Structure) -> list[str]:
    """The names of the parts of a namedtuple or record."""
    names = getattr(value, "_fields", None)
    return nest._fields(value) if names is None and nest._is_record(value) else list(names or ())


