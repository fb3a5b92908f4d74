"""Layers that disturb their inputs in training, or put a price on them: dropout, noise, penalties."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import twofold as tf

from .. import random, regularizers
from ._declared import DeclaredLayer, InputSpec, data_format_of, without_trainable

__all__ = ["ActivityRegularization", "AlphaDropout", "Dropout", "GaussianDropout", "GaussianNoise",
           "SpatialDropout1D", "SpatialDropout2D", "SpatialDropout3D"]

# of the function selu (Klambauer et al. 2017): alpha * scale is how far below 0 it goes
_SELU_LIMIT = -1.6732632423543772848170429916717 * 1.0507009873554804934193349852946


class _Random(DeclaredLayer):
    """What layers that draw in training share: the seeds, and the inputs themselves at all other times."""

    supports_masking = True
    _complex_too = False
    seed: Any

    def _seeds(self, seed: Any, wanted: bool) -> None:
        self.seed = seed
        if wanted:
            self.seed_generator = seed if isinstance(seed, random.SeedGenerator) else random.SeedGenerator(seed)

    def call(self, inputs: Any, training: Any = False) -> Any:
        """The outputs for `inputs`."""
        if not hasattr(self, "seed_generator"):
            return inputs
        if training is not False and training is not None:
            self._refuse(inputs)
        if tf.is_tensor(training):
            return tf.cond(training, lambda: self._disturbed(inputs), lambda: tf.identity(inputs))
        return self._disturbed(inputs) if training else inputs

    def _refuse(self, inputs: Any) -> None:
        """Raise TypeError for inputs that cannot be disturbed, before anything is drawn."""
        dtype = tf.as_dtype(getattr(inputs, "dtype", None) or tf.convert_to_tensor(inputs).dtype)
        if not (dtype.is_floating or dtype.is_complex and self._complex_too):
            raise TypeError(f"{type(self).__name__} disturbs floating inputs; got {dtype.name}.")

    @abstractmethod
    def _disturbed(self, inputs: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} does not say what it does in training.")

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The shape of the inputs."""
        return input_shape


def _rate(rate: Any) -> Any:
    if not 0 <= rate <= 1:
        raise ValueError("Invalid value received for argument `rate`. Expected a float value between 0 and 1. "
                         f"Received: rate={rate}")
    return rate


class Dropout(_Random):
    """Sets elements to 0 at random in training, and divides the others by `1 - rate` (Srivastava et al. 2014).

    Args:
        rate: how probable a 0 is.
        noise_shape: the shape of the random choices, which broadcast to the inputs; None in it for the inputs' size.
        seed: an integer, for the same choices in every run.
        kwargs: those of `Layer`.
    Inputs: floating. Outputs: of that shape; the inputs themselves where `training` is not given or false.
    Raises:
        ValueError: the rate is not between 0 and 1.

    >>> import twofold as tf
    >>> layer = tf.keras.layers.Dropout(0.5, seed=1)
    >>> sorted(set(layer(tf.ones([100]), training=True).numpy().tolist())), float(layer(tf.constant(3.0)))
    ([0.0, 2.0], 3.0)
    """

    _arguments: tuple[str, ...] = ("rate", "seed", "noise_shape")

    def __init__(self, rate: float, noise_shape: Any = None, seed: Any = None, **kwargs: Any):
        super().__init__(**kwargs)
        self.rate, self.noise_shape = _rate(rate), noise_shape
        self._seeds(seed, rate > 0)

    def _noise_shape(self, inputs: Any) -> Any:
        return self.noise_shape

    def _disturbed(self, inputs: Any) -> Any:
        return random.dropout(inputs, self.rate, self._noise_shape(inputs), self.seed_generator)


