"""Boxes drawn into images, parts of images around given places, and boxes to cut images by at random."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

import twofold as tf
from twofold._front import iteration as engine
from twofold._front.api import ints, public
from twofold._front.hosted import hosted

from ._common import images_of

__all__ = ["distorted_box", "draw_bounding_boxes", "extract_glimpse", "sample_distorted_bounding_box",
           "stateless_sample_distorted_bounding_box"]

# what TensorFlow draws with: yellow, blue, red, lime, purple, olive, maroon, navy, aqua, fuchsia
_COLOURS = np.array([[1, 1, 0, 1], [0, 0, 1, 1], [1, 0, 0, 1], [0, 1, 0, 1], [0.5, 0, 0.5, 1], [0.5, 0.5, 0, 1],
                     [0.5, 0, 0, 1], [0, 0, 0.5, 1], [0, 1, 1, 1], [1, 0, 1, 1]], np.float32)


@public
def draw_bounding_boxes(images: Any, boxes: Any, colors: Any, name: str | None = None) -> Any:
    """Images with the edges of boxes drawn into them, later ones over earlier ones.

    Args:
        images: floats [batch, height, width, channels].
        boxes: floats [batch, boxes, 4]: top, left, bottom and right, where 0 is the first pixel and 1 the last.
        colors: floats [colours, channels] that are taken in turn; None for ten of TensorFlow's.
        name: accepted, without effect.
    Returns:
        Tensor like `images`.
    Raises:
        ValueError: a rank is another one.

    >>> import twofold as tf
    >>> tf.image.draw_bounding_boxes(tf.zeros([1, 3, 3, 1]), [[[0.0, 0.0, 1.0, 1.0]]], [[1.0]])[0, :, :, 0].numpy()
    array([[1., 1., 1.],
           [1., 0., 1.],
           [1., 1., 1.]], dtype=float32)
    """
    x, boxes = images_of(images, "draw_bounding_boxes", 4), tf.cast(boxes, tf.float32)
    if boxes.shape.rank != 3:
        raise ValueError(f"draw_bounding_boxes: boxes must be [batch, boxes, 4]; got shape {boxes.shape}.")
    count, channels = tf.shape(boxes)[1], x.shape[-1]
    height, width = tf.shape(x)[1], tf.shape(x)[2]
    rows, inside_rows, row_edges = _lines(boxes[..., 0], boxes[..., 2], height)
    columns, inside_columns, column_edges = _lines(boxes[..., 1], boxes[..., 3], width)
    drawn = tf.logical_and(rows, columns)[:, :, tf.newaxis, tf.newaxis]
    edge = tf.logical_or(tf.logical_and(row_edges[..., tf.newaxis], inside_columns[:, :, tf.newaxis, :]),
                         tf.logical_and(inside_rows[..., tf.newaxis], column_edges[:, :, tf.newaxis, :]))
    edge = tf.logical_and(edge, drawn)
    last = count - 1 - tf.argmax(tf.cast(edge[:, ::-1], tf.int32), axis=1, output_type=tf.int32)
    palette = _palette(colors, channels, x.dtype)
    colour = tf.gather(palette, last % tf.shape(palette)[0])
    return tf.where(tf.reduce_any(edge, axis=1)[..., tf.newaxis], colour, x)


def _lines(begin: Any, end: Any, size: Any) -> tuple[Any, Any, Any]:
    """Along one axis: whether a box is to be seen, the pixels in it, and those at its ends."""
    low, high = (tf.cast(v * tf.cast(size - 1, tf.float32), tf.int32) for v in (begin, end))
    there = tf.logical_and(tf.logical_and(low <= high, high >= 0), low < size)
    pixels, low, high = tf.range(size), low[..., tf.newaxis], high[..., tf.newaxis]
    return (there, tf.logical_and(pixels >= low, pixels <= high),
            tf.logical_or(tf.equal(pixels, low), tf.equal(pixels, high)))


def _palette(colors: Any, channels: Any, dtype: Any) -> Any:
    if colors is None:
        table = np.ones((1, 1), np.float32) if channels == 1 else _COLOURS[:, :channels]
        return tf.constant(table, dtype)
    return tf.cast(colors, dtype)[:, :channels]


@public
def extract_glimpse(input: Any, size: Any, offsets: Any, centered: bool = True, normalized: bool = True,
                    noise: str = "uniform", name: str | None = None) -> Any:
    """Parts of one size around a place in each image; what is outside of the image is noise.

    Args:
        input: floats [batch, height, width, channels].
        size: height and width of the parts.
        offsets: floats [batch, 2]: y and x of the part's middle, where the image is from -1 to 1; else of its first
            pixel, from the image's middle if `centered`, and from its first pixel if not.
        centered: see `offsets`.
        normalized: whether offsets are parts of the image's size, not pixels.
        noise: "uniform", "gaussian" or "zero".
        name: accepted, without effect.
    Returns:
        floats [batch, height, width, channels] of that size.
    Raises:
        ValueError: another noise or rank.

    >>> import twofold as tf
    >>> x = tf.reshape(tf.range(9.0), [1, 3, 3, 1])
    >>> part = tf.image.extract_glimpse(x, [2, 2], [[1, 1]], centered=False, normalized=False, noise="zero")
    >>> part[0, :, :, 0].numpy().tolist()
    [[4.0, 5.0], [7.0, 8.0]]
    """
    if noise not in ("uniform", "gaussian", "zero"):
        raise ValueError(f"extract_glimpse: noise must be 'uniform', 'gaussian' or 'zero'; got {noise!r}.")
    x, places = images_of(input, "extract_glimpse", 4), tf.cast(offsets, tf.float32)
    height, width = ints(size, "size")
    rows = _pixels(places[:, 0], tf.shape(x)[1], height, centered, normalized)
    columns = _pixels(places[:, 1], tf.shape(x)[2], width, centered, normalized)
    inside = tf.logical_and(_within(rows, tf.shape(x)[1])[:, :, tf.newaxis],
                            _within(columns, tf.shape(x)[2])[:, tf.newaxis, :])
    y = tf.gather(x, tf.clip_by_value(rows, 0, tf.shape(x)[1] - 1), axis=1, batch_dims=1)
    y = tf.gather(tf.transpose(y, [0, 2, 1, 3]), tf.clip_by_value(columns, 0, tf.shape(x)[2] - 1), axis=1, batch_dims=1)
    y = tf.transpose(y, [0, 2, 1, 3])
    filled = {"zero": tf.zeros_like, "uniform": lambda v: tf.random.uniform(tf.shape(v), dtype=v.dtype),
              "gaussian": lambda v: tf.random.normal(tf.shape(v), dtype=v.dtype)}[noise](y)
    return tf.where(inside[..., tf.newaxis], y, filled)


def _pixels(offset: Any, size: Any, count: Any, centered: bool, normalized: bool) -> Any:
    """The numbers of the pixels along an axis, [batch, count]."""
    whole = tf.cast(size, tf.float32)
    at = offset * whole if normalized else offset
    if centered and normalized:
        at = at / 2.0 + whole / 2.0 - float(count) / 2.0
    elif centered:
        at = at + whole / 2.0
    return tf.cast(at, tf.int32)[:, tf.newaxis] + tf.range(count)


def _within(pixels: Any, size: Any) -> Any:
    return tf.logical_and(pixels >= 0, pixels < size)


# -- random boxes ---------------------------------------------------------------------------------------
class DistortedBox(NamedTuple):
    """A box to cut an image by: begin and size for `tf.slice`, and the box itself."""

    begin: Any
    size: Any
    bboxes: Any


@public
def sample_distorted_bounding_box(image_size: Any, bounding_boxes: Any, seed: Any = 0, min_object_covered: Any = 0.1,
                                  aspect_ratio_range: Any = None, area_range: Any = None, max_attempts: Any = None,
                                  use_image_if_no_bounding_boxes: Any = None, name: str | None = None) -> DistortedBox:
    """A random box that covers enough of one of the given boxes: the whole image where none is found.

    Args:
        image_size: integers [3]: height, width and channels.
        bounding_boxes: floats [batch, boxes, 4]: top, left, bottom and right, as parts of the image.
        seed: of the op; 0 for none.
        min_object_covered: how much of a box must be in the result.
        aspect_ratio_range: of its width to its height; by default 0.75 to 1.33.
        area_range: of its area to the image's; by default 0.05 to 1.
        max_attempts: how often it is tried; by default 100.
        use_image_if_no_bounding_boxes: whether the image stands for a box where there is none.
        name: accepted, without effect.
    Returns:
        `(begin, size, bboxes)`: two tensors [3] like `image_size` for `tf.slice`, and the box, float32 [1, 1, 4].
    Raises:
        ValueError: a range is none. tf.errors.InvalidArgumentError: there is no box.

    >>> import twofold as tf
    >>> begin, size, box = tf.image.sample_distorted_bounding_box([8, 8, 3], [[[0.0, 0.0, 1.0, 1.0]]])
    >>> tf.slice(tf.zeros([8, 8, 3]), begin, size).shape.rank
    3
    """
    drawn = tf.random.uniform([2], 0, 2**31 - 1, tf.int64, seed=seed or None)
    return _distorted("sample_distorted_bounding_box", image_size, bounding_boxes, drawn, min_object_covered,
                      aspect_ratio_range, area_range, max_attempts, use_image_if_no_bounding_boxes)


@public
def stateless_sample_distorted_bounding_box(image_size: Any, bounding_boxes: Any, seed: Any,
                                            min_object_covered: Any = 0.1, aspect_ratio_range: Any = None,
                                            area_range: Any = None, max_attempts: Any = None,
                                            use_image_if_no_bounding_boxes: Any = None,
                                            name: str | None = None) -> DistortedBox:
    """`tf.image.sample_distorted_bounding_box` that depends on nothing but its arguments.

    Args:
        image_size: integers [3]: height, width and channels.
        bounding_boxes: floats [batch, boxes, 4]: top, left, bottom and right, as parts of the image.
        seed: integers [2].
        min_object_covered: how much of a box must be in the result.
        aspect_ratio_range: of its width to its height; by default 0.75 to 1.33.
        area_range: of its area to the image's; by default 0.05 to 1.
        max_attempts: how often it is tried; by default 100.
        use_image_if_no_bounding_boxes: whether the image stands for a box where there is none.
        name: accepted, without effect.
    Returns:
        `(begin, size, bboxes)`: two tensors [3] like `image_size` for `tf.slice`, and the box, float32 [1, 1, 4].
    Raises:
        ValueError: a range is none. tf.errors.InvalidArgumentError: there is no box.

    >>> import twofold as tf
    >>> box = [[[0.0, 0.0, 1.0, 1.0]]]
    >>> begin, size, _ = tf.image.stateless_sample_distorted_bounding_box([8, 8, 3], box, [1, 2])
    >>> begin.shape, int(size[2])
    (TensorShape([3]), -1)
    """
    seed = tf.cast(seed, tf.int64)
    if not seed.shape.is_compatible_with([2]):
        raise ValueError(f"stateless_sample_distorted_bounding_box: seed must have shape [2]; got {seed.shape}.")
    return _distorted("stateless_sample_distorted_bounding_box", image_size, bounding_boxes, seed, min_object_covered,
                      aspect_ratio_range, area_range, max_attempts, use_image_if_no_bounding_boxes)


def _distorted(op: str, image_size: Any, boxes: Any, seed: Any, covered: Any, aspects: Any, areas: Any, attempts: Any,
               whole: Any) -> DistortedBox:
    aspects = [float(v) for v in ((0.75, 1.33) if aspects is None else aspects)]
    areas = [float(v) for v in ((0.05, 1.0) if areas is None else areas)]
    for values, what in ((aspects, "aspect_ratio_range"), (areas, "area_range")):
        if len(values) != 2 or not 0 < values[0] <= values[1]:
            raise ValueError(f"{op}: {what} must be two numbers above 0 that do not fall; got {values}.")
    size = tf.convert_to_tensor(image_size)
    return DistortedBox(*distorted_box(size, tf.cast(boxes, tf.float32), seed, tf.cast(covered, tf.float32), aspects,
                                       areas, 100 if attempts is None else int(attempts), bool(whole)))


@hosted
def distorted_box(image_size: Any, boxes: Any, seed: Any, covered: Any, aspects: Sequence[float],
                  areas: Sequence[float], attempts: int, whole: bool) -> Any:
    """`sample_distorted_bounding_box` of tensors."""
    def distorted(*tensors: Any) -> list[Any]:
        size, given, numbers, share = [engine.array_of(t) for t in tensors]
        targets = given.reshape(-1, 4)
        if not len(targets):
            if not whole:
                raise tf.errors.InvalidArgumentError(None, None, "sample_distorted_bounding_box: No bounding boxes "
                                                     "provided as input. One must enable "
                                                     "use_image_if_no_bounding_boxes if you wish to not provide any.")
            targets = np.array([[0, 0, 1, 1]], np.float32)
        rng = np.random.default_rng([int(n) & 0xFFFFFFFF for n in numbers])
        height, width = int(size[0]), int(size[1])
        top, left, tall, wide = _random_box(rng, (height, width), targets, float(share), aspects, areas, attempts)
        box = np.array([top / height, left / width, (top + tall) / height, (left + wide) / width], np.float32)
        return [engine.tensor_of(np.array(v, size.dtype)) for v in ((top, left, 0), (tall, wide, -1))] + [
            engine.tensor_of(box.reshape(1, 1, 4))]
    return engine.host_call(distorted, "sample_distorted_bounding_box", [image_size, boxes, seed, covered],
                            [tf.TensorSpec([3], image_size.dtype), tf.TensorSpec([3], image_size.dtype),
                             tf.TensorSpec([1, 1, 4], tf.float32)])


def _random_box(rng: np.random.Generator, size: tuple[int, int], boxes: np.ndarray, share: float,
                aspects: Sequence[float], areas: Sequence[float], attempts: int) -> tuple[int, int, int, int]:
    """Top, left, height and width."""
    height, width = size
    pixels = boxes * np.array([height, width, height, width])
    for _ in range(attempts):
        aspect = rng.uniform(aspects[0], aspects[1])
        low, high = (math.sqrt(a * height * width / aspect) for a in areas)
        most = int(min(round(high), height, (width + 0.5) / aspect))
        least = min(round(low), most)
        tall = int(rng.integers(least, most + 1))
        wide = round(tall * aspect)
        if not (0 < tall <= height and 0 < wide <= width and
                areas[0] * height * width <= tall * wide <= areas[1] * height * width):
            continue
        top, left = int(rng.integers(0, height - tall + 1)), int(rng.integers(0, width - wide + 1))
        shared = np.prod(np.maximum(np.minimum(pixels[:, 2:], [top + tall, left + wide])
                                    - np.maximum(pixels[:, :2], [top, left]), 0), axis=1)
        if np.any(shared >= share * np.prod(pixels[:, 2:] - pixels[:, :2], axis=1)):
            return top, left, tall, wide
    return 0, 0, height, width
