"""`tf.random.Generator`: a stream of random numbers as an object."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np

from twofold._front import replica
from twofold._front.api import ANY, ints, one_int, public, public_class, shape_arg, tensor
from twofold._ops import random_draws as draws
from twofold.eager.variable import Variable
from twofold.ir import dtypes as dt
from twofold.ir import ops
from twofold.ir.errors import InvalidArgumentError, UnimplementedError
from twofold.ir.math_draws import SKIP
from twofold.runtime import locks
from twofold.runtime import random as streams

from ..tracking import Trackable

__all__ = ["Algorithm", "Generator", "create_rng_state", "get_global_generator", "set_global_generator"]

_WORD = (1 << 64) - 1


class Algorithm(enum.Enum):
    """Names of algorithms. Philox4x32-10 is what every stream uses; of ThreeFry there are states, but no draws.

    >>> import twofold as tf
    >>> tf.random.Algorithm.PHILOX.value
    1
    """

    PHILOX = 1
    THREEFRY = 2
    AUTO_SELECT = 3


def _algorithm(alg: Any) -> Algorithm:
    """The algorithm that a name, a number or an `Algorithm` stands for; None for Philox."""
    if alg is None or isinstance(alg, Algorithm):
        return alg or Algorithm.PHILOX
    for known in Algorithm:
        if alg in (known.name.lower(), known.value):
            return known
    raise ValueError(f"alg must be 'philox', 'threefry' or 'auto_select'; got {alg!r}.")


def _size(alg: Algorithm) -> int:
    """How many integers a state has: the counter, of two or one, and the key."""
    return 2 if alg is Algorithm.THREEFRY else 3


def _signed(value: int) -> int:
    """64 bits as an int64."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def _seeded(seed: Any, alg: Algorithm = Algorithm.PHILOX) -> np.ndarray:
    """The start of a stream: an integer's 64-bit words, the lowest first, or integers after as many zeros as are
    missing; of too many the first."""
    size = _size(alg)
    if isinstance(seed, int):
        return np.array([_signed(seed >> 64 * n & _WORD) for n in range(size)], np.int64)
    words = [_signed(word & _WORD) for word in ints(seed, "seed", ANY)][:size]
    return np.array([0] * (size - len(words)) + words, np.int64)


@public
def create_rng_state(seed: Any, alg: Any = "philox") -> np.ndarray:
    """The state of a generator from a seed.

    Args:
        seed: an integer, or up to three of them.
        alg: "philox", "threefry" or "auto_select", a number or a `tf.random.Algorithm`.
    Returns:
        int64 array of three: counter (two) and key; of ThreeFry of two.
    Raises:
        ValueError: there is no such algorithm.

    >>> import twofold as tf
    >>> tf.random.create_rng_state(7, "philox").tolist()
    [7, 0, 0]
    """
    return _seeded(seed, _algorithm(alg))


def _key_counter(key: Any, counter: Any, alg: Algorithm) -> np.ndarray:
    words, wanted = ints(counter, "counter", ANY), _size(alg) - 1
    if len(words) != wanted:
        raise InvalidArgumentError(f"from_key_counter: counter must have length {wanted}; got {counter!r}.")
    return np.array([_signed(w) for w in (*words, one_int(key, "key"))], np.int64)


