"""Functions with a gradient of their own inside of a trace: `custom` nodes, which keep the gradient with the graph.

Tapes of the trace are told as in eager execution. The node is for gradients of the graph as such: of a region that a
tape outside of it sees as one, and of the whole function.
"""

from __future__ import annotations

from collections.abc import Sequence

from twofold.eager.tensor import Tensor
from twofold.ir import graph as g
from twofold.ir.errors import UnimplementedError
from twofold.ir.spec import spec
from twofold.ir.types import Attrs, Spec

from .symbolic import SymbolicValueError
from .trace import Trace, stages_custom
from .types import Backward, Captured

__all__ = ["stage_custom"]

@stages_custom
def stage_custom(trace: Trace, results: Sequence[Tensor], inputs: Sequence[Tensor],
                 backward: Backward) -> tuple[Tensor, ...]:
    """Return `results` as they leave a function whose gradient is `backward`.

    Args:
        trace: the trace under way.
        results: of the function.
        inputs: the tensors that it has gradients for.
        backward: from a cotangent for each result to a cotangent or None for each input.
    """
    specs = [spec(r.dims, r.dtype) for r in results]
    operands, region, attrs = _gradient(trace, specs, inputs, backward)
    attrs = {"results": len(results), "inputs": len(inputs), **attrs}
    values = [trace.lift(t) for t in [*results, *inputs, *operands]]
    return trace.add(g.CUSTOM, values, attrs, specs, [region])


def _gradient(trace: Trace, specs: Sequence[Spec], inputs: Sequence[Tensor],
              backward: Backward) -> tuple[list[Tensor], g.Graph, Attrs]:
    """The tensors that the gradient captures besides the inputs, its graph, and its attributes.

    A gradient that fails does so when it is asked for.
    """
    try:
        region = trace.region("gradient", specs, lambda *cts: backward(list(cts)))
        if region.assigned:
            raise UnimplementedError(None, "custom_gradient", "custom_gradient: inside of tf.function a gradient "
                                     "function must not assign variables.")
        cotangents = [None if ct is None else region.lift(ct) for ct in region.result]
    except SymbolicValueError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever it is, it is raised when the gradient is asked for
        return [], g.Graph("gradient"), {"given": (True,) * len(inputs), "error": error}
    own = [trace.own_or_captured(t) for t in inputs]
    captured = region.trace.captured
    once: list[Captured] = list({id(t): t for t in [*own, *captured]}.values())
    graph = region.graph_over(once, [v for v in cotangents if v is not None])
    count = len(specs)
    places = {id(t): v for t, v in zip(once, graph.inputs[count:], strict=True)}
    rest = [t for t in once if not any(t is x for x in own)]
    # An input may be there twice.
    taken = [places.pop(id(t)) if id(t) in places else g.Value(t.dims, t.dtype) for t in own]
    graph.inputs = [*graph.inputs[:count], *taken, *[places[id(t)] for t in rest]]
    for i, v in enumerate(graph.inputs):
        v.index = i
    operands = [t if isinstance(t, Tensor) else trace.read_variable(t) for t in rest]
    return operands, graph, {"given": tuple([v is not None for v in cotangents])}
