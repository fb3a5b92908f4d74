"""What random draws give: Philox's known answers, the distributions' shape, and the same numbers for the same seed.

Seeds are fixed, so a statistical test either always passes or never does; 0.001 bounds its p-value.
"""

from __future__ import annotations

import functools
import subprocess
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.stats as st
from quick.start import python

import twofold as tf
from twofold.ir import dtypes as dt
from twofold.ir import math_random, math_words, ops, reference, scalar
from twofold.ir.ops import random as ops_random
from twofold.runtime import random as streams
from twofold.runtime import threads

N = 100_000
STREAM = np.array([11, 5, 20240229], np.int64)
LEAST = 0.001

# From kat_vectors of the Random123 distribution: counter, key, result.
KNOWN = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    ((0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0),
     (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1)),
]


@pytest.fixture(autouse=True)
def _unseeded():
    yield
    tf.random.set_seed(None)


def signed(words: tuple[int, ...]) -> int:
    value = words[0] | words[1] << 32
    return value - (1 << 64) if value >> 63 else value


# -- Philox -------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("counter", "key", "words"), KNOWN)
def test_philox_gives_the_known_answers(counter, key, words) -> None:
    body = scalar.build(lambda s, *x: math_random.philox(s, x[:4], x[4:]), (dt.uint32,) * 6)
    assert tuple(map(int, reference.evaluate(body, *map(np.uint32, counter + key)))) == words
    stream = np.array([signed(counter[:2]), signed(counter[2:]), signed(key)], np.int64)
    assert tuple(ops.random_bits(stream, shape=(4,)).numpy().tolist()) == words
    halves = [x[0] | x[1] << 32 for x in (counter[:2], counter[2:], key)]
    assert math_words.block(*halves) == words == tuple(math_words.blocks(*halves, 0, 1)[0].tolist())


def test_a_stream_goes_on_over_its_carry() -> None:
    before = np.array([-2, 7, 1], np.int64)  # two blocks before the low half of the counter overflows
    whole = ops.random_bits(before, shape=(16,)).numpy()
    for blocks in (1, 2, 3):
        after = ops.random_skip(before, blocks)
        assert (ops.random_bits(after, shape=(16 - 4 * blocks,)).numpy() == whole[4 * blocks:]).all()


@pytest.mark.parametrize("like", ["twofold", "tensorflow"])
@pytest.mark.parametrize("distribution", ["uniform", "normal", "truncated_normal"])
def test_numbers_do_not_depend_on_threads(distribution, like) -> None:
    draw = functools.partial(getattr(ops, f"random_{distribution}"), like=like)
    count = threads.get_num_threads()
    try:
        draws = []
        for number in (1, 2, 3):
            threads.set_num_threads(number)
            draws.append(draw(STREAM, shape=(N + 1,)).numpy())
    finally:
        threads.set_num_threads(count)
    assert all((f == draws[0]).all() for f in draws)


# -- distributions ------------------------------------------------------------------------------------
@pytest.mark.parametrize("like", ["twofold", "tensorflow"])
@pytest.mark.parametrize("dtype", [dt.float32, dt.float64])
@pytest.mark.parametrize(("name", "known"), [("uniform", st.uniform()), ("normal", st.norm()),
                                             ("truncated_normal", st.truncnorm(-2, 2))])
def test_continuous_distributions(name, known, dtype, like) -> None:
    x = getattr(ops, f"random_{name}")(STREAM, shape=(N,), dtype=dtype, like=like).numpy().astype(np.float64)
    assert st.kstest(x, known.cdf).pvalue > LEAST
    assert abs(x.mean() - known.mean()) < 4 * known.std() / np.sqrt(N)
    assert abs(x.var() / known.var() - 1) < 0.03
    assert abs(np.corrcoef(x[:-1], x[1:])[0, 1]) < 4 / np.sqrt(N)
    assert len(np.unique(x)) > 0.98 * N


@pytest.mark.parametrize(("dtype", "step"), [(dt.float16, 2.0**-11), (dt.bfloat16, 2.0**-8)])
def test_16_bit_uniform_numbers_take_every_step(dtype, step) -> None:
    x = ops.random_uniform(STREAM, shape=(N,), dtype=dtype).numpy().astype(np.float64) / step
    assert (x == np.round(x)).all()
    assert st.chisquare(np.bincount(x.astype(int), minlength=round(1 / step))).pvalue > LEAST


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16, tf.float32, tf.float64])
def test_uniform_bounds_hold(dtype) -> None:
    x = tf.random.uniform([N], -3.0, 1.5, dtype, seed=1).numpy().astype(np.float64)
    assert x.min() >= -3.0 and x.max() <= 1.5  # which rounding may reach
    assert abs(x.mean() + 0.75) < 0.03


