"""One peer in one interpreter: builds the cases of an area, times them when told to, and reports.

Started by `runner.py` as `python worker.py AREA PEER`. Reads one JSON request a line from standard input and answers
each with one JSON line; what the peer itself prints goes to standard error. Needs the standard library, NumPy and the
peer, and nothing of this project unless the peer is twofold.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
import timeit
from typing import Any

SAMPLE_SECONDS = 0.03  # one sample lasts about so long, unless the area says otherwise (`SAMPLE_SECONDS` there) ...
FEWEST, MOST = 3, 1_000_000  # ... within these numbers of calls
# To see that all of it runs, samples are short, and nothing is warmed up.
SMALL = os.environ.get("TWOFOLD_BENCH_SMALL") == "1"
SHOWN = 512  # numbers of a result that are sent for comparison


class Timed:
    """A statement of one case, ready to be timed over and over."""

    def __init__(self, statement: str, names: dict[str, Any], check: str, area: Any = None):
        self._sample = 0.01 if SMALL else getattr(area, "SAMPLE_SECONDS", SAMPLE_SECONDS)
        self._warm = 0.0 if SMALL else getattr(area, "WARM_SECONDS", 0.0)
        clock = getattr(area, "CLOCK", time.perf_counter)
        self._timer = timeit.Timer(statement, timer=clock, globals=names)
        self._check = timeit.Timer(f"_keep({check})", globals={**names, "_keep": self._keep})
        self._calls = FEWEST
        self._kept: Any = None

    def _keep(self, value: Any) -> None:
        self._kept = value

    def result(self, to_numpy: Any) -> list[float]:
        """What the case computes, as some of its numbers and their sum."""
        import numpy as np

        self._check.timeit(1)
        values = self._kept if isinstance(self._kept, (list, tuple)) else [self._kept]
        flat = np.concatenate([np.asarray(to_numpy(v), np.float64).ravel() for v in values])
        some = flat[:: max(1, len(flat) // SHOWN)]
        return [*some.tolist(), float(flat.sum())]

    def calibrate(self) -> None:
        """Warm up, for as long as the area asks (`WARM_SECONDS`), and choose how many calls make a sample."""
        end = time.perf_counter() + self._warm
        while time.perf_counter() < end:
            self._timer.timeit(1)
        spent, calls = 0.0, 1
        while True:
            spent = self._timer.timeit(calls)
            if spent > self._sample / 4 or calls >= MOST:
                break
            calls *= 4
        self._calls = int(min(MOST, max(FEWEST, self._sample * calls / spent)))

    def once(self) -> None:
        """Runs the statement that is timed."""
        self._timer.timeit(1)

    def sample(self) -> float:
        """Seconds a call, over one sample, after a few calls that bring code and data back into the caches."""
        self._timer.timeit(max(1, self._calls // 10))
        return self._timer.timeit(self._calls) / self._calls


def answer(area: Any, peer: Any, cases: dict[str, Timed], request: dict[str, Any]) -> Any:
    """Serve one request: `prepare` a case and give its result, or `sample` it."""
    name = request["case"]
    if request["do"] == "prepare":
        build = getattr(peer, name, None)
        if build is None:
            return None
        cases[name] = Timed(*build(), area)
        result = cases[name].result(peer.to_numpy)
        if "twofold.runtime.tiers" in sys.modules:
            sys.modules["twofold.runtime.tiers"].wait()  # for the code that is made in the background
        cases[name].calibrate()
        return result
    return cases[name].sample()


def serve(area: str, peer_name: str) -> None:
    """Answer requests until standard input ends."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def say(message: Any) -> None:
        out.write(json.dumps(message) + "\n")
        out.flush()

    try:
        module = importlib.import_module(area)
        peer = module.PEERS[peer_name]()
    except ImportError as missing:
        say({"missing": str(missing)})
        return
    say({"version": peer.version})
    cases: dict[str, Timed] = {}
    for line in sys.stdin:
        try:
            say({"ok": answer(module, peer, cases, json.loads(line))})
        except Exception as error:  # noqa: BLE001  whatever a peer raises is reported, and the others go on
            say({"error": f"{type(error).__name__}: {error}"})


if __name__ == "__main__":
    serve(sys.argv[1], sys.argv[2])
