"""The contents of a saved model, checked and as plain data: for loading, and for tools that need no objects.

`read(DIR)` gives a `SavedModel`: signatures and functions with their graphs, names, structures, and the arrays of
variables and constants. Nothing is called, imported or compiled. Everything is checked before it is returned: versions,
sizes and checksums of all files, every number and name that refers to something, and each graph by the verifier.

    model = reader.read("exported")
    f = model.signatures["serving_default"]     # a SavedSignature
    f.inputs                                    # {"x": TensorSpec, or a structure of them}, in order
    f.outputs                                   # {"output_0": TensorSpec, ...}
    f.function                                  # a SavedFunction: one graph
    f.function.graph                            # inputs: those of the call, flat, then one for each of `captures`
    f.function.captures                         # SavedVariable | SavedConstant, in order
    f.function.updates                          # the SavedVariables that take the graph's last outputs

How objects come of it is `loading.py`'s, what the files look like docs/saved_model.md's.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from twofold._formats import safetensors as _safetensors
from twofold.ir import dtypes as dt
from twofold.ir import graph as g
from twofold.ir import nest
from twofold.ir.dtypes import DType
from twofold.ir.errors import DataLossError, OpError
from twofold.ir.spec import TensorSpec

from . import op_sets
from .directory import Manifest, Stored, read_manifest
from .graphs import show_lines, text_to_graph
from .objects import Malformed, SavedObject, list_of, of, parsed_json, paths_of, read_objects, typed
from .signatures import by_name, inputs_by_name
from .structure import decode

__all__ = ["read", "SavedModel", "SavedObject", "SavedVariable", "SavedConstant", "SavedFunction", "SavedSignature",
           "SavedMethod", "SavedReference", "SavedTable", "OPAQUE"]

_TABLE_ARRAYS = {"static": ("keys", "values", "default"), "mutable": ("keys", "values", "default"),
                 "dense": ("keys", "values", "default", "empty_key", "deleted_key")}
_TRIES = 3  # when another process saves to the same place meanwhile
_PARAMETERS = {p.name: p for p in (
    inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.VAR_POSITIONAL,
    inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD)}


class _Opaque:
    """The default of a parameter that could not be saved."""

    def __repr__(self) -> str:
        return "<a value that was not saved>"


OPAQUE = _Opaque()


@dataclass(eq=False)
class SavedVariable:
    """A variable: its name without ":0", dtype, declared shape (None for sizes that may change), and value.

    Attributes:
        paths: where it is in the object graph, as "layers.0.w"; the shortest first.
    """

    number: int
    name: str
    dtype: DType
    shape: list[int | None] | None
    trainable: bool
    value: np.ndarray
    paths: list[str] = field(default_factory=list)


class SavedReference:
    """A variable of the model among the arguments that a function was made for."""

    def __init__(self, variable: SavedVariable) -> None:
        self.variable = variable

    def __repr__(self) -> str:
        return f"<variable {self.variable.name!r}>"


@dataclass(eq=False)
class SavedConstant:
    """A tensor that functions read: an array; or the path of an asset or the handle of a table (scalar strings, `asset`
    or `table` is the number of its object)."""

    dtype: DType
    value: np.ndarray
    asset: int | None = None
    table: int | None = None


@dataclass(eq=False)
class SavedTable:
    """A table of keys and values.

    Attributes:
        form: "static", "mutable" or "dense".
        arrays: "keys", "values" and "default"; of a dense one also "empty_key" and "deleted_key".
    """

    form: str
    name: str | None
    checkpoint: bool
    arrays: dict[str, np.ndarray]


@dataclass(eq=False)
class SavedFunction:
    """A function for one signature: a graph, and how arguments and results are put together.

    Attributes:
        name: of the Python function.
        graph: verified; inputs are the tensors of the arguments in order (nested ones flattened), then `captures`;
            outputs are the tensors of the result, flattened, then new values for `updates`.
        arguments: `(name, kind, template)`: structures with TensorSpecs for tensors, and Python values that are fixed.
        form: `(args, kwargs)` of the same.
        result: the structure of the result, with TensorSpecs, and None for None.
        captures: what the graph's further inputs are.
        updates: the variables that the graph's last outputs are assigned to.
        relaxed: whether sizes that it leaves open were given in the first call.
        whole: the function for the same arguments that serves calls which tapes follow; None where it is this one.
    """

    number: int
    name: str
    graph: g.Graph
    arguments: list[tuple[str, str, Any]]
    form: tuple[tuple[Any, ...], dict[str, Any]]
    result: Any
    captures: list[SavedVariable | SavedConstant]
    updates: list[SavedVariable]
    relaxed: bool
    whole: SavedFunction | None = None

    @property
    def specs(self) -> list[TensorSpec]:
        """Specs of the tensors of a call, flat: the graph's first inputs."""
        return [TensorSpec(v.dims, v.dtype, v.name or None)
                for v in self.graph.inputs[:len(self.graph.inputs) - len(self.captures)]]


