"""Layers that change colours and mix images: their formulas against Keras's, what they draw, and where they run."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

import twofold as tf
from twofold import keras

from .colour_cases import CASES, IMAGES, LABELS, MIXTURES

layers = keras.layers
X = np.random.RandomState(0).uniform(0, 255, (6, 8, 10, 3)).astype(np.float32)
MADE = {
    "hue": lambda **k: layers.RandomHue(0.5, **k), "saturation": lambda **k: layers.RandomSaturation((0.1, 0.9), **k),
    "grayscale": lambda **k: layers.RandomGrayscale(0.5, **k),
    "degeneration": lambda **k: layers.RandomColorDegeneration(0.5, **k),
    "jitter": lambda **k: layers.RandomColorJitter((0, 255), 0.2, 0.3, (0.3, 0.8), 0.1, **k),
    "posterization": lambda **k: layers.RandomPosterization((1, 7), **k),
    "solarization": lambda **k: layers.Solarization(0.3, 0.8, **k),
    "invert": lambda **k: layers.RandomInvert((0.5, 0.5), **k),
    "sharpness": lambda **k: layers.RandomSharpness(1.0, **k),
    "erasing": lambda **k: layers.RandomErasing(scale=(0.2, 0.6), fill_value=(1, 2, 3), **k),
    "mixup": lambda **k: layers.MixUp(0.8, **k), "cutmix": lambda **k: layers.CutMix((0.9, 1.0), **k),
}
ALWAYS = {"autocontrast": layers.AutoContrast, "equalization": layers.Equalization}


@pytest.mark.parametrize("name", CASES)
def test_formulas_are_those_of_keras(name):
    kind, arguments, _, drawn, scale = CASES[name]
    layer = getattr(layers, kind)(**arguments)
    drawn = None if drawn is None else tf.nest.map_structure(tf.constant, drawn)
    with np.load(pathlib.Path(__file__).parent / "data" / "colours.npz") as stored:
        want, labels = stored[name], stored[f"{name} labels"] if name in MIXTURES else None
    actual = layer._changed(tf.constant(IMAGES * scale), drawn, False)
    assert actual.dtype == tf.float32
    atol = 2e-4 * scale if name != "autocontrast" else 1e-3
    np.testing.assert_allclose(actual, want, rtol=2e-6, atol=atol)
    if labels is not None:
        np.testing.assert_allclose(layer._labelled(LABELS, drawn), labels, atol=1e-7)
    if drawn is not None:
        signature = [tf.TensorSpec([None, None, None, 3])]
        compiled = tf.function(lambda x: layer._changed(x, drawn, False), input_signature=signature)
        np.testing.assert_array_equal(compiled(IMAGES * scale), actual)


@pytest.mark.parametrize("name", MADE)
def test_only_training_changes_images(name):
    layer, other = MADE[name](seed=5), MADE[name](seed=5)
    first, again = layer(X), layer(X, training=True)
    assert first.shape == again.shape == X.shape and first.dtype == tf.float32 and not np.array_equal(first, again)
    np.testing.assert_array_equal(other(X), first)  # by the seed
    np.testing.assert_array_equal(layer(X, training=False), X)
    assert layer(X[0]).shape == X.shape[1:] == layer.compute_output_shape(X.shape)[1:]
    assert layer(X.astype(np.uint8)).dtype == tf.float32
    copy = type(layer).from_config(layer.get_config())
    assert copy.get_config() == layer.get_config()
    if name != "saturation":  # whose formula does not cut
        assert first.numpy().min() >= -1e-3 and first.numpy().max() <= 255.001


@pytest.mark.parametrize("name", [*MADE, *ALWAYS])
def test_channels_may_come_first(name):
    make = MADE.get(name) or ALWAYS[name]
    seed = {"seed": 2} if name in MADE else {}
    last, first = make(**seed), make(data_format="channels_first", **seed)
    expected = np.transpose(last(X), (0, 3, 1, 2))
    np.testing.assert_allclose(first(np.transpose(X, (0, 3, 1, 2))), expected, rtol=1e-6, atol=1e-4)


@pytest.mark.parametrize("name", ["jitter", "erasing", "cutmix", "equalization"])
def test_models_and_pipelines_use_them(name):
    layer = (MADE.get(name) or ALWAYS[name])()
    model = keras.Sequential([keras.Input(X.shape[1:]), layer, layers.Flatten(), layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(X / 255, np.zeros((6, 1)), verbose=0, batch_size=3)
    np.testing.assert_array_equal(model.predict(X, verbose=0), model.predict(X, verbose=0))
    batches = tf.data.Dataset.from_tensor_slices(X).batch(2).map(lambda x: layer(x, training=True),
                                                                 num_parallel_calls=2)
    assert [batch.shape for batch in batches] == [(2, 8, 10, 3)] * 3


def test_labels_and_masks():
    masks = (X[..., :1] / 3).astype(np.int32)
    given = {"images": X, "labels": np.arange(6), "segmentation_masks": masks}
    for name in MADE:
        if name not in MIXTURES:
            actual = MADE[name](seed=1)(given)
            np.testing.assert_array_equal(actual["labels"], np.arange(6))
            np.testing.assert_array_equal(actual["segmentation_masks"], masks)
    given["labels"] = np.eye(6)
    cut = layers.CutMix((1.0, 1.0), seed=3)(given)
    assert cut["segmentation_masks"].dtype == tf.int32
    np.testing.assert_array_equal(cut["segmentation_masks"], (cut["images"][..., :1].numpy() / 3).astype(int))
    mixed = layers.MixUp(1.0, seed=3)(given)
    assert mixed["segmentation_masks"].dtype == tf.float32
    labels = mixed["labels"].numpy()
    np.testing.assert_allclose(labels.sum(1), 1, rtol=1e-6)
    np.testing.assert_allclose(mixed["images"], np.tensordot(labels, X, 1), rtol=1e-4)
    np.testing.assert_allclose(mixed["segmentation_masks"], np.tensordot(labels, masks, 1), rtol=1e-4, atol=1e-3)
    single = layers.MixUp(seed=1)({"images": X[0], "labels": np.eye(6)[0]})
    np.testing.assert_array_equal(single["labels"], np.eye(6)[0])
    np.testing.assert_allclose(single["images"], X[0], rtol=1e-6)


def test_boxes_have_the_areas_that_labels_tell():
    number = np.arange(64, dtype=np.float32)
    images = np.broadcast_to(number[:, None, None, None], (64, 50, 40, 1))
    actual = layers.CutMix((1.0, 1.0), seed=2)({"images": images, "labels": np.eye(64, dtype=np.float32)})
    pixels, labels = actual["images"].numpy(), actual["labels"].numpy()
    shares = (pixels == images).mean((1, 2, 3))
    other = labels[np.arange(64), np.arange(64)]
    moved = (np.sort(labels, 1)[:, -2] > 0) | (other < 1)
    assert moved.sum() > 50 and 0.2 < shares[moved].mean() < 0.8
    np.testing.assert_allclose(shares[moved], other[moved], atol=0.05)  # a box ends within pixels
    for n in np.flatnonzero(moved):
        rows, columns = np.nonzero(pixels[n, ..., 0] != n)
        if len(rows):
            assert np.ptp(rows) + 1 == len(set(rows)) and len(rows) == len(set(rows)) * len(set(columns))
    small = layers.CutMix((0.0, 1e-6), seed=1)({"images": images, "labels": np.eye(64)})
    assert np.isfinite(small["labels"].numpy()).all()


def test_erased_boxes():
    zeros = np.zeros((200, 30, 30, 3), np.float32)
    actual = layers.RandomErasing((1.0, 1.0), scale=(0.04, 0.25), fill_value=(1, 2, 300), seed=1)(zeros).numpy()
    inside = actual[..., 0] == 1
    np.testing.assert_array_equal(actual, inside[..., None] * np.float32([1, 2, 255]))
    heights, widths = inside.any(2).sum(1), inside.any(1).sum(1)
    np.testing.assert_array_equal(inside.sum((1, 2)), heights * widths)
    assert 6 <= heights.min() <= 8 and 13 <= heights.max() <= 15 and 6 <= widths.min() <= 8 and widths.max() <= 15
    some = layers.RandomErasing((0.5, 0.5), fill_value=9, seed=1)(zeros).numpy()
    assert 60 < (some != 0).any((1, 2, 3)).sum() < 140
    noise = layers.RandomErasing((1.0, 1.0), (1.0, 1.0), seed=1)(zeros).numpy()
    assert noise.min() == 0 and noise.max() == 255 and 0.4 < (noise == 0).mean() < 0.6


def test_factors_bound_what_is_drawn():
    ramp = np.broadcast_to(np.arange(256, dtype=np.float32).reshape(1, 16, 16, 1), (300, 16, 16, 1))
    kept = [len(np.unique(image)) for image in layers.RandomPosterization((2, 5), seed=1)(ramp).numpy()]
    assert set(kept) == {4, 8, 16}
    assert {len(np.unique(i)) for i in layers.RandomPosterization((8, 8))(ramp[:3]).numpy()} == {256}
    grey = layers.RandomGrayscale(0.3, seed=1)(np.broadcast_to(X[:1], (500, 8, 10, 3))).numpy()
    assert 100 < (np.ptp(grey, axis=-1) == 0).all((1, 2)).sum() < 200
    turned = layers.RandomInvert(1.0, seed=1)(np.zeros((500, 1, 1, 1))).numpy()
    assert 190 < (turned == 255).sum() < 310  # a chance that is drawn from 0 to 1
    red = np.broadcast_to(np.float32([255, 0, 0]), (500, 1, 1, 3))
    hues = tf.image.rgb_to_hsv(layers.RandomHue((0.1, 0.3), seed=1)(red) / 255)[..., 0].numpy()
    apart = np.minimum(hues, 1 - hues)
    assert 0.05 - 1e-5 <= apart.min() < 0.06 and 0.14 < apart.max() <= 0.15 + 1e-5 and 150 < (hues > 0.5).sum() < 350
    assert layers.RandomColorJitter(brightness_factor=0.1, seed=1)._changes[0].factor == (-0.1, 0.1)
    np.testing.assert_array_equal(layers.RandomColorJitter()(X), X)


@pytest.mark.parametrize("make", [
    lambda: layers.RandomHue(1.5), lambda: layers.RandomHue((-0.1, 0.2)), lambda: layers.RandomSaturation(2),
    lambda: layers.RandomGrayscale(-0.1), lambda: layers.RandomPosterization(9), lambda: layers.RandomPosterization(0),
    lambda: layers.Solarization(1.2), lambda: layers.RandomInvert("x"), lambda: layers.RandomSharpness((0, 1, 2)),
    lambda: layers.RandomErasing(scale=2), lambda: layers.RandomErasing(fill_value=(1, 2)),
    lambda: layers.CutMix(3), lambda: layers.AutoContrast(value_range=3),
    lambda: layers.RandomColorJitter(hue_factor=2), lambda: layers.Equalization(data_format="first"),
    lambda: layers.RandomColorDegeneration(-2)])
def test_bad_arguments(make):
    with pytest.raises(ValueError):
        make()
