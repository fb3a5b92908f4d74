"""Write `data/fit.json`: what Keras gives for the cases in `fit_cases.py`.

Runs in an environment of its own, with TensorFlow 2.21 and its Keras 3; no test needs it.

    python tests/keras/make_fit_reference.py
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import fit_cases as cases  # noqa: E402
import tensorflow as tf  # noqa: E402

actual = {name: cases.run(name, tf) for name in cases.CASES}
(HERE / "data" / "fit.json").write_text(json.dumps(actual, indent=0, sort_keys=True) + "\n")
