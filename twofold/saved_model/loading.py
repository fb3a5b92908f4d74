"""Objects from a folder that `tf.saved_model.save` wrote."""

from __future__ import annotations

from typing import Any

from twofold.eager.tensor import Tensor, wrap
from twofold.eager.variable import Variable
from twofold.ir import nest
from twofold.ir.errors import DataLossError, OpError
from twofold.module import Module
from twofold.random import Generator
from twofold.tracer.concrete import ConcreteFunction
from twofold.tracer.restored import restore_function, restore_trace

from .asset import Asset
from .objects import SavedObject, tuple_order
from .reader import (
    SavedConstant,
    SavedFunction,
    SavedMethod,
    SavedModel,
    SavedReference,
    SavedTable,
    SavedVariable,
    read,
)
from .signatures import SignatureFunction, Signatures
from .structure import record_type

__all__ = ["CallableModule", "LoadedModule", "concrete_functions", "read_folder"]


_OF_ROOTS = frozenset({"signatures", "function_aliases"})  # attributes of roots that are no children
_RESERVED = _OF_ROOTS | {"_name", "_scope_name", "_hidden", "_waiting_for_children"}


class LoadedModule(Module):
    """An object of a saved model: what the original led to, under the same names; it needs no class of the user's.

    Functions can be called, differentiated and trained; `signatures` of the root holds the signatures by name, and
    `function_aliases` the functions that have other names, where they were asked for.
    """

    signatures: Signatures
    function_aliases: dict[str, Any]
    _TF_MODULE_IGNORED_PROPERTIES = Module._TF_MODULE_IGNORED_PROPERTIES | _OF_ROOTS

    def __init__(self, name: str) -> None:
        self._name = self._scope_name = name
        self._hidden: dict[str, Any] = {}  # children under names that the class has for itself

    def _hold(self, name: str, value: Any) -> None:
        if hasattr(type(self), name) or name in _RESERVED:
            self._hidden[name] = value
        else:
            self.__dict__[name] = value

    def _tracked_children(self) -> dict[str, Any]:
        children = super()._tracked_children()
        children = {name: child for name, child in children.items() if name not in _OF_ROOTS and name != "_hidden"}
        return {**children, **self._hidden}

    def _functions_to_save(self) -> dict[str, Any]:
        from .collect import functions_of
        return {name: fn for name, fn in functions_of(self).items() if name not in _OF_ROOTS and name != "_hidden"}

    def __repr__(self) -> str:
        return f"<twofold.saved_model object {self._name!r}>"


class CallableModule(LoadedModule):
    """A loaded object that can be called, as the original could."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the `tf.function` that the original had as `__call__` gives for these arguments."""
        return self._hidden["__call__"](*args, **kwargs)


def read_folder(folder: str, aliases: bool = False) -> Any:
    """The object of a folder that `tf.saved_model.save` wrote.

    Args:
        folder: the folder.
        aliases: whether it has `function_aliases`.
    """
    builder = _Builder(read(folder))
    root = builder.root()
    if aliases:
        root.function_aliases = {name: builder.functions[n] for name, n in builder.model.function_aliases.items()}
    return root


def concrete_functions(model: SavedModel) -> list[ConcreteFunction]:
    """All functions of a model that was read, in the order of `model.functions`, with variables of their own."""
    traces = _Builder(model).traces
    return [ConcreteFunction(_Alone(), traces[f.number]) for f in model.functions]


