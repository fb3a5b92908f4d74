"""The contents of a saved model: objects, functions, graphs and arrays as the files that the format document describes.

`saved_model/saving.py` says what is saved and where; what objects there are `collect.py` finds; the directory is
`directory.py`'s.
"""

from __future__ import annotations

import inspect
import json
import os
import re
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from twofold._formats import safetensors as _safetensors
from twofold._front.iteration import is_handle
from twofold.eager.tensor import Tensor
from twofold.ir import dtypes as dt
from twofold.ir.errors import NotFoundError, UnimplementedError
from twofold.module import Module
from twofold.runtime.log import log
from twofold.tracer.concrete import AnyRank
from twofold.tracer.function import Function

from .collect import Entry
from .directory import Writer
from .graphs import Sources, graph_to_text
from .signatures import Signature, declared_traces, rank_traces
from .structure import NotPlainError, encode

__all__ = ["Contents"]


class Contents:
    """What goes into the files. It is put together whole before anything is written.

    Args:
        objects: of the object graph, the root first.
        signatures: functions by name.
        aliases: further names of functions of the object graph.
    Raises:
        UnimplementedError: a function cannot run without Python. AssertionError: a function reads a variable that the
            root does not lead to.
    """

    def __init__(self, objects: list[Entry], signatures: dict[str, Signature], aliases: Mapping[str, Any]) -> None:
        self._objects = objects
        self._numbers = {id(o.value): n for n, o in enumerate(objects)}
        self._assets = {id(o.value.asset_path): n for n, o in enumerate(objects) if o.kind == "asset"}
        self._tables = {id(o.value._handle): n for n, o in enumerate(objects) if o.kind == "table"}
        self._constants: dict[int, str] = {}
        self._traces: dict[int, int] = {}
        self._held: list[Any] = []  # keeps identities while they are keys
        self._sources = Sources()
        self.arrays: dict[str, np.ndarray] = {}
        self.graphs: dict[str, str] = {}
        self.assets: dict[str, str] = {}
        self._concrete: list[dict[str, Any]] = []
        self._functions: list[dict[str, Any]] = []
        nodes = [{"kind": o.kind, **_KINDS[o.kind](self, o), **({"children": o.children} if o.children else {})}
                 for o in objects]
        self.body = {"nodes": nodes, "functions": self._functions, "concrete": self._concrete,
                     "signatures": {name: self._signature(s) for name, s in signatures.items()},
                     "sources": self._sources.lines}
        if aliases:
            self.body["function_aliases"] = {name: self._aliased(name, fn, nodes) for name, fn in aliases.items()}

    def write(self, to: Writer) -> None:
        """Write all files."""
        to.put("objects.json", json.dumps(self.body, indent=1, ensure_ascii=False).encode() + b"\n")
        for name, text in self.graphs.items():
            to.put(name, text.encode())
        to.write("weights.safetensors", lambda file: _safetensors.write(file, self.arrays))
        for name, source in self.assets.items():
            to.copy(name, source)

    def node_of(self, value: Any) -> int | None:
        """The number of an object in the graph, or None."""
        return self._numbers.get(id(value))

    # -- objects ----------------------------------------------------------------------------------
    def _object(self, entry: Entry) -> dict[str, Any]:
        value = entry.value
        return {"name": value._name} if isinstance(value, Module) and hasattr(value, "_name") else {}

    def _container(self, entry: Entry) -> dict[str, Any]:
        fields = getattr(entry.value, "_fields", None)
        if entry.kind == "dict":
            return {}
        if fields is not None:
            return {"name": type(entry.value).__name__, "fields": list(fields)}
        return {"length": len(entry.value)}

    def _variable(self, entry: Entry) -> dict[str, Any]:
        variable = entry.value
        name = f"variables/{_path_name(entry)}"
        self.arrays.update(_safetensors.spelt(name, variable._value._array, variable.dtype))
        return {"name": variable._name, "dtype": variable.dtype.name, "trainable": variable.trainable,
                "shape": None if variable.shape.rank is None else variable.shape.as_list(), "array": name}

    def _table(self, entry: Entry) -> dict[str, Any]:
        from twofold.lookup._saving import described
        about, arrays = described(entry.value)
        name = f"tables/{_path_name(entry)}"
        for part, array in arrays.items():
            self.arrays.update(_safetensors.spelt(f"{name}/{part}", array, dt.from_numpy(array.dtype)))
        return {**about, "arrays": name}

    def _asset(self, entry: Entry) -> dict[str, Any]:
        path = entry.value.asset_path.numpy().decode()
        if not os.path.isfile(path):
            raise NotFoundError(None, None, f"the asset at root.{'.'.join(entry.path)} is no file: {path}")
        stem, suffix = os.path.splitext(os.path.basename(path))
        name, number = f"assets/{stem}{suffix}", 1
        while name in self.assets:
            name, number = f"assets/{stem}_{number}{suffix}", number + 1
        self.assets[name] = path
        return {"file": name}

    def _function(self, source: Entry) -> dict[str, Any]:
        if isinstance(source.value, AnyRank):  # it comes back as a function, which looks for the trace of a rank
            fn, traces = source.value._function, rank_traces(source.value)
        else:
            fn, traces = source.value, _traces_of(source.value)
        wholes = {id(_whole(t)) for t in traces if t.spared}  # they come with the others
        numbers = [n for t in traces if id(t) not in wholes and (n := self._trace(t, _spelt(source))) is not None]
        entry = {"name": fn._name, "parameters": _parameters(fn, self._encoded), "concrete": numbers}
        if fn.input_signature is not None:
            entry["input_signature"] = encode(tuple(fn.input_signature))
        self._functions.append(entry)
        return {"function": len(self._functions) - 1}

    def _aliased(self, name: str, fn: Any, nodes: list[dict[str, Any]]) -> int:
        """The number of a function that has an alias.

        Raises:
            ValueError: it is no `tf.function` that the root leads to.
        """
        node = self.node_of(fn)
        if node is None or nodes[node]["kind"] != "function":
            raise ValueError(f"function_aliases: {name!r} names {fn!r}, which is no tf.function of what is saved.")
        number: int = nodes[node]["function"]
        return number

    def _bare(self, entry: Entry) -> dict[str, Any]:
        number = self._trace(entry.value._traced, _spelt(entry))
        if number is None:
            raise UnimplementedError(None, None, f"{_spelt(entry)} cannot be saved: it was made for an argument that "
                                     "is neither a tensor nor a plain Python value.")
        return {"concrete": number}

    # -- functions --------------------------------------------------------------------------------
    def _signature(self, signature: Signature) -> dict[str, Any]:
        numbers = [self._trace(t, f"signature {signature.name!r}") for t in signature.traces]
        if None in numbers:
            raise UnimplementedError(None, None, f"the function of signature {signature.name!r} cannot be saved: it "
                                     "was made for an argument that is neither a tensor nor a plain Python value.")
        return {"concrete": numbers, "inputs": signature.inputs}

    def _trace(self, traced: Any, path: str) -> int | None:
        """The number of a trace among those that are saved; None where it is for arguments that files cannot hold."""
        if id(traced) in self._traces:
            return self._traces[id(traced)]
        try:
            entry: dict[str, Any] = {
                "name": traced.name, "args": [self._encoded(a) for a in traced.form[0]],
                "kwargs": [[k, self._encoded(v)] for k, v in traced.form[1].items()],
                "arguments": [[name, kind, self._encoded(v)] for name, kind, v in traced.arguments]}
        except NotPlainError as e:
            log("save", f"{path}: left out a trace of {traced.name} for an argument that cannot be saved: {e}")
            return None
        entry["result"] = encode(traced.result)
        entry["captures"] = [self._capture(c, traced, path) for c in traced.captures]
        entry["updates"] = [self._tracked(held, traced, path) for held in _alive(traced.updates)]
        entry["relaxed"] = traced.relaxed
        entry["graph"] = f"graphs/{len(self._concrete):03d}_{re.sub(r'[^A-Za-z0-9_]', '_', traced.name)[:60]}.txt"
        self.graphs[entry["graph"]] = graph_to_text(traced.graph, self._sources)
        self._traces[id(traced)] = len(self._concrete)
        self._held.append(traced)
        self._concrete.append(entry)
        if traced.spared and (whole := _whole(traced)) is not traced:
            entry["whole"] = self._trace(whole, path)
        return self._traces[id(traced)]

    def _encoded(self, value: Any) -> Any:
        return encode(value, self.node_of)

    def _capture(self, capture: Any, traced: Any, path: str) -> dict[str, Any]:
        if not isinstance(capture, Tensor):
            return {"variable": self._tracked(capture, traced, path)}
        if id(capture) in self._assets:
            return {"asset": self._assets[id(capture)]}
        if is_handle(capture):
            return {"table": self._table_of(capture, traced, path)}
        name = self._constants.get(id(capture))
        if name is None:
            name = self._constants[id(capture)] = f"constants/{len(self._constants)}"
            self._held.append(capture)
            self.arrays.update(_safetensors.spelt(name, capture._array, capture.dtype))
        return {"array": name, "dtype": capture.dtype.name}

    def _table_of(self, handle: Tensor, traced: Any, path: str) -> int:
        if id(handle) not in self._tables:
            raise AssertionError(
                "Tried to export a function which references an 'untracked' resource: tables that functions "
                "use must be attributes of a tracked object, or of the object that is saved.\n"
                f"  Function : {traced.name}, at {path}\n  Resource : {handle.numpy()!r}")
        return self._tables[id(handle)]

    def _tracked(self, variable: Any, traced: Any, path: str) -> int:
        number = self.node_of(variable)
        if number is None:
            raise AssertionError(
                "Tried to export a function which references an 'untracked' resource: tf.Variables that functions use "
                "must be attributes of a tracked object, or of the object that is saved.\n"
                f"  Function : {traced.name}, at {path}\n  Variable : {variable!r}")
        return number


