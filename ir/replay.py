"""Running a graph op by op through the current interpreter: eagerly it computes, inside a trace it stages.

This defines the meaning of a graph by its ops. Compiled code is compared with it, control flow around calls of Python
runs by it, and one graph is written into another with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias, TypeVar

from . import graph as g
from .dims import AnySize, Dim, DimLike
from .errors import staged_at
from .op import apply
from .types import AnyTensor, Attr, Attrs, Results

__all__ = ["replay", "bind_sizes", "resolve"]

_Tensor = TypeVar("_Tensor", bound=AnyTensor)  # the kind of tensor of the interpreter that is under way

# (node, operands, sizes of symbols) -> the results of a node that is no op
Constructs: TypeAlias = Callable[[g.Node, list[_Tensor], dict[str, DimLike]], Sequence[_Tensor]]


def replay(graph: g.Graph, inputs: Sequence[_Tensor], construct: Constructs[_Tensor],
           sizes: Mapping[str, DimLike] | None = None,
           watch: Callable[[g.Node, Sequence[_Tensor]], None] | None = None) -> list[_Tensor]:
    """The outputs of `graph` for `inputs`.

    Args:
        graph: what to run.
        inputs: a tensor for each input.
        construct: runs what is no op: `(node, operands, sizes) -> results`.
        sizes: what symbols stand for that the inputs' shapes do not bind, such as those of a surrounding graph.
        watch: told of each node and its results.
    """
    env: dict[str, DimLike] = dict(sizes or {})
    for value, tensor in zip(graph.inputs, inputs, strict=True):
        bind_sizes(value.dims, tensor.dims, env)
    tensors: dict[g.Value, _Tensor] = dict(zip(graph.inputs, inputs, strict=True))
    last = _last_uses(graph)
    for number, node in enumerate(graph.nodes):
        operands = [tensors[v] for v in node.inputs]
        if isinstance(node.op, g.Construct):
            results = construct(node, operands, env)
        else:
            attrs = {k: resolve(v, env) for k, v in node.attrs.items()} if env else node.attrs
            computed = _applied(node, tuple(operands), attrs)
            results = computed if isinstance(computed, tuple) else (computed,)
        for value, result in zip(node.outputs, results, strict=True):
            tensors[value] = result
            bind_sizes(value.dims, result.dims, env)
        if watch is not None:
            watch(node, results)
        for value in last.get(number, ()):
            del tensors[value]
    return [tensors[v] for v in graph.outputs]


def _applied(node: g.Node, operands: tuple[AnyTensor, ...], attrs: Attrs) -> Results:
    """An op's results; an error names the line that staged it."""
    token = staged_at.set(node.loc)
    try:
        return apply(node.op, operands, attrs)  # type: ignore[arg-type]
    finally:
        staged_at.reset(token)


def _last_uses(graph: g.Graph) -> dict[int, list[g.Value]]:
    """For each node by number, the values that nothing reads after it."""
    at: dict[g.Value, int] = {}
    for number, node in enumerate(graph.nodes):
        for value in (*node.inputs, *node.outputs):
            at[value] = number
    for value in graph.outputs:
        at.pop(value, None)
    last_uses: dict[int, list[g.Value]] = {}
    for value, number in at.items():
        last_uses.setdefault(number, []).append(value)
    return last_uses


def bind_sizes(dims: Sequence[DimLike], sizes: Sequence[AnySize], env: dict[str, AnySize]) -> None:
    """Notes in `env` the symbols that stand alone in `dims` and are not known yet."""
    for d, size in zip(dims, sizes, strict=True):
        if isinstance(d, Dim) and (name := d.name_alone()) is not None and name not in env:
            env[name] = size


def resolve(attr: Attr, env: Mapping[str, DimLike]) -> Attr:
    """An attribute with the symbols in it replaced, in tuples too."""
    if isinstance(attr, Dim):
        return attr.substitute(env)
    if type(attr) is tuple:
        return tuple([resolve(v, env) for v in attr])
    return attr
