"""What commands share: how they fail, print and show progress, and how numbers are told."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections.abc import Iterable, Iterator
from typing import Any, TextIO, TypeVar

__all__ = ["Failure", "Misuse", "say", "say_json", "warn", "table", "amount", "progress", "doing", "sizes_of",
           "add_model", "OK", "FAILED", "MISUSED"]

OK, FAILED, MISUSED = 0, 1, 2  # what the process exits with

T = TypeVar("T")


class Failure(Exception):
    """Something cannot be done; the text tells a person why. The process ends with status 1."""


class Misuse(Exception):
    """The arguments make no sense; the process ends with status 2."""


def say(*lines: str) -> None:
    """Writes lines to standard output."""
    for line in lines:
        sys.stdout.write(f"{_harmless(line, sys.stdout)}\n")


def say_json(document: Any) -> None:
    """Writes one JSON document to standard output; numbers that JSON lacks are strings ("nan", "inf", "-inf")."""
    say(json.dumps(_plain(document), indent=2, allow_nan=False))


def warn(text: str) -> None:
    """Writes a line to standard error."""
    sys.stderr.write(f"twofold: {_harmless(text, sys.stderr)}\n")


def _harmless(text: str, stream: TextIO) -> str:
    """The text with control characters escaped, which a terminal would obey: names in a model may come from
    strangers."""
    shown = "".join([c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text])
    coding = getattr(stream, "encoding", None) or "utf-8"
    return shown.encode(coding, "backslashreplace").decode(coding)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return str(value)
    if isinstance(value, complex):
        return [_plain(value.real), _plain(value.imag)]
    if isinstance(value, bytes):
        return value.decode(errors="backslashreplace")
    return value


def table(rows: Iterable[Iterable[object]], indent: str = "  ", right: Iterable[int] = ()) -> list[str]:
    """Rows as lines with their columns one below the other; those in `right` end at one place."""
    texts = [[str(cell) for cell in row] for row in rows]
    columns = max((len(row) for row in texts), default=0)
    widths = [max((len(row[n]) for row in texts if n < len(row)), default=0) for n in range(columns)]
    ends = set(right)
    return [(indent + "  ".join(cell.rjust(widths[n]) if n in ends else cell.ljust(widths[n])
                                for n, cell in enumerate(row))).rstrip() for row in texts]


def amount(size: int) -> str:
    """Bytes for people, in powers of ten."""
    value, units = float(size), ["bytes", "kB", "MB", "GB", "TB"]
    while value >= 1000 and len(units) > 1:
        value /= 1000
        units.pop(0)
    return f"{size} bytes" if units[0] == "bytes" else f"{value:.1f} {units[0]}"


def progress(items: Iterable[T], what: str, unit: str, total: int | None = None) -> Iterator[T]:
    """The items, with a bar on standard error where that is a terminal and tqdm is installed."""
    if not sys.stderr.isatty():
        yield from items
        return
    try:
        from tqdm import tqdm  # type: ignore[import-untyped]
    except ImportError:
        yield from items
        return
    yield from tqdm(items, desc=what, unit=unit, total=total, leave=False, file=sys.stderr)


@contextlib.contextmanager
def doing(what: str) -> Iterator[None]:
    """Says on standard error, where that is a terminal, what goes on during the block."""
    shown = sys.stderr.isatty()
    if shown:
        sys.stderr.write(f"{what} ...")
        sys.stderr.flush()
    try:
        yield
    finally:
        if shown:
            sys.stderr.write("\r" + " " * (len(what) + 4) + "\r")


def sizes_of(given: list[str]) -> dict[str, int]:
    """What unknown sizes are, from texts such as "n=32".

    Raises:
        Misuse: a text is not of this form.
    """
    sizes = {}
    for text in given:
        name, equals, number = text.partition("=")
        if not (name and equals and number.isdecimal()):
            raise Misuse(f"--size wants NAME=NUMBER, such as batch=32; got {text!r}")
        sizes[name] = int(number)
    return sizes


def add_model(parser: argparse.ArgumentParser) -> None:
    """The arguments of a command that reads one function of a saved model."""
    parser.add_argument("dir", metavar="DIR", help="the folder of a saved model (tf.saved_model.save)")
    parser.add_argument("--signature", metavar="NAME", help="which signature, or which function by its place in the "
                        "object (such as encoder.__call__); by default serving_default, or the only one there is")
