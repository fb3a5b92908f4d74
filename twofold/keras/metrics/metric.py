"""The base of metrics: objects that hold sums over batches in variables, and compute a number from them."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import twofold as tf
from twofold._front.api import for_the_user, listed
from twofold.tracking import Trackable

from .. import dtype_policies
from ..configs import config_of
from ..naming import auto_name

__all__ = ["Metric", "floatx"]


def floatx() -> str:
    """The default dtype of floats."""
    return tf.keras.config.floatx()


class Metric(Trackable):
    """The base of metrics; a new one makes variables with `add_variable`, and overrides `update_state` and `result`.

    Calling a metric takes a batch into account and gives the result so far. In checkpoints the variables have the names
    of the attributes that hold them.

    Args:
        dtype: the dtype in which it is computed, or a policy; `tf.keras.config.floatx()` by default.
        name: its name, by default the class's in snake case.

    >>> import twofold as tf
    >>> class Largest(tf.keras.metrics.Metric):
    ...     def __init__(self, name="largest"):
    ...         super().__init__(name=name)
    ...         self.value = self.add_variable((), "zeros", name="value")
    ...     def update_state(self, values):
    ...         self.value.assign(tf.maximum(self.value, tf.reduce_max(values)))
    ...     def result(self):
    ...         return self.value
    >>> largest = Largest()
    >>> float(largest([1.0, 7.0])), float(largest([3.0]))
    (7.0, 7.0)
    """

    _direction: str | None = None  # "up" where more is better, "down" where less is

    def __init__(self, dtype: Any = None, name: str | None = None):
        self.name = name or auto_name(type(self))
        self._dtype = dtype_policies.get(dtype or floatx()).compute_dtype
        self._variables: list[tf.Variable] = []
        self._metrics: list[Metric] = []

    @for_the_user
    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if isinstance(value, (tf.Variable, Metric)):
            if "_variables" not in vars(self):
                raise RuntimeError(f"{type(self).__name__}: call `super().__init__()` before anything else in "
                                   "`__init__`.")
            kept: list[Any] = self._variables if isinstance(value, tf.Variable) else self._metrics
            if not any(value is other for other in kept):
                kept.append(value)

    def _tracked_children(self) -> dict[str, Any]:
        own = super()._tracked_children()
        own.pop("_metrics", None)
        unnamed = own.pop("_variables", None)
        return {**own, "_variables": unnamed} if unnamed else own  # last: names of attributes come first

    @property
    def dtype(self) -> str:
        """The name of the dtype in which it is computed."""
        return self._dtype

    @property
    def variables(self) -> list[tf.Variable]:
        """The variables of the metric and of the metrics in its attributes."""
        return [*self._variables, *(v for metric in self._metrics for v in metric.variables)]

    @property
    def weights(self) -> list[tf.Variable]:
        """The older name of `variables`."""
        return self.variables

    def add_variable(self, shape: Sequence[int] = (), initializer: Any = "zeros", dtype: Any = None,
                     aggregation: Any = None, name: str | None = None) -> Any:
        """Make a variable of the metric, which is not trainable.

        Args:
            shape: its shape.
            initializer: an initialiser, or its name.
            dtype: its dtype; `tf.keras.config.floatx()` by default.
            aggregation: accepted, without effect.
            name: its name, which comes after the metric's.
        Returns:
            The variable.

        >>> import twofold as tf
        >>> tf.keras.metrics.Mean().add_variable((2,), "ones", name="extra").numpy().tolist()
        [1.0, 1.0]
        """
        dtype = tf.as_dtype(dtype or floatx())
        shape = [int(n) for n in listed(shape, "A shape")]
        with tf.init_scope():
            if initializer in (None, "zeros"):
                value = tf.zeros(shape, dtype)
            else:
                from .. import initializers
                value = tf.cast(initializers.get(initializer)(shape, dtype=dtype), dtype)
            made = tf.Variable(value, trainable=False, name=f"{self.name.replace('/', '>')}/{name or 'variable'}",
                               synchronization=tf.VariableSynchronization.ON_READ,
                               aggregation=tf.VariableAggregation.SUM)
        self._variables.append(made)
        return made

    def add_weight(self, *args: Any, **kwargs: Any) -> Any:
        """Make a variable of the metric: `add_variable`, where a name may also come first, as in older programs.

        >>> import twofold as tf
        >>> tf.keras.metrics.Mean(name="m").add_weight("extra", initializer="ones").name
        'm/extra:0'
        """
        kwargs.pop("synchronization", None)
        if args and isinstance(args[0], str):
            names = ("name", "shape", "aggregation", "initializer", "dtype")
            return self.add_variable(**dict(zip(names, args, strict=False)), **kwargs)
        for key, value in zip(("shape", "initializer", "dtype", "name"), args, strict=False):
            kwargs.setdefault(key, value)
        return self.add_variable(**kwargs)

    @abstractmethod
    def update_state(self, *args: Any, **kwargs: Any) -> None:
        """Take a batch into account; each metric has its own."""
        raise NotImplementedError(f"{type(self).__name__} must override `update_state`.")

    @abstractmethod
    def result(self) -> Any:
        """The metric of all batches since the last reset; each metric has its own."""
        raise NotImplementedError(f"{type(self).__name__} must override `result`.")

    def __copy__(self) -> Any:
        return copy.deepcopy(self)  # as in Keras, a copy has a state of its own

    def reset_state(self) -> None:
        """Forget all batches: the variables become 0."""
        for variable in self.variables:
            variable.assign(tf.zeros(variable.shape, variable.dtype))

    def reset_states(self) -> None:
        """The older name of `reset_state`."""
        self.reset_state()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Take a batch into account, and give the result so far."""
        self.update_state(*args, **kwargs)
        return self.result()

    def get_config(self) -> dict[str, Any]:
        """The settings, as values that JSON can hold."""
        return {"name": self.name, "dtype": self._dtype}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Any:
        """A metric from what `get_config` gave, without state."""
        return cls(**config_of(config))

    def save_own_variables(self, store: Any) -> None:
        """Write the variables to `store`, under their numbers."""
        for n, variable in enumerate(self._variables):
            store[str(n)] = variable.numpy()

    def load_own_variables(self, store: Any) -> None:
        """Read the variables from what `save_own_variables` wrote.

        Raises:
            ValueError: there are more or fewer.
        """
        if len(store.keys()) != len(self._variables):
            raise ValueError(f"Metric {self.name!r} has {len(self._variables)} variables; the stored one has "
                             f"{len(store.keys())}.")
        for n, variable in enumerate(self._variables):
            variable.assign(tf.cast(store[str(n)][()], variable.dtype))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} name={self.name}>"
