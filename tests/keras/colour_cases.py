"""What `make_colour_reference.py` gives to Keras and `test_random_colours.py` to ours: layers, and what they draw."""

import numpy as np

IMAGES = np.random.RandomState(0).uniform(0, 255, (3, 4, 5, 3)).astype(np.float32)
IMAGES[0, 0] = [[0, 0, 0], [255, 255, 255], [10, 10, 10], [255, 0, 0], [0, 255, 255]]
IMAGES[1, ..., 1] = 40
LABELS = np.eye(3, dtype=np.float32)
ORDER = np.array([2, 0, 1])
WEIGHT = np.array([0.25, 0.5, 0.875], np.float32)
INSIDE = np.random.RandomState(1).uniform(size=(3, 4, 5, 1)) < 0.4
FACTORS = np.array([-0.4, 0.1, 0.45], np.float32)
SHARES = np.array([0.0, 0.3, 1.0], np.float32)
FEW = np.array([1, 5, 7], np.uint8)
SOME = np.array([True, False, True])


def each(values):
    return np.reshape(values, (3, 1, 1, 1))


def case(name, transformation, drawn, scale=1.0, **arguments):
    """A layer's name and arguments, what Keras calls what is drawn, what we do, and a factor for the images."""
    return name, arguments, transformation, drawn, np.float32(scale)


SHEARS = np.array([[0.3, -0.2], [-0.5, 0.1], [0.0, 1.0]], np.float32)
CORNERS = np.broadcast_to(np.float32([[0, 0], [4, 0], [0, 3], [4, 3]]), (3, 4, 2)).copy()
MOVED = CORNERS + CORNERS * np.random.RandomState(2).uniform(-0.5, 0.5, (3, 4, 2)).astype(np.float32)
SHEAR_MAPS = np.stack([np.ones(3), SHEARS[:, 0], np.zeros(3), SHEARS[:, 1], np.ones(3), np.zeros(3)], 1).astype(
    np.float32)


def seen_from(**arguments):
    return case("RandomPerspective", {"apply_perspective": SOME, "start_points": CORNERS, "end_points": MOVED},
                (each(SOME), CORNERS, MOVED), **arguments)


def blurred(height, width, **arguments):
    sigma = np.array([0.6, 0.9], np.float32)
    # Keras takes the second for the height
    return case("RandomGaussianBlur", {"should_apply_blur": SOME, "blur_factor": sigma}, (each(SOME), sigma[::-1]),
                kernel_size=(height, width), **arguments)


def sheared(**arguments):
    return case("RandomShear", {"shear_factor": SHEARS}, SHEAR_MAPS, x_factor=0.5, y_factor=0.5, **arguments)


_UNIT = {"value_range": (0, 1), "scale": 1 / 255}
CASES = {
    "hue": case("RandomHue", {"factor": FACTORS}, each(FACTORS), factor=0.5),
    "hue_unit": case("RandomHue", {"factor": FACTORS}, each(FACTORS), factor=0.5, **_UNIT),
    "saturation": case("RandomSaturation", {"factor": SHARES * 2}, each(SHARES * 2), factor=0.5),
    "saturation_unit": case("RandomSaturation", {"factor": FACTORS}, each(FACTORS), factor=0.5, **_UNIT),
    "grayscale": case("RandomGrayscale", each(SOME), each(SOME)),
    "degeneration": case("RandomColorDegeneration", {"factor": each(FACTORS)}, each(FACTORS), factor=0.5),
    "posterization": case("RandomPosterization", {"shift_factor": FEW}, each(FEW), factor=3),
    "posterization_unit": case("RandomPosterization", {"shift_factor": FEW}, each(FEW), factor=3, **_UNIT),
    "solarization": case("Solarization", {"additions": each(SHARES * 80), "thresholds": each(FACTORS * 200 + 100)},
                         (each(SHARES * 80), each(FACTORS * 200 + 100))),
    "solarization_unit": case("Solarization", {"additions": each(SHARES * 80), "thresholds": each(SHARES * 128)},
                              (each(SHARES * 80), each(SHARES * 128)), **_UNIT),
    "invert": case("RandomInvert", {"apply_inversion": SOME}, each(SOME)),
    "sharpness": case("RandomSharpness", {"factor": SHARES}, each(SHARES * 2), factor=0.5),
    "sharpness_unit": case("RandomSharpness", {"factor": SHARES}, each(SHARES * 2), factor=0.5, **_UNIT),
    "autocontrast": case("AutoContrast", None, None),
    "autocontrast_unit": case("AutoContrast", None, None, **_UNIT),
    "equalization": case("Equalization", None, None),
    "equalization_bins": case("Equalization", None, None, bins=16),
    "equalization_unit": case("Equalization", None, None, **_UNIT),
    "shear": sheared(fill_mode="reflect"),
    "shear_nearest": sheared(fill_mode="nearest", interpolation="nearest"),
    "shear_constant": sheared(fill_mode="constant", fill_value=7.0),
    "perspective": seen_from(),
    "perspective_nearest": seen_from(interpolation="nearest", fill_value=3.0),
    "blur": blurred(3, 3),
    "blur_wide": blurred(5, 5, value_range=(0, 1), scale=1 / 255),
    "mixup": case("MixUp", {"mix_weight": WEIGHT, "permutation_order": ORDER}, (ORDER, WEIGHT)),
    "cutmix": case("CutMix", {"mix_weight": WEIGHT, "permutation_order": ORDER, "batch_masks": INSIDE},
                   (ORDER, WEIGHT, INSIDE)),
}
MIXTURES = ("mixup", "cutmix")
