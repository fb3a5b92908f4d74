"""`tf.keras.Variable`: a variable by Keras 3's arguments, made from a value or by an initializer.

It is a `tf.Variable`, so tapes, compiled functions, layers, optimizers and checkpoints take it as one. Weights of
layers are made by `Layer.add_weight`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import twofold as tf
from twofold._front.api import listed

from .autocast import AutoCastVariable
from .naming import uniquify

__all__ = ["Variable"]


class Variable(AutoCastVariable):
    """A tensor that can be replaced, such as a state or a parameter of a layer.

    Args:
        initializer: the first value; or an initializer, its name, or a function of shape and dtype that gives it.
        shape: of the value, for an initializer.
        dtype: of the value: by default its own, of an initializer `tf.keras.config.floatx()`.
        trainable: whether training changes it.
        autocast: whether a layer of mixed precision reads it in the dtype of its computation.
        aggregation, synchronization, layout: kept or accepted, without effect.
        name: its name, without "/"; "variable" and a number by default.
    Raises:
        ValueError: there is an initializer and no shape, or the name holds a "/".

    >>> import twofold as tf
    >>> v = tf.keras.Variable("ones", shape=(2,), name="scale")
    >>> v.assign(v * 3.0).numpy().tolist(), v.name, v.path, v.ndim
    ([3.0, 3.0], 'scale', 'scale', 1)
    """

    aggregation: Any = "none"
    synchronization: Any = "auto"

    def __init__(self, initializer: Any, shape: Any = None, dtype: Any = None, trainable: bool = True,
                 autocast: bool = True, aggregation: Any = "none", synchronization: Any = "auto",
                 name: str | None = None, layout: Any = None, **kwargs: Any) -> None:
        if kwargs:
            raise TypeError(f"Variable: unexpected arguments {', '.join(sorted(kwargs))}.")
        if name is not None and (not isinstance(name, str) or "/" in name):
            raise ValueError("Argument `name` must be a string and cannot contain character `/`. "
                             f"Received: name={name}")
        with tf.init_scope():
            start, kind = _first_value(initializer, shape, dtype)
            super().__init__(start, trainable=bool(trainable), dtype=kind, name=name or uniquify("variable"))
        self.regularizer: Callable[[Any], Any] | None = None
        self.overwrite_with_gradient = False
        self.aggregation, self.synchronization = aggregation, synchronization
        self._autocast = bool(autocast) and self.dtype.is_floating

    def _read_tensor(self) -> Any:
        casts = self.__dict__.get("_autocast")
        return super()._read_tensor() if casts else super(AutoCastVariable, self)._read_tensor()

    @property
    def name(self) -> str:
        """The name, without the scopes around it and without TensorFlow's suffix."""
        return self._name.rsplit("/", 1)[-1]

    @property
    def path(self) -> str:
        """The name after those of the scopes in which it was made."""
        return self._name

    @property
    def value(self) -> Any:
        """What holds the value: the variable itself, which ops read and tapes know."""
        return self

    @property
    def ndim(self) -> int:
        """How many axes it has."""
        return len(self.shape)

    @property
    def trainable(self) -> bool:
        """Whether training changes it, and tapes watch it by themselves."""
        return self._trainable

    @trainable.setter
    def trainable(self, value: bool) -> None:
        self._trainable = bool(value)

    @property
    def constraint(self) -> Callable[[Any], Any] | None:
        """The function that optimizers apply after an update."""
        return self._constraint

    @constraint.setter
    def constraint(self, value: Callable[[Any], Any] | None) -> None:
        self._constraint = value

    def __repr__(self) -> str:
        value = "" if not tf.executing_eagerly() else f", value={self.numpy()}"
        return f"<Variable path={self.path}, shape={tuple(self.shape)}, dtype={self.dtype.name}{value}>"


def _first_value(initializer: Any, shape: Any, dtype: Any) -> tuple[Any, Any]:
    """The first value and its dtype, None for the value's own."""
    from . import config, initializers
    if isinstance(initializer, str):
        initializer = initializers.get(initializer)
    if not callable(initializer):
        if shape is not None and tf.TensorShape(shape) != tf.convert_to_tensor(initializer).shape:
            raise ValueError(f"Variable: the value has shape {tf.convert_to_tensor(initializer).shape}, not {shape}.")
        return initializer, dtype
    if shape is None:
        raise ValueError("When creating a Variable from an initializer, the `shape` argument should be specified. "
                         f"Received: initializer={initializer} and shape={shape}")
    kind = tf.as_dtype(config.floatx() if dtype is None else dtype)
    return initializer(tuple(listed(shape, "A shape")), dtype=kind), kind
