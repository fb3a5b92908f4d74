"""How a trace runs: the passes optimise its graph, which is compiled and called, by native code where that is possible.

A `Runner` belongs to one trace. It keeps the program, hands variables' memory over to it where nobody else needs
that, and stores what the program computes into variables. Which trace runs is `tracer/function.py`'s affair.
"""

from __future__ import annotations

import itertools
import operator
import weakref
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeGuard

import numpy as np

from twofold.eager.constructs import run_construct
from twofold.eager.executing import asks_where, executable, execute
from twofold.eager.tensor import Tensor, wrap
from twofold.eager.variable import Variable
from twofold.ir import graph as g
from twofold.ir import nest, passes
from twofold.ir.dims import Dim
from twofold.ir.replay import bind_sizes
from twofold.ir.spec import TensorSpec
from twofold.runtime import program_call
from twofold.runtime.program_call import Variant

from .types import Args, Captured, InputSpec, PythonFunction, PythonValue, Structure

if TYPE_CHECKING:
    from twofold.runtime.program import Executable

__all__ = ["Runner", "accept", "are_plain", "is_stored"]

_FIXED = (bool, int, float, str, bytes, type(None))  # arguments that can be told by a comparison

#: a step that puts a result together, and its operand (`runtime/program_table.py: STEP`)
Step: TypeAlias = tuple[str, Any]


class Runnable(Protocol):
    """The part of a `Traced` that running it needs; `tracer/traced.py` says what the attributes are."""

    graph: g.Graph
    result: Structure

    @property
    def specs(self) -> Sequence[InputSpec]: ...

    @property
    def updates(self) -> Sequence[Variable | weakref.ref[Variable]]: ...

    @property
    def _captures(self) -> Sequence[Captured | weakref.ref[Variable]]: ...

    def step(self, leaves: Sequence[Tensor], run: Callable[[list[Tensor]], Sequence[Tensor]]) -> Structure:
        """The result for the tensors of a call, by way of Python."""

    def packed(self, tensors: Sequence[Tensor]) -> Structure:
        """The structure of the result with these tensors."""


class Runner:
    """The runner of one trace.

    Attributes:
        graph: the graph after the passes, or the trace's where the program was found on disk.
        program: the compiled graph.
        call: takes the tensors of a call and gives its result.
        variant: the table by which native code calls it; None where it cannot.
    """

    def __init__(self, traced: Runnable, fast_math: bool = False, leaves: Sequence[Tensor] = ()) -> None:
        """Args:
            leaves: the tensors of the first call, as far as there is one.
        """
        self.traced = traced
        sizes: dict[str, int] = {}
        for value, leaf in zip(traced.graph.inputs, leaves, strict=False):  # captured tensors follow
            bind_sizes(value.dims, leaf.dims, sizes)
        label = _label(fast_math)
        self.program = executable(traced.graph, _donations(traced), improve=lambda graph: passes.optimise(
            graph, fast_math=fast_math), label=label, sizes=sizes)
        self.graph = self.program.graph
        self.call: PythonFunction = self.slowly
        self.variant: Variant | None = None
        if self.program.rest is not None:
            self.call = _PythonFirst(traced, self.program, self.slowly)
        elif (variant := self._variant()) is not None:
            self.variant, self.call = variant

    def slowly(self, *leaves: Tensor) -> Structure:
        """The result, by way of Python."""
        return self.traced.step(leaves, self.outputs)

    def outputs(self, inputs: Sequence[Tensor]) -> list[Tensor]:
        """The outputs of the graph for all its inputs, which stay what they are."""
        return [wrap(a) for a in execute(self.program, [t._memory for t in inputs])]

    def _variant(self) -> tuple[Variant, Callable[..., Structure]] | None:
        numbers = list(range(len(self.traced.graph.inputs)))
        return _native_call(self.traced, self.program, numbers, self.traced.graph.inputs, self.slowly)

    def for_arguments(self, args: Args, leaves: Sequence[Tensor]) -> Variant | None:
        """The variant for calls of the function with arguments like these; None where native code cannot tell them."""
        if self.variant is None or not are_plain(args, leaves):
            return None
        pattern: list[PythonValue] = [program_call.LEAF if type(a) is Tensor else a for a in args]
        return program_call.for_arguments(self.variant, pattern)


def _native_call(traced: Runnable, program: Executable, numbers: Sequence[int | None], inputs: Sequence[g.Value],
                 slow: PythonFunction) -> tuple[Variant, PythonFunction] | None:
    """The variant by which native code calls a program, and a builtin that takes its tensors; None where it cannot.

    Args:
        program: whose outputs are those of the trace.
        numbers: for each input of the program, which input of the trace's graph it is; None where it is none of them.
        inputs: of the program's graph.
        slow: see `program_call.variant`.
    """
    from twofold.runtime.compiled import native  # imports compilers, which eager code does not need

    code, count = native(program.whole), len(traced.specs)
    captures = [None if n is None or n < count else traced._captures[n - count] for n in numbers]
    updates = [v for v in traced.updates if isinstance(v, Variable)]
    if code is None or not all(c is None or _readable(c) for c in captures) or len(updates) < len(traced.updates):
        return None
    if not accept(updates, traced.graph):
        return None
    sources: list[program_call.InputSource] = [
        program_call.LEAF if c is None else np.ascontiguousarray(c._array) if isinstance(c, Tensor) else c  # type: ignore
        for c in captures]
    return program_call.variant(code, inputs, sources, slow, updates=updates, result=_form(traced))


