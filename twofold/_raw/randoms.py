"""Raw ops that draw: from the stream of two seeds, or of a key and a counter."""

from __future__ import annotations

from typing import Any

import twofold as tf
from twofold._front.api import shape_arg
from twofold._ops import random_draws as draws
from twofold._ops.raw_functions import key_counter, key_stream
from twofold.ir import ops

from .declared import known, op, refuse_others

__all__ = ["ROWS"]

ROWS = ""


# -- streams of two seeds -----------------------------------------------------------------------------
def _seeded(kind: str, seed: int, seed2: int) -> draws.Stream:
    """The stream of an op with these seeds, which public functions of the kind share."""
    return draws.pair_stream(kind, (int(seed), int(seed2)))


@op()
def random_standard_normal(shape: Any, dtype: Any, seed: int = 0, seed2: int = 0) -> Any:
    dtype = tf.as_dtype(dtype)
    return draws.normal(_seeded(f"normal {dtype.name}", seed, seed2), shape_arg(shape), 0.0, 1.0, dtype)


@op()
def truncated_normal(shape: Any, dtype: Any, seed: int = 0, seed2: int = 0) -> Any:
    dtype = tf.as_dtype(dtype)
    stream = _seeded(f"truncated_normal {dtype.name}", seed, seed2)
    return draws.truncated_normal(stream, shape_arg(shape), 0.0, 1.0, dtype)


@op()
def random_uniform(shape: Any, dtype: Any, seed: int = 0, seed2: int = 0) -> Any:
    dtype = tf.as_dtype(dtype)
    return draws.uniform(_seeded(f"uniform {dtype.name}", seed, seed2), shape_arg(shape), 0, 1, dtype)


@op()
def random_uniform_int(shape: Any, minval: Any, maxval: Any, seed: int = 0, seed2: int = 0) -> Any:
    low = tf.convert_to_tensor(minval)
    stream = _seeded(f"uniform {low.dtype.name}", seed, seed2)
    return draws.uniform(stream, shape_arg(shape), low, maxval, low.dtype)


@op()
def random_shuffle(value: Any, seed: int = 0, seed2: int = 0) -> Any:
    value = tf.convert_to_tensor(value)
    return draws.shuffle(_seeded(f"shuffle {value.dtype.name}", seed, seed2), value)


@op()
def multinomial(logits: Any, num_samples: Any, seed: int = 0, seed2: int = 0, output_dtype: Any = tf.int64) -> Any:
    logits, dtype = tf.convert_to_tensor(logits), tf.as_dtype(output_dtype)
    stream = _seeded(f"categorical {logits.dtype.name} {dtype.name}", seed, seed2)
    return draws.categorical(stream, logits, int(known(num_samples, "num_samples")), dtype)


@op()
def random_gamma(shape: Any, alpha: Any, seed: int = 0, seed2: int = 0) -> Any:
    alpha = tf.convert_to_tensor(alpha)
    stream = _seeded(f"gamma {alpha.dtype.name}", seed, seed2)
    return draws.gamma(stream, shape_arg(shape), alpha, None, alpha.dtype, before=True)


@op(name="RandomPoissonV2")
def random_poisson_v2(shape: Any, rate: Any, seed: int = 0, seed2: int = 0, dtype: Any = tf.int64) -> Any:
    rate, dtype = tf.convert_to_tensor(rate), tf.as_dtype(dtype)
    stream = _seeded(f"poisson {rate.dtype.name} {dtype.name}", seed, seed2)
    return draws.poisson(stream, shape_arg(shape), rate, dtype, before=True)


@op()
def random_gamma_grad(alpha: Any, sample: Any) -> Any:
    alpha, sample = tf.convert_to_tensor(alpha), tf.convert_to_tensor(sample)
    density = tf.exp((alpha - 1) * tf.math.log(sample) - sample - tf.math.lgamma(alpha))
    return -ops.igamma_grad_a(alpha, sample) / density


# -- classes that are drawn ---------------------------------------------------------------------------
_DRAWN = "sampled_candidates true_expected_count sampled_expected_count"


def _op_seed(seed: int, seed2: int) -> int | None:
    """The seed of a public function for the two of a raw op, of which TensorFlow makes the second of an op's own."""
    return (seed2 or seed) or None


@op(_DRAWN)
def all_candidate_sampler(true_classes: Any, num_true: int, num_sampled: int, unique: bool, seed: int = 0,
                          seed2: int = 0) -> Any:
    return tf.random.all_candidate_sampler(true_classes, num_true, num_sampled, unique)


@op(_DRAWN)
def uniform_candidate_sampler(true_classes: Any, num_true: int, num_sampled: int, unique: bool, range_max: int,
                              seed: int = 0, seed2: int = 0) -> Any:
    return tf.random.uniform_candidate_sampler(true_classes, num_true, num_sampled, unique, range_max,
                                               _op_seed(seed, seed2))


@op(_DRAWN)
def log_uniform_candidate_sampler(true_classes: Any, num_true: int, num_sampled: int, unique: bool, range_max: int,
                                  seed: int = 0, seed2: int = 0) -> Any:
    return tf.random.log_uniform_candidate_sampler(true_classes, num_true, num_sampled, unique, range_max,
                                                   _op_seed(seed, seed2))


