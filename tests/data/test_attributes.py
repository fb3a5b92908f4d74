"""Small things that programs ask of datasets, their options and iterators, as TensorFlow 2.21 answers."""

from __future__ import annotations

import pytest

import twofold as tf


def test_only_batched_datasets_have_a_batch_size():
    numbers = tf.data.Dataset.range(3)
    assert not hasattr(numbers, "_batch_size") and not hasattr(numbers.batch(2).map(lambda x: x), "_batch_size")
    assert numbers.batch(2)._batch_size.numpy() == 2 and numbers.batch(2)._batch_size.dtype == tf.int64


def test_options_have_options_of_their_own():
    options = tf.data.Options()
    assert options.autotune.enabled is None and options.experimental_distribute.num_devices is None
    options.autotune.enabled = True
    options.autotune.cpu_budget = 4
    kept = tf.data.Dataset.range(3).with_options(options).options().autotune
    assert (kept.enabled, kept.cpu_budget, kept.ram_budget) == (True, 4, None)
    assert tf.data.Options() == tf.data.Options() != options
    for name in ("autotune", "threading", "experimental_optimization", "experimental_distribute"):
        with pytest.raises(TypeError, match=f'Property "{name}" must be of type'):
            setattr(options, name, "x")
    with pytest.raises(AttributeError, match="foo"):
        options.foo = 3
    options.threading = tf.data.ThreadingOptions()


def test_iterators_have_next():
    numbers = tf.data.Dataset.range(2)
    values, tensors = numbers.as_numpy_iterator(), iter(numbers)
    assert [values.next(), next(values)] == [0, 1] and int(tensors.next()) == 0
    for iterator in (values, tensors):
        with pytest.raises(StopIteration):
            iterator.next()
            iterator.next()


def test_version():
    assert tf.__version__ == tf.version.VERSION


def test_strides_and_dilations_do_not_go_together():
    image, kernel = tf.ones([1, 8, 8, 2]), tf.ones([2, 2, 2, 3])
    for strides, dilations in ((2, 2), ([1, 2], [2, 1]), ([2, 1], 2)):
        with pytest.raises(ValueError, match="not supported in conjunction"):
            tf.nn.convolution(image, kernel, strides, dilations=dilations)
        with pytest.raises(ValueError, match="not supported in conjunction"):
            tf.nn.pool(image, 2, "MAX", strides, dilations=dilations)
    assert tf.nn.convolution(image, kernel, 1, dilations=2).shape == [1, 6, 6, 3]
    assert tf.nn.conv2d(image, kernel, 2, "VALID", dilations=2).shape == [1, 3, 3, 3]
    for spatial in (1, 3):
        with pytest.raises(ValueError, match="not supported in conjunction"):
            tf.nn.convolution(tf.ones([1, *[8] * spatial, 2]), tf.ones([*[2] * spatial, 2, 3]), 2, dilations=2)
