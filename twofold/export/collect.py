"""The functions of an export: the traces of the objects that a user hands in, each with a name.

In: a `tf.function`, a concrete function, a mapping of names to these, an object with such methods, a model of
`tf.keras`, or the folder of a saved model. Out: traces by name.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from twofold._front.function import function
from twofold.ir.spec import TensorSpec
from twofold.tracer.concrete import ConcreteFunction
from twofold.tracer.function import Function
from twofold.tracer.traced import Traced

from .interface import identifier, unique

__all__ = ["collect"]


def collect(given: Any, caller: str = "tf.export.native") -> dict[str, Traced]:
    """The traces of what an export was given, by names that are identifiers.

    Args:
        given: what holds functions.
        caller: how errors call the function that was called.
    Raises:
        TypeError: it is none of the things that can be exported.
        ValueError: there is no trace, as the function was neither called nor given a signature.
    """
    pairs = list(_traces(given, "", caller))
    if not pairs:
        raise ValueError("there is nothing to export: no tf.function was found that has a trace. Give the function an "
                         "input_signature, or export what get_concrete_function(...) gives.")
    names = unique(identifier(name, "function", alone=False) for name, _ in pairs)
    return dict(zip(names, [traced for _, traced in pairs], strict=True))


def _traces(given: Any, name: str, caller: str) -> Iterator[tuple[str, Traced]]:
    if isinstance(given, ConcreteFunction):
        plain = getattr(given, "plain", given._traced)  # what is behind a saved model's signature: its traces
        for traced in plain if isinstance(plain, list) else [plain]:
            yield name or traced.name, _checked(traced, name)
    elif isinstance(given, Function):
        for traced in _of_function(given):
            yield name or given._name, _checked(traced, name)
    elif isinstance(given, (str, os.PathLike)):
        yield from _traces(_loaded(Path(given)), name, caller)
    elif isinstance(given, Mapping):
        for key, value in given.items():
            if not isinstance(key, str):
                raise TypeError(f"names of functions must be text; got {key!r}.")
            yield from _traces(value, f"{name}_{key}" if name else key, caller)
    else:
        yield from _of_object(given, caller)


def _loaded(path: Path) -> Any:
    if not path.is_dir():
        raise ValueError(f"{os.fspath(path)!r} is no folder with a saved model.")
    from twofold import saved_model

    return saved_model.load(path)


def _of_object(given: Any, caller: str) -> Iterator[tuple[str, Traced]]:
    """The traces of an object's signatures, else of its functions."""
    signatures = getattr(given, "signatures", None)
    if isinstance(signatures, Mapping) and signatures:
        yield from _traces(signatures, "", caller)
        return
    inputs = getattr(given, "inputs", None)
    if callable(given) and isinstance(inputs, (list, tuple)) and inputs and all(hasattr(i, "shape") for i in inputs):
        yield "predict", _of_model(given, inputs)
        return
    names = [n for n in (*vars(type(given)), *getattr(given, "__dict__", {})) if not n.startswith("__")]
    functions = {n: f for n in dict.fromkeys([*names, "__call__"])
                 if isinstance(f := getattr(given, n, None), (Function, ConcreteFunction))}
    if not functions:
        raise TypeError(f"{caller} takes a tf.function, a concrete function, a dict of these, an object that "
                        "has such methods, a model of tf.keras that knows its inputs, or the folder of a saved model; "
                        f"got {type(given).__name__}.")
    for name, method in functions.items():
        yield from _traces(method, "call" if name == "__call__" else name, caller)


def _of_model(model: Any, inputs: Sequence[Any]) -> Traced:
    """The trace of a model of `tf.keras` that knows its inputs, as it predicts."""
    def predict(*given: Any) -> Any:
        return model(given[0] if len(given) == 1 else list(given), training=False)
    specs = [TensorSpec(i.shape, i.dtype, getattr(i, "name", None)) for i in inputs]
    traced: Traced = function(predict).get_concrete_function(*specs)._traced
    for value, spec in zip(traced.graph.inputs, specs, strict=False):
        value.name = spec.name or ""
    return traced


def _of_function(given: Function) -> list[Traced]:
    """The traces of a function that no other trace can replace; where a signature was declared, the one for it."""
    if given.input_signature is not None and given._restored is None:
        return [given.get_concrete_function()._traced]
    traces = []
    for family in given._families.values():
        for traced in family.traces:
            served = family.find([s.dims for s in traced.specs], None)
            if served is not None and served[0] is traced:
                traces.append(traced)
    return traces


def _checked(traced: Any, name: str) -> Traced:
    if not isinstance(traced, Traced):
        raise ValueError(f"{name or traced.name}: a function with arguments of unknown rank cannot be exported; give "
                         "the ranks in the signature.")
    return traced
