"""Errors, said so that a user can mend it.

Owns TensorFlow's error classes and the text of an op's error: which op, what it was given, what it
expected, and the user's own line. Raising before anything is changed is the caller's part.
"""

from __future__ import annotations

import functools
import linecache
import os
import reprlib
import sys
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import TypeVar

import numpy as np

from .types import AnyTensor, HasShape

__all__ = ["OpError", "InvalidArgumentError", "ShapeError", "DTypeError", "CancelledError", "UnknownError",
           "DeadlineExceededError", "NotFoundError", "AlreadyExistsError", "PermissionDeniedError",
           "UnauthenticatedError", "ResourceExhaustedError", "FailedPreconditionError", "AbortedError",
           "OutOfRangeError", "UnimplementedError", "InternalError", "UnavailableError", "DataLossError",
           "SymbolicOperand", "CompositeOperand", "ChoiceNeeded",
           "op_error", "of_values", "describe", "no_truth", "user_line"]


class OpError(Exception):
    """An op could not run. `message` is the text, `op` the op's name, `error_code` TensorFlow's number.

    >>> import twofold as tf
    >>> try:
    ...     tf.constant([1, 2]) + tf.constant([1, 2, 3])
    ... except tf.errors.OpError as e:
    ...     print(e.op, e.error_code)
    add 3
    """

    error_code = 2
    of_values = False  # whether operands have wrong values, which compiled code finds as well and tells of the op

    def __init__(self, node_def: object = None, op: object = None, message: str | None = None,
                 error_code: int | None = None):
        if message is None and isinstance(node_def, str):  # OpError("text"), as our own code raises it
            node_def, message = None, node_def
        self.message = "" if message is None else _as_text(message)
        super().__init__(self.message)
        self.node_def = node_def
        self.op = op
        if error_code is not None:
            self.error_code = error_code

    def __str__(self) -> str:
        return self.message


def _as_text(message: object) -> str:
    """The text of a program's message, which may be anything, also a list that is nested too deeply to be written."""
    try:
        return str(message)
    except RecursionError:
        return describe(message)


class CancelledError(OpError):
    """The work was cancelled before it finished."""

    error_code = 1


class UnknownError(OpError):
    """An error with no class of its own."""

    error_code = 2


class InvalidArgumentError(OpError, ValueError):
    """An op was given something it cannot work on; also a `ValueError`."""

    error_code = 3


class ShapeError(InvalidArgumentError):
    """The shapes of an op's operands do not fit together."""


class DTypeError(InvalidArgumentError, TypeError):
    """The dtypes of an op's operands do not fit together; also a `TypeError`."""


class SymbolicOperand(TypeError):
    """An op was given what stands for a tensor and has no value, such as an input of a functional model."""


class CompositeOperand(SymbolicOperand):
    """An op was given a value that is made of several tensors, such as a ragged one.

    Public functions answer it by what is registered for the class of the value (`twofold/_front/dispatch.py`).

    Attributes:
        value: the operand.
    """

    def __init__(self, value: object) -> None:
        kind = type(value).__name__
        super().__init__(f"a {kind} cannot be an operand here: {_outline(value)}. Give the tensors that it is made of, "
                         f"or a dense tensor.\n  {user_line()}")
        self.value = value

    def __reduce__(self) -> tuple[object, ...]:
        return (SymbolicOperand, self.args)


class ChoiceNeeded(SymbolicOperand):
    """A public function needs the value of an integer argument, out of few, that only running can tell.

    The tracer answers it: it stages the call once for each value, and a switch that runs one of them
    (`tracer/choices.py`).

    Attributes:
        tensor: the argument, or an element of it where it is a list: an integer tensor.
        span: the least value that it may have, and the first that is too large; None for any.
        what: the argument's name.
    """

    def __init__(self, tensor: AnyTensor, span: tuple[int, int] | None, what: str) -> None:
        super().__init__(f"{what} must be known when tf.function traces; {tensor!r} is known only when it runs.\n"
                         f"  {user_line()}")
        self.tensor, self.span, self.what = tensor, span, what

    def __reduce__(self) -> tuple[object, ...]:
        return (SymbolicOperand, self.args)  # another process has no trace, and nobody who answers


class DeadlineExceededError(OpError):
    """Time ran out."""

    error_code = 4


class NotFoundError(OpError, LookupError):
    """A file, key or function does not exist."""

    error_code = 5


class AlreadyExistsError(OpError):
    """Something that was to be made exists already."""

    error_code = 6


class PermissionDeniedError(OpError):
    """The caller may not do this."""

    error_code = 7


class ResourceExhaustedError(OpError, MemoryError):
    """Memory or another resource ran out."""

    error_code = 8


class FailedPreconditionError(OpError, RuntimeError):
    """The state does not allow the operation now."""

    error_code = 9


class AbortedError(OpError):
    """The operation was aborted."""

    error_code = 10


class OutOfRangeError(OpError, IndexError):
    """An operation went past the end."""

    error_code = 11


class UnimplementedError(OpError, NotImplementedError):
    """The operation is not supported for these operands."""

    error_code = 12


class InternalError(OpError):
    """An invariant of the library itself is broken: a defect to report."""

    error_code = 13


class UnavailableError(OpError):
    """A service is not there at the moment."""

    error_code = 14


