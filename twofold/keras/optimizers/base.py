"""What all optimizers share: variables, clipping, weight decay, averages, accumulation, configs.

An optimizer adds three methods to this: `build` makes its variables, `update_step` moves one variable, and `get_config`
names its settings. The update is written with plain ops and assignments, so that inside a `tf.function` those of all
variables are compiled together; `eager_update.py` compiles it where there is no such function. The variables
themselves are `slots.py`'s.
"""

from __future__ import annotations

import copy
import numbers
import re
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np

import twofold as tf
from twofold._front import replica
from twofold._front.api import listed
from twofold._front.together import making, together

from ..configs import config_of
from ..naming import auto_name
from ..scalars import number
from ..serialization import deserialize_keras_object, serialize_keras_object
from . import gradients as gr
from .eager_update import EagerUpdate
from .schedules import LearningRateSchedule
from .slots import Slots, path_of

__all__ = ["Optimizer", "when"]

_OWN = __name__.rpartition(".")[0]

#: values that are the same for all variables in the update that this context is at
_shared: ContextVar[dict[Any, Any] | None] = ContextVar("shared_values", default=None)


class Optimizer(Slots):
    """The base of all optimizers.

    A new one overrides `build` (which makes variables with `add_optimizer_variables`), `update_step` and `get_config`.

    Args:
        learning_rate: a number, a `tf.keras.optimizers.schedules.LearningRateSchedule`, a function of no arguments,
            or a scalar variable.
        weight_decay: what part of a variable, times the learning rate, is taken off it before each update.
        clipnorm: each gradient is scaled down to this norm where it is longer.
        clipvalue: each element of a gradient is moved into [-clipvalue, clipvalue].
        global_clipnorm: all gradients are scaled down by one factor where their common norm is longer than this.
        use_ema: whether to keep moving averages of the variables.
        ema_momentum: the part of an average that stays in each step, in [0, 1].
        ema_overwrite_frequency: after how many steps the variables become their averages; by default only when
            `finalize_variable_values` is called, as `fit` does at its end.
        loss_scale_factor: what `scale_loss` multiplies a loss by, and gradients are divided by.
        gradient_accumulation_steps: over how many calls gradients are averaged before variables move.
        name: by default the class's in snake case.
        **kwargs: `lr` for `learning_rate`, as in older programs; `decay`, which has no effect, with a warning.
    Raises:
        ValueError: more than one kind of clipping, a setting out of its range, or an unknown argument.

    >>> import twofold as tf
    >>> class SignDescent(tf.keras.optimizers.Optimizer):
    ...     def update_step(self, gradient, variable, learning_rate):
    ...         variable.assign_sub(learning_rate * tf.sign(gradient))
    >>> v = tf.Variable([1.0, 2.0])
    >>> count = SignDescent(0.5).apply_gradients([(tf.constant([3.0, -4.0]), v)])
    >>> v.numpy().tolist()
    [0.5, 2.5]
    """

    def __init__(self, learning_rate: Any = 0.001, weight_decay: float | None = None, clipnorm: float | None = None,
                 clipvalue: float | None = None, global_clipnorm: float | None = None, use_ema: bool = False,
                 ema_momentum: float = 0.99, ema_overwrite_frequency: int | None = None,
                 loss_scale_factor: float | None = None, gradient_accumulation_steps: int | None = None,
                 name: str | None = None, **kwargs: Any):
        learning_rate = _older_arguments(type(self).__name__, learning_rate, kwargs)
        if sum(value is not None for value in (clipnorm, clipvalue, global_clipnorm)) > 1:
            raise ValueError("Only one of `clipnorm`, `clipvalue` and `global_clipnorm` can be set; got clipnorm="
                             f"{clipnorm}, clipvalue={clipvalue}, global_clipnorm={global_clipnorm}.")
        if gradient_accumulation_steps and gradient_accumulation_steps < 2:
            raise ValueError("`gradient_accumulation_steps` must be an integer >= 2; got "
                             f"{gradient_accumulation_steps}.")
        if use_ema:
            _check_averages(ema_momentum, ema_overwrite_frequency)
        self.name = name or auto_name(type(self))
        self.weight_decay = weight_decay
        self.clipnorm, self.clipvalue, self.global_clipnorm = clipnorm, clipvalue, global_clipnorm
        self.use_ema, self.ema_momentum = use_ema, ema_momentum
        self.ema_overwrite_frequency = ema_overwrite_frequency
        self.loss_scale_factor = loss_scale_factor
        self.gradient_accumulation_steps = gradient_accumulation_steps
        self.built = self._ready = False
        self._variables: list[tf.Variable] = []
        self._trainable_variables: list[tf.Variable] = []
        self._index: dict[int, int] = {}
        self._undecayed: tuple[set[int], re.Pattern[str] | None] = (set(), None)
        self._eager_update = EagerUpdate(self)
        self._iterations: Any = self.add_variable((), dtype=tf.int64, name="iteration")
        self._learning_rate: Any = self._as_rate(learning_rate)

    # -- variables --------------------------------------------------------------------------------
    def build(self, variables: Sequence[tf.Variable]) -> None:
        """Make the optimizer's variables for `variables`; `apply` does it when it is first called.

        Args:
            variables: the variables that the optimizer will move, all of them.
        """
        if self.built:
            return
        variables = listed(variables, "variables")
        self._index = {id(variable): n for n, variable in enumerate(variables)}
        if self.use_ema:
            self._model_variables_moving_average = self.add_optimizer_variables(variables, "average")
        if self.gradient_accumulation_steps:
            self._accumulated_gradients = self.add_optimizer_variables(variables, "gradient_accumulator")
        self._trainable_variables = variables
        self.built = True

    def _get_variable_index(self, variable: tf.Variable) -> int:
        """The place of a variable of the model among those that the optimizer was built with."""
        return self._index[id(variable)]

    def __copy__(self) -> Any:
        return copy.deepcopy(self)  # as in Keras, a copy has variables of its own

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("_index", "_eager_update")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the state of another optimizer, but for what goes by identities, which is made anew."""
        vars(self).update(state)
        self._index = {id(variable): n for n, variable in enumerate(self._trainable_variables)}
        self._eager_update = EagerUpdate(self)

    # -- settings ---------------------------------------------------------------------------------
    @property
    def iterations(self) -> Any:
        """How many updates there were: an int64 variable, or with accumulated gradients a tensor."""
        if self.gradient_accumulation_steps:
            return self._iterations // self.gradient_accumulation_steps
        return self._iterations

    @property
    def learning_rate(self) -> Any:
        """The learning rate: a variable to which a number can be assigned, or the present value of a schedule or
        function."""
        rate = self._learning_rate
        if isinstance(rate, LearningRateSchedule):
            return rate(self._iterations)
        return rate if isinstance(rate, tf.Variable) else rate()

    @learning_rate.setter
    def learning_rate(self, value: Any) -> None:
        is_variable = isinstance(self._learning_rate, tf.Variable)
        if callable(value) and not isinstance(value, tf.Variable):
            if is_variable:
                self._variables = [v for v in self._variables if v is not self._learning_rate]
            self._learning_rate = value
        elif not is_variable:
            raise TypeError("This optimizer's learning rate is a schedule or a function, so that no number can be "
                            "assigned to it: make the optimizer with a number, or assign another schedule.")
        else:
            self._learning_rate.assign(number(value, self._learning_rate.dtype))

    lr = learning_rate

    def _as_rate(self, value: Any) -> Any:
        if isinstance(value, tf.Variable):
            self._variables.append(value)
            return value
        if isinstance(value, bool) or not isinstance(value, (numbers.Real, np.floating, np.integer)):
            if callable(value) and not isinstance(value, type):
                return value
            raise ValueError("`learning_rate` must be a number, a LearningRateSchedule, or a function of no arguments "
                             f"that gives the learning rate; got {value!r}.")
        return self.add_variable((), float(value), name="learning_rate")

    def exclude_from_weight_decay(self, var_list: Iterable[tf.Variable] | None = None,
                                  var_names: Iterable[str] | None = None) -> None:
        """Leave variables out of weight decay; call it before the optimizer is built.

        Args:
            var_list: variables to leave out.
            var_names: patterns; a variable in whose name one is found is left out.
        Raises:
            ValueError: the optimizer is built already.

        >>> import twofold as tf
        >>> tf.keras.optimizers.AdamW().exclude_from_weight_decay(var_names=["bias"])
        """
        if self.built:
            raise ValueError("`exclude_from_weight_decay()` must be called before the optimizer is built.")
        names = [] if var_names is None else listed(var_names, "var_names")
        pattern = re.compile("|".join(sorted(set(names)))) if names else None
        variables = [] if var_list is None else listed(var_list, "var_list")
        self._undecayed = ({id(variable) for variable in variables}, pattern)

    def _use_weight_decay(self, variable: tf.Variable) -> bool:
        excluded, pattern = self._undecayed
        return id(variable) not in excluded and (pattern is None or not pattern.search(path_of(variable)))

    # -- updates ----------------------------------------------------------------------------------
    @abstractmethod
    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        """Move one variable; each optimizer has its own.

        Args:
            gradient: of the variable's shape.
            variable: the variable.
            learning_rate: a scalar.
        """
        raise NotImplementedError(f"{type(self).__name__} has no update_step.")

    def assign(self, variable: tf.Variable, value: Any) -> None:
        """Give a variable a value, converted to its dtype."""
        variable.assign(number(value, variable.dtype))

    def assign_add(self, variable: tf.Variable, value: Any) -> None:
        """Add a value, converted to the variable's dtype."""
        variable.assign_add(number(value, variable.dtype))

    def assign_sub(self, variable: tf.Variable, value: Any) -> None:
        """Subtract a value, converted to the variable's dtype."""
        variable.assign_sub(number(value, variable.dtype))

    def apply_gradients(self, grads_and_vars: Iterable[tuple[Any, tf.Variable]], name: str | None = None,
                        skip_gradients_aggregation: bool = False,
                        experimental_aggregate_gradients: bool = True) -> Any:
        """Move variables by their gradients.

        Args:
            grads_and_vars: pairs of a gradient (None where there is none) and a variable.
            name: accepted, without effect.
            skip_gradients_aggregation, experimental_aggregate_gradients: whether gradients are taken as they are, or
                summed over the replicas of a strategy, where this is called in one (`tf.distribute`).
        Returns:
            The number of calls so far, an int64 variable.
        Raises:
            ValueError: no variable has a gradient, or one is not among those the optimizer was built with.

        >>> import twofold as tf
        >>> v = tf.Variable(1.0)
        >>> tf.keras.optimizers.SGD(0.5).apply_gradients([(tf.constant(1.0), v)]).numpy(), v.numpy()
        (np.int64(1), np.float32(0.5))
        """
        pairs = listed(grads_and_vars, "grads_and_vars")
        if not pairs:
            raise ValueError("No gradients provided for any variable: `grads_and_vars` is empty.")
        gradients = [gradient for gradient, _ in pairs]
        if replica.here.get().of > 1 and experimental_aggregate_gradients and not skip_gradients_aggregation:
            gradients = gr.summed_over_replicas(gradients)
        self.apply(gradients, [variable for _, variable in pairs])
        return self._iterations

    def apply(self, grads: Sequence[Any], trainable_variables: Sequence[tf.Variable] | None = None) -> None:
        """Move variables by their gradients.

        Args:
            grads: a gradient for each variable, None where there is none.
            trainable_variables: the variables; by default those the optimizer was built with.
        Raises:
            ValueError: no variable has a gradient, one is not among those the optimizer was built with, or there are
                not as many gradients as variables.

        >>> import twofold as tf
        >>> v = tf.Variable([1.0, 2.0])
        >>> tf.keras.optimizers.SGD(0.5).apply([tf.constant([1.0, 1.0])], [v])
        >>> v.numpy().tolist()
        [0.5, 1.5]
        """
        grads = listed(grads, "grads")
        if not grads:
            return
        variables = self._variables_of(grads, trainable_variables)
        grads, variables = gr.without_missing(grads, variables, self._keeps_slices())
        with replica.assigning_alike():
            if not self._eager_update(grads, variables):
                with together([*self.variables, *variables]):
                    self._apply(grads, variables, self.learning_rate)
                    self._iterations.assign_add(1)
            self._apply_constraints(variables)

    def _keeps_slices(self) -> bool:
        """Whether `update_step` gets gradients as `tf.IndexedSlices` where they are such; sums of several calls are
        dense, and steps of other classes than ours take tensors."""
        return type(self).update_step.__module__.startswith(_OWN) and not self.gradient_accumulation_steps

    def _apply_constraints(self, variables: Sequence[tf.Variable]) -> None:
        for variable in variables:
            if variable.constraint is not None:
                with together([variable]):
                    variable.assign(variable.constraint(variable))

    def _build(self, variables: Sequence[tf.Variable]) -> None:
        """Build, or stay unbuilt where a trace may not make variables: the first is refused then."""
        try:
            self.build(variables)
        except ValueError:
            self.built = False
            raise

    def _variables_of(self, grads: Sequence[Any], variables: Sequence[tf.Variable] | None) -> list[tf.Variable]:
        """The variables that `grads` are for; the optimizer is built where it was not."""
        if variables is None:
            if not self.built:
                raise ValueError("Gradients without variables need an optimizer that is built: call "
                                 "`optimizer.build(trainable_variables)` first.")
            variables = self._trainable_variables
        else:
            variables = listed(variables, "variables")
            if not self._ready:
                with making:  # several threads may make the first call
                    if not self.built:
                        self._build(variables)
                    self._ready = True  # `built` is set before the variables of all classes are there
        if len(grads) != len(variables):
            raise ValueError(f"There must be a gradient, or None, for each variable; got {len(grads)} gradients for "
                             f"{len(variables)} variables.")
        for variable in variables:
            if id(variable) not in self._index:
                raise ValueError(f"Unknown variable: {variable!r}. This optimizer can only be called for the variables "
                                 "it was originally built with. For a new set of variables make a new optimizer.")
        return variables

    def _apply(self, grads: Sequence[Any], variables: Sequence[tf.Variable], learning_rate: Any) -> None:
        """What becomes of gradients, but for constraints and the count of iterations."""
        if self.loss_scale_factor is not None:
            grads = [gr.of_values(lambda values: values / self.loss_scale_factor, gradient) for gradient in grads]
        if self.gradient_accumulation_steps:
            self._accumulate(grads, variables, learning_rate)
        else:
            self._update(grads, variables, learning_rate)
        if self.use_ema:
            self._average()

    def _update(self, grads: Sequence[Any], variables: Sequence[tf.Variable], learning_rate: Any) -> None:
        grads = self._clip_gradients(grads)
        token = _shared.set({})  # of this thread alone, and of no trace that is under way elsewhere
        try:
            self._apply_weight_decay(variables, learning_rate)
            self._backend_update_step(grads, variables, learning_rate)
        finally:
            _shared.reset(token)  # a trace's tensors must not outlive it

    def _backend_update_step(self, grads: Sequence[Any], variables: Sequence[tf.Variable], learning_rate: Any) -> None:
        for gradient, variable in zip(grads, variables, strict=True):
            self.update_step(gradient, variable, learning_rate)

    def _once(self, what: str, dtype: tf.DType, value: Callable[[], Any]) -> Any:
        """A value that is the same for all variables of a dtype in one update, computed once."""
        shared = _shared.get()
        if shared is None:
            return value()
        key = (id(self), what, dtype)
        if key not in shared:
            shared[key] = value()
        return shared[key]

    def _rate(self, learning_rate: Any, dtype: tf.DType) -> Any:
        """The learning rate as a tensor of `dtype`."""
        return self._once("learning_rate", dtype, lambda: number(learning_rate, dtype))

    def _step(self, dtype: tf.DType) -> Any:
        """The number of this update, counting from 1, as a scalar of `dtype`."""
        return self._once("step", dtype, lambda: tf.cast(self.iterations + 1, dtype))

    def _for_all(self, what: str, dtype: tf.DType, value: Callable[[tf.DType], Any]) -> Any:
        """A scalar of `dtype` for all variables of that dtype; `value` computes it in at least 32 bits.

        In 16 bits 0.999 is 1, and a mean of squares would never be made up for its beginning at 0.
        """
        wide = tf.float32 if dtype.size < 4 else dtype
        return self._once(what, dtype, lambda: number(value(wide), dtype))

    def _apply_weight_decay(self, variables: Sequence[Any], learning_rate: Any) -> None:
        for variable in variables:
            decay = self._decay_of(variable)
            if decay is not None:
                variable.assign_sub(variable * decay * self._rate(learning_rate, variable.dtype))

    def _decay_of(self, variable: tf.Variable) -> float | None:
        """The weight decay of a variable."""
        return self.weight_decay if self.weight_decay is not None and self._use_weight_decay(variable) else None

    def _clip_gradients(self, grads: Sequence[Any]) -> Sequence[Any]:
        if self.clipnorm and self.clipnorm > 0:
            return [gr.clip_by_norm(gradient, self.clipnorm) for gradient in grads]
        if self.global_clipnorm and self.global_clipnorm > 0:
            return gr.clip_by_global_norm(grads, self.global_clipnorm)
        if self.clipvalue and self.clipvalue > 0:
            most = self.clipvalue
            return [gr.of_values(lambda values: tf.clip_by_value(values, -most, most), gradient) for gradient in grads]
        return grads

    def _accumulate(self, grads: Sequence[Any], variables: Sequence[tf.Variable], learning_rate: Any) -> None:
        """Every `gradient_accumulation_steps`th call moves variables by the mean; the others add to the sum."""
        steps: Any = self.gradient_accumulation_steps
        sums = [self._accumulated_gradients[self._get_variable_index(variable)] for variable in variables]

        def update() -> None:
            means = [(gradient + total) / steps for gradient, total in zip(grads, sums, strict=True)]
            self._update(means, variables, learning_rate)
            for total in self._accumulated_gradients:
                total.assign(tf.zeros(total.shape, total.dtype))

        def add() -> None:
            for gradient, total in zip(grads, sums, strict=True):
                total.assign_add(gradient)

        when(tf.equal((self._iterations + 1) % steps, 0), update, add)

    # -- averages ---------------------------------------------------------------------------------
    def _average(self) -> None:
        """Take the variables into their moving averages, and give them back every so often."""
        count = self.iterations
        for variable, average in zip(self._trainable_variables, self._model_variables_moving_average, strict=True):
            kept = tf.cast(tf.not_equal(count, 0), variable.dtype) * self.ema_momentum
            average.assign(kept * average + (1 - kept) * variable)
        if self.ema_overwrite_frequency:
            due = tf.equal((count + 1) % self.ema_overwrite_frequency, 0)
            when(due, lambda: self.finalize_variable_values(self._trainable_variables), lambda: None)

    def finalize_variable_values(self, var_list: Sequence[tf.Variable]) -> None:
        """Give variables their moving averages, where there are such; `fit` calls it at its end.

        Args:
            var_list: the variables of the model, as many as the optimizer was built with.
        Raises:
            ValueError: there are more or fewer.

        >>> import twofold as tf
        >>> optimizer, v = tf.keras.optimizers.SGD(1.0, use_ema=True, ema_momentum=0.5), tf.Variable(0.0)
        >>> for _ in range(2): count = optimizer.apply_gradients([(tf.constant(-1.0), v)])
        >>> optimizer.finalize_variable_values([v])
        >>> v.numpy()
        np.float32(1.5)
        """
        if not self.use_ema:
            return
        averages = self._model_variables_moving_average
        if len(var_list) != len(averages):
            raise ValueError(f"There are {len(averages)} moving averages, and {len(var_list)} variables to take them: "
                             "was the optimizer used for this model?")
        for variable, average in zip(var_list, averages, strict=True):
            variable.assign(average)

    # -- losses -----------------------------------------------------------------------------------
    def scale_loss(self, loss: Any) -> Any:
        """The loss to take gradients of: `loss` times `loss_scale_factor`, where there is one.

        >>> import twofold as tf
        >>> tf.keras.optimizers.SGD(loss_scale_factor=8.0).scale_loss(tf.constant(2.0)).numpy()
        np.float32(16.0)
        """
        return loss if self.loss_scale_factor is None else loss * self.loss_scale_factor

    def compute_gradients(self, loss: Any, var_list: Any, tape: Any = None) -> list[tuple[Any, tf.Variable]]:
        """The gradients of a loss, with their variables.

        Args:
            loss: a function of no arguments; or a tensor, with the tape that recorded it.
            var_list: variables, or a function of no arguments that gives them.
            tape: the tape, where `loss` is a tensor.
        Returns:
            Pairs of a gradient (None where there is none) and a variable.
        Raises:
            ValueError: `loss` is a tensor without a tape.

        >>> import twofold as tf
        >>> v = tf.Variable(3.0)
        >>> tf.keras.optimizers.SGD().compute_gradients(lambda: v * v, [v])[0][0].numpy()
        np.float32(6.0)
        """
        if not callable(loss) and tape is None:
            raise ValueError("`tape` is required when `loss` is a tensor.")
        if callable(loss):
            with (tape if tape is not None else tf.GradientTape()) as tape:
                loss = self.scale_loss(loss())
        variables = listed(var_list() if callable(var_list) else var_list, "var_list")
        return list(zip(tape.gradient(loss, variables), variables, strict=True))

    def minimize(self, loss: Any, var_list: Any, tape: Any = None, name: str | None = None) -> Any:
        """Move variables so that a loss becomes smaller: `compute_gradients`, then `apply_gradients`.

        Args:
            loss: a function of no arguments; or a tensor, with the tape that recorded it.
            var_list: variables, or a function of no arguments that gives them.
            tape: the tape, where `loss` is a tensor.
            name: has no effect.
        Returns:
            The number of updates so far, an int64 variable.
        Raises:
            ValueError: `loss` is a tensor without a tape, or no variable has a gradient.

        >>> import twofold as tf
        >>> v = tf.Variable(3.0)
        >>> count = tf.keras.optimizers.SGD(0.1).minimize(lambda: v * v, [v])
        >>> v.numpy()
        np.float32(2.4)
        """
        return self.apply_gradients(self.compute_gradients(loss, var_list, tape))

    # -- configs and weights ----------------------------------------------------------------------
    def get_config(self) -> dict[str, Any]:
        """The settings, as values that JSON can hold; `from_config` makes an optimizer like this one, without state."""
        return {"name": self.name, "learning_rate": self._rate_config(), "weight_decay": self.weight_decay,
                "clipnorm": self.clipnorm, "global_clipnorm": self.global_clipnorm, "clipvalue": self.clipvalue,
                "use_ema": self.use_ema, "ema_momentum": self.ema_momentum,
                "ema_overwrite_frequency": self.ema_overwrite_frequency,
                "loss_scale_factor": self.loss_scale_factor,
                "gradient_accumulation_steps": self.gradient_accumulation_steps}

    def _rate_config(self) -> Any:
        rate = self._learning_rate
        return float(rate.numpy()) if isinstance(rate, tf.Variable) else serialize_keras_object(rate)

    @classmethod
    def from_config(cls, config: Mapping[str, Any], custom_objects: Mapping[str, Any] | None = None) -> Optimizer:
        """An optimizer from what `get_config` gave.

        Args:
            config: the settings.
            custom_objects: names in it that are the user's own, with what they stand for.
        """
        config = config_of(config)
        if isinstance(config.get("learning_rate"), Mapping):
            config["learning_rate"] = deserialize_keras_object(config["learning_rate"], custom_objects=custom_objects)
        return cls(**config)

