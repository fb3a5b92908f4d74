"""Images changed at random: by the global stream, or by a seed alone (`stateless_`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import twofold as tf
from twofold._front.api import parts, public
from twofold._ops.random_draws import seed_number

from ._colour import adjust_brightness, adjust_contrast, adjust_hue, adjust_saturation
from ._common import images_of, is_number, require
from ._parts import flip_left_right, flip_up_down

__all__ = ["random_brightness", "random_contrast", "random_crop", "random_flip_left_right", "random_flip_up_down",
           "random_hue", "random_saturation", "stateless_random_brightness", "stateless_random_contrast",
           "stateless_random_crop", "stateless_random_flip_left_right", "stateless_random_flip_up_down",
           "stateless_random_hue", "stateless_random_saturation"]

_Draw = Callable[..., Any]  # of a shape, and bounds


def _by_stream(seed: Any, change: Callable[[_Draw], Any]) -> Any:
    """`change` with draws from the stream of a seed."""
    number = seed_number(seed)

    def draw(shape: Any, low: Any, high: Any, dtype: Any = tf.float32) -> Any:
        return tf.random.uniform(shape, low, high, dtype, number)
    return change(draw)


def _of_seed(seed: Any) -> _Draw:
    def draw(shape: Any, low: Any, high: Any, dtype: Any = tf.float32) -> Any:
        return tf.random.stateless_uniform(shape, seed, low, high, dtype)
    return draw


# -- flips ---------------------------------------------------------------------------------------------
def _flipped(image: Any, flip: Callable[[Any], Any], draw: _Draw, what: str) -> Any:
    x = images_of(image, what)
    if x.shape.rank == 3:
        return tf.where(draw([], 0.0, 1.0) < 0.5, flip(x), x)
    chosen = draw([tf.shape(x)[0]], 0.0, 1.0) > 0.5  # for one image it is the other half, as in TensorFlow
    return tf.where(tf.reshape(chosen, [-1] + [1] * (x.shape.rank - 1)), flip(x), x)


@public
def random_flip_left_right(image: Any, seed: Any = None) -> Any:
    """Images, each with left and right exchanged or not, with equal chances.

    Args:
        image: [height, width, channels] or [batch, height, width, channels].
        seed: see `tf.random.set_seed`.
    """
    return _by_stream(seed, lambda draw: _flipped(image, flip_left_right, draw, "random_flip_left_right"))


@public
def random_flip_up_down(image: Any, seed: Any = None) -> Any:
    """Images, each with top and bottom exchanged or not, with equal chances; see `random_flip_left_right`."""
    return _by_stream(seed, lambda draw: _flipped(image, flip_up_down, draw, "random_flip_up_down"))


@public
def stateless_random_flip_left_right(image: Any, seed: Any) -> Any:
    """`random_flip_left_right`, by a seed alone.

    Args:
        image: as there.
        seed: two integers.
    """
    return _flipped(image, flip_left_right, _of_seed(seed), "stateless_random_flip_left_right")


@public
def stateless_random_flip_up_down(image: Any, seed: Any) -> Any:
    """`random_flip_up_down`, by a seed alone; see `stateless_random_flip_left_right`."""
    return _flipped(image, flip_up_down, _of_seed(seed), "stateless_random_flip_up_down")


# -- parts ---------------------------------------------------------------------------------------------
def _cropped(value: Any, size: Any, draw: _Draw) -> Any:
    x = tf.convert_to_tensor(value)
    have = x.shape.as_list()
    wanted = [n if is_number(n) else tf.cast(n, tf.int32) for n in parts(size, "size")]
    if len(wanted) != len(have):
        raise ValueError(f"size must have {len(have)} elements, one for each axis; got {len(wanted)}.")
    free = []
    for axis, (own, length) in enumerate(zip(have, wanted, strict=True)):
        own = tf.shape(x)[axis] if own is None else own
        require(length >= 0, f"random_crop: size must not be negative, along axis {axis}.")
        require(own >= length, f"random_crop: Need value.shape >= size, along axis {axis}.")
        free.append(own - length + 1)
    offset = tf.cast(draw([len(have)], 0, 2 ** 31 - 1, tf.int32), tf.int32) % tf.stack(free)
    return tf.slice(x, offset, wanted)


@public
def random_crop(value: Any, size: Any, seed: Any = None, name: str | None = None) -> Any:
    """A part of a tensor from a place drawn at random.

    Args:
        value: of any rank.
        size: of the part, for each axis.
        seed: see `tf.random.set_seed`.
        name: accepted, without effect.
    Raises:
        ValueError: the part is larger.

    >>> import twofold as tf
    >>> tf.image.random_crop(tf.zeros([5, 5, 3]), [2, 4, 3]).shape
    TensorShape([2, 4, 3])
    """
    return _by_stream(seed, lambda draw: _cropped(value, size, draw))


@public
def stateless_random_crop(value: Any, size: Any, seed: Any, name: str | None = None) -> Any:
    """`random_crop`, by a seed alone.

    Args:
        value, size, name: as there.
        seed: two integers.
        name: has no effect.
    Raises:
        ValueError: the part is larger.
    """
    return _cropped(value, size, _of_seed(seed))


# -- colours -------------------------------------------------------------------------------------------
def _check(low: Any, high: Any) -> None:
    if high <= low:
        raise ValueError("upper must be > lower.")
    if low < 0:
        raise ValueError("lower must be non-negative.")


def _delta(most: Any, bound: float | None = None) -> Any:
    if most < 0:
        raise ValueError("max_delta must be non-negative.")
    if bound is not None and most > bound:
        raise ValueError(f"max_delta must be <= {bound}.")
    return most


@public
def random_brightness(image: Any, max_delta: Any, seed: Any = None) -> Any:
    """`adjust_brightness` by a number drawn from [-max_delta, max_delta).

    Raises:
        ValueError: `max_delta` is negative.
    """
    most = _delta(max_delta)
    return _by_stream(seed, lambda draw: adjust_brightness(image, draw([], -most, most)))


@public
def stateless_random_brightness(image: Any, max_delta: Any, seed: Any) -> Any:
    """`random_brightness`, by a seed of two integers alone."""
    most = _delta(max_delta)
    return adjust_brightness(image, _of_seed(seed)([], -most, most))


@public
def random_contrast(image: Any, lower: Any, upper: Any, seed: Any = None) -> Any:
    """`adjust_contrast` by a number drawn from [lower, upper).

    Raises:
        ValueError: the bounds are negative, or not in order.
    """
    _check(lower, upper)
    return _by_stream(seed, lambda draw: adjust_contrast(image, draw([], lower, upper)))


@public
def stateless_random_contrast(image: Any, lower: Any, upper: Any, seed: Any) -> Any:
    """`random_contrast`, by a seed of two integers alone."""
    _check(lower, upper)
    return adjust_contrast(image, _of_seed(seed)([], lower, upper))


@public
def random_hue(image: Any, max_delta: Any, seed: Any = None) -> Any:
    """`adjust_hue` by a number drawn from [-max_delta, max_delta).

    Raises:
        ValueError: `max_delta` is not in [0, 0.5].
    """
    most = _delta(max_delta, 0.5)
    return _by_stream(seed, lambda draw: adjust_hue(image, draw([], -most, most)))


@public
def stateless_random_hue(image: Any, max_delta: Any, seed: Any) -> Any:
    """`random_hue`, by a seed of two integers alone."""
    most = _delta(max_delta, 0.5)
    return adjust_hue(image, _of_seed(seed)([], -most, most))


@public
def random_saturation(image: Any, lower: Any, upper: Any, seed: Any = None) -> Any:
    """`adjust_saturation` by a number drawn from [lower, upper).

    Raises:
        ValueError: the bounds are negative, or not in order.
    """
    _check(lower, upper)
    return _by_stream(seed, lambda draw: adjust_saturation(image, draw([], lower, upper)))


@public
def stateless_random_saturation(image: Any, lower: Any, upper: Any, seed: Any) -> Any:
    """`random_saturation`, by a seed of two integers alone."""
    _check(lower, upper)
    return adjust_saturation(image, _of_seed(seed)([], lower, upper))
