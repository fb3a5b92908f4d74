"""`Traced`: the graph of a function for one signature, its captures, and how its results are put together.

`trace_function` makes one. It runs eagerly op by op, or is staged as a `call` node where another trace is under way.
Which signature a call has is `tracer/signature.py`'s, which trace serves it `tracer/function.py`'s.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias, TypeVar

from twofold.eager import convert, executing, record
from twofold.eager.tensor import Tensor, alias, beside
from twofold.eager.variable import Variable
from twofold.ir import dims as dm
from twofold.ir import errors, nest, ops, surroundings, symbols
from twofold.ir import graph as g
from twofold.ir.dims import Dim, DimLike, Shape
from twofold.ir.ops.random import placed_under
from twofold.ir.replay import bind_sizes
from twofold.ir.spec import TensorSpec, spec
from twofold.ir.types import Spec
from twofold.runtime import claims, locks
from twofold.runtime.program_call import Variant

from . import custom, watching  # noqa: F401 (of custom: what traces ask of it, it hands in)
from .differentiable import Differentiable
from .host import drop_unranked
from .running import Runner
from .shapes import SizeAskedError
from .signature import Argument, CallArguments, Parameters, template, with_opened
from .staging import stage_graph
from .symbolic import SymbolicTensor
from .trace import LeakedTensorError, StagedConstruct, Trace, finds_names, records_constructs
from .types import CallForm, Captured, InputSpec, PythonFunction, PythonValue, Sizes, Structure

__all__ = ["CaptureReference", "Traced", "referent", "trace_function", "trace"]

#: a tensor or variable that a trace holds; a variable among the arguments of the call is held weakly
CaptureReference: TypeAlias = Captured | weakref.ref[Variable]

_numbers = itertools.count()


# What gradients of branches and loops need takes milliseconds to import: that waits for the first branch or loop.
@records_constructs
def _record_construct(construct: StagedConstruct) -> None:
    from .gradients import record_construct
    record_construct(construct)


@finds_names
def _other_names(trace: Trace, tensor: Tensor) -> object:
    from .naming import other_names
    return other_names(trace, tensor)


_Capture = TypeVar("_Capture", Tensor, Variable, Captured)


class Traced:
    """A traced function.

    Attributes:
        name: of the function.
        graph: inputs are the tensors of the call, then one for each of `captures`; outputs are the tensors of the
            result, then one for each of `updates`.
        specs: of the tensors of the call.
        updates: the variables that a run assigns; those among the arguments of the call are held weakly.
        result: the structure of the result, with specs for tensors and None for None.
        relaxed: whether it has unknown sizes that are our choice.
        number: tells it from all other traces.
        reason: why it was made.
        spared: whether a gradient in it gives less than it takes to differentiate it again in the order of a tape, so
            that calls under a recorder are served by another trace, `whole()`.
        fast_math: whether results may differ from eager ones by rounding.
        around: what was around it while it was made (`ir/surroundings.py`).
        again: makes `whole()`, where `spared`.
        form: `(args, kwargs)` that it was traced for, with specs for tensors; objects are held weakly.
        arguments: `(name, kind, value)` of each, likewise.
    """

    def __init__(self, name: str, graph: g.Graph, captures: Sequence[Captured], specs: Sequence[InputSpec],
                 result: Structure, updates: Sequence[Variable], relaxed: bool) -> None:
        self.name, self.graph, self.specs, self.relaxed = name, graph, list(specs), relaxed
        self.result = result
        self.updates: list[Variable | weakref.ref[Variable]] = list(updates)
        self.number = next(_numbers)
        self.form: CallForm = ((), {})
        self.arguments: list[Argument] = []
        self.reason, self.fast_math = "", False
        self.around = surroundings.around()
        self.spared = False
        self.again: Callable[[Traced], Traced | None] | None = None
        self._whole: Traced | None = None
        self._program = Differentiable(self.graph)
        self._runner: Runner | None = None
        self._compiling = locks.RLock()
        self._claim: claims.Claim | None = None
        self._hands_on: bool | None = None
        self._captures: list[CaptureReference] = list(captures)
        self._empty = [leaf is None for leaf in nest.flatten(result)]
        bound = self.graph.symbols()
        self._guards = [q for q in self.graph.guards if q.symbols() <= bound]
        self._symbolic = any(isinstance(d, Dim) for v in self.graph.inputs for d in v.dims)
        # The variables whose shape may change, with their values in the graph.
        self._loose: list[tuple[Variable | weakref.ref[Variable], g.Value]] = [
            (c, v) for c, v in zip(captures, self.graph.inputs[len(self.specs):], strict=True)
            if not isinstance(c, Tensor) and c._shape.num_elements() is None]
        self.outer = next((c.trace for c in captures if isinstance(c, SymbolicTensor)), None)

    def describe(self, form: CallForm, parameters: Parameters) -> None:
        """Note the arguments that this was traced for, with specs for tensors.

        Args:
            form: `(args, kwargs)` of the call.
            parameters: of the function.
        """
        args, kwargs = form
        self.form = tuple([template(a) for a in args]), {k: template(v) for k, v in kwargs.items()}
        arguments = parameters.names(CallArguments(args, kwargs))
        self.arguments = [(name, kind, template(value)) for name, kind, value in arguments]

    # -- gradients in it --------------------------------------------------------------------------
    def whole(self) -> Traced:
        """The trace for the same arguments whose gradients can be differentiated again; itself where it is one, and
        where nobody can make it."""
        if self._whole is None and self.again is not None:
            self._whole = self.again(self)
        return self if self._whole is None else self._whole

    # -- captures ---------------------------------------------------------------------------------
    def hold_weakly(self, arguments: Sequence[object]) -> None:
        """Keep no variable among `arguments` alive: whoever calls has it."""
        weak = {id(a): weakref.ref(a) for a in arguments if isinstance(a, Variable)}
        self._captures = [weak.get(id(c), c) for c in self._captures]
        self._loose = [(weak.get(id(c), c), v) for c, v in self._loose]
        self.updates = [weak.get(id(v), v) for v in self.updates]

    @property
    def captures(self) -> list[Captured]:
        """The tensors and variables from outside that it reads."""
        return [referent(c) for c in self._captures]

    @property
    def variables(self) -> list[Variable]:
        """The variables that it reads or assigns."""
        return [c for c in self.captures if not isinstance(c, Tensor)]

    @property
    def assigned(self) -> list[Variable]:
        """The variables that a run assigns, for each of `updates`."""
        return [referent(v) for v in self.updates]

    def usable(self, here: Trace | None) -> bool:
        """Whether the tensors that it captures of a surrounding function can be read in the trace `here`."""
        if self.outer is None:
            return True
        while here is not None:
            if here is self.outer:
                return True
            here = here.parent or here.enclosing
        return False

    # -- sizes ------------------------------------------------------------------------------------
    def accepts(self, shapes: Sequence[Shape], assume: bool = False) -> Sizes | None:
        """The values of the symbols for tensors of these shapes; None where the trace does not accept them.

        Args:
            shapes: of the tensors of a call, or of more of the graph's inputs.
            assume: whether a guard that speaks of unknown sizes is passed on to the trace that is under way.
        """
        env: Sizes = {}
        for value, shape in zip(self.graph.inputs, shapes, strict=False):
            if not _fits(value.dims, shape, env):
                return None
        for variable, value in self._loose:
            if not _fits(value.dims, referent(variable)._kept().dims, env):
                return None
        return env if all(_holds(guard, env, assume) for guard in self._guards) else None

    # -- running ----------------------------------------------------------------------------------
    def __call__(self, leaves: Sequence[Tensor]) -> Structure:
        """The result for tensors that it accepts."""
        return self._run(leaves) if not watching.watchers else watching.watched(self, leaves, self._run)

    def _run(self, leaves: Sequence[Tensor]) -> Structure:
        return self.step(leaves, self.execute) if record.active.get() else self._made_runner(leaves).call(*leaves)

    def step(self, leaves: Sequence[Tensor], run: Callable[[list[Tensor]], Sequence[Tensor]],
             outer: Sequence[Tensor] = ()) -> Structure:
        """The result, by way of Python: one step for all others that touch the same variables.

        Args:
            run: from the inputs of the graph to its outputs.
            outer: the present values of the captured tensors of a surrounding trace.
        """
        if not self.updates:
            return self.packed(run(self._inputs(leaves, outer)))
        with claims.claimed(self.claim):
            out = run(self._inputs(leaves, outer))
            fixed = len(out) - len(self.updates)
            self.commit(out[fixed:])
        return self.packed(out[:fixed])

    def _inputs(self, leaves: Sequence[Tensor], outer: Sequence[Tensor]) -> list[Tensor]:
        """The inputs of the graph; what of them comes with every call is kept where the graph runs."""
        inputs = [*leaves, *self.read(outer)]
        if executing.asks_where():
            backend = executing.backend_for([t._memory for t in inputs])
            for reference, tensor in zip(self._captures, inputs[len(leaves):], strict=True):
                if backend is not None and type(reference) is Tensor:
                    backend.keep(tensor._memory)
        return inputs

    @property
    def claim(self) -> claims.Claim:
        """The claim on variables that a run takes."""
        if self._claim is None:
            self._claim = claims.Claim([v._word for v in self.variables], [v._word for v in self.assigned])
        return self._claim

    def read(self, outer: Sequence[Tensor] = ()) -> list[Tensor]:
        """The tensors of the captures, those of all variables at one moment."""
        captures, of_outer = self.captures, iter(outer)
        values = iter(claims.snapshot(tuple([c for c in captures if not isinstance(c, Tensor)])))
        current = [next(values) if not isinstance(c, Tensor)
                   else next(of_outer) if outer and isinstance(c, SymbolicTensor) else c for c in captures]
        for recorder in record.active.get():
            for c, value in zip(captures, current, strict=True):
                if not isinstance(c, Tensor):
                    recorder._variable_read(c, value)
        return current

    @property
    def runner(self) -> Runner:
        """The runner that executes the trace while no recorder watches."""
        return self._made_runner()

    def _made_runner(self, leaves: Sequence[Tensor] = ()) -> Runner:
        """The runner, made now if there is none: for a call with these tensors, where one is about to be."""
        if self._runner is None:
            with self._compiling:
                if self._runner is None:
                    self._runner = Runner(self, self.fast_math, leaves)
        return self._runner

    @property
    def variant(self) -> Variant | None:
        """The variant through which native code calls the trace, once it has run; None where native code cannot."""
        return None if self._runner is None else self._runner.variant

    def execute(self, inputs: Sequence[Tensor]) -> list[Tensor]:
        """The outputs of the graph."""
        return self._program(inputs)

    def commit(self, values: Sequence[Tensor]) -> None:
        """Give the variables their values, at one moment: all of them, or none."""
        variables = tuple(self.assigned)
        for variable, value in zip(variables, values, strict=True):
            variable._check(value)
        values = [beside(value, variable._kept()) for variable, value in zip(variables, values, strict=True)]
        recorded = bool(record.active.get())  # recorders know the values by the tensors that the run gave
        claims.commit(variables, tuple([value if recorded else alias(value) for value in values]))

    def _finish(self, out: Sequence[Tensor]) -> Structure:
        """The result in a trace, after the variables have got their values there."""
        if not self.updates:
            return self.packed(out)
        fixed = len(out) - len(self.updates)
        written = [(referent(v), value) for v, value in zip(self.updates, out[fixed:], strict=True)]
        for variable, value in written:
            variable._check(value)
        for variable, value in written:
            variable._take(value)
        return self.packed(out[:fixed])

    def packed(self, tensors: Sequence[Tensor]) -> Structure:
        """The structure of the result with these tensors."""
        if type(self.result) is TensorSpec:
            return tensors[0]
        following = iter(tensors)
        return nest.pack(self.result, [None if empty else next(following) for empty in self._empty])

    # -- inside of another trace ------------------------------------------------------------------
    @property
    def hands_on(self) -> bool:
        """Whether a result may be an argument, or another result, under a name of its own."""
        if self._hands_on is None:
            from twofold.ir.names import roots
            memo: dict[g.Value, frozenset[g.Value]] = {}
            results = self.graph.outputs[:len(self.graph.outputs) - len(self.updates)]
            possible = [v for out in results if out.dtype.is_differentiable for v in roots(out, memo)]
            self._hands_on = len(set(possible)) < len(possible) or any(v.node is None for v in possible)
        return self._hands_on

    def stage(self, outer: Trace, leaves: Sequence[Tensor], env: Sizes) -> Structure:
        """The result in `outer`: a `call` node, or the ops themselves where a tape of the trace records, and where a
        later one must know which tensor a result is."""
        captured = [c if isinstance(c, Tensor) else c._kept_tensor() for c in self.captures]
        operands = [*leaves, *captured]
        for value, operand in zip(self.graph.inputs, operands, strict=True):
            bind_sizes(value.dims, operand.dims, env)
        if record.active.get():
            return self._finish(self._inline(outer, operands, env))
        outer.residuals.spared |= self.spared
        if self.hands_on:
            return self._finish(self._inline(outer, operands, env))
        sizes = {name: env[name] for name in self.graph.symbols() if name in env}
        specs = self._specs_in(outer, sizes)
        attrs = {"name": self.name, "sizes": tuple(sorted(sizes.items(), key=lambda item: item[0]))}
        return self._finish(outer.construct(g.CALL, operands, attrs, specs, [self._called(outer).copy()]))

    def _inline(self, outer: Trace, operands: Sequence[Tensor], env: Sizes) -> list[Tensor]:
        """The results in `outer` of the ops themselves."""
        before = len(outer.graph.nodes)
        results = stage_graph(self._called(outer), operands, env)
        outer.inlined(None, outer.graph.nodes[before:])
        return results

    def _called(self, outer: Trace) -> g.Graph:
        """The graph as a call in `outer` runs it: its draws have streams of their own at each place that calls it."""
        if not any(node.op is ops.random_op_state for node in self.graph.walk()):
            return self.graph
        graph = self.graph.copy()
        placed_under(graph.walk(), outer.new_place())
        return graph

    def _specs_in(self, outer: Trace, sizes: Sizes) -> list[Spec]:
        """The results of a call in `outer`, where the symbols that `sizes` has are these; others get new names.

        A size that the graph brings and that no result has by itself is unknown outside: so is what it is a part of.
        """
        names = dict(sizes)
        for name in sorted({n for v in self.graph.outputs for n in symbols.alone(v.dims)} - sizes.keys()):
            names[name] = outer.fresh(name.rpartition("_")[0] or name)
        rest: dict[Dim, Dim] = {}

        def size_in(size: DimLike) -> DimLike:
            if not isinstance(size, Dim) or size.symbols() <= names.keys():
                return size.substitute(names) if isinstance(size, Dim) else size
            if size not in rest:
                rest[size] = outer.fresh("d")
            return rest[size]
        return [spec(tuple(map(size_in, v.dims)), v.dtype) for v in self.graph.outputs]


def referent(reference: _Capture | weakref.ref[Variable]) -> _Capture | Variable:
    """The tensor or variable that a trace holds, weakly or not.

    Raises:
        FailedPreconditionError: it was held weakly and is gone.
    """
    if not isinstance(reference, weakref.ref):
        return reference
    target = reference()
    if target is None:
        raise errors.FailedPreconditionError("a variable that this function was traced with has been deleted.")
    return target


def _fits(dims: Sequence[DimLike], sizes: Sequence[DimLike], env: Sizes) -> bool:
    """Whether `sizes` can be those of `dims`; notes in `env` what the symbols are."""
    if len(dims) != len(sizes):
        return False
    for have, size in zip(dims, sizes, strict=True):
        name = have.name_alone() if isinstance(have, Dim) else None
        if name is not None and name not in env:
            env[name] = size
            continue
        wanted = have.substitute(env) if isinstance(have, Dim) else have
        if wanted != size and dm.decide_eq(wanted, size) is not True:
            return False
    return True


def _holds(guard: dm.Guard, env: Sizes, assume: bool) -> bool:
    left, right = dm.substitute((guard.left, guard.right), env)
    if assume:
        return dm.require(left, guard.op, right)
    return dm.decide(left, guard.op, right) is True


def trace_function(fn: PythonFunction, name: str, specs: Sequence[InputSpec],
                   build: Callable[[list[Tensor]], CallForm], *, names: Sequence[str] = (), soft: Sequence[str] = (),
                   values: Sequence[Tensor] | None = None, may_create: bool = True,
                   whole: bool = False) -> tuple[Traced, list[Variable]]:
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
        whole: whether recorders around the function follow it, so that gradients in it may be differentiated again.
    Returns:
        The trace, and the variables that were created meanwhile.
    """
    tracing = Trace(name)
    tracing.begin(soft, values, may_create, whole)
    with record.telling(()), tracing.active():
        inputs = [tracing.input(s.dims, s.dtype, n) for s, n in zip(specs, names or [""] * len(specs), strict=True)]
        args, kwargs = build(list(inputs))
        returned = with_opened(fn(*args, **kwargs))
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
    traced.spared = tracing.residuals.spared
    return traced, tracing.created


def _result(leaf: PythonValue, name: str) -> Tensor | None:
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


def trace(fn: PythonFunction, specs: Sequence[InputSpec], name: str = "function") -> Traced:
    """`fn` traced for tensors of `specs`, its positional arguments."""
    return trace_function(fn, name, list(named(specs)), lambda tensors: (tuple(tensors), {}))[0]


def named(specs: Sequence[InputSpec]) -> Iterator[TensorSpec]:
    """Specs in which sizes that were given as None are symbols of their own."""
    for i, s in enumerate(specs):
        dims = [dm.symbol(f"d{i}_{n}") if isinstance(d, Dim) and d.name_alone() == f"d{n}" else d
                for n, d in enumerate(s.dims)]
        yield TensorSpec(dims, s.dtype, s.name)
