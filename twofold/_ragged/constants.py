"""`tf.ragged.constant`: nested Python lists as ragged tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

import twofold as tf

from .ragged_tensor import RaggedTensor

__all__ = ["ragged_constant"]


def ragged_constant(pylist: Any, dtype: Any, ragged_rank: int | None, inner_shape: Any, row_splits_dtype: Any) -> Any:
    """See `tf.ragged.constant`."""
    row_splits_dtype = tf.as_dtype(row_splits_dtype)
    if not _is_list(pylist):
        if ragged_rank:
            raise ValueError(f"Invalid pylist={pylist!r}: incompatible with ragged_rank={ragged_rank}")
        if inner_shape:
            raise ValueError(f"Invalid pylist={pylist!r}: incompatible with inner_shape={inner_shape}")
        return tf.constant(pylist, dtype)
    if ragged_rank is not None and ragged_rank < 0:
        raise ValueError(f"Invalid ragged_rank={ragged_rank}: must be nonnegative")
    scalars = _scalar_depth(pylist)
    deepest = _depth(pylist)
    if scalars is not None and deepest > scalars:
        raise ValueError(f"Invalid pylist={pylist!r}: empty list nesting is greater than scalar value nesting")
    if inner_shape is not None and scalars is not None:
        want = scalars if ragged_rank is None else ragged_rank + 1 + len(inner_shape)
        if want != scalars:
            raise ValueError(f"Invalid pylist={pylist!r}: incompatible with ragged_rank={ragged_rank} and "
                             f"inner_shape={inner_shape}")
    if ragged_rank is None:
        if inner_shape is None:
            ragged_rank = max(1, deepest - 1)
            inner_shape = ()
        else:
            ragged_rank = max(1, deepest - 1 - len(inner_shape))
    elif deepest and ragged_rank >= deepest and scalars is not None:
        raise ValueError(f"Invalid pylist={pylist!r}: incompatible with ragged_rank={ragged_rank}")
    if scalars is not None and scalars <= ragged_rank and ragged_rank > 0:
        if scalars == 1 and ragged_rank == 1 and inner_shape == ():
            return tf.constant(pylist, dtype)
        raise ValueError(f"Invalid pylist={pylist!r}: incompatible with ragged_rank={ragged_rank}")
    if deepest == 1 and scalars is None and ragged_rank == 1 and inner_shape == ():
        return tf.constant(pylist, dtype or tf.float32)
    splits, level = [], pylist
    for _ in range(ragged_rank):
        ends = np.cumsum([len(row) for row in level])
        splits.append(np.concatenate([[0], ends]).astype(row_splits_dtype.as_numpy_dtype))
        level = [item for row in level for item in row]
    shape = _inner_shape(level) if inner_shape is None else tuple(inner_shape)
    if not len(level):
        flat = tf.zeros([0, *shape], dtype or tf.float32)
    else:
        try:
            flat = tf.constant(_plain(level), dtype)
        except ValueError as e:
            raise ValueError(f"Invalid pylist={pylist!r}: inner values have different shapes, or do not go together: "
                             f"{e}") from None
        if shape and tuple(flat.shape[1:]) != shape:
            raise ValueError(f"Invalid pylist={pylist!r}: incompatible with inner_shape={shape}")
    result: Any = flat
    for one in reversed(splits):
        result = RaggedTensor.from_row_splits(result, tf.constant(one, row_splits_dtype), validate=False)
    return result


def _plain(level: Any) -> Any:
    return level.tolist() if isinstance(level, np.ndarray) and level.dtype == object else list(level)


def _is_list(x: Any) -> bool:
    return isinstance(x, (list, tuple)) or (isinstance(x, np.ndarray) and x.ndim > 0)


def _depth(x: Any) -> int:
    """The depth of the deepest list."""
    return 1 + max([_depth(item) for item in x], default=0) if _is_list(x) else 0


def _scalar_depth(x: Any, around: Any = None) -> int | None:
    """The depth at which scalars are; None where there are none.

    Raises:
        ValueError: they are at several depths.
    """
    if not _is_list(x):
        return 0
    depths = {d for d in [_scalar_depth(item, x) for item in x] if d is not None}
    if len(depths) > 1:
        raise ValueError("all scalar values must have the same nesting depth")
    return 1 + depths.pop() if depths else None


def _inner_shape(level: Any) -> tuple[int, ...]:
    """The shape of the items of a list, by its first one."""
    shape: list[int] = []
    item: Any = level[0] if len(level) else None
    while _is_list(item):
        shape.append(len(item))
        item = item[0] if len(item) else None
    return tuple(shape)
