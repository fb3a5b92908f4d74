"""Images in files: what `tf.io` and `tf.image` decode.

PNG and BMP files are read here (`png.py`, `bmp.py`), JPEG files and the numbers of GIF's colours by Pillow
(`jpeg.py`, `gif.py`), which `pip install twofold[image]` brings. All of it runs as calls of Python on the host, also
inside of graphs. A file is known by its first bytes, so that each function reads some of the other formats, as
TensorFlow's do. What is encoded is `image_encoding.py`'s.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._front import iteration as engine
from .._front.api import public
from .._front.hosted import hosted
from . import bmp as _bmp
from . import gif as _gif
from . import jpeg as _jpeg
from . import png as _png

__all__ = ["check_jpeg", "decode_and_crop_jpeg", "decode_bmp", "decode_gif", "decode_image", "decode_jpeg",
           "decode_png", "decode_webp", "extract_jpeg_shape", "is_jpeg", "wrong"]

_KINDS = {"JPEG": _jpeg.MAGIC, "PNG": _png.MAGIC, "GIF": b"GIF8", "BMP": b"BM"}
# libpng's weights of red, green and blue in grey, of 2**15
_GREY = np.array([9797, 19234, 3737], np.uint32)


# -- arguments ------------------------------------------------------------------------------------
def wrong(op: str, said: str) -> Exception:
    """The error of an argument or a file."""
    from twofold.ir.errors import InvalidArgumentError
    return InvalidArgumentError(None, op, said)


def _given(op: str, contents: Any, channels: int, allowed: tuple[int, ...] = (0, 1, 3, 4)) -> tuple[Any, int]:
    """The contents as a tensor, and the channels; both are tested."""
    from twofold.ir import dtypes as dt

    from .._front.api import tensor
    given = tensor(contents, dt.string)
    if given.shape.rank not in (None, 0):
        raise wrong(op, f"contents must be a scalar; got shape {given.shape}")
    channels = int(channels or 0)
    if channels not in allowed:
        raise wrong(op, f"channels must be {', '.join(map(str, allowed[:-1]))} or {allowed[-1]}; got {channels}")
    return given, channels


def _read(op: str, contents: Any, dims: list[int | None] | None, dtype: Any, read: Any) -> Any:
    """What `read` makes of the bytes of a file, as an op."""
    from twofold.ir.spec import TensorSpec

    def decode(tensor: Any) -> list[Any]:
        value = engine.array_of(tensor)
        if value.ndim:
            raise wrong(op, f"contents must be a scalar; got shape {list(value.shape)}")
        try:
            return [engine.tensor_of(np.ascontiguousarray(read(value[()])))]
        except ValueError as error:
            raise wrong(op, str(error)) from None
    return engine.host_call(decode, op, [contents], [TensorSpec(dims, dtype)])[0]


# -- files as arrays ------------------------------------------------------------------------------
def _kind_of(data: bytes) -> str:
    if not data:
        raise ValueError("contents is empty")
    for kind, magic in _KINDS.items():
        if data.startswith(magic):
            return kind
    raise ValueError("this is no file of an image that is known here: JPEG, PNG, GIF or BMP")


def _pixels(op: str, data: bytes, channels: int, dtype: Any, every: bool = False) -> np.ndarray:
    """The image in a file, [height, width, channels]; for a GIF file its frames, or with `every` false its first.

    Args:
        op: the function, which decides about formats.
        data: the file.
        channels: how many are wanted; 0 for those of the file.
        dtype: np.uint8, np.uint16 or np.float32.
        every: whether all frames are wanted.
    Raises:
        ValueError: the file is damaged, or does not go with the op or the channels.
    """
    kind = _kind_of(data)
    if (kind == "BMP") != (op == "decode_bmp") and op != "decode_image":
        raise ValueError(f"a {kind} file is for decode_{kind.lower()} or decode_image")
    if kind == "PNG":
        return _of_png(_png.decode(data), channels, dtype)
    if kind == "JPEG":
        if channels == 4:
            raise ValueError("JPEG does not support 4 channels")
        pixels = _jpeg.decode(data, channels)
    elif kind == "GIF":
        if channels not in (0, 3):
            raise ValueError(f"channels must be 0 or 3 for GIF, got {channels}")
        pixels = _gif.decode(data, every or op != "decode_image")
        if not every:
            if len(pixels) > 1:
                raise ValueError(f"Got {len(pixels)} frames, but animated gifs can only be decoded by tf.io.decode_gif "
                                 "or tf.io.decode_image")
            pixels = pixels[0]
    else:
        pixels = _of_bmp(_bmp.decode(data), channels)
    if dtype == np.uint16:
        return pixels.astype(np.uint16) << 8
    return pixels * np.float32(1 / 255) if dtype == np.float32 else pixels


def _of_bmp(pixels: np.ndarray, channels: int) -> np.ndarray:
    if channels == 1:
        raise ValueError("channels must be 0, 3 or 4 for BMP, but got 1")
    have = pixels.shape[2]
    if channels and have == 1:
        pixels = np.repeat(pixels, 3, axis=2)
    if channels == 4 and have < 4:
        return np.concatenate([pixels, np.full_like(pixels[..., :1], 255)], axis=2)
    return pixels[..., :channels] if channels else pixels


def _of_png(picture: _png.Picture, channels: int, dtype: Any) -> np.ndarray:
    """A PNG file's pixels with the channels that are wanted, as libpng gives them."""
    pixels, alpha = picture.pixels, picture.alpha
    full = pixels.dtype.type(np.iinfo(pixels.dtype).max)
    if pixels.shape[2] in (2, 4):
        pixels, alpha = pixels[..., :-1], pixels[..., -1:]
    elif channels == 0 and not picture.listed:
        alpha = None
    if channels == 1 and pixels.shape[2] == 3:
        grey = pixels.astype(np.uint32) @ _GREY + (1 << 14 if full > 255 else 0) >> 15
        pixels = np.where((pixels == pixels[..., :1]).all(-1), pixels[..., 0], grey).astype(pixels.dtype)[..., None]
    elif channels >= 3 and pixels.shape[2] == 1:
        pixels = np.repeat(pixels, 3, axis=2)
    if channels == 4 and alpha is None:
        alpha = np.full_like(pixels[..., :1], full)
    if channels in (0, 4) and alpha is not None:
        pixels = np.concatenate([pixels, alpha], axis=2)
    if dtype == np.uint8:
        return pixels if full == 255 else (pixels >> 8).astype(np.uint8)
    deep = pixels if full > 255 else pixels * np.uint16(257)
    return deep if dtype == np.uint16 else deep * np.float32(1 / 65535)


