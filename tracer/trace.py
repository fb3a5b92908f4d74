"""`Trace`: the interpreter that writes ops into a graph instead of running them.

A trace owns one graph: of a function, or of a region inside one (then it has a parent). Tensors from outside are
captured: a region takes them as operands, a function as further inputs (or as constants when small). Variables are
values here: reading gives the current one, assigning replaces it, and whoever ends the trace sees to it that the last
values leave the graph. Recorders (tapes) are told of every op as in eager execution, so gradients inside a function
are traced like everything else; while a region is traced the recorders outside of it are not told, because they see
its construct as one.

Calls of traced functions are `tracer/function.py`'s; conditionals and loops as users write them are
`tracer/conditional.py`'s and `tracer/loop.py`'s.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import FrameType
from typing import Any, TypeAlias

import numpy as np

from twofold.eager import convert, indexing, record
from twofold.eager.tensor import Tensor
from twofold.eager.variable import SliceMethods, Variable
from twofold.ir import dims as dm
from twofold.ir import dtypes as dt
from twofold.ir import errors, ops, precision, symbols
from twofold.ir import graph as g
from twofold.ir.assumptions import Origin, renamed
from twofold.ir.build import sides_of
from twofold.ir.dims import Dim, DimLike, Shape
from twofold.ir.dtypes import DType
from twofold.ir.op import Op, interpreter, use_interpreter
from twofold.ir.spec import TensorShape, spec
from twofold.ir.types import Attrs, Spec
from twofold.runtime import native
from twofold.runtime import random as streams

from .contents import Open, elements
from .creation import Creation
from .shapes import Relaxed
from .symbolic import SymbolicTensor, TraceLike, symbolic
from .types import Backward, Captured, Operands, PythonFunction, PythonValue

__all__ = ["Trace", "Region", "LeakedTensorError", "StagedConstruct", "current", "differentiated", "finds_names",
           "records_constructs", "stages_custom"]

_INLINE = 1024  # bytes up to which a captured tensor becomes a constant of the graph


class LeakedTensorError(TypeError):
    """A tensor of another trace, or of one that has ended, was used."""


def current() -> Trace | None:
    """The trace that is under way in this context, or None in eager execution."""
    running = interpreter()
    return running if isinstance(running, Trace) else None


def differentiated(here: Trace | None) -> bool:
    """Whether gradients that are computed now may be differentiated again, by recorders of this context or around
    what is traced.

    Args:
        here: the trace that is under way.
    """
    return record.is_followed(here)


class StagedConstruct:
    """A construct as it was staged, with its tensors.

    Attributes:
        trace: that in which it was staged.
        node: as it was then; others with further results may have taken its place since.
        recorded: what knows its gradient and its names, once somebody has asked (`tracer/gradients.py`).
    """

    __slots__ = ("trace", "node", "operands", "results", "recorded")

    def __init__(self, trace: Trace, node: g.Node, operands: Sequence[Tensor],
                 results: Sequence[SymbolicTensor]) -> None:
        self.trace, self.node, self.operands, self.results = trace, node, operands, results
        self.recorded: Any = None


ConstructRecorder: TypeAlias = Callable[[StagedConstruct], None]
_construct_recorders: list[ConstructRecorder] = []


def records_constructs(tell: ConstructRecorder) -> ConstructRecorder:
    """Hands in what tells the recorders of a context of a construct."""
    _construct_recorders.append(tell)
    return tell


NameFinder: TypeAlias = Callable[["Trace", Tensor], Any]
_name_finders: list[NameFinder] = []


def finds_names(find: NameFinder) -> NameFinder:
    """Hands in what finds the other names of a tensor; see `Trace.other_names`."""
    _name_finders.append(find)
    return find


CustomStager: TypeAlias = Callable[["Trace", Sequence[Tensor], Sequence[Tensor], Backward], tuple[Tensor, ...]]
_custom_stagers: list[CustomStager] = []


def stages_custom(stage: CustomStager) -> CustomStager:
    """Hands in what makes nodes of functions with a gradient of their own: `stage(trace, results, inputs, backward)`
    gives the results as they leave the function."""
    _custom_stagers.append(stage)
    return stage


class SymbolicSlice(SliceMethods, SymbolicTensor):
    """A part of a variable in a trace: a tensor that also takes `assign`, `assign_add` and `assign_sub`."""

    __slots__ = ("_source",)


class Residuals:
    """What gradients in the trace of one function, its regions included, give to whoever differentiates them again.

    Attributes:
        spared: whether some gradient gives less than this takes (`ir/linearise.py: Scope`), which takes less memory.
    """

    __slots__ = ("spared",)

    def __init__(self) -> None:
        self.spared = False


class _VariableState:
    """A variable inside a trace: its value at this point, and whether it was assigned here."""

    __slots__ = ("variable", "first", "tensor", "assigned")

    def __init__(self, variable: Variable, tensor: SymbolicTensor) -> None:
        self.variable, self.first, self.tensor, self.assigned = variable, tensor, tensor, False


_TOO_MANY = 1 << 60  # elements: more bytes than addresses


def _elements(dims: Sequence[DimLike]) -> int:
    """The product of those sizes that are numbers."""
    return math.prod([d for d in dims if type(d) is int])


class Trace:
    """One graph under construction.

    Attributes:
        graph: the graph.
        parent: the trace that this is a region of, or None.
        captured: for a region: the parent's tensors that the region's inputs stand for (after `taken` inputs of its
            own); for a function: the tensors from outside that its further inputs stand for, variables included.
        variables: the state of each variable, by id, in the order in which they were first used.
        input_tensors: the tensors that stand for the inputs of the graph.
        created: the variables that were created meanwhile, in regions too.
        followed: whether a recorder around the function, or around the construct of the region, follows what is traced.
    """

    def __init__(self, name: str, parent: Trace | None = None) -> None:
        self.graph = g.Graph(name)
        self.parent = parent
        self.captured: list[Captured] = []
        self.variables: dict[int, _VariableState] = {}
        self._inputs: dict[int, SymbolicTensor] = {}  # identity of a captured tensor -> the one that stands for it
        self.identities: dict[g.Value, int] = {}  # the numbers by which recorders know the results of ops
        self.input_tensors: list[SymbolicTensor] = []
        self._alive: list[Captured] = []  # keeps constants and variables alive, and so their identities theirs
        self._constants: dict[int, g.Value] = {}
        self._placed = False  # whether an input says on which GPU the function runs, since a constant lies there
        self.names: Iterator[int] = parent.names if parent is not None else itertools.count()
        self.born: set[str] = set()  # the symbols that were made here, and not in the parent
        self.created: list[Variable] = [] if parent is None else parent.created
        self.bindings: dict[tuple[g.Value, int], Dim] = {}  # elements of integer values that were bound here
        self.repeats = False  # whether this is the body of a loop
        self.clamped: dict[tuple[g.Value, int], Dim] = {}  # those that loops inside use, or 0 where they are negative
        self.needed: list[Tensor] = []  # integers that were bound as sizes outside of this loop: none may be negative
        self.sources: dict[g.Value, g.Value] = {}  # for a region: the parent's values that its inputs stand for
        self.originals: dict[g.Value, Tensor] = {}  # for inputs: the tensors from outside that they stand for
        self.constructs: list[StagedConstruct] = []  # the branches and loops so far
        self._op_seeds = itertools.count()  # of draws without a seed of their own, by TensorFlow's count for each graph
        self._places: Iterator[tuple[int, int]] | None = None  # of the draws of a function, once there was one
        self.names_so_far: Any = None  # of values that these hand on, once a tape has asked (`tracer/naming.py`)
        self.guards: dm.GuardRecorder | None = None
        # The op whose rule runs, its operands and attributes; or the origin of a guard that a region recorded.
        self._staging: tuple[Op, Sequence[g.Value], Attrs] | Origin | None = None
        # A recorder that looks at every result (`checks.py`), which has a method `stage` besides a recorder's.
        self.watch: Any = parent.watch if parent is not None else next(
            (r for r in record.active.get() if getattr(r, "watches_numerics", False)), None)
        self.enclosing = current() if parent is None else None  # a function that is traced inside of another
        self.creation: Creation = Creation(self) if parent is None else parent.creation
        self.relaxed: Relaxed | None = None if parent is None else parent.relaxed
        self.residuals: Residuals = Residuals() if parent is None else parent.residuals
        self.followed = parent is not None and differentiated(parent)
        if self.enclosing is not None:
            self.names = self.enclosing.names  # tensors that are captured of it keep the names of their sizes

    def begin(self, soft: Sequence[str], values: Sequence[Tensor] | None, may_create: bool,
              whole: bool = False) -> None:
        """Set the properties of a trace that come from the function's call.

        Args:
            soft: sizes that are unknown by our choice, so that Python must not see that they are.
            values: the tensors of the call for the first inputs, if there is a call.
            may_create: whether variables may be created.
            whole: whether recorders around the function follow it.
        """
        self.followed = whole
        self.relaxed = Relaxed(frozenset(soft)) if soft else None
        self.creation.values, self.creation.allowed = values, may_create

    @property
    def public_graph(self) -> Any:
        """What users get for the graph: `tensor.graph`, a `tf.Graph` in graphs of TensorFlow 1."""
        return self.graph

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

    def apply(self, op: Op, inputs: Operands, attrs: Attrs) -> SymbolicTensor | tuple[SymbolicTensor, ...]:
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
        attrs = g.complete(op, precision.stated(op, values, attrs))
        self._staging = op, values, attrs
        try:
            inferred = op.infer(op, *values, **attrs)
        finally:
            self._staging = None
        single = not isinstance(inferred, tuple)
        specs: Sequence[Spec] = inferred if isinstance(inferred, tuple) else (inferred,)
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

    def next_op_seed(self) -> int:
        """The op seed of a draw in this graph that has none of its own."""
        return next(self._op_seeds)

    def new_place(self) -> tuple[int, int]:
        """A place for a draw of the function: no other draw of the process has it."""
        if self.parent is not None:
            return self.parent.new_place()
        if self._places is None:
            self._places = zip(itertools.repeat(streams.new_owner()), itertools.count())
        return next(self._places)

    def _origin(self) -> Origin:
        """The origin of a guard that is recorded now: the op whose shape rule runs."""
        if isinstance(self._staging, Origin):
            return self._staging
        if self._staging is None:
            return Origin(None, (), {}, location())
        op, values, attrs = self._staging
        return Origin(op, tuple([v.spec for v in values]), attrs, location())

    def add(self, op: Op | g.Construct, values: Sequence[g.Value], attrs: Attrs, specs: Sequence[Spec],
            regions: Sequence[g.Graph] = ()) -> tuple[SymbolicTensor, ...]:
        """A node at the user's line; recorders are not told."""
        node = self.graph.add(op, values, attrs, specs, regions, location())
        return tuple([symbolic(v, self) for v in node.outputs])

    def construct(self, op: g.Construct, operands: Sequence[Captured], attrs: Attrs, specs: Sequence[Spec],
                  regions: Sequence[g.Graph] = ()) -> tuple[SymbolicTensor, ...]:
        """A node of a construct over `operands` (tensors of any kind, or variables for their present values).

        Args:
            specs: of the results.
        """
        tensors = [x if isinstance(x, Tensor) else x._kept_tensor() for x in operands]
        outputs = self.add(op, [self.lift(t) for t in tensors], attrs, specs, regions)
        if outputs:
            node = outputs[0].value.node
            assert node is not None, "a result has a node"
            staged = StagedConstruct(self, node, tensors, outputs)
            if op is g.COND or op is g.WHILE:
                self.constructs.append(staged)
            if record.active.get():
                for tell in _construct_recorders:
                    tell(staged)
        return outputs

    def other_names(self, tensor: Tensor) -> Any:
        """What a tape is told that follows `tensor` from here on (`eager/tape.py`): the tensors that may be that very
        one under other names, since branches and loops before hand it on; None where there are none."""
        if not any(level.constructs for level in self.levels()):
            return None
        return _name_finders[0](self, tensor)

    def levels(self) -> Iterator[Trace]:
        """This trace and those around it, outwards."""
        level: Trace | None = self
        while level is not None:
            yield level
            level = level.parent or level.enclosing

    def handed_on(self) -> Callable[[], list[Tensor]]:
        """A function that gives the results of the branches and loops that will have been staged after this call."""
        count = len(self.constructs)
        return lambda: [t for construct in self.constructs[count:] for t in construct.results]

    def one_of(self, condition: Tensor, then: Tensor, otherwise: Tensor) -> SymbolicTensor:
        """One of two tensors of the same spec, by a branch that gives it back."""
        return self.construct(g.COND, [condition, then, otherwise], {}, [spec(then.dims, then.dtype)],
                              sides_of(then, otherwise))[0]

    def custom(self, results: Sequence[Tensor], inputs: Sequence[Tensor], backward: Backward) -> tuple[Tensor, ...]:
        """Results of a function with a gradient of its own; recorders are not told."""
        return _custom_stagers[0](self, results, inputs, backward)

    def _renamed(self, specs: Sequence[Spec], values: Sequence[g.Value], attrs: Attrs) -> list[Spec]:
        """Specs in which the symbols that an op itself brought are new ones."""
        earlier = dm.symbols_of([d for v in values for d in v.dims])
        earlier |= dm.symbols_of([d for a in attrs.values() for d in (a if isinstance(a, tuple) else (a,))])
        brought = sorted(dm.symbols_of([d for s in specs for d in s.dims]) - earlier)
        fresh = {name: self.fresh(name) for name in brought}
        return [spec(dm.substitute(s.dims, fresh), s.dtype) for s in specs]

    def fresh(self, stem: str = "n") -> Dim:
        """A size that nothing is known of, under a name of its own."""
        name = f"{stem}_{next(self.names)}"
        self.born.add(name)
        return dm.symbol(name)

    # -- tensors from elsewhere -------------------------------------------------------------------
    def lift(self, tensor: Tensor) -> g.Value:
        """The value in this graph of a tensor, which is captured where it is from outside."""
        if isinstance(tensor, SymbolicTensor):
            return tensor.value if tensor.trace is self else self.capture(tensor).value
        memory = tensor._memory
        if memory.nbytes <= _INLINE and memory.dtype != object and not getattr(tensor, "_id", 0):
            return self._constant(tensor)
        return self.capture(tensor).value

    def _constant(self, tensor: Tensor) -> g.Value:
        value = self._constants.get(id(tensor))
        if value is None:
            value = self._constants[id(tensor)] = self.graph.constant(tensor._array, location())
            self._alive.append(tensor)
            if not isinstance(tensor._memory, np.ndarray):
                self._run_beside(tensor)
        return value

    def _run_beside(self, tensor: Tensor) -> None:
        """Has the function run where a tensor on a GPU lies: the first such one is an input, too, for its place."""
        function = self
        while function.parent is not None:
            function = function.parent
        if not function._placed:
            function._placed = True
            function.capture(tensor)

    def capture(self, tensor: Tensor) -> SymbolicTensor:
        """The tensor of this trace for one from outside, which becomes an input of the graph."""
        key = id(tensor)
        captured = self._inputs.get(key)
        if captured is not None:
            if number := getattr(tensor, "_id", 0):
                captured._id = number  # which it may have got meanwhile
            return captured
        if self.parent is None:
            if isinstance(tensor, SymbolicTensor) and not self._encloses(tensor.trace):
                raise LeakedTensorError(
                    f"{tensor!r} belongs to a function whose trace has ended or to another branch: it cannot be used "
                    f"here. Return it from the function that computes it.\n  {errors.user_line()}")
            captured = self.input(tensor.dims, tensor.dtype, "capture")
            self.captured.append(tensor)
        else:
            outer = self.parent.own_or_captured(tensor)
            captured = self.input(outer.dims, outer.dtype, "capture")
            self.captured.append(outer)
            self.sources[captured.value] = outer.value
        self._inputs[key] = captured
        self.originals[captured.value] = tensor  # which keeps it alive, and so its identity its own
        if getattr(tensor, "_id", 0):
            captured._id = tensor._id  # for recorders it is the same tensor
        return captured

    def _encloses(self, other: TraceLike) -> bool:
        """Whether `other` is a trace around the function that is traced here."""
        around = self.enclosing
        while around is not None:
            if around is other:
                return True
            around = around.parent or around.enclosing
        return False

    def own_or_captured(self, tensor: Tensor) -> SymbolicTensor:
        """`tensor` as a tensor of this trace, which captures it where it is from outside."""
        return tensor if isinstance(tensor, SymbolicTensor) and tensor.trace is self else self.capture(tensor)

    def unique_scope(self, name: str) -> str:
        """The name of the scope that a block of this name opens. Graphs of TensorFlow 1, in which all names are unique,
        override it."""
        return name

    def input(self, dims: Sequence[DimLike], dtype: DType, name: str = "") -> SymbolicTensor:
        """A new input of the graph."""
        tensor = symbolic(self.graph.add_input(dims, dtype, name), self)
        self.input_tensors.append(tensor)
        return tensor

    def tensor_of(self, value: g.Value) -> SymbolicTensor:
        """The tensor that stands for a value of the graph; recorders know it as the same."""
        if value.node is None:
            known = next((t for t in self.input_tensors if t.value is value), None)
            if known is not None:
                return known
        tensor = symbolic(value, self)
        if value in self.identities:
            tensor._id = self.identities[value]
        return tensor

    # -- variables --------------------------------------------------------------------------------
    def read_variable(self, variable: Variable) -> SymbolicTensor:
        """The value of a variable at this point; recorders are not told."""
        if "_order" not in vars(variable):  # of a user's class that keeps values itself: `Variable.__getattr__`
            return self.own(variable._value)
        return self._state(variable).tensor

    def assign_variable(self, variable: Variable, tensor: Tensor) -> None:
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
        assigned, = self.add(g.CUSTOM, [value, before.value], attrs, [value], [region])
        if same and record.active.get():
            record.record_custom(lambda cts: list(cts), (before,), (assigned,))
        self.assigned_within(variable, assigned)

    def assigned_within(self, variable: Variable, tensor: Tensor) -> None:
        """From here on `variable` has the value that a construct or a call gave it."""
        state = self._state(variable)
        state.tensor, state.assigned = self.own(tensor), True

    def own(self, tensor: Tensor) -> SymbolicTensor:
        """`tensor` as one of this trace; recorders know it as the same."""
        if isinstance(tensor, SymbolicTensor) and tensor.trace is self:
            return tensor
        return symbolic(self.lift(tensor), self)

    def _state(self, variable: Variable) -> _VariableState:
        state = self.variables.get(id(variable))
        if state is None:
            if self.parent is not None:
                self.parent._state(variable)
                dims = self.parent.variables[id(variable)].tensor.dims
            else:
                dims = self._variable_dims(variable)
            read = self.input(dims, variable.dtype, variable._name)
            self.captured.append(variable)
            self._alive.append(variable)
            state = self.variables[id(variable)] = _VariableState(variable, read)
        return state

    def _variable_dims(self, variable: Variable) -> Shape:
        """Sizes that later values of the variable may change are unknown."""
        declared = variable._shape.dims
        now = variable._value.dims
        if declared is None or len(declared) != len(now):
            return tuple([self.fresh("v") for _ in now])
        return tuple([self.fresh("v") if d is None else n for d, n in zip(declared, now, strict=True)])

    def initial_value(self, value: PythonValue, dtype: DType | None) -> Tensor:
        """The first value of a variable that is created here, as an eager tensor."""
        return self.creation.initial_value(value, dtype)

    def after(self, control_inputs: object) -> AbstractContextManager[None]:
        """A block whose operations come after others; program order is kept anyway."""
        del control_inputs
        return nullcontext()

    def effect(self, name: str, run: Callable[[], object]) -> Any:
        """Stage what `run` does for its effect. None; in graphs of TensorFlow 1, where nothing happens unless a session
        runs it, the operation of what was staged.

        Args:
            name: of the operation.
        """
        before = len(self.graph.nodes)
        run()
        return self.effects_since(before, name)

    def effects_since(self, count: int, name: str) -> Any:
        """The operation of all nodes but the first `count`: see `effect`."""

    def decided(self, test: SymbolicTensor) -> SymbolicTensor | bool:
        """The condition of an assertion. Graphs of TensorFlow 1 say whether it holds, where constants tell it, so that
        one that fails raises where it is written."""
        return test

    def differentiated(self) -> None:
        """Told when gradients were asked for: constructs may have been replaced by ones that give residuals."""

    def inlined(self, call: g.Node | None, nodes: Sequence[g.Node]) -> None:
        """Told when the nodes of a called function were staged rather than a call: in the place of `call`, where there
        was such a node."""

    def sliced(self, source: Any) -> SymbolicSlice:
        """A part of a variable, which can be read and assigned to; `source` is `variable[key]`, as `eager/variable.py`
        holds it."""
        value = indexing.index(source._variable._read_tensor(), source._key)
        assert isinstance(value, SymbolicTensor)  # as the results of all ops are in a trace
        part = SymbolicSlice.__new__(SymbolicSlice)
        part.value, part.trace, part._source = value.value, value.trace, source
        if hasattr(value, "_id"):
            part._id = value._id
        return part

    # -- sizes ------------------------------------------------------------------------------------
    def _with_sizes(self, op: Op, inputs: Operands) -> Operands:
        """Operands with tensors in the places of sizes, of the dtype that a Python int would get there."""
        dtype = next((x.dtype for x in inputs if isinstance(x, Tensor) or hasattr(x, "_read_tensor")), None)
        if dtype is None or op.match == ():
            dtype = dt.float32 if op.match != () and any(type(x) is float for x in inputs) else dt.int32
        return tuple([self.size_as(x, dtype) if isinstance(x, Dim) else x for x in inputs])

    def size_as(self, size: Dim, dtype: DType) -> Tensor:
        """A size as a scalar of any dtype."""
        if dtype in (dt.int32, dt.int64):
            return self.size(size, dtype)
        return ops.cast(self.size(size), dtype=dtype)

    def size(self, size: DimLike, dtype: DType = dt.int64) -> SymbolicTensor:
        """A size as an integer scalar."""
        return self.add(g.SIZE, (), {"size": size, "dtype": dtype}, (spec((), dtype),))[0]

    def before_cast(self, tensor: SymbolicTensor) -> SymbolicTensor | None:
        """What a tensor was cast from; None where it was not."""
        node = tensor.value.node
        if node is None or node.op is not ops.cast:
            return None
        return symbolic(node.inputs[0], tensor.trace)

    def sizes_of(self, tensor: SymbolicTensor) -> Shape:
        """The elements of an integer tensor as sizes; one that does not follow from others becomes a new symbol."""
        if not tensor.dtype.is_integer:
            raise TypeError(f"sizes must be integers; got {tensor!r}.\n  {errors.user_line()}")
        array = elements(tensor.value, tensor.trace, self)
        if array is None:
            return tuple([self._bound(element) for element in self._elements_of_many(tensor)])
        return tuple([self._bound(x) if isinstance(x, Open) else x for x in array.ravel()])

    def parts_of(self, tensor: SymbolicTensor) -> list[DimLike | Tensor]:
        """The elements of an integer tensor, flat: numbers, sizes, scalar tensors for what only running can tell."""
        array = elements(tensor.value, tensor.trace, self)
        if array is None:
            return [self._scalar(element) for element in self._elements_of_many(tensor)]
        return [self._scalar(x) if isinstance(x, Open) else x for x in array.ravel()]

    def _elements_of_many(self, tensor: SymbolicTensor) -> list[Open]:
        """The elements of a tensor that is too long for its contents to be followed."""
        count = dm.numel(tensor.dims)
        if isinstance(count, Dim):
            raise TypeError(f"{tensor!r} has an unknown number of elements: it cannot give sizes.\n"
                            f"  {errors.user_line()}")
        return [Open(tensor.trace, tensor.value, i) for i in range(count)]

    def _bound(self, element: Open) -> Dim:
        """The size that an element is, bound here: this trace and those inside of it know it by that from now on."""
        key, home = (element.value, element.index), self._home(element)
        if home is self:
            symbol = self._bind(self._scalar(element))
        else:
            with home.active():  # the loop asks for it outside of what is traced here
                self.needed.append(home._scalar(element))
            symbol = home.clamped[key] if key in home.clamped else home._bind_clamped(element)
        self.bindings[key] = symbol
        return symbol

    def _bind(self, scalar: Tensor) -> Dim:
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

    def _scalar(self, element: Open) -> Tensor:
        """The element as a scalar tensor."""
        source = symbolic(element.value, element.trace)
        if not source.dims:
            return source
        with record.telling(()):
            flat = ops.reshape(source, shape=(dm.numel(source.dims),))
            return ops.reshape(ops.slice_(flat, begin=(element.index,), size=(1,)), shape=())

    def same_sizes(self, names: Sequence[DimLike], sizes: Sequence[DimLike]) -> None:
        """Replace those of `names` that are single symbols by the sizes beside them, in the graph and its guards."""
        new = {name: size for old, size in zip(names, sizes, strict=True)
               if old != size and isinstance(old, Dim) and (name := old.name_alone()) is not None}
        if new:
            symbols.rename(self.graph, new)
            if self.guards is not None:
                self.guards[:] = [renamed(guard, new) for guard in self.guards]

    def assume_shape(self, tensor: SymbolicTensor, shape: TensorShape) -> None:
        """Record the sizes of `shape` that were unknown, and give them to `tensor`.

        Raises:
            ValueError: it contradicts it.
        """
        if not tensor.shape.is_compatible_with(shape) or shape.rank not in (None, len(tensor.dims)):
            raise ValueError(f"Tensor's shape {tensor.shape} is not compatible with supplied shape {shape}.")
        for have, want in zip(tensor.dims, shape.dims or (), strict=False):
            if want is not None:
                dm.require(have, "==", want)
        wanted = tensor.dims if shape.dims is None else shape.dims
        dims = tuple([have if want is None else want for have, want in zip(tensor.dims, wanted, strict=True)])
        if dims != tensor.dims and interpreter() is self:  # in a region inside of this trace there is no place for it
            with record.telling(()):  # for tapes it stays the same tensor
                tensor.value = ops.reshape(tensor, shape=dims).value

    # -- regions ----------------------------------------------------------------------------------
    def region(self, name: str, specs: Sequence[Spec], body: PythonFunction, repeats: bool = False) -> Region:
        """Trace `body` with tensors of `specs` as a region of this trace.

        Args:
            name: of the region's graph.
            specs: of the region's own inputs, which come first.
            body: called with tensors; its result is the region's `result`, as it is.
            repeats: whether it is the body of a loop.
        """
        inner = Trace(name, self)
        inner.repeats = repeats
        inputs = [inner.input(s.dims, s.dtype) for s in specs]
        with record.telling(()), inner.active():
            result = body(*inputs)
        if self.guards is not None:
            for guard in inner.guards or ():
                self._staging = guard.origin
                dm.require(guard.left, guard.op, guard.right)
            self._staging = None
        return Region(inner, len(inputs), result)


