"""What programs test with: `tf.test.TestCase`, gradients by differences, and benchmarks."""

from __future__ import annotations

import random
import sys
import tempfile
import time
import unittest
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np

import twofold as tf
from twofold._front.api import public
from twofold.eager import sessions
from twofold.ir import nest

__all__ = ["Benchmark", "TestCase", "benchmark_config", "compute_gradient", "main"]


_SEED = 87654321  # TensorFlow's, so that the draws of a test are those that it makes there


def _array(value: Any) -> Any:
    """A value as NumPy arrays: of tensors, and of what is made of such."""
    if isinstance(value, tf.RaggedTensor):
        return value.to_list()
    if isinstance(value, (tf.SparseTensor, tf.IndexedSlices)):
        return [_array(leaf) for leaf in nest.flatten(value)]
    if isinstance(value, (tf.Tensor, tf.Variable)) and (session := _session()) is not None:
        value = session.run(value)
    return np.asarray(value)


def _session() -> Any:
    """The session that `evaluate` runs the current graph of TensorFlow 1 in; None where ops run at once."""
    return sessions.front[0].session_here() if sessions.front else None


class TestCase(unittest.TestCase):
    """`unittest.TestCase` with assertions on tensors, arrays and structures of these.

    >>> import twofold as tf
    >>> case = tf.test.TestCase()
    >>> case.assertAllClose(tf.constant([1.0, 2.0]), [1.0, 2.0 + 1e-9])
    """

    __test__ = False  # a base class

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.__test__ = True

    def setUp(self) -> None:
        """Begin a test with the same random numbers each time: those of Python, NumPy and `tf.random`."""
        super().setUp()
        random.seed(_SEED)
        np.random.seed(_SEED)
        tf.random.set_seed(_SEED)

    def assertRaisesOpError(self, expected_err_re_or_predicate: str) -> Any:
        """A block in which an op raises an error whose text has something.

        Args:
            expected_err_re_or_predicate: a regular expression.
        """
        return self.assertRaisesRegex(tf.errors.OpError, expected_err_re_or_predicate)

    def _GetNdArray(self, a: Any) -> Any:
        return _array(self.evaluate(a) if tf.is_tensor(a) else a)

    def evaluate(self, tensors: Any) -> Any:
        """The values of a structure of tensors as NumPy arrays; in a graph, those that a session gives for it."""
        if (session := _session()) is not None:
            return session.run(tensors)
        return nest.map_structure(lambda t: t.numpy() if hasattr(t, "numpy") else t, tensors, expand_composites=False)

    def get_temp_dir(self) -> str:
        """A folder for the files of this test, which is removed after it."""
        if not hasattr(self, "_folder"):
            self._folder = tempfile.TemporaryDirectory()
            self.addCleanup(self._folder.cleanup)
        return self._folder.name

    @contextmanager
    def session(self, graph: Any = None, config: Any = None, use_gpu: bool = True, force_gpu: bool = False
                ) -> Iterator[Any]:
        """A block with a session for the current graph; where ops run at once, its `run` is `evaluate`.

        Args:
            graph: the graph of the session, where the current one is not meant.
            config, use_gpu, force_gpu: have no effect.

        >>> import twofold as tf
        >>> with tf.compat.v1.Graph().as_default(), tf.test.TestCase().session() as session:
        ...     print(session.run(tf.constant(1.0) + 2.0))
        3.0
        """
        if _session() is None:
            yield SimpleNamespace(run=self.evaluate)
            return
        with sessions.front[0].new_session(graph) as session:
            yield session

    cached_session = test_session = session

    def _pairs(self, a: Any, b: Any) -> list[tuple[Any, Any]]:
        if isinstance(a, dict) or isinstance(b, dict):
            self.assertIsInstance(a, dict)
            self.assertIsInstance(b, dict)
            self.assertEqual(set(a), set(b))
            return [pair for key in a for pair in self._pairs(a[key], b[key])]
        lists = isinstance(a, (list, tuple)) and isinstance(b, (list, tuple))
        if lists and any(isinstance(x, (list, tuple, dict, tf.Tensor, np.ndarray)) for x in [*a, *b]):
            self.assertEqual(len(a), len(b))
            return [pair for x, y in zip(a, b, strict=True) for pair in self._pairs(x, y)]
        return [(_array(a), _array(b))]

    def assertAllClose(self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, msg: str | None = None) -> None:
        """Values that are as close as a relative and an absolute tolerance say; structures in the same form."""
        for x, y in self._pairs(a, b):
            x, y = np.asarray(x), np.asarray(y)
            self.assertEqual(x.shape, y.shape, msg)
            small = any(v.dtype.itemsize <= 2 and v.dtype.kind not in "biuSUO" for v in (x, y))
            tolerances = (max(rtol, 1e-2), max(atol, 1e-2)) if small else (rtol, atol)
            np.testing.assert_allclose(x.astype(np.float64) if x.dtype.kind not in "c" else x,
                                       y.astype(np.float64) if y.dtype.kind not in "c" else y, *tolerances,
                                       err_msg=msg or "")

    def assertNotAllClose(self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, msg: str | None = None) -> None:
        """Values that are not as close."""
        try:
            self.assertAllClose(a, b, rtol, atol)
        except AssertionError:
            return
        self.fail(msg or "The two values are close at all elements.")

    def assertAllCloseAccordingToType(self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6,
                                      float_rtol: float = 1e-6, float_atol: float = 1e-6, half_rtol: float = 1e-3,
                                      half_atol: float = 1e-3, bfloat16_rtol: float = 1e-2, bfloat16_atol: float = 1e-2,
                                      msg: str | None = None) -> None:
        """Values as close as the coarser of their dtypes lets expect."""
        names = {np.asarray(x).dtype.name for pair in self._pairs(a, b) for x in pair}
        for name, r, t in (("float32", float_rtol, float_atol), ("complex64", float_rtol, float_atol),
                           ("float16", half_rtol, half_atol), ("bfloat16", bfloat16_rtol, bfloat16_atol)):
            if name in names:
                rtol, atol = max(rtol, r), max(atol, t)
        self.assertAllClose(a, b, rtol, atol, msg)

    def assertAllEqual(self, a: Any, b: Any, msg: str | None = None) -> None:
        """Values that are equal; a NaN equals a NaN."""
        for x, y in self._pairs(a, b):
            np.testing.assert_array_equal(x, y, err_msg=msg or "")

    def assertNotAllEqual(self, a: Any, b: Any, msg: str | None = None) -> None:
        """Values of which some differ."""
        try:
            self.assertAllEqual(a, b)
        except AssertionError:
            return
        self.fail(msg or "The two values are equal at all elements.")

    def assertAllGreater(self, a: Any, comparison_target: Any) -> None:
        """Values that are all greater."""
        self.assertGreater(np.min(_array(a)), comparison_target)

    def assertAllGreaterEqual(self, a: Any, comparison_target: Any) -> None:
        """Values that are all greater or equal."""
        self.assertGreaterEqual(np.min(_array(a)), comparison_target)

    def assertAllLess(self, a: Any, comparison_target: Any) -> None:
        """Values that are all less."""
        self.assertLess(np.max(_array(a)), comparison_target)

    def assertAllLessEqual(self, a: Any, comparison_target: Any) -> None:
        """Values that are all less or equal."""
        self.assertLessEqual(np.max(_array(a)), comparison_target)

    def assertAllInRange(self, target: Any, lower_bound: Any, upper_bound: Any, open_lower_bound: bool = False,
                         open_upper_bound: bool = False) -> None:
        """Values within bounds."""
        (self.assertAllGreater if open_lower_bound else self.assertAllGreaterEqual)(target, lower_bound)
        (self.assertAllLess if open_upper_bound else self.assertAllLessEqual)(target, upper_bound)

    def assertAllInSet(self, target: Any, expected_set: Any) -> None:
        """Values that all are of a set."""
        others = set(np.ravel(_array(target)).tolist()) - set(expected_set)
        self.assertFalse(others, f"values outside of the set: {others}")

    def assertShapeEqual(self, input_a: Any, input_b: Any, msg: str | None = None) -> None:
        """Values of one shape."""
        self.assertEqual(tuple(np.shape(_array(input_a))), tuple(np.shape(_array(input_b))), msg)

    def assertDTypeEqual(self, target: Any, expected_dtype: Any) -> None:
        """A value of a dtype."""
        have = target.dtype if hasattr(target, "dtype") else np.asarray(target).dtype
        self.assertEqual(tf.as_dtype(have), tf.as_dtype(expected_dtype))

    def assertNear(self, f1: float, f2: float, err: float, msg: str | None = None) -> None:
        """Two numbers that are at most `err` apart."""
        self.assertLessEqual(abs(float(f1) - float(f2)), err, msg)

    def assertArrayNear(self, farray1: Sequence[float], farray2: Sequence[float], err: float, msg: str | None = None
                        ) -> None:
        """Numbers that are at most `err` apart each."""
        self.assertEqual(len(farray1), len(farray2), msg)
        for x, y in zip(farray1, farray2, strict=True):
            self.assertNear(x, y, err, msg)

    def assertLen(self, container: Any, expected_len: int, msg: str | None = None) -> None:
        """A container of a size."""
        self.assertEqual(len(container), expected_len, msg)

    def assertEmpty(self, container: Any, msg: str | None = None) -> None:
        """A container of nothing."""
        self.assertEqual(len(container), 0, msg)

    def assertNotEmpty(self, container: Any, msg: str | None = None) -> None:
        """A container of something."""
        self.assertNotEqual(len(container), 0, msg)

    def assertBetween(self, value: Any, minv: Any, maxv: Any, msg: str | None = None) -> None:
        """A value within bounds."""
        self.assertTrue(minv <= value <= maxv, msg or f"{value!r} is not between {minv!r} and {maxv!r}")


