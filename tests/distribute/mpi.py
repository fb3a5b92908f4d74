"""Programs run by `mpiexec`, as several processes on this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

_BEGIN = """
import json, os, sys
import numpy as np
import twofold as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
rank, count = strategy._group.rank, strategy.num_replicas_in_sync

def tell(value):
    with open(os.path.join(sys.argv[1], f"{rank}.json"), "w") as file:
        json.dump(value, file)
"""


def launcher() -> str:
    """The program that starts processes: of the environment's MPI, or the system's."""
    beside = Path(sys.executable).parent / "mpiexec"
    return str(beside) if beside.exists() else "mpiexec"


def run(program: str, count: int, folder: Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """Runs a program as `count` processes.

    Args:
        program: what follows the strategy `strategy`, the numbers `rank` and `count`, and `tell`, which notes what a
            process has to say.
        folder: for these notes.
    """
    folder.mkdir(exist_ok=True)
    path = folder / "program.py"
    path.write_text(_BEGIN + textwrap.dedent(program))
    environment = {**_environment(), **options.pop("environment", {})}
    return subprocess.run([launcher(), "-n", str(count), sys.executable, "-W", "ignore", str(path), str(folder)],
                          capture_output=True, text=True, timeout=300, env=environment, **options)


def told(program: str, count: int, folder: Path) -> list[Any]:
    """What each process of a program tells; an error of one of them is an error here."""
    done = run(program, count, folder)
    assert done.returncode == 0, done.stderr[-4000:]
    return [json.loads((folder / f"{n}.json").read_text()) for n in range(count)]


def example(name: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs an example that starts its processes itself."""
    path = Path(__file__).resolve().parents[2] / "examples" / name
    return subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=300, cwd=folder,
                          env=_environment())


def _environment() -> dict[str, str]:
    """The environment of processes that may be more than there are processors."""
    return {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "TWOFOLD_NUM_THREADS": "1"}
