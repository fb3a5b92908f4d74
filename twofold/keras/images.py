"""`tf.keras.utils`' pictures: Pillow's images and arrays, and folders of image files as datasets.

Pillow comes with `pip install twofold[image]`. Files for datasets are decoded by `tf.io`, which needs it for JPEG and
GIF alone.
"""

from __future__ import annotations

import importlib
import io
import os
import warnings
from typing import Any

import numpy as np

import twofold as tf
from twofold._front.api import as_numpy, describe, public

from .config import floatx, image_data_format
from .folders import check_format, datasets_of, listed

__all__ = ["array_to_img", "image_dataset_from_directory", "img_to_array", "load_img", "save_img", "smart_resize"]

_ENDINGS = (".bmp", ".gif", ".jpeg", ".jpg", ".png")
_CHANNELS = {"rgb": 3, "rgba": 4, "grayscale": 1}
_METHODS = ("bilinear", "nearest", "bicubic", "area", "lanczos3", "lanczos5", "gaussian", "mitchellcubic")
_OF_PILLOW = ("nearest", "bilinear", "bicubic", "hamming", "box", "lanczos")


def _pillow() -> Any:
    try:
        return importlib.import_module("PIL.Image")
    except ImportError:
        raise ImportError("Pictures need Pillow: pip install twofold[image]") from None


def _order(data_format: str | None) -> str:
    order = image_data_format() if data_format is None else str(data_format).lower()
    if order not in ("channels_last", "channels_first"):
        raise ValueError("The `data_format` argument must be one of {'channels_first', 'channels_last'}. "
                         f"Received: data_format={data_format}")
    return order


def _numpy_dtype(dtype: Any) -> Any:
    return tf.as_dtype(floatx() if dtype is None else dtype).as_numpy_dtype


# -- pictures and arrays --------------------------------------------------------------------------
@public
def load_img(path: Any, color_mode: str = "rgb", target_size: Any = None, interpolation: str = "nearest",
             keep_aspect_ratio: bool = False) -> Any:
    """An image file as a picture of Pillow's.

    Args:
        path: of the file, or an `io.BytesIO` with its bytes. All formats of Pillow's can be read.
        color_mode: "rgb", "rgba" or "grayscale" (which leaves grey of 16 and 32 bits as it is).
        target_size: (height, width) of the picture; by default that of the file.
        interpolation: "nearest", "bilinear", "bicubic", "hamming", "box" or "lanczos".
        keep_aspect_ratio: whether the middle part with the proportions of `target_size` is taken.
    Returns:
        A `PIL.Image.Image`.
    Raises:
        TypeError: `path` is neither. ValueError: there is no such mode. ImportError: Pillow is not there.

    >>> import io
    >>> import twofold as tf
    >>> file = io.BytesIO(tf.io.encode_png(tf.fill([4, 6, 3], tf.constant(9, tf.uint8))).numpy())
    >>> tf.keras.utils.load_img(file, color_mode="grayscale", target_size=(2, 2)).getpixel((0, 0))
    9
    """
    pillow = _pillow()
    if not isinstance(path, (io.BytesIO, os.PathLike, bytes, str)):
        raise TypeError(f"path should be path-like or io.BytesIO, not {type(path)}")
    modes = {"grayscale": ("L", "I;16", "I"), "rgba": ("RGBA",), "rgb": ("RGB",)}
    if color_mode not in modes:
        raise ValueError(f'color_mode must be "grayscale", "rgb", or "rgba". Received: color_mode={color_mode}')
    image = pillow.open(path)
    image.load()  # which closes the file
    if image.mode not in modes[color_mode]:
        image = image.convert(modes[color_mode][0])
    if target_size is None or image.size == (target_size[1], target_size[0]):
        return image
    if interpolation not in _OF_PILLOW:
        raise ValueError(f"Invalid interpolation method {interpolation} specified. Supported methods are "
                         f"{', '.join(_OF_PILLOW)}")
    how = getattr(pillow.Resampling, interpolation.upper())
    height, width = target_size
    return image.resize((width, height), how, box=_middle(image.size, width, height) if keep_aspect_ratio else None)


