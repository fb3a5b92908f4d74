"""Static libraries: an `ar` archive of object files with an index of their symbols, written here.

The form is the common one of Unix systems: members behind headers of text, names that end in a slash, and a first
member `/` that says which member defines which symbol; macOS wants the BSD form of both (`__.SYMDEF`, names behind
`#1/`). Times and owners are zero, so that equal code gives equal files.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

__all__ = ["archive"]

_MAGIC = b"!<arch>\n"


def archive(members: Sequence[tuple[str, bytes, Sequence[str]]], bsd: bool = False) -> bytes:
    """The archive of object files.

    Args:
        members: name, contents, and the symbols that it defines.
        bsd: whether it is for macOS.
    """
    return _bsd(members) if bsd else _common(members)


def _header(name: str, size: int) -> bytes:
    return f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{size:<10}".encode() + b"`\n"


def _common(members: Sequence[tuple[str, bytes, Sequence[str]]]) -> bytes:
    long = b"".join(f"{name}/\n".encode() for name, _, _ in members if len(name) > 15)
    names, at = [], 0
    for name, _, _ in members:
        names.append(f"/{at}" if len(name) > 15 else f"{name}/")
        at += len(name) + 2 if len(name) > 15 else 0
    symbols = [(s, n) for n, (_, _, defined) in enumerate(members) for s in defined]
    text = b"".join(s.encode() + b"\0" for s, _ in symbols)
    index = 4 + 4 * len(symbols) + len(text)
    place = len(_MAGIC) + 60 + _even(index) + (60 + _even(len(long)) if long else 0)
    places = []
    for _, contents, _ in members:
        places.append(place)
        place += 60 + _even(len(contents))
    words = struct.pack(f">{1 + len(symbols)}I", len(symbols), *[places[n] for _, n in symbols])
    parts = [_MAGIC, _member("/", words + text)]
    if long:
        parts.append(_member("//", long))
    return b"".join([*parts, *[_member(name, m[1]) for name, m in zip(names, members, strict=True)]])


def _member(name: str, contents: bytes) -> bytes:
    return _header(name, len(contents)) + contents + b"\n" * (len(contents) % 2)


def _even(size: int) -> int:
    return size + size % 2


def _bsd(members: Sequence[tuple[str, bytes, Sequence[str]]]) -> bytes:
    symbols = [(s, n) for n, (_, _, defined) in enumerate(members) for s in defined]
    text = b"".join(s.encode() + b"\0" for s, _ in symbols)
    text += b"\0" * (-len(text) % 8)
    index = 4 + 8 * len(symbols) + 4 + len(text)
    place = len(_MAGIC) + 60 + _named("__.SYMDEF") + index
    places, bodies = [], []
    for name, contents, _ in members:
        places.append(place)
        body = _bsd_member(name, contents)
        bodies.append(body)
        place += len(body)
    words, at = [8 * len(symbols)], 0
    for s, n in symbols:
        words += [at, places[n]]
        at += len(s.encode()) + 1
    table = struct.pack(f"<{len(words)}I", *words) + struct.pack("<I", len(text)) + text
    return b"".join([_MAGIC, _bsd_member("__.SYMDEF", table), *bodies])


def _named(name: str) -> int:
    """The bytes of a name before a member's contents, which begin at a multiple of 8."""
    return len(name) + (-(len(name) + 60 + len(_MAGIC)) % 8 or 8)


def _bsd_member(name: str, contents: bytes) -> bytes:
    room = _named(name)
    padding = b"\n" * (-(room + len(contents) + 60) % 8)
    size = room + len(contents) + len(padding)
    return _header(f"#1/{room}", size) + name.encode() + b"\0" * (room - len(name)) + contents + padding
