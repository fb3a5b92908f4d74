"""Blocks that threads must not run at once, in parts of the package that do more than one update of one variable.

`together` is a block in which nobody else assigns certain variables, for eager code; a `tf.function` is such a block as
it is. `making` is the lock under which things are made that are made once, at the first call: the same under which
functions are traced, since traces make them too. `locks` makes all other locks (`runtime/locks.py`), and `Recent` is
a dictionary of what came last, which threads may share (`ir/recent.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext

from twofold.eager.variable import Variable
from twofold.ir.recent import Recent
from twofold.runtime import claims, locks
from twofold.tracer.function import making
from twofold.tracer.trace import current

__all__ = ["Recent", "locks", "making", "together"]


def together(variables: Iterable[Variable]) -> AbstractContextManager[None]:
    """A block that is one step for all others who assign these variables."""
    if current() is not None:  # they are values there
        return nullcontext()
    return claims.claimed(claims.Claim((), [v._word for v in variables]))
