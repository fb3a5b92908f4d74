"""Whole steps of training: op by op, compiled, and by `fit`; convolutions, recurrences, a transformer block,
attention.

A peer is a class with one method a case, as in `eager.py`. All begin with the same weights, on the same batch, and
their losses over three steps must agree. Where a case says "compiled", TensorFlow and twofold run a `tf.function`, JAX
a jitted function, and PyTorch its own operations, of which LSTM and GRU are two. The update is gradient descent, but
for `fit`, which trains by Adam and keeps the mean of the accuracy: to be compared with the same step, bare.
"""

from __future__ import annotations

import functools
from typing import Any

import compiled
import numpy as np

import eager
from eager import Built, mlp_built

CASES = {
    "mlp_step": ("MLP 784-128-10, op by op", 1e-3),
    "cnn_eager": ("CNN A, op by op", 1e-3),
    "cnn_step": ("CNN A, compiled", 1e-3),
    "cnn_b_step": ("CNN B, four convolutions on 32x32x3, batch 32, compiled", 1e-3),
    "residual_step": ("residual block 56x56x64, batch 8, compiled", 1e-3),
    "lstm_step": ("LSTM 128, sequence 50, batch 32, compiled", 1e-3),
    "gru_step": ("GRU 128, sequence 50, batch 32, compiled", 1e-3),
    "transformer_step": ("transformer block 256, sequence 128, batch 8, compiled", 1e-3),
    "attention_step": ("attention, 8 heads of 64, 2048 queries and keys, compiled", 1e-3),
    "keras_bare": ("100 steps of a Keras CNN A, compiled, bare", 1e-3),
    "keras_fit": ("the same by fit", 1e-3),
}
PROCESS_CASES = {"cnn_first_cold": ("CNN A, compiled, the first steps, empty cache", True)}

# Training goes on for minutes: what a package makes ready while it runs, it has made ready before it is timed.
WARM_SECONDS = 1.0
SAMPLE_SECONDS = 0.25