# -- decoding -------------------------------------------------------------------------------------
@public
@hosted
def decode_image(contents: Any, channels: int | None = None, dtype: Any = "uint8", name: str | None = None,
                 expand_animations: bool = True) -> Any:
    """The image in a file of any of the formats: PNG, JPEG, GIF, BMP.

    Args:
        contents: a string scalar, the whole file.
        channels: 1 for grey, 3 for RGB, 4 for RGB and alpha; 0 or None for what the file has. JPEG has no 4, BMP no 1,
            GIF neither.
        dtype: of the result: an integer dtype, with values up to its largest, or a float one, with values in [0, 1].
        name: accepted, without effect.
        expand_animations: whether a GIF file gives all its frames; else the first alone.
    Returns:
        A tensor [height, width, channels], or [frames, height, width, 3] for a GIF file that is expanded. In a graph
        its rank is known where `expand_animations` is false.
    Raises:
        InvalidArgumentError: the file is damaged or of another format, or does not go with the channels.
        ImportError: the file needs Pillow, and it is not there.

    >>> import twofold as tf
    >>> file = tf.io.encode_png(tf.constant([[[0], [255]]], tf.uint8))
    >>> tf.io.decode_image(file, dtype=tf.float32)[0, :, 0].numpy().tolist()
    [0.0, 1.0]
    """
    del name
    import twofold as tf
    given, wanted = _given("decode_image", contents, channels or 0)
    kind = tf.as_dtype(dtype)
    direct = kind if kind in (tf.uint8, tf.uint16, tf.float32) else tf.uint16
    dims: list[int | None] | None = None if expand_animations else [None, None, wanted or None]
    if direct != kind and not (kind.is_floating or kind.is_integer):
        raise TypeError(f"decode_image: {kind.name} is no dtype of images")

    def read(data: bytes) -> np.ndarray:
        return _pixels("decode_image", data, wanted, direct.as_numpy_dtype, bool(expand_animations))
    if direct == kind:
        return _read("decode_image", given, dims, kind, read)

    def read_and_convert(data: bytes) -> np.ndarray:
        return np.asarray(tf.image.convert_image_dtype(tf.constant(read(data)), kind))
    return _read("decode_image", given, dims, kind, read_and_convert)


