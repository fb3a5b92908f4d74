"""Whole steps of training: op by op, compiled, and by `fit`; convolutions, a recurrence, a transformer block.

A peer is a class with one method a case, as in `eager.py`. All begin with the same weights, on the same batch, and
their losses over three steps must agree. Where a case says "compiled", TensorFlow and twofold run a `tf.function`, JAX
a jitted function, and PyTorch its own operations, of which an LSTM is one. The update is gradient descent, but for
`fit`, which trains by Adam and keeps the mean of the accuracy: to be compared with the same step, bare.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

import eager
from eager import Built, mlp_built

CASES = {
    "mlp_step": ("MLP 784-128-10, op by op", 1e-3),
    "cnn_eager": ("CNN A, op by op", 1e-3),
    "cnn_step": ("CNN A, compiled", 1e-3),
    "lstm_step": ("LSTM 128, sequence 50, batch 32, compiled", 1e-3),
    "transformer_step": ("transformer block 256, sequence 128, batch 8, compiled", 1e-3),
    "keras_bare": ("100 steps of a Keras CNN A, compiled, bare", 1e-3),
    "keras_fit": ("the same by fit", 1e-3),
}
PROCESS_CASES: dict[str, tuple[str, bool]] = {}

# Training goes on for minutes: what a package makes ready while it runs, it has made ready before it is timed.
WARM_SECONDS = 1.0
SAMPLE_SECONDS = 0.25

RATE = 0.05
HEADS = 8
FIT_STEPS = 100


def normal(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Weights that keep the signal's size."""
    fan_in = int(np.prod(shape[:-1]))
    return (rng.normal(size=shape) / np.sqrt(fan_in)).astype(np.float32)


@functools.cache
def cnn_data() -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """MNIST-sized images, labels, and the weights of two convolutions of 16 and a dense layer."""
    rng = np.random.default_rng(6)
    x = rng.random((32 * FIT_STEPS, 28, 28, 1), np.float32)
    y = rng.integers(0, 10, len(x)).astype(np.int32)
    weights = [normal(rng, 3, 3, 1, 16), np.zeros(16, np.float32), normal(rng, 3, 3, 16, 16),
               np.zeros(16, np.float32), normal(rng, 16, 10), np.zeros(10, np.float32)]
    return x, y, weights


@functools.cache
def lstm_data() -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """Sequences of 64 numbers, a target each, and the weights of an LSTM (input, forget, cell, output) and a layer."""
    rng = np.random.default_rng(7)
    x = rng.normal(size=(32, 50, 64)).astype(np.float32)
    y = rng.normal(size=(32, 1)).astype(np.float32)
    weights = [normal(rng, 64, 512), normal(rng, 128, 512), np.zeros(512, np.float32), normal(rng, 128, 1)]
    return x, y, weights


@functools.cache
def transformer_data() -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """Sequences, what they shall become, and the weights: queries, keys, values, output, two layers; two gains."""
    rng = np.random.default_rng(8)
    x, y = (rng.normal(size=(8, 128, 256)).astype(np.float32) for _ in range(2))
    weights = [normal(rng, 256, 256) for _ in range(4)] + [normal(rng, 256, 1024), normal(rng, 1024, 256)]
    return x, y, [*weights, np.ones(256, np.float32), np.ones(256, np.float32)]


