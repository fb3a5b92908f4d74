"""Functions applied to the slices of tensors in turn: map, scan and folds. Re-exported by `twofold/array.py`.

Arguments and results may be structures (`tf.nest`) of tensors, which are taken apart along their first axis. Eagerly
the loops run in Python; inside `tf.function` they are staged by `tracer/array_loops.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from twofold._front.api import public, tensor
from twofold._front.function import function
from twofold._front.tensors import is_tensor
from twofold._ops.array_creation import constant_of
from twofold._ops.array_joining import stack, unstack
from twofold.ir import dtypes as dt
from twofold.ir import nest, ops
from twofold.ir.errors import CompositeOperand, InvalidArgumentError
from twofold.ir.spec import TensorSpec
from twofold.tracer import array_loops
from twofold.tracer.autograph import callee
from twofold.tracer.following import apart
from twofold.tracer.symbolic import SymbolicValueError
from twofold.tracer.trace import current

__all__ = ["map_fn", "vectorized_map", "scan", "foldl", "foldr"]


def _refuse(composite: Callable[[Any], bool], *structures: Any) -> None:
    """Raise a `CompositeOperand` where a leaf is a composite value that is not to be taken as a container of its
    tensors: the function that is registered for its class is called instead (`_front/dispatch.py`).

    Args:
        composite: whether a leaf is such a value.
    """
    for leaf in nest.flatten(structures, expand_composites=False):
        if composite(leaf):
            raise CompositeOperand(leaf)


def _is_composite_tensor(value: Any) -> bool:
    """Whether a composite value is a tensor itself, ragged or sparse, rather than a container of some."""
    return nest.is_composite(value) and is_tensor(value)


def _leaves(op: str, elems: Any) -> list[Any]:
    """The tensors that are sliced."""
    _refuse(_is_composite_tensor, elems)
    leaves = [tensor(e) for e in nest.flatten(elems)]
    if not leaves:
        raise ValueError(f"{op}: elems must be a Tensor or (possibly nested) sequence of Tensors. Got {elems!r}, which "
                         "does not contain any Tensors.")
    for leaf in leaves:
        if not leaf.dims:
            raise ValueError(f"{op}: elements in elems must be 1+ dimensional Tensors, not scalars")
    return leaves


def _slices(op: str, elems: Any) -> tuple[list[Any], int]:
    """The structure of each slice along the first axis, and their number."""
    leaves = _leaves(op, elems)
    count = leaves[0].dims[0]
    sizes = [leaf.dims[0] for leaf in leaves]
    if sizes != [count] * len(sizes):
        raise InvalidArgumentError(f"{op}: elems have first axes of different sizes: {sizes}.")
    return [nest.pack(elems, row) for row in zip(*map(unstack, leaves), strict=True)], count


def _apart(state: Any) -> Any:
    return nest.map_structure(apart, state)


def _stacked(op: str, results: list[Any]) -> Any:
    first = results[0]
    for other in results[1:]:
        nest.assert_same_structure(first, other)
    rows = [nest.flatten(result, expand_composites=False) for result in results]
    return nest.pack(first, [_stacked_leaf(leaves) for leaves in zip(*rows, strict=True)], expand_composites=False)


def _stacked_leaf(leaves: Sequence[Any]) -> Any:
    if not nest.is_composite(leaves[0]):
        return stack(list(leaves))
    if is_tensor(leaves[0]):
        return leaves[0].__composite_spec__._stacked(leaves)
    return nest.pack(leaves[0], [stack(list(parts)) for parts in zip(*map(nest.flatten, leaves), strict=True)])


@public
def map_fn(fn: Callable[[Any], Any], elems: Any, dtype: Any = None, parallel_iterations: Any = None,
           back_prop: bool = True, swap_memory: bool = False, infer_shape: bool = True, name: str | None = None,
           fn_output_signature: Any = None) -> Any:
    """The results of a function for each slice of tensors along their first axis, stacked.

    Args:
        fn: a function of one slice, a structure like `elems`.
        elems: a tensor, or a structure of tensors with first axes of one size; ragged and sparse tensors, and values of
            a `tf.experimental.BatchableExtensionType`, count as tensors whose slices are of the same kind.
        dtype: an older name of `fn_output_signature`.
        parallel_iterations, back_prop, swap_memory, infer_shape: have no effect.
        name: has no effect.
        fn_output_signature: a dtype, a `tf.TypeSpec` or a structure of them that the results of `fn` must have. It is
            needed where results differ in kind from the slices, and where there are no slices and they differ in dtype.
    Returns:
        A structure like the results of `fn`.
    Raises:
        ValueError: `elems` holds no tensors or a scalar; structures differ. TypeError: a result has another dtype.
        tf.errors.InvalidArgumentError: first axes have different sizes, or results have different shapes.

    >>> import twofold as tf
    >>> tf.map_fn(lambda t: t * t, tf.constant([3, 5, 2])).numpy().tolist()
    [9, 25, 4]
    >>> pairs = (tf.constant([1, 2]), tf.constant([3, 4]))
    >>> tf.map_fn(lambda ab: ab[0] + ab[1], pairs, fn_output_signature=tf.int32).numpy().tolist()
    [4, 6]
    """
    signature = dtype if fn_output_signature is None else fn_output_signature
    _refuse(nest.is_composite, elems, signature)
    if current() is not None:
        return array_loops.staged_map("map_fn", callee(fn), elems, _leaves("map_fn", elems),
                                      lambda value: _as_signed(value, signature))
    rows, count = _slices("map_fn", elems)
    if not count:
        if signature is not None:
            return _none("map_fn", elems, signature)
        try:
            return _of_no_slice(map_fn, fn, elems)
        except SymbolicValueError:  # a function that needs values, of which there are none
            return nest.map_structure(tensor, elems)
    return _stacked("map_fn", [_apart(_as_signed(fn(row), signature)) for row in rows])


def _as_signed(value: Any, signature: Any) -> Any:
    """The tensors of a result, of the dtypes that the signature asks for."""
    if signature is None:
        return nest.map_structure(tensor, value)
    nest.assert_same_structure(signature, value)
    kinds = [s.dtype if isinstance(s, TensorSpec) else dt.as_dtype(s) for s in nest.flatten(signature)]
    return nest.pack(value, [tensor(v, k) for v, k in zip(nest.flatten(value), kinds, strict=True)])


def _of_no_slice(mapped: Callable[..., Any], fn: Callable[[Any], Any], elems: Any) -> Any:
    """The result for no slices at all: a trace tells what a slice would give."""
    leaves = [tensor(e) for e in nest.flatten(elems)]
    return function(lambda *given: mapped(fn, nest.pack(elems, list(given))), fallback=False)(*leaves)


def _none(op: str, elems: Any, signature: Any) -> Any:
    """The result for no slices at all, of a signature."""
    def empty(s: Any) -> Any:
        dims = s.dims if isinstance(s, TensorSpec) and s.dims is not None else ()
        if not all(isinstance(d, int) for d in dims):
            raise ValueError(f"{op}: there are no slices, and the signature {s!r} leaves sizes open.")
        return ops.fill(constant_of(0, s.dtype if isinstance(s, TensorSpec) else dt.as_dtype(s)), shape=(0, *dims))
    return nest.map_structure(empty, signature)


@public
def vectorized_map(fn: Callable[[Any], Any], elems: Any, fallback_to_while_loop: bool = True, warn: bool = True) -> Any:
    """The results of a function for each slice of tensors along their first axis, stacked.

    Args:
        fn: a function of one slice, a structure like `elems`; its results all have one shape, or are ragged or sparse.
        elems: a tensor, or a structure of tensors with first axes of one size; a first axis of size 1 is repeated.
        fallback_to_while_loop, warn: have no effect.
    Returns:
        A structure like the results of `fn`.
    Raises:
        ValueError: `elems` holds no tensors or a scalar; structures differ.
        tf.errors.InvalidArgumentError: first axes have different sizes, or results have different shapes.

    >>> import twofold as tf
    >>> tf.vectorized_map(lambda t: tf.reduce_sum(t), tf.ones([3, 4])).numpy().tolist()
    [4.0, 4.0, 4.0]
    """
    _refuse(_is_composite_tensor, elems)
    leaves = _leaves("vectorized_map", elems)
    count = next((leaf.dims[0] for leaf in leaves if leaf.dims[0] != 1), 1)
    repeated = [_repeated(leaf, count) for leaf in leaves]
    if current() is not None:
        return array_loops.staged_map("vectorized_map", callee(fn), elems, repeated, _tensors)
    rows, _ = _slices("vectorized_map", nest.pack(elems, repeated))
    if not rows:
        return _of_no_slice(vectorized_map, fn, elems)
    return _stacked("vectorized_map", [_apart(nest.map_structure(tensor, fn(row))) for row in rows])


def _tensors(value: Any) -> Any:
    _refuse(_is_composite_tensor, value)
    return nest.map_structure(tensor, value)


def _repeated(x: Any, size: int) -> Any:
    return ops.broadcast_to(x, shape=(size, *x.dims[1:])) if x.dims[:1] == (1,) else x


def _start(op: str, elems: Any, initializer: Any, backward: bool) -> tuple[list[Any], Any, bool]:
    """The slices in order, the first accumulator, and whether it is one of the slices."""
    rows, _ = _slices(op, elems)
    if backward:
        rows.reverse()
    if initializer is not None:
        return rows, nest.map_structure(tensor, initializer), False
    if not rows:
        raise InvalidArgumentError(f"{op}: there is neither an initializer nor a slice to begin with.")
    return rows[1:], rows[0], True


@public
def scan(fn: Callable[[Any, Any], Any], elems: Any, initializer: Any = None, parallel_iterations: int = 10,
         back_prop: bool = True, swap_memory: bool = False, infer_shape: bool = True, reverse: bool = False,
         name: str | None = None) -> Any:
    """All accumulators of a fold along the first axis, stacked.

    Args:
        fn: a function of the accumulator and a slice, which gives the next accumulator.
        elems: a tensor, or a structure of tensors with first axes of one size.
        initializer: the first accumulator; the first slice by default.
        parallel_iterations, back_prop, swap_memory, infer_shape: have no effect.
        reverse: whether to begin with the last slice; results keep the places of their slices.
        name: has no effect.
    Returns:
        A structure like the accumulator.
    Raises:
        ValueError: `elems` holds no tensors or a scalar; structures differ.
        tf.errors.InvalidArgumentError: there is nothing to begin with, or shapes do not fit.

    >>> import twofold as tf
    >>> tf.scan(lambda total, t: total + t, tf.constant([1, 2, 3, 4])).numpy().tolist()
    [1, 3, 6, 10]
    """
    _refuse(_is_composite_tensor, initializer)
    if current() is not None:
        return array_loops.staged_scan("scan", callee(fn), elems, _leaves("scan", elems), initializer, reverse)
    rows, state, taken = _start("scan", elems, initializer, reverse)
    results = [_apart(state)] if taken else []
    for row in rows:
        state = _next("scan", fn, state, row)
        results.append(_apart(state))
    if not results:
        return nest.map_structure(lambda t: ops.fill(constant_of(0, t.dtype), shape=(0, *t.dims)), state)
    return _stacked("scan", results[::-1] if reverse else results)


def _next(op: str, fn: Callable[[Any, Any], Any], state: Any, row: Any) -> Any:
    state_after = nest.map_structure(tensor, fn(state, row))
    nest.assert_same_structure(state, state_after)
    return state_after


@public
def foldl(fn: Callable[[Any, Any], Any], elems: Any, initializer: Any = None, parallel_iterations: int = 10,
          back_prop: bool = True, swap_memory: bool = False, name: str | None = None) -> Any:
    """Slices along the first axis joined into one, from the first to the last.

    Args:
        fn: a function of the accumulator and a slice, which gives the next accumulator.
        elems: a tensor, or a structure of tensors with first axes of one size.
        initializer: the first accumulator; the first slice by default.
        parallel_iterations, back_prop, swap_memory, name: have no effect.
    Returns:
        The last accumulator.
    Raises:
        ValueError: `elems` holds no tensors or a scalar; structures differ.
        tf.errors.InvalidArgumentError: there is nothing to begin with, or first axes differ.

    >>> import twofold as tf
    >>> int(tf.foldl(lambda a, x: a - x, tf.constant([1, 2, 3])))
    -4
    """
    if current() is not None:
        return array_loops.staged_fold("foldl", callee(fn), elems, _leaves("foldl", elems), initializer, False)
    rows, state, _ = _start("foldl", elems, initializer, False)
    for row in rows:
        state = _next("foldl", fn, state, row)
    return state


@public
def foldr(fn: Callable[[Any, Any], Any], elems: Any, initializer: Any = None, parallel_iterations: int = 10,
          back_prop: bool = True, swap_memory: bool = False, name: str | None = None) -> Any:
    """Slices along the first axis joined into one, from the last to the first.

    Args:
        fn: a function of the accumulator and a slice, which gives the next accumulator.
        elems: a tensor, or a structure of tensors with first axes of one size.
        initializer: the first accumulator; the last slice by default.
        parallel_iterations, back_prop, swap_memory, name: have no effect.
    Returns:
        The last accumulator.
    Raises:
        ValueError: `elems` holds no tensors or a scalar; structures differ.
        tf.errors.InvalidArgumentError: there is nothing to begin with, or first axes differ.

    >>> import twofold as tf
    >>> int(tf.foldr(lambda a, x: a - x, tf.constant([1, 2, 3])))
    0
    """
    if current() is not None:
        return array_loops.staged_fold("foldr", callee(fn), elems, _leaves("foldr", elems), initializer, True)
    rows, state, _ = _start("foldr", elems, initializer, True)
    for row in rows:
        state = _next("foldr", fn, state, row)
    return state
