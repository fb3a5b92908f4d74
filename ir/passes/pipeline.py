"""The passes that `optimise` applies, in their order."""

from __future__ import annotations

from collections.abc import Callable

from .. import graph as g
from .accumulating import add_items
from .branches import take_known_branches
from .dead import remove_dead
from .folding import fold_constants
from .inlining import inline_calls
from .joining import join_parts
from .loops import move_invariants
from .matmuls import fold_transposes
from .merging import merge_equal
from .simplify import simplify, simplify_fast
from .views import fold_views

__all__ = ["PIPELINE", "FAST_PIPELINE", "Pass"]

Pass = Callable[[g.Graph], bool]

PIPELINE: tuple[Pass, ...] = (inline_calls, fold_constants, take_known_branches, simplify, fold_views, fold_transposes,
                              join_parts, merge_equal, move_invariants, add_items, remove_dead)
FAST_PIPELINE: tuple[Pass, ...] = tuple([simplify_fast if p is simplify else p for p in PIPELINE])
