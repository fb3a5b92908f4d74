"""Random pipelines against lists: which elements come, in what order; saved iterators go on where they were."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import twofold as tf

Dataset = tf.data.Dataset


# Each step: from a dataset of int64 scalars to another, and the same for lists.
def windows(items, size, shift, stride):
    """The windows of a list, cut short at its end."""
    return [items[i:i + (size - 1) * stride + 1:stride] for i in range(0, len(items), shift)]


def interleaved(items, cycle, block):
    """The model of `interleave` over lists of x, x + 100, ... : slots take turns, and are filled when theirs comes."""
    waiting, slots, out, at = list(items), [None] * cycle, [], 0
    while waiting or any(s is not None for s in slots):
        if slots[at] is None and waiting:
            x = waiting.pop(0)
            slots[at] = [x + 100 * i for i in range(x % 4)]
        for _ in range(block):
            if slots[at]:
                out.append(slots[at].pop(0))
            else:
                slots[at] = None
                break
        at = (at + 1) % cycle
    return out


def grouped(items, size):
    """The model of `group_by_window` by remainder of 3, with the sums of groups."""
    groups, out = {}, []
    for x in items:
        groups.setdefault(x % 3, []).append(x)
        if len(groups[x % 3]) == size:
            out.append(sum(groups.pop(x % 3)))
    return out + [sum(groups[k]) for k in sorted(groups)]


def ragged(x):
    """A dataset of x % 4 numbers."""
    return Dataset.range(x % 4).map(lambda i: x + 100 * i)


def parity(x):
    """A condition that autograph converts."""
    if x % 2 == 0:
        y = x // 2
    else:
        y = 3 * x + 1
    return y


SMALL = st.integers(1, 5)
STEPS = {
    "take": (st.integers(-1, 12), lambda d, n: d.take(n), lambda v, n: v if n < 0 else v[:n]),
    "skip": (st.integers(0, 6), lambda d, n: d.skip(n), lambda v, n: v[n:]),
    "shard": (SMALL, lambda d, n: d.shard(n, n - 1), lambda v, n: v[n - 1::n]),
    "repeat": (st.integers(0, 3), lambda d, n: d.repeat(n), lambda v, n: v * n),
    "map": (st.integers(-3, 3), lambda d, n: d.map(lambda x: x * 3 + n), lambda v, n: [x * 3 + n for x in v]),
    "map_parallel": (SMALL, lambda d, n: d.map(parity, num_parallel_calls=n), lambda v, n: [int(parity(x)) for x in v]),
    "filter": (SMALL, lambda d, n: d.filter(lambda x: x % n != 1), lambda v, n: [x for x in v if x % n != 1]),
    "batch": (SMALL, lambda d, n: d.batch(n).map(tf.reduce_sum), lambda v, n: [
        sum(v[i:i + n]) for i in range(0, len(v), n)]),
    "batch_dropped": (SMALL, lambda d, n: d.batch(n, drop_remainder=True).unbatch(),
                      lambda v, n: v[:len(v) // n * n]),
    "rebatch": (SMALL, lambda d, n: d.batch(3).rebatch([n, 1]).unbatch(), lambda v, n: v),
    "enumerate": (SMALL, lambda d, n: d.enumerate(n).map(lambda i, x: i * 1000 + x),
                  lambda v, n: [i * 1000 + x for i, x in enumerate(v, n)]),
    "concatenate": (SMALL, lambda d, n: d.concatenate(Dataset.range(n)), lambda v, n: v + list(range(n))),
    "zip": (SMALL, lambda d, n: Dataset.zip(d, d.skip(n)).map(lambda a, b: a * 10 + b),
            lambda v, n: [a * 10 + b for a, b in zip(v, v[n:], strict=False)]),
    "window": (st.tuples(SMALL, SMALL, st.integers(1, 3)),
               lambda d, n: d.window(*n).flat_map(lambda w: w.batch(9).map(tf.reduce_sum)),
               lambda v, n: [sum(w) for w in windows(v, *n)]),
    "flat_map": (st.just(0), lambda d, n: d.flat_map(ragged), lambda v, n: interleaved(v, 1, 1)),
    "interleave": (st.tuples(SMALL, SMALL), lambda d, n: d.interleave(ragged, *n),
                   lambda v, n: interleaved(v, *n)),
    "interleave_parallel": (st.tuples(SMALL, SMALL), lambda d, n: d.interleave(ragged, *n, num_parallel_calls=2),
                            lambda v, n: interleaved(v, *n)),
    "scan": (st.just(0), lambda d, n: d.scan(np.int64(0), lambda s, x: (s + x, s + x)),
             lambda v, n: list(itertools.accumulate(v))),
    "take_while": (SMALL, lambda d, n: d.take_while(lambda x: x < n * 4),
                   lambda v, n: list(itertools.takewhile(lambda x: x < n * 4, v))),
    "cache": (st.just(0), lambda d, n: d.cache(), lambda v, n: v),
    "prefetch": (SMALL, lambda d, n: d.prefetch(n), lambda v, n: v),
    "unique": (SMALL, lambda d, n: d.map(lambda x: x % (n + 1)).unique(),
               lambda v, n: list(dict.fromkeys(x % (n + 1) for x in v))),
    "group": (SMALL, lambda d, n: d.group_by_window(lambda x: x % 3, lambda k, w: w.batch(9).map(tf.reduce_sum), n),
              grouped),
    "padded": (SMALL, lambda d, n: d.map(lambda x: tf.fill([x % 4], x)).padded_batch(n, padding_values=np.int64(1))
               .map(tf.reduce_sum), lambda v, n: [padded_sum(v[i:i + n]) for i in range(0, len(v), n)]),
    "choose": (SMALL, lambda d, n: Dataset.choose_from_datasets([d, Dataset.range(70, 73)], Dataset.range(2).repeat(n)),
               lambda v, n: chosen(v, [70, 71, 72], n)),
}
SHUFFLES = {
    "shuffle": (st.tuples(SMALL, SMALL), lambda d, n: d.shuffle(n[0], seed=n[1])),
    "shuffle_repeat": (SMALL, lambda d, n: d.shuffle(4, seed=n).repeat(3)),
    "sample": (SMALL, lambda d, n: Dataset.sample_from_datasets([d, Dataset.range(70, 79)], [0.5, 0.5], seed=n)),
}


def padded_sum(part):
    """The sum of rows of x % 4 times x, padded with 1."""
    longest = max(x % 4 for x in part)
    return sum(x * (x % 4) + longest - x % 4 for x in part)


def chosen(first, second, rounds):
    """The model of `choose_from_datasets` in turns: over when one that is asked has no more."""
    queues, out = [list(first), list(second)], []
    for at in [0, 1] * rounds:
        if not queues[at]:
            break
        out.append(queues[at].pop(0))
    return out


def steps(table, most):
    """A strategy for lists of `(step, argument)`."""
    one = st.sampled_from(sorted(table)).flatmap(lambda name: st.tuples(st.just(name), table[name][0]))
    return st.lists(one, max_size=most)


def built(start, chain, table):
    """The dataset of a chain of steps."""
    dataset = start
    for name, argument in chain:
        dataset = table[name][1](dataset, argument)
    return dataset


def values(dataset):
    """All elements."""
    return [x.item() for x in dataset.as_numpy_iterator()]


@settings(max_examples=60)
@given(st.integers(0, 12), steps(STEPS, 4))
def test_pipelines_are_what_lists_are(count, chain):
    dataset = built(Dataset.range(count), chain, STEPS)
    expected = list(range(count))
    for name, argument in chain:
        expected = STEPS[name][2](expected, argument)
    actual = values(dataset)
    assert actual == expected
    known = dataset.cardinality().numpy()
    assert known == len(expected) or known == tf.data.UNKNOWN_CARDINALITY
    assert values(dataset) == expected  # each iteration starts anew


ALL = {**STEPS, **SHUFFLES}


@settings(max_examples=50)
@given(st.integers(0, 10), steps(ALL, 4), st.integers(0, 12))
def test_saved_iterators_go_on(count, chain, at):
    """A new iterator, of a dataset that was built anew, goes on where one was saved; so does that one itself."""
    iterator = iter(built(Dataset.range(count), chain, ALL))
    for _ in itertools.islice(iterator, at):
        pass
    saved = iterator._saved_values()
    rest = [x.numpy().item() for x in iterator]
    other = iter(built(Dataset.range(count), chain, ALL))
    for _ in itertools.islice(other, 2):  # what it has done before does not matter
        pass
    other._restore_values(saved)
    assert [x.numpy().item() for x in other] == rest


@settings(max_examples=30)
@given(st.integers(0, 12), steps({k: ALL[k] for k in (
    "take", "skip", "shard", "repeat", "cache", "prefetch", "shuffle", "shuffle_repeat", "batch_dropped")}, 4),
       SMALL, st.booleans())
def test_fused_selections_give_what_single_elements_give(count, chain, size, drop):
    plain = tf.data.Options()
    plain.experimental_optimization.apply_default_optimizations = False
    rows = np.arange(count * 2.0).reshape(count, 2), np.array([f"{i}" for i in range(count)])

    def batches(options):
        dataset = built(Dataset.from_tensor_slices(rows), chain, ALL).batch(size, drop_remainder=drop)
        return [(a.tolist(), b.tolist()) for a, b in dataset.with_options(options).as_numpy_iterator()]
    assert batches(tf.data.Options()) == batches(plain)


@pytest.mark.parametrize("name", STEPS)
def test_each_step_inside_of_a_function(name):
    """The sum in a compiled loop is that of the loop outside."""
    for argument in {"take": [3], "window": [(3, 1, 2)], "interleave": [(2, 2)],
                     "interleave_parallel": [(2, 2)]}.get(name, [2]):
        dataset = built(Dataset.range(8), [(name, argument)], STEPS)

        @tf.function
        def total(data):
            number = tf.constant(0, tf.int64)
            for x in data:
                number = number * 3 + x
            return number
        expected = 0
        for x in values(dataset):
            expected = expected * 3 + x
        assert int(total(dataset)) == expected