def _whole(traced: Any) -> Any:
    """The trace whose gradients can be differentiated again, which is made where it is missing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # that there are many traces: they are wanted
        return traced.whole()


def _alive(updates: list[Any]) -> list[Any]:
    from twofold.tracer.traced import referent
    return [referent(u) for u in updates]


def _path_name(entry: Entry) -> str:
    """The path of an object as a part of the name of its array."""
    return "/".join([re.sub("[%/#]", lambda c: f"%{ord(c[0]):02x}", part) for part in entry.path])


def _spelt(entry: Entry) -> str:
    return ".".join(("root", *entry.path))


def _traces_of(fn: Function) -> list[Any]:
    """The traces of a function that can be called from outside; made where the arguments are declared.

    Raises:
        UnimplementedError: calls of it run eagerly.
    """
    if fn.input_signature is not None or fn._restored is not None:
        declared_traces(fn)
    for family in fn._families.values():
        if family.eager:
            raise UnimplementedError(None, fn._name, f"tf.function {fn._name!r} cannot be saved: it runs eagerly, "
                                     f"because it cannot be traced: {family.cause}")
    traces = [t for family in fn._families.values() for t in family.traces if t.outer is None]
    return sorted(traces, key=lambda t: t.number)


def _parameters(fn: Function, encoded: Callable[[Any], Any]) -> list[Any] | None:
    """Name, kind and, where there is one, the default of each parameter."""
    if fn.function_spec is None:
        return None
    parameters: list[Any] = []
    for p in fn.function_spec.parameters.values():
        entry: list[Any] = [p.name, p.kind.name]
        if p.default is not inspect.Parameter.empty:
            try:
                entry.append(encoded(p.default))
            except NotPlainError:
                entry.append({"opaque": True})
        parameters.append(entry)
    return parameters


_KINDS: dict[str, Callable[[Contents, Entry], dict[str, Any]]] = {
    "object": Contents._object, "generator": Contents._object, "list": Contents._container,
    "tuple": Contents._container, "record": Contents._container, "dict": Contents._container,
    "variable": Contents._variable, "table": Contents._table, "asset": Contents._asset, "function": Contents._function,
    "concrete": Contents._bare}
