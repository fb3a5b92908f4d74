"""Running a graph with eager ops: what each construct of the graph IR means.

`run_graph` is the meaning that compiled programs are held to. It runs under the recorders of the context like any
eager code, so tapes see the ops of the branches and rounds that were taken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from twofold.ir import graph as g
from twofold.ir.dims import evaluate
from twofold.ir.errors import InvalidArgumentError, line_text, of_values
from twofold.ir.grad import zeros_like
from twofold.ir.replay import replay
from twofold.ir.types import AnyTensor

from . import convert, record, stacks
from .tensor import Tensor, alias, text_of, wrap

if TYPE_CHECKING:
    from twofold.runtime.program import KnownSizes

__all__ = ["run_graph", "run_construct"]


def run_graph(graph: g.Graph, inputs: Sequence[Tensor], sizes: KnownSizes | None = None,
              watch: Callable[[g.Node, Sequence[Tensor]], None] | None = None) -> list[Tensor]:
    """The outputs of `graph` for tensors `inputs`, op by op."""
    return replay(graph, inputs, run_construct, sizes, watch)


def run_construct(node: g.Node, operands: list[Tensor], sizes: KnownSizes) -> Sequence[Tensor]:
    """The results of a node that is no op; see `ir/graph.py` for what each means."""
    return _RUN[node.op](node, operands, sizes)  # type: ignore[index]


def _constant(node: g.Node, operands: list[Tensor], sizes: KnownSizes) -> Sequence[Tensor]:
    return (wrap(node.attrs["value"]),)


def _size(node: g.Node, operands: list[Tensor], sizes: KnownSizes) -> Sequence[Tensor]:
    size, = evaluate((node.attrs["size"],), sizes)
    return (wrap(np.array(size, node.attrs["dtype"].np)),)


def _bind(node: g.Node, operands: list[Tensor], sizes: KnownSizes) -> Sequence[Tensor]:
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


def _cond(node: g.Node, operands: list[Tensor], sizes: KnownSizes) -> Sequence[Tensor]:
    taken = node.regions[0] if bool(operands[0]) else node.regions[1]
    return run_graph(taken, operands[1:], sizes)


def _while(node: g.Node, operands: list[Tensor], sizes: KnownSizes) -> Sequence[Tensor]:
    test, body = node.regions
    count = node.attrs["carried"]
    carried, rest = list(operands[:count]), operands[count:]
    while bool(run_graph(test, [*carried, *rest], sizes)[0]):
        carried = run_graph(body, [*carried, *rest], sizes)
    return carried


def _call(node: g.Node, operands: list[Tensor], sizes: KnownSizes) -> Sequence[Tensor]:
    own = {name: evaluate((size,), sizes)[0] for name, size in node.attrs["sizes"]}
    return run_graph(node.regions[0], operands, own)


def _array(node: g.Node, operands: list[Tensor], sizes: KnownSizes) -> Sequence[Tensor]:
    returned = node.attrs["fn"](*operands)
    results = returned if isinstance(returned, (tuple, list)) else () if returned is None else (returned,)
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


def _assert(node: g.Node, operands: list[Tensor], sizes: KnownSizes) -> Sequence[Tensor]:
    if not bool(operands[0]):
        raise failed_assertion(node, operands[1:])
    return ()


def failed_assertion(node: g.Node, data: Sequence[Tensor]) -> InvalidArgumentError:
    """The error of an assertion that did not hold, with its data."""
    shown = "".join(f"\n  {text_of(np.asarray(d))}" for d in data)
    error = node.attrs.get("error", InvalidArgumentError)
    return of_values(error(None, "assert", f"{node.attrs['message']}{shown}{where(node)}"))


def _custom(node: g.Node, operands: list[Tensor], sizes: KnownSizes) -> Sequence[Tensor]:
    count, is_given = node.attrs["results"], node.attrs["given"]
    results = [alias(t) for t in operands[:count]]
    rest = operands[count:]

    def vjp(cts: Sequence[AnyTensor | None]) -> list[AnyTensor | None]:
        full: list[Any] = [  # tensors of this mode, which `ir/grad.py` does not know
            zeros_like(r) if ct is None else ct for ct, r in zip(cts, results, strict=True)]
        gradients = iter(run_graph(node.regions[0], [*full, *rest], sizes))
        return [next(gradients) if x else None for x in is_given]
    record.record_custom(vjp, tuple(rest[:node.attrs["inputs"]]), tuple(results))
    return results


def _push(node: g.Node, operands: list[Tensor], sizes: KnownSizes) -> Sequence[Tensor]:
    stack, value, at = operands
    return (stacks.push(stack, value, int(at), node.attrs["add"]),)


def _pop(node: g.Node, operands: list[Tensor], sizes: KnownSizes) -> Sequence[Tensor]:
    stack, at = operands
    return (stacks.pop(stack, int(at), evaluate(node.attrs["dims"], sizes)),)


_RUN = {g.CONSTANT: _constant, g.SIZE: _size, g.BIND: _bind, g.COND: _cond, g.WHILE: _while, g.CALL: _call,
        g.HOST: _array, g.ASSERT: _assert, g.CUSTOM: _custom, g.PUSH: _push, g.POP: _pop}