class _Builder:
    def __init__(self, model: SavedModel) -> None:
        self.model = model
        self.variables = {n: _variable(v) for n, v in model.variables.items()}
        self.assets = {n: Asset(path) for n, path in model.assets.items()}
        self.tables = {n: _table(t, model.path) for n, t in model.tables.items()}
        self.constants: dict[int, Tensor] = {}
        self.traces: dict[int, Any] = {}
        for saved in sorted(model.functions, key=lambda f: f.whole is not None):
            self.traces[saved.number] = self._trace(saved)
        self.functions = [self._method(m) for m in model.methods]
        self.made: dict[int, Any] = {}

    def root(self) -> Any:
        for number, saved in enumerate(self.model.objects):
            made = self._made(number, saved)
            if made is not None:
                self.made[number] = made
        for number in tuple_order(self.model.objects):
            saved = self.model.objects[number]
            self.made[number] = _tuple_of(saved, {name: self.made[child] for name, child in saved.children.items()})
        for number, saved in enumerate(self.model.objects):
            self._fill(self.made[number], saved)
        root = self.made[0]
        root.signatures = Signatures({
            name: SignatureFunction(name, [self.traces[f.number] for f in s.functions], s.names)
            for name, s in self.model.signatures.items()})
        return root

    # -- objects ----------------------------------------------------------------------------------
    def _made(self, number: int, saved: SavedObject) -> Any:
        """An object without its children; None for a tuple, which cannot do without."""
        kind, about = saved.kind, saved.about
        if kind == "variable":
            return self.variables[number]
        if kind == "asset":
            return self.assets[number]
        if kind == "table":
            return self.tables[number]
        if kind == "function":
            return self.functions[about["function"]]
        if kind == "concrete":
            return ConcreteFunction(_Alone(), self.traces[about["concrete"]])
        if kind == "list":
            return []
        if kind == "dict":
            return {}
        if kind == "generator":
            return self._generator(saved)
        if kind == "object":
            cls = CallableModule if "__call__" in saved.children else LoadedModule
            return cls(about.get("name", "loaded"))
        return None

    def _generator(self, saved: SavedObject) -> Any:
        state = self.variables[saved.children["_state_var"]]
        made = Generator.from_seed(0, "threefry" if state.dims == (2,) else "philox")
        made._state_var = state
        return made

    def _fill(self, made: Any, saved: SavedObject) -> None:
        children = {name: self.made[child] for name, child in saved.children.items()}
        if isinstance(made, LoadedModule):
            for name, child in children.items():
                made._hold(name, child)
        elif saved.kind == "list":
            made.extend(_row(saved, children))
        elif saved.kind == "dict":
            made.update(children)

    # -- functions --------------------------------------------------------------------------------
    def _trace(self, saved: SavedFunction) -> Any:
        args, kwargs = saved.form
        form = (tuple([self._own(a) for a in args]), {k: self._own(v) for k, v in kwargs.items()})
        arguments = [(name, kind, self._own(t)) for name, kind, t in saved.arguments]
        captures = [self._capture(c) for c in saved.captures]
        updates = [self.variables[v.number] for v in saved.updates]
        whole = None if saved.whole is None else self.traces[saved.whole.number]
        return restore_trace(saved.name, saved.graph, captures, form, arguments, saved.result, updates, saved.relaxed,
                             whole)

    def _own(self, template: Any) -> Any:
        """An argument with the variables of this model in it."""
        return nest.map_structure(
            lambda leaf: self.variables[leaf.variable.number] if isinstance(leaf, SavedReference) else leaf, template)

    def _capture(self, saved: SavedVariable | SavedConstant) -> Any:
        if isinstance(saved, SavedVariable):
            return self.variables[saved.number]
        if saved.asset is not None:
            return self.assets[saved.asset].asset_path
        if saved.table is not None:
            return self.tables[saved.table]._handle
        made = self.constants.get(id(saved))
        if made is None:
            made = self.constants[id(saved)] = wrap(saved.value)
        return made

    def _method(self, saved: SavedMethod) -> Any:
        traces = [self.traces[f.number] for f in saved.concrete]
        return restore_function(saved.name, None, saved.signature, saved.input_signature, traces)


class _Alone:
    """Stands behind a concrete function that no `tf.function` is known of."""

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        raise ValueError("this function was not made for tensors of these shapes.")

    traced_for = _call


def _variable(saved: SavedVariable) -> Variable:
    made = Variable(wrap(saved.value), trainable=saved.trainable, shape=saved.shape,
                    validate_shape=saved.shape is not None)
    made._name = saved.name
    return made


def _table(saved: SavedTable, path: str) -> Any:
    from twofold.lookup._saving import revived
    try:
        return revived(saved.form, saved.name, saved.checkpoint, saved.arrays)
    except (OpError, ValueError, TypeError) as e:
        raise DataLossError(None, None, f"{path} is no well-formed saved model: a table: {e}") from None


def _row(saved: SavedObject, children: dict[str, Any]) -> list[Any]:
    """The items of a list, with None where there was nothing to save."""
    length = saved.about["length"]
    return [children.get(str(n)) for n in range(length)]


def _tuple_of(saved: SavedObject, items: dict[str, Any]) -> Any:
    if saved.kind == "tuple":
        return tuple(_row(saved, items))
    fields = tuple(saved.about["fields"])
    return record_type(saved.about["name"], fields)(*[items.get(f) for f in fields])
