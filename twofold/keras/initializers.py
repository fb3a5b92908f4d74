"""`tf.keras.initializers`: what weights hold when they are made, by Keras 3's formulas.

An initialiser is called with a shape and a dtype. A random one draws by its seed, so that it gives the same values at
every call; without a seed it takes one when it is made, from the stream that `tf.random.set_seed` governs.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import twofold as tf
from twofold._front.api import listed, public
from twofold._front.namespace import publish

from . import random
from ._identifiers import Configured, read, resolve, table_of
from .configs import config_of
from .scalars import number
from .serialization import deserialize_keras_object, serialize_keras_object

__all__ = [
    "Constant", "GlorotNormal", "GlorotUniform", "HeNormal", "HeUniform", "Identity", "IdentityInitializer",
    "Initializer", "LecunNormal", "LecunUniform", "Ones", "Orthogonal", "OrthogonalInitializer", "RandomNormal",
    "RandomUniform", "STFT", "STFTInitializer", "TruncatedNormal", "VarianceScaling", "Zeros", "constant",
    "deserialize", "get", "glorot_normal", "glorot_uniform", "he_normal", "he_uniform", "identity", "lecun_normal",
    "lecun_uniform", "ones", "orthogonal", "random_normal", "random_uniform", "serialize", "stft", "truncated_normal",
    "variance_scaling", "zeros",
]

# the standard deviation of a standard normal number that is known to lie within two of zero
_TRUNCATED_STDDEV = 0.87962566103423978


class Initializer(Configured):
    """The base of initialisers: a subclass has `__call__(shape, dtype=None)`, and `get_config` if it has arguments.

    >>> import twofold as tf
    >>> class Halves(tf.keras.initializers.Initializer):
    ...     def __call__(self, shape, dtype=None, **kwargs):
    ...         return tf.fill(shape, 0.5)
    >>> tf.keras.layers.Dense(1, kernel_initializer=Halves())(tf.ones([1, 4])).numpy().tolist()
    [[2.0]]
    """

    @abstractmethod
    def __call__(self, shape: Any, dtype: Any = None, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__}, an initializer, must define __call__(shape, dtype=None).")


def _dtype(dtype: Any) -> Any:
    return tf.as_dtype(tf.keras.config.floatx() if dtype is None else dtype)


def _sizes(shape: Any) -> tuple[int, ...]:
    return tuple(int(size) for size in listed(shape, "A shape"))


class Zeros(Initializer):
    """All zero.

    >>> import twofold as tf
    >>> tf.keras.initializers.Zeros()([2]).numpy().tolist()
    [0.0, 0.0]
    """

    def __call__(self, shape: Any, dtype: Any = None, **kwargs: Any) -> Any:
        return tf.zeros(shape, _dtype(dtype))


class Ones(Initializer):
    """All one.

    >>> import twofold as tf
    >>> tf.keras.initializers.Ones()([2]).numpy().tolist()
    [1.0, 1.0]
    """

    def __call__(self, shape: Any, dtype: Any = None, **kwargs: Any) -> Any:
        return tf.ones(shape, _dtype(dtype))


class Constant(Initializer):
    """One value everywhere, or an array that broadcasts to the shape.

    Args:
        value: a number or an array.

    >>> import twofold as tf
    >>> tf.keras.initializers.Constant(3.0)([2]).numpy().tolist()
    [3.0, 3.0]
    """

    def __init__(self, value: Any = 0.0):
        self.value = value

    def __call__(self, shape: Any, dtype: Any = None, **kwargs: Any) -> Any:
        return tf.broadcast_to(number(self.value, _dtype(dtype)), shape)

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal object, as values that JSON can hold."""
        return {"value": serialize_keras_object(self.value)}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Constant:
        """An object made from what `get_config` gave."""
        config = config_of(config)
        return cls(deserialize_keras_object(config["value"]))


