"""Working memory: how much more memory a process has at most while it trains than before its first step.

Each case runs in a process of its own, which has compiled nothing when it begins and finds compiled code where its
package keeps that on disk. What counts is memory that is no file (`RssAnon`), read every millisecond while steps run,
after weights, data and the package are there. Linux only.
"""

from __future__ import annotations

import re
import threading
import time
from pathlib import Path
from typing import Any

import training

from eager import Built

CASES: dict[str, tuple[str, float]] = {}
PROCESS_CASES: dict[str, tuple[str, bool]] = {
    "cnn_b_step": ("CNN B, four convolutions on 32x32x3, batch 32, compiled: memory of a step", False),
    "residual_step": ("residual block, compiled: memory of a step", False),
    "transformer_step": ("transformer block, compiled: memory of a step", False),
    "attention_step": ("attention over 2048 places, compiled: memory of a step", False),
}
UNIT = "bytes"
PEERS = {name: training.PEERS[name] for name in ("torch", "jax", "tensorflow", "twofold")}

_STEPS = 10


def process_code(case: str, peer: str) -> str:
    """Python code that prints the bytes of `case`."""
    here = str(Path(__file__).parent)
    return f"import sys; sys.path.insert(0, {here!r}); import memory; memory.measure({case!r}, {peer!r})"


def measure(case: str, peer: str) -> None:
    """Run some steps of `case` with the package named `peer`, and print the bytes that they took at most."""
    training.mlp_built = _untried
    step = getattr(PEERS[peer](), case)()[1]["step"]
    before, most, done = _anonymous(), [0], threading.Event()

    def watch() -> None:
        while not done.is_set():
            most[0] = max(most[0], _anonymous())
            time.sleep(0.001)

    watcher = threading.Thread(target=watch)
    watcher.start()
    for _ in range(_STEPS):
        step()
    done.set()
    watcher.join()
    print(most[0] - before)


def _untried(make: Any) -> Built:
    """The case from `make() -> step`, of which no step was run to compare results."""
    return "step()", {"step": make()}, "0"


def _anonymous() -> int:
    """Bytes of memory that this process has and that are no file."""
    found = re.search(r"^RssAnon:\s*(\d+) kB$", Path("/proc/self/status").read_text(), re.MULTILINE)
    if found is None:
        raise OSError("this system does not tell how much memory a process has")
    return int(found[1]) << 10
