"""Every case of the op table through `tf.function`, with static and with unknown sizes: eager's bits, or its error.

Static sizes are compiled in full, but for cases whose schedules others have; unknown ones in the first tier;
`tests/runtime/test_tiers.py` compares both.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from ops.case import Case, named
from ops.table import cases, samples

import twofold as tf
from twofold.eager.tensor import Tensor, wrap
from twofold.ir import nest


def operands(case: Case, shapes: Sequence[Any]) -> list[Tensor]:
    return [wrap(np.asarray(a)) for a in case.arrays(case.main, shapes, salt="function")]


def run(case: Case, *tensors: Any) -> Any:
    return named(case.fn)(*tensors, **case.kwargs)


def check_same(eager: Any, compiled: Any) -> None:
    """Bits, dtypes, shapes and structure are equal."""
    nest.assert_same_structure(eager, compiled)
    for want, result in zip(nest.flatten(eager), nest.flatten(compiled), strict=True):
        want, result = tf.convert_to_tensor(want), tf.convert_to_tensor(result)
        assert (result.dtype, result.shape) == (want.dtype, want.shape)
        if want.dtype is tf.string:
            assert np.asarray(result.numpy()).tolist() == np.asarray(want.numpy()).tolist()
        else:
            assert np.ascontiguousarray(result._array).tobytes() == np.ascontiguousarray(want._array).tobytes()


def eagerly(case: Case, tensors: Sequence[Tensor]) -> Any:
    tf.random.set_seed(5)
    return run(case, *tensors)


@pytest.mark.parametrize("case", cases(), ids=str)
def test_static(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    tensors = operands(case, case.shapes[0])
    function = tf.function(lambda *t: run(case, *t), autograph=False, fallback=False)
    expected = eagerly(case, tensors)
    if case in samples():
        monkeypatch.setenv("TWOFOLD_TIERS", "0")
    tf.random.set_seed(5)
    check_same(expected, function(*tensors))
    assert function.experimental_get_tracing_count() == 1


@pytest.mark.parametrize("case", [c for c in cases() if any(c.shapes[0])], ids=str)
def test_unknown_sizes(case: Case) -> None:
    for rank, shapes in {tuple(map(len, s)): [t for t in case.shapes if tuple(map(len, t)) == tuple(map(len, s))]
                         for s in case.shapes}.items():
        first = operands(case, shapes[0])
        signature = [tf.TensorSpec([None] * n, t.dtype) for n, t in zip(rank, first, strict=True)]
        function = tf.function(lambda *t: run(case, *t), signature, autograph=False, fallback=False)
        for given in shapes:
            tensors = operands(case, given)
            expected = eagerly(case, tensors)
            tf.random.set_seed(5)
            check_same(expected, function(*tensors))


def test_diagonals_and_masks_of_unknown_sizes():
    """Matrices and masks whose sizes only a call tells."""
    spec = [tf.TensorSpec([None])]
    fns = [tf.linalg.diag, lambda x: tf.linalg.diag(x, k=1), lambda x: tf.linalg.diag(x, k=-2),
           lambda x: tf.linalg.set_diag(x[:, None] * x, x), lambda x: tf.linalg.diag_part(x[:, None] * x),
           lambda x: tf.sequence_mask(tf.cast(x, tf.int32)), lambda x: tf.sequence_mask(tf.cast(x, tf.int64))]
    for fn in fns:
        traced = tf.function(fn, input_signature=spec)
        for n in (3, 5):
            x = tf.range(1.0, n + 1.0)
            assert np.array_equal(traced(x), fn(x))


def test_numbers_of_pieces():
    """A scalar tensor says how many there are; where only running tells that, the function runs eagerly."""
    x, rows = tf.reshape(tf.range(6.0), [3, 2]), [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
    fns = [lambda x, n: tf.split(x, tf.constant(3)), lambda x, n: tf.split(x, n), lambda x, n: tf.split(x, n[None] * 1),
           lambda x, n: tf.unstack(tf.boolean_mask(x, x[:, 0] >= 0.0))]
    for fn, expected in zip(fns, [rows, rows, [rows], rows], strict=True):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            traced = tf.function(fn)(x, tf.constant(3))
        for pieces in (fn(x, tf.constant(3)), traced):
            assert np.array_equal(np.reshape([t.numpy() for t in pieces], np.shape(expected)), expected)
            assert len(pieces) == len(expected)
    with pytest.raises(TypeError, match="unstack: the size of axis 0 must be known when tf.function traces"):
        tf.function(fns[-1], fallback=False)(x, tf.constant(3))
