"""Variables that a traced function creates: their first values, computed at once.

A function may create variables in its first trace only. What they start from is then a value of the graph, such as
the result of a random op; the part of the graph that it depends on is run here, each node once, so that variables
which share a draw share its numbers. `tracer/function.py` traces such a function a second time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from twofold.eager import convert, record
from twofold.eager.constructs import run_construct
from twofold.eager.tensor import Tensor, where_asked
from twofold.eager.variable import Variable
from twofold.ir import graph as g
from twofold.ir.dtypes import DType
from twofold.ir.op import apply, use_interpreter
from twofold.ir.replay import bind_sizes, resolve

from .symbolic import SymbolicTensor, TraceLike
from .types import PythonValue, Sizes

__all__ = ["Creation", "eagerly"]

ONCE = ("tf.function only supports singleton tf.Variables created on the first call. Make sure the tf.Variable is only "
        "created once or created outside tf.function. See "
        "https://www.tensorflow.org/guide/function#creating_tfvariables for more information.")
NO_VALUE = ("Tensor-typed variable initializers must either be wrapped in an init_scope or callable (e.g., "
            "`tf.Variable(lambda : tf.truncated_normal([10, 40]))`) when building functions: this one depends on an "
            "argument whose value is not known.")


@contextmanager
def eagerly() -> Iterator[None]:
    """Run ops at once in this block, whatever is traced around it, and tell no recorder."""
    with use_interpreter(None), record.telling(()):  # type: ignore[arg-type]
        yield


class Creation:
    """The creation of variables in the trace of one function, its regions included.

    Attributes:
        allowed: whether variables may be created.
        values: the tensors of the call, where the trace was made for one.
    """

    def __init__(self, trace: TraceLike) -> None:
        self.allowed = True
        self.values: Sequence[Tensor] | None = None
        self._trace = trace
        self._computed: dict[g.Value, Tensor] = {}
        self._sizes: Sizes = {}

    def initial_value(self, value: PythonValue, dtype: DType | None) -> Tensor:
        """The first value of a variable, as an eager tensor on the device that `tf.device` asks for.

        Raises:
            ValueError: no variable may be created, or the value depends on what is not known yet.
        """
        self.once()
        if callable(value) and not hasattr(value, "_read_tensor"):
            with eagerly():
                return where_asked(convert.as_tensor(value(), dtype=dtype))
        start = convert.as_tensor(value, dtype=dtype)
        with eagerly():
            return where_asked(self._of_value(start.value, start.trace) if isinstance(start, SymbolicTensor) else start)

    def once(self) -> None:
        """Ask before variables are made, also by what makes them aside of the trace.

        Raises:
            ValueError: the function was traced before.
        """
        if not self.allowed:
            raise ValueError(ONCE)

    def _of_value(self, value: g.Value, trace: TraceLike) -> Tensor:
        """The value now; a depth-first walk that keeps its own stack, because graphs may be deep."""
        stack = [(value, trace)]
        while stack:
            top, owner = stack[-1]
            if top in self._computed:
                stack.pop()
                continue
            if top.node is None:
                waits = self._input(top, owner)
            else:
                waits = [(v, owner) for v in top.node.inputs if v not in self._computed]
                if not waits:
                    self._compute(top.node)
            if waits:
                stack += waits
        return self._computed[value]

    def _input(self, value: g.Value, trace: TraceLike) -> list[tuple[g.Value, TraceLike]]:
        """Note the value of an input of a graph; gives the values that must be computed first, if there are any."""
        own = len(trace.graph.inputs) - len(trace.captured)
        if value.index < own:
            if trace is not self._trace or self.values is None or value.index >= len(self.values) or isinstance(
                    self.values[value.index], SymbolicTensor):
                raise ValueError(NO_VALUE)
            source: Tensor | Variable = self.values[value.index]
        else:
            source = trace.captured[value.index - own]
            if isinstance(source, SymbolicTensor):
                if trace.parent is None:
                    raise ValueError(NO_VALUE)
                if source.value not in self._computed:
                    return [(source.value, source.trace)]
                source = self._computed[source.value]
        self._note(value, source if isinstance(source, Tensor) else source._value)
        return []

    def _note(self, value: g.Value, tensor: Tensor) -> None:
        self._computed[value] = tensor
        bind_sizes(value.dims, tensor.dims, self._sizes)

    def _compute(self, node: g.Node) -> None:
        operands = [self._computed[v] for v in node.inputs]
        if isinstance(node.op, g.Construct):
            results = run_construct(node, operands, self._sizes)
        else:
            computed = apply(node.op, tuple(operands), {k: resolve(v, self._sizes) for k, v in node.attrs.items()})
            results = computed if isinstance(computed, tuple) else (computed,)
        for value, result in zip(node.outputs, results, strict=True):
            self._note(value, result)
