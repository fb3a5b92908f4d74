"""How gradients of graphs are run and compared with those of the eager tape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import twofold as tf
from twofold.eager.constructs import run_graph
from twofold.eager.tensor import Tensor, wrap
from twofold.ir import dims as dm
from twofold.ir import grad
from twofold.ir.autodiff import Linearised, vjp
from twofold.ir.build import Builder
from twofold.ir.graph import Graph, is_pure
from twofold.ir.op import use_interpreter
from twofold.ir.spec import TensorSpec
from twofold.ir.verify import verify
from twofold.tracer.function import trace


def pulled(both: Linearised, inputs: Sequence[Tensor], cts: Sequence[Tensor]) -> tuple[list[Tensor], list[Any]]:
    """Results of the forward graph, and for each input the gradient that the backward graph gives, or None."""
    results = run_graph(both.forward, inputs)
    back = both.backward()
    kept = [results[n] if n >= 0 else inputs[-1 - n] for n in (both.sources[i] for i in back.reads)]
    actual = iter(run_graph(back.graph, [*kept, *cts]))
    return results, [next(actual) if g else None for g in back.connected]


def same(a: Any, b: Any) -> bool:
    """Whether two tensors, or None, have the same bits."""
    if a is None or b is None:
        return a is b
    return a.dims == b.dims and a.dtype is b.dtype and a._array.tobytes() == b._array.tobytes()


def random_like(rng: np.random.Generator, x: Any) -> Tensor:
    """A random cotangent."""
    actual = rng.uniform(-1, 1, x.dims) + (1j * rng.uniform(-1, 1, x.dims) if x.dtype.is_complex else 0)
    return wrap(np.asarray(actual).astype(x._array.dtype))


def compare(fn: Callable[..., list[Any]], given: Sequence[Tensor], specs: Sequence[TensorSpec] | None = None) -> None:
    """The gradient graph of `fn` gives the bits of the eager tape's.

    Args:
        fn: from tensors to a list of tensors.
        given: what it is called with.
        specs: what it is traced with; the shapes of `given` by default.
    """
    rng = np.random.default_rng(0)
    traced = trace(lambda *xs: fn(*xs), specs or [TensorSpec(x.dims, x.dtype) for x in given])
    captured = [c if isinstance(c, Tensor) else c._read_tensor() for c in traced.captures]
    if not all(map(is_pure, traced.graph.walk())):  # traced draws continue streams of their own
        def fn(*xs: Any) -> list[Any]:
            return run_graph(traced.graph, [*xs, *captured])
    tf.random.set_seed(1)
    with tf.GradientTape() as tape:
        tape.watch(given)
        results = fn(*given)
    smooth = [r.dtype.is_differentiable for r in results]
    cts = [random_like(rng, r) for r, s in zip(results, smooth, strict=True) if s]
    wanted = tape.gradient([r for r, s in zip(results, smooth, strict=True) if s], list(given), cts)
    both = vjp(traced.graph, [True] * len(given) + [False] * len(captured))
    verify(both.forward)
    verify(both.backward().graph)
    tf.random.set_seed(1)
    again, actual = pulled(both, [*given, *captured], cts)
    for a, b in zip(results, again, strict=False):
        assert same(a, b), f"the eager result is {a}, that of the forward graph {b}"
    for i, (a, b) in enumerate(zip(wanted, actual, strict=False)):
        assert same(a, b), f"operand {i}: the tape gives {a}, the graph {b}"


def gradient_graph(graph: Graph) -> Graph:
    """The graph of the gradient of the sum of all smooth results of `graph`: its inputs -> their gradients.

    Inputs that are not differentiable, or not connected, give zeros.
    """
    both = vjp(graph, [v.dtype.is_differentiable for v in graph.inputs])
    back = both.backward()
    made = Graph("gradient")
    made.guards = [*both.forward.guards, *back.graph.guards]
    inputs = [made.add_input(v.dims, v.dtype) for v in graph.inputs]
    builder = Builder(made)
    with use_interpreter(builder), dm.recording(dm.assumed(made.guards)):
        results = builder.inline(both.forward, inputs)
        kept = [results[n] if n >= 0 else inputs[-1 - n] for n in (both.sources[i] for i in back.reads)]
        seeds = [grad.ones_like(r) for r, s in zip(results, both.seeded, strict=False) if s]
        actual = iter(builder.inline(back.graph, [*kept, *seeds]))
        made.outputs = [next(actual) if g else grad.zeros_like(v) for g, v in zip(back.connected, inputs, strict=True)]
    return verify(made)


def differences(run: Callable[[list[np.ndarray]], float], at: Sequence[np.ndarray], step: float = 1e-5) -> list[Any]:
    """Central differences of a function of float64 arrays, by each of their elements."""
    actual = []
    for i, array in enumerate(at):
        slope = np.zeros_like(array)
        for index in np.ndindex(array.shape):
            ends = []
            for sign in (1, -1):
                moved = [a.copy() for a in at]
                moved[i][index] += sign * step
                ends.append(run(moved))
            slope[index] = (ends[0] - ends[1]) / (2 * step)
        actual.append(slope)
    return actual


def check_orders(fn: Callable[..., list[Any]], given: Sequence[Tensor], specs: Sequence[TensorSpec] | None = None,
                 orders: int = 2) -> None:
    """Gradients of a function of float64 tensors, to several orders, agree with differences of those one order below.

    The first order is compared with the eager tape's, to the bit, too.
    """
    compare(fn, given, specs)
    graph = trace(lambda *xs: fn(*xs), specs or [TensorSpec(x.dims, x.dtype) for x in given]).graph
    arrays = [np.array(x._array) for x in given]
    for order in range(1, orders + 1):
        below, graph = graph, gradient_graph(graph)

        def total(moved: list[np.ndarray], below: Graph = below) -> float:
            return float(sum(r._array.sum() for r in run_graph(below, [wrap(a) for a in moved])))
        for got, want in zip(run_graph(graph, given), differences(total, arrays), strict=True):
            np.testing.assert_allclose(got._array, want, rtol=1e-6, atol=1e-7, err_msg=f"order {order}")
