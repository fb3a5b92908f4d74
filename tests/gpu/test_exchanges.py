"""Exchanges with other replicas of what lies on a GPU: by way of the host, with the processor's bits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from distribute.alike import Twins, strategy_of
from gpu.devices import device, same, some

import twofold as tf
from twofold.ir import ops


@pytest.fixture
def fake() -> Iterator[Any]:
    with device() as driver:
        yield driver


def context() -> Any:
    return tf.distribute.get_replica_context()


def test_a_step_has_the_bits_of_the_processor(fake: Any) -> None:
    def one(x: tf.Tensor, w: tf.Tensor) -> Any:
        with tf.GradientTape() as tape:
            tape.watch([x, w])
            loss = tf.reduce_sum(tf.tanh(x @ w))
        by_x, by_w = tape.gradient(loss, [x, w])
        of_w, of_x = context().all_reduce("MEAN", [by_w * by_w, by_x])
        return w - of_w, of_x, context().all_gather(of_x[:1], 0), loss
    twins = Twins()
    with strategy_of(twins, bytes_per_pack=1) as strategy:
        step = tf.function(lambda *args: strategy.run(one, args))
        wanted = step(some(3, 4), some(4, 5))
        assert twins.told == ["sum of 12", "sum of 20"]
        with tf.device("GPU:0"):
            got = step(some(3, 4), some(4, 5))
            alone = ops.collective_all_reduce(some(3), reduction="SUM", group="processes", replicas=2)[0]
    assert same(got, wanted) and all("GPU" in t.device for t in (*got, alone))
    assert same(alone, some(3) + some(3))
