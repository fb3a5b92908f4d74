"""`tf.compat.v1.flags`: settings of a program from its command line, and `tf.compat.v1.app`, which runs it.

A flag is defined with its default value and described; `FLAGS` has its value, once the command line is read, which is
when a value is first asked for or `app.run` runs.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any

from twofold._front.api import describe, listed, public
from twofold._front.namespace import publish

__all__ = ["DEFINE_bool", "DEFINE_boolean", "DEFINE_enum", "DEFINE_float", "DEFINE_integer", "DEFINE_list",
           "DEFINE_string", "FLAGS", "FlagValues", "run"]


class FlagValues:
    """The values of flags, by name: attributes, which can be assigned to.

    >>> import twofold as tf
    >>> values = tf.compat.v1.flags.FlagValues()
    >>> values(["program", "rest"]), "rate" in values
    (['program', 'rest'], False)
    """

    def __init__(self) -> None:
        vars(self).update(_parser=argparse.ArgumentParser(allow_abbrev=False), _values=None, _known={})

    def __call__(self, argv: Sequence[str]) -> list[str]:
        """Read a command line, whose first word is the program; the result is the words that are no flags.

        Raises:
            TypeError: it is no list of strings. ValueError: it is empty.
        """
        if not isinstance(argv, (list, tuple)) or not all(isinstance(word, str) for word in argv):
            raise TypeError(f"FLAGS takes the words of a command line, a list of strings; got {describe(argv)}.")
        if not argv:
            raise ValueError("FLAGS takes the words of a command line, of which the first is the program; got none.")
        parsed, rest = self._parser.parse_known_args(list(argv[1:]))
        vars(self)["_values"] = vars(parsed)
        return [argv[0], *rest]

    def __getattr__(self, name: str) -> Any:
        if name not in self._known:
            raise AttributeError(f"there is no flag {name!r}")
        if self._values is None:
            self(sys.argv)
        return self._values.get(name, self._known[name])

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._known:
            raise AttributeError(f"there is no flag {name!r}")
        if self._values is None:
            self(sys.argv)
        self._values[name] = value

    def __contains__(self, name: str) -> bool:
        return isinstance(name, str) and name in self._known

    def flag_values_dict(self) -> dict[str, Any]:
        """The values of all flags."""
        return {name: getattr(self, name) for name in self._known}

    def _define(self, name: str, default: Any, text: str | None, kind: Callable[[str], Any], **more: Any) -> None:
        if not isinstance(name, str):
            raise TypeError(f"The name of a flag is a string; got {describe(name)}.")
        if not re.fullmatch(r"[^\s=-][^\s=]*", name):
            raise ValueError(f"The name of a flag has no spaces, no = and no - before it; got {name!r}.")
        if text is not None and not isinstance(text, str):
            raise TypeError(f"The help of the flag {name!r} is a string; got {describe(text)}.")
        try:
            self._parser.add_argument(f"--{name}", f"-{name}", dest=name, default=default, type=kind,
                                      help=(text or "").replace("%", "%%"), **more)
        except argparse.ArgumentError:
            raise ValueError(f"The flag {name!r} is defined twice, or one that means it.") from None
        self._known[name] = default


FLAGS = FlagValues()


@public
def DEFINE_string(name: str, default: str | None, help: str | None = None) -> None:
    """Define a flag whose value is a text.

    Args:
        name: of the flag.
        default: its value where the command line has none.
        help: what it is for.
    """
    FLAGS._define(name, default, help, str)


@public
def DEFINE_integer(name: str, default: int | None, help: str | None = None) -> None:
    """Define a flag whose value is an integer; see `DEFINE_string`."""
    FLAGS._define(name, default, help, int)


@public
def DEFINE_float(name: str, default: float | None, help: str | None = None) -> None:
    """Define a flag whose value is a number; see `DEFINE_string`."""
    FLAGS._define(name, default, help, float)


@public
def DEFINE_list(name: str, default: Any, help: str | None = None) -> None:
    """Define a flag whose value is a list of texts, with commas between them; see `DEFINE_string`."""
    given = default.split(",") if isinstance(default, str) else default
    FLAGS._define(name, given, help, lambda text: [part.strip() for part in text.split(",")])


@public
def DEFINE_enum(name: str, default: str | None, enum_values: Sequence[str], help: str | None = None) -> None:
    """Define a flag whose value is one of some texts; see `DEFINE_string`."""
    FLAGS._define(name, default, help, str, choices=listed(enum_values, "enum_values"))


@public
def DEFINE_bool(name: str, default: bool | None, help: str | None = None) -> None:
    """Define a flag that is true or false: `--name`, `--noname`, `--name=false`; see `DEFINE_string`."""
    FLAGS._define(name, default, help, _truth, nargs="?", const=True)
    FLAGS._parser.add_argument(f"--no{name}", dest=name, action="store_false", default=argparse.SUPPRESS)


DEFINE_boolean = DEFINE_bool


def _truth(text: str) -> bool:
    word = text.lower()
    if word not in ("true", "t", "1", "false", "f", "0"):
        raise argparse.ArgumentTypeError(f"expected true or false; got {text!r}")
    return word in ("true", "t", "1")


@public
def run(main: Callable[..., Any] | None = None, argv: Sequence[str] | None = None) -> None:
    """Read the command line, and run a program with the words that are no flags; its result is the exit status.

    Args:
        main: the program; by default `main` of the script.
        argv: the command line.
    """
    rest = FLAGS(sys.argv if argv is None else argv)
    program = main or sys.modules["__main__"].main
    sys.exit(program(rest))


publish(__name__)
