"""Runs the benchmark's cases on a GPU once, in small sizes, and prints what they give: a process of its own, since the
benchmark's modules and the tests' have names in common.

    python tests/gpu/measured.py
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def main() -> None:
    """Prints the numbers of each case, those of training steps beside the processor's."""
    os.environ["TWOFOLD_BENCH_SMALL"] = "1"
    sys.path.insert(0, str(ROOT / "tests"))
    from gpu.devices import device

    sys.path[0] = str(ROOT / "benchmarks")
    import training
    import worker

    spec = importlib.util.spec_from_file_location("benchmark_gpu", ROOT / "benchmarks" / "gpu.py")
    assert spec is not None and spec.loader is not None
    area = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(area)
    said: dict[str, Any] = {}
    with device():
        peer, host = area.Twofold(), training.Twofold()
        for case in area.CASES:
            timed = worker.Timed(*getattr(peer, case)(), area)
            said[case] = timed.result(peer.to_numpy)
            if case in ("cnn_b_step", "transformer_step"):
                said[f"{case} on the host"] = worker.Timed(*getattr(host, case)()).result(host.to_numpy)
            else:
                timed.once()
    rows = {case: {"twofold": {"seconds": 1e-3, "ratio": None}} for case in area.CASES}
    print(json.dumps({"results": said, "rates": area.rates(rows)}))


if __name__ == "__main__":
    main()
