"""The compiled cases: what a call costs, fused loops, reductions, row-wise kernels, a training step, compile times.

A peer is a class with one method a case, as in `eager.py`. Each compiles with its own means: `tf.function` (with
XLA in TensorFlow), `jax.jit`, `torch.compile`; NumPy has none and is there for scale.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from eager import Built, mlp_built, mlp_data, small

CASES = {
    "call_10": ("call of a * b + a, 10 floats", 1e-6),
    "grad_sum_ww": ("gradient of sum(w * w), 10 floats", 1e-6),
    "gelu_1e6": ("tanh-gelu, 1e6 floats", 2e-5),
    "gelu_1e7": ("tanh-gelu, 1e7 floats", 2e-5),
    "softmax": ("softmax, 1024x1024", 1e-5),
    "layer_norm": ("layer norm, 4096x768", 1e-4),
    "attention": ("attention, 8 heads of 64, 2048 queries and keys", 1e-4),
    "black_scholes": ("Black-Scholes, 1e6 options", 1e-4),
    "sum_1e7": ("sum of 1e7 floats", 1e-3),
    "logsumexp_1e7": ("logsumexp of 1e7 floats", 1e-5),
    "mlp_adam": ("MLP 784-128-10, batch 32, Adam step", 1e-3),
    "chain_5000": ("chain of 5000 ops, 10 floats", 1e-3),
}

RATE, BETA1, BETA2, EPSILON = 0.001, 0.9, 0.999, 1e-7
STRIKE, TIME, INTEREST, VOLATILITY = 100.0, 1.0, 0.02, 0.3


def normal(seed: int, *shape: int) -> np.ndarray:
    """Normal numbers."""
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def attention_data() -> list[np.ndarray]:
    """Queries, keys and values of 8 heads."""
    return [normal(n, 1, 8, 2048, 64) for n in range(3)]


def prices() -> np.ndarray:
    """Prices of a million shares."""
    return np.random.default_rng(3).uniform(50, 150, 1_000_000).astype(np.float32)


class NumPy:
    """What the same formulas cost without a compiler."""

    def __init__(self) -> None:
        self.version = np.__version__

    @staticmethod
    def to_numpy(value: Any) -> np.ndarray:
        return np.asarray(value)

    def call_10(self) -> Built:
        return "a * b + a", {"a": small(1), "b": small(2)}, "a * b + a"

    def _gelu(self, n: int) -> Built:
        scale, half, cubic, one = (np.float32(v) for v in ((2 / np.pi) ** 0.5, 0.5, 0.044715, 1))

        def gelu(x: Any) -> Any:
            return half * x * (one + np.tanh(scale * (x + cubic * x * x * x)))

        return "gelu(a)", {"gelu": gelu, "a": normal(1, n)}, "gelu(a)"

    def gelu_1e6(self) -> Built:
        return self._gelu(1_000_000)

    def gelu_1e7(self) -> Built:
        return self._gelu(10_000_000)

    def softmax(self) -> Built:
        def softmax(x: Any) -> Any:
            e = np.exp(x - x.max(axis=-1, keepdims=True))
            return e / e.sum(axis=-1, keepdims=True)

        return "f(a)", {"f": softmax, "a": normal(1, 1024, 1024)}, "f(a)"

    def layer_norm(self) -> Built:
        def layer_norm(x: Any) -> Any:
            d = x - x.mean(axis=-1, keepdims=True)
            return d / np.sqrt((d * d).mean(axis=-1, keepdims=True) + np.float32(1e-5))

        return "f(a)", {"f": layer_norm, "a": normal(1, 4096, 768)}, "f(a)"

    def sum_1e7(self) -> Built:
        return "a.sum()", {"a": normal(1, 10_000_000)}, "a.sum()"


class Torch:
    """PyTorch with `torch.compile`."""

    def __init__(self) -> None:
        import torch

        self.torch, self.version = torch, torch.__version__

    @staticmethod
    def to_numpy(value: Any) -> np.ndarray:
        return value.detach().numpy()

    def _case(self, fn: Any, *arrays: np.ndarray) -> Built:
        names = {f"x{n}": self.torch.tensor(a) for n, a in enumerate(arrays)}
        call = f"f({', '.join(names)})"
        return call, {"f": self.torch.compile(fn), **names}, call

    def call_10(self) -> Built:
        return self._case(lambda a, b: a * b + a, small(1), small(2))

    def gelu_1e6(self) -> Built:
        return self._case(lambda x: self.torch.nn.functional.gelu(x, approximate="tanh"), normal(1, 1_000_000))

    def gelu_1e7(self) -> Built:
        return self._case(lambda x: self.torch.nn.functional.gelu(x, approximate="tanh"), normal(1, 10_000_000))

    def softmax(self) -> Built:
        return self._case(lambda x: self.torch.softmax(x, -1), normal(1, 1024, 1024))

    def attention(self) -> Built:
        return self._case(self.torch.nn.functional.scaled_dot_product_attention, *attention_data())

    def layer_norm(self) -> Built:
        return self._case(lambda x: self.torch.nn.functional.layer_norm(x, (768,)), normal(1, 4096, 768))

    def sum_1e7(self) -> Built:
        return self._case(lambda x: x.sum(), normal(1, 10_000_000))

    def logsumexp_1e7(self) -> Built:
        return self._case(lambda x: self.torch.logsumexp(x, 0), normal(1, 10_000_000))


class Jax:
    """JAX with `jit`; each statement waits for the result."""

    def __init__(self) -> None:
        import jax

        self.jax, self.version = jax, jax.__version__

    @staticmethod
    def to_numpy(value: Any) -> np.ndarray:
        return np.asarray(value)

    def _case(self, fn: Any, *arrays: np.ndarray) -> Built:
        names = {f"x{n}": self.jax.numpy.asarray(a) for n, a in enumerate(arrays)}
        call = f"f({', '.join(names)})"
        return f"{call}.block_until_ready()", {"f": self.jax.jit(fn), **names}, call

    def call_10(self) -> Built:
        return self._case(lambda a, b: a * b + a, small(1), small(2))

    def grad_sum_ww(self) -> Built:
        return self._case(self.jax.grad(lambda w: (w * w).sum()), small(1))

    def gelu_1e6(self) -> Built:
        return self._case(lambda x: self.jax.nn.gelu(x, approximate=True), normal(1, 1_000_000))

    def gelu_1e7(self) -> Built:
        return self._case(lambda x: self.jax.nn.gelu(x, approximate=True), normal(1, 10_000_000))

    def softmax(self) -> Built:
        return self._case(self.jax.nn.softmax, normal(1, 1024, 1024))

    def attention(self) -> Built:
        jax = self.jax

        def attention(q: Any, k: Any, v: Any) -> Any:  # dot_product_attention wants heads behind rows
            q, k, v = (x.swapaxes(1, 2) for x in (q, k, v))
            return jax.nn.dot_product_attention(q, k, v).swapaxes(1, 2)

        return self._case(attention, *attention_data())

    def layer_norm(self) -> Built:
        jnp = self.jax.numpy

        def layer_norm(x: Any) -> Any:
            d = x - x.mean(axis=-1, keepdims=True)
            return d * self.jax.lax.rsqrt(jnp.square(d).mean(axis=-1, keepdims=True) + 1e-5)

        return self._case(layer_norm, normal(1, 4096, 768))

    def black_scholes(self) -> Built:
        jnp, erf = self.jax.numpy, self.jax.scipy.special.erf

        def cdf(x: Any) -> Any:
            return 0.5 * (1.0 + erf(x * 0.7071067811865476))

        def call(s: Any) -> Any:
            spread = VOLATILITY * TIME**0.5
            d1 = (jnp.log(s / STRIKE) + (INTEREST + 0.5 * VOLATILITY**2) * TIME) / spread
            return s * cdf(d1) - STRIKE * jnp.exp(-INTEREST * TIME) * cdf(d1 - spread)

        return self._case(call, prices())

    def sum_1e7(self) -> Built:
        return self._case(lambda x: x.sum(), normal(1, 10_000_000))

    def logsumexp_1e7(self) -> Built:
        return self._case(self.jax.scipy.special.logsumexp, normal(1, 10_000_000))

    def chain_5000(self) -> Built:
        return self._case(lambda x: chained(x, 5000), small(1))

    def mlp_adam(self) -> Built:
        jax, jnp = self.jax, self.jax.numpy
        x, y, start = mlp_data()
        x, y, rows = jnp.asarray(x), jnp.asarray(y), jnp.arange(32)

        def loss_of(parameters: Any) -> Any:
            w1, b1, w2, b2 = parameters
            logits = jax.nn.relu(x @ w1 + b1) @ w2 + b2
            return -jax.nn.log_softmax(logits)[rows, y].mean()

        def update(parameters: Any, first: Any, second: Any, count: Any) -> Any:
            loss, gradients = jax.value_and_grad(loss_of)(parameters)
            count = count + 1
            rate = RATE * jnp.sqrt(1 - BETA2**count) / (1 - BETA1**count)
            first = [BETA1 * m + (1 - BETA1) * g for m, g in zip(first, gradients, strict=True)]
            second = [BETA2 * v + (1 - BETA2) * g * g for v, g in zip(second, gradients, strict=True)]
            parameters = [p - rate * m / (jnp.sqrt(v) + EPSILON)
                          for p, m, v in zip(parameters, first, second, strict=True)]
            return loss, parameters, first, second, count

        compiled = jax.jit(update, donate_argnums=(0, 1, 2))

        def make() -> Any:
            state = [[jnp.array(v) for v in start], [jnp.zeros_like(v) for v in start],
                     [jnp.zeros_like(v) for v in start], jnp.float32(0)]

            def step() -> Any:
                loss, *state[:] = compiled(*state)
                jax.block_until_ready(state)
                return loss

            return step

        return mlp_built(make)


class TensorFlow:
    """TensorFlow with `tf.function`, compiled by XLA."""

    options: dict[str, Any] = {"jit_compile": True}

    def __init__(self) -> None:
        import tensorflow as tf

        self.tf, self.version = tf, tf.__version__

    @staticmethod
    def to_numpy(value: Any) -> np.ndarray:
        return value.numpy()

    def _case(self, fn: Any, *arrays: np.ndarray) -> Built:
        names = {f"x{n}": self.tf.constant(a) for n, a in enumerate(arrays)}
        call = f"f({', '.join(names)})"
        return call, {"f": self.tf.function(fn, **self.options), **names}, call

    def call_10(self) -> Built:
        return self._case(lambda a, b: a * b + a, small(1), small(2))

    def grad_sum_ww(self) -> Built:
        tf = self.tf

        def gradient(w: Any) -> Any:
            with tf.GradientTape() as tape:
                tape.watch(w)
                loss = tf.reduce_sum(w * w)
            return tape.gradient(loss, w)

        return self._case(gradient, small(1))

    def gelu_1e6(self) -> Built:
        return self._case(lambda x: self.tf.nn.gelu(x, approximate=True), normal(1, 1_000_000))

    def gelu_1e7(self) -> Built:
        return self._case(lambda x: self.tf.nn.gelu(x, approximate=True), normal(1, 10_000_000))

    def softmax(self) -> Built:
        return self._case(self.tf.nn.softmax, normal(1, 1024, 1024))

    def attention(self) -> Built:
        tf = self.tf

        def attention(q: Any, k: Any, v: Any) -> Any:
            return tf.matmul(tf.nn.softmax(tf.matmul(q * 0.125, k, transpose_b=True)), v)

        return self._case(attention, *attention_data())

    def layer_norm(self) -> Built:
        tf = self.tf

        def layer_norm(x: Any) -> Any:
            d = x - tf.reduce_mean(x, axis=-1, keepdims=True)
            return d * tf.math.rsqrt(tf.reduce_mean(tf.square(d), axis=-1, keepdims=True) + 1e-5)

        return self._case(layer_norm, normal(1, 4096, 768))

    def black_scholes(self) -> Built:
        tf = self.tf

        def cdf(x: Any) -> Any:
            return 0.5 * (1.0 + tf.math.erf(x * 0.7071067811865476))

        def call(s: Any) -> Any:
            spread = VOLATILITY * TIME**0.5
            d1 = (tf.math.log(s / STRIKE) + (INTEREST + 0.5 * VOLATILITY**2) * TIME) / spread
            return s * cdf(d1) - STRIKE * tf.exp(-INTEREST * TIME) * cdf(d1 - spread)

        return self._case(call, prices())

    def sum_1e7(self) -> Built:
        return self._case(self.tf.reduce_sum, normal(1, 10_000_000))

    def logsumexp_1e7(self) -> Built:
        return self._case(self.tf.reduce_logsumexp, normal(1, 10_000_000))

    def mlp_adam(self) -> Built:
        tf = self.tf
        x, y, start = mlp_data()
        x, y = tf.constant(x), tf.constant(y)

        def make() -> Any:
            variables = [tf.Variable(value) for value in start]
            first = [tf.Variable(tf.zeros(value.shape)) for value in start]
            second = [tf.Variable(tf.zeros(value.shape)) for value in start]
            count = tf.Variable(0.0)

            @tf.function(**self.options)
            def step() -> Any:
                w1, b1, w2, b2 = variables
                with tf.GradientTape() as tape:
                    logits = tf.matmul(tf.nn.relu(tf.matmul(x, w1) + b1), w2) + b2
                    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
                gradients = tape.gradient(loss, variables)
                count.assign_add(1.0)
                rate = RATE * tf.sqrt(1 - tf.pow(BETA2, count)) / (1 - tf.pow(BETA1, count))
                for p, m, v, g in zip(variables, first, second, gradients, strict=True):
                    m.assign(BETA1 * m + (1 - BETA1) * g)
                    v.assign(BETA2 * v + (1 - BETA2) * g * g)
                    p.assign_sub(rate * m / (tf.sqrt(v) + EPSILON))
                return loss

            return step

        return mlp_built(make)


class Twofold(TensorFlow):
    """This library."""

    options: dict[str, Any] = {}

    def __init__(self) -> None:
        import twofold as tf

        self.tf, self.version = tf, tf.__version__

    def chain_5000(self) -> Built:
        return self._case(lambda x: chained(x, 5000), small(1))


def chained(x: Any, n: int) -> Any:
    """A chain of `n` ops."""
    for _ in range(n // 2):
        x = x * 0.9999 + 0.001
    return x


PEERS = {"numpy": NumPy, "torch": Torch, "jax": Jax, "tensorflow": TensorFlow, "twofold": Twofold}

# What a package makes ready while it runs, better code among it, it has made ready before it is timed.
WARM_SECONDS = 1.0

PROCESS_CASES = {
    "mlp_first_cold": ("import and first MLP training step, empty cache", True),
    "mlp_first_warm": ("import and first MLP training step, from the disk cache", False),
    "chain_100_first": ("import and first call of a chain of 100 ops, empty cache", True),
    "chain_1000_first": ("import and first call of a chain of 1000 ops, empty cache", True),
    "chain_5000_first": ("import and first call of a chain of 5000 ops, empty cache", True),
}

_FIRST = """
import sys, time
import numpy.random  # the data come from it, whatever the peer imports
sys.path.insert(0, {here!r})
{before}
start = time.perf_counter()
{timed}
print(time.perf_counter() - start)
"""


def first_code(before: str, timed: str) -> str:
    """A program that prints the seconds of `timed`, which runs after `before`."""
    from pathlib import Path

    return _FIRST.format(here=str(Path(__file__).parent), before=before, timed=timed)


def process_code(case: str, peer: str) -> str:
    """A program that prints the seconds of `case` for `peer`; one that has no such case ends with an error.

    They begin before the package is imported: what it puts off until the first call counts, too.
    """
    timed = f"import compiled\npeer = compiled.PEERS[{peer!r}]()\n"
    if case.startswith("mlp"):
        return first_code("", timed + "peer.mlp_adam()")
    n = int(case.split("_")[1])
    return first_code("", timed + f"statement, names, result = peer._case(lambda x: compiled.chained(x, {n}), "
                                  "compiled.small(1))\npeer.to_numpy(eval(result, names))")
