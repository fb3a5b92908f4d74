"""What functions of images share: batches, and sizes that may be known or not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import twofold as tf
from twofold._front.api import one_part
from twofold._ops.array_creation import as_scalar
from twofold.tracer.checks import check

__all__ = ["batched", "images_of", "is_number", "pixels", "require", "sized", "sizes_of"]


def images_of(images: Any, what: str, least: int = 3) -> Any:
    """`images` as a tensor of a rank that images have.

    Raises:
        ValueError: it has another rank.
    """
    x = tf.convert_to_tensor(images)
    rank = x.shape.rank
    if rank is None or rank < least:
        raise ValueError(f"{what}: images must have at least {least} dimensions; got shape {x.shape}")
    return x


def batched(images: Any, what: str, fn: Callable[[Any], Any]) -> Any:
    """What `fn` gives for a batch, for a batch or a single image.

    Raises:
        ValueError: the rank is neither 3 nor 4.
    """
    x = images_of(images, what)
    if x.shape.rank == 3:
        return fn(x[tf.newaxis])[0]
    if x.shape.rank != 4:
        raise ValueError(f"{what}: images must be [height, width, channels] or [batch, height, width, channels]; got "
                         f"shape {x.shape}")
    return fn(x)


def sizes_of(x: Any, first: int) -> tuple[Any, Any]:
    """The sizes of two axes: numbers where they are known, else int32 scalars."""
    shape = x.shape.as_list()
    sizes = [shape[axis] if shape[axis] is not None else tf.shape(x)[axis] for axis in (first, first + 1)]
    return sizes[0], sizes[1]


def is_number(*values: Any) -> bool:
    """Whether all are numbers, and no tensors."""
    return all(isinstance(v, (int, np.integer)) for v in values)


def pixels(value: Any, what: str, least: int = 0) -> Any:
    """A whole number of pixels: a number where it is known, else an int32 scalar, tested when the function runs.

    Raises:
        TypeError: it is no integer. tf.errors.InvalidArgumentError: there is not one, or it is below `least`.
    """
    part = one_part(value, what)
    if not is_number(part):
        part = tf.cast(as_scalar(part), tf.int32)
    require(part >= least, f"{what} must be {f'>= {least}' if least != 1 else '> 0'}.")
    return part


def require(holds: Any, text: str) -> None:
    """An InvalidArgumentError unless `holds`, which may be a tensor: where it is traced, when the function runs."""
    check(holds, text, [])


def sized(x: Any, height: Any, width: Any) -> Any:
    """A batch that tells its height and width, where they are numbers; in a graph they are tested when it runs."""
    if None not in x.shape.as_list()[1:3]:
        return x
    return tf.ensure_shape(x, [None, *[n if is_number(n) else None for n in (height, width)], None])
