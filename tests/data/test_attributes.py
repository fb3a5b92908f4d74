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


def plain(value):
    """An element with lists of numbers for tensors."""
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    return tuple(map(plain, value)) if isinstance(value, tuple) else value if value is None else value.numpy().tolist()


def test_none_is_part_of_elements(tmp_path):
    make = tf.data.Dataset
    assert [plain(e) for e in make.from_tensors((1, None))] == [(1, None)]
    assert [plain(e) for e in make.from_tensor_slices({"a": [1, 2], "b": None})] == [
        {"a": 1, "b": None}, {"a": 2, "b": None}]
    pairs = make.range(3).map(lambda x: (x, None))
    assert repr(pairs.batch(2).element_spec) == (
        "(TensorSpec(shape=(None,), dtype=tf.int64, name=None), NoneTensorSpec())")
    expected = [(0, None), (1, None), (2, None)]
    for same in (pairs, pairs.map(lambda x, n: (x, n)), pairs.filter(lambda x, n: n is None), pairs.cache(),
                 pairs.batch(2).unbatch(), pairs.prefetch(1), pairs.shuffle(1), pairs.take(5),
                 make.range(3).flat_map(lambda x: make.from_tensors((x, None))),
                 make.range(3).interleave(lambda x: make.from_tensors((x, None))),
                 make.range(3).scan(0, lambda s, x: (s, (x, None))),
                 make.range(3).map(lambda x: (x, None), num_parallel_calls=2)):
        assert [plain(e) for e in same] == expected
    assert [plain(e) for e in pairs.batch(2)] == [([0, 1], None), ([2], None)]
    assert [plain(e) for e in pairs.batch(2).rebatch(3)] == [([0, 1, 2], None)]
    assert list(pairs.as_numpy_iterator()) == expected and len(list(pairs.concatenate(pairs).repeat(2))) == 12
    assert [plain(e) for e in make.zip((make.range(3), pairs))] == [(n, (n, None)) for n in range(3)]
    nested = make.range(2).map(lambda x: {"a": x, "b": None, "c": (None, x)}).batch(2)
    assert plain(next(iter(nested))) == {"a": [0, 1], "b": None, "c": (None, [0, 1])}
    assert int(pairs.reduce(tf.constant(0, tf.int64), lambda total, pair: total + pair[0])) == 3
    assert plain(pairs.get_single_element() if len(pairs) == 1 else pairs.take(1).get_single_element()) == (0, None)
    assert plain(iter(pairs).get_next_as_optional().get_value()) == (0, None)

    @tf.function(fallback=False)
    def total():
        actual = tf.constant(0, tf.int64)
        for x, nothing in pairs:
            assert nothing is None
            actual += x
        return actual
    assert int(total()) == 3
    with pytest.raises(TypeError, match="None"):
        make.range(3).map(lambda x: None)


def test_models_are_fitted_to_elements_with_none():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    data = tf.data.Dataset.from_tensor_slices((tf.ones([4, 2]), tf.ones([4, 1]))).map(lambda x, y: (x, y, None))
    assert len(model.fit(data.batch(2), verbose=0).history["loss"]) == 1