class Torch(eager.Torch):
    """PyTorch, op by op."""

    def _descent(self, data: Any, loss_of: Any) -> Built:
        torch = self.torch
        x, y, start = data

        def make() -> Any:
            parameters = [torch.tensor(value, requires_grad=True) for value in start]

            def step() -> Any:
                loss = loss_of(x, y, *parameters)
                gradients = torch.autograd.grad(loss, parameters)
                with torch.no_grad():
                    for parameter, gradient in zip(parameters, gradients, strict=True):
                        parameter.sub_(gradient, alpha=RATE)
                return loss

            return step

        return mlp_built(make)

    def cnn_eager(self) -> Built:
        functional = self.torch.nn.functional
        x, y, start = cnn_data()
        first, bias1, second, bias2, dense, bias3 = start
        start = [first.transpose(3, 2, 0, 1).copy(), bias1, second.transpose(3, 2, 0, 1).copy(), bias2, dense, bias3]

        def loss_of(x: Any, y: Any, k1: Any, b1: Any, k2: Any, b2: Any, w: Any, b: Any) -> Any:
            x = functional.relu(functional.conv2d(x, k1, b1))
            x = functional.relu(functional.conv2d(x, k2, b2))
            return functional.cross_entropy(x.mean((2, 3)) @ w + b, y)

        x = self.torch.tensor(x[:32].transpose(0, 3, 1, 2).copy())
        return self._descent((x, self.torch.tensor(y[:32]).long(), start), loss_of)

    cnn_step = cnn_eager

    def lstm_step(self) -> Built:
        torch = self.torch
        x, y, (inputs, state, bias, dense) = lstm_data()
        zeros = torch.zeros(512)
        begin = torch.zeros(1, 32, 128)

        def loss_of(x: Any, y: Any, w: Any, u: Any, b: Any, d: Any) -> Any:
            outputs, _, _ = torch.lstm(x, (begin, begin), (w, u, b, zeros), True, 1, 0.0, True, False, True)
            return ((outputs[:, -1] @ d - y) ** 2).mean()

        start = [inputs.T.copy(), state.T.copy(), bias, dense]
        return self._descent((torch.tensor(x), torch.tensor(y), start), loss_of)

    def transformer_step(self) -> Built:
        functional = self.torch.nn.functional
        x, y, start = transformer_data()

        def heads(x: Any) -> Any:
            return x.reshape(8, 128, HEADS, 256 // HEADS).transpose(1, 2)

        def loss_of(x: Any, y: Any, q: Any, k: Any, v: Any, o: Any, w1: Any, w2: Any, g1: Any, g2: Any) -> Any:
            n = functional.layer_norm(x, (256,), g1, eps=1e-5)
            mixed = functional.scaled_dot_product_attention(heads(n @ q), heads(n @ k), heads(n @ v), is_causal=True)
            x = x + mixed.transpose(1, 2).reshape(8, 128, 256) @ o
            n = functional.layer_norm(x, (256,), g2, eps=1e-5)
            return ((x + functional.gelu(n @ w1, approximate="tanh") @ w2 - y) ** 2).mean()

        return self._descent((self.torch.tensor(x), self.torch.tensor(y), start), loss_of)


class Jax(eager.Jax):
    """JAX; jitted where a case is compiled."""

    def _descent(self, data: Any, loss_of: Any, jitted: bool = True) -> Built:
        jax = self.jax
        x, y, start = data[0], data[1], data[2]
        x, y = self._array(x), self._array(y)

        def update(parameters: Any) -> Any:
            loss, gradients = jax.value_and_grad(lambda p: loss_of(x, y, *p))(parameters)
            return loss, [p - RATE * g for p, g in zip(parameters, gradients, strict=True)]

        update = jax.jit(update) if jitted else update

        def make() -> Any:
            parameters = [self._array(value) for value in start]

            def step() -> Any:
                loss, parameters[:] = update(parameters)
                jax.block_until_ready(parameters)
                return loss

            return step

        return mlp_built(make)

    def _cnn(self, jitted: bool) -> Built:
        jax, jnp = self.jax, self.jax.numpy
        x, y, start = cnn_data()

        def conv(x: Any, kernel: Any) -> Any:
            return jax.lax.conv_general_dilated(x, kernel, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"))

        def loss_of(x: Any, y: Any, k1: Any, b1: Any, k2: Any, b2: Any, w: Any, b: Any) -> Any:
            x = jax.nn.relu(conv(jax.nn.relu(conv(x, k1) + b1), k2) + b2)
            logits = x.mean((1, 2)) @ w + b
            return -jax.nn.log_softmax(logits)[jnp.arange(32), y].mean()

        return self._descent((x[:32], y[:32], start), loss_of, jitted)

    def cnn_eager(self) -> Built:
        return self._cnn(False)

    def cnn_step(self) -> Built:
        return self._cnn(True)

    def lstm_step(self) -> Built:
        jax, jnp = self.jax, self.jax.numpy

        def loss_of(x: Any, y: Any, w: Any, u: Any, b: Any, d: Any) -> Any:
            def cell(state: Any, projected: Any) -> Any:
                h, c = state
                i, f, g, o = jnp.split(projected + h @ u, 4, axis=1)
                c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
                return (jax.nn.sigmoid(o) * jnp.tanh(c), c), None

            begin = jnp.zeros((32, 128))
            (h, _), _ = jax.lax.scan(cell, (begin, begin), (x @ w + b).swapaxes(0, 1))
            return ((h @ d - y) ** 2).mean()

        return self._descent(lstm_data(), loss_of)

    def transformer_step(self) -> Built:
        jax, jnp = self.jax, self.jax.numpy

        def normal_of(x: Any, gain: Any) -> Any:
            x = x - x.mean(-1, keepdims=True)
            return x / jnp.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * gain

        def loss_of(x: Any, y: Any, q: Any, k: Any, v: Any, o: Any, w1: Any, w2: Any, g1: Any, g2: Any) -> Any:
            n = normal_of(x, g1)
            heads = [(n @ w).reshape(8, 128, HEADS, 256 // HEADS) for w in (q, k, v)]
            x = x + jax.nn.dot_product_attention(*heads, is_causal=True).reshape(8, 128, 256) @ o
            n = normal_of(x, g2)
            return ((x + jax.nn.gelu(n @ w1, approximate=True) @ w2 - y) ** 2).mean()

        return self._descent(transformer_data(), loss_of)


class TensorFlow(eager.TensorFlow):
    """TensorFlow 2."""

    def _descent(self, data: Any, loss_of: Any, compiled: bool = True) -> Built:
        tf = self.tf
        x, y, start = tf.constant(data[0]), tf.constant(data[1]), data[2]

        def make() -> Any:
            variables = [tf.Variable(value) for value in start]

            def step() -> Any:
                with tf.GradientTape() as tape:
                    loss = loss_of(x, y, *variables)
                for variable, gradient in zip(variables, tape.gradient(loss, variables), strict=True):
                    variable.assign_sub(RATE * gradient)
                return loss

            return tf.function(step) if compiled else step

        return mlp_built(make)

    def _cnn(self, compiled: bool) -> Built:
        tf = self.tf
        x, y, start = cnn_data()

        def loss_of(x: Any, y: Any, k1: Any, b1: Any, k2: Any, b2: Any, w: Any, b: Any) -> Any:
            x = tf.nn.relu(tf.nn.conv2d(x, k1, 1, "VALID") + b1)
            x = tf.nn.relu(tf.nn.conv2d(x, k2, 1, "VALID") + b2)
            logits = tf.matmul(tf.reduce_mean(x, [1, 2]), w) + b
            return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))

        return self._descent((x[:32], y[:32], start), loss_of, compiled)

    def cnn_eager(self) -> Built:
        return self._cnn(False)

    def cnn_step(self) -> Built:
        return self._cnn(True)

    def lstm_step(self) -> Built:
        tf = self.tf
        x, y, start = lstm_data()
        x, y = tf.constant(x), tf.constant(y)

        def make() -> Any:
            layer = tf.keras.layers.LSTM(128)
            layer.build((32, 50, 64))
            layer.set_weights(start[:3])
            dense = tf.Variable(start[3])

            @tf.function
            def step() -> Any:
                variables = [*layer.trainable_variables, dense]
                with tf.GradientTape() as tape:
                    loss = tf.reduce_mean(tf.square(tf.matmul(layer(x), dense) - y))
                for variable, gradient in zip(variables, tape.gradient(loss, variables), strict=True):
                    variable.assign_sub(RATE * gradient)
                return loss

            return step

        return mlp_built(make)

    def transformer_step(self) -> Built:
        tf = self.tf
        causal = tf.constant(np.triu(np.full((128, 128), -1e9, np.float32), 1))

        def heads(x: Any) -> Any:
            return tf.transpose(tf.reshape(x, [8, 128, HEADS, 256 // HEADS]), [0, 2, 1, 3])

        def normal_of(x: Any, gain: Any) -> Any:
            mean, variance = tf.nn.moments(x, [-1], keepdims=True)
            return (x - mean) * tf.math.rsqrt(variance + 1e-5) * gain

        def loss_of(x: Any, y: Any, q: Any, k: Any, v: Any, o: Any, w1: Any, w2: Any, g1: Any, g2: Any) -> Any:
            n = normal_of(x, g1)
            queries, keys, values = heads(tf.matmul(n, q)), heads(tf.matmul(n, k)), heads(tf.matmul(n, v))
            scores = tf.matmul(queries, keys, transpose_b=True) * (256 // HEADS) ** -0.5 + causal
            mixed = tf.transpose(tf.matmul(tf.nn.softmax(scores), values), [0, 2, 1, 3])
            x = x + tf.matmul(tf.reshape(mixed, [8, 128, 256]), o)
            n = normal_of(x, g2)
            outputs = x + tf.matmul(tf.nn.gelu(tf.matmul(n, w1), approximate=True), w2)
            return tf.reduce_mean(tf.square(outputs - y))

        return self._descent(transformer_data(), loss_of)

    def _keras(self) -> Any:
        """CNN A as a Keras model that is ready to be trained."""
        keras = self.tf.keras
        model = keras.Sequential([
            keras.Input((28, 28, 1)),
            keras.layers.Conv2D(16, 3, activation="relu"),
            keras.layers.Conv2D(16, 3, activation="relu"),
            keras.layers.GlobalAveragePooling2D(),
            keras.layers.Dense(10),
        ])
        model.set_weights(cnn_data()[2])
        model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
        return model

    def _bare(self) -> Any:
        """A compiled step that does what `fit` does with a batch, and nothing around it."""
        model = self._keras()
        model.optimizer.build(model.trainable_variables)
        return self.tf.function(lambda x, y: model.train_step((x, y)))

    def keras_bare(self) -> Built:
        x, y, _ = cnn_data()
        batches = [(self.tf.constant(x[i:i + 32]), self.tf.constant(y[i:i + 32])) for i in range(0, len(x), 32)]
        step, fresh = self._bare(), self._bare()

        def steps() -> None:
            for batch in batches:
                step(*batch)

        def loss() -> Any:
            for batch in batches:
                logs = fresh(*batch)
            return logs["loss"]

        return "steps()", {"steps": steps, "loss": loss}, "loss()"

    def keras_fit(self) -> Built:
        x, y, _ = cnn_data()
        model, fresh = self._keras(), self._keras()
        loss = self.tf.constant(fresh.fit(x, y, batch_size=32, shuffle=False, verbose=0).history["loss"])
        return "model.fit(x, y, batch_size=32, verbose=0)", {"model": model, "x": x, "y": y, "loss": loss}, "loss"


class Twofold(TensorFlow):
    """This library."""

    def __init__(self) -> None:
        import twofold as tf

        self.tf, self.version = tf, tf.__version__


PEERS = {"numpy": eager.NumPy, "torch": Torch, "jax": Jax, "tensorflow": TensorFlow, "twofold": Twofold}


def process_code(case: str, peer: str) -> str:
    """No case of this area needs a fresh process."""
    raise KeyError(f"{case} for {peer}")
