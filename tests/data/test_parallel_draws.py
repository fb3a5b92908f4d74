"""Functions with a state in a parallel map: random layers, generators, variables."""

import pytest

import twofold as tf

LAYERS = {
    "RandomTranslation": lambda: tf.keras.layers.RandomTranslation(0.2, 0.2),
    "RandomContrast": lambda: tf.keras.layers.RandomContrast(0.5),
    "RandomRotation": lambda: tf.keras.layers.RandomRotation(0.3),
    "GaussianNoise": lambda: tf.keras.layers.GaussianNoise(0.1),
    "Dropout": lambda: tf.keras.layers.Dropout(0.3),
}
COUNT = 60


def drawn(fn, parallel, deterministic=None):
    actual = tf.data.Dataset.range(COUNT).map(fn, num_parallel_calls=parallel, deterministic=deterministic)
    return [x.numpy().tobytes() for x in actual]


@pytest.mark.parametrize("name", LAYERS)
def test_random_layers_draw_what_they_draw_one_after_another(name):
    image = tf.random.stateless_uniform([96, 96, 3], [1, 2])

    def run(parallel, deterministic=None):
        tf.random.set_seed(3)
        layer = LAYERS[name]()
        return drawn(lambda i: layer(image, training=True), parallel, deterministic)
    serial = run(None)
    assert len(set(serial)) == COUNT
    assert run(4) == serial
    assert set(run(4, False)) == set(serial)


def test_streams_are_taken_in_order():
    def run(parallel):
        tf.random.set_seed(5)
        generator = tf.random.Generator.from_seed(2)
        return drawn(lambda i: tf.random.normal([200, 200]) + tf.random.uniform([], seed=3) + generator.normal([]),
                     parallel)
    assert run(4) == run(None)


@pytest.mark.parametrize("whole", [False, True])
def test_variables_go_through_elements_in_order(whole):
    mean = tf.Variable(0.0, dtype=tf.float64)

    def average(i):
        x = tf.random.stateless_normal([200, 200], tf.stack([i, i + 1]), dtype=tf.float64)
        level = tf.reduce_max(x) if whole else tf.cast(i, tf.float64)
        mean.assign(0.9 * mean + level)
        return mean + tf.reduce_sum(x)

    def run(parallel):
        mean.assign(0.0)
        return drawn(average, parallel)
    assert run(4) == run(None)


def test_draws_inside_of_branches():
    generator = tf.random.Generator.from_seed(2)

    def sometimes(i):
        x = tf.random.stateless_normal([200, 200], tf.stack([i, i + 1]))
        return tf.cond(tf.reduce_sum(x) > 0.0, lambda: generator.normal([]), lambda: x[0, 0] + tf.random.normal([]))

    def run(parallel):
        generator.reset_from_seed(2)
        tf.random.set_seed(4)
        return drawn(sometimes, parallel)
    assert run(4) == run(None)
