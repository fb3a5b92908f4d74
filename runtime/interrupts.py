"""Interrupts of compiled loops: Ctrl-C, and any other signal that Python handles, reaches a program that loops.

A program gives up the interpreter's lock and runs no Python, so it has to ask. Its loops count their rounds
(`codegen/program_entry.py`), and every few milliseconds call `poll`, which looks at the clock and, some thirty times a
second, has Python run the handlers of signals that have come. Where one raises, the program ends with the
status `INTERRUPTED`; the exception waits until the program's caller has put everything right, and is raised then.

Python handles signals in its main thread only; elsewhere `poll` only looks at the clock.
"""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from twofold.codegen.backend import AGAIN, INTERRUPTED

from . import machine, system
from .native_layout import exported

if TYPE_CHECKING:
    from llvmlite import ir

__all__ = ["INTERRUPTED", "poll_words", "poll_words_of_first_tier", "raise_interrupt", "raiser"]

_WORDS = ("clock", "clock_number", "ensure", "release", "check", "ident", "main", "fetch", "restore", "poll", "type",
          "value", "traceback")
AT = {name: n for n, name in enumerate(_WORDS)}
_QUICK, _SLOW = 1_000_000, 5_000_000  # nanoseconds between two polls: more rounds below, fewer above
_MOST = 1 << 22  # rounds between two polls
_EVERY = 30_000_000  # nanoseconds between two looks at signals

_words: ctypes.Array[ctypes.c_int64] | None = None  # of length 0 where there is no machine code
_raise: Callable[[int], int] | None = None  # sets the exception; `_raiser` is its address
_raiser = 0
_first_words = (ctypes.c_int64 * len(_WORDS))()  # `_words`' address, and that of `poll_first` in the place of `poll`


def poll_words() -> int:
    """The address of the words that lead loops of programs to `poll`; 0 where there is no machine code for it."""
    global _words
    if _words is None:
        try:
            _words = _load()
        except (OSError, RuntimeError, ImportError, AttributeError):
            _words = (ctypes.c_int64 * 0)()
    return ctypes.addressof(_words) if _words else 0


def poll_words_of_first_tier() -> int:
    """The same for code that is to be left when it has been at work for some time, with the status `AGAIN`."""
    return ctypes.addressof(_first_words) if poll_words() else 0


def _load() -> ctypes.Array[ctypes.c_int64]:
    """The words, with the addresses of the compiled functions and of those that they call."""
    global _raise, _raiser
    words = (ctypes.c_int64 * len(_WORDS))()
    clock = system.c_function("clock_gettime")
    if clock is None:  # nor are there clocks by number
        return (ctypes.c_int64 * 0)()
    functions = machine.load("interrupts", _module, ("interrupts.py",), plain=True)
    values = {"clock": clock, "clock_number": time.CLOCK_MONOTONIC, "poll": functions["poll"],
              "main": threading.main_thread().ident or 0}
    for name, function in (("ensure", "PyGILState_Ensure"), ("release", "PyGILState_Release"),
                           ("check", "PyErr_CheckSignals"), ("ident", "PyThread_get_thread_ident"),
                           ("fetch", "PyErr_Fetch"), ("restore", "PyErr_Restore")):
        values[name] = exported(function)
    for name, value in values.items():
        words[AT[name]] = value
    _first_words[0], _first_words[AT["poll"]] = ctypes.addressof(words), functions["poll_first"]
    machine.keep(_first_words)
    machine.keep(words)
    _raiser = functions["raised"]
    _raise = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(_raiser)
    return words


def raiser() -> int:
    """The address of the function that sets the exception, by the address of `poll_words`; 0 where there is none."""
    return _raiser if poll_words() else 0


def raise_interrupt() -> None:
    """Raise what interrupted the program that has ended on this thread."""
    if _raise is not None and _words is not None:
        _raise(ctypes.addressof(_words))
    raise KeyboardInterrupt  # not reached: there is always an exception


def _module() -> ir.Module:
    """`poll(words, state)`: the status with which a program must end, or 0; `poll_first(words, state)`: the same for
    programs in code that lasts not long, where the first of the words is the address of those for `poll`;
    `raised(words)`: sets the exception behind a status.

    A state is, in 64-bit words, how many rounds to the next poll, how many there were since the last, when that was,
    and when signals were looked at.
    """
    from .emit import new_module

    return new_module("interrupts", _poll, _poll_first, _raised)


