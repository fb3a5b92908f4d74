"""Programs run by `mpiexec`, as several processes on this machine."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

from quick.start import python

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
    return subprocess.run([launcher(), "-n", str(count), *python("-W", "ignore", path, folder)],
                          capture_output=True, text=True, timeout=300, env=environment, **options)


def told(program: str, count: int, folder: Path) -> list[Any]:
    """What each process of a program tells; an error of one of them is an error here."""
    done = run(program, count, folder)
    assert done.returncode == 0, done.stderr[-4000:]
    return [json.loads((folder / f"{n}.json").read_text()) for n in range(count)]


def started(program: str, count: int, folder: Path, *, environment: dict[str, str] | None = None,
            clusters: list[dict[str, Any]] | None = None) -> list[subprocess.Popen[str]]:
    """Starts a program as processes that find one another by `TF_CONFIG`, without a launcher.

    Args:
        program, count, folder: as for `run`.
        environment: in addition.
        clusters: what `TF_CONFIG` holds for each process; by default `cluster(count)`.
    """
    folder.mkdir(exist_ok=True)
    path = folder / "program.py"
    path.write_text(_BEGIN + textwrap.dedent(program))
    return [subprocess.Popen(python("-W", "ignore", str(path), str(folder)), text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             env={**_environment(), **(environment or {}), "TF_CONFIG": json.dumps(config)})
            for config in clusters or cluster(count)]


def cluster(count: int, chief: bool = False) -> list[dict[str, Any]]:
    """What `TF_CONFIG` holds for each of some processes of this machine, at ports that are free now."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    addresses = [f"127.0.0.1:{s.getsockname()[1]}" for s in sockets]
    for s in sockets:
        s.close()
    jobs = {"chief": addresses[:1], "worker": addresses[1:]} if chief else {"worker": addresses}
    return [{"cluster": jobs, "task": {"type": job, "index": n}}
            for job, of_job in jobs.items() for n in range(len(of_job))]


def ends(processes: list[subprocess.Popen[str]], seconds: float = 60) -> list[tuple[int, str]]:
    """The status of each process, and what it wrote as errors; all must end in time."""
    end, results = time.monotonic() + seconds, []
    try:
        for process in processes:
            _, errors = process.communicate(timeout=max(0.1, end - time.monotonic()))
            results.append((process.returncode, errors))
    finally:
        for process in processes:
            process.kill()
    return results


def example(name: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs an example that starts its processes itself."""
    path = Path(__file__).resolve().parents[2] / "examples" / name
    return subprocess.run(python(str(path), *arguments), capture_output=True, text=True, timeout=300,
                          cwd=folder, env=_environment())


def _environment() -> dict[str, str]:
    """The environment of processes that may be more than there are processors."""
    return {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "TWOFOLD_NUM_THREADS": "1"}