@pytest.mark.parametrize("dtype", sorted(dt.INTEGER, key=str))
def test_integers_are_uniform(dtype) -> None:
    x = tf.random.uniform([N], 3, 13, dtype, seed=2).numpy()
    assert x.min() == 3 and x.max() == 12
    assert st.chisquare(np.bincount(x)[3:]).pvalue > LEAST


def test_integers_over_nearly_all_of_64_bits() -> None:
    x = tf.random.uniform([N], tf.int64.min, tf.int64.max, tf.int64, seed=3).numpy()
    assert st.kstest(x / 2.0**64 + 0.5, "uniform").pvalue > LEAST


@pytest.mark.parametrize(("low", "high"), [(1, 10**9), (-5, 7), (0, 1), (-2**31, 2**31 - 1)])
def test_integers_without_a_kernel_are_those_of_their_stream(low, high) -> None:
    tf.random.set_seed(high)
    alone = [streams.integer(low, high, ops_random.mix) for _ in range(3)]
    tf.random.set_seed(high)
    parts = [ops.random_state(np.int64(1), purpose="uniform") for _ in range(3)]
    assert alone == [int(ops.random_integers(part, np.int64(low), np.int64(high), shape=())) for part in parts]


def test_every_bit_is_even() -> None:
    for dtype, bits in ((tf.uint32, 32), (tf.uint64, 64)):
        x = tf.random.Generator.from_seed(4).uniform_full_int([N], dtype).numpy()
        ones = [int(((x >> np.asarray(i, x.dtype)) & np.asarray(1, x.dtype)).sum()) for i in range(bits)]
        assert max(abs(n - N / 2) for n in ones) < 5 * np.sqrt(N) / 2


@pytest.mark.parametrize("alpha", [0.05, 0.5, 1.0, 3.3, 100.0])
def test_gamma(alpha) -> None:
    x = tf.random.gamma([N], alpha, beta=2.0, dtype=tf.float64, seed=5).numpy()
    assert st.kstest(x, st.gamma(alpha, scale=0.5).cdf).pvalue > LEAST


def chi2(x: np.ndarray, known) -> float:
    """The p-value of counts, the rare ones taken together."""
    values = np.arange(known.ppf(1e-4), known.ppf(1 - 1e-4) + 1)
    expected = known.pmf(values) * len(x)
    counts = np.array([(x == v).sum() for v in values])
    return st.chisquare([*counts, len(x) - counts.sum()], [*expected, len(x) - expected.sum()]).pvalue


@pytest.mark.parametrize("mean", [0.1, 3.0, 9.99, 10.0, 50.0, 1000.0])
def test_poisson(mean) -> None:
    assert chi2(tf.random.poisson([N], mean, tf.float64, seed=6).numpy(), st.poisson(mean)) > LEAST


@pytest.mark.parametrize(("count", "prob"), [(1, 0.3), (20, 0.2), (20, 0.9), (100, 0.3), (1000, 0.7)])
def test_binomial(count, prob) -> None:
    x = tf.random.Generator.from_seed(7).binomial([N], float(count), prob)
    assert x.dtype == tf.int32
    assert chi2(x.numpy(), st.binom(count, prob)) > LEAST


def test_parameters_without_a_distribution_give_nan() -> None:
    bad = [-1.0, np.nan, np.inf]
    assert np.isnan(tf.random.poisson([4], bad).numpy()).all()
    assert np.isnan(tf.random.gamma([4], [-1.0, 0.0, np.nan]).numpy()).all()
    assert np.isnan(ops.random_binomial(STREAM, np.ones(3), np.array([-0.1, 1.1, np.nan]), shape=(3,)).numpy()).all()
    assert (tf.random.poisson([5], 0.0).numpy() == 0).all()


def test_categorical() -> None:
    probs = np.array([[0.1, 0.0, 0.6, 0.3], [0.25, 0.25, 0.25, 0.25]])
    with np.errstate(divide="ignore"):
        logits = np.log(probs) + 7
    x = tf.random.categorical(logits, N, seed=8).numpy()
    for row, p in zip(x, probs, strict=True):
        counts = np.bincount(row, minlength=4)
        assert (counts[p == 0] == 0).all()
        assert st.chisquare(counts[p > 0], p[p > 0] * N).pvalue > LEAST


def test_shuffle_is_uniform_over_permutations() -> None:
    orders = [tuple(tf.random.stateless_shuffle([0, 1, 2], seed=[9, i]).numpy().tolist()) for i in range(1200)]
    _, counts = np.unique(orders, axis=0, return_counts=True)
    assert len(counts) == 6 and st.chisquare(counts).pvalue > LEAST


def test_shuffle_keeps_rows() -> None:
    x = np.arange(200).reshape(100, 2)
    y = tf.random.shuffle(x, seed=1).numpy()
    assert (y[:, 1] == y[:, 0] + 1).all() and not (y == x).all()
    assert sorted(y[:, 0].tolist()) == x[:, 0].tolist()