class DataLossError(OpError):
    """Stored data is damaged."""

    error_code = 15


class UnauthenticatedError(OpError):
    """The caller is not known."""

    error_code = 16


_HOME = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_ROOMS = tuple(os.path.join(_HOME, room) + os.sep
               for room in ("ir", "codegen", "runtime", "eager", "tracer", "twofold"))
# The folders that hold the package's files: what lies elsewhere is the user's, or another library's.
# Installed, the rooms lie inside the package's folder. In a source tree they lie beside it, and so do users' files.
OWN_FOLDERS = (_HOME + os.sep,) if os.path.abspath(sys.modules["twofold"].__path__[0]) == _HOME else _ROOMS
_SITE = os.path.dirname(os.path.dirname(np.__file__))
# What may lie between our frames and the user's.
_BETWEEN = (*OWN_FOLDERS, "<frozen ", *[os.path.join(_SITE, name, "")
                            for name in ("numpy", "PIL", "google", "tensorboard", "h5py")])


def is_ours(filename: str) -> bool:
    """Whether a source file belongs to this package."""
    return filename.startswith(OWN_FOLDERS)


# Folders of Python's own modules, which call back and forth; what is installed may lie below them.
@functools.cache
def _standard() -> tuple[str, ...]:
    import sysconfig
    return tuple({os.path.join(path, "") for path in (sysconfig.get_path("stdlib"), os.path.dirname(os.__file__))})


def _is_between(filename: str) -> bool:
    """Whether a frame of this source file may lie between our frames and the user's."""
    return filename.startswith(_BETWEEN) or filename.startswith(_standard()) and f"-packages{os.sep}" not in filename


_Error = TypeVar("_Error", bound=OpError)


def of_values(error: _Error) -> _Error:
    """`error`, marked as one of wrong values, which is found when the op runs and tells of the op."""
    error.of_values = True
    return error


# Generated source by file name: from a line of it and the function there to (file, line, function) of the user's.
SOURCE_MAPS: dict[str, Callable[[int, str], tuple[str, int, str]]] = {}


# While an op of a graph runs: the place in the user's source that staged it, which errors show.
staged_at: ContextVar[tuple[str, int, str] | None] = ContextVar("twofold_staged_at", default=None)


def user_line() -> str:
    """`At FILE:LINE in FUNCTION(): SOURCE` for the innermost frame that is the user's; or empty."""
    place = staged_at.get()
    if place is not None:
        return line_text(*place)
    frame = sys._getframe(1)
    while frame is not None and _is_between(frame.f_code.co_filename):
        frame = frame.f_back  # type: ignore[assignment]
    if frame is None:
        return ""
    path, line, where = frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name
    if path in SOURCE_MAPS:
        path, line, where = SOURCE_MAPS[path](line, where)
    return line_text(path, line, where)


def line_text(path: str, line: int, where: str) -> str:
    """How errors show a line of source."""
    where = f" in {where}()" if where.isidentifier() else ""
    source = linecache.getline(path, line).strip()
    return f"At {os.path.basename(path)}:{line}{where}" + (f": {source}" if source else "")


def describe(value: object) -> str:
    """An operand as an error shows it: `float32[32,8]` for what has a shape and a dtype, else type and value."""
    dims, dtype = getattr(value, "dims", None), getattr(value, "dtype", None)
    if dims is not None and dtype is not None:
        return f"{getattr(dtype, 'name', dtype)}[{','.join(map(str, dims))}]"
    text = _short.repr(value)
    return f"{type(value).__name__} {text if len(text) <= 60 else text[:57] + '...'}"


def _outline(value: object) -> str:
    """A composite value without its elements, where it has a shape: most errors of this kind are answered, and to write
    a large value takes longer than what functions do with it."""
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    dims = getattr(shape, "dims", None)
    if dims is None or dtype is None:
        return describe(value)
    sizes = ",".join("?" if size is None else str(size) for size in dims)
    return f"{type(value).__name__} {getattr(dtype, 'name', dtype)}[{sizes}]"


_short = reprlib.Repr()  # of a large or endless value only the beginning
_short.maxlist = _short.maxtuple = _short.maxdict = _short.maxset = 20
_short.maxstring = _short.maxother = _short.maxlong = 60


def no_truth(tensor: HasShape, what: str = "condition") -> str:
    """Why a tensor of several elements, or of none, is neither true nor false."""
    return (f"The truth value of a tensor of shape {tensor.shape} is not defined: the {what} must be a scalar; use "
            f"tf.reduce_any or tf.reduce_all.\n  {user_line()}")


def op_error(cls: type[OpError], op: str, problem: str, operands: Sequence[tuple[str, object]] = (),
             hint: str | None = None) -> OpError:
    """The error of an op, from its parts.

    Args:
        cls: the class to make.
        op: the op's name.
        problem: what is wrong, one sentence.
        operands: `(name, value)` pairs; values are shown by `describe`.
        hint: a fix that works.
    """
    width = max((len(name) for name, _ in operands), default=0)
    lines = [f"{op}: {problem}"]
    lines += [f"  {name.ljust(width)} : {describe(value)}" for name, value in operands]
    if hint:
        lines.append(f"  Hint: {hint}")
    where = user_line()
    if where:
        lines.append(f"  {where}")
    return cls(None, op, "\n".join(lines))
