"""Calls in converted code: user functions are converted in turn, some builtins know traced tensors."""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

from twofold.eager import convert
from twofold.eager.tensor import Tensor
from twofold.eager.variable import Variable
from twofold.ir import dtypes as dt
from twofold.ir import errors, ops
from twofold.ir.dims import Dim
from twofold.runtime.leaving import for_the_user

from . import conditional, operators, sequences
from .loop import LoopVariable, while_loop
from .symbolic import SymbolicTensor
from .trace import current
from .types import Args, Captured, Kwargs, PythonFunction, PythonValue

__all__ = ["autograph_artifact", "list_append"]  # for converted code, which also has the function that `calls` makes

MARK = "__twofold_converted__"  # the attribute of functions that are not converted again

#: an argument of a builtin function: which values it takes, Python says when it is called
BuiltinArgument: TypeAlias = Any

#: gives the function that is called in place of a callable
Callee: TypeAlias = Callable[[PythonFunction], PythonFunction]


def autograph_artifact(function: PythonFunction, extras: object = None) -> PythonFunction:
    """Marks a function of converted code, so that a call of it does not convert it again."""
    setattr(function, MARK, True)
    return function


def calls(callee: Callee) -> PythonFunction:
    """The function through which converted code calls others."""
    special: dict[PythonFunction, PythonFunction] = {**_SPECIAL, map: _map_over(callee)}

    @for_the_user
    def converted_call(function: PythonFunction, args: Args, kwargs: Kwargs | None, scope: object = None,
                       options: object = None) -> PythonValue:
        """`function(*args, **kwargs)` with the function converted where it is the user's."""
        own = special.get(function) if _hashable(function) else None
        if own is not None and (not kwargs or function in _KEYWORDS):
            return own(*args, **(kwargs or {}))
        target = callee(function)
        return target(*args, **kwargs) if kwargs else target(*args)
    return converted_call


def _hashable(function: PythonFunction) -> bool:
    return type(function) in _SPECIAL_KINDS


_SPECIAL_KINDS = (type(len), type)


# -- builtins -------------------------------------------------------------------------------------
def _tensors(args: Iterable[PythonValue]) -> bool:
    return any(operators.staged(a) for a in args)


def _len(value: BuiltinArgument) -> PythonValue:
    if not operators.staged(value):
        return len(value)
    if isinstance(value, Variable):
        value = value._read_tensor()
    if not value.dims:
        raise TypeError("Scalar tensor has no `len()`")
    size = value.dims[0]
    trace = current()
    assert trace is not None, "a staged value is of a trace"
    return trace.size(size, dt.int32) if isinstance(size, Dim) else size


def _int(value: BuiltinArgument = 0, *base: BuiltinArgument) -> PythonValue:
    return ops.cast(_read(value), dtype=dt.int32) if operators.staged(value) and not base else int(value, *base)


def _float(value: BuiltinArgument = 0.0) -> PythonValue:
    return ops.cast(_read(value), dtype=dt.float32) if operators.staged(value) else float(value)


def _bool(value: PythonValue = False) -> bool | SymbolicTensor:
    return operators.predicate(value, "operand of bool()") if operators.staged(value) else bool(value)


def _read(value: BuiltinArgument) -> BuiltinArgument:
    return value._read_tensor() if isinstance(value, Variable) else value


def _range(*args: BuiltinArgument) -> range | sequences.RangeOf:
    if not _tensors(args):
        return range(*args)
    if len(args) == 1:
        args = (0, args[0])
    values = [_read(a) for a in args] + [1] * (3 - len(args))
    dtype = next(v.dtype for v in values if isinstance(v, Tensor) and operators.staged(v))
    if not dtype.is_integer:
        raise TypeError(f"'{dtype.name}' tensor cannot be interpreted as an integer")
    return sequences.RangeOf(*[ops.reshape(convert.as_tensor(v, dtype), shape=()) for v in values])