class Identity(Initializer):
    """A multiple of the identity matrix.

    Args:
        gain: the number on the diagonal.
    Raises:
        ValueError: when called with a shape that is not of rank 2.

    >>> import twofold as tf
    >>> tf.keras.initializers.Identity(2.0)([2, 3]).numpy().tolist()
    [[2.0, 0.0, 0.0], [0.0, 2.0, 0.0]]
    """

    def __init__(self, gain: float = 1.0):
        self.gain = gain

    def __call__(self, shape: Any, dtype: Any = None, **kwargs: Any) -> Any:
        sizes = _sizes(shape)
        if len(sizes) != 2:
            raise ValueError(f"Identity makes matrices; got shape {sizes}, which has rank {len(sizes)}.")
        dtype = _dtype(dtype)
        return tf.eye(*sizes, dtype=dtype) * number(self.gain, dtype)

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal object, as values that JSON can hold."""
        return {"gain": self.gain}


class STFT(Initializer):
    """The waves of a short-time Fourier transform, as a convolution's kernel: shape [frame, 1, frequencies].

    Args:
        side: "real" for cosines, "imag" for sines.
        window: an array of the frame's length, None, or the name of a window of SciPy's (which is then needed).
        scaling: "density", "spectrum" or None: what the windowed waves are divided by.
        periodic: whether a window given by name is periodic; else it is symmetric.
    Raises:
        ValueError: an argument is not one of these.

    >>> import twofold as tf
    >>> tf.keras.initializers.STFT("real", None)([4, 1, 3]).numpy()[:, 0, 2].round(5).tolist()
    [1.0, -1.0, 1.0, -1.0]
    """

    def __init__(self, side: str = "real", window: Any = "hann", scaling: str | None = "density",
                 periodic: bool = False):
        if side not in ("real", "imag"):
            raise ValueError(f"side must be 'real' or 'imag'; got {side!r}.")
        if scaling not in ("density", "spectrum", None):
            raise ValueError(f"scaling must be 'density', 'spectrum' or None; got {scaling!r}.")
        self.side, self.window, self.scaling, self.periodic = side, window, scaling, periodic

    def __call__(self, shape: Any, dtype: Any = None, **kwargs: Any) -> Any:
        frame, _, bins = _sizes(shape)
        turns = np.arange(frame)[:, None, None] * np.arange(bins) / (2 * (bins - 1))
        kernel = (np.cos if self.side == "real" else np.sin)(-2 * np.pi * turns)
        if self.window is not None:
            window = self._window(frame)
            scale = {"density": np.sqrt(np.sum(window**2)), "spectrum": np.sum(np.abs(window)), None: 1}
            kernel = kernel * window[:, None, None] / scale[self.scaling]
        return tf.cast(kernel, _dtype(dtype))

    def _window(self, frame: int) -> np.ndarray:
        window = self.window
        if isinstance(window, str):
            from scipy.signal import get_window
            window = get_window(window, frame, self.periodic)
        window = np.asarray(window, np.float64)
        if window.shape != (frame,):
            raise ValueError(f"window must have the frame's length, {frame}; got shape {window.shape}.")
        return window

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal object, as values that JSON can hold."""
        return {"side": self.side, "window": self.window, "periodic": self.periodic, "scaling": self.scaling}


class _Random(Initializer):
    """What random initialisers share: the seed."""

    def __init__(self, seed: Any = None):
        self._init_seed = seed
        if seed is None:
            seed = random._make_default_seed()
        elif isinstance(seed, Mapping):
            seed = deserialize_keras_object(seed)
        elif not isinstance(seed, (int, random.SeedGenerator)):
            raise ValueError(f"seed must be an integer, a tf.keras.random.SeedGenerator or None; got {seed!r}.")
        self.seed = seed

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal object, as values that JSON can hold."""
        return {"seed": serialize_keras_object(self._init_seed)}


class RandomNormal(_Random):
    """Normal numbers.

    Args:
        mean, stddev: of the distribution.
        seed: an integer, a `tf.keras.random.SeedGenerator`, or None.

    >>> import twofold as tf
    >>> x = tf.keras.initializers.RandomNormal(mean=5.0, stddev=0.1, seed=1)([1000])
    >>> abs(float(tf.reduce_mean(x)) - 5) < 0.02
    True
    """

    def __init__(self, mean: float = 0.0, stddev: float = 0.05, seed: Any = None):
        super().__init__(seed)
        self.mean, self.stddev = mean, stddev

    def __call__(self, shape: Any, dtype: Any = None, **kwargs: Any) -> Any:
        return random.normal(shape, self.mean, self.stddev, dtype, self.seed)

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal object, as values that JSON can hold."""
        return {**super().get_config(), "mean": self.mean, "stddev": self.stddev}


