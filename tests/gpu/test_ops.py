"""The op table on a GPU: op by op and compiled, the bits are those of the host."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from gpu.devices import device
from ops.case import Case, named
from ops.table import cases

import twofold as tf
from twofold.eager.tensor import Tensor, wrap
from twofold.ir import nest


@pytest.fixture(scope="module", autouse=True)
def _gpu() -> Iterator[None]:
    with device():
        yield


def arrays(result: Any) -> list[np.ndarray]:
    return [tf.convert_to_tensor(r)._array for r in nest.flatten(result)]


def same(results: Any, wanted: list[np.ndarray]) -> None:
    for got, want in zip(arrays(results), wanted, strict=True):
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        assert got.tolist() == want.tolist() if want.dtype == object else got.tobytes() == np.ascontiguousarray(
            want).tobytes()


@pytest.mark.parametrize("case", cases(), ids=str)
def test_the_op_table(case: Case) -> None:
    def f(*tensors: Tensor) -> Any:
        return named(case.fn)(*tensors, **case.kwargs)
    operands = [wrap(np.array(a)) for a in case.arrays(case.main, case.shapes[0], salt="function")]
    tf.random.set_seed(5)
    wanted = arrays(f(*operands))
    there = [t.gpu() for t in operands]
    with tf.device("/gpu:0"):
        tf.random.set_seed(5)
        same(f(*there), wanted)
    tf.random.set_seed(5)
    with tf.device("/gpu:0"):
        same(tf.function(f)(*there), wanted)
