"""Variables of a kernel as LLVM's values: what they hold where ways through the code meet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llvmlite import ir

__all__ = ["Exit", "settled"]


class Exit:
    """A block that is reached from several places, and what variables hold when it is."""

    def __init__(self, block: ir.Block, carried: list[int]) -> None:
        """Args:
            carried: the variables whose values may differ.
        """
        self.block, self.carried = block, carried
        self.arrivals: list[tuple[ir.Block, dict[int, Any]]] = []

    def arrive(self, block: ir.Block, variables: Mapping[int, Any]) -> None:
        """Notes that the end of `block` leads here."""
        self.arrivals.append((block, {var: variables[var] for var in self.carried}))

    def values(self) -> dict[int, Any]:
        """What the variables hold from here on."""
        return {var: _Merged(self, var) for var in self.carried}


class _Merged:
    """What a variable holds behind an exit: a phi, once it is read. (One that is not would still count as a use of
    what leads to it, and change how LLVM chooses the registers of a loop.)"""

    def __init__(self, exit: Exit, var: int) -> None:
        self.exit, self.var = exit, var
        self.phi: Any = None

    def value(self, b: ir.IRBuilder) -> Any:
        """The phi."""
        if self.phi is None:
            arrivals = [(block, settled(b, held[self.var])) for block, held in self.exit.arrivals]
            start = ir.IRBuilder()
            start.position_at_start(self.exit.block)
            self.phi = start.phi(arrivals[0][1].type)
            for block, held in arrivals:
                self.phi.add_incoming(held, block)
            b.position_at_end(b.block)  # the block that is being written may be the one that got a phi
        return self.phi


def settled(b: ir.IRBuilder, held: Any) -> Any:
    """The LLVM value of what a variable holds, while `b` writes at the end of its block."""
    return held.value(b) if isinstance(held, _Merged) else held