class TruncatedNormal(RandomNormal):
    """Normal numbers within two standard deviations of the mean.

    Args:
        mean, stddev: of the distribution before those outside are drawn again.
        seed: an integer, a `tf.keras.random.SeedGenerator`, or None.

    >>> import twofold as tf
    >>> x = tf.keras.initializers.TruncatedNormal(stddev=1.0, seed=1)([1000])
    >>> float(tf.reduce_max(tf.abs(x))) <= 2
    True
    """

    def __call__(self, shape: Any, dtype: Any = None, **kwargs: Any) -> Any:
        return random.truncated_normal(shape, self.mean, self.stddev, dtype, self.seed)


class RandomUniform(_Random):
    """Numbers uniform in [minval, maxval).

    Args:
        minval, maxval: the range.
        seed: an integer, a `tf.keras.random.SeedGenerator`, or None.

    >>> import twofold as tf
    >>> x = tf.keras.initializers.RandomUniform(2.0, 3.0, seed=1)([1000])
    >>> bool(tf.reduce_all((x >= 2) & (x < 3)))
    True
    """

    def __init__(self, minval: float = -0.05, maxval: float = 0.05, seed: Any = None):
        super().__init__(seed)
        self.minval, self.maxval = minval, maxval

    def __call__(self, shape: Any, dtype: Any = None, **kwargs: Any) -> Any:
        return random.uniform(shape, self.minval, self.maxval, dtype, self.seed)

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal object, as values that JSON can hold."""
        return {**super().get_config(), "minval": self.minval, "maxval": self.maxval}


def compute_fans(shape: Any, input_axes: Sequence[int] | None = None,
                 output_axes: Sequence[int] | None = None) -> tuple[int, int]:
    """How many inputs a unit of such a weight has, and how many outputs an input.

    A matrix is [inputs, outputs], a convolution's kernel [window.., inputs, outputs]; other layouts name their axes.
    """
    sizes = _sizes(shape)
    if input_axes is not None and output_axes is not None:
        return math.prod(sizes[axis] for axis in input_axes), math.prod(sizes[axis] for axis in output_axes)
    if len(sizes) < 2:
        return (sizes or (1,)) * 2  # type: ignore[return-value]
    window = math.prod(sizes[:-2])
    return window * sizes[-2], window * sizes[-1]


class VarianceScaling(_Random):
    """Random numbers of mean 0 whose variance is `scale` over the number of inputs, outputs, or their average.

    Args:
        scale: a positive number.
        mode: "fan_in", "fan_out" or "fan_avg".
        distribution: "truncated_normal" (or "normal"), "untruncated_normal" or "uniform".
        seed: an integer, a `tf.keras.random.SeedGenerator`, or None.
        input_axes, output_axes: the axes of inputs and of outputs; by default the second last, with the window, and
            the last.
    Raises:
        ValueError: an argument is not one of these.

    >>> import twofold as tf
    >>> x = tf.keras.initializers.VarianceScaling(2.0, seed=1)([100, 200])
    >>> abs(float(tf.math.reduce_variance(x)) * 100 / 2 - 1) < 0.05
    True
    """

    def __init__(self, scale: float = 1.0, mode: str = "fan_in", distribution: str = "truncated_normal",
                 seed: Any = None, input_axes: Sequence[int] | None = None, output_axes: Sequence[int] | None = None):
        distribution = {"normal": "truncated_normal"}.get(distribution.lower(), distribution.lower())
        if scale <= 0:
            raise ValueError(f"scale must be positive; got {scale!r}.")
        if mode not in ("fan_in", "fan_out", "fan_avg"):
            raise ValueError(f"mode must be 'fan_in', 'fan_out' or 'fan_avg'; got {mode!r}.")
        if distribution not in ("uniform", "truncated_normal", "untruncated_normal"):
            raise ValueError("distribution must be 'uniform', 'truncated_normal' or 'untruncated_normal'; "
                             f"got {distribution!r}.")
        super().__init__(seed)
        self.scale, self.mode, self.distribution = scale, mode, distribution
        self.input_axes, self.output_axes = input_axes, output_axes

    def __call__(self, shape: Any, dtype: Any = None, **kwargs: Any) -> Any:
        inputs, outputs = compute_fans(shape, self.input_axes, self.output_axes)
        fan = {"fan_in": inputs, "fan_out": outputs, "fan_avg": (inputs + outputs) / 2}[self.mode]
        variance = self.scale / max(1.0, fan)
        if self.distribution == "uniform":
            limit = math.sqrt(3 * variance)
            return random.uniform(shape, -limit, limit, dtype, self.seed)
        if self.distribution == "untruncated_normal":
            return random.normal(shape, 0.0, math.sqrt(variance), dtype, self.seed)
        return random.truncated_normal(shape, 0.0, math.sqrt(variance) / _TRUNCATED_STDDEV, dtype, self.seed)

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal object, as values that JSON can hold."""
        return {**super().get_config(), "scale": self.scale, "mode": self.mode, "distribution": self.distribution,
                "input_axes": self.input_axes, "output_axes": self.output_axes}


