"""Processes that a server forks, as tests start them, are what an interpreter's own processes are."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from quick.start import python

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere they are processes of interpreters")

TELLS = """
import json, os, random, sys, warnings
import numpy as np
import twofold as tf
told = {"argv": sys.argv, "main": __name__, "file": globals().get("__file__"), "first": sys.path[:3],
        "folder": os.getcwd(), "asked": os.environ.get("ASKED"), "read": sys.stdin.read(),
        "threads": len(os.listdir("/proc/self/task")), "files": sorted(os.listdir("/proc/self/fd")),
        "filters": [f[0] for f in warnings.filters[:1]], "descends": os.getppid() == PARENT}
told["draws"] = [hash("a"), random.random(), np.random.rand(), float(tf.random.uniform([]))]
print(json.dumps(told))
sys.exit(7)
"""


@pytest.mark.parametrize("how", ["-c", "file"])
def test_it_finds_what_a_process_finds(how: str, tmp_path: Path) -> None:
    program = TELLS.replace("PARENT", str(os.getpid()))
    (tmp_path / "program.py").write_text(program)
    words = ["-c", program] if how == "-c" else [tmp_path / "program.py"]
    arguments = ["-W", "error", *map(str, words), "one", "two words"]
    told = []
    environment = {**os.environ, "ASKED": "yes", "PYTHONPATH": f"/some/where:{os.environ['PYTHONPATH']}"}
    for command in ([sys.executable, *arguments], python(*arguments), python(*arguments), python(*arguments)):
        done = subprocess.run(command, input="some text", capture_output=True, text=True, cwd=tmp_path, check=False,
                              env=environment)
        assert done.returncode == 7, done.stderr
        told.append(json.loads(done.stdout))
    draws = [one.pop("draws") for one in told]
    assert [one.pop("descends") for one in told] == [True, False, False, False]  # so they were what they should be
    for one in told[1:]:
        assert one == told[0]
    for n, several in enumerate(zip(*draws, strict=True)):
        assert len(set(several)) == (3 if n == 0 else 4)  # of hashes there are those of two servers


def test_it_ends_as_a_process_ends(tmp_path: Path) -> None:
    def ends(program: str) -> tuple[int, str, str]:
        done, same = (subprocess.run(command, capture_output=True, text=True, check=False)
                      for command in (python("-c", program), [sys.executable, "-c", program]))
        told = done.returncode, done.stdout, done.stderr
        assert told == (same.returncode, same.stdout, same.stderr)
        return told
    assert ends("import atexit, threading, time; atexit.register(print, 'last')\n"
                "threading.Thread(target=lambda: [time.sleep(0.05), print('late')]).start()") == (0, "late\nlast\n", "")
    assert "ZeroDivisionError" in ends("def f(): 1 / 0\nf()")[2]
    assert ends("raise KeyboardInterrupt")[0] == -signal.SIGINT
    assert ends("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")[0] == -signal.SIGSEGV
    assert ends("import os; os._exit(5)")[0] == 5


def test_signals_reach_it() -> None:
    program = ("import signal, sys, time\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(3))\n"
               "print('ready', flush=True)\ntime.sleep(100)")
    with subprocess.Popen(python("-c", program), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        process.terminate()
        assert process.wait(60) == 3


def test_it_dies_with_its_command() -> None:
    program = "import time\nprint('ready', flush=True)\ntime.sleep(100)"
    with subprocess.Popen(python("-c", program), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        process.kill()
        assert process.stdout.read() == ""  # nobody has it open any more


def test_a_command_may_be_killed_at_any_moment() -> None:
    for n in range(20):
        with subprocess.Popen(python("-c", "pass")) as process:
            time.sleep(0.002 * n)
            process.kill()
    address, other = python("-c", "pass")[3:5]
    for name in (address, other):
        for said in (b"", b"123", (100).to_bytes(8, "little") + b"no more"):
            with socket.socket(socket.AF_UNIX) as line:
                line.connect(name)
                line.sendall(said)
        assert subprocess.run(python("-c", "pass"), timeout=60, check=False).returncode == 0


@pytest.mark.parametrize("variable", ["TWOFOLD_NATIVE_CALL", "KERAS_MAX_EPOCHS", "PYTHONHASHSEED"])
def test_what_the_import_decides_has_an_interpreter_of_its_own(variable: str) -> None:
    program = "import os, sys; print('twofold' in sys.modules)"
    for value, imported in ((None, "True\n"), ("1", "False\n")):
        environment = {**os.environ, **({variable: value} if value else {})}
        assert subprocess.check_output(python("-c", program), env=environment, text=True) == imported
