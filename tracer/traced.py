"""`Traced`: the graph of a function for one signature, what it captures, and how its results are put together.

`trace_function` makes one. It runs eagerly op by op, or is staged as a `call` node where another trace is under way.
Which signature a call has is `tracer/signature.py`'s, which trace serves it `tracer/function.py`'s.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from twofold.eager import convert, record
from twofold.eager.tensor import Tensor, alias
from twofold.ir import dims as dm
from twofold.ir import errors, nest, symbols
from twofold.ir import graph as g
from twofold.ir.dims import Dim
from twofold.ir.replay import bind_sizes
from twofold.ir.spec import TensorSpec, spec
from twofold.runtime import claims, locks

from . import watching
from .differentiable import Differentiable
from .host import drop_unranked
from .running import Runner
from .shapes import SizeAskedError
from .signature import CallArguments, Parameters, template
from .staging import stage_graph
from .symbolic import SymbolicTensor
from .trace import LeakedTensorError, Trace

__all__ = ["Traced", "trace_function", "trace"]


_numbers = itertools.count()


class Traced:
    """A traced function.

    Attributes:
        name: of the function.
        graph: inputs are the tensors of the call, then one for each of `captures`; outputs are the tensors of the
            result, then one for each of `updates`.
        specs: of the tensors of the call.
        updates: the variables that a run assigns.
        result: the structure of the result, with specs for tensors and None for None.
        relaxed: whether unknown sizes were assumed by ourselves.
        number: tells it from all other traces.
        reason: why it was made.
        fast_math: whether results may differ from eager ones by rounding.
        form: `(args, kwargs)` that it was traced for, with specs for tensors; objects are held weakly.
        arguments: `(name, kind, value)` of each, likewise.
    """

    def __init__(self, name: str, graph: g.Graph, captures: Sequence[Any], specs: Sequence[Any], result: Any,
                 updates: list[Any], relaxed: bool) -> None:
        self.name, self.graph, self.specs, self.relaxed = name, graph, list(specs), relaxed
        self.result, self.updates = result, updates
        self.number = next(_numbers)
        self.form: Any = ((), {})
        self.arguments: list[tuple[str, str, Any]] = []
        self.reason, self.fast_math = "", False
        self._program = Differentiable(self.graph)
        self._runner: Runner | None = None
        self._compiling = locks.RLock()
        self._claim: claims.Claim | None = None
        self._captures = list(captures)
        self._empty = [leaf is None for leaf in nest.flatten(result)]
        bound = self.graph.symbols()
        self._guards = [q for q in self.graph.guards if q.symbols() <= bound]
        self._symbolic = any(isinstance(d, Dim) for v in self.graph.inputs for d in v.dims)
        self._loose = [(c, v) for c, v in zip(self._captures, self.graph.inputs[len(self.specs):], strict=True)
                       if not isinstance(c, Tensor) and c._shape.num_elements() is None]
        self.outer = next((c.trace for c in self._captures if isinstance(c, SymbolicTensor)), None)

    def describe(self, form: tuple[tuple[Any, ...], dict[str, Any]], parameters: Parameters) -> None:
        """Note the arguments that this was traced for, with specs for tensors.

        Args:
            form: `(args, kwargs)` of the call.
            parameters: of the function.
        """
        args, kwargs = form
        self.form = tuple([template(a) for a in args]), {k: template(v) for k, v in kwargs.items()}
        named = parameters.names(CallArguments(args, kwargs))
        self.arguments = [(name, kind, template(value)) for name, kind, value in named]

    # -- captures ---------------------------------------------------------------------------------
    def hold_weakly(self, arguments: Sequence[Any]) -> None:
        """Keep no variable among `arguments` alive: whoever calls has it."""
        known = {id(a) for a in arguments}
        self._captures = [weakref.ref(c) if id(c) in known else c for c in self._captures]
        self._loose = [(weakref.ref(c) if id(c) in known else c, v) for c, v in self._loose]
        self.updates = [weakref.ref(v) if id(v) in known else v for v in self.updates]

    @property
    def captures(self) -> list[Any]:
        """The tensors and variables from outside that it reads."""
        return [_held(c) for c in self._captures]

    @property
    def variables(self) -> list[Any]:
        """The variables that it reads or assigns."""
        return [c for c in self.captures if not isinstance(c, Tensor)]

    @property
    def assigned(self) -> list[Any]:
        """The variables that a run assigns, for each of `updates`."""
        return [_held(v) for v in self.updates]

    def usable(self, here: Any) -> bool:
        """Whether the tensors that it captures of a surrounding function can be read in the trace `here`."""
        if self.outer is None:
            return True
        while here is not None:
            if here is self.outer:
                return True
            here = here.parent or here.enclosing
        return False

    # -- sizes ------------------------------------------------------------------------------------
    def accepts(self, shapes: Sequence[Any], assume: bool = False) -> dict[str, Any] | None:
        """The values of the symbols for tensors of these shapes; None where the trace does not accept them.

        Args:
            shapes: of the tensors of a call, or of more of the graph's inputs.
            assume: whether a guard that speaks of unknown sizes is passed on to the trace that is under way.
        """
        env: dict[str, Any] = {}
        for value, given in zip(self.graph.inputs, shapes, strict=False):
            if not _fits(value.dims, given, env):
                return None
        for variable, value in self._loose:
            if not _fits(value.dims, _held(variable)._current().dims, env):
                return None
        return env if all(_holds(guard, env, assume) for guard in self._guards) else None

    # -- running ----------------------------------------------------------------------------------
    def __call__(self, leaves: Sequence[Any]) -> Any:
        """The result for tensors that it accepts."""
        return self._run(leaves) if not watching.watchers else watching.told(self, leaves, self._run)

    def _run(self, leaves: Sequence[Any]) -> Any:
        return self.step(leaves, self.execute) if record.active.get() else self.runner.call(*leaves)

    def step(self, leaves: Sequence[Any], run: Callable[[list[Any]], Sequence[Any]],
             outer: Sequence[Any] = ()) -> Any:
        """The result, by way of Python: one step for all others that touch the same variables.

        Args:
            run: from the inputs of the graph to its outputs.
            outer: what the captured tensors of a surrounding trace are now.
        """
        if not self.updates:
            return self.packed(run([*leaves, *self.read(outer)]))
        with claims.claimed(self.claim):
            out = run([*leaves, *self.read(outer)])
            fixed = len(out) - len(self.updates)
            self.commit(out[fixed:])
        return self.packed(out[:fixed])

    @property
    def claim(self) -> claims.Claim:
        """The claim on variables that a run takes."""
        if self._claim is None:
            self._claim = claims.Claim([v._word for v in self.variables], [v._word for v in self.assigned])
        return self._claim

    def read(self, outer: Sequence[Any] = ()) -> list[Any]:
        """The tensors of the captures, those of all variables at one moment."""
        held, given = self.captures, iter(outer)
        values = iter(claims.snapshot(tuple([c for c in held if not isinstance(c, Tensor)])))
        current = [next(values) if not isinstance(c, Tensor) else next(given) if outer and isinstance(c, SymbolicTensor)
                   else c for c in held]
        for recorder in record.active.get():
            for c, value in zip(held, current, strict=True):
                if not isinstance(c, Tensor):
                    recorder._variable_read(c, value)
        return current

    @property
    def runner(self) -> Runner:
        """The runner that executes the trace while no recorder watches."""
        if self._runner is None:
            with self._compiling:
                if self._runner is None:
                    self._runner = Runner(self, self.fast_math)
        return self._runner

    @property
    def variant(self) -> Any:
        """The variant through which native code calls the trace, once it has run; None where native code cannot."""
        return None if self._runner is None else self._runner.variant

    def execute(self, inputs: Sequence[Any]) -> list[Any]:
        """The outputs of the graph."""
        return self._program(inputs)

    def commit(self, values: Sequence[Any]) -> None:
        """Give the variables their values, at one moment: all of them, or none."""
        variables = tuple(self.assigned)
        for variable, value in zip(variables, values, strict=True):
            variable._check(value)
        told = bool(record.active.get())  # recorders know the values by the tensors that the run gave
        claims.commit(variables, tuple([value if told else alias(value) for value in values]))

    def _finish(self, out: Sequence[Any]) -> Any:
        """The result in a trace, after the variables have got their values there."""
        if not self.updates:
            return self.packed(out)
        fixed = len(out) - len(self.updates)
        written = [(_held(v), value) for v, value in zip(self.updates, out[fixed:], strict=True)]
        for variable, value in written:
            variable._check(value)
        for variable, value in written:
            variable._take(value)
        return self.packed(out[:fixed])

    def packed(self, tensors: Sequence[Any]) -> Any:
        """The structure of the result with these tensors."""
        if type(self.result) is TensorSpec:
            return tensors[0]
        given = iter(tensors)
        return nest.pack(self.result, [None if empty else next(given) for empty in self._empty])

    # -- inside of another trace ------------------------------------------------------------------
    def stage(self, outer: Trace, leaves: Sequence[Any], env: dict[str, Any]) -> Any:
        """The result in `outer`: a `call` node, or the ops themselves where a tape of the trace records."""
        given = [c if isinstance(c, Tensor) else c._read_tensor() for c in self.captures]
        operands = [*leaves, *given]
        for value, operand in zip(self.graph.inputs, operands, strict=True):
            bind_sizes(value.dims, operand.dims, env)
        if record.active.get():
            return self._finish(stage_graph(self.graph, operands, env))
        known = {name: env[name] for name in self.graph.symbols() if name in env}
        specs = self._specs_in(outer, known)
        attrs = {"name": self.name, "sizes": tuple(sorted(known.items()))}
        return self._finish(outer.construct(g.CALL, operands, attrs, specs, [self.graph.copy()]))


    def _specs_in(self, outer: Trace, known: dict[str, Any]) -> list[Any]:
        """The results of a call in `outer`, where `known` sizes have these names; others get new ones.

        A size that the graph brings and that no result has by itself is unknown outside: so is what it is a part of.
        """
        names = dict(known)
        for name in sorted({n for v in self.graph.outputs for n in symbols.alone(v.dims)} - known.keys()):
            names[name] = outer.fresh(name.rpartition("_")[0] or name)
        rest: dict[Dim, Dim] = {}

        def named(size: Any) -> Any:
            if not isinstance(size, Dim) or size.symbols() <= names.keys():
                return size.substitute(names) if isinstance(size, Dim) else size
            if size not in rest:
                rest[size] = outer.fresh("d")
            return rest[size]
        return [spec(tuple(map(named, v.dims)), v.dtype) for v in self.graph.outputs]


def _held(capture: Any) -> Any:
    if type(capture) is not weakref.ref:
        return capture
    target = capture()
    if target is None:
        raise errors.FailedPreconditionError("a variable that this function was traced with has been deleted.")
    return target


def _fits(dims: Sequence[Any], given: Sequence[Any], env: dict[str, Any]) -> bool:
    """Whether sizes can be those of `dims`; notes in `env` what the symbols are."""
    if len(dims) != len(given):
        return False
    for have, size in zip(dims, given, strict=True):
        name = have.name_alone() if isinstance(have, Dim) else None
        if name is not None and name not in env:
            env[name] = size
            continue
        wanted = have.substitute(env) if isinstance(have, Dim) else have
        if wanted != size and dm.decide_eq(wanted, size) is not True:
            return False
    return True


def _holds(guard: dm.Guard, env: dict[str, Any], assume: bool) -> bool:
    left, right = dm.substitute((guard.left, guard.right), env)
    if assume:
        return dm.require(left, guard.op, right)
    return dm.decide(left, guard.op, right) is True


def trace_function(fn: Callable[..., Any], name: str, specs: Sequence[Any], build: Callable[[list[Any]], Any], *,
                   names: Sequence[str] = (), soft: Sequence[str] = (), values: Sequence[Any] | None = None,
                   may_create: bool = True) -> tuple[Traced, list[Any]]:
    """`fn` traced for tensors of `specs`.

    Args:
        fn: the Python function.
        name: its name.
        specs: of the tensors of the call, each size a number or a symbol.
        build: from tensors, in the order of `specs`, to `(args, kwargs)`.
        names: of the inputs.
        soft: the symbols that we chose ourselves: Python may not ask what they are.
        values: the tensors of the call, where there are any, for variables that are computed from them.
        may_create: whether the function may create variables.
    Returns:
        The trace, and the variables that were made meanwhile.
    """
    tracing = Trace(name)
    tracing.begin(soft, values, may_create)
    with record.telling(()), tracing.active():
        given = [tracing.input(s.dims, s.dtype, n) for s, n in zip(specs, names or [""] * len(specs), strict=True)]
        args, kwargs = build(list(given))
        returned = fn(*args, **kwargs)
        leaves = [_result(leaf, name) for leaf in nest.flatten(returned)]
        outputs = [tracing.lift(t) for t in leaves if t is not None]
    tracing.creation.values = None  # the call's tensors go when the caller lets them go
    if tracing.relaxed is not None and tracing.relaxed.asked:
        raise SizeAskedError("Python asked for a size that was left open.")
    drop_unranked(tracing.graph)
    result = nest.pack(returned, [None if t is None else TensorSpec(t.dims, t.dtype) for t in leaves])
    written = [s for s in tracing.variables.values() if s.assigned]
    tracing.graph.outputs = outputs + [s.tensor.value for s in written]
    traced = Traced(name, tracing.graph, tracing.captured, specs, result, [s.variable for s in written], bool(soft))
    return traced, tracing.made


def _result(leaf: Any, name: str) -> Tensor | None:
    """A leaf of a result as a tensor; None stays None.

    Raises:
        TypeError: it is nothing that a function can return.
    """
    if leaf is None:
        return None
    try:
        return convert.as_tensor(leaf)
    except (TypeError, ValueError) as e:
        if isinstance(e, LeakedTensorError):
            raise
        raise TypeError(
            "To be compatible with tf.function, Python functions must return zero or more Tensors or ExtensionTypes or "
            f"None values; in compilation of {name}, found return value of type {type(leaf).__name__}, which is not a "
            "Tensor or ExtensionType.") from None


def trace(fn: Callable[..., Any], specs: Sequence[Any], name: str = "function") -> Traced:
    """`fn` traced for tensors of `specs`, its positional arguments."""
    return trace_function(fn, name, list(named(specs)), lambda tensors: (tensors, {}))[0]


def named(specs: Sequence[Any]) -> Iterator[TensorSpec]:
    """Specs in which sizes that were given as None are symbols of their own."""
    for i, s in enumerate(specs):
        dims = [dm.symbol(f"d{i}_{n}") if isinstance(d, Dim) and d.name_alone() == f"d{n}" else d
                for n, d in enumerate(s.dims)]
        yield TensorSpec(dims, s.dtype, s.name)
