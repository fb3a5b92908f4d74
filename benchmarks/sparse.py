"""What touches few of many: a step with a large embedding, sparse-dense products, reductions of ragged rows.

A peer is a class with one method a case, as in `eager.py`. twofold and TensorFlow run compiled functions (TensorFlow
without XLA, which has no sparse tensors), PyTorch its own kernels for the purpose: `nn.Embedding(sparse=True)` with
SGD, a CSR matrix, `segment_reduce`. TWOFOLD_BENCH_SMALL=1 has small sizes, which show that all of it runs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from worker import SMALL

from eager import Built

TABLE = (500, 64) if SMALL else (1_000_000, 64)
BATCH = (8, 16) if SMALL else (1024, 16)
MATRIX = (100, 30) if SMALL else (100_000, 10_000)
STORED = 300 if SMALL else 1_000_000  # elements of the sparse matrix that are not zero
COLUMNS = 64
RAGGED_ROWS = 50 if SMALL else 100_000
RATE = 0.1

PROCESS_CASES: dict[str, tuple[str, bool]] = {}

CASES = {
    "embedding_sgd": ("embedding 1e6 x 64, batch 1024 x 16, mean, dense, SGD step", 1e-4),
    "sparse_dense": ("sparse 1e5 x 1e4 with 1e6 elements times 1e4 x 64", 1e-4),
    "ragged_sum": ("sums of 1e5 ragged rows of 0 to 20 floats", 1e-4),
    "ragged_mean": ("means of 1e5 ragged rows of 0 to 20 floats", 1e-4),
}


def table() -> np.ndarray:
    """The rows of the embedding."""
    return np.random.default_rng(0).normal(size=TABLE).astype(np.float32)


def batch() -> np.ndarray:
    """Numbers of rows."""
    return np.random.default_rng(1).integers(0, TABLE[0], BATCH)


def weights() -> np.ndarray:
    """Of the dense layer behind the embedding."""
    return np.random.default_rng(2).normal(size=(TABLE[1], 1)).astype(np.float32)


def stored() -> tuple[np.ndarray, np.ndarray]:
    """The coordinates of a sparse matrix, in order and without repetitions, and its elements."""
    rng = np.random.default_rng(3)
    places = np.unique(rng.integers(0, MATRIX[0] * MATRIX[1], STORED))
    return np.stack(np.divmod(places, MATRIX[1]), 1), rng.normal(size=len(places)).astype(np.float32)


def dense() -> np.ndarray:
    """What the sparse matrix is multiplied with."""
    return np.random.default_rng(4).normal(size=(MATRIX[1], COLUMNS)).astype(np.float32)


def rows() -> tuple[np.ndarray, np.ndarray]:
    """The elements of ragged rows, one row after another, and the lengths of these."""
    rng = np.random.default_rng(5)
    lengths = rng.integers(0, 21, RAGGED_ROWS)
    return rng.normal(size=int(lengths.sum())).astype(np.float32), lengths


class Torch:
    """PyTorch, with its sparse gradients, CSR matrices and reductions of segments."""

    def __init__(self) -> None:
        import torch

        self.torch, self.version = torch, torch.__version__

    @staticmethod
    def to_numpy(value: Any) -> np.ndarray:
        return np.nan_to_num(value.detach().numpy())  # the mean of an empty row

    def embedding_sgd(self) -> Built:
        torch = self.torch
        layer = torch.nn.Embedding(*TABLE, sparse=True, _weight=torch.tensor(table()))
        w, places = torch.nn.Parameter(torch.tensor(weights())), torch.tensor(batch())
        optimizer = torch.optim.SGD([*layer.parameters(), w], RATE)

        def step() -> Any:
            loss = ((layer(places).mean(1) @ w) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return loss
        return "step()", {"step": step}, "[step(), step()]"

    def sparse_dense(self) -> Built:
        places, values = stored()
        matrix = self.torch.sparse_coo_tensor(places.T, values, MATRIX).to_sparse_csr()
        return "a @ b", {"a": matrix, "b": self.torch.tensor(dense())}, "a @ b"

    def _reduced(self, kind: str) -> Built:
        values, lengths = rows()
        names = {"f": self.torch.segment_reduce, "x": self.torch.tensor(values), "n": self.torch.tensor(lengths)}
        call = f"f(x, {kind!r}, lengths=n)"
        return call, names, call

    def ragged_sum(self) -> Built:
        return self._reduced("sum")

    def ragged_mean(self) -> Built:
        return self._reduced("mean")


class TensorFlow:
    """TensorFlow with `tf.function`."""

    def __init__(self) -> None:
        import tensorflow as tf

        self.tf, self.version = tf, tf.__version__

    @staticmethod
    def to_numpy(value: Any) -> np.ndarray:
        return np.nan_to_num(value.numpy())  # the mean of an empty row

    def embedding_sgd(self) -> Built:
        tf = self.tf
        embeddings, w = tf.Variable(table()), tf.Variable(weights())
        optimizer = tf.keras.optimizers.SGD(RATE)
        optimizer.build([embeddings, w])

        @tf.function
        def step(places: Any) -> Any:
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(tf.reduce_mean(tf.nn.embedding_lookup(embeddings, places), 1) @ w))
            optimizer.apply_gradients(zip(tape.gradient(loss, [embeddings, w]), [embeddings, w], strict=True))
            return loss
        return "step(x)", {"step": step, "x": tf.constant(batch())}, "[step(x), step(x)]"

    def sparse_dense(self) -> Built:
        tf = self.tf
        matrix = tf.SparseTensor(*stored(), MATRIX)
        names = {"f": tf.function(tf.sparse.sparse_dense_matmul), "a": matrix, "b": tf.constant(dense())}
        return "f(a, b)", names, "f(a, b)"

    def _reduced(self, reduce: Any) -> Built:
        ragged = self.tf.RaggedTensor.from_row_lengths(*rows())
        return "f(x)", {"f": self.tf.function(lambda x: reduce(x, axis=1)), "x": ragged}, "f(x)"

    def ragged_sum(self) -> Built:
        return self._reduced(self.tf.reduce_sum)

    def ragged_mean(self) -> Built:
        return self._reduced(self.tf.reduce_mean)


class Twofold(TensorFlow):
    """The same with twofold."""

    def __init__(self) -> None:
        import twofold

        self.tf, self.version = twofold, twofold.__version__


PEERS = {"torch": Torch, "tensorflow": TensorFlow, "twofold": Twofold}
