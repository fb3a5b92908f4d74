"""From a trace to an ONNX model: names, weights, and what goes in and out.

Inputs have the names of the call, results those of the structure that the function gives, weights those of the
variables. A variable that the function assigns is an input as well, whose default is the value that it has now, and a
result `NAME_new`: who runs a training step hands the new values in again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from twofold.eager.tensor import Tensor
from twofold.ir import dtypes as dt
from twofold.ir import graph as g
from twofold.ir import nest, passes
from twofold.ir.dims import Dim, DimLike, Guard
from twofold.ir.dtypes import DType
from twofold.ir.spec import TensorSpec
from twofold.tracer.traced import Traced
from twofold.version import __version__

from .export_graph import write
from .export_simplify import simplify
from .export_writer import Block, OnnxNode, Ref, Writer
from .package import onnx_package
from .types import ELEMENT_TYPES

__all__ = ["Model", "TensorInfo", "model_of", "message"]


@dataclass(frozen=True)
class TensorInfo:
    """A tensor of the interface: its name, dtype and sizes."""

    name: str
    dtype: DType
    dims: tuple[DimLike, ...]

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype.name}[{', '.join(map(str, self.dims))}]"


@dataclass(eq=False)
class Model:
    """A model before it is a message.

    Attributes:
        name: of the function. title: how it is called.
        opset: the version of ONNX's operators.
        inputs, outputs: of the call.
        state, updates: the variables that are assigned, as inputs and as results.
        nodes: in order.
        initializers: weights and constants by name.
        guards: what is assumed of unknown sizes.
        notes: what the model does not check, for its readers.
    """

    name: str
    title: str
    opset: int
    inputs: list[TensorInfo]
    outputs: list[TensorInfo]
    state: list[TensorInfo]
    updates: list[TensorInfo]
    nodes: list[OnnxNode]
    initializers: dict[str, np.ndarray]
    guards: list[Guard]
    notes: dict[str, str] = field(default_factory=dict)

    @property
    def operators(self) -> dict[str, int]:
        """How many nodes there are of each operator."""
        counts: dict[str, int] = {}
        for node in every_node(self.nodes):
            counts[node.kind] = counts.get(node.kind, 0) + 1
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def every_node(nodes: Sequence[OnnxNode]) -> Iterator[OnnxNode]:
    """All nodes, with those of blocks."""
    for node in nodes:
        yield node
        for value in node.attrs.values():
            if isinstance(value, Block):
                yield from every_node(value.nodes)


def model_of(name: str, traced: Traced, opset: int) -> Model:
    """The model of a trace.

    Raises:
        UnimplementedError: something has no meaning in ONNX; the error names it and the user's line.
    """
    from twofold.export.naming import name_sizes, result_names  # whose package shows this one's function

    graph = traced.graph.copy()
    count = len(traced.specs)
    w = Writer(opset)
    names = [w.name(n) for n in _input_names(traced)]
    name_sizes(graph, [re.sub(r"\W|^(?=\d)", "_", n, flags=re.ASCII) for n in names])
    results = [w.name(n) for n in result_names(traced.result)]
    captures, updates = traced.captures, traced.assigned
    if not results and not updates:
        raise ValueError(f"{traced.name} gives no tensors and assigns no variables: there is nothing to export.")
    weights = [w.name(_plain(getattr(c, "name", "")) or f"captured_{n}") for n, c in enumerate(captures)]
    new = [w.name(f"{_name_of(u, captures, weights)}_new") for u in updates]
    _fold_small(graph, count, captures)
    passes.optimise(graph)
    refs = [Ref(n, v.dtype) for n, v in zip([*names, *weights], graph.inputs, strict=True)]
    for n, capture in zip(weights, captures, strict=True):
        w.initializers[n] = array_of(capture)
    made = _named(w, write(w, graph, refs), [*results, *new])
    weight_infos = _infos(weights, graph.inputs[count:])
    state = [t for t, c in zip(weight_infos, captures, strict=True) if any(c is u for u in updates)]
    outputs = _infos(made, graph.outputs)
    model = Model(name, f"{traced.name}({', '.join(names)})", opset, _infos(names, graph.inputs[:count]),
                  outputs[:len(results)], state, outputs[len(results):], w.nodes, w.initializers, graph.guards)
    if graph.guards:
        model.notes["sizes"] = "; ".join(sorted({str(guard) for guard in graph.guards}))
    if w.unchecked:
        model.notes["unchecked"] = "assertions at " + ", ".join(dict.fromkeys(w.unchecked))
    simplify(model.nodes, model.initializers, {t.name for t in (*model.inputs, *state)}, made, w.shapes)
    return model


def _infos(names: Sequence[str], values: Sequence[g.Value]) -> list[TensorInfo]:
    return [TensorInfo(n, v.dtype, tuple(v.dims)) for n, v in zip(names, values, strict=True)]


def _input_names(traced: Traced) -> list[str]:
    """What the tensors of a call are called: as their specs say, else as the graph does."""
    inputs = traced.graph.inputs[:len(traced.specs)]
    specs = [leaf for _, _, template in traced.arguments for leaf in nest.flatten(template)
             if isinstance(leaf, TensorSpec)]
    own = [spec.name for spec in specs] if len(specs) == len(inputs) else [None] * len(inputs)
    return [name or v.name or f"input_{n}" for n, (name, v) in enumerate(zip(own, inputs, strict=True))]


def _plain(name: str) -> str:
    return name.removesuffix(":0")


def _name_of(variable: Any, captures: Sequence[Any], weights: Sequence[str]) -> str:
    for capture, name in zip(captures, weights, strict=True):
        if capture is variable:
            return name
    return _plain(variable.name) or "variable"


def array_of(capture: Any) -> np.ndarray:
    """The value of a variable or of a tensor that was captured."""
    value = capture._array if isinstance(capture, Tensor) else capture._read_tensor()._array
    return np.asarray(value, order="C")


_SMALL = 64  # elements up to which a captured tensor is a constant for passes


def _fold_small(graph: g.Graph, count: int, captures: Sequence[Any]) -> None:
    """Makes constants of small tensors that were captured, so that passes and meanings know their values."""
    known: dict[g.Value, g.Value] = {}
    front = []
    for value, capture in zip(graph.inputs[count:], captures, strict=True):
        if isinstance(capture, Tensor) and array_of(capture).size <= _SMALL:
            node = g.Node(g.CONSTANT, (), {"value": array_of(capture)}, (value,))
            front.append(node)
            known[value] = node.outputs[0]
    for node in graph.nodes:
        node.inputs = [known.get(v, v) for v in node.inputs]
    graph.outputs = [known.get(v, v) for v in graph.outputs]
    graph.nodes[:0] = front


def _named(w: Writer, values: Sequence[Ref], names: Sequence[str]) -> list[str]:
    """Gives the results their names, and the names."""
    renames = {ref.name: name for ref, name in zip(w.own(values), names, strict=True)}
    for node in every_node(w.nodes):
        node.inputs = [renames.get(n, n) for n in node.inputs]
        node.outputs = [renames.get(n, n) for n in node.outputs]
        for block in node.attrs.values():
            if isinstance(block, Block):
                block.outputs = [(Ref(renames.get(r.name, r.name), r.dtype), d) for r, d in block.outputs]
    return list(names)


# -- the message --------------------------------------------------------------------------------------
def message(model: Model, places: Mapping[str, tuple[str, int, int]] | None = None) -> Any:
    """The model as a `ModelProto`.

    Args:
        model: what to write.
        places: of initializers that lie in a file of their own: its name, the first byte, and the length.
    """
    onnx = onnx_package()
    helper = onnx.helper
    held = [_tensor(onnx, name, array, (places or {}).get(name)) for name, array in model.initializers.items()]
    graph = helper.make_graph([_node(onnx, n) for n in model.nodes], model.name,
                              [_info(onnx, t) for t in (*model.inputs, *model.state)],
                              [_info(onnx, t) for t in (*model.outputs, *model.updates)], held, doc_string=model.title)
    opsets = [helper.make_opsetid("", model.opset)]
    made = helper.make_model(graph, opset_imports=opsets, producer_name="twofold", producer_version=__version__,
                             ir_version=helper.find_min_ir_version_for(opsets))
    if model.notes:
        helper.set_model_props(made, {f"twofold.{k}": v for k, v in model.notes.items()})
    return made


def _tensor(onnx: Any, name: str, array: np.ndarray, place: tuple[str, int, int] | None) -> Any:
    dtype = dt.from_numpy(array.dtype)
    if dtype is dt.string:
        texts = [t if isinstance(t, bytes) else str(t).encode() for t in array.ravel().tolist()]
        return onnx.helper.make_tensor(name, ELEMENT_TYPES[dtype], array.shape, texts)
    made = onnx.TensorProto(name=name, data_type=ELEMENT_TYPES[dtype], dims=array.shape)
    if place is None:
        made.raw_data = array.tobytes()
        return made
    made.data_location = onnx.TensorProto.EXTERNAL
    for key, value in zip(("location", "offset", "length"), place, strict=True):
        made.external_data.add(key=key, value=str(value))
    return made


def _info(onnx: Any, t: TensorInfo) -> Any:
    sizes = [str(d) if isinstance(d, Dim) else int(d) for d in t.dims]
    return onnx.helper.make_tensor_value_info(t.name, ELEMENT_TYPES[t.dtype], sizes)


def _node(onnx: Any, node: OnnxNode) -> Any:
    attrs = {k: _block(onnx, v) if isinstance(v, Block) else v for k, v in node.attrs.items()}
    doc = {"doc_string": node.place} if node.place else {}
    return onnx.helper.make_node(node.kind, node.inputs, node.outputs, name=node.name, **doc, **attrs)


def _block(onnx: Any, block: Block) -> Any:
    def infos(values: Sequence[tuple[Ref, Sequence[DimLike]]]) -> list[Any]:
        # what a loop carries may change its size from round to round: then nothing is said of it
        return [onnx.helper.make_tensor_value_info(r.name, ELEMENT_TYPES[r.dtype],
                                                   [None if isinstance(d, Dim) else int(d) for d in dims])
                for r, dims in values]
    return onnx.helper.make_graph([_node(onnx, n) for n in block.nodes], block.name, infos(block.inputs),
                                  infos(block.outputs))
