"""Writes `reference.json`: what TensorFlow gives for the pipelines of `pipelines.py`.

    python tests/data/reference.py        in an environment that has TensorFlow
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main() -> None:
    """Run all pipelines under TensorFlow."""
    import tensorflow as tf
    from pipelines import PIPELINES, described

    actual = {}
    for name, fn in PIPELINES.items():
        with tempfile.TemporaryDirectory() as folder:
            actual[name] = described(tf, fn, Path(folder))
    lines = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in actual.items()]
    text = "{\n" + ",\n".join([f'"tensorflow": {json.dumps(tf.__version__)}', *lines]) + "\n}\n"
    (HERE / "reference.json").write_text(text)


if __name__ == "__main__":
    main()