@public
@hosted
def decode_png(contents: Any, channels: int = 0, dtype: Any = "uint8", name: str | None = None) -> Any:
    """The image in a PNG file; JPEG files and GIF files of one frame are read as well.

    Args:
        contents: a string scalar, the whole file.
        channels: 1 for grey, 3 for RGB, 4 for RGB and alpha; 0 for what the file has, where 2 are grey and alpha.
        dtype: uint8 or uint16; pixels of other depths are converted.
        name: accepted, without effect.
    Returns:
        A tensor [height, width, channels].
    Raises:
        InvalidArgumentError: the file is damaged or of another format, has 2**29 pixels or more, or an argument is
            wrong.

    >>> import twofold as tf
    >>> image = tf.constant([[[10, 20, 30], [40, 50, 60]]], tf.uint8)
    >>> tf.io.decode_png(tf.io.encode_png(image), channels=1)[0, :, 0].numpy().tolist()
    [18, 48]
    """
    del name
    from twofold.ir import dtypes as dt
    given, wanted = _given("decode_png", contents, channels)
    kind = dt.as_dtype(dtype)
    if kind not in (dt.uint8, dt.uint16):
        raise wrong("decode_png", f"dtype must be uint8 or uint16; got {kind.name}")
    return _read("decode_png", given, [None, None, wanted or None], kind,
                 lambda data: _pixels("decode_png", data, wanted, kind.np))


@public
@hosted
def decode_bmp(contents: Any, channels: int = 0, name: str | None = None) -> Any:
    """The image in a BMP file of 8, 24 or 32 bits a pixel.

    Args:
        contents: a string scalar, the whole file.
        channels: 3 for RGB, 4 for RGB and alpha; 0 for what the file has.
        name: accepted, without effect.
    Returns:
        A uint8 tensor [height, width, channels]. Pixels of 8 bits count as grey.
    Raises:
        InvalidArgumentError: the file is incomplete or of another kind, or an argument is wrong.

    >>> import struct
    >>> import twofold as tf
    >>> head = struct.pack("<2sIIIIiiHHIIIIII", b"BM", 58, 0, 54, 40, 1, 1, 1, 24, 0, 4, 0, 0, 0, 0)
    >>> tf.io.decode_bmp(head + bytes([3, 2, 1, 0])).numpy().tolist()
    [[[1, 2, 3]]]
    """
    del name
    from twofold.ir import dtypes as dt
    given, wanted = _given("decode_bmp", contents, channels, (0, 3, 4))
    return _read("decode_bmp", given, [None, None, wanted or None], dt.uint8,
                 lambda data: _pixels("decode_bmp", data, wanted, np.uint8))


@public
@hosted
def decode_gif(contents: Any, name: str | None = None) -> Any:
    """The frames of a GIF file; PNG and JPEG files are read as well, as one frame.

    Args:
        contents: a string scalar, the whole file.
        name: accepted, without effect.
    Returns:
        A uint8 tensor [frames, height, width, 3]. What a frame leaves transparent is as in the frame before it, black
        in the first.
    Raises:
        InvalidArgumentError: the file is damaged or of another format.
        ImportError: Pillow is not there.

    >>> import twofold as tf
    >>> tf.io.decode_gif(tf.io.encode_png(tf.zeros([4, 5, 1], tf.uint8))).shape
    TensorShape([1, 4, 5, 3])
    """
    del name
    from twofold.ir import dtypes as dt
    given, _ = _given("decode_gif", contents, 0)

    def read(data: bytes) -> np.ndarray:
        frames = _pixels("decode_gif", data, 3, np.uint8, every=True)
        return frames if frames.ndim == 4 else frames[None]
    return _read("decode_gif", given, [None, None, None, 3], dt.uint8, read)


