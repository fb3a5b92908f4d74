"""Layers that prepare raw data: scaling, normalising, one-hot and other encodings of integers, bins."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

import twofold as tf
from twofold._front.api import as_numpy, listed

from ..composites import each, in_mode, is_composite, result
from ..configs import config_of
from ..encoding import encoded, sparse_if
from ..scalars import number
from ._declared import DeclaredLayer, Shape, data_format_of, positive, without_trainable
from ._resizing import INTERPOLATIONS, resized_images

__all__ = ["CategoryEncoding", "CenterCrop", "Discretization", "Normalization", "Rescaling", "Resizing", "batches_of"]


class Rescaling(DeclaredLayer):
    """`inputs * scale + offset`, such as with 1/255 for pixels.

    Args:
        scale, offset: numbers, or arrays that broadcast to the inputs.
        kwargs: those of `Layer`.
    Inputs: of any dtype. Outputs: floating.

    >>> import twofold as tf
    >>> tf.keras.layers.Rescaling(0.5, offset=-1.0)(tf.constant([2, 4])).numpy().tolist()
    [0.0, 1.0]
    """

    _arguments = ("scale", "offset")
    supports_masking = True

    def __init__(self, scale: Any, offset: Any = 0.0, **kwargs: Any):
        super().__init__(**kwargs)
        self.scale, self.offset = scale, offset

    def call(self, inputs: Any) -> Any:
        """The outputs for `inputs`."""
        dtype = self.compute_dtype
        scale = number(self.scale, dtype)
        if len(scale.shape) and data_format_of(None) == "channels_first":
            scale = tf.reshape(scale, (*scale.shape, *(1,) * (3 - len(scale.shape))))
        return tf.cast(inputs, dtype) * scale + number(self.offset, dtype)

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The shape of the inputs."""
        return input_shape


