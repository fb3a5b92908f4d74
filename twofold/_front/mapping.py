"""`tf.map_fn` and `tf.vectorized_map` where rows or results are composite values, such as ragged tensors.

Where only dense tensors come and go, `_ops/array_loops.py` maps. How rows are read and put together says `rows.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import twofold as tf
from twofold.ir import dtypes as dt
from twofold.ir import nest
from twofold.ir.errors import CompositeOperand
from twofold.ir.spec import spec
from twofold.ir.type_spec import CompositeTensor, TypeSpec
from twofold.tracer.autograph import callee
from twofold.tracer.trace import current

from .dispatch import Holds, implements
from .rows import batched_spec, empty_batch, joined, row_reader, stacked

__all__ = ["map_rows", "vectorized_with_composites"]

_UNROLLED = 32  # up to so many rows, a trace has the function's ops once for each row; above, it has loops
_BLOCKS = (1024, 32, 1)  # rows that a step of a loop joins to those before them, from the outer loop to the inner one


@implements(tf.map_fn, {"elems": Holds(CompositeTensor)}, {"fn_output_signature": Holds(TypeSpec)},
            {"dtype": Holds(TypeSpec)})
def map_rows(fn: Callable[[Any], Any], elems: Any, dtype: Any = None, parallel_iterations: Any = None,
             back_prop: bool = True, swap_memory: bool = False, infer_shape: bool = True, name: str | None = None,
             fn_output_signature: Any = None) -> Any:
    """The results of a function for each row, stacked; see `tf.map_fn`."""
    signature = dtype if fn_output_signature is None else fn_output_signature
    values = [x if nest.is_composite(x) else tf.convert_to_tensor(x)
              for x in nest.flatten(elems, expand_composites=False)]
    rows = [row_reader(x) for x in values]
    sizes: set[Any] = {count for count, _ in rows if isinstance(count, int)}
    if len(sizes) > 1:
        raise ValueError(f"map_fn: first axes have different sizes: {sorted(sizes)}")
    specs = _signature(signature, values, elems)
    staged = tf.inside_function()
    function = callee(fn) if staged else fn

    def result(n: Any) -> Any:
        row = nest.pack(elems, [take(n) for _, take in rows], expand_composites=False)
        return _as_signed(function(row), specs)
    if sizes and (not staged or min(sizes) <= _UNROLLED):
        results = [result(n) for n in range(sizes.pop())]
        return nest.map_structure(stacked, specs, *results, expand_composites=False) if results else _none(specs)
    count = tf.cast(sizes.pop() if sizes else rows[0][0], tf.int64)
    if any(map(nest.is_composite, nest.flatten(specs, expand_composites=False))):
        return _in_a_loop(result, count, specs)
    return tf.map_fn(result, tf.range(count), fn_output_signature=nest.map_structure(lambda s: s.dtype, specs))


@implements(tf.vectorized_map, {})
def vectorized_with_composites(fn: Callable[[Any], Any], elems: Any, fallback_to_while_loop: bool = True,
                               warn: bool = True) -> Any:
    """The stacked results of a function: `tf.vectorized_map` comes here when it has traced it, and its results are
    composite values."""
    leaves = nest.flatten(elems, expand_composites=False)
    for leaf in leaves:
        if nest.is_composite(leaf):
            raise CompositeOperand(leaf)
    rows = [row_reader(tf.convert_to_tensor(leaf)) for leaf in leaves]
    count = next((size for size, _ in rows if not isinstance(size, int) or size != 1), 1)

    def result(n: Any) -> Any:
        row = [take(0 if isinstance(size, int) and size == 1 else n) for size, take in rows]
        return callee(fn)(nest.pack(elems, row))
    specs = nest.map_structure(lambda v: v.__composite_spec__ if nest.is_composite(v) else v.dtype,
                               _traced_result(result), expand_composites=False)
    return map_rows(result, tf.range(count), fn_output_signature=specs)


# -- results -------------------------------------------------------------------------------------------------------
def _signature(signature: Any, values: Sequence[Any], elems: Any) -> Any:
    """The specs of results: those that were asked for, else those of the rows."""
    if signature is None:
        return nest.pack(elems, [_row_spec(x) for x in values], expand_composites=False)
    return nest.map_structure(lambda s: s if isinstance(s, TypeSpec) else tf.TensorSpec(None, s), signature,
                              expand_composites=False)


def _row_spec(value: Any) -> Any:
    """The spec of results like the rows of a value; their sizes are left open, where classes have them in values."""
    return value.__composite_spec__._unbatched() if nest.is_composite(value) else tf.TensorSpec(None, value.dtype)


def _as_signed(result: Any, signature: Any) -> Any:
    """A result with tensors for leaves, of the dtypes that were asked for."""
    nest.assert_same_structure(signature, result, expand_composites=False)
    return nest.map_structure(_as_leaf, signature, result, expand_composites=False)


def _as_leaf(spec: Any, value: Any) -> Any:
    if not nest.is_composite(spec):
        return tf.convert_to_tensor(value, spec.dtype)
    made = spec._converted(value)
    if not spec.is_compatible_with(made):
        raise ValueError(f"Error in map_fn: expected `fn` to return a {spec!r}, but it returned {value!r}.")
    return made


def _none(signature: Any) -> Any:
    """The result for no rows at all."""
    return nest.map_structure(empty_batch, signature, expand_composites=False)


def _in_a_loop(result: Callable[[Any], Any], count: Any, signature: Any) -> Any:
    """The results of loops that put them one behind the other, first in small blocks and then these in larger ones.

    A step copies what its loop has joined so far: one loop alone would copy all results before each, in a time that
    grows by the square of their number.
    """
    signature = nest.map_structure(_with_rank, signature, _traced_result(result), expand_composites=False)
    specs = nest.flatten(signature, expand_composites=False)
    start = nest.flatten(_none(signature), expand_composites=False)

    def row(n: Any, _: Any) -> list[Any]:
        leaves = nest.flatten(result(n), expand_composites=False)
        return [stacked(spec, leaf) for spec, leaf in zip(specs, leaves, strict=True)]

    def in_blocks(size: int, block: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        def rows(begin: Any, end: Any) -> Any:
            def step(n: Any, *so_far: Any) -> Any:
                return (n + size, *map(joined, specs, so_far, block(n, tf.minimum(n + size, end))))
            return tf.while_loop(lambda n, *_: n < end, step, [begin, *start],
                                 shape_invariants=[tf.TensorShape([]), *map(batched_spec, specs)])[1:]
        return rows
    block: Callable[[Any, Any], Any] = row
    for size in reversed(_BLOCKS):
        block = in_blocks(size, block)
    return nest.pack(signature, block(tf.zeros([], tf.int64), count), expand_composites=False)


def _traced_result(result: Callable[[Any], Any]) -> Any:
    """What a function of the number of a row gives, for its structure and specs: it is traced into a graph that nothing
    runs."""
    trace = current()
    assert trace is not None, "who looks ahead is in a trace"
    return trace.region("look", [spec((), dt.int64)], result, repeats=True).result


def _with_rank(signed: Any, value: Any) -> Any:
    """A spec whose rank, if it is not known, is that of a value."""
    if not nest.is_composite(signed):
        return tf.TensorSpec(value.shape, value.dtype)
    known = not isinstance(getattr(signed, "shape", None), tf.TensorShape) or signed.shape.rank is not None
    return signed if known else value.__composite_spec__
