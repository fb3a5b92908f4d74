"""What parts of a matrix product cost on the processor at hand: the numbers by which products are planned.

They decide which of several ways a product takes, never what it gives. The usual ones are measurements of a few
processors; `twofold tune` measures those of this one (`tuning.py`) and keeps them beside the compiled kernels. With
TWOFOLD_TUNING=0 what is kept there is not used.
"""

from __future__ import annotations

import functools
import math
import os
from typing import NamedTuple

from . import cache, identity

__all__ = ["Costs", "KIND", "USUAL", "current", "keep", "kept"]

KIND = "costs"  # of entries of the cache
_FORMAT = "2"  # to be raised where a cost gets another meaning


class Costs(NamedTuple):
    """Costs in steps: a step multiplies one row of a tile with one inner index, which is two vectors.

    Attributes:
        tile: all rows of a tile besides the steps, for each inner index; so are the others unless they say otherwise.
        pack_a, pack_b: packing a panel of A or of B that lies near.
        near: reading a panel of B for the first of several tiles, where B as a whole lies near.
        far: the same, and for packing more, where B is larger than the near caches.
        crowded: reading a panel of B for each tile, where its rows crowd few places of the nearest cache.
        thrashed: the same where they crowd few places of the second cache, too.
        foreign: getting an element of A from another processor's cache.
        foreign_b: getting a vector of packed B from there.
        start: starting threads once more, in steps alone.
    """

    tile: float = 0.75
    pack_a: float = 5.0
    pack_b: float = 11.0
    near: float = 0.5
    far: float = 16.0
    crowded: float = 1.0
    thrashed: float = 10.0
    foreign: float = 2.0
    foreign_b: float = 16.0
    start: float = 10_000.0


USUAL = Costs()
_MOST = 1e6  # what a stored cost may be


def current() -> Costs:
    """The costs to plan by: those measured here, else the usual ones."""
    return USUAL if os.environ.get("TWOFOLD_TUNING", "1") == "0" else _kept() or USUAL


def kept() -> Costs | None:
    """The costs that were measured on this processor, where some are kept."""
    stored = cache.read(KIND, _key())
    if stored is None:
        return None
    import json
    try:
        values = json.loads(stored)
        costs = Costs(**{name: float(values[name]) for name in Costs._fields})
    except (ValueError, TypeError, KeyError):
        return None
    return costs if all(math.isfinite(c) and 0 <= c <= _MOST for c in costs) else None


def keep(costs: Costs) -> None:
    """Keeps costs for this processor. Processes that have planned products already go on as they do."""
    import json
    cache.write(KIND, _key(), json.dumps(costs._asdict()).encode())


_kept = functools.cache(kept)


def _key() -> str:
    return cache.digest(KIND, _FORMAT, *identity.processor())