# -- seeds --------------------------------------------------------------------------------------------
DRAWS = {
    "normal": lambda seed: tf.random.normal([5], seed=seed), "uniform": lambda seed: tf.random.uniform([5], seed=seed),
    "integers": lambda seed: tf.random.uniform([5], 0, 10**6, tf.int32, seed=seed),
    "truncated": lambda seed: tf.random.truncated_normal([5], seed=seed),
    "shuffle": lambda seed: tf.random.shuffle(tf.range(50), seed=seed),
    "categorical": lambda seed: tf.random.categorical(tf.zeros([1, 1000]), 5, seed=seed),
    "gamma": lambda seed: tf.random.gamma([5], 2.0, seed=seed),
    "poisson": lambda seed: tf.random.poisson([5], 500.0, seed=seed)}


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
@pytest.mark.parametrize("seed", [None, 3])
def test_set_seed_repeats_the_sequence(draw, seed) -> None:
    def sequence(number):
        tf.random.set_seed(number)
        return [draw(seed).numpy().tolist() for _ in range(3)]

    first = sequence(1)
    assert first == sequence(1)
    assert len({str(d) for d in first}) == 3
    assert first != sequence(2)


def test_an_op_seed_has_a_stream_of_its_own() -> None:
    tf.random.set_seed(1)
    first = tf.random.normal([3], seed=5).numpy()
    tf.random.set_seed(1)
    tf.random.normal([7])
    tf.random.uniform([7], seed=5)
    tf.random.normal([7], seed=6)
    assert (tf.random.normal([3], seed=5).numpy() == first).all()


def test_without_a_global_seed_op_seeds_repeat_between_processes_and_others_do_not() -> None:
    code = "import twofold as tf; print(tf.random.uniform([], seed=1).numpy(), tf.random.uniform([]).numpy())"
    runs = [subprocess.run(python("-c", code), capture_output=True, text=True, check=True).stdout.split()
            for _ in range(2)]
    assert runs[0][0] == runs[1][0] and runs[0][1] != runs[1][1]


