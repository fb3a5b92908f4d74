"""`tf.debugging`: assertions about tensors, and the search for NaN and infinity.

An assertion runs at once in eager execution; inside `tf.function` it becomes part of the graph and is checked each
time the function runs, in program order. What shapes alone decide is decided at once in both. Assertions return None;
in a graph of `tf.compat.v1` they give an operation, which something has to run.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from twofold._front.api import listed, public, tensor
from twofold._front.namespace import publish
from twofold.eager.tensor import Tensor
from twofold.eager.variable import Variable
from twofold.ir import dtypes as dt
from twofold.ir import ops
from twofold.ir.dims import Dim, decide_eq
from twofold.ir.errors import user_line
from twofold.runtime import devices, leaving
from twofold.tracer.checks import check, disable_numerics, enable_numerics
from twofold.tracer.trace import current

__all__ = ["Assert", "assert_all_finite", "assert_equal", "assert_greater", "assert_greater_equal", "assert_integer",
           "assert_less", "assert_less_equal", "assert_near", "assert_negative", "assert_non_negative",
           "assert_non_positive", "assert_none_equal", "assert_positive", "assert_proper_iterable", "assert_rank",
           "assert_rank_at_least", "assert_rank_in", "assert_same_float_dtype", "assert_scalar", "assert_shapes",
           "assert_type", "check_numerics", "disable_check_numerics", "disable_traceback_filtering",
           "enable_check_numerics", "enable_traceback_filtering", "get_log_device_placement", "is_numeric_tensor",
           "is_traceback_filtering_enabled", "set_log_device_placement"]

set_log_device_placement = public(devices.log_placement)
get_log_device_placement = public(devices.logs_placement)


@public
def enable_traceback_filtering() -> None:
    """Have tracebacks show the user's frames only, as they do by default (see `TWOFOLD_TRACEBACK`).

    >>> import twofold as tf
    >>> tf.debugging.enable_traceback_filtering()
    >>> tf.debugging.is_traceback_filtering_enabled()
    True
    """
    leaving.filter_tracebacks(True)


@public
def disable_traceback_filtering() -> None:
    """Have tracebacks show the library's frames, too.

    >>> import twofold as tf
    >>> tf.debugging.disable_traceback_filtering()
    >>> tf.debugging.is_traceback_filtering_enabled()
    False
    >>> tf.debugging.enable_traceback_filtering()
    """
    leaving.filter_tracebacks(False)


@public
def is_traceback_filtering_enabled() -> bool:
    """Whether tracebacks show the user's frames only."""
    return leaving.filters_tracebacks()


def _operation(assertion: Callable[..., None]) -> Callable[..., Any]:
    """Has an assertion return the operation that checks it in a graph of `tf.compat.v1`, and elsewhere None."""
    @functools.wraps(assertion)
    def asserted(*args: Any, **kwargs: Any) -> Any:
        trace = current()
        if trace is None:
            return assertion(*args, **kwargs)
        return trace.effect("Assert", lambda: assertion(*args, **kwargs))
    return asserted


@public
@_operation
def Assert(condition: Any, data: Any, summarize: int | None = None, name: str | None = None) -> None:
    """An error unless a condition holds.

    Args:
        condition: a bool, or a scalar bool tensor.
        data: a list of tensors and values that the error shows.
        summarize, name: have no effect.
    Raises:
        tf.errors.InvalidArgumentError: it does not hold.

    >>> import twofold as tf
    >>> tf.debugging.Assert(tf.constant(1) > 0, ["must be positive"])
    """
    shown = list(data) if isinstance(data, (list, tuple)) else [data]
    check(condition, "assertion failed:", shown)


def _binary(x: Any, y: Any) -> tuple[Any, Any]:
    x_is, y_is = isinstance(x, (Tensor, Variable)), isinstance(y, (Tensor, Variable))
    if x_is or not y_is:
        x = tensor(x)
        return x, tensor(y, hint=x.dtype)
    y = tensor(y)
    return tensor(x, hint=y.dtype), y


def _compare(op: Any, sign: str, x: Any, y: Any, message: str | None) -> None:
    x, y = _binary(x, y)
    _all(op(x, y), f"Condition x {sign} y did not hold.", [x, y], message)