class _Named(VarianceScaling):
    """A `VarianceScaling` that has a name of its own."""

    _scaling: tuple[float, str, str]

    def __init__(self, seed: Any = None, input_axes: Sequence[int] | None = None,
                 output_axes: Sequence[int] | None = None):
        super().__init__(*self._scaling, seed, input_axes, output_axes)

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal object, as values that JSON can hold."""
        config = super().get_config()
        return {key: config[key] for key in ("seed", "input_axes", "output_axes")}


class GlorotUniform(_Named):
    """Uniform within sqrt(6 / (inputs + outputs)) of 0: the default of most layers (Glorot & Bengio 2010).

    Args:
        seed: an integer, a `tf.keras.random.SeedGenerator`, or None.
        input_axes, output_axes: as for `VarianceScaling`.

    >>> import twofold as tf
    >>> float(tf.reduce_max(tf.abs(tf.keras.initializers.GlorotUniform(seed=1)([3, 3])))) <= 1
    True
    """

    _scaling = (1.0, "fan_avg", "uniform")


class GlorotNormal(_Named):
    """Truncated normal of variance 2 / (inputs + outputs) (Glorot & Bengio 2010); arguments as `GlorotUniform`.

    >>> import twofold as tf
    >>> x = tf.keras.initializers.GlorotNormal(seed=1)([100, 300])
    >>> abs(float(tf.math.reduce_variance(x)) * 200 - 1) < 0.05
    True
    """

    _scaling = (1.0, "fan_avg", "truncated_normal")


class LecunNormal(_Named):
    """Truncated normal of variance 1 / inputs (LeCun et al. 1998); arguments as `GlorotUniform`.

    >>> import twofold as tf
    >>> x = tf.keras.initializers.LecunNormal(seed=1)([100, 300])
    >>> abs(float(tf.math.reduce_variance(x)) * 100 - 1) < 0.05
    True
    """

    _scaling = (1.0, "fan_in", "truncated_normal")


class LecunUniform(_Named):
    """Uniform within sqrt(3 / inputs) of 0 (LeCun et al. 1998); arguments as `GlorotUniform`.

    >>> import twofold as tf
    >>> float(tf.reduce_max(tf.abs(tf.keras.initializers.LecunUniform(seed=1)([3, 50])))) <= 1
    True
    """

    _scaling = (1.0, "fan_in", "uniform")


class HeNormal(_Named):
    """Truncated normal of variance 2 / inputs, for layers with ReLUs (He et al. 2015); arguments as `GlorotUniform`.

    >>> import twofold as tf
    >>> x = tf.keras.initializers.HeNormal(seed=1)([100, 300])
    >>> abs(float(tf.math.reduce_variance(x)) * 50 - 1) < 0.05
    True
    """

    _scaling = (2.0, "fan_in", "truncated_normal")


class HeUniform(_Named):
    """Uniform within sqrt(6 / inputs) of 0, for layers with ReLUs (He et al. 2015); arguments as `GlorotUniform`.

    >>> import twofold as tf
    >>> float(tf.reduce_max(tf.abs(tf.keras.initializers.HeUniform(seed=1)([6, 50])))) <= 1
    True
    """

    _scaling = (2.0, "fan_in", "uniform")


class Orthogonal(_Random):
    """A matrix with orthonormal columns (or rows, where there are fewer) from the QR factors of a normal one.

    The axes but the last of a shape of more axes are taken as one. Source: Saxe et al. 2014.

    Args:
        gain: what the matrix is multiplied by.
        seed: an integer, a `tf.keras.random.SeedGenerator`, or None.
    Raises:
        ValueError: when called with a shape of rank below 2.

    >>> import twofold as tf
    >>> q = tf.keras.initializers.Orthogonal(seed=1)([3, 3])
    >>> bool(tf.reduce_all(tf.abs(q @ tf.transpose(q) - tf.eye(3)) < 1e-5))
    True
    """

    def __init__(self, gain: float = 1.0, seed: Any = None):
        super().__init__(seed)
        self.gain = gain

    def __call__(self, shape: Any, dtype: Any = None, **kwargs: Any) -> Any:
        sizes, dtype = _sizes(shape), _dtype(dtype)
        if len(sizes) < 2:
            raise ValueError(f"Orthogonal needs a shape of rank 2 or more; got {sizes}.")
        rows, columns = math.prod(sizes[:-1]), sizes[-1]
        precise = dtype if dtype.size >= 4 else tf.float32  # factorisations have no 16-bit form
        draw = random.normal((max(rows, columns), min(rows, columns)), 0.0, 1.0, precise, self.seed)
        q, r = tf.linalg.qr(draw)
        q = q * tf.sign(tf.linalg.diag_part(r))
        if rows < columns:
            q = tf.transpose(q)
        return tf.cast(number(self.gain, precise) * tf.reshape(q, sizes), dtype)

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal object, as values that JSON can hold."""
        return {**super().get_config(), "gain": self.gain}


