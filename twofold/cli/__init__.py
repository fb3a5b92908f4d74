"""The command line: `twofold COMMAND ...`, or `python -m twofold COMMAND ...`.

`main` reads the arguments and turns errors into messages; each command is a module of its own that loads what it needs
when it runs, so that `--help` is quick. docs/command_line.md shows them all.
"""

from .main import main

__all__ = ["main"]