@dataclass(eq=False)
class SavedMethod:
    """A `tf.function`: its parameters and the functions that it was traced to.

    Attributes:
        signature: the parameters; None where they are not known.
        input_signature: what was declared, or None.
    """

    name: str
    signature: inspect.Signature | None
    input_signature: Any
    concrete: list[SavedFunction]


@dataclass(eq=False)
class SavedSignature:
    """A function under a name, with arguments and results by name.

    Attributes:
        functions: one; several where tensors of any rank are taken.
        names: of the tensors that the arguments hold, in order.
    """

    name: str
    functions: list[SavedFunction]
    names: list[str]

    @property
    def function(self) -> SavedFunction:
        """The function, the first one where there are several."""
        return self.functions[0]

    @property
    def inputs(self) -> dict[str, Any]:
        """By name, in order, a TensorSpec or a structure of them; flattened they are the graph's first inputs."""
        return inputs_by_name(self.function.arguments, self.names) or {}

    @property
    def outputs(self) -> dict[str, Any]:
        """By name a TensorSpec or a structure of them."""
        return by_name(self.function.result)


@dataclass(eq=False)
class SavedModel:
    """All of a saved model.

    Attributes:
        path: of the directory.
        manifest: versions, files, sizes, checksums.
        objects: the object graph, the root first.
        variables: by the number of their node.
        assets: the full path of each file, by the number of its node.
        tables: by the number of their node.
        methods: the `tf.function`s.
        functions: all concrete functions.
        signatures: by name.
        function_aliases: further names of methods, by their numbers.
    """

    path: str
    manifest: Manifest
    objects: list[SavedObject]
    variables: dict[int, SavedVariable]
    assets: dict[int, str]
    tables: dict[int, SavedTable]
    methods: list[SavedMethod]
    functions: list[SavedFunction]
    signatures: dict[str, SavedSignature]
    function_aliases: dict[str, int]

    def named_methods(self) -> dict[str, SavedMethod]:
        """The `tf.function`s by where they are in the object graph, as "encoder.__call__"; the root's own first."""
        paths = paths_of(self.objects)
        return {paths[n][0]: self.methods[o.about["function"]] for n, o in enumerate(self.objects)
                if o.kind == "function" and paths[n]}


def read(path: str | os.PathLike[str]) -> SavedModel:
    """The saved model in a directory.

    Args:
        path: of the directory.
    Raises:
        NotFoundError: there is none. FailedPreconditionError: it is of a newer version. DataLossError: it is damaged,
            or not what the format says.
    """
    path = os.fspath(path)
    manifest = read_manifest(path, op_sets.CURRENT)
    for _ in range(_TRIES):
        try:
            return _Reader(path, manifest).model()
        except DataLossError:
            again = read_manifest(path, op_sets.CURRENT)
            if again == manifest:
                raise
            manifest = again  # another save has replaced it meanwhile
    return _Reader(path, manifest).model()