IdentityInitializer, OrthogonalInitializer, STFTInitializer = Identity, Orthogonal, STFT
zeros, ones, constant, identity, stft, orthogonal = Zeros, Ones, Constant, Identity, STFT, Orthogonal
random_normal, random_uniform, truncated_normal = RandomNormal, RandomUniform, TruncatedNormal
variance_scaling, glorot_uniform, glorot_normal = VarianceScaling, GlorotUniform, GlorotNormal
he_normal, he_uniform, lecun_normal, lecun_uniform = HeNormal, HeUniform, LecunNormal, LecunUniform

_TABLE = {
    **table_of(Initializer, Constant, Identity, Ones, STFT, Zeros, GlorotNormal, GlorotUniform, HeNormal, HeUniform,
               LecunNormal, LecunUniform, Orthogonal, RandomNormal, RandomUniform, TruncatedNormal, VarianceScaling),
    "normal": RandomNormal, "uniform": RandomUniform, "zero": Zeros, "one": Ones, "IdentityInitializer": Identity,
    "OrthogonalInitializer": Orthogonal, "STFTInitializer": STFT,
}


@public
def serialize(initializer: Any) -> Any:
    """The config of an initialiser: `{"module", "class_name", "config", "registered_name"}`.

    >>> import twofold as tf
    >>> tf.keras.initializers.serialize(tf.keras.initializers.Ones())["class_name"]
    'Ones'
    """
    return serialize_keras_object(Constant(initializer.value) if isinstance(initializer, _Given) else initializer)


@public
def deserialize(config: Any, custom_objects: Mapping[str, Any] | None = None) -> Any:
    """The initialiser of a config; `custom_objects` are further classes by name.

    >>> import twofold as tf
    >>> tf.keras.initializers.deserialize({"class_name": "Constant", "config": {"value": 2.0}}).value
    2.0
    """
    return read(config, _TABLE, custom_objects)


@public
def get(identifier: Any) -> Any:
    """The initialiser that `identifier` stands for.

    Args:
        identifier: None (gives None), a name, a config, a class, a callable `f(shape, dtype=None)`, or an array or
            tensor, which is then the value itself.
    Raises:
        ValueError: it stands for none.

    >>> import twofold as tf
    >>> type(tf.keras.initializers.get("he_normal")).__name__
    'HeNormal'
    """
    if identifier is None:
        return None
    if isinstance(identifier, (np.ndarray, np.generic)) or tf.is_tensor(identifier):
        return _Given(identifier)
    return resolve("initializer", identifier, _TABLE)


class _Given(Constant):
    """The value itself."""

    def __init__(self, value: Any):
        super().__init__(np.array(value))

    def __call__(self, shape: Any, dtype: Any = None, **kwargs: Any) -> Any:
        if _sizes(shape) != self.value.shape:
            raise ValueError(f"The value given as initializer has shape {self.value.shape}; the weight needs "
                             f"{_sizes(shape)}.")
        return super().__call__(shape, dtype)


publish(__name__)
