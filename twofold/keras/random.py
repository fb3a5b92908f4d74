"""`tf.keras.random`: draws that take a seed, and `SeedGenerator`, which holds one as state.

The numbers are those of `tf.random`'s stateless draws, with the seeds that Keras takes with TensorFlow. A draw without
a seed uses a generator of the program, and what has no seed takes one from Python's `random`, as in Keras; after
`tf.random.set_seed` that alone decides them.
"""

from __future__ import annotations

import random as python_random
from collections.abc import Callable
from typing import Any

import numpy as np

import twofold as tf
from twofold._front import replica
from twofold._front.api import describe, public
from twofold._front.namespace import publish
from twofold._front.together import locks
from twofold._ops import random_draws
from twofold.tracking import Trackable

from . import config
from .configs import config_of
from .scalars import number

__all__ = ["SeedGenerator", "beta", "binomial", "categorical", "dropout", "gamma", "normal", "randint", "shuffle",
           "truncated_normal", "uniform"]

_LARGEST_SEED = 10**9
_MODULUS = 2**31 - 2  # Keras takes seeds by it, so that they are int32


_seeded_all = -1  # the number of the seeding by `tf.keras.utils.set_random_seed`, the latest


def _seed_all(seed: int) -> None:
    """Seed `tf.random` as a part of all that is random: default seeds come from Python's `random` then."""
    global _seeded_all
    tf.random.set_seed(seed)
    _seeded_all = random_draws.seeding()[0]


def _make_default_seed() -> int:
    """A seed from Python's `random`, as in Keras, unless `tf.random.set_seed` alone was called: then from a stream that
    it governs."""
    times, seeded = random_draws.seeding()
    if seeded and times != _seeded_all:
        return random_draws.one_integer(1, _LARGEST_SEED)
    return python_random.randint(1, _LARGEST_SEED)