@public
@hosted
def decode_webp(contents: Any, channels: int = 0, dtype: Any = "uint8", name: str | None = None) -> Any:
    """The frames of a WebP file.

    Args:
        contents: a string scalar, the whole file.
        channels: 3 for RGB, 4 for RGB and alpha, which must be those of the file; 0 for what the file has.
        dtype: uint8.
        name: accepted, without effect.
    Returns:
        A uint8 tensor [frames, height, width, channels].
    Raises:
        InvalidArgumentError: the file is damaged or of another format, or an argument is wrong.
        ImportError: Pillow is not there.

    >>> import io
    >>> import twofold as tf
    >>> from PIL import Image
    >>> file = io.BytesIO()
    >>> Image.new("RGB", (5, 4), (1, 2, 3)).save(file, "WEBP", lossless=True)
    >>> tf.image.decode_webp(file.getvalue())[0, 0, 0].numpy().tolist()
    [1, 2, 3]
    """
    del name
    from twofold.ir import dtypes as dt
    given, wanted = _given("decode_webp", contents, channels, (0, 3, 4))
    if dt.as_dtype(dtype) is not dt.uint8:
        raise wrong("decode_webp", f"dtype must be uint8; got {dt.as_dtype(dtype).name}")
    return _read("decode_webp", given, [None, None, None, wanted or None], dt.uint8,
                 lambda data: _frames_of_webp(data, wanted))


def _frames_of_webp(data: bytes, channels: int) -> np.ndarray:
    import io

    if not (data.startswith(b"RIFF") and data[8:12] == b"WEBP"):
        raise ValueError("this is no WebP file")
    try:
        with _jpeg.pillow("Image").open(io.BytesIO(data)) as image:
            kind = "RGBA" if image.has_transparency_data else "RGB"
            if channels and channels != len(kind):
                raise ValueError(f"channels={channels} does not match the {len(kind)} of the file")
            frames = []
            for number in range(getattr(image, "n_frames", 1)):
                image.seek(number)
                frames.append(np.asarray(image.convert(kind)))
    except (OSError, SyntaxError, EOFError) as error:
        raise ValueError(f"the WebP file is damaged: {error}") from None
    return np.stack(frames)


@public
@hosted
def decode_jpeg(contents: Any, channels: int = 0, ratio: int = 1, fancy_upscaling: bool = True,
                try_recover_truncated: bool = False, acceptable_fraction: float = 1, dct_method: str = "",
                name: str | None = None) -> Any:
    """The image in a JPEG file; PNG files and GIF files of one frame are read as well.

    Args:
        contents: a string scalar, the whole file.
        channels: 1 for grey, 3 for RGB; 0 for what the file has.
        ratio: by what the sizes of a JPEG image are divided: 1, 2, 4 or 8.
        fancy_upscaling: colours that are kept at a lower resolution are always interpolated: only True.
        try_recover_truncated: whether the beginning of an incomplete file is taken, with grey in the place of the rest.
        dct_method: "", "INTEGER_FAST" or "INTEGER_ACCURATE"; the transform is exact with each of them.
        acceptable_fraction, name: accepted, without effect.
    Returns:
        A uint8 tensor [height, width, channels].
    Raises:
        InvalidArgumentError: the file is damaged or of another format, has 2**29 pixels or more, or an argument is
            wrong. UnimplementedError: `fancy_upscaling` is false. ImportError: Pillow is not there.

    >>> import twofold as tf
    >>> file = tf.io.encode_jpeg(tf.fill([16, 8, 3], tf.constant(77, tf.uint8)))
    >>> tf.io.decode_jpeg(file, ratio=8)[:, 0].numpy().tolist()
    [[77, 77, 77], [77, 77, 77]]
    """
    del acceptable_fraction, name
    from twofold.ir import dtypes as dt
    given, wanted = _given("decode_jpeg", contents, channels)
    check_jpeg("decode_jpeg", ratio, fancy_upscaling, dct_method)
    return _read("decode_jpeg", given, [None, None, wanted or None], dt.uint8,
                 lambda data: _of_jpeg(data, wanted, ratio, bool(try_recover_truncated)))


def check_jpeg(op: str, ratio: Any, fancy_upscaling: Any, dct_method: Any) -> None:
    """Refuse arguments of the decoding of JPEG files that have no meaning."""
    from twofold.ir.errors import UnimplementedError
    if ratio not in (1, 2, 4, 8):
        raise wrong(op, f"ratio must be 1, 2, 4, or 8, got {ratio}")
    if dct_method not in ("", "INTEGER_FAST", "INTEGER_ACCURATE"):
        raise wrong(op, f"dct_method must be one of '', 'INTEGER_FAST', 'INTEGER_ACCURATE'; got {dct_method!r}")
    if not fancy_upscaling:
        raise UnimplementedError(None, op, "colours are always interpolated here: fancy_upscaling must be true")


def _of_jpeg(data: bytes, channels: int, ratio: int, recover: bool) -> np.ndarray:
    if _kind_of(data) == "JPEG" and channels != 4:
        return _jpeg.decode(data, channels, ratio, recover)
    return _pixels("decode_jpeg", data, channels, np.uint8)


