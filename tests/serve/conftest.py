"""Saved models that the tests serve."""

from __future__ import annotations

import contextlib
import json

import numpy as np
import pytest
from serve.running import BODY, answer_of

import twofold as tf


class Net(tf.Module):
    """A layer of weights that a factor tells apart, and signatures of several kinds."""

    def __init__(self, factor):
        super().__init__()
        weights = np.random.default_rng(3).standard_normal((4, 3)).astype(np.float32)
        self.weights = tf.Variable(weights * np.float32(factor))
        self.calls = tf.Variable(0, trainable=False)

    @tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float32, name="x")])
    def scores(self, x):
        return {"scores": tf.nn.softmax(tf.matmul(x, self.weights))}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="name"), tf.TensorSpec([None], tf.int32, "n")])
    def named(self, name, n):
        return {"upper": tf.strings.upper(name), "copy_bytes": tf.identity(name), "twice": 2 * n, "odd": n % 2 == 1}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int32, name="i")])
    def rows(self, i):
        return tf.gather(self.weights, i)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, name="x")])
    def mixed(self, x):
        return {"outputs": x - tf.reduce_mean(x)}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, name="x"), tf.TensorSpec([None], tf.float32, "y")])
    def both(self, x, y):
        return x + y

    @tf.function(input_signature=[tf.TensorSpec([], tf.int32, name="n")])
    def count(self, n):
        return self.calls.assign_add(n)


def save(folder, factor=1.0):
    """Saves a version."""
    net = Net(factor)
    tf.saved_model.save(net, folder, signatures={
        "serving_default": net.scores, "named": net.named, "rows": net.rows, "mixed": net.mixed, "count": net.count,
        "both": net.both})


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    """Two models; `net` has two versions, labels and a library."""
    folder = tmp_path_factory.mktemp("served")
    save(folder / "net" / "1")
    save(folder / "net" / "12", 2.0)
    (folder / "net" / "serve.json").write_text('{"labels": {"stable": 1, "gone": 7}}')
    (folder / "native" / "3").mkdir(parents=True)
    net = Net(1.0)
    functions = {"predict": net.scores, "rows": net.rows, "count": net.count}
    tf.export.native(functions, folder / "native" / "3" / "libnet.so")
    (folder / "native" / "serve.json").write_text('{"batching": true}')
    (folder / "broken" / "5").mkdir(parents=True)
    (folder / "broken" / "5" / "manifest.json").write_text("{}")
    (folder / "no model").mkdir()
    return folder


@pytest.fixture
def begun():
    """Begins requests: heads are sent, and the first byte of the body."""
    with contextlib.ExitStack() as opened:
        def begin(server, length=None):
            body = json.dumps(BODY).encode()
            connection = opened.enter_context(contextlib.closing(server.connection()))
            connection.putrequest("POST", "/v1/models/net:predict")
            connection.putheader("content-length", str(len(body) if length is None else length))
            connection.endheaders(body[:1])

            def finish():
                connection.send(body[1:])
                return answer_of(connection)
            return finish, connection
        yield begin
