"""Conditions that must hold: checked at once in eager execution, staged in a trace; and the watch for NaN."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from twofold.eager import convert, record
from twofold.eager.tensor import Tensor, text_of
from twofold.eager.types import AnyVariable
from twofold.eager.variable import Variable
from twofold.ir import errors, ops
from twofold.ir.op import Op
from twofold.ir.types import Attrs

from .conditional import predicate
from .operators import stage_assert, staged
from .symbolic import SymbolicTensor
from .trace import current
from .types import Captured, PythonValue

__all__ = ["check", "enable_numerics", "disable_numerics", "watched"]


def check(holds: PythonValue, message: str, data: Sequence[PythonValue]) -> None:
    """An InvalidArgumentError with the message and the data unless `holds`, which may be a traced tensor."""
    test = predicate(holds, "condition of an assertion")
    shown = [_shown(d) for d in data]
    message = " ".join([message, *[d for d in shown if isinstance(d, str)]])
    tensors = tuple(d for d in shown if not isinstance(d, str))
    trace = current()
    if isinstance(test, SymbolicTensor) and trace is not None:
        test = trace.decided(test)
    if not isinstance(test, bool):
        stage_assert(test, message, tensors)
    elif not test:
        lines = "".join(f"\n  {_text(d)}" for d in tensors)
        raise errors.of_values(errors.InvalidArgumentError(
            None, "assert", f"{message}{lines}\n  {errors.user_line()}"))


def _shown(value: PythonValue) -> str | Captured:
    """A value as an assertion shows it in both modes: a tensor, or the text of what no tensor can hold."""
    if isinstance(value, (str, Tensor, Variable)):
        return value
    try:
        return convert.as_tensor(value)
    except (TypeError, ValueError, ArithmeticError, RecursionError):
        return errors.describe(value)


def _text(value: Captured) -> str:
    return str(value) if staged(value) else text_of(np.asarray(convert.as_tensor(value)))


# -- the watch for NaN --------------------------------------------------------------------------------
_MOVES = frozenset({"fill", "concat", "pad", "gather", "where", "select", "tensor_scatter", "strided_slice_assign",
                    "identity", "stop_gradient", "bitcast", "reinterpret", "cast", "gather_nd", "scatter_nd"})


class _Watch:
    """A recorder that looks at the results of all ops."""

    watches_numerics = True

    def _record(self, op: Op, attrs: Attrs, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...]) -> None:
        if op.view is not None or op.name in _MOVES:
            return
        with record.telling(()):
            for number, output in enumerate(outputs):
                if output.dtype.is_floating and not staged(output):
                    _require_finite(op, number, inputs, output)

    def _record_further(self, vjp: object, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...], first: int) -> None:
        """Does nothing."""

    def _record_custom(self, vjp: object, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...],
                      continues: bool = False) -> None:
        """Functions with a gradient of their own consist of ops."""

    def _follows(self, tensor: object) -> bool:
        """Nothing is differentiated."""
        return False

    def _variable_read(self, variable: AnyVariable, value: Tensor) -> None:
        """Reading computes nothing."""

    def stage(self, op: Op, outputs: Sequence[Tensor]) -> None:
        """The same check of a traced op's results, made when the function runs."""
        if op.view is not None or op.name in _MOVES:
            return
        with record.telling(()):
            for number, output in enumerate(outputs):
                if output.dtype.is_floating:
                    stage_assert(ops.reduce_all(ops.is_finite(output)),
                                 f"Detected Infinity or NaN in output {number} of op \"{op.name}\".", (output,))


_watch = _Watch()


def watched() -> bool:
    """Whether this context watches for NaN."""
    return _watch in record.active.get()


def enable_numerics() -> None:
    """Watch the ops of this context."""
    if not watched():
        record.push(_watch)


def disable_numerics() -> None:
    """Watch no longer."""
    if watched():
        record.pop(_watch)


def _require_finite(op: Op, number: int, inputs: Sequence[Tensor], output: Tensor) -> None:
    array = np.asarray(output).astype(np.float64)
    if np.isfinite(array).all():
        return
    counts = [f"# of {what} elements: {count}" for what, count in (
        ("-Inf", np.isneginf(array).sum()), ("+Inf", np.isposinf(array).sum()), ("NaN", np.isnan(array).sum()))
              if count]
    operands = "".join(f"\n    {name}: {errors.describe(x)}" for name, x in op.operands(inputs))
    raise errors.InvalidArgumentError(
        None, op.name, f"Detected Infinity or NaN in output {number} of eagerly-executing op \"{op.name}\".\n"
        f"  dtype: {output.dtype.name}\n  shape: {tuple(output.dims)}\n  {', '.join(counts)}\n  Input tensors:"
        f"{operands}\n  {errors.user_line()}")
