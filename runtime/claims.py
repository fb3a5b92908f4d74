"""Claims on variables: what makes a call that assigns variables one step for everybody else.

Each variable has a word, in its slot `_word`: 0 where nobody is at work on it, n where n calls that assign others read
it, -1 where a call assigns it. A call claims all of its variables at once, or none and waits, so that nobody holds some
while waiting for others; those who wait go first come, first served. Calls that assign nothing claim nothing: they read
all of their variables at one moment (`snapshot`), and a call gives its variables their values at one moment (`commit`).

Words change while the interpreter's lock is held, in native code (`claims_ir.py`); a compiled call that keeps that lock
all the time needs no claim, and only looks whether somebody has one (`program_ir.py`). Where native entries are off,
Python does the same under a lock.

A call of Python from inside of a compiled function keeps the function's claims. What runs in its context, such as an
assignment inside of `tf.py_function`, is part of the call and passes them.
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys
import time
from collections.abc import Callable, Sequence
from contextvars import ContextVar, Token
from typing import NamedTuple, Protocol, TypeVar

from . import locks
from .native_core import Core, MethodDef, core
from .native_layout import slot_offset
from .program_table import MODE

__all__ = ["Claim", "address", "bind", "claimed", "commit", "fresh_word", "snapshot", "swap", "wait_for_value"]

_FREE = bytes(8)
_POLL = 0.05  # seconds after which those who wait look again, whatever was missed
_PATIENCE = 10.0  # seconds that a fork waits for programs that overwrite variables

_changed = locks.Condition()
_queue: list[Claim] = []  # claims that are waited for, in order
_sleeping = 0  # threads that wait for claims or values
_plain: dict[int, int] = {}  # where native entries are off: words by the identity of their bytes

T = TypeVar("T")  # of tensors, whose class a room above makes


class _Claimed(NamedTuple):
    """A claim that a block of this context has, the flag that says so, and the claimed blocks around it."""

    claim: Claim
    flag: bytes
    around: _Claimed | None


class Claimable(Protocol[T]):
    """A variable as claims see it: its tensor and its word lie in slots."""

    _value: T
    _word: bytes


_mine: ContextVar[_Claimed | None] = ContextVar("claims", default=None)


def fresh_word() -> bytes:
    """A word of its own for a new variable: nobody is at work on it."""
    return bytes(8)


def address(word: bytes) -> int:
    """The address of the number that a word holds."""
    return id(word) + bytes.__basicsize__ - 1


class Claim:
    """The variables that a call reads and assigns; several calls may hold a claim, each with a flag of its own."""

    __slots__ = ("words", "modes", "ids", "take", "drop")

    def __init__(self, read: Sequence[bytes], assigned: Sequence[bytes]) -> None:
        """Args:
            read, assigned: words of variables; those that are assigned count as read.
        """
        first = {id(w): w for w in assigned}
        rest = {id(w): w for w in read if id(w) not in first}
        self.words = (*first.values(), *rest.values())
        self.modes = (MODE["assigned"],) * len(first) + (MODE["read"],) * len(rest)
        self.ids = {id(w): mode for w, mode in zip(self.words, self.modes, strict=True)}
        self.take: Callable[[bytes], int]
        self.drop: Callable[[bytes], int]
        native = _native
        if native is None:
            self.take, self.drop = self._take_plainly, self._drop_plainly
            return
        pairs = [n for w, mode in zip(self.words, self.modes, strict=True) for n in (address(w), mode)]
        words = (ctypes.c_int64 * max(1, len(pairs)))(*pairs)
        bound = native.bound(None, "claim", ctypes.addressof(words), len(self.words))
        bound.keep = (words, self.words)
        self.take = native.new(_definition(native, "take"), bound, None)
        self.drop = native.new(_definition(native, "drop"), bound, None)

    def meets(self, other: Claim) -> bool:
        """Whether both cannot be held at once."""
        return any(other.ids.get(key, 0) + mode > 2 for key, mode in self.ids.items() if key in other.ids)

    def without(self, claimed: set[int]) -> Claim:
        """The claim on the variables whose words are not among `claimed`, by identity."""
        rest = [(w, mode) for w, mode in zip(self.words, self.modes, strict=True) if id(w) not in claimed]
        return Claim([w for w, mode in rest if mode == MODE["read"]], [w for w, mode in rest if mode != MODE["read"]])

    def _take_plainly(self, flag: bytes) -> int:
        with _changed:
            if any(_plain.get(key, 0) < 0 or (mode == MODE["assigned"] and _plain.get(key, 0)) for key, mode in
                   self.ids.items()):
                return 0
            for key, mode in self.ids.items():
                _plain[key] = -1 if mode == MODE["assigned"] else _plain.get(key, 0) + 1
            _plain[id(flag)] = 1
            return 1

    def _drop_plainly(self, flag: bytes) -> int:
        with _changed:
            if not _plain.pop(id(flag), 0):
                return 0
            for key, mode in self.ids.items():
                count = 0 if mode == MODE["assigned"] else _plain[key] - 1
                if count:
                    _plain[key] = count
                else:
                    _plain.pop(key, None)
            return 1


class claimed:
    """A block that is one step for all others: what it reads and assigns of variables, nobody else assigns meanwhile.

    Leaving the block gives everything back, however it is left, also by an interrupt at any point.
    """

    __slots__ = ("_claim", "_flag", "_token")

    def __init__(self, claim: Claim) -> None:
        self._claim, self._flag = claim, fresh_word()
        self._token: Token[_Claimed | None] | None = None

    def __enter__(self) -> None:
        try:
            around = _mine.get()
            if around is not None:
                already = _claimed_words(around)
                if not already.isdisjoint(self._claim.ids):
                    self._claim = self._claim.without(already)
            if _sleeping or not self._claim.take(self._flag):
                _wait(self._claim, self._flag)
            self._token = _mine.set(_Claimed(self._claim, self._flag, around))
        except BaseException:
            self._back()
            raise

    def __exit__(self, *_: object) -> None:
        self._back()
        if self._token is not None:
            _mine.reset(self._token)

    def _back(self) -> None:
        self._claim.drop(self._flag)
        if _sleeping:
            _wake()


def _claimed_words(chain: _Claimed | None) -> set[int]:
    """The identities of the words that this context has claimed."""
    ids: set[int] = set()
    while chain is not None:
        claim, flag, chain = chain
        if flag != _FREE or id(flag) in _plain:  # else it was given back by a block that was interrupted
            ids |= claim.ids.keys()
    return ids


def _wake() -> None:
    """Wake those who wait."""
    with _changed:
        _changed.notify_all()


def _sleep(by: int) -> None:
    """Count those who wait up or down; while there are any, native calls ask here whose turn it is."""
    global _sleeping
    _sleeping += by
    if _native is not None:
        _native.set("claims.waiting", _sleeping)


def _wait(claim: Claim, flag: bytes) -> None:
    """Take a claim when it is its turn."""
    with _changed:
        _sleep(1)
        try:
            _queue.append(claim)
            while any(claim.meets(other) for other in _before(claim)) or not claim.take(flag):
                _changed.wait(_POLL)
        finally:
            if claim in _queue:
                _queue.remove(claim)
            _sleep(-1)
            _changed.notify_all()


def _before(claim: Claim) -> list[Claim]:
    """The claims that were queued before this one."""
    return _queue[:_queue.index(claim)]


def wait_for_value(read: Callable[[], T]) -> T:
    """The result of `read`, once it raises AttributeError no more: the value of a variable that is overwritten."""
    with _changed:
        _sleep(1)
        try:
            while True:
                try:
                    return read()
                except AttributeError:
                    _changed.wait(_POLL)
        finally:
            _sleep(-1)


# -- values -------------------------------------------------------------------------------------------
def _swap_plainly(variable: Claimable[T], after: T, *before: T) -> int:
    with _changed:
        if _plain.get(id(variable._word), 0) < 0 or (before and variable._value is not before[0]):
            return 0
        variable._value = after
        return 1


def _commit_plainly(variables: tuple[Claimable[T], ...], tensors: tuple[T, ...]) -> int:
    with _changed:
        for variable, tensor in zip(variables, tensors, strict=True):
            variable._value = tensor
    return 1


def _snapshot_plainly(variables: tuple[Claimable[T], ...]) -> tuple[T, ...]:
    with _changed:
        return tuple([v._value for v in variables])


#: `swap(variable, after, before)`: gives a variable a tensor, where nobody else is assigning it and, if `before` is
#: given, where it still holds that; else 0.
swap: Callable[..., int] = _swap_plainly
#: `commit(variables, tensors)`: gives all variables of a tuple their values at one moment, for whoever has claimed them
commit: Callable[[tuple[Claimable[T], ...], tuple[T, ...]], int] = _commit_plainly
#: the tensors of variables at one moment; 0 where one is overwritten now
_snapshot: Callable[[tuple[Claimable[T], ...]], tuple[T, ...] | int] = _snapshot_plainly


def snapshot(variables: tuple[Claimable[T], ...]) -> tuple[T, ...]:
    """The tensors that variables hold at one moment."""
    tensors = _snapshot(variables)
    while isinstance(tensors, int):
        for v in variables:
            v._value  # noqa: B018 - waits until it is there
        tensors = _snapshot(variables)
    return tensors


def bind(cls: type) -> None:
    """Tell native code where instances of `cls` hold a variable's tensor, `_value`, and its word, `_word`."""
    global swap, commit, _snapshot, _variables, _native
    _variables, _native = cls, core()
    native = _native
    if native is None:
        return
    native.set("variable.value", slot_offset(cls, "_value"))
    native.set("variable.word", slot_offset(cls, "_word"))
    native.hold("claims.changed", _wake)
    swap, commit, _snapshot = (native.new(_definition(native, name), native.bound(None, name), None) for name in
                               ("swap", "commit", "snapshot"))