class Normalization(DeclaredLayer):
    """`(inputs - mean) / sqrt(variance)`, with statistics of data seen before.

    Args:
        axis: the axis or axes that have statistics of their own; None for one mean and variance of all.
        mean, variance: the statistics, if they are known; else `adapt` finds them.
        invert: whether to go the other way: `mean + inputs * sqrt(variance)`.
        kwargs: those of `Layer`.
    Inputs: numbers. Outputs: floating, of that shape.
    Weights: mean, variance, count, if they were not given.
    Raises:
        ValueError: one of mean and variance is given, or their shapes do not fit.

    >>> import twofold as tf
    >>> layer = tf.keras.layers.Normalization(axis=None)
    >>> layer.adapt([[1.0, 2.0], [3.0, 4.0]])
    >>> layer(tf.constant([[2.5, 2.5]])).numpy().tolist()
    [[0.0, 0.0]]
    """

    _arguments = ("axis", "invert", "mean", "variance")
    supports_masking = True

    def __init__(self, axis: Any = -1, mean: Any = None, variance: Any = None, invert: bool = False, **kwargs: Any):
        super().__init__(**kwargs)
        self.axis = () if axis is None else (axis,) if isinstance(axis, int) else tuple(listed(axis, "axis"))
        if (mean is None) != (variance is None):
            raise ValueError("When setting values directly, both `mean` and `variance` must be set. Received: "
                             f"mean={mean} and variance={variance}")
        if mean is not None and (np.shape(mean) != np.shape(variance) or np.ndim(mean) > max(len(self.axis), 0)):
            raise ValueError(f"`mean` and `variance` must have the same shape, of at most {len(self.axis)} axes. "
                             f"Received: {np.shape(mean)} and {np.shape(variance)}")
        self.input_mean, self.input_variance, self.invert = mean, variance, invert

    def _argument(self, name: str) -> Any:
        if name not in ("mean", "variance"):
            return super()._argument(name)
        value = self.input_mean if name == "mean" else self.input_variance
        return None if value is None else as_numpy(value).tolist()

    def build(self, input_shape: Any) -> None:
        """Make the weights for the statistics, if these are not given."""
        shape = tuple(input_shape)
        rank = len(shape)
        if any(not -rank <= axis < rank for axis in self.axis):
            raise ValueError(f"All `axis` values must be in the range [-ndim, ndim). Received inputs with ndim={rank}, "
                             f"while axis={self.axis}")
        self._kept = tuple(sorted(axis % rank for axis in self.axis))
        if any(shape[axis] is None for axis in self._kept):
            raise ValueError(f"All `axis` values to be kept must have a known shape. Received axis={self.axis}, "
                             f"inputs.shape={shape}")
        sizes = tuple(shape[axis] for axis in self._kept)
        self._broadcast_shape = tuple(shape[axis] if axis in self._kept else 1 for axis in range(rank))
        if self.input_mean is None:
            self.adapt_mean = self.add_weight(name="mean", shape=sizes, initializer="zeros", trainable=False)
            self.adapt_variance = self.add_weight(name="variance", shape=sizes, initializer="ones", trainable=False)
            self.count = self.add_weight(name="count", shape=(), dtype="int32", initializer="zeros", trainable=False)
        self.built = True

    def _statistic(self, given: Any, adapted: Any, rank: int) -> Any:
        """Mean or variance, with axes of size 1 where the inputs have others."""
        value = tf.cast(adapted if given is None else given, self.compute_dtype)
        kept = self._kept[len(self._kept) - len(value.shape):]
        sizes = dict(zip(kept, value.shape, strict=True))
        return tf.reshape(value, [sizes.get(axis, 1) for axis in range(rank)])

    @property
    def mean(self) -> Any:
        """The means, with axes of size 1 where the inputs that the layer was built for have others; None before."""
        return self._known("mean")

    @property
    def variance(self) -> Any:
        """The variances, likewise."""
        return self._known("variance")

    def _known(self, name: str) -> Any:
        adapted = getattr(self, f"adapt_{name}", None)
        given = self.input_mean if name == "mean" else self.input_variance
        if not self.built:
            return None
        return tf.broadcast_to(self._statistic(given, adapted, len(self._broadcast_shape)), self._broadcast_shape)

    def adapt(self, data: Any, batch_size: int | None = None, steps: int | None = None) -> None:
        """Find mean and variance of data.

        Args:
            data: an array or tensor, or a dataset or another iterable of batches; of tuples, the first elements.
            batch_size: accepted, without effect.
            steps: how many batches are read; all by default.
        Raises:
            ValueError: the statistics were given, or there is no data.
        """
        if self.input_mean is not None:
            raise ValueError("Cannot `adapt` a Normalization layer that is initialized with static `mean` and "
                             "`variance`.")
        total, mean, variance = 0, np.zeros(()), np.zeros(())
        for batch in batches_of(data, steps):
            if not self.built:
                with self._scoped():
                    self.build((None, *batch.shape[1:]) if batch.ndim and 0 not in [
                        axis % batch.ndim for axis in self.axis] else batch.shape)
            others = tuple(axis for axis in range(batch.ndim) if axis not in self._kept)
            count = int(np.prod([batch.shape[axis] for axis in others]))
            own, spread = batch.mean(axis=others, dtype=np.float64), batch.var(axis=others, dtype=np.float64)
            share = count / (total + count)
            new = mean * (1 - share) + own * share
            variance = (variance + (mean - new) ** 2) * (1 - share) + (spread + (own - new) ** 2) * share
            mean, total = new, total + count
        if not total:
            raise ValueError("adapt() received no data.")
        self.adapt_mean.assign(tf.cast(mean, self.adapt_mean.dtype))
        self.adapt_variance.assign(tf.cast(variance, self.adapt_variance.dtype))

    def call(self, inputs: Any) -> Any:
        """The outputs for `inputs`."""
        x, rank = tf.cast(inputs, self.compute_dtype), len(inputs.shape)
        mean = self._statistic(self.input_mean, getattr(self, "adapt_mean", None), rank)
        variance = self._statistic(self.input_variance, getattr(self, "adapt_variance", None), rank)
        spread = tf.maximum(tf.sqrt(variance), tf.cast(tf.keras.config.epsilon(), x.dtype))
        return mean + x * spread if self.invert else (x - mean) / spread

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The shape of the inputs."""
        return input_shape


def batches_of(data: Any, steps: int | None, composites: bool = False) -> Iterator[Any]:
    """Data as arrays, batch by batch.

    Args:
        data: an array, or an iterable of batches.
        steps: how many batches there are at most.
        composites: whether ragged and sparse batches stay what they are; else their values are given.
    """
    if is_composite(data):
        yield data if composites else _values_of(data)
        return
    if hasattr(data, "__array__"):  # arrays, tensors, columns of tables
        yield np.asarray(data)
        return
    if isinstance(data, (list, tuple)) and not any(hasattr(x, "__array__") for x in data):
        yield np.asarray(data)
        return
    if not isinstance(data, Iterable):
        raise TypeError(f"adapt() takes arrays, tensors, datasets and iterables of batches; got {type(data)}.")
    for count, batch in enumerate(data):
        if steps is not None and count >= steps:
            return
        batch = batch[0] if isinstance(batch, tuple) and batch else batch
        if is_composite(batch):
            yield batch if composites else _values_of(batch)
            continue
        if not (hasattr(batch, "__array__") or isinstance(batch, (list, tuple))):
            raise TypeError(f"adapt() takes arrays, tensors, datasets and iterables of batches; got {type(batch)} in "
                            f"the place of a batch, in {type(data)}.")
        array = as_numpy(batch)
        yield array if array.ndim else array[np.newaxis]


def _values_of(x: Any) -> np.ndarray:
    return np.asarray(x.values if isinstance(x, tf.SparseTensor) else x.flat_values)


class CategoryEncoding(DeclaredLayer):
    """Integers as vectors of 0 and 1, or of counts.

    Args:
        num_tokens: how many integers there are: 0 to `num_tokens - 1`.
        output_mode: "one_hot": a vector for each integer; "multi_hot": one for each example, with 1 for each integer in
            it; "count": with their numbers.
        sparse: whether outputs are sparse tensors.
        kwargs: those of `Layer`.
    Inputs: integers [.., items], also ragged or sparse, and `count_weights` of that shape for "count". Outputs: [..,
        num_tokens], or [.., items, num_tokens] for "one_hot" of several items.

    >>> import twofold as tf
    >>> tf.keras.layers.CategoryEncoding(4, output_mode="count")(tf.constant([[0, 1, 1]])).numpy().tolist()
    [[1.0, 2.0, 0.0, 0.0]]
    """

    _arguments = ("num_tokens", "output_mode")

    def __init__(self, num_tokens: int | None = None, output_mode: str = "multi_hot", sparse: bool = False,
                 **kwargs: Any):
        super().__init__(**kwargs)
        output_mode = "multi_hot" if output_mode == "binary" else output_mode
        if output_mode not in ("count", "one_hot", "multi_hot"):
            raise ValueError(f"Unknown arg for output_mode: {output_mode}")
        if num_tokens is None:
            raise ValueError("num_tokens must be set to use this layer.")
        self.num_tokens, self.output_mode = positive(num_tokens, "num_tokens"), output_mode
        self.sparse = bool(sparse)

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal layer; Keras's configs do not know `sparse`, which is false there."""
        return {**super().get_config(), **({"sparse": True} if self.sparse else {})}

    def call(self, inputs: Any, count_weights: Any = None) -> Any:
        """The outputs for `inputs`."""
        if count_weights is not None and self.output_mode != "count":
            raise ValueError("`count_weights` is not used when `output_mode` is not 'count'. "
                             f"Received `count_weights={count_weights}`.")
        return encoded(in_mode(inputs), self.num_tokens, self.output_mode, self.compute_dtype, count_weights,
                       self.sparse)

    def compute_output_shape(self, input_shape: Any) -> Shape:
        """The shape of the outputs for inputs of a shape."""
        shape = tuple(input_shape)
        if self.output_mode == "one_hot" and shape and (shape[-1] != 1 or len(shape) == 1):
            return (*shape, self.num_tokens)
        return (*shape[:-1], self.num_tokens)

    def compute_output_spec(self, inputs: Any, count_weights: Any = None) -> Any:
        """The spec of the outputs; `count_weights` has no effect on it."""
        return result(self.compute_output_shape(inputs.shape), self.compute_dtype, self.sparse, getattr(
            inputs, "ragged", False) and self.output_mode == "one_hot")


