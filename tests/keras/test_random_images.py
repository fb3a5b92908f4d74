"""Layers that change images at random: the sampling against TensorFlow's, what they may give, and where they run."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

import twofold as tf
from twofold import keras
from twofold.keras.layers._sampling import transformed

from .affine_cases import FILL, IMAGES, KINDS, MAPS

layers = keras.layers
X = np.random.RandomState(0).rand(6, 8, 10, 3).astype(np.float32)
MADE = {
    "flip": lambda **k: layers.RandomFlip(**k), "rotation": lambda **k: layers.RandomRotation(0.2, **k),
    "zoom": lambda **k: layers.RandomZoom((-0.3, 0.4), 0.2, **k),
    "translation": lambda **k: layers.RandomTranslation(0.3, (0.1, 0.4), fill_mode="constant", **k),
    "crop": lambda **k: layers.RandomCrop(5, 4, **k),
    "contrast": lambda **k: layers.RandomContrast(0.5, value_range=(0, 1), **k),
    "brightness": lambda **k: layers.RandomBrightness(0.5, value_range=(0, 1), **k),
}


@pytest.mark.parametrize("interpolation, fill", KINDS)
def test_sampling_is_tensorflows(interpolation, fill):
    with np.load(pathlib.Path(__file__).parent / "data" / "affine.npz") as stored:
        expected = stored[f"{interpolation} {fill}"]
    actual = transformed(tf.constant(IMAGES), tf.constant(MAPS), interpolation, fill, FILL)
    np.testing.assert_allclose(actual, expected, atol=2e-6)
    run = tf.function(lambda x, m: transformed(x, m, interpolation, fill, FILL))
    np.testing.assert_array_equal(run(tf.constant(IMAGES), tf.constant(MAPS)), actual)


@pytest.mark.parametrize("name", MADE)
def test_only_training_changes_images(name):
    layer, other = MADE[name](seed=5), MADE[name](seed=5)
    first, again = layer(X), layer(X, training=True)
    assert first.shape == again.shape and not np.array_equal(first, again)
    np.testing.assert_array_equal(other(X), first)  # by the seed
    plain = layer(X, training=False)
    if name == "crop":
        np.testing.assert_array_equal(plain.shape, [6, 5, 4, 3])
    else:
        np.testing.assert_array_equal(plain, X)
    assert layer(X[0]).shape == first.shape[1:] == layer.compute_output_shape(X.shape)[1:]
    assert type(layer).from_config(layer.get_config()).get_config() == layer.get_config()


@pytest.mark.parametrize("name", MADE)
def test_channels_may_come_first(name):
    last, first = MADE[name](seed=2), MADE[name](seed=2, data_format="channels_first")
    expected = np.transpose(last(X), (0, 3, 1, 2))
    np.testing.assert_array_equal(first(np.transpose(X, (0, 3, 1, 2))), expected)
    assert first.compute_output_shape((6, 3, 8, 10)) == expected.shape


def test_flips_are_of_whole_images_and_as_many_as_not():
    layer = layers.RandomFlip("horizontal", seed=1)
    x = np.broadcast_to(X[:1], (400, 8, 10, 3))
    turned = np.array([np.array_equal(image, X[0, :, ::-1]) for image in layer(x).numpy()])
    kept = np.array([np.array_equal(image, X[0]) for image in layer(x).numpy()])
    assert 140 < turned.sum() < 260 and 140 < kept.sum() < 260
    both = layers.RandomFlip(seed=1)(x).numpy()
    forms = [X[0], X[0, ::-1], X[0, :, ::-1], X[0, ::-1, ::-1]]
    assert all(any(np.array_equal(image, form) for form in forms) for image in both)


def test_factors_bound_what_is_drawn():
    ones = np.full((500, 2, 2, 1), 0.5, np.float32)
    brighter = layers.RandomBrightness((0.1, 0.3), value_range=(0, 1))(ones).numpy()
    assert 0.6 - 1e-6 <= brighter.min() < 0.62 and 0.78 < brighter.max() <= 0.8 + 1e-6
    steps = np.tile(np.array([0.4, 0.6], np.float32), (500, 2, 1))[..., np.newaxis]
    spread = np.ptp(layers.RandomContrast((0.2, 0.5), value_range=(0, 1))(steps).numpy(), axis=(1, 2, 3)) / 0.2
    assert 0.8 - 1e-5 <= spread.min() < 0.83 and 1.45 < spread.max() <= 1.5 + 1e-5
    ramp = np.broadcast_to(np.arange(10, dtype=np.float32)[:, np.newaxis, np.newaxis], (300, 10, 10, 1))
    moved = layers.RandomTranslation((0.1, 0.2), 0.0, fill_mode="nearest")(ramp).numpy()
    down = 9 - moved[:, 9, 0, 0]
    assert 1 - 1e-5 <= down.min() < 1.1 and 1.9 < down.max() <= 2 + 1e-5


def test_crops_are_parts_and_fit_smaller_images():
    layer = layers.RandomCrop(5, 4, seed=3)
    places = set()
    for _ in range(60):
        part = layer(X).numpy()
        actual = [(i, j) for i in range(4) for j in range(7) if np.array_equal(X[:, i:i + 5, j:j + 4], part)]
        assert len(actual) == 1
        places.add(actual[0])
    assert len({i for i, _ in places}) == 4 and len({j for _, j in places}) == 7
    assert layer(X[:, :3, :3]).shape == (6, 5, 4, 3)


def test_masks_move_with_their_images():
    layer = layers.RandomRotation(0.5, fill_mode="constant", interpolation="nearest", seed=4)
    given = {"images": X, "labels": np.arange(6), "segmentation_masks": (X[..., :1] * 100).astype(np.int32)}
    actual = layer(given)
    np.testing.assert_array_equal(actual["labels"], np.arange(6))
    np.testing.assert_array_equal(actual["segmentation_masks"], (actual["images"][..., :1].numpy() * 100).astype(int))
    assert actual["segmentation_masks"].dtype == tf.int32
    with pytest.raises(ValueError, match="boxes"):
        layer({"images": X, "boxes": X})


@pytest.mark.parametrize("name", MADE)
def test_models_and_pipelines_use_them(name):
    layer = MADE[name](seed=1)
    model = keras.Sequential([keras.Input(X.shape[1:]), layer, layers.Flatten(), layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(X, np.zeros((6, 1)), verbose=0, batch_size=3)
    np.testing.assert_array_equal(model.predict(X, verbose=0), model.predict(X, verbose=0))
    batches = tf.data.Dataset.from_tensor_slices(X).batch(2).map(lambda x: layer(x, training=True),
                                                                 num_parallel_calls=2)
    parts = [b.numpy() for b in batches] + [b.numpy() for b in batches]
    assert len(parts) == 6 and not np.array_equal(parts[0], parts[3])


def test_bad_arguments():
    with pytest.raises(ValueError, match="mode"):
        layers.RandomFlip("sideways")
    with pytest.raises(ValueError, match="factor"):
        layers.RandomRotation(1.5)
    with pytest.raises(ValueError, match="height_factor"):
        layers.RandomZoom((0.1, 2.0))
    with pytest.raises(NotImplementedError, match="fill_mode"):
        layers.RandomTranslation(0.1, 0.1, fill_mode="mirror")
    with pytest.raises(ValueError, match="rank 3 or 4"):
        layers.RandomFlip()(X[0, 0])
    with pytest.raises(ValueError, match="value_range"):
        layers.RandomBrightness(0.1, value_range=3)
