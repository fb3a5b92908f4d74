"""Runs the code of a guide as its reader would: block after block in one namespace, with only the import changed.

What a block prints comes back as text. As in a notebook, a last line that is an expression is shown, too.
"""

from __future__ import annotations

import ast
import contextlib
import io
import itertools
import linecache
import re
import textwrap
from collections.abc import Mapping
from typing import Any

FIZZBUZZ = """\
1 2 Fizz 4 Buzz Fizz 7 8 Fizz Buzz 11 Fizz 13 14 FizzBuzz
""".replace(" ", "\n")  # a word a line, as all guides' code prints it, whatever their pages look like

_IMPORT = re.compile(r"\b(import|from) tensorflow\b")
_IDS = re.compile(r"\bid=\d+, ")  # the guides' tensors carry a number, later ones do not
_SCALARS = re.compile(r"\bnp\.(?:float|int)\d+\(([^()]*)\)")  # NumPy 1 shows a scalar without its type
_blocks = itertools.count(1)


class Page:
    """A guide being followed; `names` holds what its code has defined so far."""

    def __init__(self) -> None:
        self.names: dict[str, Any] = {"__name__": "guide"}

    def run(self, code: str, shorter: Mapping[str, str] | None = None) -> str:
        """Run a block; what it prints and shows, tf.print included, which writes to stderr.

        Args:
            code: the block.
            shorter: what stands in it for long loops, and what takes its place here.
        """
        code = _IMPORT.sub(r"\1 twofold", textwrap.dedent(code))
        for long, short in (shorter or {}).items():
            assert code.count(long) == 1, f"{long!r} stands {code.count(long)} times in the block"
            code = code.replace(long, short)
        file = f"<guide {next(_blocks)}>"
        # As a notebook does: the source of a function of the page can be had, as converting control flow needs.
        linecache.cache[file] = (len(code), None, code.splitlines(keepends=True), file)
        *first, last = ast.parse(code, file).body
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            exec(compile(ast.Module(first, []), file, "exec"), self.names)
            whole = isinstance(last, ast.Expr)
            node: Any = ast.Interactive([last]) if whole else ast.Module([last], [])
            exec(compile(node, file, "single" if whole else "exec"), self.names)
        return _SCALARS.sub(r"\1", out.getvalue())

    def shows(self, code: str, output: str) -> None:
        """Run a block and compare with the output that the guide shows below it."""
        assert self.run(code) == shown(output)

    def __getitem__(self, name: str) -> Any:
        return self.names[name]


def shown(output: str) -> str:
    """A guide's output without indentation and without tensor numbers."""
    text = _IDS.sub("", textwrap.dedent(output.strip("\n"))).rstrip()
    return text + "\n" if text else ""


def losses(printed: str) -> list[float]:
    """The losses that a training loop prints, in order."""
    return [float(x) for x in re.findall(r"^(?:Initial loss|Loss at step \d+|Final loss): (\S+)$", printed, re.M)]


def fitted(printed: str) -> tuple[float, float]:
    """W and B from the last line of a regression."""
    actual = re.search(r"^W(?:, B)? = (\S+), (?:B = )?(\S+)$", printed, re.M)
    assert actual, printed
    return float(actual[1]), float(actual[2])


def check_regression(printed: str, steps: int) -> None:
    """A regression of 3x + 2 plus unit noise from W=5, B=10 goes as the guides show it."""
    actual = losses(printed)
    assert len(actual) == steps // 20 + 2 + bool(steps % 20)
    assert 60 < actual[0] < 80
    assert all(later <= earlier for earlier, later in zip(actual, actual[1:], strict=False))  # of three digits
    assert 0.85 < actual[-1] < 1.25
    w, b = fitted(printed)
    assert abs(w - 3.05) < 0.15
    assert abs(b - 2.14) < 0.15
