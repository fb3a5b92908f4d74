"""Random draws that TensorFlow and twofold make alike: a function of the library for each, called by both.

`record_draws.py` keeps what TensorFlow gives; `test_tensorflow_draws.py` compares. A case gives tensors, arrays or
lists of numbers. Names of groups say what they need: those of `exact` are equal to the bit, those of `close` go through
functions of float64, which libraries round differently in the last place.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["EXACT", "CLOSE", "run"]

Case = Callable[[Any], Any]
EXACT: dict[str, Case] = {}
CLOSE: dict[str, Case] = {}

_FLOATS = ("float16", "bfloat16", "float32", "float64")
_SEEDS = {"small": [1, 2], "signed": [-3, 7]}


def run(case: Case, tf: Any) -> list[Any]:
    """What a case gives with a library, as arrays; the library has no global seed before and after."""
    tf.random.set_seed(None)
    try:
        made = case(tf)
        made = made if isinstance(made, (list, tuple)) else [made]
        return [x.numpy() if hasattr(x, "numpy") else x for x in made]
    finally:
        tf.random.set_seed(None)


def _exact(name: str) -> Callable[[Case], Case]:
    return lambda case: EXACT.setdefault(name, case)


def _close(name: str) -> Callable[[Case], Case]:
    return lambda case: CLOSE.setdefault(name, case)


# -- stateless ----------------------------------------------------------------------------------------
def _stateless() -> None:
    for label, seed in _SEEDS.items():
        for name in _FLOATS:
            EXACT[f"stateless uniform {name} {label}"] = \
                lambda tf, s=seed, d=name: tf.random.stateless_uniform([7], s, dtype=d)
        for name in ("int32", "int64", "uint32", "uint64"):
            EXACT[f"stateless bits {name} {label}"] = \
                lambda tf, s=seed, d=name: tf.random.stateless_uniform([7], s, None, None, d)
        for name, low, high in (("int32", -5, 95), ("int64", -5, 10**12), ("int32", -2**31, 2**31 - 1)):
            EXACT[f"stateless integers {name} {high} {label}"] = lambda tf, s=seed, d=name, low=low, high=high: \
                tf.random.stateless_uniform([2, 5], s, low, high, d)
    for name in _FLOATS:
        CLOSE[f"stateless normal {name}"] = lambda tf, d=name: tf.random.stateless_normal([301], [5, 6], dtype=d)
        CLOSE[f"stateless truncated_normal {name}"] = \
            lambda tf, d=name: tf.random.stateless_truncated_normal([301], [5, 6], dtype=d)


_stateless()


@_exact("stateless uniform wide seeds")
def _wide(tf: Any) -> Any:
    return [tf.random.stateless_uniform([3], tf.constant(s, tf.int64)) for s in ([2**40 + 3, -2**50], [-1, 0])]


@_exact("stateless uniform range")
def _range(tf: Any) -> Any:
    return [tf.random.stateless_uniform([5], [3, 4], -3.0, 1.5),
            tf.random.stateless_uniform([2, 2], [3, 4], [0.0, 1.0], [2.0, 3.0], "float64"),
            tf.random.stateless_uniform([9], [3, 4], 0.1, 0.7, "float16")]


@_exact("a million stateless normal numbers")
def _many_normals(tf: Any) -> Any:
    """The digest of as many as meet most of the 2**23 fractions that logarithms, sines and cosines are taken of."""
    drawn = [tf.random.stateless_normal([1 << 20], [n, 6]).numpy().tobytes() for n in range(2)]
    return [np.frombuffer(hashlib.sha256(data).digest(), np.uint8) for data in drawn]


@_close("stateless normal parameters")
def _normal_parameters(tf: Any) -> Any:
    return [tf.random.stateless_normal([3, 2], [1, 2], [0.0, 100.0], 3.0),
            tf.random.stateless_truncated_normal([3, 2], [1, 2], 5.0, [0.5, 2.0], "float64")]


@_exact("split and fold_in")
def _split(tf: Any) -> Any:
    fold_in = tf.random.experimental.stateless_fold_in
    return [tf.random.split([1, 2], 3), tf.random.experimental.stateless_split(tf.constant([1, 2], tf.int64), 2),
            fold_in([1, 2], 3), fold_in([1, 2], tf.constant(-4, tf.int64)), tf.random.fold_in([7, 8], 9)]


@_exact("stateless shuffle")
def _shuffle(tf: Any) -> Any:
    shuffle = tf.random.experimental.stateless_shuffle
    return [shuffle(tf.range(9), [8, 9]), shuffle([[1, 2], [3, 4], [5, 6]], [8, 9]), shuffle(tf.range(100), [-1, 3]),
            shuffle([4], [1, 2]), shuffle(tf.zeros([0]), [1, 2])]


@_exact("index_shuffle")
def _index_shuffle(tf: Any) -> Any:
    shuffle = tf.random.experimental.index_shuffle
    return [shuffle(tf.range(4), [5, 9], 3), shuffle(tf.range(10, dtype=tf.int64), [5, 8], tf.constant(9, tf.int64)),
            shuffle(7, [1, 2], 100_000), shuffle(tf.constant(5, tf.uint64), tf.constant([1, 2], tf.uint64),
                                                 tf.constant(2**40, tf.uint64)),
            shuffle([3, 5], [1, 2], [10, 70_000]), shuffle(0, [1, 2], 0)]


@_close("stateless gamma")
def _stateless_gamma(tf: Any) -> Any:
    return [tf.random.stateless_gamma([40], [1, 2], 0.3, dtype="float64"),
            tf.random.stateless_gamma([20, 3], [1, 2], [0.5, 1.0, 7.5], 2.0),
            tf.random.stateless_gamma([9], [3, 2], 2.5, dtype="float16")]


@_exact("stateless poisson")
def _stateless_poisson(tf: Any) -> Any:
    return [tf.random.stateless_poisson([20, 3], [1, 2], [0.5, 9.0, 30.0]),
            tf.random.stateless_poisson([20, 2], [1, 2], tf.constant([5.0, 15.0], tf.float64), tf.float64),
            tf.random.stateless_poisson([4], [1, 2], tf.constant(3.0, tf.float16), tf.float16)]


@_exact("stateless binomial")
def _stateless_binomial(tf: Any) -> Any:
    return [tf.random.stateless_binomial([20, 3], [1, 2], [5.0, 40.0, 100.0], [0.3, 0.5, 0.9]),
            tf.random.stateless_binomial([20], [3, 2], tf.constant(60.0, tf.float64), tf.constant(0.2, tf.float64),
                                         tf.float64),
            tf.random.stateless_binomial([2, 2], [3, 2], [10, 20], 0.25)]


@_exact("stateless categorical")
def _stateless_categorical(tf: Any) -> Any:
    logits = [[0.0, 1.0, -1.0, 0.5], [float("-inf"), 2.0, 0.0, 0.0]]
    return [tf.random.stateless_categorical(logits, 7, [1, 2]),
            tf.random.stateless_categorical(tf.zeros([1, 50], tf.float64), 9, [3, 4], tf.int32)]


@_close("parameterized truncated normal")
def _parameterized(tf: Any) -> Any:
    draw = tf.random.stateless_parameterized_truncated_normal
    inf = float("inf")
    return [draw([9], [1, 2], 0.0, 1.0, -1.0, 2.0), draw([9], [1, 2], 0.0, 1.0, 3.0, 4.0),
            draw([9], [1, 2], 0.0, 1.0, -9.0, -3.5), draw([9], [1, 2], 2.0, 3.0, -inf, 2.5),
            draw([3, 4, 2], [1, 2], [0.0, 1.0], 1.0, [[-1.0], [0.5], [0.5], [0.0]], 1.25)]


# -- generators ---------------------------------------------------------------------------------------
@_exact("generator states")
def _states(tf: Any) -> Any:
    generator = tf.random.Generator
    made = [generator.from_seed(1234), generator.from_seed(2**70 + 5), generator.from_seed(-7),
            generator.from_seed([3, 4]), generator.from_seed([1, 2, 3, 4]),
            generator.from_state([1, 2, 3], "philox"), generator.from_key_counter(9, [1, -2], "philox"),
            generator.from_seed(12, alg="threefry")]
    return [*[g.state.numpy() for g in made], made[0].key, tf.random.create_rng_state(5, "philox"),
            tf.random.create_rng_state([12, 34], "threefry"), tf.random.experimental.create_rng_state(7, 1)]


@_exact("generator draws")
def _generator(tf: Any) -> Any:
    g = tf.random.Generator.from_seed(1234)
    made = [g.uniform([3]), g.uniform([2, 2], -1, 3, tf.float64), g.uniform([5], 0, 10, tf.int32),
            g.uniform([2], None, None, tf.int64), g.uniform_full_int([3]), g.uniform_full_int([2], tf.int32)]
    before = g.skip(5)
    return [*made, before, g.state.numpy(), g.make_seeds(3), g.uniform([2]), g.state.numpy(),
            *[part.state.numpy() for part in g.split(2)], g.binomial([6], 40.0, 0.5), g.state.numpy()]


@_close("generator normal draws")
def _generator_normal(tf: Any) -> Any:
    g = tf.random.Generator.from_seed(1234)
    return [g.normal([2, 3]), g.truncated_normal([30]), g.normal([2], 3.0, 2.0, tf.float64)]


# -- seeds of ops -------------------------------------------------------------------------------------
@_exact("op seeds without a global one")
def _op_seeds(tf: Any) -> Any:
    draw = tf.random.uniform
    return [draw([2], seed=1), draw([2], seed=1), draw([1, 3], seed=1), draw([2], seed=1, dtype=tf.float64),
            draw([2], seed=0), draw([2], 0, 9, tf.int32, seed=1), draw([2], seed=1), draw([2], seed=-5),
            draw([2], seed=2**40)]


@_exact("global and op seeds")
def _both_seeds(tf: Any) -> Any:
    draw = tf.random.uniform
    tf.random.set_seed(42)
    first = [draw([2], seed=1), draw([2], seed=1), draw([2], 3, 90, tf.int64, seed=7)]
    tf.random.set_seed(42)
    return [*first, draw([2], seed=1), draw([3], -2, 2, seed=3), draw([3], 0, 5.0, seed=3), draw([2], seed=1)]


@_exact("global seed alone")
def _global_seed(tf: Any) -> Any:
    draw = tf.random.uniform
    tf.random.set_seed(7)
    made = [draw([2]), draw([2]), draw([1], 0, 1000, tf.int32), draw([2], seed=1), draw([2])]
    tf.random.set_seed(0)
    return [*made, draw([2]), draw([2], seed=0), draw([2], seed=0), tf.random.shuffle(tf.range(7)), draw([1])]


@_close("normal draws with seeds")
def _normal_seeds(tf: Any) -> Any:
    tf.random.set_seed(5)
    return [tf.random.normal([5], seed=1), tf.random.normal([2, 2], 1.0, 2.0), tf.random.truncated_normal([40], seed=2),
            tf.random.normal([2], seed=1), tf.random.truncated_normal([5], dtype=tf.float64),
            tf.random.gamma([3], [0.5, 1.0, 4.0], seed=3), tf.random.gamma([3], [0.5, 1.0, 4.0], 2.0, seed=3)]


@_exact("counts and classes with seeds")
def _count_seeds(tf: Any) -> Any:
    tf.random.set_seed(5)
    return [tf.random.poisson([4], [0.5, 20.0], seed=3), tf.random.poisson([4], [0.5, 20.0], seed=3),
            tf.random.poisson([3], 2.0, tf.int32), tf.random.categorical([[0.0, 1.0, 2.0]], 5, seed=4),
            tf.random.categorical([[0.0, 1.0, 2.0]], 5, seed=4), tf.random.categorical([[0.0, 1.0]], 3, tf.int32)]


@_exact("shuffle with seeds")
def _shuffle_seeds(tf: Any) -> Any:
    tf.random.set_seed(3)
    shuffle = tf.random.shuffle
    return [shuffle(tf.range(10), seed=1), shuffle(tf.range(10), seed=1), shuffle([[1, 2], [3, 4], [5, 6]], seed=1),
            shuffle(tf.range(40)), shuffle(tf.constant([5.0]), seed=1), shuffle(tf.range(10.0), seed=1)]


# -- functions ----------------------------------------------------------------------------------------
@_exact("functions with a global seed")
def _functions(tf: Any) -> Any:
    tf.random.set_seed(11)

    @tf.function
    def two() -> Any:
        return tf.random.uniform([1]), tf.random.uniform([1]), tf.random.uniform([2], 0, 99, tf.int32)

    @tf.function
    def same() -> Any:
        return tf.random.uniform([1], seed=1), tf.random.uniform([1], seed=1)

    made = [*two(), *two(), *same(), *same(), tf.random.uniform([1]), tf.random.uniform([1], seed=1)]
    tf.random.set_seed(11)
    return [*made, *two(), *same()]


@_exact("functions without a global seed")
def _unseeded_functions(tf: Any) -> Any:
    @tf.function
    def drawn(n: Any) -> Any:
        return tf.random.uniform([2], seed=3), tf.random.shuffle(tf.range(n), seed=3)
    return [*drawn(5), *drawn(5), *drawn(6), *drawn(5)]


@_exact("draws in loops and branches")
def _control(tf: Any) -> Any:
    tf.random.set_seed(13)

    @tf.function
    def looped(n: Any) -> Any:
        total = tf.TensorArray(tf.float32, 3)
        before = tf.random.uniform([])
        for i in tf.range(3):
            total = total.write(i, tf.random.uniform([]))
        chosen = tf.cond(n > 0, lambda: tf.random.uniform([]), lambda: tf.random.uniform([2])[0])
        return before, total.stack(), chosen, tf.random.uniform([])
    return [*looped(tf.constant(1)), *looped(tf.constant(-1))]


@_exact("functions in functions")
def _nested(tf: Any) -> Any:
    tf.random.set_seed(17)

    @tf.function
    def inner() -> Any:
        return tf.random.uniform([1])

    @tf.function
    def outer() -> Any:
        return inner(), inner(), tf.random.uniform([1]), tf.random.uniform([1])
    return [*outer(), *outer(), inner()]


# -- datasets -----------------------------------------------------------------------------------------
def _orders(dataset: Any, times: int = 2) -> list[Any]:
    return [[int(x) for x in dataset] for _ in range(times)]


@_exact("dataset orders")
def _datasets(tf: Any) -> Any:
    mixed = tf.data.Dataset.sample_from_datasets
    numbers = tf.data.Dataset.range(10)
    made = [*_orders(numbers.shuffle(4, seed=1)), *_orders(numbers.shuffle(100, seed=2)),
            *_orders(numbers.shuffle(3, seed=1, reshuffle_each_iteration=False)),
            *_orders(numbers.shuffle(5, seed=3).repeat(2), 1), *_orders(numbers.repeat(2).shuffle(7, seed=3), 1),
            *_orders(numbers.shuffle(4, seed=1).shuffle(4, seed=2)),
            *_orders(mixed([numbers, numbers.map(lambda x: -x)], [0.7, 0.3], seed=4)),
            *_orders(mixed([numbers, numbers, numbers], seed=4, rerandomize_each_iteration=True))]
    tf.random.set_seed(9)
    return [*made, *_orders(numbers.shuffle(4)), *_orders(numbers.shuffle(4, seed=5)),
            *_orders(numbers.shuffle(10, seed=0))]


@_exact("dataset random numbers")
def _random_dataset(tf: Any) -> Any:
    return [[int(x) for x in tf.data.Dataset.random(seed=4).take(5)] for _ in range(2)]


# -- Keras --------------------------------------------------------------------------------------------
@_exact("seed generators")
def _seed_generators(tf: Any) -> Any:
    seeds = tf.keras.random.SeedGenerator(7)
    return [seeds.next(), seeds.next(), tf.keras.random.uniform([3], seed=seeds), tf.keras.random.uniform([3], seed=5),
            tf.keras.random.uniform([3], -2.0, 2.0, seed=2**31), tf.keras.random.randint([4], 3, 1000, seed=1),
            tf.keras.random.shuffle(tf.range(9), seed=2), tf.keras.random.categorical([[0.0, 1.0]], 4, seed=3),
            tf.keras.random.binomial([4], 30.0, 0.5, seed=1)]


@_exact("uniform initializers")
def _initializers(tf: Any) -> Any:
    init = tf.keras.initializers
    return [init.GlorotUniform(seed=1)([3, 4]), init.HeUniform(seed=2)([3, 4]), init.LecunUniform(seed=3)([3, 3, 2, 5]),
            init.RandomUniform(-1.0, 1.0, seed=4)([5]),
            init.VarianceScaling(2.0, "fan_out", "uniform", seed=5)([3, 4])]


@_close("normal initializers")
def _normal_initializers(tf: Any) -> Any:
    init = tf.keras.initializers
    return [init.RandomNormal(seed=1)([3, 4]), init.TruncatedNormal(seed=2)([30]), init.GlorotNormal(seed=3)([4, 6]),
            init.HeNormal(seed=4)([4, 6]), tf.keras.random.normal([3], seed=1), tf.keras.random.gamma([3], 2.0, seed=1),
            tf.keras.random.beta([3], 2.0, 3.0, seed=1)]


@_exact("dropout")
def _dropout(tf: Any) -> Any:
    layer, x = tf.keras.layers.Dropout(0.4, seed=3), tf.ones([2, 6])
    tf.random.set_seed(1)
    return [layer(x, training=True), layer(x, training=True), tf.nn.dropout(x, 0.5, seed=2),
            tf.nn.dropout(x, 0.25), tf.nn.dropout(x, 0.0), tf.nn.dropout(tf.cast(x, tf.float16), 0.4),
            tf.nn.dropout(x, tf.constant(0.3)),
            tf.keras.layers.SpatialDropout1D(0.5, seed=1)(tf.ones([2, 2, 4]), training=True),
            tf.keras.layers.GaussianDropout(0.5, seed=4)(x)]


@_exact("set_random_seed")
def _set_random_seed(tf: Any) -> Any:
    tf.keras.utils.set_random_seed(12)
    made = [tf.keras.layers.Dense(3), tf.keras.layers.Embedding(3, 2)]
    made[0].build([None, 2])
    made[1].build([None])
    return [made[0].kernel.numpy(), made[1].embeddings.numpy(), tf.random.uniform([2]), tf.keras.random.uniform([2]),
            tf.keras.random.uniform([2]), tf.keras.layers.Dropout(0.5)(tf.ones([8]), training=True)]


# -- images -------------------------------------------------------------------------------------------
@_close("changes of images")
def _images(tf: Any) -> Any:
    x = tf.reshape(tf.range(72, dtype=tf.float32) / 72, [2, 4, 3, 3])
    image = tf.image
    tf.random.set_seed(3)
    return [image.stateless_random_flip_left_right(x, [1, 2]), image.stateless_random_flip_up_down(x[0], [3, 2]),
            image.stateless_random_crop(x, [2, 2, 2, 3], [1, 5]), image.stateless_random_brightness(x, 0.3, [1, 2]),
            image.random_flip_left_right(x[0], seed=1), image.random_flip_left_right(x),
            image.random_brightness(x, 0.2), image.random_crop(x, [1, 2, 3, 3], seed=4),
            image.random_flip_up_down(x, seed=5)]