class _PythonFirst:
    """How a trace is called whose program begins with calls of Python (`Executable.first`, `rest`): Python makes these,
    and then calls the rest as native code.

    Attributes:
        given: the inputs of the rest that a call hands to native code: results of Python, and tensors of the call. It
            finds the others, which are captured, by itself.
        places: for each input of the rest its number among `given` and the captured tensors behind them.
        known: the captured tensors that Python is called with.
        rest: the native call; None where native code cannot make it.
    """

    def __init__(self, traced: Runnable, program: Executable, slowly: PythonFunction) -> None:
        """Args:
            slowly: runs all of it by way of Python.
        """
        self.traced, self.program, self.slowly = traced, program, slowly
        inputs, count = program.graph.inputs, len(traced.specs)
        at = {value: n for n, value in enumerate(inputs)}
        self.given = [value for value in program.rest_inputs if at.get(value, -1) < count]
        self.places = [self.given.index(value) if (n := at.get(value, -1)) < count else n - count + len(self.given)
                       for value in program.rest_inputs]
        captured = {value: traced._captures[n - count] for node in program.first for value in node.inputs
                    if (n := at.get(value, -1)) >= count}
        self.known = {value: capture for value, capture in captured.items() if type(capture) is Tensor}
        self.rest: PythonFunction | None = None
        assert program.rest is not None
        self.executable = program.rest
        if len(self.known) == len(captured):
            numbers = [at.get(value) for value in program.rest_inputs]
            native = _native_call(traced, program.rest, numbers, program.rest.graph.inputs, self.rest_slowly)
            self.rest = None if native is None else native[1]

    def __call__(self, *leaves: Tensor) -> Structure:
        if self.rest is None or asks_where():
            return self.slowly(*leaves)
        values = {**self.known, **dict(zip(self.program.graph.inputs, leaves, strict=False))}
        for node in self.program.first:
            values.update(zip(node.outputs, run_construct(node, [values[v] for v in node.inputs], {}), strict=True))
        return self.rest(*[values[v] for v in self.given])

    def rest_slowly(self, *tensors: Tensor) -> Structure:
        """The rest by way of Python, for what native code is called with."""
        return self.traced.step(tensors, self.outputs)

    def outputs(self, inputs: list[Tensor]) -> list[Tensor]:
        """The outputs of the rest for what it is called with, and the captures of the trace."""
        return [wrap(a) for a in execute(self.executable, [inputs[n]._memory for n in self.places])]


def are_plain(args: Args, leaves: Sequence[Tensor]) -> bool:
    """Whether arguments are those tensors, in this order, and values that can be told by a comparison."""
    tensors = [a for a in args if type(a) is Tensor]
    return len(tensors) == len(leaves) and all(map(operator.is_, tensors, leaves)) and all(
        type(a) is Tensor or type(a) in _FIXED for a in args)


def is_stored(traced: Runnable, fast_math: bool = False) -> bool:
    """Whether the program of a trace is on disk."""
    from twofold.runtime import compiled  # imports compilers, which eager code does not need

    return compiled.is_stored(traced.graph, _donations(traced), _label(fast_math))


def _label(fast_math: bool) -> str:
    """A text that tells the passes apart, for the key of a stored program."""
    return "fast" if fast_math else "passes"


def _readable(capture: Captured | weakref.ref[Variable]) -> TypeGuard[Tensor | Variable]:
    """Whether native code can read it: an eager tensor of the host, or a variable that is held and not weakly."""
    if type(capture) is Tensor:
        return isinstance(capture._memory, np.ndarray)
    return isinstance(capture, Variable)


def accept(variables: Sequence[Variable], graph: g.Graph) -> bool:
    """Whether variables can hold whatever the last outputs of a graph are, so that nothing needs checking."""
    return all(map(_accepts, variables, graph.outputs[len(graph.outputs) - len(variables):]))


def _accepts(variable: Variable, value: g.Value) -> bool:
    """Whether a variable can hold all values of these dims."""
    declared = variable._shape.dims
    if declared is None:
        return True
    return len(declared) == len(value.dims) and all(
        want is None or (not isinstance(size, Dim) and want == size)
        for want, size in zip(declared, value.dims, strict=True))


def _donations(traced: Runnable) -> dict[int, int]:
    """Output number -> number of the input whose memory it may take: new values of variables, over the old ones."""
    first = len(traced.graph.outputs) - len(traced.updates)
    at = {id(c): n for n, c in enumerate(traced._captures, len(traced.specs)) if isinstance(c, Variable)}
    donations: dict[int, int] = {}
    for n, variable in enumerate(traced.updates, first):
        number, value = at.get(id(variable)), traced.graph.outputs[n]
        if number is None or any(isinstance(d, Dim) for d in value.dims):
            continue
        source = traced.graph.inputs[number]
        if source.dims == value.dims and source.dtype is value.dtype:
            donations[n] = number
    return donations


def _form(traced: Runnable) -> list[Step] | Callable[..., Structure] | None:
    """How native code puts the result together (see `program_call.variant`)."""
    if type(traced.result) is TensorSpec:
        return None
    steps: list[Step] = []
    if _steps(traced.result, itertools.count(), steps):
        return steps
    return lambda *tensors: traced.packed(tensors)


def _steps(result: Any, numbers: Iterator[int], steps: list[Step]) -> bool:
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
    parts: dict[Hashable, list[Step]] = {}
    for key, child in zip(nest.keys_of(result), nest.children(result), strict=True):  # tensors are in this order
        if not _steps(child, numbers, parts.setdefault(key, [])):
            return False
    steps += [step for key in result for step in parts[key]]
    steps.append(("dict", tuple(result)))
    return True