@op(_DRAWN)
def fixed_unigram_candidate_sampler(true_classes: Any, num_true: int, num_sampled: int, unique: bool, range_max: int,
                                    vocab_file: str = "", distortion: float = 1, num_reserved_ids: int = 0,
                                    num_shards: int = 1, shard: int = 0, unigrams: Any = [],  # noqa: B006
                                    seed: int = 0, seed2: int = 0) -> Any:
    return tf.random.fixed_unigram_candidate_sampler(
        true_classes, num_true, num_sampled, unique, range_max, vocab_file, distortion, num_reserved_ids, num_shards,
        shard, unigrams, _op_seed(seed, seed2))


@op("indices ids weights")
def compute_accidental_hits(true_classes: Any, sampled_candidates: Any, num_true: int, seed: int = 0,
                            seed2: int = 0) -> Any:
    return tf.nn.compute_accidental_hits(true_classes, sampled_candidates, num_true)


# -- streams of a key and a counter -------------------------------------------------------------------


@op()
def stateless_random_get_alg() -> Any:
    return tf.constant(1)  # Philox


@op("key counter alg")
def stateless_random_get_key_counter_alg(seed: Any) -> Any:
    return *key_counter(seed), stateless_random_get_alg()


@op()
def stateless_random_uniform_int(shape: Any, seed: Any, minval: Any, maxval: Any) -> Any:
    low = tf.convert_to_tensor(minval)
    return tf.random.stateless_uniform(shape, seed, low, maxval, low.dtype)


@op(name="StatelessRandomGammaV3")
def stateless_random_gamma_v3(shape: Any, key: Any, counter: Any, alg: Any, alpha: Any) -> Any:
    alpha = tf.convert_to_tensor(alpha)
    return draws.gamma(key_stream(key, counter, alg), shape_arg(shape), alpha, None, alpha.dtype, before=False)


@op(name="StatelessRandomGammaV2")
def stateless_random_gamma_v2(shape: Any, seed: Any, alpha: Any) -> Any:
    alpha = tf.convert_to_tensor(alpha)
    return tf.random.stateless_gamma(shape, seed, alpha, dtype=alpha.dtype)


# -- streams of variables -----------------------------------------------------------------------------
def _of_variable(resource: Any, algorithm: Any) -> draws.Stream:
    """The stream of a generator's state, which moves on."""
    draws.like_of(int(known(algorithm, "algorithm")))

    def state(blocks: Any) -> Any:
        before = resource.read_value()
        resource.assign(ops.random_skip(before, tf.cast(blocks, tf.int64)))
        return before
    return state


@op(name="StatefulStandardNormalV2")
def stateful_standard_normal_v2(resource: Any, algorithm: Any, shape: Any, dtype: Any = tf.float32) -> Any:
    return draws.normal(_of_variable(resource, algorithm), shape_arg(shape), 0.0, 1.0, tf.as_dtype(dtype))


@op()
def stateful_truncated_normal(resource: Any, algorithm: Any, shape: Any, dtype: Any = tf.float32) -> Any:
    return draws.truncated_normal(_of_variable(resource, algorithm), shape_arg(shape), 0.0, 1.0, tf.as_dtype(dtype))


@op()
def stateful_uniform(resource: Any, algorithm: Any, shape: Any, dtype: Any = tf.float32) -> Any:
    return draws.uniform(_of_variable(resource, algorithm), shape_arg(shape), 0, 1, tf.as_dtype(dtype))


@op()
def stateful_uniform_full_int(resource: Any, algorithm: Any, shape: Any, dtype: Any = tf.uint64) -> Any:
    return draws.full_integers(_of_variable(resource, algorithm), shape_arg(shape), tf.as_dtype(dtype))


@op()
def stateful_uniform_int(resource: Any, algorithm: Any, shape: Any, minval: Any, maxval: Any) -> Any:
    low = tf.convert_to_tensor(minval, dtype_hint=tf.int64)
    return draws.uniform(_of_variable(resource, algorithm), shape_arg(shape), low, maxval, low.dtype)


@op()
def stateful_random_binomial(resource: Any, algorithm: Any, shape: Any, counts: Any, probs: Any,
                             dtype: Any = tf.int64) -> Any:
    return draws.binomial(_of_variable(resource, algorithm), shape_arg(shape), counts, probs, tf.as_dtype(dtype))


@op()
def rng_read_and_skip(resource: Any, alg: Any, delta: Any) -> Any:
    """The state as it was; it moves on by as many draws, each of which has 256 blocks."""
    return _of_variable(resource, alg)(tf.bitcast(tf.cast(delta, tf.uint64), tf.int64) * draws.SKIP)


@op()
def rng_skip(resource: Any, algorithm: Any, delta: Any) -> None:
    _of_variable(resource, algorithm)(tf.cast(delta, tf.int64) * draws.SKIP)


@op()
def stateless_shuffle(value: Any, key: Any, counter: Any, alg: Any) -> Any:
    return draws.shuffle(key_stream(key, counter, alg), tf.convert_to_tensor(value))


@op()
def random_index_shuffle(index: Any, seed: Any, max_index: Any, rounds: int = 4) -> Any:
    """With three words of a seed, of which the first is the one that TensorFlow's public function puts there."""
    words = tf.convert_to_tensor(seed)
    refuse_others("RandomIndexShuffle", rounds=(rounds, 4),
                  the_first_word_of_seed=(known(words, "seed").ravel()[0].item(), 498247692))
    return tf.random.experimental.index_shuffle(index, words[..., 1:], max_index)


@op()
def non_deterministic_ints(shape: Any, dtype: Any = tf.int64) -> Any:
    return draws.full_integers(_seeded("non_deterministic_ints", 0, 0), shape_arg(shape), tf.as_dtype(dtype))