RATE = 0.05
HEADS = 8
CNN_B = (32, 32, 32)  # images, their size, and channels of the first two convolutions
TRANSFORMER = (8, 128, 256)  # sequences, their length, and numbers of each place
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
def cnn_b_data() -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """CIFAR-sized images, labels, and the weights of four convolutions and two dense layers."""
    rng = np.random.default_rng(9)
    images, size, few = CNN_B
    many, dense = 2 * few, 8 * few
    shapes = [(3, 3, 3, few), (3, 3, few, few), (3, 3, few, many), (3, 3, many, many),
              ((size // 4) ** 2 * many, dense), (dense, 10)]
    x, y = rng.random((images, size, size, 3), np.float32), rng.integers(0, 10, images).astype(np.int32)
    return x, y, [normal(rng, *shape) for shape in shapes]


@functools.cache
def residual_data() -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """Images, what they shall become, and the weights of two convolutions, each with a gain and an offset."""
    rng = np.random.default_rng(10)
    x, y = (rng.normal(size=(8, 56, 56, 64)).astype(np.float32) for _ in range(2))
    one, none = np.ones(64, np.float32), np.zeros(64, np.float32)
    return x, y, [normal(rng, 3, 3, 64, 64), one, none, normal(rng, 3, 3, 64, 64), one, none]


@functools.cache
def gru_data() -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """Sequences of 64 numbers, a target each, and the weights of a GRU (update, reset, new) and a layer."""
    rng = np.random.default_rng(11)
    x = rng.normal(size=(32, 50, 64)).astype(np.float32)
    y = rng.normal(size=(32, 1)).astype(np.float32)
    return x, y, [normal(rng, 64, 384), normal(rng, 128, 384), np.zeros((2, 384), np.float32), normal(rng, 128, 1)]


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
    width = TRANSFORMER[-1]
    x, y = (rng.normal(size=TRANSFORMER).astype(np.float32) for _ in range(2))
    weights = [normal(rng, width, width) for _ in range(4)] + [normal(rng, width, 4 * width),
                                                               normal(rng, 4 * width, width)]
    return x, y, [*weights, np.ones(width, np.float32), np.ones(width, np.float32)]


@functools.cache
def attention_data() -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """A factor, what averages shall become, and queries, keys and values of 8 heads, which are what is trained."""
    rng = np.random.default_rng(12)
    y, *start = (rng.normal(size=(1, 8, 2048, 64)).astype(np.float32) for _ in range(4))
    return np.float32(64 ** -0.5), y, start


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

    def _channels_last(self, images: np.ndarray) -> Any:
        x = self.torch.tensor(images).permute(0, 3, 1, 2)
        return x.contiguous(memory_format=self.torch.channels_last)

    def cnn_b_step(self) -> Built:
        functional = self.torch.nn.functional
        x, y, start = cnn_b_data()
        start = [w.transpose(3, 2, 0, 1).copy() if w.ndim == 4 else w for w in start]

        def loss_of(x: Any, y: Any, k1: Any, k2: Any, k3: Any, k4: Any, w1: Any, w2: Any) -> Any:
            for first, second in ((k1, k2), (k3, k4)):
                x = functional.relu(functional.conv2d(x, first, padding=1))
                x = functional.max_pool2d(functional.relu(functional.conv2d(x, second, padding=1)), 2)
            x = x.permute(0, 2, 3, 1).reshape(len(x), -1)
            return functional.cross_entropy(functional.relu(x @ w1) @ w2, y)

        return self._descent((self._channels_last(x), self.torch.tensor(y).long(), start), loss_of)

    def residual_step(self) -> Built:
        functional = self.torch.nn.functional
        x, y, start = residual_data()
        start = [w.transpose(3, 2, 0, 1).copy() if w.ndim == 4 else w for w in start]

        def normal_of(x: Any, gain: Any, offset: Any) -> Any:
            return functional.batch_norm(x, None, None, gain, offset, training=True, eps=1e-3)

        def loss_of(x: Any, y: Any, k1: Any, g1: Any, o1: Any, k2: Any, g2: Any, o2: Any) -> Any:
            inner = functional.relu(normal_of(functional.conv2d(x, k1, padding=1), g1, o1))
            outer = functional.relu(x + normal_of(functional.conv2d(inner, k2, padding=1), g2, o2))
            return ((outer - y) ** 2).mean()

        return self._descent((self._channels_last(x), self._channels_last(y), start), loss_of)

    def gru_step(self) -> Built:
        torch = self.torch
        x, y, (inputs, state, bias, dense) = gru_data()
        begin = torch.zeros(1, 32, 128)

        def own(w: np.ndarray) -> np.ndarray:  # PyTorch has the reset before the update
            update, reset, new = np.split(w, 3, axis=-1)
            return np.concatenate([reset, update, new], axis=-1).T.copy()

        def loss_of(x: Any, y: Any, w: Any, u: Any, b: Any, c: Any, d: Any) -> Any:
            outputs, _ = torch.gru(x, begin, (w, u, b, c), True, 1, 0.0, True, False, True)
            return ((outputs[:, -1] @ d - y) ** 2).mean()

        start = [own(inputs), own(state), own(bias[0]), own(bias[1]), dense]
        return self._descent((torch.tensor(x), torch.tensor(y), start), loss_of)

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
            return x.reshape(*x.shape[:2], HEADS, -1).transpose(1, 2)

        def loss_of(x: Any, y: Any, q: Any, k: Any, v: Any, o: Any, w1: Any, w2: Any, g1: Any, g2: Any) -> Any:
            n = functional.layer_norm(x, x.shape[-1:], g1, eps=1e-5)
            mixed = functional.scaled_dot_product_attention(heads(n @ q), heads(n @ k), heads(n @ v), is_causal=True)
            x = x + mixed.transpose(1, 2).reshape(x.shape) @ o
            n = functional.layer_norm(x, x.shape[-1:], g2, eps=1e-5)
            return ((x + functional.gelu(n @ w1, approximate="tanh") @ w2 - y) ** 2).mean()

        return self._descent((self.torch.tensor(x), self.torch.tensor(y), start), loss_of)

    def attention_step(self) -> Built:
        x, y, start = attention_data()

        def loss_of(x: Any, y: Any, q: Any, k: Any, v: Any) -> Any:
            mixed = self.torch.nn.functional.scaled_dot_product_attention(q, k, v, scale=float(x))
            return ((mixed - y) ** 2).sum()

        return self._descent((x, self.torch.tensor(y), start), loss_of)


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

    def _same(self, x: Any, kernel: Any) -> Any:
        return self.jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    def cnn_b_step(self) -> Built:
        jax, jnp = self.jax, self.jax.numpy

        def loss_of(x: Any, y: Any, k1: Any, k2: Any, k3: Any, k4: Any, w1: Any, w2: Any) -> Any:
            for first, second in ((k1, k2), (k3, k4)):
                x = jax.nn.relu(self._same(jax.nn.relu(self._same(x, first)), second))
                x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
            logits = jax.nn.relu(x.reshape(len(x), -1) @ w1) @ w2
            return -jax.nn.log_softmax(logits)[jnp.arange(len(x)), y].mean()

        return self._descent(cnn_b_data(), loss_of)

    def residual_step(self) -> Built:
        jax = self.jax

        def normal_of(x: Any, gain: Any, offset: Any) -> Any:
            mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
            return (x - mean) * jax.lax.rsqrt(variance + 1e-3) * gain + offset

        def loss_of(x: Any, y: Any, k1: Any, g1: Any, o1: Any, k2: Any, g2: Any, o2: Any) -> Any:
            inner = jax.nn.relu(normal_of(self._same(x, k1), g1, o1))
            return ((jax.nn.relu(x + normal_of(self._same(inner, k2), g2, o2)) - y) ** 2).mean()

        return self._descent(residual_data(), loss_of)

    def gru_step(self) -> Built:
        jax, jnp = self.jax, self.jax.numpy

        def loss_of(x: Any, y: Any, w: Any, u: Any, b: Any, d: Any) -> Any:
            def cell(h: Any, projected: Any) -> Any:
                zx, rx, nx = jnp.split(projected, 3, axis=-1)
                zh, rh, nh = jnp.split(h @ u + b[1], 3, axis=-1)
                z = jax.nn.sigmoid(zx + zh)
                return z * h + (1 - z) * jnp.tanh(nx + jax.nn.sigmoid(rx + rh) * nh), None

            h, _ = jax.lax.scan(cell, jnp.zeros((32, 128)), (x @ w + b[0]).swapaxes(0, 1))
            return ((h @ d - y) ** 2).mean()

        return self._descent(gru_data(), loss_of)

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
            heads = [(n @ w).reshape(*x.shape[:2], HEADS, -1) for w in (q, k, v)]
            x = x + jax.nn.dot_product_attention(*heads, is_causal=True).reshape(x.shape) @ o
            n = normal_of(x, g2)
            return ((x + jax.nn.gelu(n @ w1, approximate=True) @ w2 - y) ** 2).mean()

        return self._descent(transformer_data(), loss_of)

    def attention_step(self) -> Built:
        jax = self.jax

        def loss_of(x: Any, y: Any, q: Any, k: Any, v: Any) -> Any:
            q, k, v, y = (each.swapaxes(1, 2) for each in (q * (x * 8), k, v, y))
            return ((jax.nn.dot_product_attention(q, k, v) - y) ** 2).sum()

        return self._descent(attention_data(), loss_of)


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

    def cnn_b_step(self) -> Built:
        tf = self.tf

        def loss_of(x: Any, y: Any, k1: Any, k2: Any, k3: Any, k4: Any, w1: Any, w2: Any) -> Any:
            for first, second in ((k1, k2), (k3, k4)):
                x = tf.nn.relu(tf.nn.conv2d(x, first, 1, "SAME"))
                x = tf.nn.max_pool2d(tf.nn.relu(tf.nn.conv2d(x, second, 1, "SAME")), 2, 2, "VALID")
            logits = tf.matmul(tf.nn.relu(tf.matmul(tf.reshape(x, [-1, w1.shape[0]]), w1)), w2)
            return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))

        return self._descent(cnn_b_data(), loss_of)

    def residual_step(self) -> Built:
        tf = self.tf

        def normal_of(x: Any, gain: Any, offset: Any) -> Any:
            return tf.nn.batch_normalization(x, *tf.nn.moments(x, [0, 1, 2]), offset, gain, 1e-3)

        def loss_of(x: Any, y: Any, k1: Any, g1: Any, o1: Any, k2: Any, g2: Any, o2: Any) -> Any:
            inner = tf.nn.relu(normal_of(tf.nn.conv2d(x, k1, 1, "SAME"), g1, o1))
            outer = tf.nn.relu(x + normal_of(tf.nn.conv2d(inner, k2, 1, "SAME"), g2, o2))
            return tf.reduce_mean(tf.square(outer - y))

        return self._descent(residual_data(), loss_of)

    def gru_step(self) -> Built:
        return self._recurrent(self.tf.keras.layers.GRU, gru_data())

    def lstm_step(self) -> Built:
        return self._recurrent(self.tf.keras.layers.LSTM, lstm_data())

    def _recurrent(self, kind: Any, data: Any) -> Built:
        tf = self.tf
        x, y, start = tf.constant(data[0]), tf.constant(data[1]), data[2]

        def make() -> Any:
            layer = kind(128)
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
        length, width = TRANSFORMER[1:]
        causal = tf.constant(np.triu(np.full((length, length), -1e9, np.float32), 1))

        def heads(x: Any) -> Any:
            return tf.transpose(tf.reshape(x, [-1, length, HEADS, width // HEADS]), [0, 2, 1, 3])

        def normal_of(x: Any, gain: Any) -> Any:
            mean, variance = tf.nn.moments(x, [-1], keepdims=True)
            return (x - mean) * tf.math.rsqrt(variance + 1e-5) * gain

        def loss_of(x: Any, y: Any, q: Any, k: Any, v: Any, o: Any, w1: Any, w2: Any, g1: Any, g2: Any) -> Any:
            n = normal_of(x, g1)
            queries, keys, values = heads(tf.matmul(n, q)), heads(tf.matmul(n, k)), heads(tf.matmul(n, v))
            scores = tf.matmul(queries, keys, transpose_b=True) * (width // HEADS) ** -0.5 + causal
            mixed = tf.transpose(tf.matmul(tf.nn.softmax(scores), values), [0, 2, 1, 3])
            x = x + tf.matmul(tf.reshape(mixed, [-1, length, width]), o)
            n = normal_of(x, g2)
            outputs = x + tf.matmul(tf.nn.gelu(tf.matmul(n, w1), approximate=True), w2)
            return tf.reduce_mean(tf.square(outputs - y))

        return self._descent(transformer_data(), loss_of)

    def attention_step(self) -> Built:
        tf = self.tf

        def loss_of(x: Any, y: Any, q: Any, k: Any, v: Any) -> Any:
            weights = tf.nn.softmax(tf.matmul(q * x, k, transpose_b=True))
            return tf.reduce_sum(tf.square(tf.matmul(weights, v) - y))

        return self._descent(attention_data(), loss_of)

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
    """A program that prints the seconds of `case` for `peer`; one that has no such case ends with an error."""
    before = f"import training\npeer = training.PEERS[{peer!r}]()\ntraining.cnn_data()"
    return compiled.first_code(before, f"peer.{case.split('_')[0]}_step()")
