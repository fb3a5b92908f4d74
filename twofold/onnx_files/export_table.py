"""The table that modules of families fill: op -> its meaning in ONNX.

A meaning is a function `(writer, node, *operands, **attributes) -> value or values`, declared by `@meaning("op", ...)`.
Who looks a meaning up does so in `export_meanings.py`, which has all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from twofold.ir import graph as g
from twofold.ir.instructions import Scalar
from twofold.ir.op import REGISTRY

from .export_scalars import Scalars
from .export_writer import Ref, Writer

__all__ = ["MEANINGS", "Meaning", "elementwise", "meaning"]

Meaning = Callable[..., "Ref | Sequence[Ref]"]

MEANINGS: dict[str, Meaning] = {}


def meaning(*names: str) -> Callable[[Meaning], Meaning]:
    """Makes the decorated function the meaning of the ops of these names."""
    def declare(function: Meaning) -> Meaning:
        for name in names:
            if name not in REGISTRY or name in MEANINGS:
                raise TypeError(f"{name!r} is no op, or has a meaning already")
            MEANINGS[name] = function
        return function
    return declare


def elementwise(w: Writer, node: g.Node, *operands: Ref, **attrs: Any) -> Ref:
    """The scalar body, instruction by instruction; 16-bit floats are computed in float32 and rounded once."""
    s = Scalars(w)
    body = node.op.body  # type: ignore[union-attr]
    assert body is not None
    result = body(s, *[s.value(x) for x in operands], **attrs)
    assert isinstance(result, Scalar)
    return w.cast(s.ref(result), node.outputs[0].dtype)
