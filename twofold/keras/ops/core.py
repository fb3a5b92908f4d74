"""Functions of Keras's `ops.core`: conversion, control flow, loops, and updates of parts of a tensor.

The loops run eagerly step by step, and are loops of the graph in a `tf.function`.
"""

from __future__ import annotations

import functools
from builtins import slice as builtin_slice
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import twofold as tf
from twofold._front.api import as_numpy, listed, public

from ..backend import standardize_dtype
from ..composites import is_composite
from ..keras_ops import is_symbolic, operation
from ..operands import axis_of, shape_of, size_of, tensor

__all__ = [
    "associative_scan", "cast", "cond", "convert_to_numpy", "convert_to_tensor", "custom_gradient", "dtype",
    "fori_loop", "is_tensor", "map", "saturate_cast", "scan", "scatter", "scatter_update", "shape", "slice",
    "slice_update", "stop_gradient", "switch", "unstack", "vectorize", "vectorized_map", "while_loop",
]


# -- values ---------------------------------------------------------------------------------------
@operation("core")
def convert_to_tensor(x: Any, dtype: Any = None, sparse: bool | None = None, ragged: bool | None = None) -> Any:
    """A value as a tensor.

    Args:
        x: a tensor, variable, array, number, or nested lists of them.
        dtype: of the result; by default x's, with float32 and int32 for Python numbers.
        sparse, ragged: false to have a dense tensor made of a sparse, or ragged, one; else accepted, without effect.

    >>> import twofold as tf
    >>> tf.keras.ops.convert_to_tensor([1, 2], "float32").numpy().tolist()
    [1.0, 2.0]
    """
    return tensor(x, dtype)


@public
def convert_to_numpy(x: Any) -> np.ndarray:
    """A tensor, variable or number as a NumPy array.

    >>> import twofold as tf
    >>> tf.keras.ops.convert_to_numpy(tf.constant([1, 2]))
    array([1, 2], dtype=int32)
    """
    if is_composite(x):
        x = convert_to_tensor(x, sparse=False, ragged=False)
    return np.array(as_numpy(x))


@public
def is_tensor(x: Any) -> bool:
    """Whether something is a tensor.

    >>> import twofold as tf
    >>> tf.keras.ops.is_tensor(tf.ones([2])), tf.keras.ops.is_tensor([1.0])
    (True, False)
    """
    return tf.is_tensor(x)


@public
def dtype(x: Any) -> str:
    """The name of the dtype of a tensor.

    >>> import twofold as tf
    >>> tf.keras.ops.dtype(tf.ones([2]))
    'float32'
    """
    return standardize_dtype(x.dtype)


@public
def shape(x: Any) -> tuple[Any, ...]:
    """The sizes of a tensor, as a tuple.

    Args:
        x: a tensor, array or KerasTensor.
    Returns:
        Integers; sizes that a trace does not know are scalar tensors, those of a KerasTensor None.

    >>> import twofold as tf
    >>> tf.keras.ops.shape(tf.ones([2, 3]))
    (2, 3)
    """
    return tuple(x.shape) if is_symbolic(x) else shape_of(tensor(x))


@operation("core", tensors="x")
def cast(x: Any, dtype: Any) -> Any:
    """A tensor in another dtype.

    >>> import twofold as tf
    >>> tf.keras.ops.cast([1, 2], "float16").numpy().tolist()
    [1.0, 2.0]
    """
    return tf.cast(x, dtype)


@operation("core", tensors="x")
def saturate_cast(x: Any, dtype: Any) -> Any:
    """A tensor in another dtype, numbers that it cannot hold brought to the nearest that it can.

    >>> import twofold as tf
    >>> tf.keras.ops.saturate_cast([-5, 300], "uint8").numpy().tolist()
    [0, 255]
    """
    return tf.saturate_cast(tensor(x), dtype)


@operation("core")
def stop_gradient(variable: Any) -> Any:
    """The same tensor, as a constant for gradients.

    >>> import twofold as tf
    >>> tf.keras.ops.stop_gradient([1.0]).numpy().tolist()
    [1.0]
    """
    return tf.stop_gradient(tensor(variable))


