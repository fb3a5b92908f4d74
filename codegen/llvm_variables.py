"""Variables of a kernel as LLVM's values: what they hold where ways through the code meet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from llvmlite import ir

from .llvm_writer import TextBuilder, TextPhi

__all__ = ["Contents", "Exit", "settled"]

Contents: TypeAlias = "ir.Value | _Merged"  # of a variable at one place in the code


class Exit:
    """A block that is reached from several places, and what variables hold when it is."""

    def __init__(self, block: ir.Block, carried: list[int]) -> None:
        """Args:
            carried: the variables whose values may differ.
        """
        self.block, self.carried = block, carried
        self.arrivals: list[tuple[ir.Block, dict[int, Contents]]] = []

    def arrive(self, block: ir.Block, variables: Mapping[int, Contents]) -> None:
        """Notes that the end of `block` leads here."""
        self.arrivals.append((block, {var: variables[var] for var in self.carried}))

    def values(self) -> dict[int, Contents]:
        """The contents of the variables from here on."""
        return {var: _Merged(self, var) for var in self.carried}


class _Merged:
    """The contents of a variable behind an exit: a phi, once it is read. (One that is not would still count as a use
    of what leads to it, and change how LLVM chooses the registers of a loop.)"""

    def __init__(self, exit: Exit, var: int) -> None:
        self.exit, self.var = exit, var
        self.phi: TextPhi | None = None

    def value(self, b: ir.IRBuilder) -> TextPhi:
        """The phi."""
        if self.phi is None:
            arrivals = [(block, settled(b, variables[self.var])) for block, variables in self.exit.arrivals]
            start = TextBuilder(self.exit.block)
            start.position_at_start(self.exit.block)
            self.phi = start.phi(arrivals[0][1].type)
            for block, value in arrivals:
                self.phi.add_incoming(value, block)
            b.position_at_end(b.block)  # the block that is being written may be the one that got a phi
        return self.phi


def settled(b: ir.IRBuilder, contents: Contents) -> ir.Value:
    """The LLVM value of a variable's contents, while `b` writes at the end of its block."""
    return contents.value(b) if isinstance(contents, _Merged) else contents
