"""What an ONNX file holds, told without running any of it, for `twofold inspect`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from twofold.ir.errors import DataLossError

from .package import onnx_package
from .types import DTYPES, ELEMENT_NAMES

__all__ = ["describe"]

_MOST = 1 << 60  # elements


def describe(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The contents of an ONNX file, as plain values. Weights in files of their own are not read.

    Raises:
        DataLossError: it is no ONNX model. OSError: it cannot be read. ImportError: the package `onnx` is missing.
    """
    onnx = onnx_package()
    name = os.fspath(path)
    with open(name, "rb") as file:
        contents = file.read()
    try:
        model = onnx.load_model_from_string(contents)
    except Exception as error:  # noqa: BLE001 - protobuf has several classes of errors, which change
        raise DataLossError(f"{name} is no ONNX model, or it is damaged ({type(error).__name__}).") from None
    if not model.HasField("graph") or not model.opset_import:
        raise DataLossError(f"{name} is no ONNX model: it has no graph, or says no version of operators.")
    graph = model.graph
    held = {t.name for t in graph.initializer}
    counts: dict[str, int] = {}
    for node in [*_nodes(graph), *[n for f in model.functions for n in f.node]]:
        kind = node.op_type if node.domain in ("", "ai.onnx") else f"{node.domain}.{node.op_type}"
        counts[kind] = counts.get(kind, 0) + 1
    return {
        "path": os.path.abspath(name), "bytes": len(contents), "ir_version": model.ir_version,
        "producer": " ".join(filter(None, (model.producer_name, model.producer_version))),
        "opsets": {o.domain or "ai.onnx": o.version for o in model.opset_import},
        "name": graph.name, "doc": graph.doc_string or model.doc_string,
        "inputs": [{**_value(v), "default": v.name in held} for v in graph.input],
        "outputs": [_value(v) for v in graph.output],
        "initializers": [_tensor(t) for t in graph.initializer],
        "nodes": sum(counts.values()), "operators": dict(sorted(counts.items(), key=lambda c: (-c[1], c[0]))),
        "functions": [f"{f.domain}.{f.name}" for f in model.functions],
        "properties": {p.key: p.value for p in model.metadata_props},
    }


def _nodes(graph: Any) -> Iterator[Any]:
    """All nodes, those of subgraphs included."""
    waiting = [graph]
    while waiting:
        for node in waiting.pop().node:
            yield node
            for attribute in node.attribute:
                waiting += [attribute.g] if attribute.HasField("g") else []
                waiting += list(attribute.graphs)


def _element(number: int) -> str:
    return DTYPES[number].name if number in DTYPES else ELEMENT_NAMES.get(number, f"type {number}")


def _value(value: Any) -> dict[str, Any]:
    kind = value.type.WhichOneof("value")
    if kind != "tensor_type":
        return {"name": value.name, "dtype": (kind or "unknown").removesuffix("_type"), "shape": None}
    tensor = value.type.tensor_type
    shape = [d.dim_value if d.HasField("dim_value") else d.dim_param or "?" for d in tensor.shape.dim] \
        if tensor.HasField("shape") else None
    return {"name": value.name, "dtype": _element(tensor.elem_type), "shape": shape}


def _tensor(tensor: Any) -> dict[str, Any]:
    dtype, count = DTYPES.get(tensor.data_type), 1
    for size in tensor.dims:
        count = min(count * max(size, 0), _MOST)  # files of strangers may say anything
    places = {e.key: e.value for e in tensor.external_data}
    return {"name": tensor.name, "dtype": _element(tensor.data_type), "shape": list(tensor.dims),
            "bytes": None if dtype is None or dtype.name == "string" else count * dtype.size,
            "file": places.get("location")}
