"""Recorders, which are told of the ops of a context (tapes, forward accumulators), and the identity of tensors.

Recorders live in a context variable, so threads and tasks have their own. Native call entries ask only
whether any recorder exists in the process; `record` then asks this context. Tapes only write down and are
told first; accumulators run ops of their own, which tapes and the accumulators before them must see.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

from twofold.ir.op import Op
from twofold.ir.types import Attrs
from twofold.runtime import locks, native

from .tensor import Tensor
from .types import AnyVariable, Vjp

__all__ = ["Recorder", "active", "push", "pop", "record", "record_custom", "record_further", "tell", "telling",
           "identity", "is_followed"]


class Recorder(Protocol):
    """Is told of every op that runs in its context, and of every variable that is read.

    The results of an op have their identities when a recorder hears of it. `follows` says whether the recorder has
    any use for what is computed from a tensor.
    """

    def _record(self, op: Op, attrs: Attrs, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...]) -> None: ...

    def _record_custom(self, vjp: Vjp, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...],
                      continues: bool = False) -> None: ...

    def _record_further(self, vjp: Vjp, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...],
                        first: int) -> None: ...

    def _variable_read(self, variable: AnyVariable, value: Tensor) -> None: ...

    def _follows(self, tensor: Tensor) -> bool: ...


active: ContextVar[tuple[Recorder, ...]] = ContextVar("twofold_recorders", default=())
_ids = itertools.count(1)
_naming = locks.Lock()


def push(recorder: Recorder, *, runs_ops: bool = False) -> None:
    """Start telling `recorder`: after all others when it runs ops itself, else before them."""
    active.set((*active.get(), recorder) if runs_ops else (recorder, *active.get()))
    native.change_recorders(1)


def pop(recorder: Recorder) -> None:
    """Stop telling `recorder`; once for each `push`, in whatever context."""
    recorders = active.get()
    if recorders and recorders[0] is recorder:
        active.set(recorders[1:])
    else:
        active.set(tuple([r for r in recorders if r is not recorder]))
    native.change_recorders(-1)


@contextmanager
def telling(recorders: tuple[Recorder, ...]) -> Iterator[None]:
    """Tell these recorders, and no others, of what runs in this block."""
    token = active.set(recorders)
    try:
        yield
    finally:
        active.reset(token)


def is_followed(running: object) -> bool:
    """Whether recorders follow what is computed by an interpreter, or by none: those of this context or, where that is
    a trace, those around the function."""
    return bool(active.get()) or getattr(running, "followed", False)


def identity(tensor: Tensor) -> int:
    """A number that no other tensor of the process ever has."""
    number: int = getattr(tensor, "_id", 0)
    if not number:
        with _naming:  # two threads may meet a tensor for the first time together
            number = getattr(tensor, "_id", 0)
            if not number:
                number = tensor._id = next(_ids)
    return number


def record(op: Op, inputs: tuple[Tensor, ...], output: Tensor) -> None:
    """Called by native entries that have computed an op with default attributes while recorders exist."""
    recorders = active.get()
    if recorders:
        output._id = next(_ids)
        outputs = (output,)
        for recorder in recorders:
            recorder._record(op, op.defaults, inputs, outputs)


def tell(op: Op, attrs: Attrs, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...]) -> None:
    """Tell this context's recorders of an op that ran; `outputs` are new tensors, which nobody has seen."""
    for output in outputs:
        output._id = next(_ids)
    for recorder in active.get():
        recorder._record(op, attrs, inputs, outputs)


def record_custom(vjp: Vjp, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...], continues: bool = False) -> None:
    """Tell everybody of a function with a gradient of its own.

    Args:
        vjp: `vjp(cts)` gives a cotangent or None per input; one that continues sums is called as `vjp(cts, starts,
            links)` with what the cotangent of each input is so far, or None, and which of these may be one value
            (`ir.sums.Link`), and gives the new sums; where `starts` is None there are none and never will be. Where an
            input occurs twice, its first place alone has a start and a sum.
        inputs, outputs: tensors.
        continues: whether `vjp` continues sums.
    """
    for output in outputs:
        identity(output)
    for recorder in active.get():
        recorder._record_custom(vjp, inputs, outputs, continues)


def record_further(vjp: Vjp, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...], first: int) -> None:
    """Tell everybody that what was recorded by this `vjp`, which continues sums, has these results after `first`."""
    for output in outputs:
        identity(output)
    for recorder in active.get():
        recorder._record_further(vjp, inputs, outputs, first)
