"""Losses over many classes that look at a sample of them, and what draws the samples.

Sources: Jean et al., "On using very large target vocabulary for neural machine translation" (2015); Gutmann &
Hyvarinen, "Noise-contrastive estimation" (2010). Draws without repetition are made by drawing until there are enough
different classes, as in TensorFlow: how often that was decides the expected counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import twofold as tf
from twofold._front import iteration as engine
from twofold._front.api import one_int, public
from twofold._front.hosted import hosted

__all__ = ["all_candidate_sampler", "compute_accidental_hits", "drawn_classes", "fixed_unigram_candidate_sampler",
           "log_uniform_candidate_sampler", "nce_loss", "sampled_softmax_loss", "uniform_candidate_sampler"]

_HIT = float(-np.finfo(np.float32).max)  # what a class that was drawn by accident gets added to its logit


# -- samplers -------------------------------------------------------------------------------------------
class Candidates(NamedTuple):
    """What a sampler gives: the classes, and how often the true ones and these were to be expected."""

    sampled_candidates: Any
    true_expected_count: Any
    sampled_expected_count: Any


@hosted
def drawn_classes(seed: Any, kind: str, count: int, unique: bool, most: int, shares: Sequence[float]) -> Any:
    """Classes that are drawn, int64 [count], and how many draws that took, int64.

    Args:
        seed: int64 [2].
        kind: "uniform" or "log_uniform" below `most`, or "unigram" by `shares`.
        unique: whether each class is drawn once.
    """
    def drawn(*tensors: Any) -> list[Any]:
        (numbers,) = (engine.array_of(t) for t in tensors)
        draw = _drawer(np.random.default_rng([int(n) & 0xFFFFFFFF for n in numbers]), kind, most, shares)
        classes, tries = _distinct(draw, count) if unique else (draw(count), count)
        return [engine.tensor_of(np.asarray(classes, np.int64)), engine.tensor_of(np.array(tries, np.int64))]
    return engine.host_call(drawn, "candidate_sampler", [seed],
                            [tf.TensorSpec([count], tf.int64), tf.TensorSpec([], tf.int64)])


def _drawer(rng: np.random.Generator, kind: str, most: int, shares: Sequence[float]) -> Callable[[int], np.ndarray]:
    if kind == "uniform":
        return lambda count: rng.integers(0, most, count)
    if kind == "log_uniform":
        def draw(count: int) -> np.ndarray:
            return np.minimum(np.exp(rng.random(count) * np.log1p(most)).astype(np.int64) - 1, most - 1)
        return draw
    ends = np.cumsum(shares)
    return lambda count: np.minimum(np.searchsorted(ends, rng.random(count) * ends[-1], side="right"), len(ends) - 1)


def _distinct(draw: Callable[[int], np.ndarray], count: int) -> tuple[list[int], int]:
    """The first `count` different classes, and how many draws they took."""
    seen: dict[int, None] = {}
    tries = 0
    while len(seen) < count:
        for n in draw(max(count, 64)).tolist():
            tries += 1
            seen.setdefault(n)
            if len(seen) == count:
                break
    return list(seen), tries


def _sampled(op: str, true_classes: Any, num_true: Any, num_sampled: Any, unique: Any, most: int, seed: Any, kind: str,
             probability: Callable[[Any], Any], shares: Sequence[float] = (),
             possible: int | None = None) -> Candidates:
    true_classes, count = _true(op, true_classes, num_true), one_int(num_sampled, "num_sampled")
    possible = most if possible is None else possible
    if count < 1 or unique and count > possible:
        raise ValueError(f"{op}: num_sampled must be from 1 to the {possible} classes, where they are unique; got "
                         f"{count}.")
    start = tf.random.uniform([2], 0, 2**31 - 1, tf.int64, seed=seed)
    classes, tries = drawn_classes(start, kind, count, bool(unique), most, tuple(shares))

    def expected(which: Any) -> Any:
        p = probability(which)
        once = tf.negative(tf.math.expm1(tf.cast(tries, tf.float32) * tf.math.log1p(-p)))
        return tf.where(tf.equal(tries, count), p * float(count), once)
    return Candidates(classes, expected(true_classes), expected(classes))


def _true(op: str, true_classes: Any, num_true: Any) -> Any:
    true_classes, number = tf.cast(true_classes, tf.int64), one_int(num_true, "num_true")
    if true_classes.shape.rank != 2 or true_classes.shape[1] not in (None, number):
        raise ValueError(f"{op}: true_classes must be [batch, num_true], here [batch, {number}]; got shape "
                         f"{true_classes.shape}.")
    return true_classes


def _most(op: str, range_max: Any) -> int:
    most = one_int(range_max, "range_max")
    if most < 1:
        raise ValueError(f"{op}: range_max must be above 0; got {most}.")
    return most


@public
def uniform_candidate_sampler(true_classes: Any, num_true: Any, num_sampled: Any, unique: Any, range_max: Any,
                              seed: Any = None, name: str | None = None) -> Candidates:
    """Draws classes that are all alike likely.

    Args:
        true_classes: integers [batch, num_true].
        num_true: how many true classes each example has.
        num_sampled: how many classes are drawn for the batch.
        unique: whether each of them is drawn once.
        range_max: how many classes there are.
        seed: of the op, see `tf.random.set_seed`.
        name: accepted, without effect.
    Returns:
        The classes, int64 [num_sampled]; how often the true ones were to be expected among them, float32 like
        `true_classes`; and how often they themselves were, float32 [num_sampled].
    Raises:
        ValueError: a number is too small, or more unique classes than there are.

    >>> import twofold as tf
    >>> drawn = tf.random.uniform_candidate_sampler([[0]], 1, 3, True, 3)
    >>> sorted(drawn.sampled_candidates.numpy().tolist())
    [0, 1, 2]
    """
    most = _most("uniform_candidate_sampler", range_max)
    return _sampled("uniform_candidate_sampler", true_classes, num_true, num_sampled, unique, most, seed, "uniform",
                    lambda which: tf.ones_like(which, tf.float32) / float(most))


@public
def log_uniform_candidate_sampler(true_classes: Any, num_true: Any, num_sampled: Any, unique: Any, range_max: Any,
                                  seed: Any = None, name: str | None = None) -> Candidates:
    """Draws classes that are numbered by falling frequency (Zipf): `log((k + 2) / (k + 1)) / log(range_max + 1)`.

    Args:
        true_classes: integers [batch, num_true].
        num_true: how many true classes each example has.
        num_sampled: how many classes are drawn for the batch.
        unique: whether each of them is drawn once.
        range_max: how many classes there are.
        seed: of the op, see `tf.random.set_seed`.
        name: accepted, without effect.
    Returns:
        The classes, int64 [num_sampled]; how often the true ones were to be expected among them, float32 like
        `true_classes`; and how often they themselves were, float32 [num_sampled].
    Raises:
        ValueError: a number is too small, or more unique classes than there are.

    >>> import twofold as tf
    >>> drawn = tf.random.log_uniform_candidate_sampler([[0]], 1, 2, False, 3)
    >>> drawn.true_expected_count.numpy().tolist()
    [[1.0]]
    """
    most = _most("log_uniform_candidate_sampler", range_max)
    whole = float(np.log1p(most))
    return _sampled("log_uniform_candidate_sampler", true_classes, num_true, num_sampled, unique, most, seed,
                    "log_uniform", lambda which: tf.math.log1p(1.0 / (tf.cast(which, tf.float32) + 1.0)) / whole)


@public
def fixed_unigram_candidate_sampler(true_classes: Any, num_true: Any, num_sampled: Any, unique: Any, range_max: Any,
                                    vocab_file: str = "", distortion: float = 1.0, num_reserved_ids: int = 0,
                                    num_shards: int = 1, shard: int = 0, unigrams: Sequence[float] = (),
                                    seed: Any = None, name: str | None = None) -> Candidates:
    """Draws classes by given frequencies.

    Args:
        true_classes: integers [batch, num_true].
        num_true: how many true classes each example has.
        num_sampled: how many classes are drawn for the batch.
        unique: whether each of them is drawn once.
        range_max: how many classes there are.
        vocab_file: a file of lines whose last part, behind a comma, is a class's frequency; or use `unigrams`.
        distortion: the power to which frequencies are raised.
        num_reserved_ids: how many classes come before those of the frequencies; they are not drawn.
        num_shards, shard: draw only classes with this remainder.
        unigrams: the frequencies.
        seed: of the op, see `tf.random.set_seed`.
        name: accepted, without effect.
    Returns:
        The classes, int64 [num_sampled]; how often the true ones were to be expected among them, float32 like
        `true_classes`; and how often they themselves were, float32 [num_sampled].
    Raises:
        ValueError: a number is too small, more unique classes than there are, both or neither of the frequencies.

    >>> import twofold as tf
    >>> drawn = tf.random.fixed_unigram_candidate_sampler([[1]], 1, 4, False, 2, unigrams=[3.0, 1.0])
    >>> drawn.true_expected_count.numpy().tolist()
    [[1.0]]
    """
    op = "fixed_unigram_candidate_sampler"
    most = _most(op, range_max)
    if bool(vocab_file) == bool(len(unigrams)):
        raise ValueError(f"{op}: give either vocab_file or unigrams.")
    counts = [float(u) for u in unigrams] if len(unigrams) else _frequencies(vocab_file)
    powers = [0.0] * num_reserved_ids + [u**distortion for u in counts]
    if len(powers) != most:
        raise ValueError(f"{op}: there are {len(powers)} frequencies with those reserved; range_max is {most}.")
    if not 0 <= shard < num_shards:
        raise ValueError(f"{op}: shard must be from 0 to num_shards - 1; got {shard} of {num_shards}.")
    powers = [p if n % num_shards == shard else 0.0 for n, p in enumerate(powers)]
    total = sum(powers)
    shares = tf.constant(np.array([p / total for p in powers], np.float32))
    return _sampled(op, true_classes, num_true, num_sampled, unique, most, seed, "unigram",
                    lambda which: tf.gather(shares, which), powers, sum(p > 0 for p in powers))


def _frequencies(file: str) -> list[float]:
    with tf.io.gfile.GFile(file) as lines:
        return [float(line.rsplit(",", 1)[-1]) for line in lines if line.strip()]


@public
def all_candidate_sampler(true_classes: Any, num_true: Any, num_sampled: Any, unique: Any, seed: Any = None,
                          name: str | None = None) -> Candidates:
    """All classes: what a loss over a sample is tried out with.

    Args:
        true_classes: integers [batch, num_true].
        num_true: how many true classes each example has.
        num_sampled: how many classes there are.
        unique: accepted, without effect.
        seed: accepted, without effect.
        name: accepted, without effect.
    Returns:
        The classes, int64 [num_sampled], and ones like `true_classes` and like the classes, float32.
    Raises:
        ValueError: a number is too small.

    >>> import twofold as tf
    >>> tf.random.all_candidate_sampler([[0]], 1, 3, True).sampled_candidates.numpy().tolist()
    [0, 1, 2]
    """
    true_classes, count = _true("all_candidate_sampler", true_classes, num_true), one_int(num_sampled, "num_sampled")
    if count < 1:
        raise ValueError(f"all_candidate_sampler: num_sampled must be above 0; got {count}.")
    classes = tf.range(count, dtype=tf.int64)
    return Candidates(classes, tf.ones_like(true_classes, tf.float32), tf.ones_like(classes, tf.float32))


@public
def compute_accidental_hits(true_classes: Any, sampled_candidates: Any, num_true: Any, seed: Any = None,
                            name: str | None = None) -> tuple[Any, Any, Any]:
    """Where drawn classes are true ones.

    Args:
        true_classes: integers [batch, num_true].
        sampled_candidates: integers [drawn].
        num_true: how many true classes each example has.
        seed: accepted, without effect.
        name: accepted, without effect.
    Returns:
        The examples, int32 [hits]; the places of the classes among those drawn, int64; and for each hit the lowest
        float32, to be added to the logit.
    Raises:
        ValueError: shapes do not fit.

    >>> import twofold as tf
    >>> [x.numpy().tolist() for x in tf.nn.compute_accidental_hits([[1], [5]], [5, 6], 1)[:2]]
    [[1], [0]]
    """
    true_classes = _true("compute_accidental_hits", true_classes, num_true)
    drawn = tf.cast(sampled_candidates, tf.int64)
    same = tf.equal(true_classes[:, :, tf.newaxis], drawn)
    hits = tf.where(tf.reduce_any(same, axis=2))
    # the last of those that are drawn several times
    places = tf.shape(drawn, tf.int64)[0] - 1 - tf.argmax(tf.cast(same[:, :, ::-1], tf.int32), axis=2)
    return (tf.cast(hits[:, 0], tf.int32), tf.gather_nd(places, hits),
            tf.fill(tf.shape(hits)[:1], tf.constant(_HIT)))


# -- losses ---------------------------------------------------------------------------------------------
def _logits(op: str, weights: Any, biases: Any, labels: Any, inputs: Any, num_sampled: Any, num_classes: Any,
            num_true: Any, sampled_values: Any, remove_hits: bool, seed: Any) -> tuple[Any, Any]:
    """The logits of the true and of the drawn classes, less the logarithms of their expected counts; and the labels."""
    weights = tf.concat(list(weights), 0) if isinstance(weights, (list, tuple)) else tf.convert_to_tensor(weights)
    biases = tf.concat(list(biases), 0) if isinstance(biases, (list, tuple)) else tf.convert_to_tensor(biases)
    inputs, labels, number = tf.convert_to_tensor(inputs), _true(op, labels, num_true), one_int(num_true, "num_true")
    if sampled_values is None:
        sampled_values = log_uniform_candidate_sampler(labels, num_true, num_sampled, True, num_classes, seed)
    drawn, true_count, drawn_count = (tf.stop_gradient(v) for v in sampled_values)
    drawn = tf.cast(drawn, tf.int64)
    true_weights = tf.gather(weights, labels)
    true_logits = tf.reduce_sum(tf.expand_dims(inputs, 1) * true_weights, axis=2) + tf.gather(biases, labels)
    drawn_logits = tf.matmul(inputs, tf.gather(weights, drawn), transpose_b=True) + tf.gather(biases, drawn)
    if remove_hits:
        hit = tf.reduce_any(tf.equal(labels[:, :, tf.newaxis], drawn), axis=1)
        drawn_logits += tf.where(hit, tf.constant(_HIT, inputs.dtype), tf.zeros((), inputs.dtype))
    true_logits -= tf.math.log(tf.cast(true_count, inputs.dtype))
    drawn_logits -= tf.math.log(tf.cast(drawn_count, inputs.dtype))
    ones = tf.ones_like(true_logits) / float(number)
    return (tf.concat([true_logits, drawn_logits], 1),
            tf.stop_gradient(tf.concat([ones, tf.zeros_like(drawn_logits)], 1)))


@public
def nce_loss(weights: Any, biases: Any, labels: Any, inputs: Any, num_sampled: Any, num_classes: Any, num_true: Any = 1,
             sampled_values: Any = None, remove_accidental_hits: bool = False, name: str | None = "nce_loss") -> Any:
    """The noise-contrastive loss: true classes told from drawn ones.

    Args:
        weights: floats [num_classes, size], or a list of parts.
        biases: floats [num_classes].
        labels: integers [batch, num_true].
        inputs: floats [batch, size].
        num_sampled: how many classes are drawn for the batch.
        num_classes: how many there are.
        num_true: how many true classes each example has.
        sampled_values: what a sampler gave; by default `tf.random.log_uniform_candidate_sampler` draws.
        remove_accidental_hits: whether drawn classes that are true ones are left out.
        name: accepted, without effect.
    Returns:
        Floats [batch].
    Raises:
        ValueError: shapes do not fit.

    >>> import twofold as tf
    >>> drawn = tf.random.all_candidate_sampler([[0]], 1, 2, True)
    >>> tf.nn.nce_loss(tf.zeros([2, 3]), tf.zeros([2]), [[0]], tf.ones([1, 3]), 2, 2, sampled_values=drawn).numpy()
    array([2.0794415], dtype=float32)
    """
    logits, labels = _logits("nce_loss", weights, biases, labels, inputs, num_sampled, num_classes, num_true,
                             sampled_values, remove_accidental_hits, None)
    return tf.reduce_sum(tf.nn.sigmoid_cross_entropy_with_logits(labels, logits), axis=1)


@public
def sampled_softmax_loss(weights: Any, biases: Any, labels: Any, inputs: Any, num_sampled: Any, num_classes: Any,
                         num_true: Any = 1, sampled_values: Any = None, remove_accidental_hits: bool = True,
                         seed: Any = None, name: str | None = "sampled_softmax_loss") -> Any:
    """The cross entropy of a softmax over the true classes and drawn ones.

    Args:
        weights: floats [num_classes, size], or a list of parts.
        biases: floats [num_classes].
        labels: integers [batch, num_true].
        inputs: floats [batch, size].
        num_sampled: how many classes are drawn for the batch.
        num_classes: how many there are.
        num_true: how many true classes each example has.
        sampled_values: what a sampler gave; by default `tf.random.log_uniform_candidate_sampler` draws.
        remove_accidental_hits: whether drawn classes that are true ones are left out.
        seed: of that sampler.
        name: accepted, without effect.
    Returns:
        Floats [batch].
    Raises:
        ValueError: shapes do not fit.

    >>> import twofold as tf
    >>> drawn = tf.random.all_candidate_sampler([[0]], 1, 2, True)
    >>> loss = tf.nn.sampled_softmax_loss(tf.zeros([2, 3]), tf.zeros([2]), [[0]], tf.ones([1, 3]), 2, 2,
    ...                                   sampled_values=drawn)
    >>> loss.numpy()
    array([0.6931472], dtype=float32)
    """
    logits, labels = _logits("sampled_softmax_loss", weights, biases, labels, inputs, num_sampled, num_classes,
                             num_true, sampled_values, remove_accidental_hits, seed)
    return tf.nn.softmax_cross_entropy_with_logits(labels, logits)