def _poll(module: ir.Module) -> None:
    """Looks at signals where that is due, and says after how many rounds to ask again."""
    from .emit import Code, i32, i64, ptr, void

    c = Code(module, "poll", i64, [ptr, ptr])
    words, state = c.fn.args
    go, look, main, failed, on = (c.fn.append_basic_block(n) for n in ("go", "look", "main", "failed", "on"))
    moment = c.room(i64, i64(2))

    def word(name: str) -> ir.Value:
        return c.load(c.word(words, AT[name]), typ=i64)

    def put(n: int, value: ir.Value) -> None:
        c.store(value, c.word(state, n))
    c.to(word("clock"), i32, c.trunc(word("clock_number"), i32), moment)
    seconds, rest = (c.load(c.word(moment, n), typ=i64) for n in range(2))
    now = c.add(c.mul(seconds, i64(1_000_000_000)), rest)
    rounds, last, looked = (c.load(c.word(state, n), typ=i64) for n in (1, 2, 3))
    put(2, now)
    spent = c.sub(now, last)
    many = c.icmp_signed("<", c.mul(rounds, i64(2)), i64(_MOST))
    more = c.select(many, c.mul(rounds, i64(2)), i64(_MOST))
    few = c.sdiv(rounds, i64(4))
    fewer = c.select(c.icmp_signed(">", few, i64(1)), few, i64(1))
    slow = c.and_(c.icmp_signed(">", spent, i64(_SLOW)), c.not_(c.same(last, i64(0))))
    quick = c.or_(c.icmp_signed("<", spent, i64(_QUICK)), c.same(last, i64(0)))
    following = c.select(slow, fewer, c.select(quick, more, rounds))
    put(0, following)
    put(1, following)
    first = c.same(looked, i64(0))
    with c.if_then(first):
        put(3, now)
    c.cbranch(c.or_(first, c.icmp_signed("<", c.sub(now, looked), i64(_EVERY))), go, look)
    c.position_at_end(go)
    c.ret(i64(0))
    c.position_at_end(look)
    put(3, now)
    c.cbranch(c.same(c.to(word("ident"), i64), word("main")), main, on)
    c.position_at_end(main)
    gil_state = c.to(word("ensure"), i32)
    raised = c.to(word("check"), i32)
    with c.if_then(c.not_(c.same(raised, i32(0)))):
        c.to(word("fetch"), void, *[c.word(words, AT[name]) for name in ("type", "value", "traceback")])
    c.to(word("release"), void, gil_state)
    c.cbranch(c.same(raised, i32(0)), on, failed)
    c.position_at_end(on)
    c.ret(i64(0))
    c.position_at_end(failed)
    c.ret(i64(INTERRUPTED))


def _raised(module: ir.Module) -> None:
    """Hands the exception that was fetched back to Python."""
    from .emit import Code, i64, ptr, void

    r = Code(module, "raised", i64, [ptr])
    words = r.fn.args[0]
    restore, *error = (r.load(r.word(words, AT[name]), typ=i64) for name in ("restore", "type", "value", "traceback"))
    r.to(restore, void, *[r.inttoptr(x, ptr) for x in error])
    r.ret(i64(-1))


def _poll_first(module: ir.Module) -> None:
    """Ends a program that has been at work for as long as passes between two looks at signals."""
    from .emit import Code, i64, ptr

    c = Code(module, "poll_first", i64, [ptr, ptr])
    state = c.fn.args[1]
    words = c.load(c.fn.args[0], typ=ptr)
    before = c.load(c.word(state, 3), typ=i64)
    answer = c.to(c.load(c.word(words, AT["poll"]), typ=i64), i64, words, state)
    after = c.load(c.word(state, 3), typ=i64)
    long = c.not_(c.or_(c.same(before, i64(0)), c.same(before, after)))
    c.ret(c.select(c.and_(c.same(answer, i64(0)), long), i64(AGAIN), answer))


def _after_fork() -> None:
    if _words:
        _words[AT["main"]] = threading.get_ident()  # the thread that forked is the child's main thread


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