@public_class
class Generator(Trackable):
    """A stream of random numbers with its own state.

    Each draw takes the next part of the stream, so that the sequence of draws decides the numbers, and nothing else.
    Make one with `from_seed`, `from_non_deterministic_state`, `from_state`, `from_key_counter`, or of another one.

    Args:
        copy_from: a generator whose state is copied.
        state: int64[3], counter (two) and key; int64[2] of ThreeFry.
        alg: "philox" (default), "threefry" or "auto_select", a number or a `tf.random.Algorithm`.
    Raises:
        ValueError: neither a generator nor a state is given, or there is no such algorithm.

    >>> import twofold as tf
    >>> g, h = tf.random.Generator.from_seed(1), tf.random.Generator.from_seed(1)
    >>> bool(tf.reduce_all(g.normal([2, 3]) == h.normal([2, 3])))
    True
    """

    _saved_kind = "generator"  # what saved models call it
    _alg: Algorithm

    def __init__(self, copy_from: Generator | None = None, state: Any = None, alg: Any = None):
        if copy_from is not None:
            state, alg = copy_from.state, copy_from._alg
        elif state is None:
            raise ValueError("Generator: give copy_from or state, or use from_seed and its like.")
        self._alg, value = _algorithm(alg), tensor(state, dt.int64)
        if value.dims != (_size(self._alg),):
            raise InvalidArgumentError(f"Generator: state must have shape [{_size(self._alg)}]; got {value.shape}.")
        self._state_var = Variable(value, dtype=dt.int64, trainable=False, name="StateVar")

    # -- making one -------------------------------------------------------------------------------
    @classmethod
    def from_seed(cls, seed: Any, alg: Any = None) -> Generator:
        """A generator that the seed decides: an integer, or up to three of them."""
        return cls(state=_seeded(seed, _algorithm(alg)), alg=alg)

    @classmethod
    def from_non_deterministic_state(cls, alg: Any = None) -> Generator:
        """A generator with a key from the operating system's source of randomness."""
        words = [0, 0, _signed(streams.fresh_key())][-_size(_algorithm(alg)):]
        return cls(state=np.array(words, np.int64), alg=alg)

    @classmethod
    def from_state(cls, state: Any, alg: Any = None) -> Generator:
        """A generator with a state that another one had."""
        return cls(state=state, alg=alg)

    @classmethod
    def from_key_counter(cls, key: Any, counter: Any, alg: Any = None) -> Generator:
        """A generator with this key (an integer) and counter (two integers, the low one first)."""
        return cls(state=_key_counter(key, counter, _algorithm(alg)), alg=alg)

    # -- state ------------------------------------------------------------------------------------
    @property
    def state(self) -> Variable:
        """The state, an int64 variable of shape [3]."""
        return self._state_var

    @property
    def key(self) -> Any:
        """The key, an int64 scalar."""
        return self._state_var.read_value()[-1]

    @property
    def algorithm(self) -> int:
        """The number of the algorithm: 1 for Philox."""
        return int(self._alg.value)

    def reset(self, state: Any) -> None:
        """Takes a state that this or another generator had."""
        with replica.assigning_alike():
            self._state_var.assign(tensor(state, dt.int64))

    def reset_from_seed(self, seed: Any) -> None:
        """Goes to the start of the stream that the seed decides."""
        self.reset(_seeded(seed, self._alg))

    def reset_from_key_counter(self, key: Any, counter: Any) -> None:
        """Goes to this key and counter."""
        self.reset(_key_counter(key, counter, self._alg))

    def skip(self, delta: Any) -> Any:
        """Moves the stream on as a draw of `delta` numbers does, and returns the state before."""
        return self._skip(ops.multiply(tensor(delta, dt.int64), tensor(SKIP, dt.int64)))

    def _skip(self, blocks: Any) -> Any:
        if self._alg is Algorithm.THREEFRY:
            raise UnimplementedError(None, None, "Generator: draws are Philox's; ThreeFry has states alone.")
        blocks = tensor(blocks, dt.int64)
        before: list[Any] = []

        def moved(state: Any) -> Any:
            before[:] = [state]
            return ops.random_skip(state, blocks)
        with replica.assigning_alike():
            self._state_var._change(moved)
        return ops.identity(before[0])

    def split(self, count: int = 1) -> list[Generator]:
        """`count` generators with keys drawn from this one."""
        keys = self._draw((count,), dt.int64).numpy()
        return [Generator(state=np.array([0, 0, key], np.int64), alg=self._alg) for key in keys]

    def make_seeds(self, count: int = 1) -> Any:
        """Seeds for stateless draws: int64[2, count], a seed to a column."""
        seeds = self._draw((count,), dt.int64)
        return ops.concat(ops.expand_dims(seeds, axis=0), ops.fill(tensor(0, dt.int64), shape=(1, count)), axis=0)

    def _stream(self, blocks: Any) -> Any:
        state, of = self._skip(blocks), replica.here.get().number
        return state if not of else draws.replica_stream(state, of)

    def _draw(self, shape: tuple[Any, ...], dtype: dt.DType) -> Any:
        return draws.full_integers(self._stream, shape, dtype)

    # -- draws ------------------------------------------------------------------------------------
    def normal(self, shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = dt.float32,
               name: str | None = None) -> Any:
        """Normally distributed numbers; see `tf.random.normal`. `name` has no effect."""
        return draws.normal(self._stream, shape_arg(shape), mean, stddev, dt.as_dtype(dtype))

    def truncated_normal(self, shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = dt.float32,
                         name: str | None = None) -> Any:
        """Normally distributed numbers within two deviations; see `tf.random.truncated_normal`.

        `name` has no effect.
        """
        return draws.truncated_normal(self._stream, shape_arg(shape), mean, stddev, dt.as_dtype(dtype))

    def uniform(self, shape: Any, minval: Any = 0, maxval: Any = None, dtype: Any = dt.float32,
                name: str | None = None) -> Any:
        """Numbers uniform in [minval, maxval); see `tf.random.uniform`. `name` has no effect.

        Integers without bounds (None) are of all that the dtype has.
        """
        if minval is None and maxval is None and dt.as_dtype(dtype).is_integer:
            return self._draw(shape_arg(shape), dt.as_dtype(dtype))
        return draws.uniform(self._stream, shape_arg(shape), minval, maxval, dt.as_dtype(dtype))

    def uniform_full_int(self, shape: Any, dtype: Any = dt.uint64, name: str | None = None) -> Any:
        """Integers of which every bit is random: int32, int64, uint32 or uint64. `name` has no effect."""
        return self._draw(shape_arg(shape), dt.as_dtype(dtype))

    def binomial(self, shape: Any, counts: Any, probs: Any, dtype: Any = dt.int32, name: str | None = None) -> Any:
        """Binomial numbers by count and probability, both of which broadcast to `shape`.

        `name` has no effect.

        Source: Hoermann, "The generation of binomial random variates", J. Stat. Comput. Simul. 46 (1993).
        """
        return draws.binomial(self._stream, shape_arg(shape), counts, probs, dt.as_dtype(dtype))


_lock = locks.Lock()
_global: Generator | None = None


@public
def get_global_generator() -> Generator:
    """The generator that belongs to the program; made with an unpredictable key when first asked for.

    >>> import twofold as tf
    >>> tf.random.get_global_generator() is tf.random.get_global_generator()
    True
    """
    global _global
    with _lock:
        if _global is None:
            _global = Generator.from_non_deterministic_state()
        return _global


@public
def set_global_generator(generator: Generator) -> None:
    """Makes `generator` the one that `tf.random.get_global_generator` gives.

    >>> import twofold as tf
    >>> tf.random.set_global_generator(tf.random.Generator.from_seed(3))
    >>> tf.random.get_global_generator().state.numpy().tolist()
    [3, 0, 0]
    """
    global _global
    with _lock:
        _global = generator