@public
@hosted
def decode_and_crop_jpeg(contents: Any, crop_window: Any, channels: int = 0, ratio: int = 1,
                         fancy_upscaling: bool = True, try_recover_truncated: bool = False,
                         acceptable_fraction: float = 1, dct_method: str = "", name: str | None = None) -> Any:
    """A part of the image in a JPEG file.

    Args:
        contents: a string scalar, the whole file.
        crop_window: int32 [4]: the first row and column of the part, its height and its width, in the image after
            `ratio`.
        channels, ratio, fancy_upscaling, try_recover_truncated, dct_method: as for `decode_jpeg`.
        acceptable_fraction, name: have no effect.
    Returns:
        A uint8 tensor [height, width, channels].
    Raises:
        InvalidArgumentError: as for `decode_jpeg`, or the part does not lie in the image.

    >>> import twofold as tf
    >>> file = tf.io.encode_jpeg(tf.zeros([16, 8, 3], tf.uint8))
    >>> tf.io.decode_and_crop_jpeg(file, [4, 2, 5, 6]).shape
    TensorShape([5, 6, 3])
    """
    del acceptable_fraction, name
    from twofold.ir import dtypes as dt
    from twofold.ir.spec import TensorSpec

    from .._front.api import tensor
    op = "decode_and_crop_jpeg"
    given, wanted = _given(op, contents, channels, (0, 1, 3))
    check_jpeg(op, ratio, fancy_upscaling, dct_method)
    window = tensor(crop_window, dt.int32)
    if not window.shape.is_compatible_with([4]):
        raise wrong(op, f"crop_window must be [top, left, height, width]; got shape {window.shape}")

    def decode_part(file: Any, part: Any) -> list[Any]:
        top, left, height, width = engine.array_of(part).tolist()
        data: Any = engine.array_of(file)[()]
        try:
            pixels = _jpeg.decode(data, wanted, ratio, bool(try_recover_truncated))
        except ValueError as error:
            raise wrong(op, str(error)) from None
        if min(top, left) < 0 or min(height, width) <= 0 or top + height > pixels.shape[0] \
                or left + width > pixels.shape[1]:
            raise wrong(op, f"the part {[top, left, height, width]} does not lie in an image of "
                             f"{pixels.shape[0]} by {pixels.shape[1]} pixels")
        return [engine.tensor_of(np.ascontiguousarray(pixels[top:top + height, left:left + width]))]
    return engine.host_call(decode_part, op, [given, window], [TensorSpec([None, None, wanted or None], dt.uint8)])[0]


@public
@hosted
def extract_jpeg_shape(contents: Any, output_type: Any = "int32", name: str | None = None) -> Any:
    """The shape of the image in a JPEG file, which is not decoded.

    Args:
        contents: a string scalar, the file, or its beginning.
        output_type: int32 or int64.
        name: accepted, without effect.
    Returns:
        A tensor [3]: height, width and channels.
    Raises:
        InvalidArgumentError: it is no JPEG file, or `output_type` is another.

    >>> import twofold as tf
    >>> tf.io.extract_jpeg_shape(tf.io.encode_jpeg(tf.zeros([4, 6, 3], tf.uint8))).numpy().tolist()
    [4, 6, 3]
    """
    del name
    from twofold.ir import dtypes as dt
    given, _ = _given("extract_jpeg_shape", contents, 0)
    kind = dt.as_dtype(output_type)
    if kind not in (dt.int32, dt.int64):
        raise wrong("extract_jpeg_shape", f"output_type must be int32 or int64; got {kind.name}")
    return _read("extract_jpeg_shape", given, [3], kind, lambda data: np.array(_jpeg.size_of(data), kind.np))


@public
def is_jpeg(contents: Any, name: str | None = None) -> Any:
    """Whether strings begin as JPEG files do.

    Args:
        contents: a string tensor.
        name: accepted, without effect.
    Returns:
        A bool tensor of that shape.

    >>> import twofold as tf
    >>> tf.io.is_jpeg([b"\\xff\\xd8\\xff\\xe0", b"GIF89a"]).numpy().tolist()
    [True, False]
    """
    del name
    from .._ops.math_comparison import equal
    from ..strings import substr
    return equal(substr(contents, 0, len(_jpeg.MAGIC)), _jpeg.MAGIC)