def _enumerate(items: BuiltinArgument, start: BuiltinArgument = 0) -> enumerate[PythonValue] | sequences.StagedSequence:
    sequence = sequences.sequence(items) if sequences.is_staged_iterable(items) else None
    return enumerate(items, start) if sequence is None else sequence.enumerated(start)


def _zip(*items: BuiltinArgument, strict: bool = False) -> zip[Any] | sequences.StagedSequence:
    if items and all(sequences.is_staged_iterable(i) for i in items):
        first, *others = [s for i in items if (s := sequences.sequence(i)) is not None]
        if strict:
            _require_same_trips([first, *others])
        return first.zipped(others)
    return zip(*items, strict=strict)


def _require_same_trips(items: Sequence[sequences.StagedSequence]) -> None:
    trips = [i.trips for i in items]
    if not all(isinstance(t, int) for t in trips):
        raise TypeError("zip(..., strict=True) over tensors and datasets of unknown length cannot be staged: leave "
                        f"strict out.\n  {errors.user_line()}")
    if len(set(trips)) > 1:
        raise ValueError(f"zip() got tensors of different lengths: {trips}.\n  {errors.user_line()}")


def _abs(value: BuiltinArgument) -> PythonValue:
    return ops.abs_(_read(value)) if operators.staged(value) else builtins.abs(value)


def _extreme(plain: PythonFunction, beats: PythonFunction) -> PythonFunction:
    """`max` and `min`, by the comparisons that Python makes: a NaN wins only where it comes first."""
    def better(best: PythonValue, item: PythonValue) -> PythonValue:
        replaces = conditional.predicate(beats(item, best))
        if isinstance(replaces, bool):
            return item if replaces else best
        return conditional.branch(replaces, lambda: item, lambda: best, plain.__name__)

    def extreme(*args: BuiltinArgument) -> PythonValue:
        if len(args) == 1 and sequences.is_staged_iterable(args[0]) and current() is not None:
            items = _read(args[0])
            return _folded(items[1:], items[0], better)
        return functools.reduce(better, args) if len(args) > 1 and _tensors(args) else plain(*args)
    return extreme


def _folded(items: PythonValue, start: PythonValue, step: PythonFunction) -> PythonValue:
    """`step` over the items one by one, staged."""
    sequence = sequences.sequence(items)
    assert sequence is not None, "the items are staged"
    variables = [LoopVariable("the place", sequence.start), LoopVariable("the result", start)]
    (_, result), _ = while_loop(
        lambda values: sequence.more(values[0]),
        lambda values: [sequence.after(values[0]), step(values[1], sequence.item(values[0]))], variables, "loop",
        sequence.trips)
    return result


def _sum(items: BuiltinArgument, start: BuiltinArgument = 0) -> PythonValue:
    if not sequences.is_staged_iterable(items) or current() is None:
        return sum(items, start)
    return _folded(items, start, lambda total, item: total + item)


def _any(items: BuiltinArgument) -> PythonValue:
    if operators.staged(items):
        return ops.reduce_any(_truths(items))
    return any(items)


def _all(items: BuiltinArgument) -> PythonValue:
    if operators.staged(items):
        return ops.reduce_all(_truths(items))
    return all(items)


def _truths(items: Captured) -> Tensor:
    tensor: Tensor = _read(items)
    return tensor if tensor.dtype is dt.bool_ else ops.not_equal(tensor, 0)


def _map_over(callee: Callee) -> PythonFunction:
    """`map`: the function is the user's."""
    return lambda function, *items: map(callee(function) if callable(function) else function, *items)


_SPECIAL: dict[PythonFunction, PythonFunction] = {
    len: _len, int: _int, float: _float, bool: _bool, range: _range, enumerate: _enumerate, zip: _zip, abs: _abs,
    any: _any, all: _all,
    max: _extreme(max, lambda x, y: x > y), min: _extreme(min, lambda x, y: x < y), sum: _sum,
}
_KEYWORDS = (enumerate, zip)  # special functions that take keywords, too


# -- lists ----------------------------------------------------------------------------------------
def list_append(items: BuiltinArgument, item: PythonValue) -> PythonValue:
    """`items.append(item)`."""
    items.append(item)
    return items


