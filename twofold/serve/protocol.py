"""The bodies of TensorFlow Serving's REST API: `predict` in rows and columns, `classify`, `regress`, metadata."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .refusals import Refusal
from .servable import Arrays, Function, Servable, TensorInfo
from .tensors import Form, array_of, is_bytes, value_of

__all__ = ["Call", "VERBS", "chosen", "metadata", "parse"]

_TYPES = {"float32": "DT_FLOAT", "float64": "DT_DOUBLE", "float16": "DT_HALF"}


class Call:
    """What a body asks for.

    Attributes:
        function: to run.
        arrays: for its inputs.
        answer: makes the document of the response from the results.
    """

    def __init__(self, function: Function, arrays: Arrays, answer: Callable[[Arrays], Any]) -> None:
        self.function, self.arrays, self.answer = function, arrays, answer


def parse(verb: str, document: Any, form: Form, servable: Servable) -> Call:
    """The call that a request means.

    Args:
        verb: one of VERBS.
        document: its body.
        form: what may be in it.
        servable: the version that it is for.
    Raises:
        Refusal: it means none.
    """
    if not isinstance(document, dict):
        raise Refusal(400, "the body must be a JSON object")
    return VERBS[verb](document, chosen(document, servable), form)


def chosen(document: Mapping[str, Any], servable: Servable) -> Function:
    """The signature that a request names.

    Raises:
        Refusal: there is none of this name.
    """
    name = document.get("signature_name", "")
    if not isinstance(name, str):
        raise Refusal(400, "signature_name must be a string")
    key = name or servable.default()
    if key is None or key not in servable.functions:
        wanted = f"no signature {name!r}" if name else "several signatures; choose one with signature_name"
        raise Refusal(400, f"the model has {wanted}; it has {', '.join(sorted(servable.functions))}")
    return servable.functions[key]


def _only(document: Mapping[str, Any], allowed: set[str]) -> None:
    unknown = sorted(set(document) - allowed - {"signature_name"})
    if unknown:
        raise Refusal(400, f"unknown keys in the body: {', '.join(unknown)}"[:200])


# -- predict ------------------------------------------------------------------------------------------
def _predict(document: Mapping[str, Any], function: Function, form: Form) -> Call:
    _only(document, {"instances", "inputs"})
    if ("instances" in document) == ("inputs" in document):
        raise Refusal(400, 'the body must have one of "instances" (rows) and "inputs" (columns)')
    if "instances" in document:
        columns = _columns(document["instances"], function, "instances")
        return Call(function, _arrays(columns, function, form), lambda results: {
            "predictions": _rows(results, function)})
    columns = _named(document["inputs"], function)
    return Call(function, _arrays(columns, function, form), lambda results: {"outputs": _outputs(results, function)})


def _named(value: Any, function: Function) -> Mapping[str, Any]:
    """Columns by name, from an object or, where there is one input, its value."""
    if isinstance(value, dict) and not is_bytes(value):
        return value
    if len(function.inputs) != 1:
        raise Refusal(400, f'"inputs" must be an object with {_names(function)}')
    return {function.inputs[0].name: value}


def _columns(rows: Any, function: Function, key: str) -> Mapping[str, Any]:
    """Columns by name, from rows: values of the one input, or objects."""
    if not isinstance(rows, list) or not rows:
        raise Refusal(400, f'"{key}" must be a list of at least one item')
    if not isinstance(rows[0], dict) or is_bytes(rows[0]):
        if len(function.inputs) != 1:
            raise Refusal(400, f'each item of "{key}" must be an object with {_names(function)}')
        return {function.inputs[0].name: rows}
    names = rows[0].keys()
    if not all(isinstance(row, dict) and row.keys() == names for row in rows):
        raise Refusal(400, f'the items of "{key}" must be objects with the same names')
    return {name: [row[name] for row in rows] for name in names}


def _names(function: Function) -> str:
    return ", ".join(f"{info.name} ({info.text})" for info in function.inputs) or "nothing"


def _arrays(columns: Mapping[str, Any], function: Function, form: Form) -> Arrays:
    """The arrays of all inputs."""
    if columns.keys() != {info.name for info in function.inputs}:
        raise Refusal(400, f"the signature takes {_names(function)}; got {', '.join(map(str, columns))[:200]}")
    return [array_of(columns[info.name], info, form) for info in function.inputs]


def _outputs(results: Arrays, function: Function) -> Any:
    """Columns by name; of one output without it."""
    values = {info.name: value_of(array, info) for array, info in zip(results, function.outputs, strict=True)}
    return next(iter(values.values())) if len(values) == 1 else values


def _rows(results: Arrays, function: Function) -> Any:
    """An item for each row: the value of the one output, or objects."""
    if not results or any(a.ndim == 0 or len(a) != len(results[0]) for a in results):
        raise Refusal(400, "the results are not of one number of rows; ask by columns (\"inputs\")")
    columns = _outputs(results, function)
    if not isinstance(columns, dict) or len(results) == 1:
        return columns
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


# -- classify and regress -----------------------------------------------------------------------------
def _examples(document: Mapping[str, Any], function: Function, form: Form) -> Arrays:
    """The arrays of a list of examples, whose features are the inputs by name."""
    _only(document, {"examples", "context"})
    context, examples = document.get("context", {}), document.get("examples")
    if not isinstance(context, dict) or not isinstance(examples, list) or not all(
            isinstance(e, dict) and not e.keys() & context.keys() for e in examples):
        raise Refusal(400, '"examples" must be a list of objects, and "context" an object of other features')
    columns = _columns([{**context, **example} for example in examples], function, "examples")
    infos = {info.name: info for info in function.inputs}
    return _arrays({name: [_feature(value, infos.get(name)) for value in column]
                    for name, column in columns.items()}, function, form)


def _feature(value: Any, info: TensorInfo | None) -> Any:
    """A feature as a row of its input: a list of one stands for a value, and a value for a list of one."""
    rank = 1 if info is None or info.dims is None else len(info.dims) - 1
    if rank == 0 and isinstance(value, list) and len(value) == 1:
        return value[0]
    return [value] if rank == 1 and not isinstance(value, list) else value


def _result(results: Arrays, function: Function, names: Sequence[str], rank: int
            ) -> tuple[np.ndarray[Any, Any], TensorInfo] | None:
    """The output of one of the names, else the only one of floats that has this rank."""
    pairs = list(zip(results, function.outputs, strict=True))
    named = [pair for pair in pairs if pair[1].name in names]
    fitting = [pair for pair in pairs if pair[1].dtype.is_floating and pair[0].ndim == rank]
    return named[0] if named else fitting[0] if len(fitting) == 1 else None


def _classify(document: Mapping[str, Any], function: Function, form: Form) -> Call:
    arrays = _examples(document, function, form)

    def answer(results: Arrays) -> Any:
        scored = _result(results, function, ["scores"], 2)
        if scored is None or scored[0].ndim != 2:
            raise Refusal(400, "the signature is no classification: it has no scores of [rows, classes]")
        scores = value_of(*scored)
        labels = [pair for pair in zip(results, function.outputs, strict=True) if pair[1].name == "classes"]
        if not labels or labels[0][0].shape != scored[0].shape:
            return {"results": [[["", score] for score in row] for row in scores]}
        return {"results": [[[name if isinstance(name, (str, dict)) else str(name), score] for name, score in
                             zip(*row, strict=True)] for row in zip(value_of(*labels[0]), scores, strict=True)]}
    return Call(function, arrays, answer)


def _regress(document: Mapping[str, Any], function: Function, form: Form) -> Call:
    arrays = _examples(document, function, form)

    def answer(results: Arrays) -> Any:
        value = _result(results, function, ["outputs"], 1) or _result(results, function, ["outputs"], 2)
        if value is None or value[0].shape not in ((len(value[0]),), (len(value[0]), 1)):
            raise Refusal(400, "the signature is no regression: it has no one number for each row")
        return {"results": value_of(value[0].reshape(-1), value[1])}
    return Call(function, arrays, answer)


VERBS: dict[str, Callable[[Mapping[str, Any], Function, Form], Call]] = {
    "predict": _predict, "classify": _classify, "regress": _regress}


# -- metadata -----------------------------------------------------------------------------------------
def metadata(name: str, version: int, servable: Servable) -> dict[str, Any]:
    """The document that tells the signatures of a version."""
    return {"model_spec": {"name": name, "signature_name": "", "version": str(version)},
            "metadata": {"signature_def": {"signature_def": {
                key: {"inputs": _tensors(function.inputs), "outputs": _tensors(function.outputs),
                      "method_name": "tensorflow/serving/predict", "defaults": {}}
                for key, function in sorted(servable.functions.items())}}}}


def _tensors(infos: Sequence[TensorInfo]) -> dict[str, Any]:
    return {info.name: {"dtype": _TYPES.get(info.dtype.name, f"DT_{info.dtype.name.upper()}"), "name": info.name,
                        "tensor_shape": {"dim": [{"size": str(-1 if d is None else d), "name": ""}
                                                 for d in info.dims or ()], "unknown_rank": info.dims is None}}
            for info in infos}