class SeedGenerator(Trackable):
    """A seed that is another at each use, kept in a variable: layers hold one, and checkpoints save it.

    Args:
        seed: an integer; by default one from Python's `random`, or that `tf.random.set_seed` decides.
        name: the name of the generator.
    Raises:
        ValueError: the seed is not an integer.

    >>> import twofold as tf
    >>> seeds = tf.keras.random.SeedGenerator(7)
    >>> seeds.next().numpy().tolist(), seeds.next().numpy().tolist()
    ([7, 0], [7, 1])
    """

    def __init__(self, seed: int | None = None, name: str | None = None):
        if seed is not None and (not isinstance(seed, int) or isinstance(seed, bool)):
            raise ValueError(f"seed must be an integer or None; got {seed!r}.")
        self.name = "seed_generator" if name is None else name
        self._initial_seed = seed
        start = _make_default_seed() if seed is None else seed
        with tf.init_scope():
            self.state = tf.Variable([start, 0], dtype=tf.int64, trainable=False, name="seed_generator_state")

    def next(self, ordered: bool = True) -> Any:
        """The seed for one draw, an int64 tensor of two; the state moves on.

        Args:
            ordered: whether it moves on by one; else through the numbers below a million, in an order that repeats
                none of them soon.
        """
        seed: list[Any] = []

        def moved(state: Any) -> Any:
            seed[:] = [state]
            return state + tf.constant([0, 1], tf.int64) if ordered else (state + 1) * 5387 % 933199
        with replica.assigning_alike():
            self.state._change(moved)
        of = replica.here.get().number
        if not of:
            return tf.identity(seed[0])
        return tf.cast(tf.random.fold_in(seed[0], tf.constant(of, tf.int64)), tf.int64)  # a replica's own

    def take_back(self, seed: Any) -> None:
        """Undo a `next`, whose draw was refused, unless there was another since."""
        def back(state: Any) -> Any:
            return tf.where(tf.reduce_all(state == seed + tf.constant([0, 1], tf.int64)), seed, state)
        with replica.assigning_alike():
            self.state._change(back)

    def save_own_variables(self, store: Any) -> None:
        """Write the state into a mapping, by number, as layers do."""
        store["0"] = self.state.numpy()

    def load_own_variables(self, store: Any) -> None:
        """Read the state from such a mapping."""
        self.state.assign(tf.cast(store["0"][()], tf.int64))

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal generator."""
        return {"seed": self._initial_seed, "name": self.name}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> SeedGenerator:
        """A generator made from what `get_config` gave."""
        return cls(**config_of(config))


class _Shared:
    """The generator from which draws without a seed take theirs; the next of them make a new one after a seeding."""

    generator: SeedGenerator | None = None
    made = -1  # the number of the seeding after which it was made
    lock = locks.Lock()


def _shared_generator() -> SeedGenerator:
    times = random_draws.seeding()[0]
    with _Shared.lock:
        if _Shared.generator is None or _Shared.made != times:
            _Shared.generator, _Shared.made = SeedGenerator(), times
        return _Shared.generator


def _taken(seed: Any) -> Any:
    """The state that stands for a seed argument, two int64: of an integer that and 0, of a generator its next."""
    if seed is None:
        return _shared_generator().next(ordered=False)
    if hasattr(seed, "next"):
        return seed.next()
    if isinstance(seed, int) and not isinstance(seed, bool):
        return tf.constant([seed, 0], tf.int64)
    raise ValueError(f"seed must be an integer, a SeedGenerator or None; got {seed!r}.")


def _narrowed(state: Any) -> Any:
    return tf.cast(tf.math.floormod(tf.cast(state, tf.int64), _MODULUS), tf.int32)


def draw_seed(seed: Any) -> Any:
    """The two numbers from which a stateless draw starts.

    Args:
        seed: an integer, a `SeedGenerator`, or None for the program's generator.
    Raises:
        ValueError: it is something else.
    """
    return _narrowed(_taken(seed))


def _drawn(seed: Any, draw: Callable[[Any], Any]) -> Any:
    """What `draw` gives for the numbers from which it starts; a draw that is refused leaves a generator as it was."""
    state = _taken(seed)
    try:
        return draw(_narrowed(state))
    except Exception:
        if hasattr(seed, "take_back") and not tf.inside_function():
            seed.take_back(state)
        raise


def _dtype(dtype: Any) -> Any:
    return tf.as_dtype(config.floatx() if dtype is None else dtype)


@public
def normal(shape: Any, mean: float = 0.0, stddev: float = 1.0, dtype: Any = None, seed: Any = None) -> Any:
    """Normal numbers.

    Args:
        shape: of the result.
        mean, stddev: of the distribution.
        dtype: floating; `tf.keras.config.floatx()` by default.
        seed: an integer, for the same numbers at every call, a `SeedGenerator`, or None.

    >>> import twofold as tf
    >>> a, b = tf.keras.random.normal([3], seed=1), tf.keras.random.normal([3], seed=1)
    >>> bool(tf.reduce_all(a == b))
    True
    """
    return _drawn(seed, lambda start: tf.random.stateless_normal(shape, start, mean, stddev, _dtype(dtype)))


@public
def truncated_normal(shape: Any, mean: float = 0.0, stddev: float = 1.0, dtype: Any = None, seed: Any = None) -> Any:
    """Normal numbers within two standard deviations of the mean; arguments as for `normal`.

    >>> import twofold as tf
    >>> float(tf.reduce_max(tf.abs(tf.keras.random.truncated_normal([1000], seed=1)))) <= 2
    True
    """
    return _drawn(seed, lambda start: tf.random.stateless_truncated_normal(shape, start, mean, stddev, _dtype(dtype)))


@public
def uniform(shape: Any, minval: float = 0.0, maxval: float = 1.0, dtype: Any = None, seed: Any = None) -> Any:
    """Numbers uniform in [minval, maxval); the other arguments as for `normal`.

    >>> import twofold as tf
    >>> tf.keras.random.uniform([2, 3], seed=1).shape
    TensorShape([2, 3])
    """
    return _drawn(seed, lambda start: tf.random.stateless_uniform(shape, start, minval, maxval, _dtype(dtype)))


@public
def randint(shape: Any, minval: int, maxval: int, dtype: Any = "int32", seed: Any = None) -> Any:
    """Integers uniform in [minval, maxval), of an integer `dtype`; the other arguments as for `normal`.

    >>> import twofold as tf
    >>> tf.keras.random.randint([4], 5, 6, seed=1).numpy().tolist()
    [5, 5, 5, 5]
    """
    return _drawn(seed, lambda start: tf.random.stateless_uniform(shape, start, minval, maxval, tf.as_dtype(dtype)))


@public
def categorical(logits: Any, num_samples: int, dtype: Any = "int32", seed: Any = None) -> Any:
    """Draws from the distributions whose unnormalised log-probabilities are the rows of `logits`.

    Args:
        logits: floating [batch, classes].
        num_samples: how many draws of each row.
        dtype: an integer dtype for the result, [batch, num_samples].
        seed: as for `normal`.

    >>> import twofold as tf
    >>> tf.keras.random.categorical([[0.0, 100.0]], 3, seed=1).numpy().tolist()
    [[1, 1, 1]]
    """
    return _drawn(seed, lambda start: tf.random.stateless_categorical(logits, num_samples, start, tf.as_dtype(dtype)))


@public
def gamma(shape: Any, alpha: Any, dtype: Any = None, seed: Any = None) -> Any:
    """Gamma numbers of shape `alpha` and scale 1; the other arguments as for `normal`.

    >>> import twofold as tf
    >>> bool(tf.reduce_all(tf.keras.random.gamma([5], 2.0, seed=1) > 0))
    True
    """
    return _drawn(seed, lambda start: tf.random.stateless_gamma(shape, start, alpha, dtype=_dtype(dtype)))


@public
def beta(shape: Any, alpha: Any, beta: Any, dtype: Any = None, seed: Any = None) -> Any:
    """Beta numbers with parameters `alpha` and `beta`; the other arguments as for `normal`.

    >>> import twofold as tf
    >>> x = tf.keras.random.beta([5], 2.0, 3.0, seed=1)
    >>> bool(tf.reduce_all((x > 0) & (x < 1)))
    True
    """
    def draw(start: Any) -> Any:
        one = tf.random.stateless_gamma(shape, start, alpha, dtype=_dtype(dtype))
        other = tf.random.stateless_gamma(shape, start + tf.constant(12, start.dtype), beta, dtype=_dtype(dtype))
        return one / (one + other)
    return _drawn(seed, draw)


@public
def binomial(shape: Any, counts: Any, probabilities: Any, dtype: Any = None, seed: Any = None) -> Any:
    """How many of `counts` tries succeed, each with its probability; the other arguments as for `normal`.

    >>> import twofold as tf
    >>> tf.keras.random.binomial([2], 4.0, 1.0, seed=1).numpy().tolist()
    [4.0, 4.0]
    """
    return _drawn(seed, lambda start: tf.cast(
        tf.random.stateless_binomial(shape, start, counts, probabilities, tf.float32), _dtype(dtype)))


@public
def shuffle(x: Any, axis: int = 0, seed: Any = None) -> Any:
    """`x` with its slices along `axis` in random order.

    >>> import twofold as tf
    >>> sorted(tf.keras.random.shuffle([3, 1, 2], seed=1).numpy().tolist())
    [1, 2, 3]
    """
    x = tf.convert_to_tensor(x)
    size = tf.shape(x)[axis]
    return _drawn(seed, lambda start: tf.gather(x, tf.argsort(tf.random.stateless_uniform([size], start)), axis=axis))


@public
def dropout(inputs: Any, rate: Any, noise_shape: Any = None, seed: Any = None) -> Any:
    """Sets elements to 0 with probability `rate` and divides the others by `1 - rate`.

    Args:
        inputs: floating tensor.
        rate: a number in [0, 1].
        noise_shape: the shape of the random choices, which broadcast; None in it stands for the size of `inputs`.
        seed: as for `normal`.

    >>> import twofold as tf
    >>> tf.keras.random.dropout([1.0, 1.0], 0.0, seed=1).numpy().tolist()
    [1.0, 1.0]
    """
    inputs = tf.convert_to_tensor(inputs)
    if not inputs.dtype.is_floating:
        raise TypeError(f"dropout takes floating inputs, which it scales; got {inputs.dtype.name}.")
    if rate >= 1:
        return tf.zeros_like(inputs)
    sizes = tf.shape(inputs)
    if not isinstance(noise_shape, (type(None), list, tuple, tf.TensorShape, tf.Tensor, np.ndarray)):
        raise TypeError(f"noise_shape must be a sequence of sizes and None; got {describe(noise_shape)}.")
    shape = sizes if noise_shape is None else [
        sizes[axis] if size is None else size for axis, size in enumerate(noise_shape)]
    if rate == 0:
        return inputs
    scaled = inputs * number(1.0 / (1.0 - rate), inputs.dtype)
    return _drawn(seed, lambda start: tf.where(
        tf.random.stateless_uniform(shape, start, dtype=inputs.dtype) >= number(rate, inputs.dtype), scaled,
        tf.zeros((), inputs.dtype)))


publish(__name__)
