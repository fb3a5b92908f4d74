"""Characters in bytes: decoding with the place of each, what is no character, and encoding."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from twofold.ir.errors import InvalidArgumentError

__all__ = ["ENCODINGS", "Policy", "checked_encoding", "decoded", "encoded"]

ENCODINGS = ("UTF-8", "UTF-16-BE", "UTF-32-BE")  # that texts are written in
_BAD = 0xDC00  # with the number of bytes that are no character: a low surrogate, which no decoder gives
_MOST = 0x3FF
_LAST = 0x10FFFF
_CONTROL = 0x1F  # the last of the first control characters


def _marked(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return chr(_BAD + min(error.end - error.start, _MOST)), error.end


codecs.register_error("twofold.marked", _marked)


class Policy(NamedTuple):
    """What becomes of bytes that are no characters.

    Attributes:
        errors: "replace", "ignore" or "strict".
        replacement: the code point in their place.
        control: whether control characters up to 0x1F count as such.
        what: the function that is told in errors.
    """

    errors: str
    replacement: int
    control: bool
    what: str

    def checked(self) -> Policy:
        """Itself.

        Raises:
            InvalidArgumentError: there is no such way, or the code point is none.
        """
        if self.errors not in ("strict", "replace", "ignore"):
            raise InvalidArgumentError(None, self.what, f"errors must be 'strict', 'replace' or 'ignore'; got "
                                                        f"{self.errors!r}")
        if not 0 <= self.replacement <= _LAST:
            raise InvalidArgumentError(None, self.what, "replacement_char out of unicode codepoint range: "
                                                        f"{self.replacement}")
        return self

    def applied(self, codes: Iterable[int], bad: str) -> list[int | None]:
        """Code points with the replacement in the place of what is none; None for what is left out."""
        made: list[int | None] = []
        for code in codes:
            if code >= 0 and not (self.control and code <= _CONTROL):
                made.append(code)
            elif self.errors == "strict" and code < 0:
                raise InvalidArgumentError(None, self.what, bad)
            else:
                made.append(None if self.errors == "ignore" else self.replacement)
        return made


def decoded(text: bytes, encoding: str, policy: Policy) -> tuple[list[int], list[int]]:
    """The code points of a text, and where in its bytes each begins.

    Raises:
        InvalidArgumentError: there is no such encoding; or a byte is no character, where that is not allowed.
    """
    codec = encoding.upper().replace("UTF-16-", "UTF-16").replace("UTF-32-", "UTF-32")
    try:
        characters = text.decode(codec, "twofold.marked")
    except (LookupError, UnicodeError):
        raise InvalidArgumentError(None, policy.what, "Could not create converter for input encoding: "
                                                      f"{encoding}") from None
    codes, starts, at = [], [], 0
    for character in characters:
        code = ord(character)
        is_bad = _BAD < code <= _BAD + _MOST
        codes.append(-1 if is_bad else code)
        starts.append(at)
        at += code - _BAD if is_bad else _size(code, character, codec)
    kept = policy.applied(codes, "Invalid formatting on input string")
    pairs = [(code, start) for code, start in zip(kept, starts, strict=True) if code is not None]
    return [code for code, _ in pairs], [start for _, start in pairs]


def _size(code: int, character: str, codec: str) -> int:
    """How many bytes a character has."""
    if codec == "UTF-8":
        return 1 if code < 0x80 else 2 if code < 0x800 else 3 if code < 0x10000 else 4
    return len(character.encode(codec)) if codec not in ("UTF-16", "UTF-32") else len(character.encode(f"{codec}BE"))


def encoded(codes: Sequence[int], encoding: str, policy: Policy) -> bytes:
    """A text of code points.

    Raises:
        InvalidArgumentError: a code point is none, where that is not allowed.
    """
    known = [code if 0 <= code <= _LAST and not 0xD800 <= code <= 0xDFFF else -1 for code in codes]
    kept = policy.applied(known, "Code point is out of range for Unicode, or is a surrogate.")
    return "".join([chr(code) for code in kept if code is not None]).encode(
        encoding.replace("16-", "16").replace("32-", "32"), "surrogatepass")


def checked_encoding(encoding: str, what: str) -> str:
    """An encoding that texts are written in.

    Raises:
        InvalidArgumentError: it is another.
    """
    if encoding not in ENCODINGS:
        raise InvalidArgumentError(None, what, f"the output encoding must be one of {', '.join(ENCODINGS)}; got "
                                               f"{encoding!r}")
    return encoding
