"""Images and maps of places that the affine sampling of images is compared on."""

from __future__ import annotations

import itertools

import numpy as np

FILL = 0.25
KINDS = list(itertools.product(("nearest", "bilinear"), ("constant", "nearest", "wrap", "reflect")))

MAPS = np.array([
    [1, 0, 0, 0, 1, 0],  # as it is
    [1, 0, 0.5, 0, 1, -0.5],  # by half a pixel
    [1, 0, 4, 0, 1, -3],  # by a whole image
    [1, 0, -13, 0, 1, 11],  # by several
    [-1, 0, 3, 0, 1, 0],  # mirrored
    [0.8, -0.6, 1.23, 0.6, 0.8, -0.91],  # turned
    [2.5, 0, -2.25, 0, 2.5, -1.5],  # from afar
    [0.31, 0.13, 1.43, -0.21, 0.43, 0.72],  # from near, askew
], np.float32)
IMAGES = (np.arange(len(MAPS) * 3 * 4, dtype=np.float32) * 37 % 101 / 101).reshape(len(MAPS), 3, 4, 1)
