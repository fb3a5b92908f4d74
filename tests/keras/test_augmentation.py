"""Layers that draw other layers, elastic changes, mel spectrograms, pipelines and boxes: by what must hold of them.

Formulas that can be compared with Keras's are in `colour_cases.py` and `layer_cases.py`.
"""

from __future__ import annotations

import json

import numpy as np
import pytest

import twofold as tf

layers = tf.keras.layers
IMAGES = tf.constant(np.random.RandomState(0).uniform(0, 255, (3, 20, 24, 3)).astype(np.float32))
MASKS = tf.cast(IMAGES[..., :1] > 128, tf.uint8)
POLICIES = {"RandAugment": {"num_ops": 3}, "AugMix": {"chain_depth": 2}}
RANDOM = {**POLICIES, "RandomElasticTransform": {}, "RandomGaussianBlur": {}, "RandomPerspective": {},
          "RandomShear": {"x_factor": 0.5, "y_factor": 0.3}}


@pytest.mark.parametrize("name", RANDOM)
def test_equal_seeds_give_equal_images_in_both_modes(name):
    first, second = (getattr(layers, name)(**RANDOM[name], seed=3) for _ in range(2))
    compiled = tf.function(lambda x: second(x), fallback=False)
    actual = [(first(IMAGES).numpy(), compiled(IMAGES).numpy()) for _ in range(3)]
    for one, other in actual:
        np.testing.assert_array_equal(one, other)
    assert any(not np.array_equal(actual[0][0], one) for one, _ in actual[1:])  # each call draws anew
    assert all(one.min() >= 0 and one.max() <= 255 for one, _ in actual)


@pytest.mark.parametrize("name", RANDOM)
def test_only_training_changes_images_and_configs_make_equal_layers(name):
    layer = getattr(layers, name)(**RANDOM[name], seed=3)
    np.testing.assert_array_equal(layer(IMAGES, training=False), IMAGES)
    config = json.loads(json.dumps(tf.keras.layers.serialize(layer)))
    again = tf.keras.layers.deserialize(config)
    assert again.get_config() == layer.get_config()
    np.testing.assert_array_equal(again(IMAGES), layer(IMAGES))
    one = getattr(layers, name)(**RANDOM[name], data_format="channels_first", seed=3)
    other = getattr(layers, name)(**RANDOM[name], seed=3)
    turned = one(tf.transpose(IMAGES, (0, 3, 1, 2)))
    np.testing.assert_array_equal(tf.transpose(turned, (0, 2, 3, 1)), other(IMAGES))
    assert other(IMAGES[0]).shape == IMAGES[0].shape
    with pytest.raises(ValueError, match="factor"):
        getattr(layers, name)(**{"x_factor" if name == "RandomShear" else "factor": 1.5})


@pytest.mark.parametrize("name", POLICIES)
def test_a_step_is_what_the_layer_of_its_number_does(name):
    policy = getattr(layers, name)(seed=1)
    draws = policy._draws_of(IMAGES, 2)
    assert len(draws) == 11
    for number, (kind, drawn) in enumerate(zip(policy._names, draws, strict=True)):
        inner = getattr(policy, kind)
        mine = None if drawn is None else tf.nest.map_structure(lambda x: x[1], drawn)
        for mask in (False, True):
            expected = inner._changed(IMAGES, mine, mask) if inner._moves_pixels or not mask else IMAGES
            actual = policy._step(IMAGES, tf.constant(number), draws, tf.constant(1), mask)
            np.testing.assert_array_equal(actual, expected)
    np.testing.assert_array_equal(policy._step(IMAGES, tf.constant(11), draws, tf.constant(0), False), IMAGES)


