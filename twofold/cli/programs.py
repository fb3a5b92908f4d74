"""`twofold run program.py`: a program in an interpreter of its own, in which `tensorflow` is twofold.

The interpreter takes the place of the process, so that the program is its main module, its tracebacks are its own and
its exit status is that of the command. The search path in the environment leads processes that it starts to twofold as
well.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence

import twofold

__all__ = ["environment", "is_program", "start"]

# The folder in which `tensorflow` is found (`as_tensorflow/naming.py`). This process does not take the name itself.
_FOLDER = os.path.join(os.path.dirname(os.path.abspath(twofold.__file__)), "as_tensorflow", "path")


def is_program(words: Sequence[str]) -> bool:
    """Whether the words after `run` name a program: a file of Python's, a module after `-m`, or a text after `-c`."""
    return bool(words) and (words[0] in ("-m", "-c") or (
        words[0].endswith((".py", ".pyw")) and not os.path.isdir(words[0])))


def environment(before: Mapping[str, str]) -> dict[str, str]:
    """The variables of an environment in which `import tensorflow` finds twofold."""
    rest = [entry for entry in before.get("PYTHONPATH", "").split(os.pathsep) if entry and entry != _FOLDER]
    return {**before, "PYTHONPATH": os.pathsep.join([_FOLDER, *rest])}


def start(words: Sequence[str]) -> int:
    """Run a program; where the system can, this process becomes it, and the call does not return.

    Args:
        words: the program's file, or `-m` and a module, or `-c` and a text, and then the program's own arguments.
    Returns:
        The exit status of the program.
    """
    command = [sys.executable, *subprocess._args_from_interpreter_flags(), *words]  # type: ignore[attr-defined]
    sys.stdout.flush()
    sys.stderr.flush()
    if hasattr(os, "execve") and os.name == "posix":
        os.execve(command[0], command, environment(os.environ))
    return subprocess.call(command, env=environment(os.environ))
