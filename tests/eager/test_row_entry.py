"""An array and a row that is repeated over it (a bias), which native entries compute without Python."""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import twofold as tf
from twofold.eager import dispatch
from twofold.runtime import kernels, native

SHAPES = [((32, 128), (128,)), ((4, 5, 16), (5, 16)), ((4, 5, 16), (16,)), ((3, 8), (8,)), ((3, 7), (7,)),
          ((5, 1), (1,)), ((2, 3, 4, 9), (9,)), ((0, 16), (16,)), ((3, 0), (0,)), ((2, 3), (2,)), ((300, 200), (200,)),
          ((16, 3), (16, 1)), ((1, 8), (8,)), ((16, 16), (1, 16))]
DTYPES = ["float16", "float32", "float64", "int8", "uint16", "int32", "int64"]
OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "less": operator.lt,
    "greater_equal": operator.ge,
}


def draw(seed: int, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 9, shape).astype(dtype)


def told(run: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> int:
    """How many ops came to the interpreter."""
    seen: list[str] = []
    apply = dispatch.EagerInterpreter.apply
    with monkeypatch.context() as patch:
        patch.setattr(dispatch.EagerInterpreter, "apply",
                      lambda self, op, *rest: [seen.append(op.name), apply(self, op, *rest)][1])
        run()
    return len(seen)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", OPERATORS)
def test_values(name: str, dtype: str) -> None:
    op = OPERATORS[name]
    for whole, part in SHAPES:
        a, b = draw(0, whole, dtype), draw(1, part, dtype)
        try:
            expected, turned = op(a, b), op(b, a)
        except ValueError:
            with pytest.raises(tf.errors.InvalidArgumentError):
                op(tf.constant(a), tf.constant(b))
            continue
        for _ in range(3):  # by way of Python, then by the entry
            for result, wanted in ((op(tf.constant(a), tf.constant(b)), expected),
                                  (op(tf.constant(b), tf.constant(a)), turned),
                                  (op(tf.constant(a), tf.Variable(b)), expected),
                                  (op(tf.Variable(b), tf.constant(a)), turned)):
                np.testing.assert_array_equal(result.numpy(), wanted, strict=True)


@pytest.mark.skipif(not native.available(), reason="native entries are off")
def test_no_python_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b, v = tf.ones([32, 16]), tf.ones([16]), tf.Variable(tf.ones([16]))
    assert told(lambda: (a + b, b - a, a * v, v + a), monkeypatch) <= 4  # whatever is compiled
    kernels.settle("add", "subtract", "multiply")
    assert told(lambda: (a + b, b - a, a * v, v + a), monkeypatch) == 0
    assert told(lambda: a[:, :15] + b[:15], monkeypatch) > 0  # is not contiguous
    short = tf.ones([32, 7])
    assert told(lambda: [short + tf.ones([7]) for _ in range(3)], monkeypatch) >= 3  # rows that are not worth a call


@pytest.mark.skipif(not native.available(), reason="native entries are off")
@pytest.mark.parametrize("rows", [250, 260, 500, 2500])
def test_sizes_around_those_from_which_others_run(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = draw(0, (rows, 128), "float32"), draw(1, (128,), "float32")
    whole, row, twice = tf.constant(a), tf.constant(b), tf.constant(a + 1)
    for _ in range(3):
        for result, wanted in ((whole + row, a + b), (row - whole, b - a), (whole * twice, a * (a + 1)), (-whole, -a),
                              (whole < row, a < b), (whole * 2.0, a * 2), (1.0 - whole, 1 - a)):
            np.testing.assert_array_equal(result.numpy(), wanted, strict=True)
        kernels.settle("add", "subtract", "multiply", "negative", "less")
    assert (told(lambda: (whole + row, whole * twice, -whole, whole * 2.0), monkeypatch) == 0) == (rows < 2000)


def test_other_threads_run_while_an_entry_computes() -> None:
    a = tf.constant(draw(0, (400, 500), "float32"))
    wanted = a.numpy() + 1.0
    stop, failed = threading.Event(), []

    def work() -> None:
        while not stop.is_set():
            if not np.array_equal((a + tf.ones([500])).numpy(), wanted):
                failed.append(1)
    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for _ in range(300):
        b = a * 1.0
        np.testing.assert_array_equal(b.numpy(), a.numpy())
    stop.set()
    for t in threads:
        t.join()
    assert not failed


def test_checks_are_of_every_row() -> None:
    rows = np.ones((4, 8), np.int32)
    for _ in range(3):
        assert (tf.constant(rows) // tf.constant(rows[0])).numpy().tolist() == rows.tolist()
        for place in range(8):
            row = rows[0].copy()
            row[place] = 0
            with pytest.raises(tf.errors.InvalidArgumentError, match="division by zero"):
                tf.constant(rows) // tf.constant(row)
    other = rows.copy()
    other[2, 3] = 0
    with pytest.raises(tf.errors.InvalidArgumentError, match="division by zero"):
        tf.constant(rows[0]) // tf.constant(other)


def test_tapes_are_told() -> None:
    a, b = tf.constant(draw(0, (6, 8), "float32")), tf.Variable(draw(1, (8,), "float32"))
    for _ in range(3):
        with tf.GradientTape() as tape:
            tape.watch(a)
            y = (a + b) * b - a * b
        da, db = tape.gradient(y, [a, b])
        np.testing.assert_array_equal(da.numpy(), np.zeros((6, 8), np.float32))
        np.testing.assert_array_equal(db.numpy(), 12 * b.numpy())


def test_nan_infinities_and_their_signs() -> None:
    special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, 3e38, 1.0], np.float32)
    whole = np.stack([special, special[::-1], np.full(8, -0.0, np.float32)])
    for _ in range(2):
        with np.errstate(all="ignore"):
            for op in (operator.add, operator.mul, operator.sub):
                np.testing.assert_array_equal(op(tf.constant(whole), tf.constant(special)).numpy(), op(whole, special))
