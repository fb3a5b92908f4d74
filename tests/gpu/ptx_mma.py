"""What `mma.sync` gives: products of small matrices whose elements the threads of a warp hold, by NVIDIA's document.

Where each element lies is the document's ("Matrix fragments for mma.m16n8k8" and "m16n8k16"), told anew here, not taken
from the library. Products are exact, and are added to the sums one after another in float32: one of the orders that
hardware may take.
"""

from __future__ import annotations

import re

import numpy as np

__all__ = ["SHAPE", "kind_of", "multiplied"]

SHAPE = re.compile(r"mma\.sync\.aligned\.m16n8k(8|16)\.row\.col\.f32\.(tf32|bf16|f16)\.\2\.f32")
_GROUP, _PLACE = np.arange(32) >> 2, np.arange(32) & 3  # %groupID and %threadID_in_group of each lane


def kind_of(opcode: str) -> str | None:
    """The type of the factors, where the shape is one of theirs."""
    found = SHAPE.fullmatch(opcode)
    return found[2] if found and (found[1] == "8") == (found[2] == "tf32") else None


def multiplied(kind: str, a: list[np.ndarray], b: list[np.ndarray], c: list[np.ndarray]) -> list[np.ndarray]:
    """The registers of D, from those of A, B and C: each an array of warps by 32 lanes."""
    left, right = ([x for register in registers for x in _numbers(kind, register)] for registers in (a, b))
    depth = 8 if kind == "tf32" else 16
    x = np.zeros((len(c[0]), 16, depth))
    y, sums = np.zeros((len(c[0]), depth, 8)), np.zeros((len(c[0]), 16, 8), np.float32)
    for i, values in enumerate(left):
        if kind == "tf32":
            row, column = _GROUP + 8 * (i in (1, 3)), _PLACE + 4 * (i in (2, 3))
        else:
            row, column = _GROUP + 8 * (i in (2, 3, 6, 7)), _PLACE * 2 + (i & 1) + 8 * (i >= 4)
        x[:, row, column] = values
    for i, values in enumerate(right):
        row = _PLACE + 4 * i if kind == "tf32" else _PLACE * 2 + (i & 1) + 8 * (i >= 2)
        y[:, row, _GROUP] = values
    for i, register in enumerate(c):
        sums[:, _GROUP + 8 * (i >= 2), _PLACE * 2 + (i & 1)] = register.view(np.float32)
    for k in range(depth):
        sums = (sums + x[:, :, k, None] * y[:, k, None, :]).astype(np.float32)
    return [np.ascontiguousarray(sums[:, _GROUP + 8 * (i >= 2), _PLACE * 2 + (i & 1)]).view(np.uint32)
            for i in range(4)]


def _numbers(kind: str, register: np.ndarray) -> list[np.ndarray]:
    """What a register of 32 bits holds, that in the low bits first."""
    if kind == "tf32":
        return [(register & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64)]
    halves = [(register >> np.uint32(shift) & np.uint32(0xFFFF)) for shift in (0, 16)]
    if kind == "f16":
        return [half.astype(np.uint16).view(np.float16).astype(np.float64) for half in halves]
    return [(half << np.uint32(16)).view(np.float32).astype(np.float64) for half in halves]
