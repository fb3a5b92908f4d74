"""The gradient of a trace as one more function: it takes a cotangent for each float result, and gives the results,
then the cotangents of float inputs and of trainable variables.

What it computes is what a tape around a call would: forward and backward graph are those of `ir/autodiff.py`.
"""

from __future__ import annotations

from twofold.eager.variable import Variable
from twofold.ir import graph as g
from twofold.ir.autodiff import vjp
from twofold.ir.build import Builder, splice
from twofold.ir.op import use_interpreter
from twofold.tracer.traced import Traced

from .assemble import Part, part_of
from .interface import identifier, unique
from .lowering import Streams

__all__ = ["gradient_of"]


def gradient_of(name: str, traced: Traced, streams: Streams) -> Part | None:
    """The part `NAME_grad`; None where nothing has a gradient."""
    part = part_of(name, traced, streams)
    graph, count, results = part.graph, len(part.inputs), len(part.outputs)
    wanted = [v.dtype.is_differentiable for v in graph.inputs[:count]]
    wanted += [isinstance(c, Variable) and c.trainable and v.dtype.is_differentiable
               for c, v in zip(part.captures, graph.inputs[count:], strict=True)]
    seeded = tuple([v.dtype.is_differentiable and n < results for n, v in enumerate(graph.outputs)])
    if not any(wanted) or not any(seeded):
        return None
    both = vjp(graph, wanted, seeded)
    back = both.backward(seeded)
    if not any(back.connected):
        return None
    made = g.Graph(f"{graph.name}_grad")
    inputs = [made.add_input(v.dims, v.dtype, v.name) for v in graph.inputs]
    cotangents = [made.add_input(v.dims, v.dtype, "") for v, s in zip(graph.outputs, seeded, strict=True) if s]
    builder = Builder(made)
    with use_interpreter(builder):
        outputs = splice(builder, both.forward, inputs)
        kept = [outputs[n] if n >= 0 else inputs[-1 - n] for n in both.sources]
        results_of_gradient = splice(builder, back.graph, [*[kept[n] for n in back.reads], *cotangents])
    made.inputs = [*inputs[:count], *cotangents, *inputs[count:]]
    for n, value in enumerate(made.inputs):
        value.index = n
    made.outputs = [*outputs[:results], *results_of_gradient, *outputs[results:len(graph.outputs)]]
    made.guards = list(dict.fromkeys([*both.forward.guards, *back.graph.guards]))
    sources = [*part.inputs, *[identifier(getattr(c, "name", ""), "captured") for c in part.captures]]
    cts = [f"ct_{n}" for n, s in zip(part.outputs, seeded, strict=False) if s]
    gradients = [f"d_{n}" for n, connected in zip(sources, back.connected, strict=True) if connected]
    return Part(f"{name}_grad", f"the gradient of {part.title}", made, unique([*part.inputs, *cts]),
                unique([*part.outputs, *gradients]), part.captures, part.updates)
