"""Elements in another order, and where they are: reverse_sequence, unravel_index, and their like."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twofold._front.api import listed, public, tensor
from twofold._front.convert import cast, identity
from twofold._ops.array_creation import range as range_
from twofold._ops.array_indexing import gather_nd, where
from twofold._ops.array_joining import stack
from twofold._ops.array_shape import one_axis, reshape, shape, transpose
from twofold._ops.math_comparison import logical_and
from twofold._ops.math_reductions import reduce_all, reduce_prod
from twofold.ir import dtypes as dt
from twofold.ir.errors import InvalidArgumentError
from twofold.tracer.checks import check

__all__ = ["identity_n", "required_space_to_batch_paddings", "reverse_sequence", "unravel_index"]


@public
def reverse_sequence(input: Any, seq_lengths: Any, seq_axis: Any = None, batch_axis: Any = None,
                     name: str | None = None) -> Any:
    """The beginnings of sequences, each of a length of its own, turned around.

    Args:
        input: a tensor.
        seq_lengths: integers [batch]: how many elements of each sequence are turned around.
        seq_axis: the axis of the sequences.
        batch_axis: the axis over the sequences; 0 by default.
        name: has no effect.
    Returns:
        A tensor like `input`.
    Raises:
        ValueError: there is no such axis, or both are one.
        tf.errors.InvalidArgumentError: a length is negative, or longer than the sequences.

    >>> import twofold as tf
    >>> tf.reverse_sequence([[1, 2, 3, 0], [4, 5, 6, 7]], [3, 2], seq_axis=1).numpy().tolist()
    [[3, 2, 1, 0], [5, 4, 6, 7]]
    """
    x, lengths = tensor(input), cast(tensor(seq_lengths), dt.int32)
    if seq_axis is None:
        raise ValueError("reverse_sequence: seq_axis must be given")
    rank = len(x.dims)
    along, over = one_axis(seq_axis, rank), one_axis(0 if batch_axis is None else batch_axis, rank)
    if along == over:
        raise InvalidArgumentError(f"reverse_sequence: seq_axis and batch_axis are both {along}")
    if len(lengths.dims) != 1:
        raise InvalidArgumentError(f"reverse_sequence: seq_lengths must be a vector; got shape {lengths.shape}")
    order = [over, along, *[axis for axis in range(rank) if axis not in (over, along)]]
    turned = transpose(x, order)
    sizes = shape(turned)
    check(reduce_all(logical_and(lengths >= 0, lengths <= sizes[1])),
          "reverse_sequence: seq_lengths must be from 0 to the length of the sequences.", [lengths])
    places = range_(sizes[1])
    ends = reshape(lengths, [-1, 1])
    sources = where(places < ends, ends - 1 - places, places + 0 * ends)
    rows = reshape(range_(sizes[0]), [-1, 1]) + 0 * sources
    reversed_rows = gather_nd(turned, stack([rows, sources], axis=-1))
    back = [0] * rank
    for n, axis in enumerate(order):
        back[axis] = n
    return transpose(reversed_rows, back)


@public
def unravel_index(indices: Any, dims: Any, name: str | None = None) -> Any:
    """Flat indices as indices of several axes.

    Args:
        indices: integers, a scalar or a vector.
        dims: integers [axes]: the sizes that they are indices of.
        name: has no effect.
    Returns:
        [axes], or [axes, indices].
    Raises:
        tf.errors.InvalidArgumentError: an index is negative, or no element has it; `dims` is no vector of known length,
            or `indices` is of another rank or dtype.

    >>> import twofold as tf
    >>> tf.unravel_index([2, 5, 7], [3, 3]).numpy().tolist()
    [[0, 1, 2], [2, 2, 1]]
    """
    flat = tensor(indices)
    if not flat.dtype.is_integer or len(flat.dims) > 1:
        raise InvalidArgumentError(f"unravel_index: indices must be integers, a scalar or a vector; got "
                                   f"{flat.dtype.name}{list(flat.dims)}")
    sizes = tensor(dims, flat.dtype) if not hasattr(dims, "dims") else cast(tensor(dims), flat.dtype)
    if len(sizes.dims) != 1 or not isinstance(sizes.dims[0], int) or not sizes.dims[0]:
        raise InvalidArgumentError(f"unravel_index: dims must be a vector of known length, one size or more; got shape "
                                   f"{sizes.shape}")
    size = reduce_prod(cast(sizes, dt.int64))
    wide = cast(flat, dt.int64)
    check(reduce_all(logical_and(wide >= 0, wide < size)), "unravel_index: an index is out of bounds of dims.",
          [flat, sizes])
    count = sizes.dims[0]
    places = []
    for axis in range(count - 1, -1, -1):
        places.append(flat % sizes[axis])
        flat = flat // sizes[axis]
    return stack(places[::-1], axis=0)


@public
def identity_n(input: Sequence[Any], name: str | None = None) -> list[Any]:
    """`tf.identity` of each of several tensors.

    `name` has no effect.

    >>> import twofold as tf
    >>> [int(x) for x in tf.identity_n([1, 2])]
    [1, 2]
    """
    return [identity(x) for x in listed(input, "input")]


@public
def required_space_to_batch_paddings(input_shape: Any, block_shape: Any, base_paddings: Any = None,
                                     name: str | None = None) -> tuple[Any, Any]:
    """How much `tf.space_to_batch` has to pad, and how much of that `tf.batch_to_space` has to cut off.

    Args:
        input_shape: integers [axes].
        block_shape: integers [axes].
        base_paddings: integers [axes, 2]: what is padded at least; zeros by default.
        name: has no effect.
    Returns:
        The paddings and the crops, int32 [axes, 2].

    >>> import twofold as tf
    >>> paddings, crops = tf.required_space_to_batch_paddings([5], [3])
    >>> paddings.numpy().tolist(), crops.numpy().tolist()
    ([[0, 1]], [[0, 1]])
    """
    sizes, blocks = tensor(input_shape), tensor(block_shape)
    base = tensor([[0, 0]]) if base_paddings is None else tensor(base_paddings)
    begin, end = base[:, 0], base[:, 1]
    extra = (blocks - (sizes + begin + end) % blocks) % blocks
    return stack([begin + 0 * extra, end + extra], axis=1), stack([0 * extra, extra], axis=1)