def _all(holds: Any, text: str, data: list[Any], message: str | None) -> None:
    text = f"{message}. {text}" if message else text
    check(ops.reduce_all(holds) if holds.dims else holds, text, data)


@public
@_operation
def assert_equal(x: Any, y: Any, message: str | None = None, summarize: int | None = None,
                 name: str | None = None) -> None:
    """An error unless `x == y` in all elements.

    Args:
        x, y: tensors whose shapes broadcast.
        message: what the error begins with.
        summarize, name: have no effect.
    Raises:
        tf.errors.InvalidArgumentError: an element differs.

    >>> import twofold as tf
    >>> tf.debugging.assert_equal(tf.constant([1, 2]), [1, 2])
    """
    _compare(ops.equal, "==", x, y, message)


@public
@_operation
def assert_none_equal(x: Any, y: Any, message: str | None = None, summarize: int | None = None,
                      name: str | None = None) -> None:
    """An error unless `x != y` in all elements; arguments as for `assert_equal`.

    `summarize` and `name` have no effect.

    >>> import twofold as tf
    >>> tf.debugging.assert_none_equal(tf.constant([1, 2]), 3)
    """
    _compare(ops.not_equal, "!=", x, y, message)


@public
@_operation
def assert_less(x: Any, y: Any, message: str | None = None, summarize: int | None = None,
                name: str | None = None) -> None:
    """An error unless `x < y` in all elements; arguments as for `assert_equal`.

    `summarize` and `name` have no effect.

    >>> import twofold as tf
    >>> tf.debugging.assert_less(tf.constant([1, 2]), 3)
    """
    _compare(ops.less, "<", x, y, message)


@public
@_operation
def assert_less_equal(x: Any, y: Any, message: str | None = None, summarize: int | None = None,
                      name: str | None = None) -> None:
    """An error unless `x <= y` in all elements; arguments as for `assert_equal`.

    `summarize` and `name` have no effect.

    >>> import twofold as tf
    >>> tf.debugging.assert_less_equal(tf.constant([1, 3]), 3)
    """
    _compare(ops.less_equal, "<=", x, y, message)


@public
@_operation
def assert_greater(x: Any, y: Any, message: str | None = None, summarize: int | None = None,
                   name: str | None = None) -> None:
    """An error unless `x > y` in all elements; arguments as for `assert_equal`.

    `summarize` and `name` have no effect.

    >>> import twofold as tf
    >>> tf.debugging.assert_greater(tf.constant([4, 5]), 3)
    """
    _compare(ops.greater, ">", x, y, message)


@public
@_operation
def assert_greater_equal(x: Any, y: Any, message: str | None = None, summarize: int | None = None,
                         name: str | None = None) -> None:
    """An error unless `x >= y` in all elements; arguments as for `assert_equal`.

    `summarize` and `name` have no effect.

    >>> import twofold as tf
    >>> tf.debugging.assert_greater_equal(tf.constant([4, 3]), 3)
    """
    _compare(ops.greater_equal, ">=", x, y, message)


def _sign(op: Any, sign: str, x: Any, message: str | None) -> None:
    x = tensor(x)
    _all(op(x, 0), f"Condition x {sign} 0 did not hold element-wise.", [x], message)


@public
@_operation
def assert_positive(x: Any, message: str | None = None, summarize: int | None = None, name: str | None = None) -> None:
    """An error unless `x > 0` in all elements; arguments as for `assert_equal`.

    `summarize` and `name` have no effect.

    >>> import twofold as tf
    >>> tf.debugging.assert_positive(tf.constant([1.0, 2.0]))
    """
    _sign(ops.greater, ">", x, message)


@public
@_operation
def assert_negative(x: Any, message: str | None = None, summarize: int | None = None, name: str | None = None) -> None:
    """An error unless `x < 0` in all elements; arguments as for `assert_equal`.

    `summarize` and `name` have no effect.

    >>> import twofold as tf
    >>> tf.debugging.assert_negative(tf.constant([-1.0]))
    """
    _sign(ops.less, "<", x, message)


@public
@_operation
def assert_non_negative(x: Any, message: str | None = None, summarize: int | None = None,
                        name: str | None = None) -> None:
    """An error unless `x >= 0` in all elements; arguments as for `assert_equal`.

    `summarize` and `name` have no effect.

    >>> import twofold as tf
    >>> tf.debugging.assert_non_negative(tf.constant([0.0, 1.0]))
    """
    _sign(ops.greater_equal, ">=", x, message)


