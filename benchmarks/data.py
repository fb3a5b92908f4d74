"""The input pipelines: MNIST-sized batches, functions of elements, single elements, padding, a fed training step.

A peer is a class with one method a case, as in `eager.py`; what is timed is one `next` of an endless iterator, so that
a time is that of a batch. TensorFlow and twofold share their code. NumPy stands for what one writes by hand.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from eager import Built

CASES = {
    "shuffled": ("60000 images, shuffle(60000), batch(32)", 1e-4),
    "batched": ("60000 images, batch(32)", 1e-4),
    "batch_mapped": ("shuffle(1000), batch(32), map(x / 255)", 1e-4),
    "mapped": ("map(x / 255), shuffle(1000), batch(32)", 1e-4),
    "mapped_ahead": ("as before, parallel, prefetch(2)", 1e-4),
    "cached": ("map(x / 255), cache, shuffle(1000), batch(32)", 1e-4),
    "padded": ("rows of 0 to 9 numbers, padded_batch(32)", 1e-6),
    "elements": ("numbers of a range, one by one", 0.0),
    "step": ("CNN step, one batch of 32 again and again", 1e-3),
    "step_fed": ("CNN step, batches of 32 from shuffle, prefetch", 1e-3),
}
PROCESS_CASES: dict[str, tuple[str, bool]] = {}

COUNT, BATCH = 60_000, 32


@functools.cache
def images() -> tuple[np.ndarray, np.ndarray]:
    """As many images as MNIST has, float32, and labels."""
    rng = np.random.default_rng(1)
    return rng.random((COUNT, 28, 28, 1), np.float32), rng.integers(0, 10, COUNT)


@functools.cache
def lengths() -> np.ndarray:
    """Lengths of rows."""
    return np.random.default_rng(2).integers(0, 10, 10_000)


@functools.cache
def weights() -> list[np.ndarray]:
    """The weights of a small convolutional net."""
    rng = np.random.default_rng(3)
    shapes = [(3, 3, 1, 16), (3, 3, 16, 32), (7 * 7 * 32, 10)]
    return [(rng.normal(size=s) * 0.1).astype(np.float32) for s in shapes]


class NumPy:
    """Indexing by hand."""

    def __init__(self) -> None:
        self.version = np.__version__

    @staticmethod
    def to_numpy(value: Any) -> np.ndarray:
        return np.asarray(value)

    def _case(self, order: Any, change: Any = None) -> Built:
        x, y = images()

        def epoch() -> Any:
            places = order()
            for start in range(0, COUNT, BATCH):
                chosen = places[start:start + BATCH]
                rows = x[chosen]
                yield (rows if change is None else change(rows)), y[chosen]

        def endless() -> Any:
            while True:
                yield from epoch()

        return built(endless(), epoch)

    def shuffled(self) -> Built:
        return self._case(lambda: np.random.default_rng().permutation(COUNT))

    def batched(self) -> Built:
        return self._case(lambda: np.arange(COUNT))

    def batch_mapped(self) -> Built:
        return self._case(lambda: np.random.default_rng().permutation(COUNT), lambda x: x / np.float32(255))


def built(endless: Any, epoch: Any) -> Built:
    """A case that takes batches from an iterator; compared are the sums of an epoch."""
    def sums() -> list[float]:
        total = [0.0, 0.0]
        for x, y in epoch():
            total[0] += float(np.sum(np.asarray(x), dtype=np.float64))
            total[1] += float(np.sum(np.asarray(y), dtype=np.float64))
        return total
    return "next(batches)", {"batches": endless, "sums": sums}, "sums()"


class Torch(NumPy):
    """PyTorch's DataLoader, in the same process."""

    def __init__(self) -> None:
        import torch

        self.torch, self.version = torch, torch.__version__

    def _loader(self, shuffle: bool) -> Built:
        torch = self.torch
        rows = torch.utils.data.TensorDataset(*[torch.from_numpy(a) for a in images()])
        loader = torch.utils.data.DataLoader(rows, batch_size=BATCH, shuffle=shuffle)

        def endless() -> Any:
            while True:
                yield from loader

        return built(endless(), lambda: loader)

    def shuffled(self) -> Built:
        return self._loader(True)

    def batched(self) -> Built:
        return self._loader(False)

    batch_mapped = None  # type: ignore[assignment]