def when(condition: Any, then: Callable[[], None], otherwise: Callable[[], None]) -> None:
    """Do one thing or the other, which assign and give nothing, in either mode."""
    def told(do: Callable[[], None]) -> Callable[[], Any]:
        def branch() -> Any:
            do()
            return tf.constant(0)  # branches of compiled functions give values
        return branch

    tf.cond(condition, told(then), told(otherwise))


def _older_arguments(name: str, learning_rate: Any, kwargs: dict[str, Any]) -> Any:
    """The learning rate, from where older programs have it; unknown arguments are an error."""
    if "lr" in kwargs:
        warnings.warn(f"{name}: the argument `lr` is called `learning_rate`.", stacklevel=4)
        learning_rate = kwargs.pop("lr")
    if kwargs.pop("decay", None):
        warnings.warn(f"{name}: the argument `decay` has no effect; use a learning rate of "
                      "tf.keras.optimizers.schedules.InverseTimeDecay(learning_rate, 1, decay).", stacklevel=4)
    if kwargs:
        raise ValueError(f"Argument(s) not recognized: {kwargs}")
    return learning_rate


def _check_averages(momentum: Any, frequency: Any) -> None:
    if not 0 <= momentum <= 1:
        raise ValueError(f"`ema_momentum` must be in the range [0, 1]; got {momentum}.")
    if frequency and (not isinstance(frequency, int) or frequency < 1):
        raise ValueError(f"`ema_overwrite_frequency` must be an integer >= 1 or None; got {frequency}.")