class _Reader:
    def __init__(self, path: str, manifest: Manifest) -> None:
        self.path, self.manifest = path, manifest
        self.files = Stored(path, manifest)
        self.place = f"<saved model {os.path.abspath(path)}>"

    def model(self) -> SavedModel:
        self.files.check_sizes()
        body = self.files.read("objects.json")
        arrays = self.files.parsed("weights.safetensors", _safetensors.read)
        try:
            self.body = parsed_json(body)
            self.arrays: dict[str, np.ndarray] = arrays
            texts = {name: self.files.read(name).decode() for name in self._graph_files()}
            for name in self.manifest.files:
                if name.startswith("assets/"):
                    self.files.check(name)
            return self._model(texts)
        except OpError:
            raise
        except (ValueError, TypeError, KeyError, IndexError, AttributeError, ArithmeticError, RecursionError,
                AssertionError) as e:
            raise DataLossError(None, None, f"{self.path} is no well-formed saved model: {_told(e)}.") from None

    def _graph_files(self) -> list[str]:
        names = [of(entry, "graph", str) for entry in list_of(self.body, "concrete")]
        if len(set(names)) != len(names):
            raise Malformed("two functions have one graph")
        return names

    def _model(self, texts: dict[str, str]) -> SavedModel:
        self.objects = read_objects(list_of(self.body, "nodes"))
        paths = paths_of(self.objects)
        self.variables = {n: self._variable(n, o, paths[n]) for n, o in enumerate(self.objects) if o.kind == "variable"}
        self.assets = {n: self._asset(o) for n, o in enumerate(self.objects) if o.kind == "asset"}
        self.tables = {n: self._table(o) for n, o in enumerate(self.objects) if o.kind == "table"}
        self.constants: dict[str, SavedConstant] = {}
        show_lines(_sources(self.body), self.place)
        self.functions = [self._function(n, entry, texts[entry["graph"]])
                          for n, entry in enumerate(list_of(self.body, "concrete"))]
        for function, entry in zip(self.functions, list_of(self.body, "concrete"), strict=True):
            if "whole" in entry:
                function.whole = _item(self.functions, of(entry, "whole", int))
        for function in self.functions:
            if function.whole is not None:
                _check_whole(function, function.whole)
        methods = [self._method(entry) for entry in list_of(self.body, "functions")]
        for node in self.objects:
            if node.kind == "function":
                _item(methods, of(node.about, "function", int))
            elif node.kind == "concrete":
                _item(self.functions, of(node.about, "concrete", int))
        signatures = {name: self._signature(name, entry)
                      for name, entry in of(self.body, "signatures", dict).items()}
        aliases = {name: typed(n, int) for name, n in typed(self.body.get("function_aliases", {}), dict).items()}
        for number in aliases.values():
            _item(methods, number)
        return SavedModel(self.path, self.manifest, self.objects, self.variables, self.assets,
                          self.tables, methods, self.functions, signatures, aliases)

    # -- objects ----------------------------------------------------------------------------------
    def _variable(self, number: int, node: SavedObject, paths: list[str]) -> SavedVariable:
        about = node.about
        dtype = _dtype(about)
        shape = about.get("shape")
        if shape is not None and not all(s is None or type(s) is int and s >= 0 for s in typed(shape, list)):
            raise Malformed(f"variable {number} has no shape")
        value = _safetensors.restored(of(about, "array", str), self.arrays, dtype)
        if shape is not None and (len(shape) != value.ndim or any(
                s not in (None, n) for s, n in zip(shape, value.shape, strict=True))):
            raise Malformed(f"variable {number} of shape {shape} has a value of shape {list(value.shape)}")
        return SavedVariable(number, of(about, "name", str), dtype, shape, of(about, "trainable", bool), value, paths)

    def _table(self, node: SavedObject) -> SavedTable:
        form, name = of(node.about, "form", str), node.about.get("name")
        if form not in _TABLE_ARRAYS:
            raise Malformed(f"{form[:40]!r} is no form of table")
        place = of(node.about, "arrays", str)
        key_dtype, value_dtype = _dtype(node.about, "key_dtype"), _dtype(node.about, "value_dtype")
        arrays = {part: _safetensors.restored(f"{place}/{part}", self.arrays,
                                              value_dtype if part in ("values", "default") else key_dtype)
                  for part in _TABLE_ARRAYS[form]}
        keys, values, default = arrays["keys"], arrays["values"], arrays["default"]
        key_shape = arrays["empty_key"].shape if form == "dense" else ()
        if not (key_dtype.is_integer or key_dtype is dt.string) or keys.shape[1:] != key_shape or not keys.ndim or (
                values.shape != keys.shape[:1] + default.shape) or form == "static" and default.shape:
            raise Malformed("the keys of a table do not fit its values")
        return SavedTable(form, None if name is None else typed(name, str), of(node.about, "checkpoint", bool), arrays)

    def _asset(self, node: SavedObject) -> str:
        name = of(node.about, "file", str)
        if not name.startswith("assets/") or name not in self.manifest.files:
            raise Malformed(f"there is no asset {name[:60]!r}")
        return self.files.full_path(name)

    # -- functions --------------------------------------------------------------------------------
    def _function(self, number: int, entry: dict[str, Any], text: str) -> SavedFunction:
        name = of(entry, "name", str)
        try:
            graph = text_to_graph(text, self.manifest.op_set, self.place)
        except (ValueError, TypeError, KeyError, IndexError, AttributeError, ArithmeticError, RecursionError,
                AssertionError) as e:
            raise Malformed(f"the graph of {name[:60]!r} is wrong: {_told(e)}") from None
        args = tuple([decode(a, self._referred) for a in list_of(entry, "args")])
        kwargs = {typed(k, str): decode(v, self._referred) for k, v in _pairs(entry, "kwargs")}
        arguments = [(typed(n, str), _kind(k), decode(v, self._referred)) for n, k, v in list_of(entry, "arguments")]
        captures = [self._capture(c) for c in list_of(entry, "captures")]
        updates = [self._updated(n) for n in list_of(entry, "updates")]
        function = SavedFunction(number, name, graph, arguments, (args, kwargs), decode(entry["result"]), captures,
                                 updates, of(entry, "relaxed", bool))
        _check_inputs(function)
        _check_outputs(function)
        return function

    def _referred(self, number: int) -> Any:
        """The object that a reference among the arguments of a function stands for."""
        return SavedReference(_item_at(self.variables, number))

    def _updated(self, number: Any) -> SavedVariable:
        return _item_at(self.variables, typed(number, int))

    def _capture(self, entry: Any) -> SavedVariable | SavedConstant:
        kind = next(iter(typed(entry, dict)), None)
        if kind == "variable":
            return self._updated(entry["variable"])
        if kind == "asset":
            path = _item_at(self.assets, typed(entry["asset"], int))
            array = np.empty((), object)
            array[()] = os.fsencode(path)
            return SavedConstant(dt.string, array, entry["asset"])
        if kind == "table":
            _item_at(self.tables, typed(entry["table"], int))
            return SavedConstant(dt.string, np.array(b"table", object), table=entry["table"])
        name = of(entry, "array", str)
        constant = self.constants.get(name)
        if constant is None:
            dtype = _dtype(entry)
            constant = self.constants[name] = SavedConstant(dtype, _safetensors.restored(name, self.arrays, dtype))
        elif constant.dtype is not _dtype(entry):
            raise Malformed(f"array {name[:60]!r} has two dtypes")
        return constant

    def _method(self, entry: dict[str, Any]) -> SavedMethod:
        numbers = [typed(n, int) for n in list_of(entry, "concrete")]
        concrete = [_item(self.functions, n) for n in numbers]
        declared = entry.get("input_signature")
        signature = None if entry.get("parameters") is None else inspect.Signature(
            [self._parameter(p) for p in list_of(entry, "parameters")])
        given = None if declared is None else decode(declared)
        if given is not None and (type(given) is not tuple or not all(
                isinstance(leaf, TensorSpec) for leaf in nest.flatten(given))):
            raise Malformed("declared arguments are no specs")
        return SavedMethod(of(entry, "name", str), signature, given, concrete)

    def _parameter(self, entry: Any) -> inspect.Parameter:
        name, kind, *default = typed(entry, list)
        given: Any = inspect.Parameter.empty
        if default:
            given = OPAQUE if default[0] == {"opaque": True} else decode(default[0], self._referred)
        return inspect.Parameter(typed(name, str), _PARAMETERS[_kind(kind)], default=given)

    def _signature(self, name: str, entry: Any) -> SavedSignature:
        functions = [_item(self.functions, typed(n, int)) for n in list_of(entry, "concrete")]
        names = [typed(n, str) for n in list_of(entry, "inputs")]
        if not functions:
            raise Malformed(f"signature {name[:60]!r} has no function")
        for function in functions:
            if inputs_by_name(function.arguments, names) is None:
                raise Malformed(f"signature {name[:60]!r} does not name each input once")
            outputs = by_name(function.result)
            if any(type(key) is not str for key in outputs) or None in nest.flatten(function.result):
                raise Malformed(f"signature {name[:60]!r} does not name each output")
        return SavedSignature(name, functions, names)