def test_masks_move_as_the_images_do():
    for name, options in RANDOM.items():
        layer = getattr(layers, name)(**options, seed=4)
        actual = layer({"images": IMAGES, "segmentation_masks": MASKS, "labels": tf.constant([1, 2, 3])})
        assert actual["segmentation_masks"].dtype == tf.uint8 and actual["labels"].numpy().tolist() == [1, 2, 3]
        assert set(np.unique(actual["segmentation_masks"])) <= {0, 1} or name == "AugMix"
    for name in ("RandomElasticTransform", "RandomPerspective", "RandomShear"):
        layer = getattr(layers, name)(**RANDOM[name], interpolation="nearest", seed=4)
        actual = layer({"images": tf.cast(MASKS, tf.float32), "segmentation_masks": MASKS})
        np.testing.assert_array_equal(actual["images"], actual["segmentation_masks"])


def test_weights_of_augmix_are_shares():
    layer = layers.AugMix(num_chains=4, chain_depth=2, seed=2)
    weights, kept, which, _ = layer._draw(IMAGES)
    assert np.isclose(float(tf.reduce_sum(weights)), 1.0) and 0 <= float(kept) <= 1 and which.shape == [8]
    no_layer = tf.fill([8], 11)  # chains of nothing: the images themselves
    actual = layer._changed(IMAGES, (weights, kept, no_layer, layer._draws_of(IMAGES, 8)), False)
    np.testing.assert_allclose(actual, IMAGES, rtol=1e-5)
    np.testing.assert_array_equal(layer._changed(IMAGES, (weights, tf.constant(1.0), which, _), False), IMAGES)
    assert len(layers.AugMix(all_ops=False)._names) == 7
    np.testing.assert_array_equal(layers.RandAugment(num_ops=0)(IMAGES), IMAGES)


def test_elastic_changes_are_bounded_and_smooth():
    flat = tf.fill([2, 20, 24, 3], 9.0)
    for mode in ("reflect", "mirror", "wrap", "nearest"):
        np.testing.assert_allclose(layers.RandomElasticTransform(fill_mode=mode)(flat), flat, rtol=1e-6)
    np.testing.assert_array_equal(layers.RandomElasticTransform(scale=(0.0, 0.0))(IMAGES), IMAGES)
    np.testing.assert_array_equal(layers.RandomElasticTransform(factor=(0.0, 0.0))(IMAGES), IMAGES)
    large = tf.zeros([1, 80, 100, 1])
    layer = layers.RandomElasticTransform((1.0, 1.0), scale=(1.0, 1.0), seed=5)
    _, moves = layer._draw(large)
    noise = moves.numpy() / (100 * 0.1)  # of standard deviation 4 before it was smoothed over 4 pixels
    inner = noise[:, 12:-12, 12:-12]
    assert 0.02 < inner.std() / 4 < 0.2 and abs(inner.mean()) < 0.5
    assert np.abs(np.diff(inner, axis=1)).mean() < 0.35 * np.abs(inner).mean()
    with pytest.raises(NotImplementedError, match="fill_mode"):
        layers.RandomElasticTransform(fill_mode="odd")
    with pytest.raises(ValueError, match="known height and width"):
        tf.function(layer, input_signature=[tf.TensorSpec([1, None, None, 1])]).get_concrete_function()


