"""Writes `data/colours.npz`: what Keras's layers make of the images of `colour_cases`.

Run it with a Python that has TensorFlow and Keras 3: `python tests/keras/make_colour_reference.py`.
"""

from __future__ import annotations

import pathlib

import keras
import numpy as np
from colour_cases import CASES, IMAGES, LABELS, MIXTURES


def main() -> None:
    actual = {}
    for key, (name, arguments, transformation, _, scale) in CASES.items():
        layer = getattr(keras.layers, name)(**arguments)
        actual[key] = np.asarray(layer.transform_images(keras.ops.convert_to_tensor(IMAGES * scale), transformation))
        if key in MIXTURES:
            actual[f"{key} labels"] = np.asarray(layer.transform_labels(LABELS, transformation))
    np.savez_compressed(pathlib.Path(__file__).parent / "data" / "colours.npz", **actual)


if __name__ == "__main__":
    main()
