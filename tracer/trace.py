"""`Trace`: the interpreter that writes ops into a graph instead of running them.

A trace owns one graph: of a function, or of a region inside one (then it has a parent). Tensors from outside are
captured: a region takes them as operands, a function as further inputs (or as constants when small). Variables are
values here: reading gives the current one, assigning replaces it, and whoever ends the trace sees to it that the last
values leave the graph. Recorders (tapes) are told of every op as in eager execution, so gradients inside a function
are traced like everything else; while a region is traced the recorders outside of it are not told, because they see
its construct as one.

What a call of a traced function does is `tracer/function.py`'s; conditionals and loops as users write them are
`tracer/conditional.py`'s and `tracer/loop.py`'s.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy as np

from twofold.eager import convert, indexing, record
from twofold.eager.tensor import Tensor, wrap
from twofold.eager.variable import SliceMethods
from twofold.ir import dims as dm
from twofold.ir import dtypes as dt
from twofold.ir import errors, ops
from twofold.ir import graph as g
from twofold.ir.assumptions import Origin
from twofold.ir.dims import Dim
from twofold.ir.op import Op, interpreter, use_interpreter
from twofold.ir.spec import TensorShape, TensorSpec, spec
from twofold.runtime import native

from .contents import Open, elements
from .creation import Creation
from .shapes import Relaxed
from .symbolic import SymbolicTensor, symbolic

__all__ = ["Trace", "Region", "LeakedTensorError", "current", "records_constructs"]

_INLINE = 1024  # bytes up to which a captured tensor becomes a constant of the graph


class LeakedTensorError(TypeError):
    """A tensor of another trace, or of one that has ended, was used."""


def current() -> Trace | None:
    """The trace that is under way in this context, or None in eager execution."""
    running = interpreter()
    return running if isinstance(running, Trace) else None


_construct_recorders: list[Callable[[Any, g.Node, Sequence[Tensor], Sequence[SymbolicTensor]], None]] = []


def records_constructs(tell: Callable[[Any, g.Node, Sequence[Tensor], Sequence[SymbolicTensor]], None]) -> Any:
    """Hands in what tells the recorders of a context of a construct: `tell(trace, node, operands, results)`."""
    _construct_recorders.append(tell)
    return tell


class SymbolicSlice(SliceMethods, SymbolicTensor):
    """A part of a variable in a trace: a tensor that also takes `assign`, `assign_add` and `assign_sub`."""

    __slots__ = ("_source",)


class _State:
    """A variable inside a trace: its value at this point, and whether it was assigned here."""

    __slots__ = ("variable", "first", "tensor", "assigned")

    def __init__(self, variable: Any, tensor: SymbolicTensor) -> None:
        self.variable, self.first, self.tensor, self.assigned = variable, tensor, tensor, False


_TOO_MANY = 1 << 60  # elements: more bytes than addresses


def _elements(dims: Sequence[Any]) -> int:
    """The product of those sizes that are known."""
    return math.prod([d for d in dims if type(d) is int])


class Trace:
    """One graph under construction.

    Attributes:
        graph: the graph.
        parent: the trace that this is a region of, or None.
        captured: for a region: the parent's tensors that the region's inputs stand for (after `taken` inputs of its
            own); for a function: the tensors from outside that its further inputs stand for, variables included.
        variables: what is known of variables, by id, in the order in which they were first used.
    """

    def __init__(self, name: str, parent: Trace | None = None) -> None:
        self.graph = g.Graph(name)
        self.parent = parent
        self.captured: list[Any] = []
        self.variables: dict[int, _State] = {}
        self._inputs: dict[Any, SymbolicTensor] = {}  # identity of a captured tensor -> what stands for it
        self.identities: dict[g.Value, int] = {}  # by what numbers recorders know the results of ops
        self.given: list[SymbolicTensor] = []  # what stands for the inputs
        self._held: list[Any] = []  # keeps the captured alive, and so their identities theirs
        self._constants: dict[int, g.Value] = {}
        self.names: Iterator[int] = parent.names if parent is not None else itertools.count()
        self.born: set[str] = set()  # the symbols that were made here, and not in the parent
        self.made: list[Any] = [] if parent is None else parent.made  # variables created meanwhile
        self.bindings: dict[tuple[g.Value, int], Dim] = {}  # elements of integer values that were bound here
        self.repeats = False  # whether this is the body of a loop
        self.clamped: dict[tuple[g.Value, int], Dim] = {}  # those that loops inside use, or 0 where they are negative
        self.needed: list[Any] = []  # integers that were bound as sizes outside of this loop: none may be negative
        self.sources: dict[g.Value, g.Value] = {}  # for a region: the parent's values that its inputs stand for
        self.guards: dm.Recorder | None = None
        self._staging: Any = None  # the op whose rule runs, its operands and attributes; or what made a guard
        self.watch: Any = parent.watch if parent is not None else next(
            (r for r in record.active.get() if getattr(r, "watches_numerics", False)), None)
        self.enclosing = current() if parent is None else None  # a function that is traced inside of another
        self.creation: Creation = Creation(self) if parent is None else parent.creation
        self.relaxed: Relaxed | None = None if parent is None else parent.relaxed
        if self.enclosing is not None:
            self.names = self.enclosing.names  # what is captured of it keeps the names of its sizes

    def begin(self, soft: Sequence[str], values: Sequence[Any] | None, may_create: bool) -> None:
        """Set the properties of a trace that come from the function's call.

        Args:
            soft: sizes that are unknown by our choice, so that Python must not see that they are.
            values: the tensors of the call for the first inputs, if there is a call.
            may_create: whether variables may be created.
        """
        self.relaxed = Relaxed(frozenset(soft)) if soft else None
        self.creation.values, self.creation.allowed = values, may_create

    # -- running ----------------------------------------------------------------------------------
    @contextmanager
    def active(self) -> Iterator[Trace]:
        """Stage the ops of this block here."""
        native.change_tracers(1)
        try:
            with use_interpreter(self), dm.recording(self.guards) as guards:
                self.guards, guards.origin = guards, self._origin
                yield self
        finally:
            native.change_tracers(-1)
            if self.guards is not None:
                self.graph.guards = list(self.guards)

    def apply(self, op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        """Stage `op`; see `ir.op.apply`."""
        if any(isinstance(x, Dim) for x in inputs):
            inputs = self._with_sizes(op, inputs)
        for x in inputs:
            if type(x) is not SymbolicTensor:
                inputs = convert.operands(op, inputs)
                break
        if not op.variadic and len(inputs) != len(op.params):
            raise TypeError(f"{op.name}: takes {len(op.params)} operands ({', '.join(op.params)}); got {len(inputs)}")
        values = [self.lift(t) for t in inputs]
        attrs = g.complete(op, attrs)
        self._staging = op, values, attrs
        try:
            inferred = op.infer(op, *values, **attrs)
        finally:
            self._staging = None
        single = not isinstance(inferred, tuple)
        specs = (inferred,) if single else inferred
        for s in specs:
            if s.dims and _elements(s.dims) >= _TOO_MANY:
                raise errors.op_error(errors.ResourceExhaustedError, op.name,
                                      f"no memory holds a tensor of shape {list(s.dims)}.", op.operands(values))
        if "dynamic" in op.traits:
            specs = self._renamed(specs, values, attrs)
        outputs = self.add(op, values, attrs, specs)
        if record.active.get():
            record.tell(op, attrs, inputs, outputs)
            for output in outputs:
                self.identities[output.value] = output._id
        if self.watch is not None:
            self.watch.stage(op, outputs)
        return outputs[0] if single else outputs

    def _origin(self) -> Origin:
        """The origin of a guard that is recorded now: the op whose shape rule runs."""
        if isinstance(self._staging, Origin):
            return self._staging
        op, values, attrs = self._staging or (None, (), {})
        return Origin(op, tuple([v.spec for v in values]), attrs, location())

    def add(self, op: Any, values: Sequence[g.Value], attrs: dict[str, Any], specs: Sequence[Any],
            regions: Sequence[g.Graph] = ()) -> tuple[SymbolicTensor, ...]:
        """A node at the user's line; recorders are not told."""
        node = self.graph.add(op, values, attrs, specs, regions, location())
        return tuple([symbolic(v, self) for v in node.outputs])

    def construct(self, op: g.Construct, operands: Sequence[Any], attrs: dict[str, Any], specs: Sequence[Any],
                  regions: Sequence[g.Graph] = ()) -> tuple[SymbolicTensor, ...]:
        """A node of a construct over `operands` (tensors of any kind, or variables for their present values).

        Args:
            specs: of the results.
        """
        tensors = [x if isinstance(x, Tensor) else x._read_tensor() for x in operands]
        outputs = self.add(op, [self.lift(t) for t in tensors], attrs, specs, regions)
        if record.active.get() and outputs:
            node: Any = outputs[0].value.node
            for tell in _construct_recorders:
                tell(self, node, tensors, outputs)
        return outputs

    def custom(self, results: Sequence[Tensor], inputs: Sequence[Tensor], backward: Any) -> tuple[Tensor, ...]:
        """Results of a function with a gradient of its own; recorders are not told."""
        from .custom import stage_custom
        return stage_custom(self, results, inputs, backward)

    def _renamed(self, specs: Sequence[Any], values: Sequence[g.Value], attrs: dict[str, Any]) -> list[Any]:
        """Specs in which the symbols that an op itself brought are new ones."""
        known = dm.symbols_of([d for v in values for d in v.dims])
        known |= dm.symbols_of([d for a in attrs.values() for d in (a if isinstance(a, tuple) else (a,))])
        brought = sorted(dm.symbols_of([d for s in specs for d in s.dims]) - known)
        fresh = {name: self.fresh(name) for name in brought}
        return [spec(dm.substitute(s.dims, fresh), s.dtype) for s in specs]

    def fresh(self, stem: str = "n") -> Dim:
        """A size that nothing is known of, under a name of its own."""
        name = f"{stem}_{next(self.names)}"
        self.born.add(name)
        return dm.symbol(name)

    # -- tensors from elsewhere -------------------------------------------------------------------
    def lift(self, tensor: Any) -> g.Value:
        """The value in this graph of a tensor, which is captured where it is from outside."""
        if isinstance(tensor, SymbolicTensor):
            return tensor.value if tensor.trace is self else self.capture(tensor).value
        if tensor._memory.nbytes <= _INLINE and tensor._memory.dtype != object and not getattr(tensor, "_id", 0):
            return self._constant(tensor)
        return self.capture(tensor).value

    def _constant(self, tensor: Tensor) -> g.Value:
        value = self._constants.get(id(tensor))
        if value is None:
            value = self._constants[id(tensor)] = self.graph.constant(tensor._array, location())
            self._held.append(tensor)
        return value

    def capture(self, tensor: Any) -> SymbolicTensor:
        """The tensor of this trace for one from outside, which becomes an input of the graph."""
        key = id(tensor)
        known = self._inputs.get(key)
        if known is not None:
            return known
        if self.parent is None:
            if isinstance(tensor, SymbolicTensor) and not self._encloses(tensor.trace):
                raise LeakedTensorError(
                    f"{tensor!r} belongs to a function whose trace has ended or to another branch: it cannot be used "
                    f"here. Return it from the function that computes it.\n  {errors.user_line()}")
            outer: Any = tensor
            dims, dtype = tensor.dims, tensor.dtype
        else:
            outer = self._outer(tensor)
            dims, dtype = outer.dims, outer.dtype
        captured = self.input(dims, dtype, "capture")
        self.captured.append(outer)
        if self.parent is not None:
            self.sources[captured.value] = outer.value
        self._inputs[key] = captured
        self._held.append(tensor)
        if getattr(tensor, "_id", 0):
            captured._id = tensor._id  # for recorders it is the same tensor
        return captured

    def _encloses(self, other: Any) -> bool:
        """Whether `other` is a trace around the function that is traced here."""
        around = self.enclosing
        while around is not None:
            if around is other:
                return True
            around = around.parent or around.enclosing
        return False

    def _outer(self, tensor: Any) -> SymbolicTensor:
        """`tensor` as a tensor of the parent."""
        if isinstance(tensor, SymbolicTensor) and tensor.trace is self.parent:
            return tensor
        return self.parent.capture(tensor)  # type: ignore[union-attr]

    def input(self, dims: Sequence[Any], dtype: Any, name: str = "") -> SymbolicTensor:
        """A new input of the graph."""
        tensor = symbolic(self.graph.add_input(dims, dtype, name), self)
        self.given.append(tensor)
        return tensor

    # -- variables --------------------------------------------------------------------------------
    def read_variable(self, variable: Any) -> SymbolicTensor:
        """The value of a variable at this point; recorders are not told."""
        return self._state(variable).tensor

    def assign_variable(self, variable: Any, tensor: Tensor) -> None:
        """Make `tensor` the value of `variable` from here on."""
        if not variable.dtype.is_differentiable:
            self.assigned_within(variable, tensor)
            return
        # The gradient of the new value is the variable's, not that of what was assigned.
        before, value = self._state(variable).tensor, self.lift(tensor)
        region = g.Graph("assigned")
        same = tuple(before.dims) == tuple(value.dims)
        ct, _ = [region.add_input(v.dims, v.dtype) for v in (value, before)]
        region.outputs = [ct] if same else []
        attrs = {"results": 1, "inputs": 1, "given": (same,)}
        assigned, = self.add(g.CUSTOM, [value, before.value], attrs, [value.spec], [region])
        if same and record.active.get():
            record.record_custom(lambda cts: list(cts), (before,), (assigned,))
        self.assigned_within(variable, assigned)

    def assigned_within(self, variable: Any, tensor: Tensor) -> None:
        """From here on `variable` has the value that a construct or a call gave it."""
        state = self._state(variable)
        state.tensor, state.assigned = self.own(tensor), True

    def own(self, tensor: Tensor) -> SymbolicTensor:
        """`tensor` as one of this trace; recorders know it as the same."""
        if isinstance(tensor, SymbolicTensor) and tensor.trace is self:
            return tensor
        return symbolic(self.lift(tensor), self)

    def _state(self, variable: Any) -> _State:
        state = self.variables.get(id(variable))
        if state is None:
            if self.parent is not None:
                self.parent._state(variable)
                outer: Any = variable
                dims, dtype = self.parent.variables[id(variable)].tensor.dims, variable.dtype
            else:
                outer, dims, dtype = variable, self._variable_dims(variable), variable.dtype
            read = self.input(dims, dtype, variable._name)
            self.captured.append(outer)
            self._held.append(variable)
            state = self.variables[id(variable)] = _State(variable, read)
        return state

    def _variable_dims(self, variable: Any) -> tuple[Any, ...]:
        """Sizes that later values of the variable may change are unknown."""
        declared = variable._shape.dims
        now = variable._value.dims
        if declared is None or len(declared) != len(now):
            return tuple([self.fresh("v") for _ in now])
        return tuple([self.fresh("v") if d is None else n for d, n in zip(declared, now, strict=True)])

    def initial_value(self, value: Any, dtype: Any) -> Tensor:
        """The first value of a variable that is created here, as an eager tensor."""
        return self.creation.initial_value(value, dtype)

    def after(self, control_inputs: Any) -> AbstractContextManager[Any]:
        """A block whose operations come after others; program order is kept anyway."""
        del control_inputs
        return nullcontext()

    def differentiated(self) -> None:
        """Told when gradients were asked for: constructs may have been replaced by ones that give residuals."""

    def sliced(self, source: Any) -> Any:
        """A part of a variable, which can be read and assigned to."""
        value = indexing.index(source._variable._read_tensor(), source._key)
        part = SymbolicSlice.__new__(SymbolicSlice)
        part.value, part.trace, part._source = value.value, value.trace, source
        if hasattr(value, "_id"):
            part._id = value._id
        return part

    # -- sizes ------------------------------------------------------------------------------------
    def _with_sizes(self, op: Op, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Operands with tensors in the places of sizes, of the dtype that a Python int would get there."""
        dtype = next((x.dtype for x in inputs if isinstance(x, Tensor) or hasattr(x, "_read_tensor")), None)
        if dtype is None or op.match == ():
            dtype = dt.float32 if op.match != () and any(type(x) is float for x in inputs) else dt.int32
        return tuple([self.size_as(x, dtype) if isinstance(x, Dim) else x for x in inputs])

    def size_as(self, size: Dim, dtype: Any) -> Any:
        """A size as a scalar of any dtype."""
        if dtype in (dt.int32, dt.int64):
            return self.size(size, dtype)
        from twofold.ir import ops
        return ops.cast(self.size(size), dtype=dtype)

    def size(self, size: Any, dtype: Any = dt.int64) -> SymbolicTensor:
        """A size as an integer scalar."""
        return self.add(g.SIZE, (), {"size": size, "dtype": dtype}, (TensorSpec((), dtype),))[0]

    def sizes_of(self, tensor: SymbolicTensor) -> tuple[Any, ...]:
        """The elements of an integer tensor as sizes; what does not follow from others becomes a new symbol."""
        if not tensor.dtype.is_integer:
            raise TypeError(f"sizes must be integers; got {tensor!r}.\n  {errors.user_line()}")
        known = elements(tensor.value, tensor.trace, self)
        if known is None:
            return tuple([self._bound(element) for element in self._elements_of_many(tensor)])
        return tuple([self._bound(x) if isinstance(x, Open) else x for x in known.ravel()])

    def parts_of(self, tensor: SymbolicTensor) -> list[Any]:
        """The elements of an integer tensor, flat: numbers, sizes, scalar tensors for what only running can tell."""
        known = elements(tensor.value, tensor.trace, self)
        if known is None:
            return [self._scalar(element) for element in self._elements_of_many(tensor)]
        return [self._scalar(x) if isinstance(x, Open) else x for x in known.ravel()]

    def _elements_of_many(self, tensor: SymbolicTensor) -> list[Open]:
        """The elements of a tensor that is too long for its contents to be followed."""
        count = dm.numel(tensor.dims)
        if isinstance(count, Dim):
            raise TypeError(f"{tensor!r} has an unknown number of elements: it cannot give sizes.\n"
                            f"  {errors.user_line()}")
        return [Open(tensor.trace, tensor.value, i) for i in range(count)]

    def _bound(self, element: Open) -> Any:
        """The size that an element is, bound here: what this trace and those inside of it know it by from now on."""
        key, home = (element.value, element.index), self._home(element)
        if home is self:
            symbol = self._bind(self._scalar(element))
        else:
            self.needed.append(self._scalar(element))
            symbol = home.clamped[key] if key in home.clamped else home._bind_clamped(element)
        self.bindings[key] = symbol
        return symbol

    def _bind(self, scalar: Any) -> Dim:
        symbol = self.fresh("d")
        self.add(g.BIND, (self.lift(scalar),), {"symbol": str(symbol)}, ())
        return symbol

    def _bind_clamped(self, element: Open) -> Dim:
        """The size that loops inside of this trace know an element by: it is 0 for a negative one.

        The loop tests that it is not negative, once it is certain that it runs (`needed`).
        """
        with record.telling(()), self.active():
            symbol = self._bind(ops.maximum(self._scalar(element), 0))
        self.clamped[element.value, element.index] = symbol
        return symbol

    def _home(self, element: Open) -> Trace:
        """Where an element is bound: outside of the loops through which it stays the same, so that they know it.

        A branch that does not run must not look at it, so from a branch it goes nowhere.
        """
        home = self
        while home.repeats and home.parent is not None and element.trace is not home:
            home = home.parent
        return home

    def _scalar(self, element: Open) -> Any:
        """The element as a scalar tensor."""
        source: Any = symbolic(element.value, element.trace)
        if not source.dims:
            return source
        with record.telling(()):
            flat = ops.reshape(source, shape=(dm.numel(source.dims),))
            return ops.reshape(ops.slice_(flat, begin=(element.index,), size=(1,)), shape=())

    def assume_shape(self, tensor: SymbolicTensor, shape: TensorShape) -> None:
        """Record the sizes of `shape` that were unknown, and give them to `tensor`.

        Raises:
            ValueError: it contradicts it.
        """
        if not tensor.shape.is_compatible_with(shape):
            raise ValueError(f"Tensor's shape {tensor.shape} is not compatible with supplied shape {shape}.")
        for have, want in zip(tensor.dims, shape.dims or (), strict=False):
            if want is not None:
                dm.require(have, "==", want)
        wanted = tensor.dims if shape.dims is None else shape.dims
        known = tuple([have if want is None else want for have, want in zip(tensor.dims, wanted, strict=True)])
        if known != tensor.dims and interpreter() is self:  # in a region inside of this trace there is no place for it
            with record.telling(()):  # for tapes it stays the same tensor
                tensor.value = ops.reshape(tensor, shape=known).value

    # -- regions ----------------------------------------------------------------------------------
    def region(self, name: str, specs: Sequence[Any], body: Callable[..., Any], repeats: bool = False) -> Region:
        """Trace `body` with tensors of `specs` as a region of this trace.

        Args:
            name: of the region's graph.
            specs: of the region's own inputs, which come first.
            body: called with tensors; what it returns is kept as it is.
            repeats: whether it is the body of a loop.
        """
        inner = Trace(name, self)
        inner.repeats = repeats
        given = [inner.input(s.dims, s.dtype) for s in specs]
        with record.telling(()), inner.active():
            result = body(*given)
        if self.guards is not None:
            for guard in inner.guards or ():
                self._staging = guard.origin
                dm.require(guard.left, guard.op, guard.right)
            self._staging = None
        return Region(inner, len(given), result)


class Region:
    """A traced region whose construct is not made yet: its graph has no outputs so far."""

    def __init__(self, trace: Trace, taken: int, result: Any) -> None:
        self.trace, self.taken, self.result = trace, taken, result

    @property
    def assigned(self) -> list[Any]:
        """The variables that the region assigns."""
        return [s.variable for s in self.trace.variables.values() if s.assigned]

    def value_of(self, variable: Any) -> g.Value:
        """The value of a variable where the region ends; an input of the region when it does not assign it."""
        return self.trace._state(variable).tensor.value

    def lift(self, tensor: Any) -> g.Value:
        """The value in the region of any tensor."""
        with self.trace.active():
            return self.trace.lift(tensor)

    def graph_over(self, outer: Sequence[Any], outputs: Sequence[g.Value]) -> g.Graph:
        """The region's graph with these outputs and one input for each of `outer` after its own.

        Args:
            outer: a superset of `trace.captured`, told apart by identity.
        """
        graph = self.trace.graph
        own = graph.inputs[:self.taken]
        have = {id(t): v for t, v in zip(self.trace.captured, graph.inputs[self.taken:], strict=True)}
        rest = [have.get(id(t)) or g.Value(self._dims(t), t.dtype) for t in outer]
        graph.inputs = [*own, *rest]
        for n, value in enumerate(graph.inputs):
            value.index = n
        graph.outputs = list(outputs)
        return graph

    def _dims(self, outer: Any) -> tuple[Any, ...]:
        parent = self.trace.parent
        if not isinstance(outer, Tensor):
            return parent._state(outer).tensor.dims  # type: ignore[union-attr]
        return outer.dims


_MAPPED = errors.SOURCE_MAPS


def location() -> g.Location | None:
    """The innermost line that is not ours, as the user wrote it."""
    frame: Any = sys._getframe(1)
    while frame is not None and errors.is_ours(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None:
        return None
    file, line = frame.f_code.co_filename, frame.f_lineno
    mapped = _MAPPED.get(file)
    if mapped is not None:
        return g.Location(*mapped(line, frame.f_code.co_name))
    return g.Location(file, line, frame.f_code.co_name)


def constant(array: np.ndarray) -> Tensor:
    """An eager tensor, for what a trace computes itself."""
    return wrap(array)
