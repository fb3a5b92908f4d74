"""Running a graph with eager ops: what each construct of the graph IR means.

`run_graph` is the meaning that compiled programs are held to. It runs under the recorders of the context like any
eager code, so tapes see the ops of the branches and rounds that were taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from twofold.ir import graph as g
from twofold.ir.dims import DimLike, evaluate
from twofold.ir.errors import InvalidArgumentError, line_text, of_values
from twofold.ir.grad import zeros_like
from twofold.ir.replay import replay

from . import convert, record, stacks
from .tensor import Tensor, alias, text_of, wrap

__all__ = ["run_graph", "run_construct"]


def run_graph(graph: g.Graph, inputs: Sequence[Any], sizes: dict[str, DimLike] | None = None,
              watch: Any = None) -> list[Any]:
    """The outputs of `graph` for tensors `inputs`, op by op."""
    return replay(graph, inputs, run_construct, sizes, watch)


def run_construct(node: g.Node, operands: list[Any], sizes: dict[str, DimLike]) -> Sequence[Any]:
    """The results of a node that is no op; see `ir/graph.py` for what each means."""
    return _RUN[node.op](node, operands, sizes)  # type: ignore[index]


def _constant(node: g.Node, operands: list[Any], sizes: dict[str, DimLike]) -> Sequence[Any]:
    return (wrap(node.attrs["value"]),)


def _size(node: g.Node, operands: list[Any], sizes: dict[str, DimLike]) -> Sequence[Any]:
    size, = evaluate((node.attrs["size"],), sizes)  # type: ignore[arg-type]
    return (wrap(np.array(size, node.attrs["dtype"].np)),)


def _bind(node: g.Node, operands: list[Any], sizes: dict[str, DimLike]) -> Sequence[Any]:
    sizes[node.attrs["symbol"]] = checked_size(node, int(operands[0]))
    return ()


def checked_size(node: g.Node, size: int) -> int:
    """A size that a value gave.

    Raises:
        InvalidArgumentError: it is negative.
    """
    if size < 0:
        raise of_values(InvalidArgumentError(
            None, "shape", f"shape: a size must not be negative; got {size}.{where(node)}"))
    return size


def where(node: g.Node) -> str:
    """The user's line of a node, as errors end with it."""
    return "" if node.loc is None else "\n  " + line_text(*node.loc)


def _cond(node: g.Node, operands: list[Any], sizes: dict[str, DimLike]) -> Sequence[Any]:
    taken = node.regions[0] if bool(operands[0]) else node.regions[1]
    return run_graph(taken, operands[1:], sizes)


def _while(node: g.Node, operands: list[Any], sizes: dict[str, DimLike]) -> Sequence[Any]:
    test, body = node.regions
    count = node.attrs["carried"]
    carried, rest = list(operands[:count]), operands[count:]
    while bool(run_graph(test, [*carried, *rest], sizes)[0]):
        carried = run_graph(body, [*carried, *rest], sizes)
    return carried


def _call(node: g.Node, operands: list[Any], sizes: dict[str, DimLike]) -> Sequence[Any]:
    own = {name: evaluate((size,), sizes)[0] for name, size in node.attrs["sizes"]}  # type: ignore[arg-type]
    return run_graph(node.regions[0], operands, own)  # type: ignore[arg-type]


def _array(node: g.Node, operands: list[Any], sizes: dict[str, DimLike]) -> Sequence[Any]:
    given = node.attrs["fn"](*operands)
    results = given if isinstance(given, (tuple, list)) else () if given is None else (given,)
    if len(results) != len(node.outputs):
        raise InvalidArgumentError(None, node.attrs["name"], f"{node.attrs['name']}: gave {len(results)} results; "
                                   f"expected {len(node.outputs)}.{where(node)}")
    return [_declared(node, convert.as_tensor(r, dtype=v.dtype), v) for r, v in zip(results, node.outputs, strict=True)]


def _declared(node: g.Node, result: Tensor, value: g.Value) -> Tensor:
    """A result of Python, which must have the rank and the known sizes that were declared."""
    dims = result.dims
    if len(dims) != len(value.dims) or any(type(d) is int and d != n for d, n in zip(value.dims, dims, strict=True)):
        raise InvalidArgumentError(None, node.attrs["name"], f"{node.attrs['name']}: gave a result of shape "
                                   f"{result.shape}; expected {value.spec.shape}.{where(node)}")
    return result


def _assert(node: g.Node, operands: list[Any], sizes: dict[str, DimLike]) -> Sequence[Any]:
    if not bool(operands[0]):
        raise failed_assertion(node, operands[1:])
    return ()


def failed_assertion(node: g.Node, data: Sequence[Tensor]) -> InvalidArgumentError:
    """The error of an assertion that did not hold, with its data."""
    shown = "".join(f"\n  {text_of(np.asarray(d))}" for d in data)
    error = node.attrs.get("error", InvalidArgumentError)
    return of_values(error(None, "assert", f"{node.attrs['message']}{shown}{where(node)}"))


def _custom(node: g.Node, operands: list[Any], sizes: dict[str, DimLike]) -> Sequence[Any]:
    count, given = node.attrs["results"], node.attrs["given"]
    results = [alias(t) for t in operands[:count]]
    rest = operands[count:]

    def vjp(cts: Sequence[Any]) -> list[Any]:
        full = [zeros_like(r) if ct is None else ct for ct, r in zip(cts, results, strict=True)]
        gradients = iter(run_graph(node.regions[0], [*full, *rest], sizes))
        return [next(gradients) if x else None for x in given]
    record.record_custom(vjp, tuple(rest[:node.attrs["inputs"]]), tuple(results))
    return results


def _push(node: g.Node, operands: list[Any], sizes: dict[str, DimLike]) -> Sequence[Any]:
    stack, value, at = operands
    return (wrap(stacks.push(stack._array, value._array, int(at), node.attrs["add"])),)


def _pop(node: g.Node, operands: list[Any], sizes: dict[str, DimLike]) -> Sequence[Any]:
    stack, at = operands
    return (wrap(stacks.pop(stack._array, int(at), evaluate(node.attrs["dims"], sizes))),)  # type: ignore[arg-type]


_RUN = {g.CONSTANT: _constant, g.SIZE: _size, g.BIND: _bind, g.COND: _cond, g.WHILE: _while, g.CALL: _call,
        g.HOST: _array, g.ASSERT: _assert, g.CUSTOM: _custom, g.PUSH: _push, g.POP: _pop}
