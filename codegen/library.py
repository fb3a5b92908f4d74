"""Structured nodes that programs run natively: kernels shared by all programs, reached through their address.

A library kernel is compiled once and kept like any eager kernel; a program's entry finds its address in a table. Both
modes call the same machine code, so their results agree to the bit.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, TypeAlias

from twofold.ir import graph as g

from .backend import EVERY, Lower, Lowering

if TYPE_CHECKING:
    from .layout import Layout
    from .operands import LibraryKey, Run
    from .placer import Placer
    from .units import Source

__all__ = ["LOWERINGS", "lowering", "plans_products", "product_runs", "provide", "address", "wider"]

# (placer, result, left and right operand, layout of the result) -> the runs
ProductRuns: TypeAlias = "Callable[[Placer, g.Value, Source, Source, Layout | None], list[Run]]"

LOWERINGS: dict[str, Lowering] = {}  # those that only processors have (`structured_alone.py`)

_PROVIDERS: dict[str, Callable[..., int]] = {}
_SETTLERS: dict[str, Callable[..., None]] = {}
_WIDER: dict[str, Mapping[str, str]] = {}
_PRODUCTS: list[ProductRuns] = []


def provide(kind: str, load: Callable[..., int], settle: Callable[..., None],
            wider: Mapping[str, str] | None = None) -> None:
    """Lets programs use the library kernels of `kind`.

    Args:
        load: gives the address of one in this process, from the rest of its key, which ends with its name.
        settle: has it run its best code from now on, where that may be made later otherwise; takes the same.
        wider: names of kernels that others can stand for -> the others' names.
    """
    _PROVIDERS[kind] = load
    _SETTLERS[kind] = settle
    _WIDER[kind] = wider or {}


def wider(keys: Collection[LibraryKey]) -> dict[LibraryKey, LibraryKey]:
    """Which kernels others of them can stand for: see `Backend.wider`."""
    others = {key: (*key[:-1], _WIDER.get(key[0], {}).get(key[-1], "")) for key in keys}
    return {key: other for key, other in others.items() if other in keys}


def address(key: LibraryKey, settled: bool = False) -> int:
    """The address of a library kernel.

    Args:
        settled: whether it is to run its best code from the first call on.
    """
    if settled:
        _SETTLERS[key[0]](*key[1:])
    return _PROVIDERS[key[0]](*key[1:])


def plans_products(runs: ProductRuns) -> ProductRuns:
    """Makes the decorated function what plans products for programs: see `product_runs`."""
    _PRODUCTS.append(runs)
    return runs


def product_runs(p: Placer, out: g.Value, left: Source, right: Source, layout: Layout | None) -> list[Run]:
    """The runs of a matrix product in a plan, with arguments as `Placer.product` takes them."""
    return _PRODUCTS[-1](p, out, left, right, layout)


def lowering(name: str) -> Lower:
    """The processor's lowering of op `name`, for calls that run at once.

    Raises:
        NotImplementedError: it has none.
    """
    registered = LOWERINGS.get(name) or EVERY.get(name)
    if registered is None:
        raise NotImplementedError(f"{name}: a structured op without a lowering")
    return registered.lower
