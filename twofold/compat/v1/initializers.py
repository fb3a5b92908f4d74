"""`tf.compat.v1.initializers`: Keras's, with TensorFlow 1's names, arguments and defaults."""

from __future__ import annotations

import math
from typing import Any

import twofold as tf
from twofold._front.api import ANY, ints
from twofold._front.namespace import publish
from twofold.keras import initializers as _keras
from twofold.keras.initializers import Identity

from .variables import global_variables_initializer as global_variables
from .variables import local_variables_initializer as local_variables
from .variables import variables_initializer as variables

__all__ = ["Identity", "constant", "constant_initializer", "global_variables", "glorot_normal",
           "glorot_normal_initializer", "glorot_uniform", "glorot_uniform_initializer", "he_normal", "he_uniform",
           "identity", "lecun_normal", "lecun_uniform", "local_variables", "ones", "ones_initializer", "orthogonal",
           "orthogonal_initializer", "random_normal", "random_normal_initializer", "random_uniform",
           "random_uniform_initializer", "truncated_normal", "truncated_normal_initializer",
           "uniform_unit_scaling", "uniform_unit_scaling_initializer", "variables", "variance_scaling",
           "variance_scaling_initializer", "zeros", "zeros_initializer"]


class _OfDtype:
    """The base of the initialisers here: the dtype may be given when they are made.

    Further arguments of a call, `partition_info` and `kwargs`, have no effect.
    """

    _dtype: Any = None

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None, **kwargs: Any) -> Any:
        sizes = list(ints(shape, "shape", ANY))
        return super().__call__(sizes, dtype=dtype or self._dtype or tf.float32)  # type: ignore[misc]


class zeros_initializer(_OfDtype, _keras.Zeros):
    """All zero.

    Args:
        dtype: of tensors for which none is told.

    >>> import twofold as tf
    >>> tf.compat.v1.zeros_initializer()([2]).numpy().tolist()
    [0.0, 0.0]
    """

    def __init__(self, dtype: Any = None):
        super().__init__()
        self._dtype = dtype


class ones_initializer(_OfDtype, _keras.Ones):
    """All one.

    Args:
        dtype: of tensors for which none is told.
    """

    def __init__(self, dtype: Any = None):
        super().__init__()
        self._dtype = dtype


class constant_initializer(_OfDtype, _keras.Constant):
    """One value everywhere, or an array of as many elements as are wanted.

    Args:
        value: a number or an array.
        dtype: of tensors for which none is told.
        verify_shape: accepted, without effect, as is `partition_info` of a call.
    """

    def __init__(self, value: Any = 0, dtype: Any = None, verify_shape: bool = False):
        super().__init__(value)
        self._dtype = dtype

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None, **kwargs: Any) -> Any:
        sizes = list(ints(shape, "shape", ANY))
        kind = dtype or self._dtype or tf.float32
        value = tf.cast(tf.constant(self.value), kind)
        full = math.prod(d or 0 for d in sizes) == value.shape.num_elements()
        return tf.reshape(value, sizes) if full else tf.broadcast_to(value, sizes)


class random_normal_initializer(_OfDtype, _keras.RandomNormal):
    """Normal numbers.

    Args:
        mean, stddev: of the numbers.
        seed: of the draw.
        dtype: of tensors for which none is told.
    """

    def __init__(self, mean: float = 0.0, stddev: float = 1.0, seed: Any = None, dtype: Any = None):
        super().__init__(mean, stddev, seed)
        self._dtype = dtype


class truncated_normal_initializer(_OfDtype, _keras.TruncatedNormal):
    """Normal numbers within two standard deviations of the mean.

    Args:
        mean, stddev: of the numbers before.
        seed: of the draw.
        dtype: of tensors for which none is told.
    """

    def __init__(self, mean: float = 0.0, stddev: float = 1.0, seed: Any = None, dtype: Any = None):
        super().__init__(mean, stddev, seed)
        self._dtype = dtype


class random_uniform_initializer(_OfDtype, _keras.RandomUniform):
    """Numbers uniform in [minval, maxval).

    Args:
        minval, maxval: the range; None for 1.
        seed: of the draw.
        dtype: of tensors for which none is told.
    """

    def __init__(self, minval: float = 0.0, maxval: float | None = None, seed: Any = None, dtype: Any = None):
        super().__init__(minval, 1.0 if maxval is None else maxval, seed)
        self._dtype = dtype


class variance_scaling_initializer(_OfDtype, _keras.VarianceScaling):
    """Random numbers whose variance is `scale` over the number of inputs, outputs, or their average.

    Args:
        scale, mode, distribution: as for `tf.keras.initializers.VarianceScaling`.
        seed: of the draw.
        dtype: of tensors for which none is told.
    """

    def __init__(self, scale: float = 1.0, mode: str = "fan_in", distribution: str = "truncated_normal",
                 seed: Any = None, dtype: Any = None):
        super().__init__(scale, mode, distribution, seed)
        self._dtype = dtype


class uniform_unit_scaling_initializer(variance_scaling_initializer):
    """Uniform numbers that keep the scale of inputs: within `factor * sqrt(3 / inputs)`.

    Args:
        factor: times the range.
        seed: of the draw.
        dtype: of tensors for which none is told.
    """

    def __init__(self, factor: float = 1.0, seed: Any = None, dtype: Any = None):
        super().__init__(factor * factor, "fan_in", "uniform", seed, dtype)


class glorot_uniform_initializer(_OfDtype, _keras.GlorotUniform):
    """Uniform within sqrt(6 / (inputs + outputs)) of 0.

    Args:
        seed: of the draw.
        dtype: of tensors for which none is told.
    """

    def __init__(self, seed: Any = None, dtype: Any = None):
        super().__init__(seed)
        self._dtype = dtype


class glorot_normal_initializer(_OfDtype, _keras.GlorotNormal):
    """Normal numbers of variance 2 / (inputs + outputs), within two standard deviations of 0.

    Args:
        seed: of the draw.
        dtype: of tensors for which none is told.
    """

    def __init__(self, seed: Any = None, dtype: Any = None):
        super().__init__(seed)
        self._dtype = dtype


class orthogonal_initializer(_OfDtype, _keras.Orthogonal):
    """An orthogonal matrix, of tensors of higher rank as flattened.

    Args:
        gain: a factor.
        seed: of the draw.
        dtype: of tensors for which none is told.
    """

    def __init__(self, gain: float = 1.0, seed: Any = None, dtype: Any = None):
        super().__init__(gain, seed)
        self._dtype = dtype


constant, ones, zeros = constant_initializer, ones_initializer, zeros_initializer
random_normal, random_uniform = random_normal_initializer, random_uniform_initializer
truncated_normal, variance_scaling = truncated_normal_initializer, variance_scaling_initializer
uniform_unit_scaling, orthogonal = uniform_unit_scaling_initializer, orthogonal_initializer
glorot_uniform, glorot_normal, identity = glorot_uniform_initializer, glorot_normal_initializer, Identity
he_normal, he_uniform = _keras.he_normal, _keras.he_uniform
lecun_normal, lecun_uniform = _keras.lecun_normal, _keras.lecun_uniform

publish(__name__)
