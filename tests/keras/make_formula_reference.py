"""Write `data/formulas.json`: what Keras gives for the cases in `formula_cases.py`.

Runs in an environment of its own, with TensorFlow 2.21 and its Keras 3; no test needs it.

    python tests/keras/make_formula_reference.py
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import formula_cases as cases  # noqa: E402
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

keras = tf.keras


def plain(value: Any) -> Any:
    """Numbers of nine digits, in lists of the value's shape."""
    def short(x: Any) -> Any:
        return [short(v) for v in x] if isinstance(x, list) else float(f"{float(x):.9g}")
    return short(np.asarray(value).tolist())


def loss(name: str, settings: dict[str, Any], kind: str, weights: str) -> dict[str, Any]:
    y_true, y_pred = cases.KINDS[kind](1)
    x = tf.constant(y_pred)
    made = getattr(keras.losses, name)(**settings)
    with tf.GradientTape() as tape:
        tape.watch(x)
        value = made(y_true, x, sample_weight=cases.weights_for(kind, weights, 1))
        total = tf.reduce_sum(value)
    return {"value": plain(value), "gradient": plain(tape.gradient(total, x)),
            "config": {k: v for k, v in made.get_config().items() if k != "fn"}}


def metric(name: str, settings: dict[str, Any], kind: str, weights: str) -> dict[str, Any]:
    made = getattr(keras.metrics, name)(**settings)
    results = []
    for n in range(3):
        y_true, y_pred = cases.KINDS[kind](n)
        made.update_state(y_true, y_pred, sample_weight=cases.weights_for(kind, weights, n))
        results.append(plain(made.result()))
    config = {k: v for k, v in made.get_config().items() if k not in ("fn", "name", "label_weights")}
    return {"results": results, "variables": [plain(v) for v in made.variables], "config": config}


def optimizer(name: str, settings: dict[str, Any]) -> dict[str, Any]:
    variables = [keras.Variable(cases.wave(20 + i, *shape), name=f"v{i}") for i, shape in enumerate(cases.SHAPES)]
    made = getattr(keras.optimizers, name)(**settings)
    steps = []
    for step in range(cases.STEPS):
        made.apply_gradients(zip(map(tf.constant, cases.gradients(step)), variables, strict=True))
        if step in (0, 1, cases.STEPS - 1):
            steps.append([plain(v) for v in variables])
    made.finalize_variable_values(variables)
    own = made.variables
    return {"steps": steps, "final": [plain(v) for v in variables], "slots": [plain(v.numpy()) for v in own],
            "names": [v.path.split("/", 1)[-1] for v in own],
            "config": {k: v for k, v in made.get_config().items() if k != "name"}}


def schedule(name: str, settings: dict[str, Any]) -> dict[str, Any]:
    made = getattr(keras.optimizers.schedules, name)(**settings)
    return {"rates": [plain(made(step)) for step in cases.SCHEDULE_STEPS], "config": made.get_config()}


def main() -> None:
    warnings.simplefilter("ignore")
    actual = {"versions": {"tensorflow": tf.__version__, "keras": keras.__version__},
             "losses": {cases.key(*case): loss(*case) for case in cases.LOSSES},
             "metrics": {cases.key(*case): metric(*case) for case in cases.METRICS},
             "optimizers": {cases.key(*case): optimizer(*case) for case in cases.OPTIMIZERS},
             "schedules": {cases.key(*case): schedule(*case) for case in cases.SCHEDULES}}
    text = "{\n" + ",\n".join(
        f"{json.dumps(part)}: {{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in of.items()) + "\n}"
        for part, of in actual.items()) + "\n}\n"
    (HERE / "data" / "formulas.json").write_text(text)


if __name__ == "__main__":
    main()
