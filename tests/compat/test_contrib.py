"""`tf.contrib`: the names of TensorFlow 1's early eager mode."""

import importlib

import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import twofold as tf
import twofold.contrib.eager as tfe


def test_the_mean_metric_is_float64():
    mean = tfe.metrics.Mean("loss")
    mean(0)
    mean(5)
    assert f"{mean.result()}" == "2.5"
    mean([8, 9])
    assert mean.result().dtype == tf.float64
    assert f"{mean.result()}" == "5.5"


def test_iterators_and_checkpoints(tmp_path):
    assert [int(x) for x in tfe.Iterator(tf.data.Dataset.from_tensor_slices([1, 2, 3]).map(tf.square))] == [1, 4, 9]
    assert tfe.Checkpoint is tf.train.Checkpoint
    x = tf.Variable(2.0)
    path = tfe.Checkpoint(x=x).save(f"{tmp_path}/")
    assert path == f"{tmp_path}/-1"
    x.assign(11.0)
    tfe.Checkpoint(x=x).restore(path)
    assert float(x) == 2.0
    assert float(tfe.py_func(lambda t: t * 2.0, [tf.constant(2.0)], tf.float32)) == 4.0
    with pytest.raises(AttributeError, match="nothing"):
        tfe.nothing  # noqa: B018


def test_summaries_every_few_global_steps(tmp_path):
    graph_step = tf.train.get_or_create_global_step()
    graph_step.assign(0)
    writer = tf.contrib.summary.create_file_writer(str(tmp_path))
    with writer.as_default():
        tf.contrib.summary.scalar("nobody_asked", 1.0)
        for _ in range(10):
            graph_step.assign_add(1)
            with tf.contrib.summary.record_summaries_every_n_global_steps(5):
                tf.contrib.summary.scalar("loss", tf.constant(float(graph_step)))
                tf.contrib.summary.histogram("h", np.zeros(3))
    writer.close()
    actual = EventAccumulator(str(tmp_path))
    actual.Reload()
    assert [e.step for e in actual.Tensors("loss")] == [5, 10]
    assert set(actual.Tags()["tensors"]) == {"loss", "h"}


def test_modules_are_the_same_by_either_name():
    from twofold.compat.contrib import eager, summary
    from twofold.contrib import summary as by_path
    assert tfe is eager is tf.contrib.eager
    assert by_path is summary is tf.contrib.summary
    assert tfe.__spec__.name == "twofold.compat.contrib.eager"
    with pytest.raises(ModuleNotFoundError, match="twofold.compat.contrib.nowhere"):
        importlib.import_module("twofold.contrib.nowhere")