@public
def custom_gradient(f: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator for a function that returns its result and a function that gives its gradient.

    Args:
        f: gives `(result, gradient)`; `gradient(upstream)` gives one gradient for each argument.

    >>> import twofold as tf
    >>> @tf.keras.ops.custom_gradient
    ... def straight_through(x):
    ...     return tf.round(x), lambda upstream: upstream
    >>> straight_through(tf.constant([0.7])).numpy().tolist()
    [1.0]
    """
    def plain(*args: Any, **kwargs: Any) -> Any:
        result, gradient = f(*args, **kwargs)

        def given(*upstream: Any, **more: Any) -> Any:
            return gradient(*upstream)
        return result, given
    return functools.wraps(f)(tf.custom_gradient(plain))


# -- parts ----------------------------------------------------------------------------------------
@operation("core")
def unstack(x: Any, num: int | None = None, axis: int = 0) -> Any:
    """The slices along an axis, as a list.

    Args:
        x: a tensor.
        num: how many there are, if the tensor does not tell.
        axis: along which.

    >>> import twofold as tf
    >>> [t.numpy().tolist() for t in tf.keras.ops.unstack([[1, 2], [3, 4]])]
    [[1, 2], [3, 4]]
    """
    return list(tf.unstack(tensor(x), num, axis))


@operation("core", tensors="inputs start_indices")
def slice(inputs: Any, start_indices: Any, shape: Any) -> Any:
    """A part of a tensor.

    Args:
        inputs: a tensor.
        start_indices: where it begins along each axis.
        shape: its sizes; -1 for all there is.

    >>> import twofold as tf
    >>> tf.keras.ops.slice([1, 2, 3, 4], [1], [2]).numpy().tolist()
    [2, 3]
    """
    return tf.slice(tensor(inputs), start_indices, shape)


@operation("core")
def slice_update(inputs: Any, start_indices: Any, updates: Any) -> Any:
    """A tensor with a part of it replaced.

    Args:
        inputs: a tensor.
        start_indices: where the part begins along each axis; it is moved so that all of it is within.
        updates: the part, of as many axes.

    >>> import twofold as tf
    >>> tf.keras.ops.slice_update([1, 2, 3, 4], [1], [7, 8]).numpy().tolist()
    [1, 7, 8, 4]
    """
    x = tensor(inputs)
    updates = tensor(updates, x.dtype)
    starts = tf.unstack(tf.cast(start_indices, tf.int32), x.ndim)
    places = []
    for axis, start in enumerate(starts):
        size, part = size_of(x, axis), size_of(updates, axis)
        first = tf.clip_by_value(start, 0, tf.cast(size - part, tf.int32))
        places.append(first + tf.range(part))
    if not places:
        return updates
    grid = tf.stack(tf.meshgrid(*places, indexing="ij"), axis=-1)
    return tf.tensor_scatter_nd_update(x, grid, updates)


@operation("core", tensors="indices values")
def scatter(indices: Any, values: Any, shape: Any) -> Any:
    """Zeros with values added at some places.

    Args:
        indices: the places, integers [n, axes].
        values: one for each, or a slice for each.
        shape: of the result.

    >>> import twofold as tf
    >>> tf.keras.ops.scatter([[0], [2], [2]], [1, 2, 3], (4,)).numpy().tolist()
    [1, 0, 5, 0]
    """
    return tf.scatter_nd(tensor(indices), tensor(values), shape)


_SCATTERED = {None: tf.tensor_scatter_nd_update, "add": tf.tensor_scatter_nd_add, "max": tf.tensor_scatter_nd_max,
              "min": tf.tensor_scatter_nd_min}


@operation("core")
def scatter_update(inputs: Any, indices: Any, updates: Any, reduction: str | None = None) -> Any:
    """A tensor with elements, or slices, at some places replaced.

    Args:
        inputs: a tensor.
        indices: the places, integers [n, axes].
        updates: one for each.
        reduction: None to replace; "add", "max" or "min" to join with what is there.
    Raises:
        ValueError: the reduction is another.

    >>> import twofold as tf
    >>> tf.keras.ops.scatter_update([1, 2, 3], [[0], [2]], [7, 9]).numpy().tolist()
    [7, 2, 9]
    """
    if reduction not in _SCATTERED:
        raise ValueError(f"reduction must be None, 'add', 'max' or 'min'; got {reduction!r}.")
    x = tensor(inputs)
    return _SCATTERED[reduction](x, tensor(indices), tensor(updates, x.dtype))


# -- control --------------------------------------------------------------------------------------
@operation("core")
def cond(pred: Any, true_fn: Callable[[], Any], false_fn: Callable[[], Any]) -> Any:
    """The result of one of two functions.

    Args:
        pred: a bool: whether it is the first one.
        true_fn, false_fn: functions without arguments, whose results have one structure.

    >>> import twofold as tf
    >>> tf.keras.ops.cond(tf.constant(3) > 2, lambda: tf.constant(1), lambda: tf.constant(0)).numpy().tolist()
    1
    """
    if isinstance(pred, (bool, np.bool_)):
        return true_fn() if pred else false_fn()
    return tf.cond(tensor(pred, tf.bool), true_fn, false_fn)


@operation("core")
def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    """The result of one of several functions.

    Args:
        index: which, an integer; brought between 0 and the last.
        branches: functions of the operands, whose results have one structure.
        operands: tensors.

    >>> import twofold as tf
    >>> tf.keras.ops.switch(1, [lambda x: x + 1, lambda x: x * 10], tf.constant(3)).numpy().tolist()
    30
    """
    branches = listed(branches, "branches")
    place = tf.clip_by_value(tensor(index, tf.int32), 0, len(branches) - 1)
    return tf.switch_case(place, [functools.partial(branch, *operands) for branch in branches])


@operation("core", tensors="loop_vars")
def while_loop(cond: Callable[..., Any], body: Callable[..., Any], loop_vars: Any,
               maximum_iterations: int | None = None) -> Any:
    """Values changed by a function as long as a condition of them holds.

    Args:
        cond: a function of the values: whether to go on.
        body: a function of the values that gives the next ones.
        loop_vars: the first values: a tuple or list of structures, or one.
        maximum_iterations: how often to go on, at most.
    Returns:
        The last values, as `loop_vars` has them.

    >>> import twofold as tf
    >>> n, power = tf.keras.ops.while_loop(lambda n, p: p < 100, lambda n, p: (n + 1, p * 2), (0, 1))
    >>> int(n), int(power)
    (7, 128)
    """
    several = isinstance(loop_vars, (tuple, list))
    first = tuple(loop_vars) if several else (loop_vars,)
    first = tf.nest.map_structure(tensor, first)

    def step(*values: Any) -> Any:
        values_after = body(*values)
        return tuple(values_after) if several and isinstance(values_after, (tuple, list)) else (values_after,)
    last = tf.while_loop(cond, step, first, maximum_iterations=maximum_iterations)
    return type(loop_vars)(last) if type(loop_vars) in (tuple, list) else last if several else last[0]


@operation("core", tensors="init_val")
def fori_loop(lower: Any, upper: Any, body_fun: Callable[[Any, Any], Any], init_val: Any) -> Any:
    """A value changed by a function once for each integer of a range.

    Args:
        lower, upper: the first integer, and the one behind the last.
        body_fun: a function of an integer and the value that gives the next value.
        init_val: the first value, a tensor or a structure.

    >>> import twofold as tf
    >>> tf.keras.ops.fori_loop(0, 4, lambda i, total: total + i, 0).numpy().tolist()
    6
    """
    wide = any(getattr(bound, "dtype", None) == tf.int64 or isinstance(bound, int) and not -2**31 <= bound < 2**31
               for bound in (lower, upper))
    start, stop = (tensor(bound, tf.int64 if wide else tf.int32) for bound in (lower, upper))
    first = tf.nest.map_structure(tensor, init_val)
    return tf.while_loop(lambda i, value: i < stop, lambda i, value: (i + 1, body_fun(i, value)), (start, first))[1]


@operation("core", tensors="f init xs")
def scan(f: Callable[[Any, Any], Any], init: Any, xs: Any = None, length: int | None = None, reverse: bool = False,
         unroll: Any = 1) -> Any:
    """A value carried along a sequence, and what comes out at each place.

    Args:
        f: a function of the carried value and an element that gives the next value and an output, which may be None.
        init: the first value, a tensor or a structure.
        xs: the sequence along axis 0 of a tensor, or of each tensor of a structure; None for a loop of `length`.
        length: how long it is.
        reverse: whether it goes from the end to the beginning; outputs are where their elements are.
        unroll: accepted, without effect.
    Returns:
        The last value, and the outputs along axis 0.
    Raises:
        ValueError: there is no length, or lengths differ, or it is 0.

    >>> import twofold as tf
    >>> last, sums = tf.keras.ops.scan(lambda total, x: (total + x, total + x), 0, tf.constant([1, 2, 3]))
    >>> int(last), sums.numpy().tolist()
    (6, [1, 3, 6])
    """
    xs = None if xs is None else tf.nest.map_structure(tensor, xs)
    count = _length(xs, length)

    def place(n: Any) -> Any:
        return count - 1 - n if reverse else n

    def element(n: Any) -> Any:
        return None if xs is None else tf.nest.map_structure(lambda x: tf.gather(x, place(n)), xs)
    # the first step tells what comes out
    carry, output = f(tf.nest.map_structure(tensor, init), element(tf.constant(0)))
    outputs = [] if output is None else [tensor(y) for y in tf.nest.flatten(output)]
    arrays = tuple([tf.TensorArray(y.dtype, count, element_shape=y.shape).write(place(tf.constant(0)), y)
                    for y in outputs])

    def step(n: Any, carry: Any, arrays: Any) -> Any:
        carry, outputs_of_step = f(carry, element(n))
        written = [a.write(place(n), tensor(y)) for a, y in zip(arrays, tf.nest.flatten(outputs_of_step), strict=True)
                   ] if outputs else ()
        return n + 1, carry, tuple(written)
    _, carry, arrays = tf.while_loop(lambda n, *_: n < count, step,
                                     (tf.constant(1), tf.nest.map_structure(tensor, carry), arrays))
    stacked = [array.stack() for array in arrays]
    return carry, None if output is None else tf.nest.pack_sequence_as(output, stacked)


def _length(xs: Any, length: int | None) -> Any:
    """The common length of sequences."""
    sizes = [size_of(x, 0) for x in tf.nest.flatten(xs)] if xs is not None else []
    known = {n for n in [*sizes, length] if isinstance(n, int)}
    if len(known) > 1:
        raise ValueError(f"scan: the lengths differ: {sorted(known)}.")
    if not known and not sizes:
        raise ValueError("scan needs `xs` or `length`.")
    if 0 in known:
        raise ValueError("scan needs a sequence of one element at least.")
    return next(iter(known)) if known else sizes[0]


@operation("core")
def map(f: Callable[[Any], Any], xs: Any) -> Any:
    """A function of each slice along axis 0, one after the other.

    Args:
        f: a function of a slice, or of a structure of slices.
        xs: a tensor, or a structure of tensors of one length.
    Returns:
        The results, stacked along axis 0.

    >>> import twofold as tf
    >>> tf.keras.ops.map(lambda x: x * x, tf.constant([1, 2, 3])).numpy().tolist()
    [1, 4, 9]
    """
    return scan(lambda nothing, x: (nothing, f(x)), tf.constant(0), xs)[1]


@operation("core", tensors="elements")
def vectorized_map(function: Callable[[Any], Any], elements: Any) -> Any:
    """A function of each slice along axis 0, of all at once.

    Args:
        function: a function of a slice, or of a structure of slices.
        elements: a tensor, or a structure of tensors of one length.
    Returns:
        The results, stacked along axis 0.

    >>> import twofold as tf
    >>> tf.keras.ops.vectorized_map(lambda x: tf.reduce_sum(x), tf.constant([[1, 2], [3, 4]])).numpy().tolist()
    [3, 7]
    """
    return tf.vectorized_map(function, tf.nest.map_structure(tensor, elements))


@public
def vectorize(pyfunc: Callable[..., Any], *, excluded: Any = None, signature: str | None = None) -> Callable[..., Any]:
    """A function of numbers as a function of tensors, element by element; their shapes broadcast.

    Args:
        pyfunc: a function of scalar tensors that gives scalars.
        excluded: positions or names of arguments that are given as they are.
        signature: must be None: the function is of scalars.
    Raises:
        ValueError: a signature is given.

    >>> import twofold as tf
    >>> smaller = tf.keras.ops.vectorize(lambda a, b: tf.minimum(a, b))
    >>> smaller([1, 5], 3).numpy().tolist()
    [1, 3]
    """
    if signature is not None:
        raise ValueError("vectorize takes functions of scalars; `signature` must be None.")
    apart = set(listed(excluded or (), "excluded"))

    @functools.wraps(pyfunc)
    def call(*args: Any, **kwargs: Any) -> Any:
        places = [n for n in range(len(args)) if n not in apart]
        names = [k for k in kwargs if k not in apart]
        given = [tensor(args[n]) for n in places] + [tensor(kwargs[k]) for k in names]
        if not given:
            return pyfunc(*args, **kwargs)
        sizes = functools.reduce(tf.broadcast_dynamic_shape, [tf.shape(x) for x in given])
        flat = tuple([tf.reshape(tf.broadcast_to(x, sizes), [-1]) for x in given])

        def one(elements: Any) -> Any:
            each = dict(zip([*places, *names], elements, strict=True))
            return pyfunc(*[each.get(n, a) for n, a in enumerate(args)],
                          **{k: each.get(k, v) for k, v in kwargs.items()})
        results = tf.vectorized_map(one, flat)
        return tf.nest.map_structure(lambda y: tf.reshape(y, sizes), results)
    return call


@operation("core")
def associative_scan(f: Callable[[Any, Any], Any], elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """All elements up to each, joined by an associative function, in a logarithmic number of steps (Blelloch 1990).

    Args:
        f: a function that joins slices along the axis with as many others.
        elems: a tensor, or a structure of tensors, whose sizes along the axis are known and equal.
        reverse: whether to join those from each to the end.
        axis: along which.
    Raises:
        ValueError: the sizes differ, or are unknown.

    >>> import twofold as tf
    >>> tf.keras.ops.associative_scan(lambda a, b: a + b, tf.constant([1, 2, 3])).numpy().tolist()
    [1, 3, 6]
    """
    flat = [tensor(x) for x in tf.nest.flatten(elems)]
    axes = [axis_of(axis, x.ndim) for x in flat]
    counts = {x.shape[a] for x, a in zip(flat, axes, strict=True)}
    if len(counts) != 1 or None in counts:
        raise ValueError(f"associative_scan needs tensors of one known size along axis {axis}; got "
                         f"{[tuple(x.shape) for x in flat]}.")

    def turned(xs: list[Any]) -> list[Any]:
        return [tf.reverse(x, [a]) for x, a in zip(xs, axes, strict=True)] if reverse else xs

    def join(first: list[Any], second: list[Any]) -> list[Any]:
        packed = (tf.nest.pack_sequence_as(elems, xs) for xs in (first, second))
        return tf.nest.flatten(f(*packed))
    return tf.nest.pack_sequence_as(elems, turned(_joined(join, turned(flat), axes, counts.pop())))


def _joined(join: Callable[[Any, Any], Any], xs: list[Any], axes: list[int], count: int) -> list[Any]:
    """The scan: neighbours are joined, the scan of these is every second result, and one more join gives the others."""
    if count < 2:
        return xs

    def part(values: list[Any], start: int | None, stop: int | None, step: int | None = None) -> list[Any]:
        cut = builtin_slice(start, stop, step)
        return [x[(builtin_slice(None),) * a + (cut,)] for x, a in zip(values, axes, strict=True)]
    odd = _joined(join, join(part(xs, 0, count - 1, 2), part(xs, 1, None, 2)), axes, count // 2)
    if count > 2:
        left = part(odd, 0, count // 2 - 1 if count % 2 == 0 else None)
        even = join(left, part(xs, 2, None, 2))
        even = [tf.concat([first, rest], a) for first, rest, a in zip(part(xs, 0, 1), even, axes, strict=True)]
    else:
        even = part(xs, 0, 1)
    order = [n // 2 if n % 2 == 0 else (count + 1) // 2 + n // 2 for n in range(count)]
    return [tf.gather(tf.concat([e, o], a), order, axis=a) for e, o, a in zip(even, odd, axes, strict=True)]