def _middle(size: tuple[int, int], width: int, height: int) -> tuple[int, int, int, int]:
    """The largest box in the middle of a picture with the proportions of another size."""
    across = min(size[0], size[1] * width // height)
    down = min(size[1], size[0] * height // width)
    left, top = (size[0] - across) // 2, (size[1] - down) // 2
    return left, top, left + across, top + down


@public
def img_to_array(img: Any, data_format: str | None = None, dtype: Any = None) -> np.ndarray:
    """A picture as an array.

    Args:
        img: a picture of Pillow's, or an array of rank 2 or 3.
        data_format: "channels_last" (the default of `tf.keras.config`) or "channels_first".
        dtype: of the array; `tf.keras.config.floatx()` by default.
    Returns:
        An array [height, width, channels], or channels first.
    Raises:
        ValueError: the picture has another rank, or there is no such format.

    >>> import numpy as np
    >>> import twofold as tf
    >>> tf.keras.utils.img_to_array(np.zeros((4, 6), "uint8")).shape
    (4, 6, 1)
    """
    order = _order(data_format)
    array = as_numpy(img, _numpy_dtype(dtype))
    if array.ndim not in (2, 3):
        raise ValueError(f"Unsupported image shape: {array.shape}")
    if order == "channels_first":
        return array.transpose(2, 0, 1) if array.ndim == 3 else array[np.newaxis]
    return array if array.ndim == 3 else array[..., np.newaxis]


@public
def array_to_img(x: Any, data_format: str | None = None, scale: bool = True, dtype: Any = None) -> Any:
    """An array as a picture of Pillow's.

    Args:
        x: an array [height, width, channels], or channels first, of 1, 3 or 4 channels.
        data_format: as for `img_to_array`.
        scale: whether values are moved and stretched to 0 .. 255; else they are taken as they are.
        dtype: in which this is computed; `tf.keras.config.floatx()` by default.
    Returns:
        A `PIL.Image.Image`.
    Raises:
        ValueError: it has another rank or number of channels. ImportError: Pillow is not there.

    >>> import numpy as np
    >>> import twofold as tf
    >>> picture = tf.keras.utils.array_to_img(np.arange(6.0).reshape(2, 3, 1))
    >>> picture.size, picture.getpixel((2, 1))
    ((3, 2), 255)
    """
    order, pillow = _order(data_format), _pillow()
    array = as_numpy(x, _numpy_dtype(dtype))
    if array.ndim != 3:
        raise ValueError(f"Expected image array to have rank 3 (single image). Got array with shape: {array.shape}")
    array = array.transpose(1, 2, 0) if order == "channels_first" else array
    channels = array.shape[2]
    if channels not in (1, 3, 4):
        raise ValueError(f"Unsupported channel number: {channels}")
    if scale:
        array = array - np.min(array)
        most = np.max(array)
        array = (array / most if most != 0 else array) * 255
    if channels > 1:
        return pillow.fromarray(np.ascontiguousarray(array.astype("uint8")))
    deep = np.max(array) > 255
    return pillow.fromarray(np.ascontiguousarray(array[:, :, 0].astype("int32" if deep else "uint8")))


@public
def save_img(path: Any, x: Any, data_format: str | None = None, file_format: str | None = None, scale: bool = True,
             **kwargs: Any) -> None:
    """Write an array as an image file.

    Args:
        path: of the file, or a file that is open.
        x: as for `array_to_img`.
        data_format: as for `img_to_array`.
        file_format: of Pillow's; by default that of the path's ending.
        scale: as for `array_to_img`.
        kwargs: those of Pillow's `Image.save`.
    Raises:
        ValueError: as for `array_to_img`. ImportError: Pillow is not there.

    >>> import io
    >>> import numpy as np
    >>> import twofold as tf
    >>> file = io.BytesIO()
    >>> tf.keras.utils.save_img(file, np.zeros((2, 2, 3)), file_format="png")
    >>> file.getvalue()[:4]
    b'\\x89PNG'
    """
    _order(data_format)
    if not isinstance(path, (str, os.PathLike)) and not hasattr(path, "write"):
        raise TypeError(f"path must be a path or a file that is open; got {describe(path)}.")
    if file_format is not None and not isinstance(file_format, str):
        raise TypeError(f"file_format must be a string; got {describe(file_format)}.")
    if file_format is None and isinstance(path, (str, os.PathLike)):
        file_format = os.path.splitext(os.fspath(path))[1][1:].lower()
    if file_format and file_format.lower() == "jpg":
        file_format = "jpeg"
    image = array_to_img(x, data_format, scale)
    if image.mode == "RGBA" and file_format == "jpeg":
        warnings.warn("The JPEG format does not support RGBA images, converting to RGB.", stacklevel=2)
        image = image.convert("RGB")
    image.save(path, format=file_format, **kwargs)


@public
def smart_resize(x: Any, size: Any, interpolation: str = "bilinear", data_format: str = "channels_last") -> Any:
    """The middle part of images with the proportions of a size, in this size.

    Args:
        x: images [height, width, channels] or [batch, height, width, channels], or channels first.
        size: (height, width).
        interpolation: a method of `tf.image.resize`.
        data_format: "channels_last" or "channels_first".
    Returns:
        A tensor of the size, or an array where an array was given.
    Raises:
        ValueError: the size is no pair, or images have another rank.

    >>> import numpy as np
    >>> import twofold as tf
    >>> x = np.arange(8.0).reshape(2, 4, 1)
    >>> tf.keras.preprocessing.image.smart_resize(x, (2, 2))[..., 0].tolist()
    [[1.0, 2.0], [5.0, 6.0]]
    """
    if len(size) != 2:
        raise ValueError(f"Expected `size` to be a tuple of 2 integers, but got: {size}.")
    images, order = tf.convert_to_tensor(x), _order(data_format)
    if len(images.shape) not in (3, 4):
        raise ValueError("Expected an image array with shape `(height, width, channels)`, or `(batch_size, height, "
                         f"width, channels)`, but got input with incorrect rank, of shape {images.shape}.")
    first = order == "channels_first"
    last = list(range(len(images.shape) - 3))
    if first:
        images = tf.transpose(images, [*last, len(last) + 1, len(last) + 2, len(last)])
    shape = tf.shape(images)
    height, width = shape[-3], shape[-2]

    def fitting(have: Any, other: Any, part: int, whole: int) -> Any:
        wanted = tf.cast(tf.cast(other * part, tf.float32) / whole, tf.int32)
        return tf.maximum(tf.minimum(have, wanted), 1)
    down, across = fitting(height, width, size[0], size[1]), fitting(width, height, size[1], size[0])
    resized = tf.image.crop_to_bounding_box(images, (height - down) // 2, (width - across) // 2, down, across)
    resized = tf.image.resize(resized, size, method=interpolation)
    if first:
        resized = tf.transpose(resized, [*last, len(last) + 2, len(last), len(last) + 1])
    return resized.numpy() if isinstance(x, np.ndarray) else resized


# -- folders --------------------------------------------------------------------------------------
@public
def image_dataset_from_directory(directory: Any, labels: Any = "inferred", label_mode: str | None = "int",
                                 class_names: Any = None, color_mode: str = "rgb", batch_size: int | None = 32,
                                 image_size: Any = (256, 256), shuffle: bool = True, seed: int | None = None,
                                 validation_split: float | None = None, subset: str | None = None,
                                 interpolation: str = "bilinear", follow_links: bool = False,
                                 crop_to_aspect_ratio: bool = False, pad_to_aspect_ratio: bool = False,
                                 data_format: str | None = None, format: str = "tf", verbose: bool = True) -> Any:
    """The image files of a folder as a dataset, labelled by the folders they are in.

    Args:
        directory: the folder; with labels "inferred" its folders are the classes, but for those whose names begin with
            a dot. Files that end in .bmp, .gif, .jpeg, .jpg and .png are taken; of an animation the first frame.
        labels: "inferred", a list of an integer for each file in the order of their paths, or None.
        label_mode: "int", "categorical" (one-hot), "binary" (0.0 and 1.0), or None for images alone.
        class_names: the classes in their order, or some of them; by default all in that of the alphabet.
        color_mode: "rgb", "rgba" or "grayscale".
        batch_size: how many images a batch has; None for single ones.
        image_size: (height, width) to which images are resized, or a number for both.
        shuffle: whether images come in a random order; else in that of their paths.
        seed: an integer, for the same order in every run.
        validation_split: the share of files, the last ones, that is for validation.
        subset: "training", "validation" or "both" (which gives two datasets).
        interpolation: a method of `tf.image.resize`.
        follow_links: whether links to folders are followed.
        crop_to_aspect_ratio: whether images are cut, rather than distorted, to the proportions of `image_size`.
        pad_to_aspect_ratio: whether they are padded by zeros instead.
        data_format: "channels_last" (the default of `tf.keras.config`) or "channels_first".
        format: "tf", the one kind of dataset there is here.
        verbose: whether the number of files is printed.
    Returns:
        A dataset of float32 images [batch, height, width, channels] with values 0 .. 255 (uint8 with "nearest"), or of
        such and labels, with `class_names` and `file_paths`.
    Raises:
        ValueError: arguments do not go together, or there are no files.

    >>> import tempfile, pathlib
    >>> import twofold as tf
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("cats", "dogs"):
    ...         (pathlib.Path(folder) / name).mkdir()
    ...         tf.io.write_file(f"{folder}/{name}/0.png", tf.io.encode_png(tf.zeros([4, 6, 3], tf.uint8)))
    ...     pictures = tf.keras.utils.image_dataset_from_directory(folder, image_size=(8, 8), verbose=False)
    ...     [(x.shape.as_list(), sorted(y.numpy().tolist())) for x, y in pictures], pictures.class_names
    ([([2, 8, 8, 3], [0, 1])], ['cats', 'dogs'])
    """
    check_format(format)
    if color_mode not in _CHANNELS:
        raise ValueError('`color_mode` must be one of {"rgb", "rgba", "grayscale"}. '
                         f"Received: color_mode={color_mode}")
    size = (image_size, image_size) if isinstance(image_size, int) else image_size
    if not isinstance(size, (list, tuple)) or len(size) != 2:
        raise ValueError(f"Invalid `image_size` value. Expected a tuple of 2 integers. Received: image_size={size}")
    method = interpolation.lower()
    if method not in _METHODS:
        raise ValueError(f"Argument `interpolation` should be one of {_METHODS}. Received: interpolation={method}")
    if crop_to_aspect_ratio and pad_to_aspect_ratio:
        raise ValueError("Only one of `pad_to_aspect_ratio`, `crop_to_aspect_ratio` can be set to `True`.")
    first = _order(data_format) == "channels_first"
    listing = listed(directory, labels, label_mode, class_names, shuffle, seed, validation_split, subset, follow_links,
                     verbose, _ENDINGS)
    channels = _CHANNELS[color_mode]

    def load(path: Any) -> Any:
        image = tf.io.decode_image(tf.io.read_file(path), channels, expand_animations=False)
        if crop_to_aspect_ratio:
            image = smart_resize(image, size, method)
        elif pad_to_aspect_ratio:
            image = tf.image.resize_with_pad(image, size[0], size[1], method=method)
        else:
            image = tf.image.resize(image, size, method=method)
        image = tf.ensure_shape(image, (*size, channels))
        return tf.transpose(image, (2, 0, 1)) if first else image
    return datasets_of(listing, load, label_mode, batch_size, shuffle, validation_split, subset, verbose, "images",
                       _ENDINGS, directory)
