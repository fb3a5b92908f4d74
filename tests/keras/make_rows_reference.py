"""Write `data/rows.json`: what Keras's optimizers on TensorFlow make of the table in `rows_cases.py`.

Runs in an environment of its own, with TensorFlow 2.21 and its Keras 3; no test needs it.

    python tests/keras/make_rows_reference.py
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import keras  # noqa: E402
import rows_cases as cases  # noqa: E402
import tensorflow as tf  # noqa: E402

tables = []
for name, settings in cases.CASES:
    optimizer, table = getattr(keras.optimizers, name)(0.1, **settings), keras.Variable(cases.TABLE)
    for ids in cases.STEPS:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.gather(table.value, ids) ** 2)
        optimizer.apply([tape.gradient(loss, table.value)], [table])
    tables.append(table.numpy().tolist())
(HERE / "data" / "rows.json").write_text(json.dumps(tables) + "\n")
