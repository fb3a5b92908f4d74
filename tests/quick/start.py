"""Processes of Python that begin with twofold imported, for tests of what a process does, not of how it begins.

A server imports the package and its usual parts once. `python(...)` gives a command that has the server fork, and that
stands for the forked process as its interpreter would: arguments, environment, folder, open files, signals, how it
ends. It begins in a tenth of the time. There are two servers, which take turns, so that of processes side by side, and
of one after another, the sets differ in their order, as texts have other hashes. Where an environment asks for what is
decided while the package is imported, the command starts an interpreter of its own; `TWOFOLD_TEST_FRESH=1` has all do.
"""

from __future__ import annotations

import atexit
import itertools
import os
import subprocess
import sys
import tempfile
from pathlib import Path

__all__ = ["python"]

_HERE = Path(__file__).parent
_LONGEST = 107  # bytes of a socket's address, without the zero at the end (unix(7))
_ENVIRONMENT = dict(os.environ)  # before a test has changed it
_servers: list[str] = []
_turns = itertools.count()


def python(*arguments: object) -> list[str]:
    """A command that runs Python with arguments: any number of `-W` and `-X faulthandler`, then `-c`, `-m` or a file,
    then those of the program."""
    words = [str(argument) for argument in arguments]
    if sys.platform != "linux" or os.environ.get("TWOFOLD_TEST_FRESH") == "1":
        return [sys.executable, *words]
    if not _servers:
        _servers.extend(_started() for _ in range(2))
    if not all(_servers):
        return [sys.executable, *words]
    n = next(_turns) % 2
    return [sys.executable, "-SE", str(_HERE / "client.py"), _servers[n], _servers[1 - n], *words]


def _started() -> str:
    """The address of a new server, which lasts as long as this process; empty where it would be too long for one."""
    address = os.path.join(tempfile.mkdtemp(prefix="quick-"), "server")
    if len(os.fsencode(address)) > _LONGEST:
        return ""
    server = subprocess.Popen([sys.executable, str(_HERE / "server.py"), address], env=_ENVIRONMENT,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert server.stdin is not None and server.stdout is not None
    atexit.register(server.wait)
    atexit.register(server.stdin.close)  # at which it ends
    assert server.stdout.readline() == b"ready\n"
    server.stdout.close()
    return address
