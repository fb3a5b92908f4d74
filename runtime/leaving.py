"""Errors that leave a public function name that function, which the user called, and the user's line.

Owns the one place where errors pass on their way out (`leave`). A check at a public door says what is wrong before
anything runs; what is raised deeper names an inner op, or is what a statement inside happened to raise. Where the
library's outermost function is left, the first gets the function's name, the second becomes an error of the library's.
Tracebacks are `tracebacks.py`'s.
"""

from __future__ import annotations

import contextlib
import dis
import os
import re
import sys
from collections.abc import Callable
from types import CodeType, FrameType, FunctionType, TracebackType
from typing import TypeVar

from twofold.ir.errors import (
    DTypeError,
    InternalError,
    InvalidArgumentError,
    OpError,
    OutOfRangeError,
    ResourceExhaustedError,
    describe,
    is_ours,
    user_line,
)

from . import random as streams
from . import tracebacks
from .native_layout import PythonFunction

__all__ = ["leave", "for_the_user", "filter_tracebacks", "filters_tracebacks", "OPERATORS"]

FULL = os.environ.get("TWOFOLD_TRACEBACK", "").lower() == "full"  # `filter_tracebacks` changes it
_RAISE = dis.opmap["RAISE_VARARGS"]
_PLAIN = (TypeError, ValueError, IndexError)  # of Python's own: what is raised for arguments
# What statements raise that were given what they cannot work on, and what comes out instead.
_INSIDE: tuple[tuple[type[Exception], type[OpError]], ...] = (
    (TypeError, DTypeError), (AttributeError, DTypeError), (MemoryError, ResourceExhaustedError),
    (NameError, InternalError), (ValueError, InvalidArgumentError), (LookupError, InvalidArgumentError),
    (ArithmeticError, InvalidArgumentError), (RecursionError, InvalidArgumentError),
)
OPERATORS: dict[str, str] = {}  # what errors call the methods of operators, such as `__lt__`: by their ops
# What syntax calls of an object: errors name its class.
_BY_SYNTAX = ("__init__", "__call__", "__enter__", "__new__", "__getitem__", "__setitem__", "__delitem__",
              "__contains__")
_for_users: set[CodeType] = set()  # of our functions that make calls which the user wrote
# What is said of a compiled function that is called, in TensorFlow's words; not what is said of tracing in general.
_OF_FUNCTIONS = r"\btf\.function\b(?! (traces|takes)\b)"
_DEEP = 200  # frames of the library above each other, where a recursion was its own


def filter_tracebacks(on: bool) -> None:
    """Have tracebacks show the user's frames only, or all frames."""
    global FULL
    FULL = not on


def filters_tracebacks() -> bool:
    """Whether tracebacks show the user's frames only."""
    return not FULL


def leave(error: BaseException, door: PythonFunction, since: int = -1, caller: FrameType | None = None
          ) -> BaseException:
    """The exception to raise in place of `error`, which is leaving a public function.

    Args:
        error: as it was raised.
        door: the public function; its `__name__` is what it is called, its `fn`, if any, the Python function behind.
        since: how many random draws there were before the call (`random.mark`); those since are given back where the
            error left the outermost public function and no function of the user's. -1 where it draws nothing.
        caller: the frame that called the public function; by default the one that called this.
    Returns:
        `error` itself with the function's name and the user's line in its text, where it left the outermost public
        function; an error of the library's, whose cause is `error`, where it was raised by no `raise` of ours.
    """
    if isinstance(error, Exception) and _outermost(caller or sys._getframe(1)):
        with contextlib.suppress(RecursionError):
            left, error = error, _explained(error, getattr(door, "fn", door), door.__name__)
            if since >= 0 and streams.mark() != since and _ours_alone(left):
                streams.give_back(since)
    if not FULL:
        tracebacks.trim(error)
    return error


F = TypeVar("F", bound=Callable[..., object])


def for_the_user(function: F) -> F:
    """Marks a function of the library that makes calls in the place of the user's source, so that errors treat them as
    the user's own calls."""
    _for_users.add(function.__code__)
    return function


def _outermost(frame: FrameType | None) -> bool:
    """Whether a call in `frame` is the user's and not our own."""
    while frame is not None:
        path = frame.f_code.co_filename
        if is_ours(path) and frame.f_code not in _for_users:
            return False
        if not is_ours(path) and not tracebacks.between(path):
            return True
        frame = frame.f_back
    return True


def _ours_alone(error: BaseException) -> bool:
    """Whether an error has come through no function of the user's, who may have seen what was drawn in it."""
    files = [e.tb_frame.f_code.co_filename for e in tracebacks.complete(error)]
    return all(is_ours(path) or tracebacks.between(path) for path in files)


def _explained(error: Exception, function: object, name: str) -> Exception:
    complete = tracebacks.complete(error)
    entries = [e for e in complete if not tracebacks.between(e.tb_frame.f_code.co_filename)]
    if isinstance(function, FunctionType):
        codes = [e.tb_frame.f_code for e in entries]
        if function.__code__ not in codes:  # the call did not fit the signature
            return error
        entries = entries[codes.index(function.__code__):]
    if not entries or hasattr(error, "__twofold_told__"):
        return error
    if not all(is_ours(e.tb_frame.f_code.co_filename) for e in entries):  # it comes out of the user's own function
        return error
    if isinstance(error, OpError) and error.of_values:
        return error
    if isinstance(error, OSError) and not isinstance(error, OpError):  # programs ask for its class, its text says all
        error.add_note(f"{title(function, name, entries[0].tb_frame)}: {user_line()}")
    elif isinstance(error, OpError) or _is_raised(complete[-1]):
        _say(error, title(function, name, entries[0].tb_frame), _label(function, entries[0].tb_frame),
             name == "__call__")
    else:
        error = _instead(error, function, name, entries)
    with contextlib.suppress(AttributeError, TypeError):
        error.__twofold_told__ = True  # type: ignore[attr-defined]
    return error


