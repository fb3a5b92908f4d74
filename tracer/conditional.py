"""Branches, staged: both sides traced as regions, and a `cond` node that gives the results of one.

A result that is the same Python value on both sides stays that value; others become tensors. Variables that a
side assigns are further results. Sizes that differ between the sides are new symbols, which the result binds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from twofold.eager import convert
from twofold.eager.tensor import Tensor
from twofold.eager.variable import Variable
from twofold.ir import dtypes as dt
from twofold.ir import errors, nest, ops
from twofold.ir import graph as g
from twofold.ir.dims import Dim, DimLike, Shape
from twofold.ir.dtypes import DType
from twofold.ir.op import Op
from twofold.ir.spec import spec
from twofold.ir.type_spec import CompositeTensor
from twofold.ir.types import Spec

from .composite import (
    Composite,
    MaybeDefined,
    Undefined,
    adapt,
    becomes_tensor,
    flatten,
    is_number,
    pack,
    same_form,
    same_value,
)
from .symbolic import SymbolicTensor
from .trace import Region, Trace, current
from .types import Captured, PythonValue, Structure, Values

if TYPE_CHECKING:
    import numpy as np

__all__ = ["predicate", "branch", "decided", "branch_values", "union", "zeros"]


def predicate(value: PythonValue, what: str = "condition") -> bool | SymbolicTensor:
    """A condition as a Python bool where it is known, else as a scalar bool tensor of the present trace.

    Raises:
        ValueError: it is a tensor of several elements.
    """
    if isinstance(value, Variable):
        value = value._read_tensor()
    if not isinstance(value, SymbolicTensor):
        if isinstance(value, Tensor) and value._memory.size != 1:
            raise ValueError(errors.no_truth(value, what))
        return bool(value)
    constant = g.constant_of(value.value)
    if constant is not None:
        return bool(constant)
    if any(d != 1 for d in value.dims):
        raise ValueError(errors.no_truth(value, what))
    scalar: SymbolicTensor = ops.reshape(value, shape=()) if value.dims else value
    return scalar if scalar.dtype is dt.bool_ else ops.not_equal(scalar, convert.number(0, scalar.dtype))


def decided(test: SymbolicTensor) -> bool | None:
    """The value of a condition that is computed from constants alone, such as ranks; None where it is not."""
    known = _known(test.value)
    return None if known is None else bool(known)


def _known(value: g.Value) -> np.ndarray | None:
    constant, node = g.constant_of(value), value.node
    if constant is not None or node is None or not isinstance(node.op, Op) or node.op.body is None or value.dims:
        return constant
    from twofold.ir.passes import folding  # which importing twofold does not load
    operands = [known for operand in node.inputs if (known := _known(operand)) is not None]
    results = folding.computed(node, operands) if len(operands) == len(node.inputs) else None
    return None if results is None else results[value.index]


def branch(pred: SymbolicTensor, then: Callable[[], Structure], otherwise: Callable[[], Structure],
           what: str = "tf.cond") -> Any:  # of the form that both sides have
    """The result of `then()` or of `otherwise()`, as a tensor decides when the function runs.

    Raises:
        TypeError: the results differ in structure or dtype, or have values that cannot differ.
    """
    result, = branch_values(pred, lambda: [then()], lambda: [otherwise()], ["the result"], what)
    return result


def branch_values(pred: SymbolicTensor, then: Callable[[], Values], otherwise: Callable[[], Values],
                  names: Sequence[str], what: str) -> Values:
    """The values of several variables, as `then()` or `otherwise()` gives them.

    Args:
        names: of the variables, for errors.
        what: the statement, for errors.
    """
    trace = current()
    assert trace is not None
    regions = (trace.region("then", (), then), trace.region("else", (), otherwise))
    joint = _Joint(trace, regions, pred, what)
    joined = [joint.value(a, b, name) for a, b, name in zip(regions[0].result, regions[1].result, names, strict=True)]
    joint.finish()
    return [joint.filled(value) for value in joined]


class _NodeResult:
    """Stands for a result of the `cond` node, until the node is made."""

    def __init__(self, number: int) -> None:
        self.number = number


class _Joint:
    """Joins two traced sides into one `cond` node."""

    def __init__(self, trace: Trace, regions: tuple[Region, Region], pred: SymbolicTensor, what: str) -> None:
        self.trace, self.regions, self.what = trace, regions, what
        self.outputs: tuple[list[g.Value], list[g.Value]] = ([], [])
        self.specs: list[Spec] = []
        self.sizes: dict[tuple[DimLike, DimLike], Dim] = {}
        self.results: Sequence[SymbolicTensor] = ()  # of the node, once it is made
        self.pred = pred

    def value(self, a: PythonValue, b: PythonValue, name: str) -> PythonValue:
        """The joined value of a variable, with a `_NodeResult` for each leaf that the node computes."""
        if a is b:
            return a
        if isinstance(a, Undefined) and isinstance(b, Undefined):
            return a
        if isinstance(a, (Undefined, MaybeDefined)) or isinstance(b, (Undefined, MaybeDefined)):
            return self._maybe_defined(a, b, name)
        if not same_form(a, b):
            a, b = self._adapted(0, a, b), self._adapted(1, b, a)
        if not same_form(a, b):
            hint = "; collect items in a tf.TensorArray" if isinstance(a, list) and isinstance(b, list) else ""
            raise self.error(name, f"must have one structure on both sides; got {_shown(a)} and {_shown(b)}{hint}")
        leaves = [self._leaf(x, y, name) for x, y in zip(flatten(a), flatten(b), strict=True)]
        composite = any(isinstance(x, CompositeTensor) for x in nest.flatten(a, expand_composites=False))
        return _Packed(nest.map_structure(_either, a, b, expand_composites=False) if composite else a, leaves)

    def _maybe_defined(self, a: PythonValue, b: PythonValue, name: str) -> _JoinedMaybeDefined:
        """The joined value of a variable that a side leaves undefined, or may."""
        values = [x.value if isinstance(x, MaybeDefined) else None if isinstance(x, Undefined) else x for x in (a, b)]
        flags = [x.defined if isinstance(x, MaybeDefined) else not isinstance(x, Undefined) for x in (a, b)]
        if isinstance(a, Undefined):
            values[0] = self._filler(0, values[1], 1)
        elif isinstance(b, Undefined):
            values[1] = self._filler(1, values[0], 0)
        returned = any(getattr(x, "returned", False) for x in (a, b)) or None in flags
        joined = self.value(values[0], values[1], name)
        return _JoinedMaybeDefined(joined, None if returned else self._leaf(flags[0], flags[1], name), name)

    def _filler(self, side: int, like: Structure, other: int) -> Structure:
        """A value of the form that the other side has, where this side has none."""
        leaves = []
        for leaf in flatten(like):
            if not isinstance(leaf, (Tensor, Variable)):
                leaves.append(leaf)
                continue
            value = self.regions[other].lift(leaf) if isinstance(leaf, Tensor) else leaf
            with self.regions[side].trace.active():
                dims = [0 if self._is_inner(d) else d for d in value.dims]
                leaves.append(zeros(dims, value.dtype))
        return pack(like, leaves)

    def _adapted(self, side: int, value: PythonValue, other: PythonValue) -> PythonValue:
        with self.regions[side].trace.active():
            adapted = adapt(value, other)
        return value if adapted is None else adapted

    def _leaf(self, a: PythonValue, b: PythonValue, name: str) -> PythonValue:
        if a is b or (type(a) is type(b) and not isinstance(a, Tensor) and same_value(a, b)):
            return a
        if a is True and b is False:
            return self.pred
        if a is False and b is True:
            return ops.logical_not(self.pred)
        if not (becomes_tensor(a) and becomes_tensor(b)):
            raise self.error(name, f"is {_shown(a)} on one side and {_shown(b)} on the other: both must be tensors, "
                                   "or the same value")
        dtype = _common(a, b)
        tensors = [self._tensor(r, x, dtype) for r, x in zip(self.regions, (a, b), strict=True)]
        left, right = tensors
        if left.dtype is not right.dtype:
            raise self.error(name, f"has dtype {left.dtype.name} on one side and {right.dtype.name} on the other")
        if len(left.dims) != len(right.dims):
            raise self.error(name, f"has shape {_shape(left)} on one side and {_shape(right)} on the other: the number "
                                   "of axes must be one")
        self.specs.append(spec(self._dims(left.dims, right.dims), left.dtype))
        self.outputs[0].append(left)
        self.outputs[1].append(right)
        return _NodeResult(len(self.specs) - 1)

    def _tensor(self, region: Region, leaf: PythonValue, dtype: DType | None) -> g.Value:
        with region.trace.active():
            tensor = leaf._read_tensor() if isinstance(leaf, Variable) else convert.as_tensor(
                leaf, None if isinstance(leaf, Tensor) else dtype)
            return region.trace.lift(tensor)

    def _dims(self, left: Sequence[DimLike], right: Sequence[DimLike]) -> Shape:
        return tuple([x if x is y or (x == y and not self._is_inner(x)) else self._unknown(x, y)
                      for x, y in zip(left, right, strict=True)])

    def _unknown(self, x: DimLike, y: DimLike) -> Dim:
        """The size of a result that is `x` or `y`: one symbol for each such pair."""
        size = self.sizes.get((x, y))
        if size is None:
            size = self.sizes[x, y] = self.trace.fresh("c")
        return size

    def _is_inner(self, size: DimLike) -> bool:
        """Whether a size is known only inside of a side."""
        return isinstance(size, Dim) and any(not size.symbols().isdisjoint(r.trace.born) for r in self.regions)

    def finish(self) -> None:
        """Make the node, and let variables have its results."""
        written: dict[int, Variable] = {id(v): v for r in self.regions for v in r.assigned}
        for variable in written.values():
            left, right = [r.value_of(variable) for r in self.regions]
            self.specs.append(spec(self._dims(left.dims, right.dims), left.dtype))
            self.outputs[0].append(left)
            self.outputs[1].append(right)
        if not self.specs and not any(g.effect_of(n) for r in self.regions for n in r.trace.graph.nodes):
            return
        outer = union(self.regions)
        graphs = [r.graph_over(outer, o) for r, o in zip(self.regions, self.outputs, strict=True)]
        self.results = self.trace.construct(g.COND, [self.pred, *outer], {}, self.specs, graphs)
        first = len(self.specs) - len(written)
        for variable, tensor in zip(written.values(), self.results[first:], strict=True):
            self.trace.assigned_within(variable, tensor)

    def filled(self, value: PythonValue) -> PythonValue:
        """A joined value with the node's results in its slots."""
        if isinstance(value, _NodeResult):
            return self.results[value.number]
        if isinstance(value, _JoinedMaybeDefined):
            defined = self.filled(value.defined)
            assert defined is None or isinstance(defined, (bool, Tensor)), "a joined flag is a truth value"
            return MaybeDefined(self.filled(value.value), defined, value.name)
        if isinstance(value, _Packed):
            return pack(value.form, [self.filled(leaf) for leaf in value.leaves])
        return value

    def error(self, name: str, problem: str) -> TypeError:
        """The error for sides that do not fit together."""
        subject = name if name == "the result" else f"'{name}'"
        return TypeError(f"{self.what}: {subject} {problem}.\n  {errors.user_line()}")


