"""Structured nodes that programs run natively: kernels shared by all programs, reached through their address.

A library kernel is compiled once and kept like any eager kernel; a program's entry finds its address in a table. Both
modes call the same machine code, so their results agree to the bit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twofold.ir import graph as g

from .operands import Run

__all__ = ["handles", "register", "is_placed", "lowering", "plans_products", "product_runs",
           "provide", "address", "SHARED_FROM", "GRAIN"]

SHARED_FROM = 1 << 16  # simple operations from which threads share a step's work: a program of fewer needs no threads
GRAIN = 1 << 15  # simple operations that a thread gets at least

_PROVIDERS: dict[str, Callable[..., int]] = {}
_PRODUCTS: list[Callable[..., list[Run]]] = []
_LOWERINGS: dict[str, tuple[Callable[[g.Node], bool], Callable[[Any], None]]] = {}


def provide(kind: str, load: Callable[..., int]) -> None:
    """Lets programs use the library kernels of `kind`: `load(*rest of the key)` gives their address in this process."""
    _PROVIDERS[kind] = load


def address(key: tuple[Any, ...]) -> int:
    """The address of a library kernel."""
    return _PROVIDERS[key[0]](*key[1:])


def register(name: str, handles: Callable[[g.Node], bool], lower: Callable[[Any], None]) -> None:
    """Makes `lower(placer)` what op `name` becomes; programs run it where `handles(node)`.

    See `placer.py: Placer`.
    """
    _LOWERINGS[name] = handles, lower


def plans_products(runs: Callable[..., list[Run]]) -> Callable[..., list[Run]]:
    """Makes the decorated function what plans products for programs: see `product_runs`."""
    _PRODUCTS.append(runs)
    return runs


def product_runs(p: Any, out: g.Value, left: Any, right: Any, layout: Any) -> list[Run]:
    """The runs of a matrix product in a plan, with arguments as `Placer.product` takes them."""
    return _PRODUCTS[-1](p, out, left, right, layout)


def is_placed(name: str) -> bool:
    """Whether some nodes of op `name` can be put into a plan."""
    return name in _LOWERINGS


def lowering(name: str) -> Callable[[Any], None]:
    """The lowering of op `name`.

    Raises:
        NotImplementedError: it has none.
    """
    if name not in _LOWERINGS:
        raise NotImplementedError(f"{name}: a structured op without a lowering")
    return _LOWERINGS[name][1]


def handles(node: g.Node) -> bool:
    """Whether a program can run a structured node."""
    known = _LOWERINGS.get(node.op.name)
    return known is not None and known[0](node)
