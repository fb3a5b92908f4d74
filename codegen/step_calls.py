"""One step of a program as LLVM instructions: the call of its kernel, by one thread or several, and the clock.

`threads` holds what `program.py` says. Which steps run, and with what, is the affair of `program_entry.py` and
`step_table.py`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TypeAlias

from llvmlite import ir

from . import llvm_cpu
from .operands import Argument

__all__ = ["LIBRARIES", "StepCall", "Typed", "word", "kernel_at", "shared_call", "nanoseconds", "add_time"]

LIBRARIES = 3  # the word of `threads` from which on there are the addresses of library kernels
_I64, _PTR = ir.IntType(64), ir.PointerType()
# The function of a step, or the number of a library kernel; and the arguments, of which kernels are functions.
StepCall: TypeAlias = tuple[ir.Function | int, Sequence[Argument | ir.Function]]


class Typed:
    """A function known by its address: what llvmlite's `call` asks of a callee."""

    def __init__(self, pointer: ir.Value, function_type: ir.FunctionType) -> None:
        self.pointer = pointer
        self.function_type = function_type
        self.type = pointer.type
        self.callingconvention = ""
        self.attributes: ir.FunctionAttributes | None = None

    def get_reference(self) -> str:
        """The operand's text."""
        return self.pointer.get_reference()


def word(b: ir.IRBuilder, words: ir.Value, at: ir.Value) -> ir.Value:
    """An int64 of an array of them."""
    return b.load(b.gep(words, [at], source_etype=_I64), typ=_I64)


def kernel_at(address: ir.Value) -> Typed:
    """The kernel that a pointer leads to."""
    return Typed(address, llvm_cpu.KERNEL)


def shared_call(b: ir.IRBuilder, threads: ir.Value, target: ir.Function | Typed, total: ir.Value, args: ir.Value,
                work: ir.Value, grain: ir.Value, least: ir.Value) -> ir.Value:
    """Runs a kernel over [0, total), on threads where its work is worth it (`plan.Shares`); its status."""
    shares = b.udiv(work, grain)
    count = b.load(b.inttoptr(word(b, threads, _I64(2)), _PTR), typ=_I64)
    used = b.select(b.icmp_unsigned("<", shares, count), shares, count)
    used = b.select(b.icmp_unsigned("<", total, used), total, used)
    parallel = b.and_(b.icmp_unsigned(">=", work, least), b.icmp_unsigned(">", used, _I64(1)))
    with b.if_else(parallel) as (many, one):
        with many:
            fork = Typed(b.inttoptr(word(b, threads, _I64(0)), _PTR),
                         ir.FunctionType(_I64, [_I64, _I64, _I64, _I64, _PTR]))
            pointer = target.pointer if isinstance(target, Typed) else target
            first = b.call(fork, [b.ptrtoint(pointer, _I64), total, b.ptrtoint(args, _I64), used,
                                  b.inttoptr(word(b, threads, _I64(1)), _PTR)])
            from_many = b.block
        with one:
            second = b.call(target, [_I64(0), total, args])
            from_one = b.block
    result = b.phi(_I64)
    result.add_incoming(first, from_many)
    result.add_incoming(second, from_one)
    return result


def nanoseconds(b: ir.IRBuilder, threads: ir.Value, libraries: int) -> ir.Value:
    """The time by the system's clock that only goes ahead.

    Args:
        libraries: how many the program has, behind whose words there are those of the clock.
    """
    with b.goto_entry_block():
        moment = b.alloca(_I64, 2)
    clock = Typed(b.inttoptr(word(b, threads, _I64(LIBRARIES + 1 + libraries)), _PTR),
                  ir.FunctionType(ir.IntType(32), [ir.IntType(32), _PTR]))
    b.call(clock, [ir.IntType(32)(time.CLOCK_MONOTONIC), moment])
    return b.add(b.mul(b.load(moment, typ=_I64), _I64(1_000_000_000)), word(b, moment, _I64(1)))


def add_time(b: ir.IRBuilder, threads: ir.Value, libraries: int, number: ir.Value, since: ir.Value) -> None:
    """Adds what has passed since a time to that of the step of a number."""
    spent = b.sub(nanoseconds(b, threads, libraries), since)
    counts = b.inttoptr(word(b, threads, _I64(LIBRARIES + 2 + libraries)), _PTR)
    place = b.gep(counts, [number], source_etype=_I64)
    b.store(b.add(b.load(place, typ=_I64), spent), place)
