"""Signatures: functions of a model under names for whoever serves it, with arguments and results by name."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from twofold.ir import nest
from twofold.ir.errors import OpError, describe
from twofold.ir.spec import TensorSpec
from twofold.tracer.concrete import AnyRank, ConcreteFunction
from twofold.tracer.function import Function
from twofold.tracer.signature import numbered
from twofold.tracer.trace import current, differentiated

__all__ = ["DEFAULT", "Signature", "SignatureFunction", "Signatures", "chosen", "by_name", "declared_traces",
           "inputs_by_name", "traces_of_each_rank"]

DEFAULT = "serving_default"
_RANKS = 5  # ranks that are traced where none is known
_DEFAULT_ATTRIBUTE = "_default_save_signature"


class Signature:
    """A function that is saved under a name.

    Attributes:
        name: of the signature.
        traces: its trace; several, for a function that takes tensors of any rank.
        inputs: what the tensors of its arguments are called, in order.
    Raises:
        ValueError: the result has a key that is no string, or something that is no tensor.
    """

    def __init__(self, name: str, traces: Sequence[Any]) -> None:
        self.name, self.traces = name, list(traces)
        traced = self.traces[0]
        self.inputs = _input_names(traced)
        for key, value in by_name(traced.result).items():
            if not isinstance(key, str):
                raise ValueError(f"Got a dictionary with a non-string key {key!r} in the output of the function "
                                 f"{traced.name} used to generate the SavedModel signature {name!r}.")
            if any(leaf is None for leaf in nest.flatten(value)):
                raise ValueError(f"Got a non-Tensor value None for key {key!r} in the output of the function "
                                 f"{traced.name} used to generate the SavedModel signature {name!r}. Outputs for "
                                 "functions used as signatures must be tensors, or structures of tensors.")


def _input_names(traced: Any) -> list[str]:
    """A name for each tensor that arguments hold: its spec's, or the parameter's, with a number where it is taken."""
    return numbered([template.name or name for name, template in _inputs(traced.arguments, composites=False)])


def _inputs(arguments: Sequence[tuple[str, Any, Any]], composites: bool) -> list[tuple[str, Any]]:
    """The tensors that arguments hold, each with the name of its parameter; composite values as a whole, or not."""
    return [(name, leaf) for name, _, template in arguments
            for leaf in nest.flatten(template, expand_composites=not composites) if _has_tensors(leaf)]


def inputs_by_name(arguments: Sequence[tuple[str, Any, Any]], names: Sequence[str]) -> dict[str, Any] | None:
    """What a signature takes under its names: tensors, or whole composite values or arguments, which files of earlier
    versions name; None where the names are not one for each."""
    tensors, values = ([leaf for _, leaf in _inputs(arguments, composites)] for composites in (False, True))
    for templates in (tensors, values, [t for _, _, t in arguments if _has_tensors(t)]):
        if len(set(names)) == len(names) == len(templates):
            return dict(zip(names, templates, strict=True))
    return None


def _has_tensors(template: Any) -> bool:
    """Whether there is a tensor in an argument."""
    return any(isinstance(leaf, TensorSpec) for leaf in nest.flatten(template))


def by_name(result: Any) -> dict[Any, Any]:
    """A result as a dict: itself, the fields of a namedtuple, or `output_0` and so on."""
    if nest.is_composite(result):
        return {"output_0": result}
    if isinstance(result, Mapping):
        return dict(result)
    if hasattr(result, "_asdict"):
        return dict(result._asdict())
    if nest.is_nested(result) and not isinstance(result, (list, tuple)):
        return dict(zip(nest._fields(result), nest.children(result), strict=True))
    parts = result if isinstance(result, (list, tuple)) else [result]
    return {f"output_{n}": part for n, part in enumerate(parts)}


def chosen(given: Any, root: Any, functions: Mapping[str, Any]) -> dict[str, Signature]:
    """The signatures to save.

    Args:
        given: a function, a dict of them, or None for what the object itself says.
        root: what is saved.
        functions: its own functions by name.
    Raises:
        ValueError: a function has no one signature, or its results are no dict of tensors.
    """
    if given is None:
        kept = getattr(root, "signatures", None)
        if isinstance(kept, Signatures):
            given = kept
        else:
            declared = _declared(functions)
            given = {} if declared is None else declared
    named = dict(given) if isinstance(given, Mapping) else {DEFAULT: given}
    return {name: Signature(_checked_name(name), _traces(fn)) for name, fn in named.items()}


def _checked_name(name: Any) -> str:
    if not isinstance(name, str) or not name:
        raise ValueError(f"the names of signatures are strings; got {describe(name)}.")
    return name


def _declared(functions: Mapping[str, Any]) -> Any:
    """The function that is the default signature: the one that is marked, or the only one with declared arguments."""
    if isinstance(functions.get(_DEFAULT_ATTRIBUTE), (Function, ConcreteFunction)):
        return functions[_DEFAULT_ATTRIBUTE]
    declared = [fn for fn in functions.values() if isinstance(fn, ConcreteFunction) or (
        isinstance(fn, Function) and fn.input_signature is not None)]
    fitting = [fn for fn in declared if _fits(fn)]
    return fitting[0] if len(fitting) == 1 else None


def _fits(fn: Any) -> bool:
    try:
        Signature(DEFAULT, _traces(fn))
    except ValueError:
        return False
    return True


def _traces(fn: Any) -> list[Any]:
    if isinstance(fn, SignatureFunction):
        return fn.plain
    if isinstance(fn, Function) and fn.input_signature is None and fn.function_spec is not None and (
            not fn.function_spec.parameters):
        return [fn.get_concrete_function()._traced]  # without arguments there is nothing to declare
    if isinstance(fn, Function) and fn.input_signature is not None:
        traces = declared_traces(fn)
        return traces if _any_rank(fn) else traces[:1]
    if not isinstance(fn, ConcreteFunction):
        raise ValueError("signatures: Expected a TensorFlow function for which to generate a signature, but got "
                         f"{describe(fn)}. Only `tf.functions` with an input signature or concrete functions can be "
                         "used as a signature.")
    return rank_traces(fn) if isinstance(fn, AnyRank) else [fn._traced]


def _any_rank(fn: Function) -> bool:
    return any(s.dims is None for s in nest.flatten(list(fn.input_signature or ())))


def declared_traces(fn: Function) -> list[Any]:
    """The traces of a function for what its `input_signature` declares, made where they are missing.

    There is one, except where ranks are unknown: then one for each rank up to _RANKS that the function takes.

    Raises:
        ValueError, TypeError: the function cannot be traced.
    """
    if fn._restored is not None:
        return fn._restored.traces
    if not _any_rank(fn):
        return [fn.get_concrete_function()._traced]
    return traces_of_each_rank(fn, list(fn.input_signature or ()), {})


def rank_traces(concrete: AnyRank) -> list[Any]:
    """The traces of a concrete function of unknown rank: one for each rank up to _RANKS that it takes.

    Raises:
        ValueError, TypeError: the function cannot be traced.
    """
    fn = concrete._function
    return fn._restored.traces if fn._restored is not None else traces_of_each_rank(fn, *concrete._own.form)


def traces_of_each_rank(fn: Function, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
    """The traces of a function for arguments with specs of unknown rank, made where they are missing."""
    traces, failed = [], None
    for rank in range(_RANKS + 1):
        given = nest.map_structure(lambda s, rank=rank: s if not isinstance(s, TensorSpec) or s.dims is not None else
                                   TensorSpec([None] * rank, s.dtype, s.name), (list(args), dict(kwargs)))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)  # that there are many traces: they are wanted
                traces.append(fn.get_concrete_function(*given[0], **given[1])._traced)
        except (TypeError, ValueError, OpError) as error:  # which this rank gives: others may do
            failed = error
    if not traces and failed is not None:
        raise failed
    return traces


class SignatureFunction(ConcreteFunction):
    """A loaded signature: takes arguments by name, gives a dict of results by name.

    One that has a single argument takes it by position, too.
    """

    def __init__(self, name: str, traces: Sequence[Any], inputs: Sequence[str]) -> None:
        views = [_ByName(name, traced, inputs, len(traces) > 1) for traced in traces]
        super().__init__(None, views[0])  # type: ignore[arg-type]
        self.plain, self._others = list(traces), views[1:]

    def _bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        names = [name for name, _, _ in self._traced.arguments]
        allowed = 1 if len(names) == 1 else 0
        if len(args) > allowed:
            raise TypeError(f"{self._signature()} takes {allowed} positional arguments, got {len(args)}. Arguments of "
                            "a signature are given by name.")
        return super()._bound(args, kwargs)

    def _otherwise(self, leaves: Sequence[Any]) -> Any:
        here = current()
        for other in self._others:
            view = other.whole() if differentiated(here) else other
            env = view.accepts([leaf.dims for leaf in leaves])
            if env is not None:
                return view(leaves) if here is None else view.stage(here, leaves, env)
        shapes = ", ".join([str(leaf.shape) for leaf in leaves])
        raise ValueError(f"{self._signature()} was not made for tensors of shapes {shapes}.")


class _ByName:
    """A trace whose arguments and results are by name."""

    variant = None

    def __init__(self, name: str, traced: Any, inputs: Sequence[str], any_rank: bool) -> None:
        self._traced = traced
        whole = traced.whole()
        self._whole = None if whole is traced else _ByName(name, whole, inputs, any_rank)
        self.name, self.number, self.graph = f"signature_wrapper_{name}", traced.number, traced.graph
        self.updates, self.relaxed, self.outer = traced.updates, traced.relaxed, traced.outer
        given = inputs_by_name(traced.arguments, inputs) or {}
        if any_rank:
            given = {n: nest.map_structure(_unranked, t) for n, t in given.items()}
        self.arguments = [(n, "KEYWORD_ONLY", _called(n, t)) for n, t in given.items()]
        self.form = ((), {n: t for n, _, t in self.arguments})
        self.result = {k: _called(k, v) for k, v in by_name(traced.result).items()}

    @property
    def captures(self) -> list[Any]:
        return self._traced.captures

    @property
    def variables(self) -> list[Any]:
        return self._traced.variables

    @property
    def runner(self) -> Any:
        return self._traced.runner

    @property
    def spared(self) -> bool:
        return self._traced.spared

    def whole(self) -> _ByName:
        return self._whole or self

    def accepts(self, shapes: Sequence[Any], assume: bool = False) -> Any:
        return self._traced.accepts(shapes, assume)

    def __call__(self, leaves: Sequence[Any]) -> Any:
        return by_name(self._traced(leaves))

    def stage(self, outer: Any, leaves: Sequence[Any], env: dict[str, Any]) -> Any:
        return by_name(self._traced.stage(outer, leaves, env))


def _unranked(leaf: Any) -> Any:
    return TensorSpec(None, leaf.dtype, leaf.name) if isinstance(leaf, TensorSpec) else leaf


def _called(name: str, template: Any) -> Any:
    return TensorSpec(template.dims, template.dtype, name) if isinstance(template, TensorSpec) else template


class Signatures(Mapping[str, SignatureFunction]):
    """The signatures of a loaded model by name; it does not change."""

    def __init__(self, functions: Mapping[str, SignatureFunction]) -> None:
        self._functions = dict(functions)

    def __getitem__(self, name: str) -> SignatureFunction:
        return self._functions[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._functions)

    def __len__(self) -> int:
        return len(self._functions)

    def __repr__(self) -> str:
        return f"Signatures({self._functions!r})"