class TensorFlow:
    """`tf.data`."""

    def __init__(self) -> None:
        import tensorflow as tf

        self.tf, self.version = tf, tf.__version__

    @staticmethod
    def to_numpy(value: Any) -> np.ndarray:
        return np.asarray(value)

    def _images(self) -> Any:
        return self.tf.data.Dataset.from_tensor_slices(images())

    def _case(self, steps: Any) -> Built:
        data = self._images()
        return built(iter(steps(data.repeat())), lambda: steps(data))

    def shuffled(self) -> Built:
        data = self._images().shuffle(COUNT)
        return built(iter(data.repeat().batch(BATCH)), lambda: data.batch(BATCH))

    def batched(self) -> Built:
        return self._case(lambda d: d.batch(BATCH))

    def batch_mapped(self) -> Built:
        return self._case(lambda d: d.shuffle(1000).batch(BATCH).map(scaled))

    def mapped(self) -> Built:
        return self._case(lambda d: d.map(scaled).shuffle(1000).batch(BATCH))

    def mapped_ahead(self) -> Built:
        auto = self.tf.data.AUTOTUNE
        return self._case(lambda d: d.map(scaled, num_parallel_calls=auto).shuffle(1000).batch(BATCH).prefetch(2))

    def cached(self) -> Built:
        data = self._images().take(10_000).map(scaled).cache()
        for _ in data:
            pass
        return built(iter(data.shuffle(1000).repeat().batch(BATCH)), lambda: data.shuffle(1000).batch(BATCH))

    def padded(self) -> Built:
        tf = self.tf
        data = tf.data.Dataset.from_tensor_slices(lengths()).map(lambda n: (tf.fill([n], 1.5), n))
        return built(iter(data.repeat().padded_batch(BATCH)), lambda: data.padded_batch(BATCH))

    def elements(self) -> Built:
        numbers = self.tf.data.Dataset.range(1 << 40)
        return "next(items)", {"items": iter(numbers), "sums": lambda: [float(x) for x in numbers.take(9)]}, "sums()"

    def _step(self) -> Any:
        """A compiled step of gradient descent."""
        tf = self.tf
        variables = [tf.Variable(w) for w in weights()]

        @tf.function
        def step(x: Any, y: Any) -> Any:
            with tf.GradientTape() as tape:
                for kernel in variables[:2]:
                    x = tf.nn.max_pool2d(tf.nn.relu(tf.nn.conv2d(x, kernel, 1, "SAME")), 2, 2, "SAME")
                logits = tf.matmul(tf.reshape(x, [-1, 7 * 7 * 32]), variables[2])
                loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
            for v, g in zip(variables, tape.gradient(loss, variables), strict=True):
                v.assign_sub(0.01 * g)
            return loss

        return step

    def step(self) -> Built:
        x, y = (self.tf.constant(a[:BATCH]) for a in images())
        fresh = self._step()
        return "step(x, y)", {"step": self._step(), "x": x, "y": y, "losses": [float(fresh(x, y))]}, "losses"

    def step_fed(self) -> Built:
        data, fresh = self._images(), self._step()
        losses = [float(fresh(*batch)) for batch in data.batch(BATCH).take(2)]
        batches = iter(data.shuffle(COUNT).repeat().batch(BATCH, drop_remainder=True).prefetch(2))
        return "step(*next(batches))", {"step": self._step(), "batches": batches, "losses": losses}, "losses"


def scaled(x: Any, y: Any) -> Any:
    """The function of elements."""
    return x / 255.0, y


class Twofold(TensorFlow):
    """This library."""

    def __init__(self) -> None:
        import twofold as tf

        self.tf, self.version = tf, tf.__version__


PEERS = {"numpy": NumPy, "torch": Torch, "tensorflow": TensorFlow, "twofold": Twofold}


def process_code(case: str, peer: str) -> str:
    """No case of this area needs a fresh process."""
    raise KeyError(f"{case} for {peer}")
