"""Runs the Python blocks of a Markdown page in order, in one namespace, and compares what they print.

A fenced block marked `python` runs, as do the lines of one marked `console` that begin with `$ twofold`; the lines
below such a line are what it printed. If the next fenced block is marked `text`, it must be what the Python block
printed (`...` stands for anything, and runs of blanks are alike). Run as a script, so that a page starts in a fresh
interpreter, as its reader does: `python blocks.py PAGE` prints what went wrong and ends with status 1.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import shlex
import sys
import traceback
from pathlib import Path

_FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
_FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def blocks(text: str) -> list[tuple[str, int, str]]:
    """`(language, line of its first code line, code)` of every fenced block of a page."""
    return [(m[1], text.count("\n", 0, m.start(2)) + 1, m[2]) for m in _FENCE.finditer(text)]


def run_page(text: str, name: str) -> str:
    """Run the page; what went wrong first, or an empty string."""
    namespace = {"__name__": "__main__"}
    sections = blocks(text)
    following = [*sections, ("", 0, "")][1:]
    for (language, line, code), (next_language, next_line, expected) in zip(sections, following, strict=True):
        if language == "console" and (wrong := run_console(code, line, name)):
            return wrong
        if language != "python":
            continue
        printed = io.StringIO()
        try:
            with contextlib.redirect_stdout(printed):
                exec(compile("\n" * (line - 1) + code, name, "exec"), namespace)
        except BaseException:  # noqa: BLE001  a page may fail in any way, and the report says which
            return f"{name}: the block at line {line} failed\n{traceback.format_exc()}"
        said = printed.getvalue().rstrip() + "\n"
        if next_language == "text" and not doctest.OutputChecker().check_output(expected.rstrip() + "\n", said, _FLAGS):
            return f"{name}: line {next_line} shows\n{expected}\nbut the block at line {line} prints\n{said}"
    return ""


def run_console(code: str, line: int, name: str) -> str:
    """Run the commands of a console block; what went wrong first, or an empty string."""
    from twofold.cli import main

    for part in re.split(r"^(?=\$ )", code, flags=re.MULTILINE):
        command, _, expected = part.partition("\n")
        if not command.startswith("$ twofold "):
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            try:
                main(shlex.split(command.removeprefix("$ twofold ")))
            except SystemExit:  # of argparse, which has said why
                printed.write("")
        said = printed.getvalue().rstrip() + "\n"
        if not doctest.OutputChecker().check_output(expected.rstrip() + "\n", said, _FLAGS):
            return f"{name}: the block at line {line} shows\n{part}\nbut the command prints\n{said}"
    return ""


if __name__ == "__main__":
    page = Path(sys.argv[1])
    wrong = run_page(page.read_text(), str(page))
    print(wrong, end="")
    sys.exit(bool(wrong))
