"""A graph as ONNX nodes: its nodes in order, each by its meaning; control flow as `If` and `Loop`.

Regions read what is around them, as blocks of ONNX do, so that only what a loop carries goes through it. A symbol that
stands for an unknown size is bound where a value of that shape comes up (`Writer.bind`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from twofold.codegen import loop_info
from twofold.ir import dims as dm
from twofold.ir import dtypes as dt
from twofold.ir import graph as g
from twofold.ir.dims import Dim, DimLike
from twofold.ir.errors import UnimplementedError, line_text
from twofold.ir.graph import Construct

from .export_meanings import meaning_of
from .export_writer import NoMeaning, Ref, Writer

__all__ = ["write"]

_END = (1 << 63) - 1  # beyond the last element, which ONNX clamps
_Construct = Callable[[Writer, g.Node, list[Ref]], Sequence[Ref]]


def write(w: Writer, graph: g.Graph, inputs: Sequence[Ref],
          stand_ins: Mapping[g.Node, g.Value] | None = None) -> list[Ref]:
    """The outputs of `graph` for `inputs`.

    Args:
        stand_ins: nodes that are not written -> the value that stands for their result.

    Raises:
        UnimplementedError: a node has no meaning in ONNX; the error names it, the user's line, and what to do instead.
    """
    values: dict[g.Value, Ref] = dict(zip(graph.inputs, inputs, strict=True))
    for value, ref in values.items():
        w.bind(value.dims, ref)
        w.shapes[ref.name] = value.dims
    for node in graph.nodes:
        if stand_ins and node in stand_ins:
            values[node.outputs[0]] = values[stand_ins[node]]
            continue
        around = w.place, w.prefix
        w.place = "" if node.loc is None else str(node.loc)
        own = next((v.name for v in node.outputs if v.name), node.op.name)
        w.prefix = f"{around[1]}/{own}" if around[1] else own
        try:
            results = _written(w, node, [values[v] for v in node.inputs])
        except NoMeaning as error:
            raise UnimplementedError(None, node.op.name, _refused(graph, node, error)) from None
        w.place, w.prefix = around
        for value, ref in zip(node.outputs, results, strict=True):
            values[value] = ref
            w.bind(value.dims, ref)
            w.shapes[ref.name] = value.dims
    return [values[v] for v in graph.outputs]


def _refused(graph: g.Graph, node: g.Node, error: NoMeaning) -> str:
    where = "" if node.loc is None else f"\n  {line_text(*node.loc)}"
    return f"{node.op.name} cannot be exported to ONNX: {error.why}; {error.instead}.{where}"


def _written(w: Writer, node: g.Node, operands: list[Ref]) -> Sequence[Ref]:
    if isinstance(node.op, Construct):
        return _CONSTRUCTS[node.op](w, node, operands)
    means = meaning_of(node.op.name)
    if all(0 in v.dims and not any(isinstance(d, Dim) for d in v.dims) for v in node.outputs):
        return [w.constant(np.zeros(v.dims), v.dtype) for v in node.outputs]  # of no elements
    results = means(w, node, *operands, **g.complete(node.op, node.attrs))
    results = (results,) if isinstance(results, Ref) else results
    for value, ref in zip(node.outputs, results, strict=True):
        assert value.dtype is ref.dtype, f"{node.op.name}: written as {ref.dtype.name}, expected {value.dtype.name}"
    return results


# -- values and sizes ---------------------------------------------------------------------------------
def _constant(w: Writer, node: g.Node, operands: list[Ref]) -> Sequence[Ref]:
    return (w.constant(node.attrs["value"], node.outputs[0].dtype),)


def _size(w: Writer, node: g.Node, operands: list[Ref]) -> Sequence[Ref]:
    return (w.scalar_size(node.attrs["size"], node.attrs["dtype"]),)


def _bind(w: Writer, node: g.Node, operands: list[Ref]) -> Sequence[Ref]:
    w.bind_value(node.attrs["symbol"], operands[0])
    return ()


def _custom(w: Writer, node: g.Node, operands: list[Ref]) -> Sequence[Ref]:
    return operands[:node.attrs["results"]]


def _assert(w: Writer, node: g.Node, operands: list[Ref]) -> Sequence[Ref]:
    w.unchecked.append(w.place)
    return ()


def _host(w: Writer, node: g.Node, operands: list[Ref]) -> Sequence[Ref]:
    raise NoMeaning(f"it calls Python ({node.attrs.get('name') or 'a function'})",
                    "do it before or after the model, or write it with ops")


# -- control flow -------------------------------------------------------------------------------------
def _cond(w: Writer, node: g.Node, operands: list[Ref]) -> Sequence[Ref]:
    if not node.outputs:
        for region in node.regions:  # for what has no meaning there
            with w.block(f"{w.prefix}/unused"):
                write(w, region, operands[1:])
        return ()
    blocks = []
    for region, name in zip(node.regions, ("then", "else"), strict=True):
        with w.block(f"{w.prefix}/{name}") as made:
            results = w.own(write(w, region, operands[1:]))
            made.outputs = [(r, v.dims) for r, v in zip(results, node.outputs, strict=True)]
        blocks.append(made)
    return w.several("If", [operands[0]], [v.dtype for v in node.outputs], then_branch=blocks[0],
                     else_branch=blocks[1])


def _while(w: Writer, node: g.Node, operands: list[Ref]) -> Sequence[Ref]:
    """A `Loop`. Arrays of which each round writes the next item are not carried: the loop gives all items, one behind
    another. A runtime copies an array of which a round changes a part, as often as there are rounds.
    """
    test, body = node.regions
    count = node.attrs["carried"]
    given = _given(node)
    with w.frame():
        [begin] = write(w, test, operands)
    if not count:
        return ()
    turn, going = Ref(w.name(f"{w.prefix}/round"), dt.int64), Ref(w.name(f"{w.prefix}/going"), dt.bool_)
    seen = [x if n in given or n >= count else Ref(w.name(f"{w.prefix}/{v.name or f'carried_{n}'}"), v.dtype)
            for n, (v, x) in enumerate(zip(body.inputs, operands, strict=True))]
    carried = [n for n in range(count) if n not in given]
    inputs = [(turn, ()), (going, ()), *[(seen[n], body.inputs[n].dims) for n in carried]]
    with w.block(f"{w.prefix}/body", inputs) as made:
        after = write(w, body, seen, {items.writer: items.item for items in given.values()})
        with w.frame():
            [go_on] = write(w, test, [*after, *operands[count:]])
        results = w.own([go_on, *[after[n] for n in (*carried, *given)]])
        sizes = [(), *[body.inputs[n].dims for n in carried], *[items.item.dims for items in given.values()]]
        made.outputs = list(zip(results, sizes, strict=True))
    order = [*carried, *given]
    loop = w.several("Loop", [None, begin, *[operands[n] for n in carried]], [node.outputs[n].dtype for n in order],
                     body=made)
    outputs = dict(zip(order, loop, strict=True))
    for n, items in given.items():
        outputs[n] = _array(w, operands[n], outputs[n], items.stretch, node.outputs[n].dims)
    return [outputs[n] for n in range(count)]


@dataclass(frozen=True)
class _Items:
    """What the rounds of a loop write to an array: the node that writes, the value that it writes, and the places."""

    writer: g.Node
    item: g.Value
    stretch: loop_info.Stretch


def _given(node: g.Node) -> dict[int, _Items]:
    """By the number of the carried value, what rounds write to arrays item after item. The sizes of these are known
    around the loop, and its test does not read them."""
    test, body = node.regions
    info, read = loop_info.analyse(node), test.uses()
    given = {}
    for n, stretch in info.stretches.items():
        item = loop_info.written(info.writers[n])
        if item is not None and test.inputs[n] not in read and \
                node.inputs[n].dims == body.inputs[n].dims == node.outputs[n].dims:
            given[n] = _Items(info.writers[n], info.writers[n].inputs[item.operand], stretch)
    return given


def _array(w: Writer, before: Ref, items: Ref, stretch: loop_info.Stretch, dims: Sequence[DimLike]) -> Ref:
    """The array that there was before, with the items that rounds have given in their places."""
    if not stretch.ascends:
        items = w.op("Slice", items, w.ints([_END]), w.ints([-_END]), w.ints([0]), w.ints([-1]))
    made = w.reshaped(items, [stretch.end - stretch.begin, *dims[1:]])
    parts = [] if stretch.begin == 0 else [_part(w, before, w.ints([0]), w.size(stretch.begin))]
    parts += [made, *([] if stretch.end == dims[0] else [_part(w, before, w.size(stretch.end), w.ints([_END]))])]
    return made if len(parts) == 1 else w.op("Concat", *parts, axis=0)


def _call(w: Writer, node: g.Node, operands: list[Ref]) -> Sequence[Ref]:
    sizes = {name: w.size(d) for name, d in node.attrs["sizes"]}
    with w.apart(sizes):
        return write(w, node.regions[0], operands)


# -- stacks of values that gradients of loops keep ------------------------------------------------------

def _push(w: Writer, node: g.Node, operands: list[Ref]) -> Sequence[Ref]:
    """What is before, the elements, what is behind; zeros come where the stack is too short."""
    stack, value, at = operands
    start = w.op("Reshape", at, w.ints([1]))
    count = w.size(dm.numel(node.inputs[1].dims))
    end = w.op("Add", start, count)
    missing = w.op("Max", w.op("Sub", end, w.op("Shape", stack, dtype=dt.int64)), w.ints([0]))
    stack = w.op("Concat", stack, w.op("Expand", w.constant(0, stack.dtype), missing), axis=0)
    elements = w.op("Reshape", value, w.ints([-1]))
    if node.attrs["add"]:
        elements = w.op("Add", _part(w, stack, start, end), elements)
    before, behind = _part(w, stack, w.ints([0]), start), _part(w, stack, end, w.ints([_END]))
    return (w.op("Concat", before, elements, behind, axis=0),)


def _pop(w: Writer, node: g.Node, operands: list[Ref]) -> Sequence[Ref]:
    stack, at = operands
    dims = node.attrs["dims"]
    start = w.op("Reshape", at, w.ints([1]))
    part = _part(w, stack, start, w.op("Add", start, w.size(dm.numel(dims))))
    return (w.reshaped(part, dims),)


def _part(w: Writer, stack: Ref, start: Ref, end: Ref) -> Ref:
    return w.op("Slice", stack, start, end, w.ints([0]))


_CONSTRUCTS: dict[Any, _Construct] = {
    g.CONSTANT: _constant, g.SIZE: _size, g.BIND: _bind, g.COND: _cond, g.WHILE: _while, g.CALL: _call,
    g.HOST: _host, g.ASSERT: _assert, g.CUSTOM: _custom, g.PUSH: _push, g.POP: _pop}