@public
@_operation
def assert_non_positive(x: Any, message: str | None = None, summarize: int | None = None,
                        name: str | None = None) -> None:
    """An error unless `x <= 0` in all elements; arguments as for `assert_equal`.

    `summarize` and `name` have no effect.

    >>> import twofold as tf
    >>> tf.debugging.assert_non_positive(tf.constant([0.0, -1.0]))
    """
    _sign(ops.less_equal, "<=", x, message)


@public
@_operation
def assert_near(x: Any, y: Any, rtol: Any = None, atol: Any = None, message: str | None = None,
                summarize: int | None = None, name: str | None = None) -> None:
    """An error unless `|x - y| <= atol + rtol * |y|` in all elements.

    Args:
        x, y: float tensors of one dtype whose shapes broadcast.
        rtol, atol: 10 units of rounding of the dtype by default.
        message: what the error begins with.
        summarize, name: have no effect.
    Raises:
        tf.errors.InvalidArgumentError: an element is too far off.

    >>> import twofold as tf
    >>> tf.debugging.assert_near(tf.constant(1.0), 1.0000001)
    """
    x, y = _binary(x, y)
    unit = 10 * float(dt_eps(x.dtype))
    rtol, atol = [tensor(unit if t is None else t, hint=x.dtype) for t in (rtol, atol)]
    far = ops.add(atol, ops.multiply(rtol, ops.abs_(y)))
    _all(ops.less_equal(ops.abs_(ops.subtract(x, y)), far), "x and y not equal to tolerance.", [x, y], message)


def dt_eps(dtype: Any) -> Any:
    """The distance from 1 to the next number of a float dtype."""
    import ml_dtypes
    return ml_dtypes.finfo(dtype.np).eps


@public
def assert_all_finite(x: Any, message: str, name: str | None = None) -> Any:
    """`x`, or an error where it holds a NaN or an infinity.

    Args:
        x: a float tensor.
        message: what the error begins with.
        name: has no effect.
    Raises:
        tf.errors.InvalidArgumentError: it does.

    >>> import twofold as tf
    >>> float(tf.debugging.assert_all_finite(tf.constant(1.0), "x"))
    1.0
    """
    return _finite(x, message)


@public
def check_numerics(tensor: Any, message: str, name: str | None = None) -> Any:
    """The tensor, or an error where it holds a NaN or an infinity; see `assert_all_finite`.

    `name` has no effect.

    >>> import twofold as tf
    >>> float(tf.debugging.check_numerics(tf.constant(1.0), "x"))
    1.0
    """
    return _finite(tensor, message)


def _finite(x: Any, message: str) -> Any:
    x = tensor(x)
    operation = _all_finite(x, message)
    if operation is None:
        return x
    with current().after([operation]):  # type: ignore[union-attr]  # only a trace gives operations
        return ops.identity(x)


@_operation
def _all_finite(x: Any, message: str) -> None:
    _none(ops.is_nan(x), f"{message} : Tensor had NaN values")
    _none(ops.is_inf(x), f"{message} : Tensor had Inf values")


def _none(bad: Any, text: str) -> None:
    check(ops.logical_not(ops.reduce_any(bad)), text, [])


@public
def enable_check_numerics(stack_height_limit: int = 30, path_length_limit: int = 50) -> None:
    """From now on, in this thread, an op whose result holds a NaN or an infinity is an error that names it.

    Functions that are traced meanwhile keep their checks.

    Args:
        stack_height_limit, path_length_limit: have no effect.
    """
    enable_numerics()


@public
def disable_check_numerics() -> None:
    """Ends what `enable_check_numerics` began."""
    disable_numerics()


# -- what shapes and dtypes decide --------------------------------------------------------------------
def _fail(kind: type[Exception], text: str, message: str | None) -> Exception:
    return kind(f"{message}. {text}\n  {user_line()}" if message else f"{text}\n  {user_line()}")


def _rank(rank: Any) -> int:
    if isinstance(rank, int):
        return rank
    number = tensor(rank)
    if number.dims or not number.dtype.is_integer:
        raise TypeError(f"the rank must be an integer scalar; got {rank!r}.")
    return int(number)


