"""Images as files: what `tf.io` and `tf.image` encode, and images as they look after that.

The formats are `png.py`'s and `jpeg.py`'s; all of it runs as calls of Python on the host, also inside of graphs.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._front import iteration as engine
from .._front.api import public
from .._front.hosted import hosted
from . import jpeg as _jpeg
from . import png as _png
from .image_files import check_jpeg, decode_jpeg, wrong

__all__ = ["adjust_jpeg_quality", "encode_jpeg", "encode_png", "random_jpeg_quality", "stateless_random_jpeg_quality"]


@public
@hosted
def encode_png(image: Any, compression: int = -1, name: str | None = None) -> Any:
    """Images as the bytes of PNG files.

    Args:
        image: a uint8 or uint16 tensor [..., height, width, channels]; one channel is grey, two are grey and alpha,
            three RGB, four RGB and alpha.
        compression: 0 (quick) to 9 (small); -1 for the usual one.
        name: accepted, without effect.
    Returns:
        A string tensor [...].
    Raises:
        InvalidArgumentError: it is of another dtype or rank, has another number of channels or no pixels, or
            `compression` is out of range.

    >>> import twofold as tf
    >>> tf.io.encode_png(tf.zeros([2, 3, 3], tf.uint8)).numpy()[:4]
    b'\\x89PNG'
    """
    del name
    from twofold.ir import dtypes as dt
    from twofold.ir.spec import TensorSpec

    from .._front.api import tensor
    given, level = tensor(image), int(compression)
    if given.dtype not in (dt.uint8, dt.uint16):
        raise wrong("encode_png", f"image must be uint8 or uint16; got {given.dtype.name}")
    if not -1 <= level <= 9:
        raise wrong("encode_png", f"compression must be in -1..9; got {level}")
    rank = given.shape.rank
    if rank is not None and rank < 3:
        raise wrong("encode_png", f"image must be [..., height, width, channels]; got shape "
                                                       f"{given.shape}")

    def encode(value: Any) -> list[Any]:
        pixels = engine.array_of(value)
        images = pixels.reshape(math.prod(pixels.shape[:-3]), *pixels.shape[-3:])
        try:
            files = [_png.encode(each, level) for each in images]
        except ValueError as e:
            raise wrong("encode_png", str(e)) from None
        array = np.empty(len(files), object)
        array[:] = files
        return [engine.tensor_of(array.reshape(pixels.shape[:-3]))]

    spec = TensorSpec(None if rank is None else given.shape[:-3], dt.string)
    return engine.host_call(encode, "encode_png", [given], [spec])[0]


@public
@hosted
def encode_jpeg(image: Any, format: str = "", quality: int = 95, progressive: bool = False, optimize_size: bool = False,
                chroma_downsampling: bool = True, density_unit: str = "in", x_density: int = 300, y_density: int = 300,
                xmp_metadata: Any = "", name: str | None = None) -> Any:
    """An image as the bytes of a JPEG file.

    Args:
        image: a uint8 tensor [height, width, channels].
        format: "grayscale" for one channel, "rgb" for three, "" for either.
        quality: 0 (small) to 100 (good).
        progressive: whether the file shows the image coarsely first.
        optimize_size: whether more time is taken for a smaller file.
        chroma_downsampling: whether colours are kept at half the resolution.
        density_unit: "in" or "cm", of which `x_density` and `y_density` tell the pixels.
        x_density, y_density: numbers for whoever prints the image.
        xmp_metadata: text that the file carries.
        name: accepted, without effect.
    Returns:
        A string scalar.
    Raises:
        InvalidArgumentError: the image is of another dtype, rank or number of channels, has no pixels or too many, or
            an argument is wrong. ImportError: Pillow is not there.

    >>> import twofold as tf
    >>> file = tf.io.encode_jpeg(tf.zeros([16, 16, 3], tf.uint8), quality=90)
    >>> tf.io.decode_jpeg(file).shape
    TensorShape([16, 16, 3])
    """
    del name
    formats = {"": (1, 3), "grayscale": (1,), "rgb": (3,)}
    if format not in formats:
        raise wrong("encode_jpeg", f"format must be '', 'grayscale' or 'rgb'; got {format!r}")
    if not 0 <= quality <= 100:
        raise wrong("encode_jpeg", f"quality must be in [0, 100]; got {quality}")
    if density_unit not in ("in", "cm"):
        raise wrong("encode_jpeg", f"density_unit must be 'in' or 'cm'; got {density_unit!r}")
    xmp = xmp_metadata if isinstance(xmp_metadata, bytes) else str(xmp_metadata).encode()
    if not (0 < x_density < 1 << 16 and 0 < y_density < 1 << 16) or len(xmp) > 65504:
        raise wrong("encode_jpeg", "a file has room for densities up to 65535 and 65504 bytes of metadata; got "
                                    f"{x_density}, {y_density} and {len(xmp)}")
    settings = (bool(progressive), bool(optimize_size), bool(chroma_downsampling), density_unit,
                (int(x_density), int(y_density)), xmp)
    return _as_jpeg("encode_jpeg", image, int(quality), formats[format], settings)


def _as_jpeg(op: str, image: Any, quality: Any, channels: tuple[int, ...] = (1, 3),
             settings: tuple[Any, ...] = (False, False, True, "in", (300, 300), b"")) -> Any:
    """A JPEG file of an image; see `encode_jpeg`."""
    from twofold.ir import dtypes as dt
    from twofold.ir.spec import TensorSpec

    from .._front.api import tensor
    given = tensor(image, hint=dt.uint8)
    if given.dtype != dt.uint8:
        raise wrong(op, f"image must be uint8; got {given.dtype.name}")
    if given.shape.rank not in (None, 3):
        raise wrong(op, f"image must be [height, width, channels]; got shape {given.shape}")
    quality = tensor(quality, hint=dt.int32)
    if not quality.dtype.is_integer or quality.shape.rank not in (None, 0):
        raise wrong(op, f"quality must be an integer; got {quality.dtype.name} of shape {quality.shape}")

    def encode(value: Any, wanted: Any) -> list[Any]:
        pixels, number = engine.array_of(value), int(engine.array_of(wanted))
        if pixels.ndim != 3 or pixels.shape[2] not in channels or not pixels.size or max(pixels.shape) > 65500:
            raise wrong(op, "image must be [height, width, channels] with 1 to 65500 rows and columns, and "
                             f"{' or '.join(map(str, channels))} channels; got shape {list(pixels.shape)}")
        if not 0 <= number <= 100:
            raise wrong(op, f"quality must be in [0, 100]; got {number}")
        made = np.empty((), object)
        made[()] = _jpeg.encode(pixels, number, *settings)
        return [engine.tensor_of(made)]
    return engine.host_call(encode, op, [given, quality], [TensorSpec((), dt.string)])[0]


@hosted
def jpeg_of_quality(image: Any, quality: Any) -> Any:
    """A JPEG file of an image, of a quality that may be a tensor."""
    return _as_jpeg("adjust_jpeg_quality", image, quality)


@public
def adjust_jpeg_quality(image: Any, jpeg_quality: Any, dct_method: str = "", name: str | None = None) -> Any:
    """An image as it looks after it was kept as a JPEG file.

    Args:
        image: [height, width, 1 or 3] of a float dtype, with values in [0, 1], or of an integer one.
        jpeg_quality: a number or scalar, 0 to 100.
        dct_method: "", "INTEGER_FAST" or "INTEGER_ACCURATE", without effect.
        name: accepted, without effect.
    Returns:
        A tensor of the image's shape and dtype.
    Raises:
        InvalidArgumentError: the image or the quality is wrong. ImportError: Pillow is not there.

    >>> import twofold as tf
    >>> image = tf.random.uniform([8, 8, 3], seed=1)
    >>> float(tf.reduce_max(tf.abs(tf.image.adjust_jpeg_quality(image, 5) - image))) > 0.2
    True
    """
    del name
    import twofold as tf
    check_jpeg("adjust_jpeg_quality", 1, True, dct_method)
    given = tf.convert_to_tensor(image)
    bytes_ = tf.image.convert_image_dtype(given, tf.uint8, saturate=True)
    decoded = decode_jpeg(jpeg_of_quality(bytes_, jpeg_quality))
    decoded.set_shape(given.shape)
    return tf.image.convert_image_dtype(decoded, given.dtype, saturate=True)


@public
def random_jpeg_quality(image: Any, min_jpeg_quality: int, max_jpeg_quality: int, seed: int | None = None) -> Any:
    """An image as it looks after it was kept as a JPEG file of random quality.

    Args:
        image: as for `adjust_jpeg_quality`.
        min_jpeg_quality, max_jpeg_quality: 0 to 100; the second is not reached.
        seed: an integer, see `tf.random.set_seed`.
    Returns:
        A tensor of the image's shape and dtype.
    Raises:
        ValueError: the bounds are not in order or not in range.

    >>> import twofold as tf
    >>> tf.image.random_jpeg_quality(tf.zeros([8, 8, 3]), 40, 90).shape
    TensorShape([8, 8, 3])
    """
    import twofold as tf
    _check_qualities(min_jpeg_quality, max_jpeg_quality)
    quality = tf.random.uniform([], min_jpeg_quality, max_jpeg_quality, tf.int32, seed)
    return adjust_jpeg_quality(image, quality)


@public
def stateless_random_jpeg_quality(image: Any, min_jpeg_quality: int, max_jpeg_quality: int, seed: Any) -> Any:
    """`random_jpeg_quality` that draws the same number for the same seed.

    Args:
        image, min_jpeg_quality, max_jpeg_quality: as for `random_jpeg_quality`.
        seed: two integers.
    Returns:
        A tensor of the image's shape and dtype.
    Raises:
        ValueError: the bounds are not in order or not in range.

    >>> import twofold as tf
    >>> image = tf.random.uniform([8, 8, 3], seed=1)
    >>> first, second = [tf.image.stateless_random_jpeg_quality(image, 20, 90, (1, 2)) for _ in range(2)]
    >>> bool(tf.reduce_all(first == second))
    True
    """
    import twofold as tf
    _check_qualities(min_jpeg_quality, max_jpeg_quality)
    quality = tf.random.stateless_uniform([], seed, min_jpeg_quality, max_jpeg_quality, tf.int32)
    return adjust_jpeg_quality(image, quality)


def _check_qualities(low: int, high: int) -> None:
    if not 0 <= low <= 100 or not 0 <= high <= 100:
        raise ValueError("jpeg encoding range must be between 0 and 100.")
    if low >= high:
        raise ValueError("`min_jpeg_quality` must be less than `max_jpeg_quality`.")
