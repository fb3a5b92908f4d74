"""Shuffling: what a buffer allows, what is uniform, what seeds decide; and datasets drawn from at random."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import twofold as tf
from twofold.data._stream import Draws

Dataset = tf.data.Dataset


def values(dataset):
    return [x.item() for x in dataset.as_numpy_iterator()]


@given(st.integers(0, 40), st.integers(1, 50), st.integers(0, 99))
def test_an_element_comes_forward_less_than_the_buffer(count, size, seed):
    actual = values(Dataset.range(count).shuffle(size, seed=seed))
    assert sorted(actual) == list(range(count))
    assert all(x < place + size for place, x in enumerate(actual))


def test_a_buffer_that_holds_all_gives_uniform_orders():
    """All 24 orders of four elements are equally frequent, as a chi-squared test sees it."""
    dataset = Dataset.range(4).shuffle(4, seed=7)
    counts = dict.fromkeys(itertools.permutations(range(4)), 0)
    for _ in range(2400):
        counts[tuple(values(dataset))] += 1
    assert stats.chisquare(list(counts.values())).pvalue > 0.001


def test_the_first_element_is_uniform_over_the_buffer():
    dataset = Dataset.range(100).shuffle(10, seed=3).take(1)
    counts = np.bincount([values(dataset)[0] for _ in range(2000)], minlength=10)
    assert counts.size == 10
    assert stats.chisquare(counts).pvalue > 0.001


def test_waiting_times_are_those_of_a_reservoir():
    """An element of the steady state waits a geometric time: each round it is drawn with probability 1 / size."""
    size = 8
    actual = values(Dataset.range(40_000).shuffle(size, seed=5))
    places = np.empty(len(actual), int)
    places[actual] = np.arange(len(actual))
    waits = (places - np.arange(len(actual)))[100:-100] + size - 1  # rounds in the buffer before the one it is drawn in
    expected = [stats.geom.pmf(k + 1, 1 / size) * waits.size for k in range(30)]
    seen = np.bincount(waits, minlength=31)
    assert stats.chisquare([*seen[:30], seen[30:].sum()], [*expected, waits.size - sum(expected)]).pvalue > 0.001


def test_each_iteration_has_an_order_of_its_own():
    dataset = Dataset.range(50).shuffle(50, seed=1)
    first, second = values(dataset), values(dataset)
    assert first != second
    rebuilt = Dataset.range(50).shuffle(50, seed=1)
    assert [values(rebuilt), values(rebuilt)] == [first, second]
    repeated = values(Dataset.range(50).shuffle(50, seed=1).repeat(2))
    assert repeated == first + second


def test_an_order_that_stays():
    dataset = Dataset.range(50).shuffle(50, seed=1, reshuffle_each_iteration=False)
    assert values(dataset) == values(dataset) == values(dataset.repeat(2))[50:]
    assert values(dataset) != list(range(50))


def test_the_global_seed_decides():
    def orders():
        return values(Dataset.range(30).shuffle(30)), values(Dataset.range(30).shuffle(30, seed=4))
    tf.random.set_seed(1)
    first = orders()
    tf.random.set_seed(1)
    assert orders() == first
    tf.random.set_seed(2)
    second = orders()
    tf.random.set_seed(None)
    assert second[0] != first[0]
    assert second[1] != first[1]
    assert orders()[0] != orders()[0]  # unseeded: another each time


def test_unknown_cardinality_is_a_buffer_for_all():
    actual = values(Dataset.range(200).shuffle(tf.data.UNKNOWN_CARDINALITY, seed=2))
    assert sorted(actual) == list(range(200))
    assert any(x > place + 100 for place, x in enumerate(actual))


def test_sampled_proportions():
    parts = [Dataset.from_tensors(i).repeat() for i in range(3)]
    actual = values(Dataset.sample_from_datasets(parts, [0.5, 0.2, 0.3], seed=1).take(5000))
    assert stats.chisquare(np.bincount(actual, minlength=3), [2500, 1000, 1500]).pvalue > 0.001
    varying = Dataset.from_tensor_slices([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]).repeat()
    assert values(Dataset.sample_from_datasets(parts, varying).take(4)) == [0, 2, 0, 2]


def test_sampling_stops_where_it_should():
    a, b = Dataset.range(5), Dataset.range(100, 200)
    every = values(Dataset.sample_from_datasets([a, b], [0.5, 0.5], seed=3))
    assert sorted(every) == [*range(5), *range(100, 200)]
    short = values(Dataset.sample_from_datasets([a, b], [0.5, 0.5], seed=3, stop_on_empty_dataset=True))
    assert len(short) < 60
    assert short == every[:len(short)]
    assert values(Dataset.sample_from_datasets([a, b], [1.0, 0.0])) == list(range(5))


def test_random_numbers():
    actual = values(Dataset.random(seed=1).take(20_000))
    assert 0 <= min(actual) < max(actual) < 1 << 32
    assert stats.kstest(np.array(actual) / 2.0 ** 32, "uniform").pvalue > 0.001
    other = Dataset.random(seed=1, rerandomize_each_iteration=True).take(5)
    assert values(other) != values(other)


@pytest.mark.parametrize("initial", [None, [0.9, 0.1]])
def test_resampled_proportions(initial):
    data = Dataset.range(20_000).rejection_resample(lambda x: tf.cast(x % 10 == 0, tf.int32), [0.25, 0.75], initial,
                                                    seed=1)
    kinds = [(int(kind), int(x)) for kind, x in data.as_numpy_iterator()]
    assert all(kind == (x % 10 == 0) for kind, x in kinds)
    assert 0.70 < np.mean([kind for kind, _ in kinds]) < 0.80


def test_states_of_older_versions_are_refused_in_words() -> None:
    """They hold a key where there are two seeds now, from which other orders would follow."""
    with pytest.raises(ValueError, match="older version"):
        Draws((1, 2)).load([5, 1, 7])
