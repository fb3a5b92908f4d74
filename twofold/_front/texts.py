"""What functions of strings share: reading their operands, and the results for each string."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from twofold.ir import dtypes as dt
from twofold.ir.dtypes import DType
from twofold.ir.errors import InvalidArgumentError
from twofold.ir.spec import TensorSpec

from . import iteration as engine
from .api import tensor

__all__ = ["each_text", "objects", "rows_of", "same_shape", "text_parts", "texts"]


def texts(value: Any, what: str) -> Any:
    """A tensor of strings.

    Raises:
        InvalidArgumentError: it holds something else.
    """
    given = tensor(value, hint=dt.string)
    if given.dtype is not dt.string:
        raise InvalidArgumentError(None, what, f"{what}: expected strings; got {given.dtype.name}")
    return given


def objects(shape: Sequence[int], values: Sequence[Any]) -> np.ndarray:
    """An array of Python's objects, which NumPy does not look into."""
    array = np.empty(len(values), object)
    array[:] = values
    return array.reshape(shape)


def _array(shape: Sequence[int], values: Sequence[Any], dtype: DType) -> np.ndarray:
    return objects(shape, values) if dtype is dt.string else np.array(values, dtype.np).reshape(shape)


def each_text(fn: Callable[[bytes], Any], value: Any, what: str, dtype: DType = dt.string) -> Any:
    """The tensor of the results of `fn` for each string."""
    given = texts(value, what)

    def apply_to_each(strings: Any) -> list[Any]:
        array = engine.array_of(strings)
        results = [fn(text) for text in array.ravel().tolist()]
        return [engine.tensor_of(_array(array.shape, results, dtype))]
    return engine.host_call(apply_to_each, what, [given], [same_shape(given, dtype)])[0]


def same_shape(x: Any, dtype: DType) -> TensorSpec:
    """The spec of a result of the shape of `x`, of which a trace knows that its sizes are the same."""
    return TensorSpec(None if x.shape.rank is None else x.dims, dtype)


def text_parts(fn: Callable[[bytes], tuple[Sequence[Any], ...]], value: Any, what: str,
               dtypes: Sequence[DType] = (dt.string,)) -> tuple[Any, ...]:
    """The parts of strings: vectors for a single string, else ragged tensors with a row for each string.

    Args:
        fn: from a string to rows of one length, a row for each result.
        value: strings.
        what: the function that errors name.
        dtypes: of the results.
    """
    given = texts(value, what)
    rank = given.shape.rank

    def take_apart(strings: Any) -> list[Any]:
        array = engine.array_of(strings)
        rows = [fn(text) for text in array.ravel().tolist()]
        columns = [[part for row in rows for part in row[n]] for n in range(len(dtypes))]
        flat = [engine.tensor_of(_array([len(column)], column, dtype))
                for column, dtype in zip(columns, dtypes, strict=True)]
        return flat if rank == 0 else [*flat, engine.tensor_of(np.array([len(row[0]) for row in rows], np.int64))]
    specs = [TensorSpec([None], dtype) for dtype in dtypes]
    if rank == 0:
        return tuple(engine.host_call(take_apart, what, [given], specs))
    count = None if rank is None else given.shape.num_elements()
    *flat, lengths = engine.host_call(take_apart, what, [given], [*specs, TensorSpec([count], dt.int64)])
    return tuple([rows_of(given, column, lengths) for column in flat])


def rows_of(strings: Any, flat: Any, lengths: Any) -> Any:
    """The ragged tensor of the parts of strings, which has their axes and one more.

    Args:
        strings: a tensor of at least one axis.
        flat: all parts, one behind another.
        lengths: how many parts each string has.
    """
    import twofold as tf
    rows = tf.RaggedTensor.from_row_lengths(flat, lengths, validate=False)
    rank = strings.shape.rank
    if rank == 1:
        return rows
    return tf.RaggedTensor.from_tensor(strings, ragged_rank=rank - 1).with_flat_values(rows)
