"""Arguments that decide how a function is put together, such as an axis, given as tensors that only running can tell.

A public function that meets one raises `ChoiceNeeded`. Its call is then staged once for each value that the argument
may have, as the sides of branches, and running takes the one whose value it is: the ops are those of a call with a
Python integer, hence results and gradients too. Sizes that differ between the values are unknown afterwards. Values
for which the call cannot be staged, and those out of range, are errors when the function runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from twofold.eager import convert
from twofold.eager.tensor import Tensor
from twofold.ir import dtypes as dt
from twofold.ir import errors, ops
from twofold.ir.errors import ChoiceNeeded, SymbolicOperand
from twofold.ir.types import AnyTensor
from twofold.runtime import native

from .conditional import branch
from .operators import stage_assert
from .symbolic import SymbolicTensor, SymbolicValueError
from .trace import current
from .types import Args, Kwargs, PythonFunction, PythonValue, Structure

__all__ = ["staged_choice", "chosen", "either"]

_CASES = 16  # the most values that are staged
_REFUSED = (errors.OpError, ValueError, TypeError, IndexError, NotImplementedError)


def staged_choice(function: PythonFunction, args: Args, kwargs: Kwargs, needed: SymbolicOperand) -> Structure:
    """The result of `function(*args, **kwargs)`, which has raised `needed`.

    Raises:
        SymbolicValueError: no switch can be made: the argument may have any value, or too many, or is no argument of
            the function itself. Like any value that Python asks for, it makes the traced function run eagerly.
    """
    assert isinstance(needed, ChoiceNeeded), "no other error is answered here"
    return _Switch(function, needed).result(args, kwargs)


class _Switch:
    """A call that is staged once for each value of an argument."""

    def __init__(self, function: PythonFunction, needed: ChoiceNeeded) -> None:
        self.function, self.needed = function, needed

    def result(self, args: Args, kwargs: Kwargs) -> Structure:
        """The result of the call."""
        tensor, span = self.needed.tensor, self.needed.span
        if not _holds(args, tensor) and not _holds(kwargs, tensor):
            raise SymbolicValueError(str(self.needed))
        if tensor.dims:
            return self._called(args, kwargs, _parts(tensor, self.needed))
        if span is None or span[1] - max(span[0], 0) > _CASES:
            raise SymbolicValueError(str(self.needed))
        place, values = self._normalized()
        try:
            return self._chosen(place, values, args, kwargs)
        except _REFUSED as error:
            if isinstance(error, SymbolicValueError):
                raise
            return self._of_accepted(place, values, args, kwargs, error)

    def _called(self, args: Args, kwargs: Kwargs, value: int | list[Tensor]) -> Structure:
        """The call with `value` in place of the tensor; other arguments that decide are chosen inside."""
        tensor = self.needed.tensor
        args = tuple([_replaced(a, tensor, value) for a in args])
        kwargs = {name: _replaced(a, tensor, value) for name, a in kwargs.items()}
        try:
            return self.function(*args, **kwargs)
        except ChoiceNeeded as error:
            needed = error
        return _Switch(self.function, needed).result(args, kwargs)

    def _normalized(self) -> tuple[Tensor, Sequence[int]]:
        """The argument as an int64 scalar, checked to be in range and with negative axes counted from the front; and
        the values it can have."""
        low, high = self.needed.span or (0, 0)
        place = ops.cast(self.needed.tensor, dtype=dt.int64)
        inside = ops.logical_and(ops.greater_equal(place, _long(low)), ops.less(place, _long(high)))
        what = self.needed.what
        stage_assert(inside, f"{self.function.__name__}: {what} is out of range; expected {low} <= {what} < {high}.",
                     (place,))
        if low < 0:
            place = ops.where(ops.less(place, _long(0)), ops.add(place, _long(-low)), place)
        return place, range(max(low, 0), high)

    def _chosen(self, place: Tensor, values: Sequence[int], args: Args, kwargs: Kwargs) -> Structure:
        """The result of the call for the one of `values` that equals `place`."""
        return chosen(place, values, lambda value: self._called(args, kwargs, value), self.function.__name__)

    def _of_accepted(self, place: Tensor, values: Sequence[int], args: Args, kwargs: Kwargs,
                     error: Exception) -> Structure:
        """The call for those values that it can be staged for; others are errors when the function runs.

        Raises:
            error: it can be staged for none.
            SymbolicValueError: it can be staged for each, but the results differ in structure, dtype or rank.
        """
        accepted = []
        for value in values:
            problem = self._refusal(value, args, kwargs)
            if problem is None:
                accepted.append(value)
            else:
                stage_assert(ops.not_equal(place, _long(value)), problem)
        if not accepted:
            raise error
        if len(accepted) == len(values):
            what, _, line = str(self.needed).partition("\n")
            reason = str(error).partition("\n")[0]
            raise SymbolicValueError(f"{what} The results for its values differ: {reason}\n{line}") from None
        return self._chosen(place, accepted, args, kwargs)

    def _refusal(self, value: int, args: Args, kwargs: Kwargs) -> str | None:
        """Why the call cannot be staged for `value`; None where it can."""
        trace = current()
        assert trace is not None, "an argument that only running can tell is of a trace"
        try:
            trace.region("trial", (), lambda: self._called(args, kwargs, value))
        except _REFUSED as error:
            return str(error).splitlines()[0]
        return None


def chosen(place: Tensor, values: Sequence[int], call: Callable[[int], Structure], name: str) -> Structure:
    """`call(value)` for the one of `values` that `place` is when the function runs: the last where it is none of them.

    Args:
        place: int64 scalar of the trace under way.
        name: of the public function, for errors.
    """
    value = values[0]
    if len(values) == 1:
        return call(value)
    return branch(ops.equal(place, _long(value)), lambda: call(value),
                  lambda: chosen(place, values[1:], call, name), name)


def either(holds: SymbolicTensor, then: Callable[[], Structure], otherwise: Callable[[], Structure],
           name: str) -> Structure:
    """`then()` where the scalar `holds` is true when the function runs, else `otherwise()`."""
    return branch(holds, then, otherwise, name)


def _long(value: int) -> Tensor:
    return convert.as_tensor(value, dt.int64)


def _parts(tensor: AnyTensor, needed: ChoiceNeeded) -> list[Tensor]:
    """The elements of a vector as scalars."""
    if len(tensor.dims) != 1 or not isinstance(tensor.dims[0], int):
        raise SymbolicValueError(str(needed))
    return [ops.reshape(ops.slice_(tensor, begin=(n,), size=(1,)), shape=()) for n in range(tensor.dims[0])]


def _holds(value: PythonValue, tensor: AnyTensor) -> bool:
    """Whether an argument is the tensor, or has it in lists, tuples and dicts."""
    if value is tensor:
        return True
    items = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return any(_holds(item, tensor) for item in items)


def _replaced(value: PythonValue, tensor: AnyTensor, other: int | list[Tensor]) -> PythonValue:
    """`value` with `other` in place of the tensor, in lists, tuples and dicts too."""
    if value is tensor:
        return other
    if isinstance(value, dict):
        return {key: _replaced(item, tensor, other) for key, item in value.items()}
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return type(value)(_replaced(item, tensor, other) for item in value)
    return value


native.stand_in(staged_choice, ChoiceNeeded)
