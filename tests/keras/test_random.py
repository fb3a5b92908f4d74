"""Draws without a seed continue the stream that `tf.random.set_seed` governs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import twofold as tf

random = tf.keras.random
DRAWS: dict[str, Callable[..., Any]] = {
    "normal": lambda **seed: random.normal([8], **seed), "uniform": lambda **seed: random.uniform([8], **seed),
    "truncated_normal": lambda **seed: random.truncated_normal([8], **seed),
    "randint": lambda **seed: random.randint([8], 0, 1000, **seed),
    "categorical": lambda **seed: random.categorical(tf.zeros([1, 1000]), 8, **seed),
    "gamma": lambda **seed: random.gamma([8], 2.0, **seed), "beta": lambda **seed: random.beta([8], 2.0, 3.0, **seed),
    "binomial": lambda **seed: random.binomial([8], 1000.0, 0.5, **seed),
    "shuffle": lambda **seed: random.shuffle(tf.range(100), **seed),
    "dropout": lambda **seed: random.dropout(tf.ones([64]), 0.5, **seed),
}


def test_all_draws_are_here() -> None:
    assert {*DRAWS} == {*random.__all__} - {"SeedGenerator"}


@pytest.mark.parametrize("seed", [{}, {"seed": None}], ids=["without", "None"])
@pytest.mark.parametrize("name", DRAWS)
def test_draws_without_a_seed(name: str, seed: dict[str, Any]) -> None:
    def two(draw: Callable[[], Any]) -> list[list[float]]:
        tf.random.set_seed(3)
        return [draw().numpy().tolist() for _ in range(2)]
    first, second = two(lambda: DRAWS[name](**seed))
    assert first != second
    assert two(lambda: DRAWS[name](**seed)) == [first, second]
    assert two(tf.function(lambda: DRAWS[name](**seed))) == [first, second]


@pytest.mark.parametrize("name", DRAWS)
def test_draws_with_a_seed_leave_the_stream(name: str) -> None:
    tf.random.set_seed(3)
    following = tf.random.uniform([2]).numpy().tolist()
    tf.random.set_seed(3)
    assert DRAWS[name](seed=5).numpy().tolist() == DRAWS[name](seed=5).numpy().tolist()
    assert tf.random.uniform([2]).numpy().tolist() == following
