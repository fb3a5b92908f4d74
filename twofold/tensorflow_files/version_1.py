"""Graphs of TensorFlow 1: no objects, but signatures between tensors of one graph, and variables by name."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import twofold as tf
from twofold._formats.node_errors import NodeError
from twofold.eager.variable import Variable
from twofold.ir.errors import NotFoundError
from twofold.ir.spec import TensorSpec
from twofold.saved_model.asset import Asset
from twofold.saved_model.signatures import SignatureFunction
from twofold.train.tensor_bundle import Bundle

from .functions import Graph, LazySignatures, LoadedSignature, loaded_function
from .graphs import Body, Node, Source
from .loaded import LoadedObject
from .messages import Message, numbers
from .meta_graph import MetaGraph
from .run import FAULTS, Run, lacking
from .tensors import dtype_of, shape_of

__all__ = ["load_graph"]

_VARIABLES = frozenset({"VarHandleOp", "VariableV2", "Variable"})
_TABLES = frozenset({"HashTableV2", "MutableHashTableV2", "MutableHashTableOfTensorsV2", "MutableDenseHashTableV2",
                     "HashTable", "MutableHashTable"})
_INIT = "__saved_model_init_op"
_COLLECTIONS = ("saved_model_main_op", "legacy_init_op")


class LoadedGraph(LoadedObject):
    """A graph of TensorFlow 1: its signatures, its variables, and functions between any of its tensors."""

    _graph: Any

    def prune(self, feeds: Any, fetches: Any, name: str | None = None) -> Any:
        """A function between tensors of the graph.

        Args:
            feeds: the name of a tensor, such as "x:0", or several: the arguments, in order.
            fetches: the name of what it gives; a list or tuple of names for several.
            name: of the function.
        Raises:
            ValueError: there is no such tensor.
        """
        names = [feeds] if isinstance(feeds, str) else list(feeds)
        return self._graph.function(name or "pruned", names, fetches)


class _Pruned(Graph):
    """A function between tensors of a graph.

    Args:
        loader: of the graph.
        name: of the function.
        feeds: where its arguments go.
        body: the graph with what it gives.
        form, result: as a `Graph` has them.
    """

    def __init__(self, loader: _Loader, name: str, feeds: Sequence[Source], body: Body, form: Any, result: Any) -> None:
        super().__init__(loader.meta.library, name, form, result, lambda: (), loader.path)
        self._loader, self._feeds, self._body = loader, feeds, body

    def _outputs(self, tensors: list[Any]) -> list[Any]:
        given = {source.name: [tensor] for source, tensor in zip(self._feeds, tensors, strict=True)}
        return Run(self.library, self._loader.ready).graph(self._body, given)

    def lacking(self) -> list[str]:
        """The names of ops that are not there."""
        stop = {*self._loader.ready, *[source.name for source in self._feeds]}
        return lacking(self.library, [self._body], stop)


@dataclass(frozen=True, slots=True)
class _Slice:
    """Which part of a larger variable one is.

    Attributes:
        of: the name of the larger one.
        offset, shape: where the part begins, and its sizes.
    """

    of: str
    offset: list[int]
    shape: list[int]

    def taken(self, whole: np.ndarray) -> np.ndarray:
        """The part.

        Raises:
            ValueError: it does not lie within.
        """
        part = whole[tuple([slice(at, at + size) for at, size in zip(self.offset, self.shape, strict=True)])]
        if min(self.offset, default=0) < 0 or list(part.shape) != self.shape:
            raise ValueError(f"a part of the variable {self.of!r} does not lie within it")
        return part


class _Loader:
    """Makes the variables, tables and signatures of a graph."""

    def __init__(self, meta: MetaGraph, path: str) -> None:
        self.meta, self.path = meta, path
        self.nodes = {node.name: node for node in meta.body([]).nodes}
        self.ready: dict[str, Any] = {}
        self.assets = meta.assets()

    def root(self) -> LoadedGraph:
        """What is loaded."""
        root = LoadedGraph("loaded")
        root._graph = self
        self.ready.update(self._asset_paths())
        variables = self._variables()
        self.ready.update(variables)
        tables = {name: Run(self.meta.library).graph(self._body([Source(name, "", 0)]), {})[0]
                  for name, node in self.nodes.items() if node.op in _TABLES}
        self.ready.update(tables)
        self._initialise()
        root._hold("variables", list(variables.values()))
        root._hold("trainable_variables", [v for v in variables.values() if v.trainable])
        root._hold("_tables", list(tables.values()))
        root._hold("asset_paths", [Asset(path) for path in self.assets])
        root.signatures = LazySignatures({name: self._maker(name, Message(data)) for name, data in
                                          self.meta.message.map(5).items() if not name.startswith("__")})
        return root

    def _body(self, outputs: Sequence[Source], ends: Sequence[str] = ()) -> Body:
        lost = [str(name) for name in [*[s.name for s in outputs], *ends] if name not in self.nodes]
        if lost:
            raise ValueError(f"there is no node {lost[0][:80]!r}")
        return Body("", (), list(self.nodes.values()), tuple(outputs), ends=frozenset(ends))

    # -- state ------------------------------------------------------------------------------------
    def _asset_paths(self) -> dict[str, Any]:
        entries = [Message(entry.bytes(1)).text(1) for entry in self.meta.message.messages(6)]
        return {_source(name).name: tf.constant(path) for name, path in zip(entries, self.assets, strict=True)}

    def _variables(self) -> dict[str, Variable]:
        """The variables by the names of their nodes, with the values of the checkpoint."""
        nodes = [node for node in self.nodes.values() if node.op in _VARIABLES]
        if not nodes:
            return {}
        trainable = {name.partition(":")[0] for name in self._declared("trainable_variables")}
        prefix = os.path.join(self.meta.path, "variables", "variables")
        if not os.path.exists(prefix + ".index"):
            raise NotFoundError(None, None, f"{prefix}.index: no such file")
        bundle, slices = Bundle(prefix), self._slices()
        made = {}
        for node in nodes:
            value = self._value(node, bundle, slices)
            if value is not None:
                variable = Variable(value, trainable=node.name in trainable)
                variable._name = node.name
                made[node.name] = variable
        return made

    def _value(self, node: Node, bundle: Bundle, slices: dict[str, _Slice]) -> Any:
        """The value of a variable: the checkpoint's, else zeros, since the graph's own initialiser sets it; None where
        nobody knows how many."""
        names = [node.name, (node.attrs.get("shared_name") or b"").decode("utf-8", "replace")]
        key = next((name for name in names if name and name in bundle), None)
        if key is not None:
            return tf.constant(bundle.tensor(key))
        part = slices.get(node.name)
        if part is not None and part.of in bundle:
            return tf.constant(part.taken(bundle.tensor(part.of)))
        shape, dtype = node.attrs.get("shape"), node.attrs.get("dtype")
        if not isinstance(dtype, tf.DType) or not isinstance(shape, tf.TensorShape) or not shape.is_fully_defined():
            return None
        self.meta.room.take((shape.num_elements() or 0) * dtype.size)
        return tf.zeros(shape, dtype)

    def _slices(self) -> dict[str, _Slice]:
        """The variables that are parts of larger ones, by the names of their nodes."""
        made = {}
        for name in ("variables", "trainable_variables"):
            data = self.meta.message.map(4).get(name)
            for entry in [] if data is None else Message(data).message(2).all(1):
                if 4 in Message(entry):
                    about = Message(entry).message(4)
                    offset, shape = numbers(about.all(3)), numbers(about.all(4))
                    made[Message(entry).text(1).partition(":")[0]] = _Slice(about.text(1), offset, shape)
        return made

    def _declared(self, name: str) -> list[str]:
        data = self.meta.message.map(4).get(name)
        return [] if data is None else [Message(entry).text(1) for entry in Message(data).message(2).all(1)]

    def _initialise(self) -> None:
        """Run what the graph says is to be run when it is loaded, such as the filling of tables."""
        names = []
        signature = self.meta.message.map(5).get(_INIT)
        if signature is not None:
            names = [Message(info).text(1) for info in Message(signature).map(2).values()]
        collections = self.meta.message.map(4)
        for name in _COLLECTIONS:
            if name in collections:
                names += Message(collections[name]).message(1).texts(1)
        ends = [_source(name).name for name in names if name]
        if not ends:
            return
        try:
            Run(self.meta.library, self.ready).graph(self._body([], ends), {})
        except NodeError as e:
            if not isinstance(e.cause, FAULTS):
                raise e.cause from e
            raise ValueError(str(e)) from e

    # -- functions --------------------------------------------------------------------------------
    def _maker(self, name: str, message: Message) -> Callable[[], SignatureFunction]:
        def made() -> SignatureFunction:
            inputs = {k: _tensor_info(Message(v)) for k, v in sorted(message.map(1).items())}
            outputs = {k: _tensor_info(Message(v)) for k, v in sorted(message.map(2).items())}
            form = ((), {k: TensorSpec(spec.shape, spec.dtype, k) for k, (_, spec) in inputs.items()})
            result = {k: spec for k, (_, spec) in outputs.items()}
            body = self._body([source for source, _ in outputs.values()])
            graph = _Pruned(self, name, [source for source, _ in inputs.values()], body, form, result)
            return LoadedSignature(name, graph, list(inputs))
        return made

    def function(self, name: str, feeds: Sequence[str], fetches: Any) -> Any:
        """A function between tensors, by their names."""
        sources = [_source(feed) for feed in feeds]
        body = self._body([_source(fetch) for fetch in ([fetches] if isinstance(fetches, str) else fetches)])
        form: tuple[Any, dict[str, Any]] = (tuple([self._spec(source) for source in sources]), {})
        specs = [TensorSpec(None, tf.float32) for _ in body.outputs]
        result = specs[0] if isinstance(fetches, str) else type(fetches)(specs)
        return loaded_function(name, None, [_Pruned(self, name, sources, body, form, result)])

    def _spec(self, source: Source) -> TensorSpec:
        node = self.nodes.get(source.name)
        dtype = None if node is None else node.attrs.get("dtype", node.attrs.get("T"))
        if node is None or not isinstance(dtype, tf.DType):
            raise ValueError(f"there is no tensor {str(source)[:80]!r}")
        return TensorSpec(node.attrs.get("shape"), dtype, source.name)


def _source(name: str) -> Source:
    node, _, number = name.removeprefix("^").partition(":")
    if number and not number.isdecimal():
        raise ValueError(f"{name[:80]!r} names no tensor")
    return Source(node, "", int(number or 0))


def _tensor_info(message: Message) -> tuple[Source, TensorSpec]:
    shape = shape_of(message.bytes(3)) if 3 in message else tf.TensorShape(None)
    return _source(message.text(1)), TensorSpec(shape, dtype_of(message.number(2)))


def load_graph(meta: MetaGraph, path: str) -> LoadedGraph:
    """The root of a file without objects."""
    return _Loader(meta, path).root()