_variables: type | None = None
_native: Core | None = None
_definitions: dict[str, MethodDef] = {}


def _definition(native: Core, name: str) -> MethodDef:
    if name not in _definitions:
        _definitions[name] = native.definition(name, name, "")
    return _definitions[name]


# -- forks --------------------------------------------------------------------------------------------
_alone = False  # whether no other thread ran Python at the last fork, so that nobody else can hold claims


def _before_fork() -> None:
    """Have calls ask Python first, and wait for programs that overwrite variables: the child would have half of what
    they write."""
    global _alone
    _alone = len(sys._current_frames()) == 1
    with _changed:
        _sleep(1)
    until = time.monotonic() + _PATIENCE
    while _native is not None and _native.get("claims.running") and time.monotonic() < until:
        time.sleep(1e-4)


def _after_fork_in_parent() -> None:
    with _changed:
        _sleep(-1)
        _changed.notify_all()


def _after_fork() -> None:
    """Free in the child all that other threads of the parent had claimed."""
    global _sleeping
    _queue.clear()
    _sleeping = 0
    _sleep(0)
    claimed_here = _claimed_words(_mine.get())
    for key in [key for key in _plain if key not in claimed_here]:
        del _plain[key]
    if _native is None or _variables is None:
        return
    _native.set("claims.running", 0)
    if _alone:  # the search below touches every object, which copies the parent's memory
        return
    for variable in [x for x in gc.get_objects() if isinstance(x, _variables)]:
        word = getattr(variable, "_word", _FREE)
        if word != _FREE and id(word) not in claimed_here:
            ctypes.c_int64.from_address(address(word)).value = 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork)
