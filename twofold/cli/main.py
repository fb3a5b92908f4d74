"""Arguments in, a command run, an exit status out: 0 it worked, 1 it did not, 2 the arguments make no sense.

No error of the project's or of the system's shows a traceback, unless `--traceback` asks for one.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence

from twofold.ir.errors import OpError
from twofold.version import __version__

from . import programs
from .common import FAILED, MISUSED, OK, Failure, Misuse, warn

__all__ = ["main"]

# Command -> the module that has `add(parser)`, which declares its arguments, and `run(arguments)`; and what it is for.
_COMMANDS = {
    "inspect": ("inspecting", "tell what is in a saved model, or in an ONNX file: signatures, variables, ops, memory"),
    "graph": ("drawing", "draw a function of a saved model: a page for browsers, a picture, DOT"),
    "run": ("running", "run a function of a saved model on arrays in files; or a program, as `run program.py`"),
    "compile": ("compiling", "compile a saved model to a library for C"),
    "export": ("exporting", "list what a saved model can be exported to, or write an ONNX model or a page"),
    "bench": ("timing", "measure how long a function takes, by batch size"),
    "serve": ("serving", "serve saved models and native libraries over HTTP"),
    "tune": ("tuning", "measure how matrix products are best planned on this processor"),
    "cache": ("caching", "tell about, or empty, the folder of compiled code"),
}
_EXPECTED = (Failure, OpError, OSError, ValueError, TypeError, RuntimeError, NotImplementedError, MemoryError,
             ImportError)


def main(args: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        args: its words; by default those of the process.
    Returns:
        What the process is to exit with.

    >>> main(["inspect", "no/such/folder"])  # and a message on standard error
    1
    """
    words = sys.argv[1:] if args is None else list(args)
    program = _program(words)
    if program is not None:
        return programs.start(program)
    chosen = _parser().parse_args(words)
    try:
        chosen.run(chosen)
        sys.stdout.flush()
        return OK
    except BrokenPipeError:  # whoever reads what is printed has heard enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except KeyboardInterrupt:
        warn("interrupted")
        return 128 + 2
    except Misuse as error:
        warn(f"error: {error}")
        return MISUSED
    except _EXPECTED as error:
        if chosen.traceback:
            raise
        warn(f"error: {_told(error)}")
        return FAILED


def _program(words: Sequence[str]) -> Sequence[str] | None:
    """The words of a program that is to run where `tensorflow` is twofold; None if they are those of a command."""
    if words[:1] == ["run"] and programs.is_program(words[1:]):
        return words[1:]
    return words if words and words[0] not in ("-m", "-c") and programs.is_program(words) else None


def _told(error: BaseException) -> str:
    if isinstance(error, OpError):
        return error.message
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    return str(error) or type(error).__name__


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="twofold", description="Saved models from the command line: look at them, run them, compile and measure.",
        epilog="Exit status: 0 it worked, 1 it did not, 2 the arguments make no sense.")
    parser.add_argument("--version", action="version", version=f"twofold {__version__}")
    parser.set_defaults(traceback=False)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, (module, about) in _COMMANDS.items():
        command = commands.add_parser(name, help=about, description=f"{about[0].upper()}{about[1:]}.")
        implementation = importlib.import_module(f".{module}", __package__)
        implementation.add(command)
        command.add_argument("--json", action="store_true", help="print one JSON document")
        command.add_argument("--traceback", action="store_true", help="show where in the program an error came from")
        command.set_defaults(run=implementation.run)
    return parser
