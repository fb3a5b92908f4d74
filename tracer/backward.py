"""Programs for what tapes play in eager execution again and again (`eager/playing.py` says when).

A pass is traced like a function of the tensors that the tape saved, by playing it once with symbolic ones.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence

from twofold.eager import playing
from twofold.eager.playing import Entry
from twofold.eager.tensor import Tensor
from twofold.ir import graph as g
from twofold.ir.dims import Dim
from twofold.ir.spec import TensorSpec
from twofold.runtime import log, sharing

from . import running, traced
from .types import Cotangent

__all__ = ["compiled"]


def compiled(entries: Sequence[Entry], numbers: Sequence[Sequence[int]], cts: dict[int, Tensor],
             stored: bool) -> Callable[..., list[Cotangent]] | None:
    """A program for a backward pass; see `eager.playing.compile_with`.

    Nothing is compiled where TWOFOLD_COMPILE_GRADIENTS=0, and where the pass has effects or cannot be traced.
    """
    if os.environ.get("TWOFOLD_COMPILE_GRADIENTS", "1") == "0":
        return None
    targets = list(cts)

    def backward(*tensors: Tensor) -> list[Cotangent]:
        following = iter(tensors)
        again = [(op, attrs, ins, outs, _replaced(inputs, following), _replaced(outputs, following))
                 for op, attrs, ins, outs, inputs, outputs in entries]
        return playing.play(playing.path(again, numbers), {n: next(following) for n in targets}, free=False)

    saved = [x for e in entries for x in (*e[4], *e[5]) if type(x) is Tensor] + list(cts.values())
    try:
        pull = traced.trace(backward, [TensorSpec(t.dims, t.dtype) for t in saved], "backward")
        if any(g.effect_of(node) is not None for node in pull.graph.walk()) or (stored and not running.is_stored(pull)):
            return None
        from twofold.runtime.compiled import native  # imports compilers, which eager code does not need

        program = native(pull.runner.program.whole)
        if program is not None and not isinstance(program.about.work, Dim) and program.about.work < sharing.IN_BACKWARD:
            program.run_alone()
        return pull.runner.call
    except Exception as error:  # noqa: BLE001 - whatever it is, playing op by op does not meet it, or tells the user
        log.log("gradient", f"compiling a backward pass failed: {type(error).__name__}: {error}")
        return None


def _replaced(values: Sequence[Tensor | TensorSpec], tensors: Iterator[Tensor]) -> list[Tensor | TensorSpec]:
    """Operands or results of an entry with the next of `tensors` for each tensor."""
    return [next(tensors) if type(x) is Tensor else x for x in values]

