"""Tracebacks as users see them: their own frames, without the library's below.

`trim` works on an exception that leaves a public function. The complete traceback stays reachable as the exception's
`__twofold_traceback__`, which reads like a traceback and is one in its attribute `traceback`; copies of an exception,
and those that went to another process, have none. TWOFOLD_TRACEBACK=full keeps it in place (see `native_core.py`).
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from types import TracebackType
from typing import Any

from twofold.ir.errors import OWN_FOLDERS

__all__ = ["trim", "complete", "between", "Kept", "ATTRIBUTE"]

ATTRIBUTE = "__twofold_traceback__"
_DEPENDENCIES = ("numpy", "ml_dtypes", "numba", "llvmlite", "networkx", "malt", "safetensors")
_OPTIONAL = ("PIL", "google.protobuf", "tensorboard", "h5py")  # what is called where it is installed


def trim(error: BaseException) -> None:
    """Leaves in the traceback of `error` only frames of user code that the library called back.

    The first frame is the public function's own. A frame goes when it belongs to the library, or when it belongs to
    the standard library or a dependency and was called from a frame that goes.
    """
    entries = _entries(error.__traceback__)
    if not entries:
        return
    visible, hidden = [], True
    for index, entry in enumerate(entries):
        hidden = index == 0 or _hides(entry.tb_frame.f_code.co_filename, hidden)
        if not hidden:
            visible.append(entry)
    try:
        setattr(error, ATTRIBUTE, Kept(_complete(entries, _stored(error))))
    except (AttributeError, TypeError):  # the exception's class takes no attributes
        return
    error.__traceback__ = _chain(visible, None)


def complete(error: BaseException) -> list[TracebackType]:
    """The entries of an error's traceback, with those that inner public functions have trimmed."""
    return _entries(_complete(_entries(error.__traceback__), _stored(error)))


def between(filename: str) -> bool:
    """Whether a file is of the standard library or a dependency, which may lie between our frames and the user's."""
    ours, theirs = _folders()
    return not filename.startswith(ours) and filename.startswith(theirs) and (
        not filename.startswith(_standard()) or "-packages" + os.sep not in filename)


class Kept:
    """A traceback in an attribute of an exception, which can be pickled and copied with it, but for the traceback.

    It has a traceback's attributes, and is false where there is none.
    """

    __slots__ = ("traceback",)

    def __init__(self, traceback: TracebackType | None = None) -> None:
        self.traceback = traceback

    def __getattr__(self, name: str) -> Any:  # an attribute of a traceback
        return getattr(self.traceback, name)

    def __bool__(self) -> bool:
        return self.traceback is not None

    def __reduce__(self) -> tuple[type[Kept], tuple[()]]:
        return (Kept, ())


def _stored(error: BaseException) -> TracebackType | None:
    stored = getattr(error, ATTRIBUTE, None)
    return stored.traceback if stored else None


def _complete(entries: list[TracebackType], before: TracebackType | None) -> TracebackType | None:
    """All entries; where an inner public function has trimmed already, its complete ones in place of what it left."""
    inner = _entries(before)
    frames = {id(entry.tb_frame) for entry in inner}
    fresh = []
    for entry in entries:
        if id(entry.tb_frame) in frames:
            break
        fresh.append(entry)
    return _chain(fresh, before)


def _entries(traceback: TracebackType | None) -> list[TracebackType]:
    entries = []
    while traceback is not None:
        entries.append(traceback)
        traceback = traceback.tb_next
    return entries


def _chain(entries: list[TracebackType], rest: TracebackType | None) -> TracebackType | None:
    for entry in reversed(entries):
        rest = TracebackType(rest, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return rest


def _hides(filename: str, caller_hidden: bool) -> bool:
    ours, theirs = _folders()
    return filename.startswith(ours) or (caller_hidden and filename.startswith(theirs))


@functools.cache
def _folders() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What names of files begin with: of the library's own code, and of code that it calls."""
    import importlib.util
    theirs = [path for name in _DEPENDENCIES for path in _paths(name)]
    for name in _OPTIONAL:
        with contextlib.suppress(ImportError, ValueError):
            package = importlib.util.find_spec(name)
            theirs += (package and package.submodule_search_locations) or []
    return OWN_FOLDERS, (*_prefixes(theirs), *_standard(), "<frozen ")


@functools.cache
def _standard() -> tuple[str, ...]:
    import sysconfig
    return _prefixes([sysconfig.get_path("stdlib"), "<frozen "])


def _paths(module: str) -> list[str]:
    return list(getattr(sys.modules.get(module), "__path__", []))


def _prefixes(paths: list[str]) -> tuple[str, ...]:
    return tuple(path if path.startswith("<") else os.path.join(path, "") for path in paths)
