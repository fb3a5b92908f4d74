"""How traced functions run: the arguments of `tf.function`, and the settings of the whole process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from twofold.runtime import program_call

from .types import Structure

__all__ = ["Options", "runs_eagerly", "set_run_eagerly"]

_run_eagerly = False


class Options(NamedTuple):
    """The options of a `tf.function`.

    Attributes:
        input_signature: specs of the arguments, or None.
        autograph: whether Python's control flow is staged.
        fallback: whether a function that cannot be traced runs eagerly.
        fast_math: whether results may differ from eager ones by rounding.
    """

    input_signature: Sequence[Structure] | None = None
    autograph: bool = True
    fallback: bool = True
    fast_math: bool = False


def runs_eagerly() -> bool:
    """Whether every function runs op by op."""
    return _run_eagerly


def set_run_eagerly(run: bool) -> None:
    """Make every function run op by op, or trace."""
    global _run_eagerly
    _run_eagerly = run
    program_call.turn_off("functions run eagerly", run)