def mel_spectrogram(x, fft, step, length, rate, bins, low, high, exponent, window):
    """In float64, as the documentation of the layer has it."""
    taper = np.zeros(fft)
    taper[(fft - length) // 2:(fft - length) // 2 + length] = window(length)
    x = np.pad(x, [(0, 0), (fft // 2, fft // 2)], "reflect")
    frames = np.stack([x[:, n:n + fft] * taper for n in range(0, x.shape[1] - fft + 1, step)], 1)
    power = np.abs(np.fft.rfft(frames)) ** exponent
    mel = 1127 * np.log(1 + np.linspace(0, rate / 2, fft // 2 + 1) / 700)
    edges = np.linspace(1127 * np.log(1 + low / 700), 1127 * np.log(1 + high / 700), bins + 2)
    weights = np.stack([np.interp(mel, edges[n:n + 3], [0, 1, 0], 0, 0) for n in range(bins)], 1)
    weights[0] = 0
    return np.swapaxes(power @ weights, 1, 2)


def hann(length):
    return 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(length) / length)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_mel_spectrograms(dtype):
    x = np.random.RandomState(1).randn(2, 400)
    expected = mel_spectrogram(x, 64, 20, 48, 1000, 7, 20.0, 400.0, 2.0, hann)
    options = {"sequence_stride": 20, "sequence_length": 48, "sampling_rate": 1000, "num_mel_bins": 7, "max_freq": 400}
    tolerance = {"rtol": 1e-4 if dtype == "float32" else 1e-9, "atol": 1e-5 if dtype == "float32" else 1e-10}
    power = layers.MelSpectrogram(64, **options, power_to_db=False, dtype=dtype)
    np.testing.assert_allclose(power(tf.constant(x)), expected, **tolerance)
    level = 10 * np.log10(expected) - 10 * np.log10(0.5)
    loud = layers.MelSpectrogram(64, **options, ref_power=0.5, top_db=15.0, dtype=dtype)
    actual = loud(tf.constant(x))
    np.testing.assert_allclose(actual, np.maximum(level, level.max() - 15.0), **tolerance)
    assert loud.compute_output_shape((2, 400)) == tuple(actual.shape) and actual.dtype.name == dtype
    compiled = tf.function(lambda x: loud(x), input_signature=[tf.TensorSpec([None, None], dtype)], fallback=False)
    np.testing.assert_array_equal(compiled(tf.cast(x, dtype)), actual)
    assert layers.MelSpectrogram.from_config(loud.get_config()).get_config() == loud.get_config()
    with pytest.raises(ValueError, match="fft_length"):
        layers.MelSpectrogram(16, sequence_length=20)


def test_spectrograms_refuse_what_they_cannot_do():
    for options in ({"mode": "odd"}, {"scaling": "odd"}, {"padding": "odd"}, {"frame_step": 0}, {"frame_step": 500},
                    {"fft_length": 100}):
        with pytest.raises(ValueError):
            layers.STFTSpectrogram(**options)
    with pytest.warns(UserWarning, match="power of two"):
        layers.STFTSpectrogram(frame_length=8, fft_length=12)
    with pytest.raises(TypeError, match="float16"):
        layers.STFTSpectrogram(frame_length=4)(tf.ones([1, 8, 1], tf.int32))


def test_crossings_refuse_what_they_cannot_hash():
    crossing = layers.HashedCrossing(5)
    for inputs in (tf.constant(["a"]), [tf.constant(["a"])], [tf.constant(["a"]), tf.constant(["a", "b"])],
                   [tf.ones([2, 2], tf.int32)] * 2, [tf.constant([1.0]), tf.constant([1.0])]):
        with pytest.raises(ValueError, match="HashedCrossing"):
            crossing(inputs)
    pairs = tf.data.Dataset.from_tensor_slices((["a", "b"], [1, 2])).batch(2).map(lambda a, b: crossing([a, b]))
    expected = crossing([tf.constant(["a", "b"]), tf.constant([1, 2])])
    np.testing.assert_array_equal(next(iter(pairs)), expected)
    for bad in ({"num_bins": 0}, {"num_bins": 2, "output_mode": "odd"}):
        with pytest.raises(ValueError):
            layers.HashedCrossing(**bad)


def test_pipelines_run_layers_over_any_structure(tmp_path):
    pipeline = layers.Pipeline([layers.RandomFlip("horizontal", seed=1), layers.RandAugment(seed=2)], name="all")
    data = {"images": IMAGES, "labels": tf.constant([1, 2, 3])}
    actual = pipeline(data)
    assert actual["images"].shape == IMAGES.shape and actual["labels"].numpy().tolist() == [1, 2, 3]
    np.testing.assert_array_equal(pipeline(data, training=False)["images"], IMAGES)
    again = layers.Pipeline.from_config(json.loads(json.dumps(pipeline.get_config())))
    assert [type(layer).__name__ for layer in again.layers] == ["RandomFlip", "RandAugment"] and again.name == "all"
    entry = tf.keras.Input((8, 8, 3))
    model = tf.keras.Model(entry, layers.GlobalAveragePooling2D()(layers.Pipeline([
        layers.Rescaling(0.5), layers.Conv2D(2, 3)])(entry)))
    model.save(tmp_path / "m.keras")
    loaded = tf.keras.models.load_model(tmp_path / "m.keras")
    np.testing.assert_array_equal(loaded(IMAGES[:, :8, :8]), model(IMAGES[:, :8, :8]))
    assert len(model.trainable_weights) == 2
    mapped = tf.data.Dataset.from_tensor_slices(IMAGES).batch(3).map(pipeline)
    assert next(iter(mapped)).shape == IMAGES.shape
    with pytest.raises(ValueError, match="layers"):
        layers.Pipeline.from_config({"name": "x"})


def test_boxes_are_brought_to_one_number():
    boxes, labels = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4), np.array([[1, 2, 3], [4, 5, 6]])
    data = {"images": IMAGES[:2], "bounding_boxes": {"boxes": tf.constant(boxes), "labels": tf.constant(labels)}}
    for count in (2, 3, 5):
        layer = layers.MaxNumBoundingBoxes(count, fill_value=-7)
        more = max(count - 3, 0)
        for actual in (layer(data), tf.function(layer, fallback=False)(data)):
            kept = actual["bounding_boxes"]
            np.testing.assert_array_equal(kept["boxes"], np.pad(boxes[:, :count], [(0, 0), (0, more), (0, 0)],
                                                                constant_values=-7))
            np.testing.assert_array_equal(kept["labels"], np.pad(labels[:, :count], [(0, 0), (0, more)],
                                                                 constant_values=-7))
            np.testing.assert_array_equal(actual["images"], IMAGES[:2])
        shapes = {"images": (2, 20, 24, 3), "bounding_boxes": {"boxes": (2, None, 4), "labels": (2, None)}}
        assert layer.compute_output_shape(shapes)["bounding_boxes"] == {"boxes": (2, count, 4), "labels": (2, count)}
        assert layers.MaxNumBoundingBoxes.from_config(layer.get_config()).fill_value == -7
    with pytest.raises(ValueError, match="'boxes' and 'labels'"):
        layers.MaxNumBoundingBoxes(2)({"bounding_boxes": {"boxes": boxes}})


@pytest.mark.parametrize("name, axis", [("RandomHeight", 1), ("RandomWidth", 2)])
def test_sizes_are_drawn_within_their_range_and_alike_in_both_modes(name, axis):
    first, second = (getattr(layers, name)([-0.5, 0.5], interpolation="nearest", seed=3) for _ in range(2))
    compiled = tf.function(lambda x: second(x, training=True))
    size, seen = IMAGES.shape[axis], set()
    for _ in range(4):
        one = first(IMAGES)
        np.testing.assert_array_equal(one, compiled(IMAGES))
        assert size // 2 <= one.shape[axis] <= size * 1.5
        np.testing.assert_array_equal(one, tf.image.resize(IMAGES, one.shape[1:3], method="nearest"))
        seen.add(one.shape[axis])
    assert len(seen) > 1 and first(IMAGES, training=False).shape == IMAGES.shape
    again = layers.deserialize(json.loads(json.dumps(layers.serialize(first))))
    assert again.get_config() == first.get_config() and again.compute_output_shape((3, 4, 4, 3))[axis] is None
    for wrong in ((0.5, 0.2), (-1.5, 0.0)):
        with pytest.raises(ValueError, match="factor"):
            getattr(layers, name)(wrong)