@public
def compute_gradient(f: Callable[..., Any], x: Sequence[Any], delta: float | None = None
                     ) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The Jacobians of a function by its gradients, and by differences.

    Args:
        f: a function of tensors that gives a tensor.
        x: its arguments: floats.
        delta: the step of the differences; by default 2**-10 for float32 and 2**-20 for float64.
    Returns:
        Two tuples of arrays of shape `[size of x[i], size of f(*x)]`... by rows of the result: `[size of the result,
        size of x[i]]`.
    Raises:
        ValueError: `x` is no list or tuple.

    >>> import twofold as tf
    >>> exact, close = tf.test.compute_gradient(tf.square, [tf.constant([1.0, 2.0])])
    >>> exact[0].tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """
    if not isinstance(x, (list, tuple)):
        raise ValueError("`x` must be a list or tuple of tensors (or compatible objects); got "
                         f"{type(x).__name__}.")
    points = [tf.convert_to_tensor(p) for p in x]
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(points)
        y = tf.convert_to_tensor(f(*points))
    exact = []
    for p in points:
        jacobian = tape.jacobian(y, p, unconnected_gradients="zero")
        exact.append(np.reshape(tf.convert_to_tensor(jacobian).numpy(), [int(tf.size(y)), int(tf.size(p))]))
    return tuple(exact), tuple([_differences(f, points, n, delta) for n in range(len(points))])


def _differences(f: Callable[..., Any], points: Sequence[Any], n: int, delta: float | None) -> Any:
    value = points[n].numpy()
    step = delta or (2.0 ** -20 if value.dtype.itemsize > 4 and value.dtype.kind == "f" else 2.0 ** -10)
    columns = []
    for at in range(value.size):
        ends = []
        for sign in (1, -1):
            moved = value.copy()
            moved.reshape(-1)[at] += sign * step
            ends.append(np.ravel(np.asarray(f(*points[:n], tf.constant(moved), *points[n + 1:]))))
        columns.append((ends[0] - ends[1]) / (2 * step))
    size = int(tf.size(f(*points)))
    return np.stack(columns, 1) if columns else np.zeros([size, 0], value.dtype)


class Benchmark:
    """A base class of benchmarks: methods that begin with `benchmark` measure, and report by `report_benchmark`."""

    def __init__(self) -> None:
        self.reports: list[dict[str, Any]] = []

    def report_benchmark(self, iters: int | None = None, cpu_time: float | None = None, wall_time: float | None = None,
                         throughput: float | None = None, extras: Any = None, name: str | None = None,
                         metrics: Any = None) -> None:
        """Keep a result in `reports`, and print it.

        Args:
            iters: how often it ran.
            cpu_time, wall_time: seconds a run.
            throughput: megabytes a second.
            extras, metrics: further results.
            name: of the benchmark.
        """
        report = {"name": name or type(self).__name__, "iters": iters, "cpu_time": cpu_time, "wall_time": wall_time,
                  "throughput": throughput, "extras": extras, "metrics": metrics}
        self.reports.append(report)
        sys.stdout.write(f"{({key: value for key, value in report.items() if value is not None})}\n")

    def evaluate(self, tensors: Any) -> Any:
        """The values of a structure of tensors as NumPy arrays."""
        return nest.map_structure(lambda t: t.numpy() if hasattr(t, "numpy") else t, tensors, expand_composites=False)

    def run_op_benchmark(self, sess: Any = None, op_or_tensor: Any = None, feed_dict: Any = None, burn_iters: int = 2,
                         min_iters: int = 10, name: str | None = None, **settings: Any) -> dict[str, Any]:
        """Measure a function, and report the median of the seconds that a call takes.

        Args:
            sess, feed_dict: have no effect.
            op_or_tensor: a function of no arguments.
            burn_iters: calls before those that count.
            min_iters: calls that count.
            name: of the benchmark.
            settings: accepted, without effect.
        """
        if not callable(op_or_tensor):
            raise TypeError(f"run_op_benchmark measures a function of no arguments; got {op_or_tensor!r}.")
        for _ in range(burn_iters):
            op_or_tensor()
        seconds = []
        for _ in range(min_iters):
            begin = time.perf_counter()
            op_or_tensor()
            seconds.append(time.perf_counter() - begin)
        self.report_benchmark(min_iters, wall_time=float(np.median(seconds)), name=name)
        return self.reports[-1]


@public
def benchmark_config() -> None:
    """The settings of a session for benchmarks: none, since there are no sessions."""
    return None


@public
def main(argv: Any = None) -> None:
    """Run the tests of the program that calls this, as `unittest.main` does.

    Args:
        argv: the words of the command line; by default the program's own.
    """
    unittest.main(argv=argv)