class _SpatialDropout(Dropout):
    """What dropouts of whole channels share."""

    _arguments: tuple[str, ...] = ("rate", "seed", "data_format")
    rank: int

    def __init__(self, rate: float, data_format: str | None = None, seed: Any = None, name: str | None = None,
                 dtype: Any = None, **kwargs: Any):
        super().__init__(rate, seed=seed, name=name, dtype=dtype, **kwargs)
        self.data_format = data_format_of(data_format)
        self.input_spec = InputSpec(ndim=self.rank + 2)

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal layer, as plain values."""
        return without_trainable(super().get_config())

    def _noise_shape(self, inputs: Any) -> Any:
        ones = (1,) * self.rank
        return (None, None, *ones) if self.data_format == "channels_first" else (None, *ones, None)


class SpatialDropout1D(_SpatialDropout):
    """Sets whole channels to 0 at random in training, the same at all steps.

    Args:
        rate: how probable a 0 is.
        seed: an integer, for the same choices in every run.
        name, dtype, kwargs: those of `Layer`.
    Inputs: floating [batch, steps, channels]. Outputs: of that shape.

    >>> import twofold as tf
    >>> y = tf.keras.layers.SpatialDropout1D(0.5, seed=1)(tf.ones([4, 3, 5]), training=True)
    >>> bool(tf.reduce_all(y[:, 0] == y[:, 1]))
    True
    """

    rank = 1
    _arguments = ("rate", "seed")

    def __init__(self, rate: float, seed: Any = None, name: str | None = None, dtype: Any = None, **kwargs: Any):
        super().__init__(rate, "channels_last", seed, name, dtype, **kwargs)


class SpatialDropout2D(_SpatialDropout):
    """Sets whole channels of images to 0 at random in training.

    Args:
        rate: how probable a 0 is.
        data_format: "channels_last" (the default of `tf.keras.config`) or "channels_first".
        seed: an integer, for the same choices in every run.
        name, dtype, kwargs: those of `Layer`.

    >>> import twofold as tf
    >>> tf.keras.layers.SpatialDropout2D(0.5)(tf.ones([4, 3, 3, 5]), training=True).shape
    TensorShape([4, 3, 3, 5])
    """

    rank = 2


class SpatialDropout3D(_SpatialDropout):
    """Sets whole channels of volumes to 0 at random in training; arguments as for `SpatialDropout2D`.

    >>> import twofold as tf
    >>> tf.keras.layers.SpatialDropout3D(0.5)(tf.ones([4, 3, 3, 3, 5]), training=True).shape
    TensorShape([4, 3, 3, 3, 5])
    """

    rank = 3


class AlphaDropout(Dropout):
    """Dropout that keeps mean and variance of what `selu` gives (Klambauer et al. 2017).

    Args:
        rate, noise_shape, seed: as for `Dropout`.
        kwargs: those of `Layer`.

    >>> import twofold as tf
    >>> y = tf.keras.layers.AlphaDropout(0.5, seed=1)(tf.random.stateless_normal([10000], [1, 2]), training=True)
    >>> abs(float(tf.reduce_mean(y))) < 0.05, abs(float(tf.math.reduce_std(y)) - 1) < 0.05
    (True, True)
    """

    _complex_too = True

    def _disturbed(self, inputs: Any) -> Any:
        inputs = tf.convert_to_tensor(inputs)
        sizes = tf.shape(inputs)
        shape = sizes if self.noise_shape is None else [
            sizes[axis] if size is None else size for axis, size in enumerate(self.noise_shape)]
        kept = random.uniform(shape, dtype="float32", seed=self.seed_generator) >= self.rate
        factor = ((1 - self.rate) * (1 + self.rate * _SELU_LIMIT**2)) ** -0.5 if self.rate < 1 else 0.0
        mixed = tf.where(kept, inputs, tf.cast(_SELU_LIMIT, inputs.dtype))
        return mixed * tf.cast(factor, inputs.dtype) - tf.cast(factor * _SELU_LIMIT * self.rate, inputs.dtype)


class GaussianDropout(_Random):
    """Multiplies by normal numbers of mean 1 and variance `rate / (1 - rate)` in training.

    Args:
        rate: the rate of the dropout that has this variance.
        seed: an integer, for the same numbers in every run.
        kwargs: those of `Layer`.

    >>> import twofold as tf
    >>> y = tf.keras.layers.GaussianDropout(0.5, seed=1)(tf.ones([10000]), training=True)
    >>> abs(float(tf.reduce_mean(y)) - 1) < 0.05, abs(float(tf.math.reduce_std(y)) - 1) < 0.05
    (True, True)
    """

    _arguments = ("rate", "seed")

    def __init__(self, rate: float, seed: Any = None, **kwargs: Any):
        super().__init__(**kwargs)
        self.rate = _rate(rate)
        self._seeds(seed, rate > 0)

    def _disturbed(self, inputs: Any) -> Any:
        stddev = (self.rate / (1 - self.rate)) ** 0.5
        noise = random.normal(tf.shape(inputs), 1.0, stddev, self.compute_dtype, self.seed_generator)
        return inputs * noise


class GaussianNoise(_Random):
    """Adds normal numbers in training.

    Args:
        stddev: their standard deviation.
        seed: an integer, for the same numbers in every run.
        kwargs: those of `Layer`.

    >>> import twofold as tf
    >>> y = tf.keras.layers.GaussianNoise(2.0, seed=1)(tf.zeros([10000]), training=True)
    >>> abs(float(tf.math.reduce_std(y)) - 2) < 0.05
    True
    """

    _arguments = ("stddev", "seed")

    def __init__(self, stddev: float, seed: Any = None, **kwargs: Any):
        super().__init__(**kwargs)
        if not stddev >= 0:
            raise ValueError("Invalid value received for argument `stddev`. Expected a float value that is not "
                             f"negative. Received: stddev={stddev}")
        self.stddev = stddev
        self._seeds(seed, stddev > 0)

    def _disturbed(self, inputs: Any) -> Any:
        return inputs + random.normal(tf.shape(inputs), 0.0, self.stddev, self.compute_dtype, self.seed_generator)


class ActivityRegularization(DeclaredLayer):
    """The inputs, unchanged, with a price on their size among the losses.

    Args:
        l1, l2: the factors of the sums of magnitudes and of squares.
        kwargs: those of `Layer`.

    >>> import twofold as tf
    >>> layer = tf.keras.layers.ActivityRegularization(l1=0.5)
    >>> y = layer(tf.constant([[1.0, -3.0]]))
    >>> [float(loss) for loss in layer.losses]
    [2.0]
    """

    supports_masking = True

    def __init__(self, l1: float = 0.0, l2: float = 0.0, **kwargs: Any):
        super().__init__(activity_regularizer=regularizers.L1L2(l1, l2), **kwargs)
        self.l1, self.l2 = l1, l2

    def call(self, inputs: Any) -> Any:
        """The inputs."""
        return inputs

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The shape of the inputs."""
        return input_shape

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal layer, as plain values."""
        config = {**super().get_config(), "l1": self.l1, "l2": self.l2}
        config.pop("activity_regularizer", None)
        return config