def test_threads_never_draw_the_same_part() -> None:
    tf.random.set_seed(1)
    draws: list[float] = []

    def draw() -> None:
        for _ in range(50):
            draws.extend(tf.random.uniform([4], dtype=tf.float64).numpy().tolist())

    workers = [threading.Thread(target=draw) for _ in range(8)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert len(set(draws)) == 8 * 50 * 4


def test_stateless_draws_depend_on_their_seed_alone() -> None:
    first = tf.random.stateless_uniform([1000], seed=[1, 2]).numpy()
    tf.random.set_seed(5)
    assert (tf.random.stateless_uniform([1000], seed=tf.constant([1, 2], tf.int64)).numpy() == first).all()
    for other in ([2, 1], [1, 3], [-1, 2]):
        assert np.mean(tf.random.stateless_uniform([1000], seed=other).numpy() == first) < 0.01


@pytest.mark.parametrize(("draw", "op"), [
    (tf.random.stateless_normal, ops.random_normal), (tf.random.stateless_uniform, ops.random_uniform),
    (tf.random.stateless_truncated_normal, ops.random_truncated_normal)])
def test_own_numbers_have_a_name(draw, op) -> None:
    kind = op.name.removeprefix("random_").replace("uniform", "draw")
    own = op(ops.random_seed_state([1, 2], purpose=kind), shape=(9,)).numpy()
    assert (draw([9], [1, 2], alg="twofold").numpy() == own).all()
    assert (draw([9], [1, 2]).numpy() != own).any()
    with pytest.raises(ValueError, match="mersenne"):
        draw([9], [1, 2], alg="mersenne")


def test_fold_in_and_split_make_new_seeds() -> None:
    seeds = [tf.random.fold_in([1, 2], i).numpy().tolist() for i in range(20)]
    seeds += tf.random.split([1, 2], 20).numpy().tolist() + [[1, 2]]
    assert len({tuple(s) for s in seeds}) >= 40


# -- generators ---------------------------------------------------------------------------------------
def test_a_generator_repeats_from_its_state() -> None:
    g = tf.random.Generator.from_seed(1234)
    g.normal([3])
    state = g.state.numpy()
    first = [g.normal([2, 3]).numpy(), g.uniform([4]).numpy(), g.truncated_normal([3]).numpy()]
    assert not (g.state.numpy() == state).all()
    for h in (tf.random.Generator.from_state(state), tf.random.Generator.from_key_counter(state[2], state[:2])):
        again = [h.normal([2, 3]).numpy(), h.uniform([4]).numpy(), h.truncated_normal([3]).numpy()]
        assert all((a == b).all() for a, b in zip(first, again, strict=True))
    g.reset(state)
    assert (g.normal([2, 3]).numpy() == first[0]).all()
    g.reset_from_seed(1234)
    h = tf.random.Generator(copy_from=g)
    assert (g.normal([9]).numpy() == h.normal([9]).numpy()).all()


def test_skip_leaves_numbers_out() -> None:
    g, h = tf.random.Generator.from_seed(1), tf.random.Generator.from_seed(1)
    g.normal([10])
    h.skip(10)
    assert (g.state.numpy() == h.state.numpy()).all()
    assert g.state.numpy().tolist() == [1 + 10 * 256, 0, 0] and g.algorithm == 1


def test_split_generators_differ() -> None:
    made = tf.random.Generator.from_seed(1).split(3)
    drawn = [m.uniform_full_int([], tf.int64).numpy().item() for m in made]
    assert len(set(drawn)) == 3
    assert tf.random.Generator.from_seed(1).make_seeds(4).shape == (2, 4)


def test_generators_without_a_seed_differ() -> None:
    one, other = (tf.random.Generator.from_non_deterministic_state().uniform([4]).numpy() for _ in range(2))
    assert (one != other).any()


# -- gradients ----------------------------------------------------------------------------------------
def test_normal_draws_are_differentiable_by_their_parameters() -> None:
    mean, deviation = tf.constant([1.0, 2.0]), tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch([mean, deviation])
        x = tf.random.normal([4, 2], mean, deviation, seed=1)
    by_mean, by_deviation = tape.gradient(x, [mean, deviation])
    assert by_mean.numpy().tolist() == [4.0, 4.0]
    assert by_deviation.numpy() == pytest.approx(((x - mean) / deviation).numpy().sum(), rel=1e-5)


def test_gamma_draws_are_differentiable_by_their_rate() -> None:
    beta = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(beta)
        x = tf.random.gamma([50], 3.0, beta, seed=1)
    assert tape.gradient(x, beta).numpy() == pytest.approx(-(x / beta).numpy().sum(), rel=1e-5)


KINDS: dict[str, Callable[[list[int]], Any]] = {
    "uniform": tf.random.uniform, "normal": tf.random.normal, "truncated": tf.random.truncated_normal,
    "gamma": lambda shape: tf.random.gamma(shape, 2.0), "poisson": lambda shape: tf.random.poisson(shape, 9.0),
    "order": lambda shape: tf.random.shuffle(tf.range(shape[0])),
    "classes": lambda shape: tf.random.categorical(tf.zeros([1, 97]), shape[0])[0],
}


def test_draws_without_seeds_share_no_bits_between_kinds() -> None:
    """Ranks of draws from one part of the shared stream are uncorrelated, and those of their distances from the median
    (Box and Muller)."""
    n, draws = 4096, {}
    for name, draw in KINDS.items():
        streams.share(1)
        draws[name] = np.asarray(draw([n]), np.float64)
    streams.set_seed(None)
    ranks = {name: np.argsort(np.argsort(x)) / n - 0.5 for name, x in draws.items()}
    folded = {name: np.abs(r) - 0.25 for name, r in ranks.items()}
    for one in KINDS:
        for other in KINDS:
            if one != other:
                for a in (ranks[one], folded[one]):
                    for b in (ranks[other], folded[other]):
                        assert abs(np.corrcoef(a, b)[0, 1]) < 0.08, (one, other)
                        assert abs(np.corrcoef(a[::2], b[1::2])[0, 1]) < 0.12, (one, other)


@pytest.mark.parametrize("draw", [
    lambda shape: tf.random.stateless_poisson(shape, [1, 2], [5.0, 15.0]),
    lambda shape: tf.random.stateless_poisson(shape, [1, 2], [[5.0], [15.0]]),
    lambda shape: tf.random.stateless_gamma(shape, [1, 2], [5.0, 15.0], [[2.0], [3.0]]),
    lambda shape: tf.random.stateless_binomial(shape, [1, 2], [5.0, 15.0], 0.5),
    lambda shape: tf.random.stateless_uniform(shape, [1, 2], [0.0, 1.0], [2.0, 3.0]),
    lambda shape: tf.random.stateless_normal(shape, [1, 2], mean=[0.0, 100.0]),
    lambda shape: tf.broadcast_to([5.0, 15.0], shape)])
def test_parameters_broadcast_to_a_shape_that_only_running_tells(draw) -> None:
    ranked = tf.function(draw, input_signature=[tf.TensorSpec([2], tf.int32)], fallback=False)
    shape = tf.Variable([2, 2])
    want = draw([2, 2]).numpy()
    for actual in (ranked([2, 2]), tf.function(lambda: draw(shape), fallback=False)()):
        np.testing.assert_array_equal(actual, want)
    with pytest.raises(tf.errors.OpError):
        draw([3, 3])
    with pytest.raises(tf.errors.OpError):
        ranked([3, 3])
