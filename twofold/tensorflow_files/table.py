"""What nodes of TensorFlow's graphs mean here: a function for each op that does more than compute, else `tf.raw_ops`.

A function that is registered with `@op` gets the `Call` and the values of the node's inputs by their names, and gives
its outputs as a list. Values are tensors, arrays where they are known while a graph is traced, variables, tables, and
lists of tensors (`lists.py`). The families of ops are modules of their own.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

import twofold as tf
from twofold import raw_ops

from .graphs import Body, Called, Gradient, Node, Source

__all__ = ["Call", "Entry", "Runner", "find", "op", "tensor", "truth"]

_FAMILIES = ("flow", "lists", "misc", "state", "tables")



class Runner(Protocol):
    """What runs functions of the library (`run.py`)."""

    def function(self, called: Called, given: Sequence[Any]) -> list[Any]:
        """The outputs of a function for values of its arguments."""

    def body(self, called: Called) -> Body:
        """The function of the library that an attribute names."""

    def resizes(self) -> bool:
        """Whether an item is written behind the end of a list, which makes it longer."""

    def gradient(self, name: str) -> Gradient | None:
        """The gradient of the user's own that nodes name so; None where there is none."""


class Entry:
    """The meaning of an op.

    Attributes:
        run: the function; of the table, from a `Call` and inputs, of a raw op, from inputs and attributes.
        inputs: the names of arguments, in order; of a raw op also those of attributes.
        lists: those that are several tensors.
        outputs: the names of the results, where there are several.
        defaults: of a raw op's attributes.
        assigns: whether a raw op assigns to the variables that it is given.
    """

    __slots__ = ("run", "inputs", "lists", "outputs", "defaults", "raw", "assigns")

    def __init__(self, run: Callable[..., Any], signature: inspect.Signature, lists: frozenset[str],
                 outputs: Sequence[str], raw: bool) -> None:
        self.run, self.lists, self.outputs, self.raw, self.assigns = run, lists, tuple(outputs), raw, False
        self.inputs = [name for name, p in signature.parameters.items() if p.default is p.empty]
        self.defaults = {name: p.default for name, p in signature.parameters.items() if p.default is not p.empty}

    def given(self, values: Sequence[Any], attrs: Mapping[str, Any]) -> dict[str, Any]:
        """The inputs of a node by name.

        Raises:
            ValueError: there are more or fewer than the op takes.
        """
        names = [name for name in self.inputs if not self.raw or name not in attrs]
        several = sum(name in self.lists for name in names)
        rest = len(values) - (len(names) - several)
        if rest < 0 or (rest % several if several else rest):
            raise ValueError(f"it has {len(values)} inputs; its op takes {', '.join(names) or 'none'}")
        given, at = {}, 0
        for name in names:
            count = rest // several if name in self.lists else 1
            given[name] = list(values[at:at + count]) if name in self.lists else values[at]
            at += count
        return given


_TABLE: dict[str, Entry] = {}
_ASSIGN = ("Resource", "Rng", "Stateful")  # how the names of raw ops begin that assign to variables


class Call:
    """One node as it runs.

    Attributes:
        node: the node.
        runner: runs functions that attributes name.
        value: gives a value of the graph around.
    """

    __slots__ = ("node", "runner", "value", "_attrs")

    def __init__(self, node: Node, attrs: dict[str, Any], runner: Runner, value: Callable[[Source], Any]) -> None:
        self.node, self._attrs, self.runner, self.value = node, attrs, runner, value

    def attr(self, name: str, default: Any = None) -> Any:
        """An attribute, or `default` where it is left out."""
        return self._attrs.get(name, default)

    def word(self, name: str, default: str = "") -> str:
        """An attribute that is a text."""
        value = self.attr(name, default)
        return value.decode("utf-8") if isinstance(value, bytes) else str(value)

    def dtype(self, name: str) -> Any:
        """An attribute that is a dtype.

        Raises:
            ValueError: it is not there, or not known here.
        """
        value = self.attr(name)
        if not isinstance(value, tf.DType):
            raise ValueError(f"its attribute {name!r} is no dtype that is known here")
        return value

    def function(self, name: str) -> Called:
        """An attribute that is a function.

        Raises:
            ValueError: it is none.
        """
        value = self.attr(name)
        if not isinstance(value, Called):
            raise ValueError(f"its attribute {name!r} is no function")
        return value


def op(*names: str, outputs: Sequence[str] = ()) -> Callable[[Any], Any]:
    """Register the decorated function as the meaning of ops.

    Args:
        outputs: the names of the results, where there are several.
    """
    def register(fn: Any) -> Any:
        signature = inspect.signature(fn)
        parameters = list(signature.parameters.values())[1:]
        lists = frozenset({p.name for p in parameters if str(p.annotation).startswith("list")})
        entry = Entry(fn, signature.replace(parameters=parameters), lists, outputs, False)
        _TABLE.update(dict.fromkeys(names, entry))
        return fn
    return register


def find(name: str) -> Entry | None:
    """The meaning of an op: the table's, else that of the raw op; None where there is none."""
    if not _TABLE:
        for family in _FAMILIES:
            importlib.import_module(f"{__package__}.ops_{family}")
    if name not in _TABLE:
        row = raw_ops._row(name)
        if row is None and name.startswith(_STEPS):
            return _step_of_reference(name)
        if row is None:
            return None
        outputs: tuple[str, ...] = getattr(row.results, "_fields", ())
        signature = row.signature.replace(parameters=[p for n, p in row.signature.parameters.items() if n != "name"])
        _TABLE[name] = Entry(_caller(row), signature, row.lists, outputs, True)
        _TABLE[name].assigns = name.startswith(_ASSIGN)
    return _TABLE[name]


_STEPS = ("Apply", "SparseApply")  # how the names of steps of optimizers on variables of TensorFlow 1 begin


def _step_of_reference(name: str) -> Entry | None:
    """The meaning of a step of an optimizer that gives the variable on; None where there is none."""
    step = find(f"Resource{name}")
    if step is None:
        return None

    def run(**values: Any) -> Any:
        step.run(**values)
        return values[step.inputs[0]]
    entry = Entry(run, inspect.Signature(), step.lists, (), True)
    entry.inputs, entry.defaults, entry.assigns = step.inputs, step.defaults, True
    _TABLE[name] = entry
    return entry


def _caller(row: Any) -> Callable[..., Any]:
    """The function of a raw op's row."""
    def call(**values: Any) -> Any:
        bound = row.signature.bind(**values)
        bound.apply_defaults()
        return row(bound.arguments)
    return call


def tensor(value: Any) -> Any:
    """A value as a tensor."""
    if isinstance(value, tf.Tensor):
        return value
    if isinstance(value, np.ndarray):
        return tf.constant(value)
    return tf.convert_to_tensor(value)


def truth(value: Any) -> Any:
    """A condition: a truth value, a number that is not 0, or a text that is not empty."""
    if isinstance(value, np.ndarray) and value.size == 1:
        return bool(value.reshape(()).item())
    value = tensor(value)
    if value.dtype is tf.bool:
        return tf.reshape(value, ())
    if value.dtype is tf.string:
        return tf.reshape(tf.strings.length(value) > 0, ())
    return tf.reshape(tf.not_equal(value, tf.zeros((), value.dtype)), ())
