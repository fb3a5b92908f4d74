"""The table of ONNX's ops: what each means here, from which version of its set of ops on.

A function that is registered with `@op` gets the `Call` and the values of the inputs, None for those that are left
out, and gives a value, or a tuple of them. Values are tensors, but for those of `static` inputs, which come as they are
known when the function is traced: arrays, or sizes (`import_values.py`). The families of ops are modules of their own.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from .import_graph import Node
from .import_values import Value

__all__ = ["FOLDED", "Call", "Entry", "TooLarge", "find", "on_sizes", "op", "supported"]

_FAMILIES = ("elementwise", "reductions", "shapes", "indexing", "products", "convolutions", "pooling", "normalisation",
             "resizing", "recurrent", "control", "signals", "random", "detection", "quantised", "sequences", "text",
             "ml")

_TABLE: dict[tuple[str, str], list[Entry]] = {}


FOLDED = 1 << 16  # elements up to which values are computed when a graph is traced


#: from a node and a rank to the order in which a weight is kept
Order: TypeAlias = Callable[[Node, int], tuple[int, ...] | None]


class TooLarge(Exception):
    """A result is too large to be computed while a graph is traced."""


class Entry:
    """One meaning of an op.

    Attributes:
        name, domain, since: the op, and the version of its set of ops from which on this holds.
        run: the function.
        static: the inputs whose values decide shapes or axes.
        sizes: the function on arrays of integers and `Dim`s, by which shapes are computed; or None.
        layout: whether the function takes values with channels last as they are (`import_values.ChannelsLast`).
        folds: whether it may run at once where all of its inputs are known.
        frozen: the inputs whose weights are not trained.
        turned: how weights are kept: for the place of an input a function from the node and the rank to the order of
            axes, or to None for that of the graph.
    """

    __slots__ = ("name", "domain", "since", "run", "static", "sizes", "layout", "folds", "frozen", "turned")

    def __init__(self, name: str, domain: str, since: int, run: Callable[..., Any], static: Sequence[int],
                 layout: bool, folds: bool, frozen: Sequence[int],
                 turned: Mapping[int, Order]) -> None:
        self.name, self.domain, self.since, self.run = name, domain, since, run
        self.static, self.layout, self.folds, self.frozen, self.turned = static, layout, folds, frozen, turned
        self.sizes: Callable[..., Any] | None = None


def op(*names: str, since: int = 1, domain: str = "", static: Sequence[int] = (), layout: bool = False,
       folds: bool = True, frozen: Sequence[int] = (),
       turned: Mapping[int, Order] | None = None) -> Callable[[Any], Any]:
    """Register the decorated function as the meaning of ops; see `Entry`."""
    def register(fn: Any) -> Any:
        for name in names:
            entry = Entry(name, domain, since, fn, static, layout, folds, frozen, turned or {})
            _TABLE.setdefault((domain, name), []).append(entry)
        return fn
    return register


def on_sizes(*names: str) -> Callable[[Any], Any]:
    """Register the decorated function as what ops do to arrays of integers and `Dim`s.

    It gets the `Call` and arrays, and gives an array, or NotImplemented where it takes no part.
    """
    def register(fn: Any) -> Any:
        for name in names:
            for entry in _TABLE["", name]:
                entry.sizes = fn
        return fn
    return register


def _families() -> None:
    for family in _FAMILIES:
        importlib.import_module(f"{__package__}.import_{family}")


def find(domain: str, name: str, version: int) -> Entry | None:
    """The meaning of an op in a version of its set of ops; None where the table has none."""
    if not _TABLE:
        _families()
    fitting = [e for e in _TABLE.get((domain, name), ()) if e.since <= version]
    return max(fitting, key=lambda e: e.since) if fitting else None


def supported() -> list[tuple[str, str]]:
    """The ops of the table, as pairs of domain and name."""
    if not _TABLE:
        _families()
    return sorted(_TABLE)


class Call:
    """One node as it runs: its attributes, and the graphs within it.

    Args:
        node: the node.
        attrs: its attributes.
        run_graph: runs a graph that is an attribute with values for its inputs, and gives those of its outputs.

    Attributes:
        folding: whether the node is computed while its graph is traced.
    """

    __slots__ = ("node", "_attrs", "run_graph", "folding")

    def __init__(self, node: Node, attrs: dict[str, Any], run_graph: Callable[..., list[Value]]) -> None:
        self.node, self._attrs, self.run_graph = node, attrs, run_graph
        self.folding = False

    @property
    def version(self) -> int:
        """The version of the set of ops."""
        return self.node.version

    @property
    def name(self) -> str:
        """The op's name."""
        return self.node.op

    def attr(self, name: str, default: Any = None) -> Any:
        """An attribute, or `default` where it is left out."""
        return self._attrs.get(name, default)

    def need(self, name: str) -> Any:
        """An attribute that must be there.

        Raises:
            ValueError: it is not.
        """
        if name not in self._attrs:
            raise self.fail(f"it has no attribute {name!r}")
        return self._attrs[name]

    def wants(self, place: int) -> bool:
        """Whether an output is asked for."""
        return place < len(self.node.outputs) and bool(self.node.outputs[place])

    def makes(self, shape: Sequence[Any]) -> Sequence[Any]:
        """A shape of a result that is larger than the operands.

        Raises:
            ValueError: it has negative sizes. TooLarge: it is not to be computed while the graph is traced.
        """
        if any(type(d) is int and d < 0 for d in shape):
            raise self.fail(f"the result would have shape {list(shape)}")
        if self.folding and math.prod(shape) > FOLDED:
            raise TooLarge
        return shape

    def fail(self, problem: str) -> ValueError:
        """The error for a node that makes no sense; whoever runs the node adds its name."""
        return ValueError(problem)
