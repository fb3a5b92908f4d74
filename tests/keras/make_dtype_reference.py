"""Write `data/dtypes.json`: what Keras gives for the cases in `dtype_cases.py`.

Runs in an environment of its own, with TensorFlow 2.21 and its Keras 3; no test needs it.

    python tests/keras/make_dtype_reference.py
"""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
sys.path = [p for p in sys.path if Path(p or ".").resolve() not in (HERE, HERE.parent)]

import tensorflow as tf  # noqa: E402

_spec = importlib.util.spec_from_file_location("dtype_cases", HERE / "dtype_cases.py")
cases = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(cases)

#: only the dtype counts: weights are random, or Keras rounds every step to an integer
DTYPE_ONLY = ("LSTM", "GRU", "MultiHeadAttention", "AdditiveAttention", "LayerNormalization", "GroupNormalization")


def main() -> None:
    """Run all cases; null where Keras refuses."""
    actual = {}
    for name in cases.names():
        try:
            result = cases.run(tf, name)
        except Exception:  # noqa: BLE001 - whatever it is, Keras has no result
            actual[name] = None
            continue
        numbers = None if name.startswith(DTYPE_ONLY) else np.asarray(tf.cast(result, tf.float64)).tolist()
        actual[name] = {"dtype": result.dtype.name, "value": numbers}
    (HERE / "data" / "dtypes.json").write_text(json.dumps(actual, indent=0) + "\n")


if __name__ == "__main__":
    main()
