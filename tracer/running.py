"""How a trace runs: the passes optimise its graph, which is compiled and called, by native code where that is possible.

A `Runner` belongs to one trace. It keeps the program, hands variables' memory over to it where nobody else needs
that, and stores what the program computes into variables. Which trace runs is `tracer/function.py`'s affair.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from twofold.eager.executing import executable, execute
from twofold.eager.tensor import Tensor, wrap
from twofold.eager.variable import Variable
from twofold.ir import graph as g
from twofold.ir import nest, passes
from twofold.ir.dims import Dim
from twofold.ir.spec import TensorSpec
from twofold.runtime import program_call

__all__ = ["Runner", "is_stored"]

_FIXED = (bool, int, float, str, bytes, type(None))  # arguments that native code can compare


class Runner:
    """What runs one trace.

    Attributes:
        graph: the graph after the passes, or the trace's where the program was found on disk.
        program: what it was compiled to.
        call: takes the tensors of a call and gives its result.
        variant: what native code needs to call it; None where it cannot.
    """

    def __init__(self, traced: Any, fast_math: bool = False) -> None:
        self.traced = traced
        label = _label(fast_math)
        self.program = executable(traced.graph, _donations(traced), improve=lambda graph: passes.optimise(
            graph, fast_math=fast_math), label=label)
        self.graph = self.program.graph
        self.call: Callable[..., Any] = self.slowly
        variant = self._variant()
        self.variant = None
        if variant is not None:
            self.variant, self.call = variant

    def slowly(self, *leaves: Tensor) -> Any:
        """The result, by way of Python."""
        return self.traced.step(leaves, self.outputs)

    def outputs(self, inputs: Sequence[Any]) -> list[Tensor]:
        """The outputs of the graph for all its inputs, which stay what they are."""
        arrays = [t._memory for t in inputs]
        for given in self.program.donated.values():
            arrays[given] = arrays[given].copy()
        return [wrap(a) for a in execute(self.program, arrays)]

    def _variant(self) -> Any:
        from twofold.runtime.compiled import native  # imports compilers, which eager code does not need

        traced, program = self.traced, native(self.program.whole)
        held = traced._captures
        if program is None or any(not _readable(c) for c in held) or not all(_accepts(v, s) for v, s in zip(
                traced.updates, traced.graph.outputs[len(traced.graph.outputs) - len(traced.updates):], strict=True)):
            return None
        fixed = [np.ascontiguousarray(c._array) if isinstance(c, Tensor) else c for c in held]
        return program_call.variant(program, traced.graph.inputs, [program_call.LEAF] * len(traced.specs) + fixed,
                                    self.slowly, updates=traced.updates, result=_form(traced))

    def for_arguments(self, args: Sequence[Any], leaves: Sequence[Any]) -> Any:
        """The variant for calls of the function with arguments like these; None where native code cannot tell them."""
        if self.variant is None:
            return None
        pattern, tensors = [], []
        for a in args:
            if type(a) is Tensor:
                tensors.append(a)
                pattern.append(program_call.LEAF)
            elif type(a) in _FIXED:
                pattern.append(a)
            else:
                return None
        if len(tensors) != len(leaves) or any(a is not b for a, b in zip(tensors, leaves, strict=True)):
            return None
        return program_call.for_arguments(self.variant, pattern)


def is_stored(traced: Any, fast_math: bool = False) -> bool:
    """Whether the program of a trace is on disk."""
    from twofold.runtime.compiled import Native  # imports compilers, which eager code does not need

    return Native.stored(traced.graph, _donations(traced), _label(fast_math)) is not None


def _label(fast_math: bool) -> str:
    """A text that tells the passes apart, for the key of a stored program."""
    return "fast" if fast_math else "passes"


def _readable(capture: Any) -> bool:
    """Whether native code can read it: an eager tensor, or a variable that is held and not weakly."""
    return type(capture) is Tensor or isinstance(capture, Variable)


def _accepts(variable: Any, value: g.Value) -> bool:
    """Whether a variable can hold all values of these dims, so that nothing needs checking."""
    if not isinstance(variable, Variable):
        return False
    declared = variable._shape.dims
    if declared is None:
        return True
    return len(declared) == len(value.dims) and all(
        want is None or (not isinstance(size, Dim) and want == size)
        for want, size in zip(declared, value.dims, strict=True))


def _donations(traced: Any) -> dict[int, int]:
    """Output number -> number of the input whose memory it may take: new values of variables, over the old ones."""
    first = len(traced.graph.outputs) - len(traced.updates)
    at = {id(c): n for n, c in enumerate(traced._captures, len(traced.specs)) if isinstance(c, Variable)}
    donations: dict[int, int] = {}
    for n, variable in enumerate(traced.updates, first):
        given, value = at.get(id(variable)), traced.graph.outputs[n]
        if given is None or any(isinstance(d, Dim) for d in value.dims):
            continue
        source = traced.graph.inputs[given]
        if source.dims == value.dims and source.dtype is value.dtype:
            donations[n] = given
    return donations


def _form(traced: Any) -> Any:
    """How native code puts the result together (see `program_call.variant`)."""
    if type(traced.result) is TensorSpec:
        return None
    steps: list[tuple[str, Any]] = []
    if _steps(traced.result, itertools.count(), steps):
        return steps
    return lambda *tensors: traced.packed(tensors)


def _steps(result: Any, numbers: Iterator[int], steps: list[tuple[str, Any]]) -> bool:
    """Appends the steps that make `result`; False where there is a container that native code cannot make."""
    if result is None or not nest.is_nested(result):
        steps.append(("object", None) if result is None else ("tensor", next(numbers)))
        return True
    if type(result) in (tuple, list):
        for child in result:
            if not _steps(child, numbers, steps):
                return False
        steps.append((type(result).__name__, len(result)))
        return True
    if type(result) is not dict:
        return False
    parts: dict[Any, list[tuple[str, Any]]] = {}
    for key, child in zip(nest.keys_of(result), nest.children(result), strict=True):  # tensors are in this order
        if not _steps(child, numbers, parts.setdefault(key, [])):
            return False
    steps += [step for key in result for step in parts[key]]
    steps.append(("dict", tuple(result)))
    return True