class Region:
    """A traced region whose construct is not made yet: its graph has no outputs so far.

    Attributes:
        trace: its trace, which has ended.
        taken: how many inputs of its own it has, before those that stand for captured tensors.
        result: what its body returned.
    """

    def __init__(self, trace: Trace, taken: int, result: Any) -> None:  # whoever has it traced knows the body
        self.trace, self.taken, self.result = trace, taken, result

    @property
    def assigned(self) -> list[Variable]:
        """The variables that the region assigns."""
        return [s.variable for s in self.trace.variables.values() if s.assigned]

    def value_of(self, variable: Variable) -> g.Value:
        """The value of a variable where the region ends; an input of the region when it does not assign it."""
        return self.trace._state(variable).tensor.value

    def lift(self, tensor: Tensor) -> g.Value:
        """The value in the region of any tensor."""
        with self.trace.active():
            return self.trace.lift(tensor)

    def graph_over(self, outer: Sequence[Captured], outputs: Sequence[g.Value]) -> g.Graph:
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

    def _dims(self, outer: Captured) -> Shape:
        if isinstance(outer, Tensor):
            return outer.dims
        parent = self.trace.parent
        assert parent is not None, "a region has a trace around it"
        return parent._state(outer).tensor.dims


_MAPPED = errors.SOURCE_MAPS


def location() -> g.Location | None:
    """The innermost line that is not ours, as the user wrote it; of a graph that is written into this one, its own."""
    if (staged := errors.staged_at.get()) is not None:
        return g.Location(*staged)
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and errors.is_ours(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None:
        return None
    file, line = frame.f_code.co_filename, frame.f_lineno
    mapped = _MAPPED.get(file)
    if mapped is not None:
        return g.Location(*mapped(line, frame.f_code.co_name))
    return g.Location(file, line, frame.f_code.co_name)