def _is_raised(last: TracebackType) -> bool:
    """Whether a `raise` of ours raised what has this innermost entry."""
    code = last.tb_frame.f_code
    return is_ours(code.co_filename) and code.co_code[last.tb_lasti] == _RAISE


def title(function: object, name: str, frame: FrameType | None = None) -> str:
    """How errors name a public function: `pad`, `Dense`, `Variable.assign_add`; empty for what has no such name."""
    stem = getattr(function, "__qualname__", "").rpartition(".")[0]
    method = frame is not None and stem and frame.f_code.co_varnames[:1] == ("self",)  # also of a class in a function
    owner = frame.f_locals.get("self") if method and frame is not None else None
    if owner is not None:
        stem = getattr(owner if isinstance(owner, type) else type(owner), "__name__", stem)
    if name in OPERATORS:
        return type(owner).__name__ if owner is not None else OPERATORS[name]
    if name == "__call__" and not stem and frame is not None:  # of a compiled function, whose `__call__` is no method
        called = str(getattr(frame.f_locals.get(next(iter(frame.f_code.co_varnames), "")), "__name__", ""))
        return called if called.isidentifier() else "function"
    if name in _BY_SYNTAX:
        return stem.rpartition(".")[2]
    if name.startswith("_") or name == "<lambda>":
        return ""
    name = name.rstrip("_")  # `tuple_` is public as `tuple`
    return f"{stem.rpartition('.')[2]}.{name}" if owner is not None else name


def _label(function: object, frame: FrameType) -> str:
    """The name that errors give the object whose method was called, such as a variable's; empty for most objects."""
    owner = frame.f_locals.get("self") if "." in getattr(function, "__qualname__", "") else None
    label = getattr(type(owner), "_label", None)
    try:
        return f" of {label.__get__(owner)}" if isinstance(label, property) else ""
    except AttributeError:  # it is not made yet
        return ""


def _say(error: Exception, name: str, label: str, calls: bool) -> None:
    """Puts the name of the function, and of the object that it is a method of, before what an error says, and the
    user's line after it. Of a compiled function that is called (`calls`) TensorFlow's words may tell."""
    plain = not isinstance(error, OpError)
    if plain and not (isinstance(error, _PLAIN) and type(error).__str__ is Exception.__str__
                      and len(error.args) == 1 and isinstance(error.args[0], str)):
        return
    text = before = error.args[0] if plain else error.message  # type: ignore[attr-defined]
    last = name.rpartition(".")[2]
    told = rf"\b{re.escape(last)}\b" + (f"|{_OF_FUNCTIONS}" if calls else "")
    if name and not re.search(told, text.partition("\n")[0]):
        op = getattr(error, "op", None)
        text = f"{name}{label}, in {text}" if op and text.startswith(f"{op}:") else f"{name}{label}: {text}"
    if not re.search(r"(^|\n) *At \S+:\d+", text):
        where = user_line()
        text += f"\n  {where}" if where else ""
    if text != before:
        error.args = (text,)
        if not plain:
            error.message = text  # type: ignore[attr-defined]


def _instead(error: Exception, function: object, name: str, entries: list[TracebackType]) -> Exception:
    """The library's error for what some statement inside of `function` raised."""
    wanted = next((new for old, new in _INSIDE if isinstance(error, old)), None)
    if isinstance(error, IndexError) and name == "__getitem__":  # by which loops over sequences know the end
        wanted = OutOfRangeError
    if wanted is None or type(error).__module__.partition(".")[0] not in ("builtins", "numpy", "json", "struct"):
        return error
    frame = entries[0].tb_frame
    if isinstance(error, RecursionError) and len(entries) < _DEEP and _depth(frame) > sys.getrecursionlimit() // 2:
        return error  # the user's stack was full
    name = title(function, name, frame) or name.strip("_")
    reason = str(error).partition("\n")[0][:200]
    lines = [f"{name}: cannot work with what it was given" + (f" ({reason})." if reason else ".")]
    if isinstance(error, RecursionError):
        lines = [f"{name}: an argument is nested too deeply, or contains itself."]
    elif isinstance(error, MemoryError):
        lines = [f"{name}: not enough memory for what was asked" + (f" ({reason})." if reason else ".")]
    lines += [f"  {parameter} : {_shown(value)}" for parameter, value in _arguments(function, frame)]
    where = user_line()
    replacement = wanted(None, name, "\n".join([*lines, f"  {where}"] if where else lines))
    replacement.from_inside = True  # type: ignore[attr-defined]
    replacement.__cause__ = error
    replacement.__traceback__ = error.__traceback__
    if not FULL:
        tracebacks.trim(error)
    return replacement


def _depth(frame: FrameType | None) -> int:
    count = 0
    while frame is not None:
        count, frame = count + 1, frame.f_back
    return count


def _arguments(function: object, frame: FrameType) -> list[tuple[str, object]]:
    """The arguments of the call, padded names and values, as the function has them now."""
    code = frame.f_code
    if not isinstance(function, FunctionType) or function.__code__ is not code:
        return []
    count = code.co_argcount + code.co_kwonlyargcount
    names = [n for n in code.co_varnames[:count] if n not in ("self", "cls", "name")]
    values = frame.f_locals
    width = max(map(len, names), default=0)
    return [(n.ljust(width), values[n]) for n in names if n in values]


def _shown(value: object) -> str:
    try:
        return describe(value)
    except Exception:  # noqa: BLE001 (a user's object may fail in any way)
        return f"an object of type {type(value).__name__}"
