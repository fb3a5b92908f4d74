"""What random programs of threads do: things with a state, calls that change it, and what must hold afterwards.

A subject makes its state from a random source, so that two of one source are equal. `calls` are functions of no
arguments; each may be called any number of times, by any thread, in any order. What they give is kept. `check` is told
how often each call was made, and all that was given, and has an equal subject that was called as often by one thread.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

import twofold as tf

__all__ = ["SUBJECTS", "Subject"]

SIZES = (1, 7, 1 << 10, 1 << 15, 1 << 17)  # below and above the size from which a call gives the interpreter's lock up


class Subject:
    """A thing with a state.

    Attributes:
        calls: what threads do with it.
    """

    calls: list[Callable[[], Any]]

    def state(self) -> list[np.ndarray]:
        """The state, which must be that of the run of one thread."""
        return []

    def check(self, given: list[Any], serial: list[Any]) -> None:
        """Raise AssertionError unless what calls gave is right.

        Args:
            given, serial: what the calls of the threads gave, and those of one thread, in any order.
        """


def _same_values(given: list[Any], serial: list[Any]) -> None:
    """The same results, each as often, in any order."""
    counts = [sorted(x for x in actual if x is not None) for actual in (given, serial)]
    assert counts[0] == counts[1], f"{len(set(counts[0]))} distinct results; expected {len(set(counts[1]))}"


class Counter(Subject):
    """Additions to one variable, in every way there is."""

    def __init__(self, rng: random.Random) -> None:
        size, dtype = rng.choice(SIZES), rng.choice([tf.float32, tf.float64, tf.int32, tf.int64])
        self.variable = v = tf.Variable(tf.zeros([size], dtype))
        one = tf.ones([size], dtype)
        other = tf.Variable(tf.ones([size], dtype))
        w = tf.Variable(tf.ones([size]))

        @tf.function
        def compiled() -> None:
            v.assign_add(one)

        @tf.function
        def argument(x: Any) -> Any:
            v.assign(v + x)
            return tf.reduce_sum(v[:1])

        @tf.function
        def reading() -> None:
            v.assign_add(other)

        @tf.function
        def looping() -> None:
            for _ in tf.range(3):
                v.assign_add(one)

        @tf.function
        def calling() -> None:
            v.assign_add(tf.py_function(lambda x: x, [one], tf.TensorSpec([size], dtype)))

        @tf.function
        def nested() -> None:
            compiled()
            reading()

        @tf.function
        def differentiated() -> Any:
            v.assign_add(one)
            return tf.reduce_sum(w * 2.0)

        def taped() -> None:
            with tf.GradientTape() as tape:
                y = differentiated()
            assert float(tape.gradient(y, w)[0]) == 2.0

        def parts() -> None:
            cut = size // 2
            v[:cut].assign_add(one[:cut])
            v[cut:].assign_add(one[cut:])
        ways = [compiled, lambda: argument(one) and None, reading, looping, calling, nested, taped, parts,
                lambda: v.assign_add(one), lambda: v[:].assign_add(one), lambda: v.assign_sub(-one),
                lambda: v.scatter_nd_add(tf.range(size)[:, None], one)]
        self.calls = [_quiet(way) for way in rng.sample(ways, rng.randint(1, 4))]

    def state(self) -> list[np.ndarray]:
        return [self.variable.numpy()]


def _quiet(call: Callable[[], Any]) -> Callable[[], None]:
    def quiet() -> None:
        call()
    return quiet


class Congruence(Subject):
    """A value that each call makes from the one before."""

    def __init__(self, rng: random.Random) -> None:
        size = rng.choice(SIZES)
        self.variable = v = tf.Variable(tf.range(size, dtype=tf.int64))
        a, c, m = rng.randrange(3, 1000, 2), rng.randrange(1000), 1_000_003

        @tf.function
        def step() -> None:
            v.assign((v * a + c) % m)

        @tf.function
        def looped() -> None:
            for _ in tf.range(2):
                v.assign((v * a + c) % m)
        self.calls = [_quiet(f) for f in rng.sample([step, looped], rng.randint(1, 2))]

    def state(self) -> list[np.ndarray]:
        return [self.variable.numpy()]


class Balance(Subject):
    """Two variables with a constant sum; nobody may see one without the other."""

    def __init__(self, rng: random.Random) -> None:
        size = rng.choice(SIZES)
        self.a, self.b = a, b = tf.Variable(tf.zeros([size])), tf.Variable(tf.zeros([size]))

        @tf.function
        def move(by: Any) -> None:
            a.assign_add(tf.fill([size], by))
            b.assign_sub(tf.fill([size], by))

        @tf.function
        def swap() -> None:
            x = tf.identity(a)
            a.assign(-b)
            b.assign(-x)

        @tf.function
        def total() -> Any:
            return tf.reduce_max(tf.abs(a + b))

        def read() -> None:
            assert float(total()) == 0.0, "half of an update was seen"
        self.calls = [lambda: move(1.0), lambda: move(2.0), _quiet(swap), read]

    def state(self) -> list[np.ndarray]:
        return [self.a.numpy(), self.b.numpy()]


class Generators(Subject):
    """Draws from a generator, eager and compiled, of one size."""

    def __init__(self, rng: random.Random) -> None:
        size = rng.choice(SIZES)
        generator = tf.random.Generator.from_seed(rng.randrange(1000))
        self.generator = generator
        draw = rng.choice([lambda: generator.normal([size]), lambda: generator.uniform([size]),
                           lambda: generator.truncated_normal([size]),
                           lambda: generator.uniform_full_int([size], tf.uint32)])
        kinds = [draw, tf.function(draw)]
        self.calls = [lambda f=f: f().numpy().tobytes() for f in rng.sample(kinds, rng.randint(1, 2))]

    def state(self) -> list[np.ndarray]:
        return [self.generator.state.numpy()]

    def check(self, given: list[Any], serial: list[Any]) -> None:
        _same_values(given, serial)


class Streams(Subject):
    """Draws from the streams of the process; no more than one of these in a program."""

    def __init__(self, rng: random.Random) -> None:
        size, seed = rng.choice(SIZES[1:]), rng.choice([None, 3])
        tf.random.set_seed(rng.randrange(1000))
        draw = rng.choice([lambda: tf.random.normal([size], seed=seed), lambda: tf.random.uniform([size], seed=seed)])
        self.calls = [lambda: draw().numpy().tobytes()]

    def check(self, given: list[Any], serial: list[Any]) -> None:
        _same_values(given, serial)


class CompiledStreams(Streams):
    """The same from inside of a compiled function."""

    def __init__(self, rng: random.Random) -> None:
        size = rng.choice(SIZES[1:])
        tf.random.set_seed(rng.randrange(1000))
        draw = tf.function(lambda: tf.random.normal([size]))
        self.calls = [lambda: draw().numpy().tobytes()]


class RandomLayer(Subject):
    """A layer that draws in training."""

    def __init__(self, rng: random.Random) -> None:
        layers = tf.keras.layers
        seed = rng.randrange(1000)
        layer, x = rng.choice([
            (lambda: layers.Dropout(0.5, seed=seed), tf.ones([rng.choice([4, 400]), 300])),
            (lambda: layers.GaussianNoise(0.5, seed=seed), tf.ones([rng.choice([4, 400]), 300])),
            (lambda: layers.AlphaDropout(0.5, seed=seed), tf.ones([rng.choice([4, 400]), 300])),
            (lambda: layers.SpatialDropout1D(0.5, seed=seed), tf.ones([4, 3, 300])),
            (lambda: layers.RandomContrast(0.5, seed=seed), tf.random.stateless_uniform([2, 16, 16, 3], [1, 2])),
            (lambda: layers.RandomBrightness(0.5, seed=seed), tf.random.stateless_uniform([2, 16, 16, 3], [1, 2])),
            (lambda: layers.RandomTranslation(0.3, 0.3, seed=seed),
             tf.random.stateless_uniform([2, rng.choice([16, 64]), 16, 3], [1, 2])),
        ])
        made = layer()

        def call() -> bytes:
            return made(x, training=True).numpy().tobytes()  # type: ignore[no-any-return]
        compiled = tf.function(lambda: made(x, training=True))
        kinds = [call, lambda: compiled().numpy().tobytes()]
        self.calls = rng.sample(kinds, rng.randint(1, 2))
        # Two draws of one eager call may have those of other threads between them.
        self.apart = isinstance(made, layers.RandomTranslation) and call in self.calls

    def check(self, given: list[Any], serial: list[Any]) -> None:
        if self.apart:
            assert len(set(given)) == len(given), "a draw was made twice"
        else:
            _same_values(given, serial)


class Normalization(Subject):
    """Batch normalisation, whose averages follow the batches."""

    def __init__(self, rng: random.Random) -> None:
        self.layer = layer = tf.keras.layers.BatchNormalization(momentum=0.9)
        x = tf.random.stateless_normal([rng.choice([8, 512]), rng.choice([3, 100])], [1, rng.randrange(100)])
        step = tf.function(lambda: layer(x, training=True))
        kinds = [lambda: layer(x, training=True).numpy().tobytes(), lambda: step().numpy().tobytes()]
        self.calls = rng.sample(kinds, rng.randint(1, 2))

    def state(self) -> list[np.ndarray]:
        return [w.numpy() for w in self.layer.weights]

    def check(self, given: list[Any], serial: list[Any]) -> None:
        _same_values(given, serial)


class Metric(Subject):
    """A metric that is told of the same batch again and again."""

    def __init__(self, rng: random.Random) -> None:
        metrics = tf.keras.metrics
        self.metric = metric = rng.choice([
            metrics.Mean, metrics.Sum, metrics.MeanSquaredError, metrics.BinaryAccuracy, metrics.Precision,
            metrics.AUC, metrics.CosineSimilarity])()
        size = rng.choice([2, 64, 1 << 15]) if not isinstance(metric, metrics.AUC) else 64
        y = tf.cast(tf.range(size) % 2, tf.float32)
        p = tf.cast(tf.range(size) % 4, tf.float32) / 4.0
        args = (p,) if type(metric) in (metrics.Mean, metrics.Sum) else (y, p)
        update = tf.function(lambda: metric.update_state(*args))
        self.calls = [_quiet(f) for f in rng.sample([lambda: metric.update_state(*args), update], rng.randint(1, 2))]

    def state(self) -> list[np.ndarray]:
        return [v.numpy() for v in self.metric.variables]


class Optimizer(Subject):
    """Updates by one gradient."""

    def __init__(self, rng: random.Random) -> None:
        optimizers = tf.keras.optimizers
        kind = rng.choice(["SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "Adamax", "Nadam", "Ftrl", "Lion"])
        optimizer = getattr(optimizers, kind)(rng.choice([0.01, 0.1]))
        self.variables = variables = [tf.Variable(tf.ones([n])) for n in rng.sample(SIZES, 2)]
        grads = [tf.random.stateless_normal(v.shape, [1, n]) for n, v in enumerate(variables)]
        self.optimizer = optimizer
        optimizer.build(variables)

        def eager() -> None:
            optimizer.apply_gradients(zip(grads, variables, strict=True))
        step = tf.function(eager)

        def trained() -> None:
            with tf.GradientTape() as tape:
                loss = sum(tf.reduce_sum(tf.stop_gradient(g) * v) for g, v in zip(grads, variables, strict=True))
            optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        whole = tf.function(trained)
        self.calls = [_quiet(f) for f in rng.sample([eager, step, trained, whole], rng.randint(1, 2))]

    def state(self) -> list[np.ndarray]:
        return [v.numpy() for v in [*self.variables, *self.optimizer.variables]]


class Pipeline(Subject):
    """Datasets whose functions have a state: in order, each is as a serial one."""

    def __init__(self, rng: random.Random) -> None:
        size, count, seed = rng.choice([10, 100, 200]), rng.choice([5, 20]), rng.randrange(1000)
        parallel = rng.choice([2, 4, tf.data.AUTOTUNE])
        kind = rng.randrange(3)

        def run(calls: int | None) -> list[bytes]:
            generator, total = tf.random.Generator.from_seed(seed), tf.Variable(0, dtype=tf.int64)
            layer = tf.keras.layers.Dropout(0.5, seed=seed)

            def fn(i: Any) -> Any:
                if kind == 0:
                    return generator.normal([size, size])
                if kind == 1:
                    return layer(tf.ones([size, size]), training=True)
                total.assign(total * 3 + i)
                return tf.random.stateless_normal([size, size], [i, i]) + tf.cast(total, tf.float32)
            actual = tf.data.Dataset.range(count).map(fn, num_parallel_calls=calls)
            return [x.numpy().tobytes() for x in actual.prefetch(2)]
        serial = run(None)

        def call() -> None:
            assert run(parallel) == serial, "a parallel map differs from a serial one"
        self.calls = [call]


class Traces(Subject):
    """Functions that several threads call for the first time."""

    def __init__(self, rng: random.Random) -> None:
        self.counts: list[int] = []
        functions = []
        for n in range(rng.randint(1, 5)):
            self.counts.append(0)

            @tf.function
            def f(x: Any, n: int = n) -> Any:
                self.counts[n] += 1
                return tf.reduce_sum(x) + n
            functions.append(f)
        x = tf.ones([rng.choice(SIZES)])
        self.expected = len(functions)

        def call() -> None:
            for n, f in enumerate(functions):
                assert float(f(x, n)) == x.shape[0] + n
            assert self.counts == [1] * self.expected, f"traced {self.counts} times"
        self.calls = [call]


class Backward(Subject):
    """The same loss and its gradient again and again, until its passes are compiled."""

    def __init__(self, rng: random.Random) -> None:
        size = rng.choice([8, 64])
        w = tf.Variable(tf.random.stateless_normal([size, size], [1, 2]))
        x = tf.random.stateless_normal([4, size], [3, 4])
        depth = rng.randint(2, 12)

        def loss() -> bytes:
            with tf.GradientTape() as tape:
                y = x
                for _ in range(depth):
                    y = tf.tanh(y @ w)
                total = tf.reduce_sum(y)
            return tape.gradient(total, w).numpy().tobytes()  # type: ignore[no-any-return]
        self.calls = [loss]

    def check(self, given: list[Any], serial: list[Any]) -> None:
        _same_values(given, serial)


SUBJECTS: list[type[Subject]] = [Counter, Congruence, Balance, Generators, Streams, CompiledStreams, RandomLayer,
                                 Normalization, Metric, Optimizer, Pipeline, Traces, Backward]