class Discretization(DeclaredLayer):
    """Numbers as the bins in which they lie.

    Args:
        bin_boundaries: where bins begin and end, rising: n numbers make n + 1 bins.
        num_bins: how many bins `adapt` makes, each for as many numbers.
        epsilon: accepted, without effect: quantiles are exact.
        output_mode: "int" for the numbers of bins, or as for `CategoryEncoding`.
        sparse: whether outputs are sparse tensors; not with "int".
        dtype, name, kwargs: those of `Layer`.
    Inputs: numbers of any shape, also ragged or sparse. Outputs: integers of that shape, or floating as of
        `CategoryEncoding`.

    >>> import twofold as tf
    >>> tf.keras.layers.Discretization([0.0, 1.0, 2.0])(tf.constant([-1.5, 1.0, 3.4, 0.5])).numpy().tolist()
    [0, 2, 3, 1]
    """

    _arguments = ("bin_boundaries", "num_bins", "epsilon", "output_mode", "sparse")

    def __init__(self, bin_boundaries: Any = None, num_bins: int | None = None, epsilon: float = 0.01,
                 output_mode: str = "int", sparse: bool = False, dtype: Any = None, name: str | None = None,
                 **kwargs: Any):
        super().__init__(name=name, dtype=dtype, **kwargs)
        if output_mode not in ("int", "one_hot", "multi_hot", "count"):
            raise ValueError("`output_mode` must be 'int', 'one_hot', 'multi_hot' or 'count'. "
                             f"Received: {output_mode!r}")
        if (bin_boundaries is None) == (num_bins is None):
            raise ValueError("One of `num_bins` and `bin_boundaries` must be set. Received: "
                             f"num_bins={num_bins}, bin_boundaries={bin_boundaries}")
        if bin_boundaries is not None:
            bin_boundaries = [float(b) for b in listed(bin_boundaries, "bin_boundaries")]
        self.bin_boundaries = bin_boundaries
        self.num_bins, self.epsilon, self.output_mode = num_bins, epsilon, output_mode
        self.sparse = sparse_if(sparse, output_mode)
        self.autocast = False

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal layer, as plain values."""
        return without_trainable(super().get_config())

    def adapt(self, data: Any, batch_size: int | None = None, steps: int | None = None) -> None:
        """Make `num_bins` bins with as many of the numbers each.

        Args:
            data: an array or tensor, or a dataset or another iterable of batches.
            batch_size: accepted, without effect.
            steps: how many batches are read; all by default.
        Raises:
            ValueError: the bins were given.
        """
        if self.num_bins is None:
            raise ValueError("Cannot adapt a Discretization layer that has been initialized with `bin_boundaries`, use "
                             "`num_bins` instead.")
        values = np.concatenate([batch.ravel() for batch in batches_of(data, steps)])
        self.bin_boundaries = np.quantile(values, np.arange(1, self.num_bins) / self.num_bins).tolist()

    def _bins(self, x: Any) -> Any:
        x = x if x.dtype.is_floating else tf.cast(x, tf.float32)
        return tf.reduce_sum(tf.cast(x[..., tf.newaxis] >= tf.constant(self.bin_boundaries, x.dtype), tf.int32), -1)

    def call(self, inputs: Any) -> Any:
        """The outputs for `inputs`."""
        if self.bin_boundaries is None:
            raise ValueError("The bins of this Discretization layer are not known yet: call `adapt` first.")
        bins = each(self._bins, in_mode(inputs))
        if self.output_mode == "int":
            return bins
        return encoded(bins, len(self.bin_boundaries) + 1, self.output_mode, self.compute_dtype, sparse=self.sparse)

    def compute_output_shape(self, input_shape: Any) -> Shape:
        """The shape of the outputs for inputs of a shape."""
        shape = tuple(input_shape)
        if self.output_mode == "int":
            return shape
        depth = self.num_bins or len(self.bin_boundaries or ()) + 1
        return (*shape, depth) if self.output_mode == "one_hot" and shape[-1:] != (1,) else (*shape[:-1], depth)

    def compute_output_spec(self, inputs: Any) -> Any:
        """The spec of the outputs."""
        like = self.output_mode == "int" and getattr(inputs, "sparse", False)
        return result(self.compute_output_shape(inputs.shape), "int32" if self.output_mode == "int" else
                      self.compute_dtype, self.sparse or like,
                      self.output_mode in ("int", "one_hot") and getattr(inputs, "ragged", False))

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Discretization:
        """A layer made from what `get_config` gave."""
        config = config_of(config)
        boundaries = config.pop("bin_boundaries") if None not in (config.get("num_bins"), config.get("bin_boundaries")
                                                             ) else None
        layer = cls(**config)
        if boundaries is not None:
            layer.bin_boundaries = boundaries
        return layer


class Resizing(DeclaredLayer):
    """Images of another size.

    Args:
        height, width: the size.
        interpolation: "nearest", "bilinear", "bicubic", "lanczos3" or "lanczos5".
        crop_to_aspect_ratio: whether images are cropped in the middle first, so that nothing is distorted.
        pad_to_aspect_ratio: whether images are framed first instead, with `fill_value`.
        fill_mode: "constant".
        fill_value: the value of frames.
        antialias: whether pixels are averaged where images get smaller.
        data_format: "channels_last" (the default of `tf.keras.config`) or "channels_first".
        kwargs: those of `Layer`.
    Inputs: [batch, height, width, channels] or [height, width, channels], or channels before. Outputs: likewise.

    >>> import twofold as tf
    >>> tf.keras.layers.Resizing(4, 6)(tf.zeros([2, 8, 8, 3])).shape
    TensorShape([2, 4, 6, 3])
    """

    _arguments = ("height", "width", "interpolation", "crop_to_aspect_ratio", "pad_to_aspect_ratio", "fill_mode",
                  "fill_value", "antialias", "data_format")

    def __init__(self, height: int, width: int, interpolation: str = "bilinear", crop_to_aspect_ratio: bool = False,
                 pad_to_aspect_ratio: bool = False, fill_mode: str = "constant", fill_value: float = 0.0,
                 antialias: bool = False, data_format: str | None = None, **kwargs: Any):
        super().__init__(**kwargs)
        if crop_to_aspect_ratio and pad_to_aspect_ratio:
            raise ValueError("Only one of `crop_to_aspect_ratio` & `pad_to_aspect_ratio` can be True.")
        if fill_mode != "constant":
            raise ValueError(f"`fill_mode` must be 'constant'. Received: {fill_mode!r}")
        self.pad_to_aspect_ratio, self.fill_mode, self.fill_value = pad_to_aspect_ratio, fill_mode, fill_value
        if interpolation not in INTERPOLATIONS:
            raise ValueError(f"`interpolation` must be one of {INTERPOLATIONS}. Received: {interpolation!r}")
        self.height, self.width = positive(height, "height"), positive(width, "width")
        self.interpolation, self.crop_to_aspect_ratio, self.antialias = interpolation, crop_to_aspect_ratio, antialias
        self.data_format = data_format_of(data_format)

    def _axes(self, rank: int) -> tuple[int, int]:
        return (rank - 3, rank - 2) if self.data_format == "channels_last" else (rank - 2, rank - 1)

    def call(self, inputs: Any) -> Any:
        """The outputs for `inputs`."""
        axes, target = self._axes(len(inputs.shape)), (self.height, self.width)
        x = inputs if inputs.dtype.is_floating else tf.cast(inputs, self.compute_dtype)
        return resized_images(x, axes, target, self.interpolation, self.antialias, self.crop_to_aspect_ratio,
                              self.pad_to_aspect_ratio, self.fill_value)

    def compute_output_shape(self, input_shape: Any) -> Shape:
        """The shape of the outputs for inputs of a shape."""
        shape = list(input_shape)
        for axis, size in zip(self._axes(len(shape)), (self.height, self.width), strict=True):
            shape[axis] = size
        return tuple(shape)


class CenterCrop(DeclaredLayer):
    """The middle of images; smaller images are enlarged first.

    Args:
        height, width: the size of the outputs.
        data_format: "channels_last" (the default of `tf.keras.config`) or "channels_first".
        kwargs: those of `Layer`.
    Inputs: [batch, height, width, channels] or [height, width, channels], or channels before; sizes must be known.

    >>> import twofold as tf
    >>> x = tf.reshape(tf.range(16.0), [1, 4, 4, 1])
    >>> tf.keras.layers.CenterCrop(2, 2)(x).numpy().ravel().tolist()
    [5.0, 6.0, 9.0, 10.0]
    """

    _arguments = ("height", "width", "data_format")

    def __init__(self, height: int, width: int, data_format: str | None = None, **kwargs: Any):
        super().__init__(**kwargs)
        self.height, self.width = positive(height, "height"), positive(width, "width")
        self.data_format = data_format_of(data_format)

    def call(self, inputs: Any) -> Any:
        """The outputs for `inputs`."""
        rank = len(inputs.shape)
        if rank not in (3, 4):
            raise ValueError(f"CenterCrop takes an image or a batch of images; got shape {tuple(inputs.shape)}.")
        first = rank - 3 if self.data_format == "channels_last" else rank - 2
        x = tf.cast(inputs, self.compute_dtype)
        sizes = tuple(x.shape)[first:first + 2]
        if None in sizes:
            raise ValueError(f"CenterCrop needs images of known size; got {tuple(x.shape)}.")
        if sizes[0] < self.height or sizes[1] < self.width:
            fit = Resizing(self.height, self.width, crop_to_aspect_ratio=True, data_format=self.data_format)
            return fit(x)
        cuts = [slice(None)] * rank
        for axis, size, goal in zip((first, first + 1), sizes, (self.height, self.width), strict=True):
            start = (size - goal) // 2
            cuts[axis] = slice(start, start + goal)
        return x[tuple(cuts)]

    def compute_output_shape(self, input_shape: Any) -> Shape:
        """The shape of the outputs for inputs of a shape."""
        shape = list(input_shape)
        first = len(shape) - 3 if self.data_format == "channels_last" else len(shape) - 2
        shape[first:first + 2] = [self.height, self.width]
        return tuple(shape)
