"""Records what TensorFlow draws: `python tests/ops/record_draws.py`, where TensorFlow is, with `tests` on the path.

Writes `data/tensorflow_draws.json`: for each case of `draw_cases.py` its arrays as dtype, shape and the hex of its
bytes. Recorded with TensorFlow 2.21 on one thread of the processor.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import tensorflow as tf
from ops import draw_cases


def main() -> None:
    tf.config.threading.set_intra_op_parallelism_threads(1)
    kept = {}
    for name, case in {**draw_cases.EXACT, **draw_cases.CLOSE}.items():
        arrays = [np.asarray(x) for x in draw_cases.run(case, tf)]
        kept[name] = [[a.dtype.name, list(a.shape), np.ascontiguousarray(a).tobytes().hex()] for a in arrays]
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(value)}" for name, value in kept.items())
    (Path(__file__).parent / "data" / "tensorflow_draws.json").write_text("{\n" + lines + "\n}\n")


if __name__ == "__main__":
    main()
