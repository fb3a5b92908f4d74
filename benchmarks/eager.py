"""The eager cases: one op, small chains, large arrays, a gradient, a training step, and what a process costs to start.

A peer is a class with one method a case, which gives `(statement to time, its names, expression of its result)`. The
data is the same for all, and each is written as its own users write it. TensorFlow and twofold share their code,
since they share their API.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Built = tuple[str, dict[str, Any], str]

# Case -> (what it is, relative tolerance between the peers' results).
WARM_SECONDS = 1.0  # what a package makes ready while it runs, it has made ready before it is timed

CASES = {
    "add_10": ("a + b, 10 floats", 0.0),
    "matmul_10": ("matmul, 10x10", 1e-5),
    "chain_20": ("chain of 20 ops, 10 floats", 1e-4),
    "add_1e6": ("a + b, 1e6 floats", 0.0),
    "add_turned": ("a + transpose(b), 1000x1000", 0.0),
    "gelu_1e6": ("tanh-gelu, 1e6 floats", 2e-5),
    "grad_sum_ww": ("gradient of sum(w * w), 10 floats", 1e-6),
    "mlp_step": ("MLP 784-128-10, batch 32, SGD step", 1e-3),
}

LEARNING_RATE = 0.1


def small(seed: int) -> np.ndarray:
    """Ten floats."""
    return np.random.default_rng(seed).normal(size=10).astype(np.float32)


def square(seed: int, size: int = 10) -> np.ndarray:
    """A square matrix."""
    return np.random.default_rng(seed).normal(size=(size, size)).astype(np.float32)


def large(seed: int) -> np.ndarray:
    """A million floats."""
    return np.random.default_rng(seed).normal(size=1_000_000).astype(np.float32)


def mlp_data() -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """A batch of 32 images, their classes, and the weights and biases to start from."""
    rng = np.random.default_rng(5)
    x = rng.random((32, 784)).astype(np.float32)
    y = rng.integers(0, 10, 32).astype(np.int32)
    first = (rng.normal(size=(784, 128)) * 0.05).astype(np.float32)
    second = (rng.normal(size=(128, 10)) * 0.1).astype(np.float32)
    return x, y, [first, np.zeros(128, np.float32), second, np.zeros(10, np.float32)]


def mlp_built(make: Any) -> Built:
    """The case from `make() -> step`: a step to time, and the losses of three steps of another model to compare."""
    fresh = make()
    losses = [fresh() for _ in range(3)]
    return "step()", {"step": make(), "losses": losses}, "losses"


class NumPy:
    """What one writes without a tensor library; the gradient of the training step is derived by hand."""

    def __init__(self) -> None:
        self.version = np.__version__

    @staticmethod
    def to_numpy(value: Any) -> np.ndarray:
        return np.asarray(value)

    def add_10(self) -> Built:
        return "a + b", {"a": small(1), "b": small(2)}, "a + b"

    def matmul_10(self) -> Built:
        return "matmul(a, b)", {"matmul": np.matmul, "a": square(1), "b": square(2)}, "matmul(a, b)"

    def chain_20(self) -> Built:
        w, b = small(2), small(3)

        def chain(x: Any) -> Any:
            for _ in range(5):
                x = np.exp(np.tanh(x * w + b))
            return x

        return "chain(a)", {"chain": chain, "a": small(1)}, "chain(a)"

    def add_1e6(self) -> Built:
        return "a + b", {"a": large(1), "b": large(2)}, "a + b"

    def add_turned(self) -> Built:
        return "a + b.T", {"a": square(1, 1000), "b": square(2, 1000)}, "a + b.T"

    def gelu_1e6(self) -> Built:
        scale, half, cubic, one = (np.float32(v) for v in ((2 / np.pi) ** 0.5, 0.5, 0.044715, 1))

        def gelu(x: Any) -> Any:
            return half * x * (one + np.tanh(scale * (x + cubic * x * x * x)))

        return "gelu(a)", {"gelu": gelu, "a": large(1)}, "gelu(a)"

    def mlp_step(self) -> Built:
        x, y, start = mlp_data()
        rate, rows = np.float32(LEARNING_RATE), np.arange(32)

        def make() -> Any:
            w1, b1, w2, b2 = (value.copy() for value in start)

            def step() -> Any:
                hidden = np.maximum(x @ w1 + b1, 0)
                logits = hidden @ w2 + b2
                shifted = logits - logits.max(axis=1, keepdims=True)
                e = np.exp(shifted)
                total = e.sum(axis=1, keepdims=True)
                loss = (np.log(total[:, 0]) - shifted[rows, y]).mean()
                d = e / total
                d[rows, y] -= 1
                d /= 32
                d_hidden = (d @ w2.T) * (hidden > 0)
                w2[...] -= rate * (hidden.T @ d)
                b2[...] -= rate * d.sum(axis=0)
                w1[...] -= rate * (x.T @ d_hidden)
                b1[...] -= rate * d_hidden.sum(axis=0)
                return loss

            return step

        return mlp_built(make)


class Torch:
    """PyTorch in its eager mode."""

    def __init__(self) -> None:
        import torch

        self.torch, self.version = torch, torch.__version__

    @staticmethod
    def to_numpy(value: Any) -> np.ndarray:
        return value.detach().numpy()

    def add_10(self) -> Built:
        return "a + b", {"a": self.torch.tensor(small(1)), "b": self.torch.tensor(small(2))}, "a + b"

    def matmul_10(self) -> Built:
        names = {"matmul": self.torch.matmul, "a": self.torch.tensor(square(1)), "b": self.torch.tensor(square(2))}
        return "matmul(a, b)", names, "matmul(a, b)"

    def chain_20(self) -> Built:
        torch = self.torch
        w, b = torch.tensor(small(2)), torch.tensor(small(3))

        def chain(x: Any) -> Any:
            for _ in range(5):
                x = torch.exp(torch.tanh(x * w + b))
            return x

        return "chain(a)", {"chain": chain, "a": torch.tensor(small(1))}, "chain(a)"

    def add_1e6(self) -> Built:
        return "a + b", {"a": self.torch.tensor(large(1)), "b": self.torch.tensor(large(2))}, "a + b"

    def add_turned(self) -> Built:
        names = {"a": self.torch.tensor(square(1, 1000)), "b": self.torch.tensor(square(2, 1000))}
        return "a + b.T", names, "a + b.T"

    def gelu_1e6(self) -> Built:
        names = {"gelu": self.torch.nn.functional.gelu, "a": self.torch.tensor(large(1))}
        return "gelu(a, approximate='tanh')", names, "gelu(a, approximate='tanh')"

    def grad_sum_ww(self) -> Built:
        torch = self.torch
        w = torch.tensor(small(1), requires_grad=True)

        def gradient() -> Any:
            return torch.autograd.grad((w * w).sum(), w)[0]

        return "gradient()", {"gradient": gradient}, "gradient()"

    def mlp_step(self) -> Built:
        torch = self.torch
        x, y, start = mlp_data()
        x, y = torch.tensor(x), torch.tensor(y).long()

        def make() -> Any:
            parameters = [torch.tensor(value, requires_grad=True) for value in start]

            def step() -> Any:
                w1, b1, w2, b2 = parameters
                loss = torch.nn.functional.cross_entropy(torch.relu(x @ w1 + b1) @ w2 + b2, y)
                gradients = torch.autograd.grad(loss, parameters)
                with torch.no_grad():
                    for parameter, gradient in zip(parameters, gradients, strict=True):
                        parameter.sub_(gradient, alpha=LEARNING_RATE)
                return loss

            return step

        return mlp_built(make)


class Jax:
    """JAX op by op, without `jit`; its calls return early, so each statement waits for the result."""

    def __init__(self) -> None:
        import jax

        self.jax, self.version = jax, jax.__version__

    @staticmethod
    def to_numpy(value: Any) -> np.ndarray:
        return np.asarray(value)

    def _array(self, value: np.ndarray) -> Any:
        return self.jax.numpy.asarray(value)

    def add_10(self) -> Built:
        return "(a + b).block_until_ready()", {"a": self._array(small(1)), "b": self._array(small(2))}, "a + b"

    def matmul_10(self) -> Built:
        names = {"matmul": self.jax.numpy.matmul, "a": self._array(square(1)), "b": self._array(square(2))}
        return "matmul(a, b).block_until_ready()", names, "matmul(a, b)"

    def chain_20(self) -> Built:
        jnp = self.jax.numpy
        w, b = self._array(small(2)), self._array(small(3))

        def chain(x: Any) -> Any:
            for _ in range(5):
                x = jnp.exp(jnp.tanh(x * w + b))
            return x

        return "chain(a).block_until_ready()", {"chain": chain, "a": self._array(small(1))}, "chain(a)"

    def add_1e6(self) -> Built:
        return "(a + b).block_until_ready()", {"a": self._array(large(1)), "b": self._array(large(2))}, "a + b"

    def add_turned(self) -> Built:
        names = {"a": self._array(square(1, 1000)), "b": self._array(square(2, 1000))}
        return "(a + b.T).block_until_ready()", names, "a + b.T"

    def gelu_1e6(self) -> Built:
        names = {"gelu": self.jax.nn.gelu, "a": self._array(large(1))}
        return "gelu(a, approximate=True).block_until_ready()", names, "gelu(a, approximate=True)"

    def grad_sum_ww(self) -> Built:
        gradient = self.jax.grad(lambda w: (w * w).sum())
        return "gradient(w).block_until_ready()", {"gradient": gradient, "w": self._array(small(1))}, "gradient(w)"

    def mlp_step(self) -> Built:
        jax, jnp = self.jax, self.jax.numpy
        x, y, start = mlp_data()
        x, y, rows = self._array(x), self._array(y), jnp.arange(32)

        def loss_of(parameters: Any) -> Any:
            w1, b1, w2, b2 = parameters
            logits = jax.nn.relu(x @ w1 + b1) @ w2 + b2
            return -jax.nn.log_softmax(logits)[rows, y].mean()

        value_and_grad = jax.value_and_grad(loss_of)

        def make() -> Any:
            parameters = [self._array(value) for value in start]

            def step() -> Any:
                loss, gradients = value_and_grad(parameters)
                parameters[:] = [p - LEARNING_RATE * g for p, g in zip(parameters, gradients, strict=True)]
                jax.block_until_ready(parameters)
                return loss

            return step

        return mlp_built(make)


class TensorFlow:
    """TensorFlow 2 in its eager mode."""

    def __init__(self) -> None:
        import tensorflow as tf

        self.tf, self.version = tf, tf.__version__

    @staticmethod
    def to_numpy(value: Any) -> np.ndarray:
        return value.numpy()

    def add_10(self) -> Built:
        return "a + b", {"a": self.tf.constant(small(1)), "b": self.tf.constant(small(2))}, "a + b"

    def matmul_10(self) -> Built:
        names = {"matmul": self.tf.matmul, "a": self.tf.constant(square(1)), "b": self.tf.constant(square(2))}
        return "matmul(a, b)", names, "matmul(a, b)"

    def chain_20(self) -> Built:
        tf = self.tf
        w, b = tf.constant(small(2)), tf.constant(small(3))

        def chain(x: Any) -> Any:
            for _ in range(5):
                x = tf.exp(tf.tanh(x * w + b))
            return x

        return "chain(a)", {"chain": chain, "a": tf.constant(small(1))}, "chain(a)"

    def add_1e6(self) -> Built:
        return "a + b", {"a": self.tf.constant(large(1)), "b": self.tf.constant(large(2))}, "a + b"

    def add_turned(self) -> Built:
        names = {"transpose": self.tf.transpose, "a": self.tf.constant(square(1, 1000)),
                 "b": self.tf.constant(square(2, 1000))}
        return "a + transpose(b)", names, "a + transpose(b)"

    def gelu_1e6(self) -> Built:
        names = {"gelu": self.tf.nn.gelu, "a": self.tf.constant(large(1))}
        return "gelu(a, approximate=True)", names, "gelu(a, approximate=True)"

    def grad_sum_ww(self) -> Built:
        tf = self.tf
        w = tf.Variable(small(1))

        def gradient() -> Any:
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(w * w)
            return tape.gradient(loss, w)

        return "gradient()", {"gradient": gradient}, "gradient()"

    def mlp_step(self) -> Built:
        tf = self.tf
        x, y, start = mlp_data()
        x, y = tf.constant(x), tf.constant(y)

        def make() -> Any:
            variables = [tf.Variable(value) for value in start]

            def step() -> Any:
                w1, b1, w2, b2 = variables
                with tf.GradientTape() as tape:
                    logits = tf.matmul(tf.nn.relu(tf.matmul(x, w1) + b1), w2) + b2
                    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
                    loss = tf.reduce_mean(losses)
                for variable, gradient in zip(variables, tape.gradient(loss, variables), strict=True):
                    variable.assign_sub(LEARNING_RATE * gradient)
                return loss

            return step

        return mlp_built(make)


class Twofold(TensorFlow):
    """This library."""

    def __init__(self) -> None:
        import twofold as tf

        self.tf, self.version = tf, tf.__version__


PEERS = {"numpy": NumPy, "torch": Torch, "jax": Jax, "tensorflow": TensorFlow, "twofold": Twofold}

# What a process costs, measured in a fresh one each time: case -> (what it is, is the kernel cache empty?).
PROCESS_CASES = {
    "import": ("import", False),
    "first_op": ("first a + b after the import", False),
    "new_op_cold": ("first exp after an add, empty cache", True),
}

_TENSORS = {
    "numpy": ("import numpy as np", "np.array({0}, 'float32')", "np.exp(a)"),
    "torch": ("import torch", "torch.tensor({0})", "torch.exp(a)"),
    "jax": ("import jax, jax.numpy as jnp", "jnp.array({0})", "jnp.exp(a).block_until_ready()"),
    "tensorflow": ("import tensorflow as tf", "tf.constant({0})", "tf.exp(a)"),
    "twofold": ("import twofold as tf", "tf.constant({0})", "tf.exp(a)"),
}


def process_code(case: str, peer: str) -> str:
    """A program that prints the seconds of `case` for `peer`."""
    load, constant, exp = _TENSORS[peer]
    add = f"a = {constant.format('[1.0, 2.0, 3.0]')}\na + a"
    before, timed = {
        "import": ("", load),
        "first_op": (load, add),
        "new_op_cold": (f"{load}\n{add}", exp),
    }[case]
    return f"import time\n{before}\nstart = time.perf_counter()\n{timed}\nprint(time.perf_counter() - start)"
