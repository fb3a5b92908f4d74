"""Regular expressions over bytes, for `tf.strings`, in a time that is bounded.

TensorFlow's engine, RE2, takes time linear in the text. Python's `re` goes back and tries again, which can take
exponential time where a repetition is within another, and a power of the text's length where several come one after
another. So a pattern's shape is looked at once, and `re` is used for texts for which it needs some 10^8 steps at most.
For others there is RE2 itself, where `google-re2` is installed (`pip install twofold[re2]`); without it they are an
error that says so. References to groups and looking around, which RE2 has not, are refused.
"""

from __future__ import annotations

import functools
import importlib
import re
from collections.abc import Iterator
from typing import Any

from twofold.ir.errors import InvalidArgumentError, UnimplementedError

__all__ = ["Pattern", "compiled", "rewriting"]

_STEPS = 10 ** 8
_REFUSED = frozenset({"ASSERT", "ASSERT_NOT", "GROUPREF", "GROUPREF_EXISTS", "ATOMIC_GROUP", "POSSESSIVE_REPEAT"})
_REPEATS = frozenset({"MAX_REPEAT", "MIN_REPEAT"})
_FEW = 8  # repetitions that count as none


class Pattern:
    """A regular expression.

    Args:
        text: as the user wrote it.
    Raises:
        InvalidArgumentError: it is none, or one that RE2 refuses.
    """

    def __init__(self, text: bytes) -> None:
        try:
            self.plain = re.compile(text)
            tree = importlib.import_module("re._parser").parse(text)
        except (re.error, RecursionError, OverflowError) as e:
            raise InvalidArgumentError(None, "regex", f"Invalid pattern: {text!r}: {e}") from None
        self.text, self.groups = text, self.plain.groups
        self._degree = _degree(tree, text)

    def full_match(self, text: bytes) -> bool:
        """Whether all of a text matches."""
        return self._engine(len(text), 0).fullmatch(text) is not None

    def matches(self, text: bytes) -> Iterator[Any]:
        """The matches in a text from the left; none that is empty follows another at once."""
        end = -1
        for match in self._engine(len(text), 1).finditer(text):
            if match.end() != match.start() or match.start() != end:
                end = match.end()
                yield match

    def _engine(self, length: int, places: int) -> Any:
        """The compiled expression for texts of `length` bytes: Python's where its steps are bounded, else RE2's.

        `places` is 1 where a match may begin anywhere in the text, and 0 where it begins with the text.
        """
        if self._degree is not None and (not self._degree or length ** (self._degree + places) <= _STEPS):
            return self.plain
        return _re2(self.text)


def _degree(tree: Any, text: bytes) -> int | None:
    """How many repetitions are followed by more of the pattern; None where one is within another."""
    count = 0
    for n, (op, argument) in enumerate(tree):
        name = str(op)
        if name in _REFUSED:
            raise InvalidArgumentError(None, "regex", f"Invalid pattern: {text!r}: there are no references to groups, "
                                                      "no looking around and no possessive repetitions")
        inner = _parts(name, argument)
        degrees = [_degree(part, text) for part in inner]
        if None in degrees:
            return None
        within = max((d for d in degrees if d is not None), default=0)
        if name in _REPEATS:
            least, most = int(argument[0]), int(argument[1])
            if most > _FEW and most != least:
                if any(_varies(part) for part in inner):
                    return None
                count += n + 1 < len(tree)
                continue
        count += within
    return count


def _varies(tree: Any) -> bool:
    """Whether a part of a pattern can match one text in several ways, or texts of several lengths."""
    for op, argument in tree:
        name = str(op)
        if name == "BRANCH" or (name in _REPEATS and argument[0] != argument[1]):
            return True
        if any(_varies(part) for part in _parts(name, argument)):
            return True
    return False


def _parts(name: str, argument: Any) -> list[Any]:
    if name == "BRANCH":
        return list(argument[1])
    if name == "SUBPATTERN":
        return [argument[-1]]
    return [argument[2]] if name in _REPEATS else []


@functools.lru_cache(maxsize=256)
def compiled(text: bytes) -> Pattern:
    """The pattern of a text."""
    return Pattern(text)


@functools.lru_cache(maxsize=256)
def _re2(text: bytes) -> Any:
    try:
        engine: Any = importlib.import_module("re2")
    except ImportError:
        raise UnimplementedError(
            None, "regex", f"the pattern {text!r} can take very long on a text of this length: repetitions are within "
            "one another, or several follow each other. RE2 matches it in linear time: pip install twofold[re2]"
        ) from None
    options = engine.Options()
    options.encoding = engine.Options.Encoding.LATIN1  # bytes
    options.log_errors = False
    try:
        return engine.compile(text, options)
    except engine.error as e:
        raise InvalidArgumentError(None, "regex", f"Invalid pattern: {text!r}: {e}") from None


def rewriting(rewrite: bytes, groups: int) -> list[bytes | int]:
    """What comes in the place of a match: bytes, and numbers of groups.

    Raises:
        InvalidArgumentError: a backslash is before something else than a digit or a backslash, or there is no such
            group.
    """
    parts: list[bytes | int] = []
    for piece in re.findall(rb"\\.?|[^\\]+", rewrite, re.DOTALL):
        if piece[:1] != b"\\":
            parts.append(piece)
        elif piece == b"\\\\":
            parts.append(b"\\")
        elif piece[1:].isdigit():
            parts.append(int(piece[1:]))
        else:
            raise InvalidArgumentError(None, "regex", f"Invalid rewrite pattern: {rewrite!r}: a backslash comes before "
                                                      "a digit or another backslash")
    highest = max((n for n in parts if isinstance(n, int)), default=0)
    if highest > groups:
        raise InvalidArgumentError(None, "regex", f"Invalid rewrite pattern: {rewrite!r}: the pattern has {groups} "
                                                  f"groups, and group {highest} is asked for")
    return parts
