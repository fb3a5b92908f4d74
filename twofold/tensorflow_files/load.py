"""Objects from a folder that TensorFlow wrote: what `tf.saved_model.load` gives for it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import twofold as tf
from twofold._formats.node_errors import NodeError
from twofold._formats.reading import damaged, reads
from twofold.eager.variable import Variable
from twofold.ir.errors import InvalidArgumentError, NotFoundError, UnimplementedError
from twofold.lookup import StaticHashTable
from twofold.saved_model.asset import Asset
from twofold.saved_model.loading import LoadedModule
from twofold.saved_model.signatures import SignatureFunction
from twofold.tracking import Trackable
from twofold.train.tensor_bundle import Bundle

from .functions import Graph, LazySignatures, LoadedSignature, loaded_function
from .graphs import Body, Called, Gradient, Source
from .loaded import CallableObject, LoadedObject
from .messages import Message
from .meta_graph import FILE, MetaGraph, read_meta_graph
from .objects import SavedConcrete, SavedObject, objects_of
from .run import Run
from .structures import Unreadable, parameters_of, value_of
from .tensors import array_of, dtype_of, shape_of
from .version_1 import load_graph

__all__ = ["load_folder"]

def load_folder(folder: str, tags: Any = None) -> Any:
    """The object of a folder; see `tf.saved_model.load`."""
    meta = read_meta_graph(folder, tags)
    path = os.path.join(folder, FILE)
    with reads(path):
        return _Builder(meta, path).root() if 7 in meta.message else load_graph(meta, path)


class _Builder:
    """Makes the objects of a file."""

    def __init__(self, meta: MetaGraph, path: str) -> None:
        self.meta, self.path = meta, path
        self.saved, self.concrete = objects_of(meta.message.message(7))
        self.assets = meta.assets()
        self.made: dict[int, Any] = {}
        self.handles: dict[int, Any] = {}
        self._constants: dict[str, Any] | None = None

    def root(self) -> Any:
        """The root, with all that it leads to."""
        for number, saved in enumerate(self.saved):
            if saved.kind in ("variable", "asset", "constant"):
                self.made[number] = self._leaf(saved)
        self._restore()
        for number, saved in enumerate(self.saved):
            if saved.kind == "resource" or "_create_resource" in saved.children:
                self.made[number] = self._resource(saved)
        for number, saved in enumerate(self.saved):
            if number not in self.made:
                self.made[number] = self._plain(number, saved)
        self._gradients()
        self._fill_tables()
        self._defaults()
        for number, saved in enumerate(self.saved):
            self._fill(self.made[number], saved)
        root = self.made[0]
        if not isinstance(root, LoadedModule):
            raise ValueError("its root is no object")
        root.signatures = LazySignatures(self._signatures())
        return root

    # -- leaves -----------------------------------------------------------------------------------
    def _leaf(self, saved: SavedObject) -> Any:
        about = saved.about
        if saved.kind == "asset":
            number = about.number(1)
            if not 0 <= number < len(self.assets):
                raise ValueError("it has no such asset")
            return Asset(self.assets[number])
        if saved.kind == "constant":
            return tf.constant(self._constant(about.text(1)))
        shape = shape_of(about.bytes(2)).as_list() if 2 in about and shape_of(about.bytes(2)).rank is not None else None
        return _Unset(dtype_of(about.number(1)), shape, bool(about.number(3)), about.text(6) or "Variable")

    def _constant(self, name: str) -> np.ndarray:
        if self._constants is None:
            self._constants = {Message(node).text(1): node for node in self.meta.graph}
        if name not in self._constants:
            raise ValueError(f"there is no constant {name[:80]!r}")
        value = Message(Message(self._constants[name]).map(5)["value"])
        return array_of(value.bytes(8), self.meta.room)

    # -- values from the checkpoint ---------------------------------------------------------------
    def _restore(self) -> None:
        """Make the variables, with the values that the checkpoint beside the file has for them."""
        prefix = os.path.join(self.meta.path, "variables", "variables")
        unset = {n: v for n, v in self.made.items() if isinstance(v, _Unset)}
        self.bundle = Bundle(prefix) if os.path.exists(prefix + ".index") else None
        if self.bundle is None:
            if unset:
                raise NotFoundError(None, None, f"{prefix}.index: no such file")
            return
        self.keys = self._keys(self.bundle)
        for number, wanted in unset.items():
            key = self.keys.get(number, {}).get("VARIABLE_VALUE")
            if key is None:
                raise ValueError(f"the checkpoint has no value for the variable {wanted.name!r}")
            self.made[number] = wanted.variable(self.bundle.tensor(key))

    def _keys(self, bundle: Bundle) -> dict[int, dict[str, str]]:
        """For each object the keys of its values: the graphs are walked side by side, by names."""
        nodes = bundle.nodes()
        if nodes is None:
            raise damaged(bundle.prefix + ".index", "it has no objects")
        keys: dict[int, dict[str, str]] = {}
        pairs = {0: 0}
        open_ = [0]
        while open_:
            number = open_.pop()
            saved, node = self.saved[number], nodes[pairs[number]]
            keys[number] = node.values
            slots = {(pairs.get(of), name): at for of, name, at in saved.slots}
            alike = [(child, node.children[name]) for name, child in saved.children.items() if name in node.children]
            alike += [(slots[of, name], at) for of, name, at in node.slots if (of, name) in slots]
            for child, at in alike:
                if child not in pairs:
                    pairs[child] = at
                    open_.append(child)
        return keys

    # -- tables -----------------------------------------------------------------------------------
    def _resource(self, saved: SavedObject) -> Any:
        """What the function that makes a resource gives: a table."""
        maker = saved.children.get("_create_resource")
        if maker is None:
            return _Nothing()
        outputs = self._run(maker, lambda n: None)
        return outputs[0] if outputs else _Nothing()

    def _fill_tables(self) -> None:
        for number, saved in enumerate(self.saved):
            made = self.made[number]
            if "_initialize" in saved.children and hasattr(made, "_contents"):
                self._run(saved.children["_initialize"], self._captured)
            values = getattr(self, "keys", {}).get(number, {})
            if "table-keys" in values and hasattr(made, "_contents") and self.bundle is not None:
                made._contents.replace(self.bundle.tensor(values["table-keys"]),
                                       self.bundle.tensor(values["table-values"]))

    def _defaults(self) -> None:
        """Give tables that never change the value of missing keys, which only those who look keys up say."""
        if not any(isinstance(made, StaticHashTable) for made in self.made.values()):
            return
        for name, saved in self.concrete.items():
            body = self.meta.library.body(name) if name in self.meta.library else None
            for node in [] if body is None else body.nodes:
                if node.op == "LookupTableFindV2" and len(node.inputs) == 3 and body is not None:
                    table, _, default = [self._bound_to(body, saved, source) for source in node.inputs]
                    if isinstance(table, StaticHashTable) and isinstance(default, tf.Tensor) and (
                            default.dtype is table.value_dtype and default.shape.rank == 0):
                        table._default = default

    def _bound_to(self, body: Body, saved: SavedConcrete, source: Source) -> Any:
        """The object that an argument of a function is, or a constant in it; None for anything else."""
        nodes = [node for node in body.nodes if node.name == source.name and node.op == "Const"]
        if nodes:
            return tf.constant(nodes[0].attrs["value"])
        if source.name not in body.inputs:
            return None
        place = body.inputs.index(source.name) - len(body.inputs) + len(saved.bound)
        return self.made[saved.bound[place]] if place >= 0 else None

    def _run(self, number: int, captured: Callable[[int], Any]) -> list[Any]:
        """What a function without arguments gives, run at once."""
        saved = self.saved[number]
        names = saved.about.texts(1)
        if saved.kind == "bare":
            names = [saved.about.text(1)]
        if not names:
            raise ValueError("a function that makes or fills a table is not there")
        bound = [captured(n) for n in self.concrete[names[0]].bound]
        try:
            return Run(self.meta.library).function(Called(names[0], {}), bound)
        except NodeError as e:
            raise ValueError(str(e)) from e

    # -- objects ----------------------------------------------------------------------------------
    def _plain(self, number: int, saved: SavedObject) -> Any:
        if saved.kind in ("function", "bare"):
            return self._function(saved, self._name_of(number))
        if saved.kind == "captured":
            return _Nothing()
        kind = saved.about.text(1) if saved.kind == "object" else ""
        if kind in ("trackable_list_wrapper", "trackable_tuple_wrapper"):
            return []
        if kind in ("trackable_dict_wrapper", "signature_map"):
            return {}
        return (CallableObject if "__call__" in saved.children else LoadedObject)("loaded")

    def _name_of(self, number: int) -> str:
        names = [name for saved in self.saved for name, child in saved.children.items() if child == number]
        return next((name for name in names if name.isidentifier()), "function")

    def _fill(self, made: Any, saved: SavedObject) -> None:
        children = {name: self.made[child] for name, child in saved.children.items()
                    if not isinstance(self.made[child], _Nothing)}
        if isinstance(made, LoadedModule):
            for name, child in children.items():
                if name != "signatures":
                    made._hold(name, child)
        elif isinstance(made, list):
            count = sum(name.isdecimal() for name in children)
            made.extend([children.get(str(n)) for n in range(count)])
        elif isinstance(made, dict):
            made.update(children)

    # -- functions --------------------------------------------------------------------------------
    def _function(self, saved: SavedObject, name: str) -> Any:
        about = saved.about
        graphs = [graph for key in (about.texts(1) if saved.kind == "function" else [about.text(1)])
                  if (graph := self._graph(key)) is not None]
        if saved.kind == "bare":
            for graph in graphs:
                graph.order = about.texts(2)
        spec = 2 if saved.kind == "function" else 4
        try:
            signature = parameters_of(about.bytes(spec), self.meta.room) if spec in about else None
        except Unreadable:
            signature = None
        return loaded_function(name, signature, graphs)

    def _graph(self, name: str) -> Graph | None:
        """A graph of a function; None for one that takes or gives what is not known here."""
        saved = self._concrete(name)
        try:
            form = value_of(saved.form, self.meta.room)
            result = value_of(saved.result, self.meta.room)
        except Unreadable:
            return None
        if not isinstance(form, tuple) or len(form) != 2 or not isinstance(form[0], tuple) or not isinstance(
                form[1], dict):
            raise ValueError(f"the arguments of {name[:80]!r} are no arguments")
        return Graph(self.meta.library, name, form, result, lambda: [self._captured(n) for n in saved.bound],
                     self.path)

    def _concrete(self, name: str) -> SavedConcrete:
        if name not in self.concrete or name not in self.meta.library:
            raise ValueError(f"there is no function {name[:80]!r}")
        return self.concrete[name]

    def _captured(self, number: int) -> Any:
        made = self.made[number]
        if isinstance(made, _Nothing):
            raise InvalidArgumentError(f"{self.path}: a function reads an object that twofold does not have")
        return made.asset_path if isinstance(made, Asset) else made

    def _gradients(self) -> None:
        """Tell the library which functions are gradients of the user's own."""
        library = self.meta.library
        for name, function in library.gradients.items():
            saved = self.concrete.get(function)
            if saved is None or function not in library:
                continue
            try:
                result = value_of(saved.result, self.meta.room)
            except Unreadable:
                continue
            parts = list(result) if isinstance(result, (list, tuple)) else [result]
            library.own_gradients[name] = Gradient(function, tuple([part is None for part in parts]),
                                                   _bound(self, saved))

    def captured(self, number: int) -> Any:
        """What a gradient reads: an object, or a tensor of the graph around the node that it belongs to."""
        saved = self.saved[number]
        if saved.kind != "captured":
            return self._captured(number)
        name, _, place = saved.about.text(1).partition(":")
        return Source(name, "", int(place or 0))

    # -- signatures -------------------------------------------------------------------------------
    def _signatures(self) -> dict[str, Callable[[], SignatureFunction]]:
        number = self.saved[0].children.get("signatures")
        if number is None:
            return {}
        return {name: _maker(self, name, child) for name, child in self.saved[number].children.items()
                if self.saved[child].kind in ("bare", "function")}

    def signature(self, name: str, number: int) -> SignatureFunction:
        """The signature of a name."""
        saved = self.saved[number]
        key = saved.about.text(1) if saved.kind == "bare" else saved.about.texts(1)[0]
        graph = self._graph(key)
        if graph is None:
            raise UnimplementedError(None, None, f"{self.path}: signature {name!r} takes or gives what twofold does "
                                                 "not have")
        named = graph.form[1]
        order = saved.about.texts(2) if saved.kind == "bare" else sorted(named)
        if {*order} != {*named}:
            raise ValueError(f"the arguments of signature {name!r} have two sets of names")
        graph.order = order
        return LoadedSignature(name, graph, order)


def _bound(builder: _Builder, saved: SavedConcrete) -> Callable[[], list[Any]]:
    return lambda: [builder.captured(number) for number in saved.bound]


def _maker(builder: _Builder, name: str, number: int) -> Callable[[], SignatureFunction]:
    return lambda: builder.signature(name, number)


@dataclass(frozen=True, slots=True)
class _Unset:
    """A variable whose value is still to be read."""

    dtype: Any
    shape: Any
    trainable: bool
    name: str

    def variable(self, value: np.ndarray) -> Variable:
        """The variable with its value.

        Raises:
            ValueError: the value is of another dtype or shape.
        """
        held = tf.constant(value)
        shape = tf.TensorShape(self.shape)
        if held.dtype is not self.dtype or not shape.is_compatible_with(held.shape):
            raise ValueError(f"the variable {self.name!r} is {self.dtype.name}{shape}; its value is "
                             f"{held.dtype.name}{held.shape}")
        made = Variable(held, trainable=self.trainable, shape=self.shape, validate_shape=self.shape is not None)
        made._name = self.name
        return made


class _Nothing(Trackable):
    """Stands for an object that is not known here; nobody can get at it."""


