"""Loops, staged: `while` nodes whose carried values are what the body changes.

The test and the body are traced once as regions over the loop's variables. Where that shows an assumption to be wrong
(a number becomes a tensor of another dtype, a size varies), the regions are traced again.
Tensors from outside that the loop only reads are operands that do not change; variables that the body assigns are
carried with the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from twofold.eager import convert, record
from twofold.eager.tensor import Tensor
from twofold.eager.variable import Variable
from twofold.ir import dtypes as dt
from twofold.ir import errors, ops
from twofold.ir import graph as g
from twofold.ir.dims import Dim, DimLike, Shape, symbols_of
from twofold.ir.dtypes import DType
from twofold.ir.spec import TensorShape, spec
from twofold.ir.types import Spec

from .composite import (
    Composite,
    MaybeDefined,
    Undefined,
    adapt,
    becomes_tensor,
    flatten,
    free_shapes,
    is_number,
    is_tensor,
    pack,
    same_form,
    same_value,
)
from .conditional import predicate, union, zeros
from .operators import stage_assert
from .symbolic import SymbolicTensor
from .trace import Region, Trace, current
from .types import Captured, PythonValue, Structure, Values

__all__ = ["LoopVariable", "while_loop"]

_ATTEMPTS = 12

#: from the values of a loop's variables to its condition, and to their next values
Test: TypeAlias = Callable[[Values], PythonValue]
Body: TypeAlias = Callable[[Values], Values]


class LoopVariable:
    """A variable of a loop: its value before, and assumptions about its shape.

    Attributes:
        name: for errors.
        value: any structure.
        invariants: None, or for each leaf None or a TensorShape that all its values fit.
    """

    def __init__(self, name: str, value: Structure, invariants: Sequence[TensorShape | None] | None = None) -> None:
        self.name = name
        self.late: Structure = None  # of a variable without a value before the loop: the one that the body gives it
        self.begin(value, invariants)

    def begin(self, value: Structure, invariants: Sequence[TensorShape | None] | None = None) -> None:
        """Begin with another value."""
        self.value = value
        self.leaves = [_Leaf(leaf, shape) for leaf, shape in
                       zip(flatten(value), invariants or free_shapes(value), strict=True)]

    def values(self, tensors: Iterator[Tensor]) -> Structure:
        """The variable with the next of `tensors` for its carried leaves."""
        return pack(self.value, [next(tensors) if leaf.carried else leaf.value for leaf in self.leaves])


class _Leaf:
    """A leaf of a variable: carried from round to round as a tensor, or a Python value that stays.

    Attributes:
        settled: whether the dtype is beyond doubt.
        start: of a carried leaf, the tensor that the first round gets.
        dims: of a carried leaf, the sizes that it has in every round.
    """

    start: Tensor

    def __init__(self, value: PythonValue, invariant: TensorShape | None) -> None:
        self.value = value
        self.invariant = invariant
        self.carried = becomes_tensor(value)
        self.settled = is_tensor(value) or not is_number(value)
        self.dims: Shape = ()
        if self.carried:
            self.start = _tensor(value)
            self._set_dims()

    def _set_dims(self) -> None:
        trace = current()
        assert trace is not None, "loops are staged inside of a trace only"
        self.dims = self.start.dims
        if self.invariant is not None and self.invariant.dims is not None:
            self.dims = tuple([trace.fresh("s") if want is None and not isinstance(have, Dim) else have
                               for have, want in zip(self.dims, self.invariant.dims, strict=True)])

    def adopt(self, dtype: DType) -> None:
        """Be carried with this dtype."""
        self.carried, self.settled = True, True
        self.start = convert.as_tensor(self.value, dtype)
        self._set_dims()


def _tensor(value: PythonValue) -> Tensor:
    return value._read_tensor() if isinstance(value, Variable) else convert.as_tensor(value)


class _Again(Exception):
    """Assumptions about the variables have changed: trace once more."""


def while_loop(test: Test, body: Body, variables: Sequence[LoopVariable], what: str,
               trips: DimLike | None = None) -> tuple[Values, Tensor | None]:
    """The values of the variables when the test first fails.

    Args:
        test: from the values of the variables to a condition.
        body: from the values of the variables to their next values.
        variables: their names and first values.
        what: the statement, for errors.
        trips: a size that is at least the number of rounds, where one is known.
    Returns:
        The values, and None or, where a variable had no value before the loop, a bool tensor: whether the body ran.
    Raises:
        TypeError: a variable changes its structure or dtype. ValueError: a variable changes its shape.
    """
    trace = current()
    assert trace is not None
    loop = _TracedLoop(trace, test, body, list(variables), what, trips)
    for _ in range(_ATTEMPTS):
        try:
            loop.attempt()
        except _Again:
            continue
        return loop.finish()
    raise TypeError(f"{what}: the types of the loop's variables do not settle.\n  {errors.user_line()}")


class _TracedLoop:
    """One loop while it is traced."""

    def __init__(self, trace: Trace, test: Test, body: Body, variables: list[LoopVariable], what: str,
                 trips: DimLike | None) -> None:
        self.trace, self.test, self.body, self.variables = trace, test, body, variables
        self.what, self.trips = what, trips
        self.regions: tuple[Region, Region]
        self.outputs: list[g.Value] = []

    def carried(self) -> list[tuple[LoopVariable, _Leaf]]:
        return [(v, leaf) for v in self.variables for leaf in v.leaves if leaf.carried]

    # -- tracing ----------------------------------------------------------------------------------
    def attempt(self) -> None:
        """Trace test and body under the present assumptions about the variables.

        Raises:
            _Again: the assumptions have changed.
        """
        try:
            self.regions = self._traced()
        except _Again:
            raise
        except Exception:
            if all(leaf.settled for _, leaf in self.carried()):
                raise
            self._look()
            raise _Again from None
        self._compare()

    def _traced(self) -> tuple[Region, Region]:
        specs = [spec(leaf.dims, leaf.start.dtype) for _, leaf in self.carried()]

        def values(carried: Sequence[Tensor]) -> Values:
            tensors = iter(carried)
            return [v.values(tensors) for v in self.variables]

        def condition(*carried: Tensor) -> bool | SymbolicTensor:
            return predicate(self.test(values(carried)), f"condition of {self.what}")
        return (self.trace.region("test", specs, condition),
                self.trace.region("body", specs, lambda *carried: self.body(values(carried)), repeats=True))

    def _look(self) -> None:
        """Trace with Python's own numbers, to learn which of them change and to what."""
        doubtful = [leaf for _, leaf in self.carried() if not leaf.settled]
        for leaf in doubtful:
            leaf.carried = False
        test, body = self._traced()
        del test
        for variable, after in zip(self.variables, body.result, strict=True):
            if variable.late is None and not isinstance(variable.value, Undefined):
                after = self._like(variable, after)
                for leaf, value in zip(variable.leaves, flatten(after), strict=True):
                    if leaf in doubtful:
                        self._decide(variable, leaf, value)

    def _decide(self, variable: LoopVariable, leaf: _Leaf, after: PythonValue) -> None:
        leaf.settled = True
        if _same(leaf.value, after):
            return  # it does not change
        if not becomes_tensor(after):
            raise self._kind_error(variable, leaf, after)
        dtype = after.dtype if hasattr(after, "dtype") else convert.as_tensor(after).dtype
        leaf.adopt(dt.as_dtype(dtype))

    # -- the body's values ------------------------------------------------------------------------
    def _compare(self) -> None:
        outputs: list[g.Value] = []
        again = False
        body = self.regions[1]
        for variable, after in zip(self.variables, body.result, strict=True):
            if isinstance(variable.value, Undefined):
                again |= self._defined(variable, after)
                continue
            after = self._like(variable, after)
            for leaf, value in zip(variable.leaves, flatten(after), strict=True):
                if not leaf.carried:
                    again |= self._static(variable, leaf, value)
                    continue
                output = self._next(variable, leaf, value)
                if output is None:
                    self._look()  # a number was taken for a tensor of the wrong dtype: learn the right one
                    raise _Again
                again |= self._relaxed(variable, leaf, output)
                outputs.append(output)
        if again:
            raise _Again
        self.outputs = outputs

    def _defined(self, variable: LoopVariable, after: PythonValue) -> bool:
        """Note the value of a variable that the body defines; whether rounds must hand it on, as not all assign it."""
        if isinstance(after, MaybeDefined) and after.defined is not None:
            body = self.regions[1]
            with body.trace.active():
                values = [body.trace.lift(_tensor(leaf)) if is_tensor(leaf) else leaf for leaf in flatten(after.value)]
            starts = [zeros([0 if isinstance(d, Dim) else d for d in v.dims], v.dtype) if isinstance(v, g.Value) else v
                      for v in values]
            free = [TensorShape([None if isinstance(d, Dim) else d for d in v.dims]) if isinstance(v, g.Value) else None
                    for v in values]
            variable.begin(MaybeDefined(pack(after.value, starts), False, after.name), [*free, None])
            return True
        variable.late = None if isinstance(after, Undefined) else after
        return False

    def _like(self, variable: LoopVariable, after: PythonValue) -> PythonValue:
        """The body's value in the form of the one before."""
        before = variable.value
        if before is None and after is not None:  # a None that the loop replaces stands for a value that is not there
            variable.begin(Undefined(variable.name))
            raise _Again
        if isinstance(before, MaybeDefined) and not isinstance(after, MaybeDefined):
            after = MaybeDefined(after, None if before.defined is None else True, before.name)
        if not same_form(before, after):
            adapted = adapt(before, after)
            if adapted is not None:
                variable.begin(adapted)
                raise _Again
            if becomes_tensor(after) and len(flatten(before)) == 1:
                raise self._kind_error(variable, variable.leaves[0], after)
            hint = "\n  Hint: collect the items in a tf.TensorArray: array = array.write(i, item), then " \
                   "array.stack()." if isinstance(before, list) and isinstance(after, list) else ""
            raise TypeError(f"{self.what}: '{variable.name}' has one structure before the loop and another after a "
                            f"round: {_shown(before)} and {_shown(after)}.{hint}\n  {errors.user_line()}")
        return after

    def _static(self, variable: LoopVariable, leaf: _Leaf, after: PythonValue) -> bool:
        if _same(leaf.value, after):
            return False
        if not is_number(leaf.value) or not becomes_tensor(after):
            raise self._kind_error(variable, leaf, after)
        self._decide(variable, leaf, after)
        return True

    def _kind_error(self, variable: LoopVariable, leaf: _Leaf, after: PythonValue) -> TypeError:
        return TypeError(f"{self.what}: '{variable.name}' is {errors.describe(leaf.value)} before the loop and "
                         f"{errors.describe(after)} after a round: what a loop changes must be a tensor from the "
                         f"start.\n  {errors.user_line()}")

    def _next(self, variable: LoopVariable, leaf: _Leaf, after: PythonValue) -> g.Value | None:
        """The body's value of a carried leaf; None when the dtype was assumed, and wrongly."""
        body = self.regions[1]
        want = leaf.start.dtype
        if not becomes_tensor(after):
            raise self._kind_error(variable, leaf, after)
        with body.trace.active():
            tensor = after._read_tensor() if isinstance(after, Variable) else after
            if not isinstance(tensor, Tensor):
                try:
                    tensor = convert.as_tensor(tensor, want)
                except (TypeError, ValueError):
                    tensor = convert.as_tensor(tensor)
            if tensor.dtype is want:
                return body.trace.lift(tensor)
        if not leaf.settled:
            return None
        raise TypeError(f"{self.what}: '{variable.name}' has dtype {want.name} before the loop, but dtype "
                        f"{tensor.dtype.name} after one iteration.\n  Hint: tf.cast one of them.\n"
                        f"  {errors.user_line()}")

    def _relaxed(self, variable: LoopVariable, leaf: _Leaf, output: g.Value) -> bool:
        """Make sizes unknown that vary, where that is allowed; whether any was made so."""
        before, after = leaf.dims, output.dims
        if len(before) != len(after):
            raise self._shape_error(variable, leaf, output)
        changed = False
        own = symbols_of(leaf.dims) - symbols_of(leaf.start.dims)
        dims = list(before)
        for axis, (x, y) in enumerate(zip(before, after, strict=True)):
            if x is y or x == y:
                continue
            if isinstance(x, Dim) and x.name_alone() in own:
                continue  # unknown already
            if not isinstance(x, Dim):
                raise self._shape_error(variable, leaf, output)
            dims[axis] = self.trace.fresh("s")
            changed = True
        leaf.dims = tuple(dims)
        return changed

    def _shape_error(self, variable: LoopVariable, leaf: _Leaf, output: g.Value) -> ValueError:
        def shape(dims: Sequence[DimLike]) -> str:
            return str(TensorShape([None if isinstance(d, Dim) else d for d in dims]))
        return ValueError(
            f"{self.what}: '{variable.name}' has shape {shape(leaf.dims)} before the loop, but shape "
            f"{shape(output.dims)} after one iteration.\n  Hint: to let the shape vary, give shape_invariants: "
            f"tf.while_loop(..., shape_invariants=...), or tf.autograph.experimental.set_loop_options("
            f"shape_invariants=[({variable.name}, tf.TensorShape(...))]) at the start of the loop.\n"
            f"  {errors.user_line()}")

    # -- the node ---------------------------------------------------------------------------------
    def finish(self) -> tuple[Values, Tensor | None]:
        """Make the node; see `while_loop`."""
        test, body = self.regions
        if test.assigned:
            names = ", ".join(v.name for v in test.assigned)
            raise ValueError(f"{self.what}: the condition assigns {names}; assign variables in the body.\n"
                             f"  {errors.user_line()}")
        carried = self.carried()
        late = self._late_leaves()
        tensors = [leaf.start for _, leaf in carried] + [start for start, _ in late]
        outputs = self.outputs + [value for _, value in late]
        condition = self._condition(test)
        written = body.assigned
        outputs += [body.value_of(v) for v in written]
        outer = written + [t for t in union(self.regions) if not any(t is v for v in written)]
        hidden = [spec(tuple([self.trace.fresh("s") if isinstance(d, Dim) else d for d in value.dims]), value.dtype)
                  for _, value in late]
        graphs = [_over(test, hidden, outer, [condition]), _over(body, hidden, outer, outputs)]
        specs = self._result_specs(outputs, len(carried))
        self._test_sizes()
        node_results = self.trace.construct(g.WHILE, [*tensors, *outer], {"carried": len(outputs), "trips": self.trips},
                                            specs, graphs)
        for variable, tensor in zip(written, node_results[len(tensors):], strict=True):
            self.trace.assigned_within(variable, tensor)
        return self._values(node_results, carried, late)

    def _test_sizes(self) -> None:
        """Integers from outside that the body takes as sizes must not be negative if there is a round."""
        test, body = self.regions
        if not body.trace.needed:
            return
        with record.telling(()):
            signs = [ops.greater_equal(x, convert.as_tensor(0, x.dtype)) for x in body.trace.needed]
            if not any(g.effect_of(n) for n in test.trace.graph.nodes):
                starts = iter([leaf.start for _, leaf in self.carried()])
                runs = predicate(self.test([v.values(starts) for v in self.variables]), f"condition of {self.what}")
                if not isinstance(runs, bool):
                    signs = [ops.logical_or(ops.logical_not(runs), sign) for sign in signs]
                elif not runs:
                    return
            for sign, size in zip(signs, body.trace.needed, strict=True):
                stage_assert(sign, "shape: a size must not be negative.", (size,))

    def _condition(self, test: Region) -> g.Value:
        condition = test.result
        return test.lift(convert.as_tensor(condition) if isinstance(condition, bool) else condition)

    def _late_leaves(self) -> list[tuple[Tensor, g.Value]]:
        """Of variables that the body defines, and of "the body ran": a tensor to begin with, and the body's value."""
        body = self.regions[1]
        leaves = []
        if not any(v.late is not None for v in self.variables):
            return []
        for variable in self.variables:
            for leaf in flatten(variable.late) if variable.late is not None else []:
                if becomes_tensor(leaf):
                    with body.trace.active():
                        value = body.trace.lift(_tensor(leaf))
                    start = zeros([0 if self._is_inner(d) else d for d in value.dims], value.dtype)
                    leaves.append((start, value))
        leaves.append((convert.as_tensor(False), body.lift(convert.as_tensor(True))))
        return leaves

    def _is_inner(self, size: DimLike) -> bool:
        return isinstance(size, Dim) and not size.symbols().isdisjoint(self._inner())

    def _inner(self) -> set[str]:
        own = {name for _, leaf in self.carried() for name in symbols_of(leaf.dims) - symbols_of(leaf.start.dims)}
        return own | self.regions[1].trace.born

    def _result_specs(self, outputs: list[g.Value], count: int) -> list[Spec]:
        """The specs of the results, with the sizes of the carried leaves that do not vary."""
        inner = self._inner()
        carried = [leaf.dims for _, leaf in self.carried()]
        specs = []
        for number, value in enumerate(outputs):
            dims = carried[number] if number < count else value.dims
            specs.append(spec(tuple([self.trace.fresh("w") if isinstance(d, Dim) and not d.symbols().isdisjoint(inner)
                                     else d for d in dims]), value.dtype))
        return specs

    def _implied(self, carried: Sequence[tuple[LoopVariable, _Leaf]]) -> dict[int, bool]:
        """The flag that ends the loop is known after it."""
        test = self.regions[0]
        inputs = test.trace.graph.inputs
        condition = getattr(test.result, "value", None)
        node = getattr(condition, "node", None)
        negated = node is not None and getattr(node.op, "name", "") == "logical_not"
        asked = node.inputs[0] if node is not None and negated else condition
        return {id(leaf): negated for (_, leaf), value in zip(carried, inputs, strict=False) if value is asked}

    def _values(self, node_results: Sequence[Tensor], carried: Sequence[tuple[LoopVariable, _Leaf]],
                late: Sequence[tuple[Tensor, g.Value]]) -> tuple[Values, Tensor | None]:
        results = iter(node_results)
        unchanged = {id(leaf) for (_, leaf), value, start in
                     zip(carried, self.outputs, self.regions[1].trace.graph.inputs, strict=False) if value is start}
        values: Values = []
        implied = self._implied(carried)
        for variable in self.variables:
            if isinstance(variable.value, Undefined):
                values.append(None)
                continue
            leaves = []
            for leaf in variable.leaves:
                tensor = next(results) if leaf.carried else None
                if not leaf.carried or id(leaf) in unchanged:
                    leaves.append(leaf.value)
                else:
                    leaves.append(implied.get(id(leaf), tensor))
            values.append(pack(variable.value, leaves))
        for number, variable in enumerate(self.variables):
            if variable.late is not None:
                values[number] = pack(variable.late, [next(results) if becomes_tensor(leaf) else leaf
                                                      for leaf in flatten(variable.late)])
            elif isinstance(variable.value, Undefined):
                values[number] = variable.value
        return values, next(results) if late else None


def _over(region: Region, hidden: Sequence[Spec], outer: Sequence[Captured], outputs: Sequence[g.Value]) -> g.Graph:
    """The region's graph over its own inputs, some that it does not read, and `outer`."""
    graph = region.graph_over(outer, outputs)
    unread = [g.Value(s.dims, s.dtype) for s in hidden]
    graph.inputs[region.taken:region.taken] = unread
    for number, value in enumerate(graph.inputs):
        value.index = number
    return graph


def _same(a: PythonValue, b: PythonValue) -> bool:
    if a is b:
        return True
    if is_tensor(a) or is_tensor(b) or type(a) is not type(b):
        return False
    return same_value(a, b)


def _shown(value: PythonValue) -> str:
    return type(value).__name__ if isinstance(value, Composite) else errors.describe(value)
