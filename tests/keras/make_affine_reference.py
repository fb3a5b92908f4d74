"""Writes `data/affine.npz`: what Keras's `affine_transform` gives for the maps of `affine_cases`.

Run it with a Python that has TensorFlow and Keras 3: `python tests/keras/make_affine_reference.py`.
"""

from __future__ import annotations

import pathlib

import keras
import numpy as np
from affine_cases import FILL, IMAGES, KINDS, MAPS


def main() -> None:
    maps = np.concatenate([MAPS, np.zeros((len(MAPS), 2), np.float32)], axis=1)
    actual = {f"{interpolation} {fill}": np.asarray(keras.ops.image.affine_transform(
        IMAGES, maps, interpolation=interpolation, fill_mode=fill, fill_value=FILL)) for interpolation, fill in KINDS}
    np.savez_compressed(pathlib.Path(__file__).parent / "data" / "affine.npz", **actual)


if __name__ == "__main__":
    main()