def _either(a: PythonValue, b: PythonValue) -> PythonValue:
    """What stands for two leaves in the form of both sides: for composite values the spec of what may be either,
    else the first one."""
    return a._joined_spec(b) if isinstance(a, CompositeTensor) and isinstance(b, CompositeTensor) else a


class _Packed:
    """A joined value before the node exists: leaves in the structure of `form`."""

    def __init__(self, form: Structure, leaves: list[PythonValue]) -> None:
        self.form, self.leaves = form, leaves


class _JoinedMaybeDefined:
    """Stands for a `MaybeDefined` of the joined value, until the node is made."""

    def __init__(self, value: PythonValue, defined: PythonValue, name: str) -> None:
        self.value, self.defined, self.name = value, defined, name


def union(regions: Sequence[Region]) -> list[Captured]:
    """The captured tensors and variables of regions, each once."""
    return list({id(t): t for r in regions for t in r.trace.captured}.values())


def zeros(dims: Sequence[DimLike], dtype: DType) -> Tensor:
    """A tensor of zeros (empty strings, False), where a value is needed that nothing reads."""
    zero = convert.as_tensor(b"" if dtype is dt.string else False if dtype is dt.bool_ else 0, dtype)
    return ops.fill(zero, shape=tuple(dims)) if dims else zero


def _common(a: PythonValue, b: PythonValue) -> DType | None:
    """The dtype that a number takes from the other side; None for its own."""
    for x, y in ((a, b), (b, a)):
        if is_number(x) and not is_number(y):
            return convert.as_tensor(x, hint=y.dtype).dtype if hasattr(y, "dtype") else None
    if is_number(a) and is_number(b) and bool not in (type(a), type(b)) and type(a) is not type(b):
        return dt.complex64 if complex in (type(a), type(b)) else dt.float32
    return None


def _shape(value: g.Value) -> str:
    return f"({', '.join('None' if isinstance(d, Dim) else str(d) for d in value.dims)})"


def _shown(value: PythonValue) -> str:
    if isinstance(value, Composite):
        return type(value).__name__
    return errors.describe(value)