@public
@_operation
def assert_rank(x: Any, rank: Any, message: str | None = None, name: str | None = None) -> None:
    """An error unless `x` has `rank` axes.

    Args:
        x: a tensor.
        rank: an integer.
        message: what the error begins with.
        name: has no effect.
    Raises:
        ValueError: it has another number of axes.

    >>> import twofold as tf
    >>> tf.debugging.assert_rank(tf.zeros([2, 3]), 2)
    """
    x, want = tensor(x), _rank(rank)
    if len(x.dims) != want:
        raise _fail(ValueError, f"Tensor must have rank {want}. Received rank {len(x.dims)}, shape {x.shape}", message)


@public
@_operation
def assert_rank_at_least(x: Any, rank: Any, message: str | None = None, name: str | None = None) -> None:
    """An error unless `x` has `rank` axes or more; see `assert_rank`.

    `name` has no effect.

    >>> import twofold as tf
    >>> tf.debugging.assert_rank_at_least(tf.zeros([2, 3]), 1)
    """
    x, want = tensor(x), _rank(rank)
    if len(x.dims) < want:
        raise _fail(ValueError, f"Tensor must have rank at least {want}. Received rank {len(x.dims)}, shape {x.shape}",
                    message)


@public
@_operation
def assert_rank_in(x: Any, ranks: Any, message: str | None = None, name: str | None = None) -> None:
    """An error unless the number of axes of `x` is one of `ranks`; see `assert_rank`.

    `name` has no effect.

    >>> import twofold as tf
    >>> tf.debugging.assert_rank_in(tf.zeros([2, 3]), [1, 2])
    """
    x, want = tensor(x), [_rank(r) for r in listed(ranks, "ranks")]
    if len(x.dims) not in want:
        raise _fail(ValueError, f"Tensor must have rank in {tuple(want)}. Received rank {len(x.dims)}, shape {x.shape}",
                    message)


@public
def assert_scalar(tensor: Any, message: str | None = None, name: str | None = None) -> Any:
    """The tensor, or a ValueError unless it has no axes.

    `name` has no effect.

    >>> import twofold as tf
    >>> int(tf.debugging.assert_scalar(tf.constant(3)))
    3
    """
    x = _as_tensor(tensor)
    if x.dims:
        raise _fail(ValueError, f"Expected scalar shape, saw shape: {x.shape}.", message)
    return x


def _as_tensor(value: Any) -> Any:
    return tensor(value)


@public
def assert_type(tensor: Any, tf_type: Any, message: str | None = None, name: str | None = None) -> None:
    """A TypeError unless a tensor has a dtype.

    `name` has no effect.

    >>> import twofold as tf
    >>> tf.debugging.assert_type(tf.constant(3), tf.int32)
    """
    x, want = _as_tensor(tensor), dt.as_dtype(tf_type)
    if x.dtype is not want:
        raise _fail(TypeError, f"Tensor must be of type {want!r}; got {x.dtype!r}", message)


@public
def assert_integer(x: Any, message: str | None = None, name: str | None = None) -> None:
    """A TypeError unless `x` has an integer dtype.

    `name` has no effect.

    >>> import twofold as tf
    >>> tf.debugging.assert_integer(tf.constant(3))
    """
    x = tensor(x)
    if not x.dtype.is_integer:
        raise _fail(TypeError, f"Expected 'x' to be integer type. Got: {x.dtype!r}", message)


@public
def is_numeric_tensor(tensor: Any) -> bool:
    """Whether something is a tensor of numbers.

    >>> import twofold as tf
    >>> tf.debugging.is_numeric_tensor(tf.constant(3)), tf.debugging.is_numeric_tensor(3)
    (True, False)
    """
    return isinstance(tensor, (Tensor, Variable)) and tensor.dtype.is_numeric


@public
def assert_proper_iterable(values: Any) -> None:
    """A TypeError unless `values` is an iterable other than a tensor, an array or text.

    >>> import twofold as tf
    >>> tf.debugging.assert_proper_iterable([1, 2])
    """
    import numpy as np
    if isinstance(values, (Tensor, Variable, np.ndarray, bytes, str)) or not hasattr(values, "__iter__"):
        raise _fail(TypeError, f"Expected argument \"values\" to be a \"proper\" iterable. Found: {type(values)}", None)


