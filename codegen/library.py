"""Structured nodes that programs run natively: kernels shared by all programs, reached through their address.

A library kernel is compiled once and kept like any eager kernel; a program's entry finds its address in a table. Both
modes call the same machine code, so their results agree to the bit.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from twofold.ir import graph as g

from .backend import EVERY, Lowering
from .operands import Run

__all__ = ["LOWERINGS", "lowering", "plans_products", "product_runs", "provide", "address", "wider"]

LOWERINGS: dict[str, Lowering] = {}  # those that only processors have (`structured_alone.py`)

_PROVIDERS: dict[str, Callable[..., int]] = {}
_WIDER: dict[str, Mapping[str, str]] = {}
_PRODUCTS: list[Callable[..., list[Run]]] = []


def provide(kind: str, load: Callable[..., int], wider: Mapping[str, str] | None = None) -> None:
    """Lets programs use the library kernels of `kind`.

    Args:
        load: gives the address of one in this process, from the rest of its key, which ends with its name.
        wider: names of kernels that others can stand for -> the others' names.
    """
    _PROVIDERS[kind] = load
    _WIDER[kind] = wider or {}


def wider(keys: Collection[tuple[Any, ...]]) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """Which kernels others of them can stand for: see `Backend.wider`."""
    others = {key: (*key[:-1], _WIDER.get(key[0], {}).get(key[-1])) for key in keys}
    return {key: other for key, other in others.items() if other in keys}


def address(key: tuple[Any, ...]) -> int:
    """The address of a library kernel."""
    return _PROVIDERS[key[0]](*key[1:])


def plans_products(runs: Callable[..., list[Run]]) -> Callable[..., list[Run]]:
    """Makes the decorated function what plans products for programs: see `product_runs`."""
    _PRODUCTS.append(runs)
    return runs


def product_runs(p: Any, out: g.Value, left: Any, right: Any, layout: Any) -> list[Run]:
    """The runs of a matrix product in a plan, with arguments as `Placer.product` takes them."""
    return _PRODUCTS[-1](p, out, left, right, layout)


def lowering(name: str) -> Callable[[Any], None]:
    """The processor's lowering of op `name`, for calls that run at once.

    Raises:
        NotImplementedError: it has none.
    """
    known = LOWERINGS.get(name) or EVERY.get(name)
    if known is None:
        raise NotImplementedError(f"{name}: a structured op without a lowering")
    return known.lower
