"""Writes `data/preprocessing.json`: what TensorFlow's Keras gives for `preprocessing_cases`.

Run it with a Python that has TensorFlow: `python tests/keras/make_preprocessing_reference.py`.
"""

from __future__ import annotations

import json
import pathlib

import tensorflow as tf
from preprocessing_cases import results


def main() -> None:
    path = pathlib.Path(__file__).parent / "data" / "preprocessing.json"
    actual = results(tf.keras.preprocessing.text, tf.keras.preprocessing.sequence)
    path.write_text(json.dumps(actual, default=int, indent=None) + "\n")


if __name__ == "__main__":
    main()
