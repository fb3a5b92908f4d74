"""The elements of small integer tensors in a trace, as far as they follow: numbers, sizes, and elements that only
running can tell.

`tf.reshape(x, [tf.shape(x)[0], -1])` is traced with unknown sizes because the elements of its shape follow from sizes
and constants. An element that does not follow is `Open`: it names where it comes from, so that a trace that needs it as
a size binds one symbol for it, however often and in whatever list it appears. Inside of a region, what it captures has
the elements that it has outside: the symbols of the surrounding graph are visible there.

Staging the symbols (`Trace.sizes_of`) is `tracer/trace.py`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np

from twofold.ir import dims as dm
from twofold.ir import graph as g
from twofold.ir.dims import Dim, DimLike
from twofold.ir.op import Op

__all__ = ["KnownElements", "Open", "content", "elements", "truths"]

_SIZES = 64  # elements up to which contents are followed
_ARITHMETIC: dict[str, Callable[[DimLike, DimLike], DimLike]] = {
    "add": lambda x, y: x + y, "subtract": lambda x, y: x - y, "multiply": lambda x, y: x * y,
    "floordiv": lambda x, y: x // y, "floormod": lambda x, y: x % y}


class Open:
    """An element that only running can tell: number `index` of `value`, in row-major order, of the graph of `trace`."""

    __slots__ = ("trace", "value", "index")

    def __init__(self, trace: Any, value: g.Value, index: int) -> None:
        """Args:
            trace: a `Trace`, whose type is defined above this module.
        """
        self.trace, self.value, self.index = trace, value, index


Element: TypeAlias = DimLike | Open


class KnownElements(Protocol):
    """The part of a `Trace` that tells what is known of its values.

    Attributes:
        parent: the trace that it is a region of, or None.
        bindings: the sizes that elements of integer values were bound to, by value and number of the element.
        sources: for a region: the parent's values that its inputs stand for.
    """

    @property
    def parent(self) -> KnownElements | None: ...

    @property
    def bindings(self) -> Mapping[tuple[g.Value, int], Dim]: ...

    @property
    def sources(self) -> Mapping[g.Value, g.Value]: ...


def content(value: g.Value, trace: KnownElements) -> np.ndarray | None:
    """The elements of a small integer value as an object array of ints and Dims; None where one does not follow."""
    array = elements(value, trace, trace)
    return None if array is None or any(isinstance(x, Open) for x in array.ravel()) else array


def elements(value: g.Value, trace: KnownElements, at: KnownElements | None) -> np.ndarray | None:
    """The elements of an integer value as an object array of ints, Dims and `Open`s; None where they are not followed.

    Args:
        value: of the graph of `trace`.
        at: the trace that asks, whose bound sizes are known, and those of the traces around it.
    """
    if not value.dtype.is_integer:
        return None
    count = 1
    for d in value.dims:
        if isinstance(d, Dim):
            return None
        count *= d
    if count > _SIZES:
        return None
    array = _outside(value, trace, at) if value.node is None else _of_node(value.node, trace, at)
    if array is None:
        array = np.full(dm.evaluate(value.dims, {}), None, object)
    flat = array.ravel()  # a copy, or an array made here
    if any(type(x) is not int and not isinstance(x, (Dim, Open)) for x in flat):
        flat = _objects([x if type(x) is int or isinstance(x, (Dim, Open)) else _open(trace, value, i, at)
                         for i, x in enumerate(flat)])
    return flat.reshape(dm.evaluate(value.dims, {}))


def _open(trace: KnownElements, value: g.Value, index: int, at: KnownElements | None) -> Element:
    """The size that an element is bound to, else an `Open` for it."""
    while at is not None:
        size = at.bindings.get((value, index))
        if size is not None:
            return size
        at = at.parent
    return Open(trace, value, index)


def _outside(value: g.Value, trace: KnownElements, at: KnownElements | None) -> np.ndarray | None:
    """The elements of what a region has captured."""
    source = trace.sources.get(value)
    return None if source is None or trace.parent is None else elements(source, trace.parent, at)


def _of_node(node: g.Node, trace: KnownElements, at: KnownElements | None) -> np.ndarray | None:
    """The elements of the one result of a node; None, or elements that are None, where they do not follow."""
    if node.op is g.CONSTANT:
        return _objects(node.attrs["value"].ravel().tolist()).reshape(node.attrs["value"].shape)
    if node.op is g.SIZE:
        return _objects([node.attrs["size"]])
    if isinstance(node.op, g.Construct) or len(node.outputs) != 1:
        return None
    if node.op.name == "shape":
        return _objects(node.inputs[0].dims)
    if node.op.name == "size":
        total: DimLike = 1
        for d in node.inputs[0].dims:
            total = total * d
        return _objects([total])
    operands = [elements(v, trace, at) for v in node.inputs]
    known = [o for o in operands if o is not None]
    result = _computed(node.op, node, known) if known and len(known) == len(operands) else None
    if result is not None:
        return result
    array = _folded(node, operands, trace, at)
    return None if array is None else _objects(array.ravel().tolist())


def _objects(items: Sequence[Element | None]) -> np.ndarray:
    out = np.empty(len(items), object)
    out[:] = list(items)
    return out


def _computed(op: Op, node: g.Node, operands: Sequence[np.ndarray]) -> np.ndarray | None:
    if op.view is not None:
        return np.asarray(op.view(*operands, **node.attrs), object)
    if op.name in _ARITHMETIC:
        return _objects([_calculated(_ARITHMETIC[op.name], x, y) for x, y in np.broadcast(*operands)])
    if op.name == "cast":
        return operands[0] if node.inputs[0].dtype.is_integer else None
    if op.name == "concat":
        return np.concatenate(operands, axis=node.attrs["axis"])
    if any(isinstance(x, Open) for o in operands for x in o.ravel()):
        return None
    if op.name == "range":
        return _objects([operands[0][()] + i * operands[2][()] for i in range(*dm.evaluate(node.outputs[0].dims, {}))])
    if op.name in ("reduce_prod", "reduce_sum") and operands[0].ndim == 1 and not node.attrs["keepdims"]:
        return np.array((np.prod if op.name == "reduce_prod" else np.sum)(operands[0]), object)
    return None


def _calculated(function: Callable[[DimLike, DimLike], DimLike], x: Element, y: Element) -> DimLike | None:
    """An element of a result; None where an operand is open."""
    if isinstance(x, Open) or isinstance(y, Open):
        return None
    try:
        return function(x, y)
    except ArithmeticError:  # a division by zero: running tells
        return None


def _folded(node: g.Node, operands: Sequence[np.ndarray | None], trace: KnownElements, at: KnownElements | None
            ) -> np.ndarray | None:
    """The one result of a node that depends on constants alone, as constant folding would compute it."""
    arrays = []
    for value, known in zip(node.inputs, operands, strict=True):
        array = g.constant_of(value)
        if array is None and known is not None and all(type(x) is int for x in known.ravel()):
            array = known.astype(value.dtype.np)
        if array is None and value.dtype.is_bool:
            array = _truths(value, trace, at)
        if array is None or array.size > _SIZES:
            return None
        arrays.append(array)
    if not arrays:
        return None
    from twofold.ir.passes.folding import computed
    results = computed(node, arrays)
    return None if results is None else results[0]


def truths(value: g.Value, trace: KnownElements) -> np.ndarray | None:
    """The elements of a small bool value where constants tell them; else None."""
    array = g.constant_of(value)
    return _truths(value, trace, trace) if array is None else array


def _truths(value: g.Value, trace: KnownElements, at: KnownElements | None) -> np.ndarray | None:
    """The elements of a bool value, such as a comparison of sizes, where constants tell them."""
    node = value.node
    if node is None or isinstance(node.op, g.Construct) or len(node.outputs) != 1:
        return None
    return _folded(node, [elements(v, trace, at) for v in node.inputs], trace, at)
