"""Conditions of sums of cotangents: computed once, in order, however many there are."""

from __future__ import annotations

from functools import reduce

import numpy as np

import twofold as tf
from twofold.ir import sums


def test_conditions_of_many_others_are_computed_without_calls_within_calls() -> None:
    told: list[int] = []

    def condition(number: int) -> sums.Holds:
        def holds() -> tf.Tensor:
            told.append(number)
            return tf.constant(number == 0)
        return holds

    several = [condition(n) for n in range(5000)]
    any_, every = reduce(sums.either, several), reduce(sums.both, several)
    assert any_ is not None and every is not None and told == []
    assert (bool(any_()), bool(every())) == (True, False)
    assert told == [*range(5000), *range(5000)]
    np.testing.assert_array_equal([any_(), every()], [True, False])
    assert len(told) == 10000  # known by now