# -- checks -------------------------------------------------------------------------------------------
def _check_inputs(function: SavedFunction) -> None:
    """The tensors of the arguments, twice over, and the captures are the graph's inputs."""
    inputs = function.graph.inputs
    count = len(inputs) - len(function.captures)
    by_argument = _specs([template for _, _, template in function.arguments])
    by_form = _specs([*function.form[0], *function.form[1].values()])
    if count < 0 or len(by_argument) != count or len(by_form) != count:
        raise Malformed(f"the arguments of {function.name[:60]!r} are not the inputs of its graph")
    for one, two, value in zip(by_argument, by_form, inputs, strict=False):
        if not (one.dtype is two.dtype is value.dtype and _fits(one, value) and _fits(two, value)):
            raise Malformed(f"an argument of {function.name[:60]!r} is {one.short()}; the graph has {value!r}")
    for held, value in zip(function.captures, inputs[count:], strict=True):
        shape = held.shape if isinstance(held, SavedVariable) else list(held.value.shape)
        if held.dtype is not value.dtype or not _holds(shape, value.dims, held.value.shape):
            raise Malformed(f"what {function.name[:60]!r} captures is not the input {value!r} of its graph")


def _specs(templates: list[Any]) -> list[TensorSpec]:
    return [leaf for t in templates for leaf in nest.flatten(t) if isinstance(leaf, TensorSpec)]


