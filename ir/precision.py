"""How exact products of floats are: to the bit, in the one order of additions, or as tensor cores of a GPU give them.

Ops that multiply matrices, and convolutions, have an attribute `precision`, which is EXACT or FAST and which their
gradients hand on. Processors compute either alike; what a GPU makes of FAST is `codegen/gpu_mma.py`'s affair. Where a
call does not say it, the blocks around it do (`ir/surroundings.py`, under "precision"): those interpreters ask for that
(`stated`) whose ops reach a GPU.
"""

from __future__ import annotations

from collections.abc import Sequence

from . import dtypes as dt
from .op import Op
from .surroundings import around, said
from .types import Attr, Attrs, Spec

__all__ = ["EXACT", "FAST", "MIXED", "is_known", "stated"]

EXACT, FAST = "exact", "fast"
MIXED = "mixed"  # of a block: FAST for numbers of 16 bits, EXACT for all others


def stated(op: Op, operands: Sequence[Spec], attrs: Attrs) -> Attrs:
    """The attributes of a call, with the precision that the blocks around it say."""
    if not around() or "precision" not in op.defaults or "precision" in attrs or said("precision") != MIXED:
        return attrs
    return {**attrs, "precision": FAST} if operands and operands[0].dtype in (dt.float16, dt.bfloat16) else attrs


def is_known(precision: Attr) -> bool:
    """Whether this is what the attribute may be."""
    return isinstance(precision, str) and precision in (EXACT, FAST)
