"""The variables of an optimizer: how they are made, named, kept and handed over.

**Names.** The children of an optimizer in the object graph, and so the names in checkpoints, are `_iterations`,
`_learning_rate` (where it is a number) and `_variables/N`, with N counting from 0 in the order of `variables`:
iteration, learning rate, averages and accumulated gradients where there are such, then the slots, variable by variable.
The lists of slots (`_momentums/0`, ...) are further names of the same variables.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

import twofold as tf
from twofold._front import replica
from twofold._front.api import listed
from twofold._front.function import creating
from twofold.tracking import Trackable

from .. import config as keras_config
from ..scalars import number

__all__ = ["Slots", "path_of"]

#: what slots are called by optimizers before Keras 2.11
_OLDER_SLOTS = {
    "momentum": ("m", "momentum"), "velocity": ("v", "rms"), "velocity_hat": ("vhat",), "norm": ("v",),
    "average_gradient": ("mg",), "accumulator": ("accumulator",), "linear": ("linear",),
    "accumulated_grad": ("accum_grad",), "accumulated_delta_var": ("accum_var",),
}
#: the same for the other variables; and settings that were variables then
_OLDER_CHILDREN = {"iter": "_iterations", "learning_rate": "_learning_rate", "momentum_cache": "_u_product"}
_OLDER_SETTINGS = frozenset({"beta", "beta_1", "beta_2", "decay", "epsilon", "initial_accumulator_value",
                             "l1_regularization_strength", "l2_regularization_strength", "learning_rate_power",
                             "momentum", "rho"})


class Slots(Trackable):
    """An object with variables of its own, of which some belong to variables of a model."""

    name: str
    built: bool
    _variables: list[tf.Variable]

    @property
    def variables(self) -> list[tf.Variable]:
        """The optimizer's variables: iteration, learning rate, and those that `build` made."""
        return list(self._variables)

    def add_variable(self, shape: Iterable[int], initializer: Any = "zeros", dtype: Any = None,
                     aggregation: Any = None, layout: Any = None, name: str | None = None) -> Any:
        """Make a variable of the optimizer, which is not trainable.

        Args:
            shape: its shape.
            initializer: an initialiser, its name, or a number.
            dtype: its dtype; `tf.keras.config.floatx()` by default.
            aggregation, layout: accepted, without effect.
            name: its name, which comes after the optimizer's.
        Returns:
            The variable.
        Raises:
            ValueError: it is made where a `tf.function` is traced that was traced before.

        >>> import twofold as tf
        >>> tf.keras.optimizers.SGD(name="sgd").add_variable((2,), name="speed").name
        'sgd/speed:0'
        """
        creating()
        dtype = tf.as_dtype(dtype or keras_config.floatx())
        shape = [int(n) for n in listed(shape, "A shape")]
        with tf.init_scope():
            value = _first_value(shape, initializer, dtype)
            made = tf.Variable(value, trainable=False, name=f"{self.name}/{name or 'variable'}")
        self._variables.append(made)
        return made

    def add_variable_from_reference(self, reference_variable: tf.Variable, name: str | None = None,
                                    initializer: Any = "zeros") -> Any:
        """Make a variable of the shape and dtype of `reference_variable`, named after it.

        Args:
            reference_variable: a variable of the model.
            name: what follows its name.
            initializer: an initialiser, its name, or a number.
        Returns:
            The variable.

        >>> import twofold as tf
        >>> weights = tf.Variable([1.0, 2.0], name="dense/kernel")
        >>> tf.keras.optimizers.SGD(name="sgd").add_variable_from_reference(weights, "speed").name
        'sgd/dense_kernel_speed:0'
        """
        of = re.sub(r"[/:]", "_", path_of(reference_variable).removesuffix(":0"))
        made = self.add_variable(reference_variable.dims, initializer, reference_variable.dtype,
                                 name=f"{of}_{name or 'var'}")
        made._slot = reference_variable.ref(), name
        for told in self.__dict__.get("_waiting_for_slots", ()):
            for older in _OLDER_SLOTS.get(name or "", ()):
                told(reference_variable, older, made)
        return made

    def add_optimizer_variables(self, trainable_variables: Sequence[tf.Variable], name: str | Sequence[str],
                                initializer: Any = "zeros") -> Any:
        """Make one variable, or several, for each of `trainable_variables`.

        Args:
            trainable_variables: the variables of the model.
            name: the name of the slot, or a list of names.
            initializer: an initialiser, its name, or a number; or a list of as many as names.
        Returns:
            A list of variables, or a tuple of such lists, one for each name.
        Raises:
            ValueError: there are more names than initialisers, or fewer.

        >>> import twofold as tf
        >>> weights = [tf.Variable([1.0, 2.0]), tf.Variable(0.0)]
        >>> first, second = tf.keras.optimizers.SGD().add_optimizer_variables(weights, ["first", "second"])
        >>> [v.shape.as_list() for v in first]
        [[2], []]
        """
        names = [name] if isinstance(name, str) else listed(name, "name")
        initializers = list(initializer) if isinstance(initializer, (list, tuple)) else [initializer] * len(names)
        if len(names) != len(initializers):
            raise ValueError(f"There must be as many names as initialisers; got name={name} and initializer="
                             f"{initializer}.")
        slots: list[list[Any]] = [[] for _ in names]
        for variable in listed(trainable_variables, "trainable_variables"):
            for slot, slot_name, first in zip(slots, names, initializers, strict=True):
                slot.append(self.add_variable_from_reference(variable, slot_name, first))
        return slots[0] if isinstance(name, str) else tuple(slots)

    def _tracked_children(self) -> dict[str, Any]:
        own = super()._tracked_children()
        own.pop("_trainable_variables", None)  # the model's, not the optimizer's
        return own

    # -- what TensorFlow's checkpoints call things -------------------------------------------------
    def _slot_of(self, variable: tf.Variable, name: str) -> tf.Variable | None:
        for made in self._variables:
            of, ours = getattr(made, "_slot", (None, ""))
            if of is not None and of.deref() is variable and name in _OLDER_SLOTS.get(ours, ()):
                return made
        return None

    def _known_as(self, name: str) -> str | None:
        return None if name in _OLDER_SETTINGS else _OLDER_CHILDREN.get(name, name)

    def get_weights(self) -> list[np.ndarray]:
        """The values of `variables`."""
        with replica.reading_own():
            return [variable.numpy() for variable in self.variables]

    def set_weights(self, weights: Sequence[Any]) -> None:
        """Give `variables` values.

        Args:
            weights: an array for each of `variables`, in their order.
        Raises:
            ValueError: the optimizer is not built, or numbers or shapes do not fit; nothing is changed then.

        >>> import twofold as tf
        >>> optimizer = tf.keras.optimizers.SGD(0.1)
        >>> optimizer.build([])
        >>> optimizer.set_weights([7, 0.5])
        >>> optimizer.iterations.numpy()
        np.int64(7)
        """
        if not self.built:
            raise ValueError("`set_weights()` needs an optimizer that is built: call "
                             "`optimizer.build(trainable_variables)` first.")
        if len(weights) != len(self.variables):
            raise ValueError(f"The optimizer has {len(self.variables)} variables; got {len(weights)} weights.")
        for variable, weight in zip(self.variables, weights, strict=True):
            if variable.shape.as_list() != list(np.shape(weight)):
                raise ValueError(f"Optimizer variable {variable.name} has shape {variable.shape}; got a weight of "
                                 f"shape {np.shape(weight)}.")
        values = [tf.cast(weight, variable.dtype) for variable, weight in zip(self.variables, weights, strict=True)]
        for variable, value in zip(self.variables, values, strict=True):
            variable.assign(value)

    def save_own_variables(self, store: Any) -> None:
        """Write the variables to `store`, under their numbers in `variables`."""
        for n, variable in enumerate(self.variables):
            store[str(n)] = variable.numpy()

    def load_own_variables(self, store: Any) -> None:
        """Read the variables from what `save_own_variables` wrote; warns where the numbers of variables differ."""
        if len(store.keys()) != len(self.variables):
            warnings.warn(f"The optimizer {self.name!r} has {len(self.variables)} variables and the stored one "
                          f"{len(store.keys())}: they are not loaded. Was the optimizer built?", stacklevel=2)
            return
        for n, variable in enumerate(self.variables):
            variable.assign(tf.cast(store[str(n)][()], variable.dtype))


def path_of(variable: tf.Variable) -> str:
    """A variable's name in full."""
    return getattr(variable, "path", None) or variable.name


def _first_value(shape: Sequence[int], initializer: Any, dtype: tf.DType) -> Any:
    if initializer is None or (isinstance(initializer, str) and initializer == "zeros"):
        return tf.zeros(shape, dtype)
    if isinstance(initializer, (int, float)):
        return tf.fill(shape, number(initializer, dtype))
    if not callable(initializer) or isinstance(initializer, type):
        from .. import initializers
        initializer = initializers.get(initializer)
    return tf.cast(initializer(shape, dtype=dtype), dtype)
