"""Structured nodes that programs run natively: kernels shared by all programs, reached through their address.

A library kernel is compiled once and kept like any eager kernel; a program's entry finds its address in a table. Both
modes call the same machine code, so their results agree to the bit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twofold.ir import graph as g

__all__ = ["handles", "register_placed", "is_placed", "placed", "provide", "address", "SHARED_FROM", "GRAIN"]

SHARED_FROM = 1 << 16  # simple operations from which threads share a step's work: a program of fewer needs no threads
GRAIN = 1 << 15  # simple operations that a thread gets at least

_PROVIDERS: dict[str, Callable[..., int]] = {}
_PLACED: dict[str, tuple[Callable[[g.Node], bool], Callable[[Any, g.Node], None]]] = {}


def provide(kind: str, load: Callable[..., int]) -> None:
    """Lets programs use the library kernels of `kind`: `load(*rest of the key)` gives their address in this process."""
    _PROVIDERS[kind] = load


def address(key: tuple[Any, ...]) -> int:
    """The address of a library kernel."""
    return _PROVIDERS[key[0]](*key[1:])


def register_placed(name: str, handles: Callable[[g.Node], bool], place: Callable[[Any, g.Node], None]) -> None:
    """Lets programs run op `name` where `handles(node)`; `place(fuser, node)` puts it into the plan.

    See `placer.py: Placer` for what a plan takes.
    """
    _PLACED[name] = handles, place


def is_placed(name: str) -> bool:
    """Whether some nodes of op `name` can be put into a plan."""
    return name in _PLACED


def placed(node: g.Node) -> Callable[[Any, g.Node], None] | None:
    """What puts a structured node into a plan; None where it is a unit as it is."""
    found = _PLACED.get(node.op.name)
    return found[1] if found is not None and found[0](node) else None


def handles(node: g.Node) -> bool:
    """Whether a program can run a structured node."""
    found = _PLACED.get(node.op.name)
    return found is not None and found[0](node)
