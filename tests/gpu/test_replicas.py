"""Replicas on GPUs: several of one process, and one in each of several processes, with the bits of the processor."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from distribute import mpi
from distribute.cpus import logical_cpus
from gpu.devices import HARDWARE, device

import twofold as tf


def trained(strategy: tf.distribute.Strategy) -> tuple[list[bytes], str]:
    """The weights of a small model that two replicas have trained, and where they lie."""
    assert strategy.num_replicas_in_sync == 2
    tf.keras.utils.set_random_seed(1)
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.Input([4]), tf.keras.layers.Dense(8, "relu"), tf.keras.layers.Dense(1)])
        model.compile("adam", "mse")
    x = np.random.default_rng(0).normal(size=(20, 4)).astype(np.float32)
    model.fit(x, x.sum(1, keepdims=True), batch_size=8, verbose=0)
    return [w.numpy().tobytes() for w in model.weights], model.weights[0].device


@pytest.mark.skipif(HARDWARE, reason="the fake driver has two GPUs")
def test_two_gpus_of_one_process() -> None:
    with logical_cpus(2) as names:
        wanted, _ = trained(tf.distribute.MirroredStrategy(names))
    with device(devices=2):
        weights, where = trained(tf.distribute.MirroredStrategy())
    assert weights == wanted and "GPU:0" in where


PROCESSES = f"""
sys.path.insert(0, {str(Path(__file__).parents[1])!r})
from gpu.devices import device
from gpu.test_replicas import trained
wanted, _ = trained(strategy)
with device():
    weights, where = trained(tf.distribute.MultiWorkerMirroredStrategy())
tell([weights == wanted, where])
"""


def test_a_gpu_in_each_process(tmp_path: Path) -> None:
    for same, where in mpi.told(PROCESSES, 2, tmp_path):
        assert same and "GPU:0" in where