def _fits(spec: TensorSpec, value: g.Value) -> bool:
    """Whether a spec says the same as an input, apart from the names of sizes."""
    return spec.shape.as_list() == value.spec.shape.as_list() if spec.rank is not None else False


def _holds(shape: list[int | None] | None, dims: tuple[Any, ...], now: tuple[int, ...]) -> bool:
    """Whether an input of these dims takes every value that a variable of this shape may have."""
    if len(dims) != len(now):
        return False
    known = shape if shape is not None else [None] * len(now)
    return all(s == d if type(d) is int else True for s, d in zip(known, dims, strict=True))


def _check_outputs(function: SavedFunction) -> None:
    """The result's tensors and the updates are the graph's outputs."""
    leaves = [leaf for leaf in nest.flatten(function.result) if leaf is not None]
    outputs = function.graph.outputs
    if len(leaves) + len(function.updates) != len(outputs):
        raise Malformed(f"the results of {function.name[:60]!r} are not the outputs of its graph")
    for leaf, value in zip(leaves, outputs, strict=False):
        if not isinstance(leaf, TensorSpec) or leaf.dtype is not value.dtype or leaf.rank not in (
                None, len(value.dims)):
            raise Malformed(f"a result of {function.name[:60]!r} is not the output {value!r} of its graph")
    for variable, value in zip(function.updates, outputs[len(leaves):], strict=True):
        if variable.dtype is not value.dtype:
            raise Malformed(f"{function.name[:60]!r} assigns another dtype to variable {variable.number}")


def _check_whole(function: SavedFunction, whole: SavedFunction) -> None:
    """Another function that serves calls of this one takes the same tensors."""
    one, other = [[(s.dtype, s.shape.as_list()) for s in f.specs] for f in (function, whole)]
    if whole.whole is not None or one != other:
        raise Malformed(f"function {whole.number} cannot serve calls of function {function.number}")


def _pairs(entry: Any, name: str) -> list[Any]:
    pairs = list_of(entry, name)
    if any(type(pair) is not list or len(pair) != 2 for pair in pairs):
        raise Malformed(f"{name!r} is no list of pairs")
    return pairs


def _item(items: list[Any], number: int) -> Any:
    if not 0 <= number < len(items):
        raise Malformed(f"there is no function {number}")
    return items[number]


def _item_at(items: Mapping[int, Any], number: int) -> Any:
    if number not in items:
        raise Malformed(f"object {number} is not of the kind that is expected")
    return items[number]


def _kind(kind: Any) -> str:
    if kind not in _PARAMETERS:
        raise Malformed(f"{str(kind)[:40]!r} is no kind of parameter")
    return kind


def _dtype(entry: Any, key: str = "dtype") -> DType:
    name = of(entry, key, str)
    dtype = next((d for d in (*dt.ALL, *dt.SMALL, dt.string) if d.name == name), None)
    if dtype is None:
        raise Malformed(f"{name[:40]!r} is no dtype")
    return dtype


def _sources(body: dict[str, Any]) -> dict[str, dict[int, str]]:
    sources: dict[str, dict[int, str]] = {}
    for name, lines in of(body, "sources", dict).items():
        known = {int(number): typed(line, str) for number, line in typed(lines, dict).items()}
        if any(not 0 < number < 1 << 31 for number in known):
            raise Malformed("a line has no number")
        sources[name] = known
    return sources


def _told(error: BaseException) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deep"
    text = str(error).rstrip(".")
    return text if isinstance(error, ValueError) else f"{type(error).__name__}: {text}"