@public
def assert_same_float_dtype(tensors: Any = None, dtype: Any = None) -> Any:
    """The one float dtype of some tensors.

    Args:
        tensors: a list of tensors; None among them count for nothing.
        dtype: the dtype that they must have; by default that of the first, or float32.
    Raises:
        ValueError: the dtype is not a float's, or they differ.

    >>> import twofold as tf
    >>> tf.debugging.assert_same_float_dtype([tf.constant(1.0)])
    tf.float32
    """
    want = None if dtype is None else dt.as_dtype(dtype)
    for value in [] if tensors is None else listed(tensors, "tensors"):
        if value is None:
            continue
        have = tensor(value).dtype
        if want is not None and have is not want:
            raise _fail(ValueError, f"Tensor of type {have!r} is not of type {want!r}", None)
        want = have
    want = dt.float32 if want is None else want
    if not want.is_floating:
        raise _fail(ValueError, f"Expected floating point type, got {want!r}.", None)
    return want


@public
@_operation
def assert_shapes(shapes: Any, data: Any = None, summarize: int | None = None, message: str | None = None,
                  name: str | None = None) -> None:
    """An error unless tensors have shapes that go together.

    Args:
        shapes: `(tensor, shape)` pairs, or a dict of them. A shape is a sequence of sizes: an integer, None or "."
            for any, or a name, which stands for one size wherever it occurs. "..." first or last (or `...`) stands
            for any number of axes.
        data, summarize, name: have no effect.
        message: what the error begins with.
    Raises:
        ValueError: a shape is wrong, as far as sizes are known.
        tf.errors.InvalidArgumentError: a size that only the run of a traced function tells is wrong.

    >>> import twofold as tf
    >>> tf.debugging.assert_shapes([(tf.zeros([2, 3]), ("N", 3)), (tf.zeros([2]), ("N",))])
    """
    known: dict[Any, Any] = {}
    for given, shape in list(shapes.items()) if isinstance(shapes, Mapping) else listed(shapes, "shapes"):
        x = tensor(given)
        for size, want in _aligned(x, shape, message):
            _match(x, size, want, known, message)


def _aligned(x: Any, shape: Any, message: str | None) -> list[tuple[Any, Any]]:
    """Pairs of a size of `x` and the size that `shape` requires there."""
    wanted = list(shape) if isinstance(shape, (list, tuple, str)) else [shape]
    dims = list(x.dims)
    rest = [n for n, w in enumerate(wanted) if w in ("...", Ellipsis, "*")]
    if rest:
        if len(rest) > 1 or rest[0] not in (0, len(wanted) - 1):
            raise _fail(ValueError, f"\"...\" must be first or last in {shape!r}", message)
        count = len(wanted) - 1
        if len(dims) < count:
            raise _fail(ValueError, f"Tensor must have rank at least {count}. Received shape {x.shape}", message)
        wanted = [w for n, w in enumerate(wanted) if n != rest[0]]
        dims = dims[len(dims) - count:] if rest[0] == 0 else dims[:count]
    if len(wanted) != len(dims):
        raise _fail(ValueError, f"Tensor must have rank {len(wanted)}. Received shape {x.shape}", message)
    return list(zip(dims, wanted, strict=True))


def _match(x: Any, size: Any, want: Any, known: dict[Any, Any], message: str | None) -> None:
    if want in (None, "."):
        return
    wanted = want if isinstance(want, int) else known.setdefault(want, size)
    agrees = decide_eq(size, wanted)
    if agrees is False:
        raise _fail(ValueError, f"Specified by tensor of shape {x.shape}: a size is {_text(size)} where {want!r} is "
                    f"{_text(wanted)}", message)
    if agrees is None:
        sizes = [ops.identity(tensor(s, dt.int64)) if isinstance(s, int) else _traced(s) for s in (size, wanted)]
        check(ops.equal(*sizes), f"{message}. " * bool(message) + f"a size is not {want!r}:", sizes)


def _traced(size: Any) -> Any:
    return current().size(size)  # type: ignore[union-attr]


def _text(size: Any) -> str:
    return "unknown" if isinstance(size, Dim) else str(size)


publish(__name__)
