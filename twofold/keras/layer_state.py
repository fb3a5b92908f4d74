"""The state of a layer: variables, layers and metrics in its attributes, and losses of its last call.

Nothing is listed twice: the names of the attributes that may hold state are noted when they are set, and lists are
made from what these hold when they are asked for, so that layers in lists and dicts that change are seen.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

import twofold as tf
from twofold._front import replica
from twofold._front.api import as_numpy, for_the_user, listed
from twofold.tracking import Trackable, is_tracked

__all__ = ["LayerState", "losses_there_were", "within"]

losses_there_were: list[bool] = []  # holds something once a layer has added a loss: calls clear losses from then on
_DECIDING = frozenset({"activity_regularizer", "autocast", "call", "input_spec", "supports_masking"})
_HOLDERS = (tf.Variable, Trackable, list, tuple, dict)


class LayerState(tf.Module):
    """The base of layers below their calls: weights, losses, metrics, and the layers within."""

    _trainable: bool

    _TF_MODULE_IGNORED_PROPERTIES = frozenset({
        *tf.Module._TF_MODULE_IGNORED_PROPERTIES, "_tracked", "_added_weights", "_losses", "_loss_functions",
        "_added_metrics", "_given"})

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        self = object.__new__(cls)
        own = self.__dict__
        own["_tracked"] = {}  # the names of the attributes that may hold state, in the order in which they were set
        own["_added_weights"] = []
        own["_added_metrics"] = []
        own["_losses"] = []
        own["_loss_functions"] = []
        own["_trainable"] = True
        own["_given"] = (args, kwargs)  # what the constructor was given, for `get_config`
        return self

    @for_the_user
    def __setattr__(self, name: str, value: Any) -> None:
        own = self.__dict__
        tracked = own["_tracked"]
        if isinstance(value, _HOLDERS):
            tracked[name] = own["_fast"] = None
        elif name in tracked:
            del tracked[name]
        if name in _DECIDING:
            own["_fast"] = None
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        self.__dict__["_tracked"].pop(name, None)
        super().__delattr__(name)

    # -- the object graph -------------------------------------------------------------------------
    def __getstate__(self) -> dict[str, Any]:
        """The attributes without the calls in functional models, which are theirs to copy, and without the functions
        that a quick call goes to, which the next call finds again."""
        return {name: value for name, value in vars(self).items() if name not in ("_inbound_nodes", "_fast")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)

    def _needs_no_build(self) -> bool:
        """Whether there is nothing left to build, whatever `build` is given."""
        return False

    def __copy__(self) -> Any:
        return copy.deepcopy(self)  # as in Keras, a copy has weights of its own

    def _held(self) -> Iterator[Any]:
        """The variables, layers and other trackable objects in the attributes, in order; perhaps more than once."""
        own = self.__dict__
        for name in list(own["_tracked"]):
            value = own.get(name)
            if isinstance(value, (tf.Variable, Trackable)):
                yield value
            else:
                yield from within(value)
        yield from own["_added_metrics"]

    def _tracked_children(self) -> dict[str, Any]:
        own = self.__dict__
        children = {name: own[name] for name in own["_tracked"] if name in own and is_tracked(own[name])}
        listed = {id(v) for v in children.values()}
        for variable in own["_added_weights"]:
            name = variable.name.rsplit("/", 1)[-1].partition(":")[0]
            if id(variable) not in listed and name not in children:
                children[name] = variable
        return children

    def _functions_to_save(self) -> dict[str, Any]:
        """The functions of this object that a saved model holds besides its children: those that its class or user
        made."""
        from twofold.saved_model.collect import functions_of
        return {name: value for name, value in functions_of(self).items() if not name.startswith("_")}

    def _sublayers(self) -> list[Any]:
        """The layers in the attributes, each once."""
        return list({id(x): x for x in self._held() if isinstance(x, LayerState)}.values())

    def _flatten_layers(self, recursive: bool = True, include_self: bool = True) -> Iterator[Any]:
        """This layer and those within, each once, outer ones first."""
        seen: set[int] = {id(self)}
        if include_self:
            yield self
        stack = self._sublayers()[::-1]
        while stack:
            layer = stack.pop()
            if id(layer) in seen:
                continue
            seen.add(id(layer))
            yield layer
            if recursive:
                stack += layer._sublayers()[::-1]

    # -- weights ----------------------------------------------------------------------------------
    def _own_variables(self) -> list[tf.Variable]:
        """The variables of this layer itself: those it added, then those in its attributes."""
        variables = list(self.__dict__["_added_weights"])
        seen = {id(v) for v in variables}
        for value in self._held():
            if isinstance(value, tf.Variable) and id(value) not in seen:
                seen.add(id(value))
                variables.append(value)
        return variables

    def _parts(self) -> tuple[list[tf.Variable], list[Any]]:
        """The own variables, and the layers and modules whose variables are weights, too."""
        variables = {id(v): v for v in self.__dict__["_added_weights"]}
        parts: dict[int, Any] = {}
        for value in self._held():
            if isinstance(value, tf.Variable):
                variables[id(value)] = value
            elif isinstance(value, tf.Module) and not _is_metric(value) and not hasattr(value, "apply_gradients"):
                parts[id(value)] = value
        return list(variables.values()), list(parts.values())

    def _gather(self, wanted: str) -> list[tf.Variable]:
        """The weights of a kind ("weights", "trainable" or "non_trainable"), those of this layer first."""
        weights: dict[int, tf.Variable] = {}
        if wanted != "trainable" or self._trainable:
            self._gather_into(weights, wanted, set())
        return list(weights.values())

    def _gather_into(self, weights: dict[int, tf.Variable], wanted: str, seen: set[int]) -> None:
        """Each layer's own flag decides: one thawed within a frozen one is trained with a model around both."""
        if id(self) in seen:
            return
        seen.add(id(self))
        own, parts = self._parts()
        if not self._trainable:
            wanted_here = {"trainable": "", "non_trainable": "weights"}.get(wanted, wanted)
        else:
            wanted_here = wanted
        for kind in (True, False) if wanted_here else ():
            if wanted_here != ("non_trainable" if kind else "trainable"):
                for variable in own:
                    if variable.trainable is kind:
                        weights[id(variable)] = variable
        for part in parts:
            if isinstance(part, LayerState):
                part._gather_into(weights, wanted, seen)
            else:
                for variable in _of_module(part, wanted_here) if wanted_here else ():
                    weights[id(variable)] = variable

    @property
    def weights(self) -> list[tf.Variable]:
        """All weights: of each layer its trainable ones, then the others; this layer's first."""
        return self._gather("weights")

    @property
    def trainable_weights(self) -> list[tf.Variable]:
        """The weights that training changes, of layers that are not frozen."""
        return self._gather("trainable")

    @property
    def non_trainable_weights(self) -> list[tf.Variable]:
        """The weights that training does not change by gradients; all of a frozen layer's."""
        return self._gather("non_trainable")

    @property
    def variables(self) -> list[tf.Variable]:  # type: ignore[override]
        """The weights, and the state of the random generators of layers."""
        variables = {id(v): v for v in self.weights}
        for layer in self._flatten_layers():
            for value in layer._held():
                state = getattr(value, "state", None)
                if isinstance(state, tf.Variable) and not isinstance(value, LayerState):
                    variables[id(state)] = state
        return list(variables.values())

    @property
    def trainable_variables(self) -> list[tf.Variable]:  # type: ignore[override]
        """The same as `trainable_weights`."""
        return self._gather("trainable")

    @property
    def non_trainable_variables(self) -> list[tf.Variable]:  # type: ignore[override]
        """Those of `variables` that gradients do not train."""
        trained = {id(v) for v in self.trainable_weights}
        return [v for v in self.variables if id(v) not in trained]

    @property
    def trainable(self) -> bool:
        """Whether training changes the weights; setting it sets it for the layers within as well."""
        return self._trainable

    @trainable.setter
    def trainable(self, value: bool) -> None:
        value = bool(value)
        for layer in self._flatten_layers():
            layer.__dict__["_trainable"] = value

    def count_params(self) -> int:
        """The number of elements of all weights.

        Raises:
            ValueError: the layer has no weights yet because it was not built.
        """
        if not getattr(self, "built", True):
            raise ValueError(f"You tried to call `count_params` on layer '{self.name}', but the layer isn't built. You "
                             f"can build it manually via: `{self.name}.build(input_shape)`.")
        return sum(int(np.prod(v.dims)) for v in self.weights)

    def get_weights(self) -> list[np.ndarray]:
        """The values of `weights` as NumPy arrays."""
        with replica.reading_own():
            return [np.asarray(v.numpy()) for v in self.weights]

    def set_weights(self, weights: Any) -> None:
        """Set the values of `weights`.

        Args:
            weights: arrays in the order and of the shapes of `get_weights()`.
        Raises:
            ValueError: there are more or fewer arrays than weights, or a shape differs; nothing is changed then.
        """
        have = self.weights
        weights = listed(weights, "weights")
        if len(have) != len(weights):
            raise ValueError(f"You called `set_weights(weights)` on layer '{self.name}' with a weight list of length "
                             f"{len(weights)}, but the layer was expecting {len(have)} weights.")
        arrays = [as_numpy(w) for w in weights]
        for variable, array in zip(have, arrays, strict=True):
            if variable.dims != array.shape:
                raise ValueError(f"Layer {self.name} weight shape {variable.dims} is not compatible with provided "
                                 f"weight shape {array.shape}.")
        values = [tf.cast(array, variable.dtype) for variable, array in zip(have, arrays, strict=True)]
        for variable, value in zip(have, values, strict=True):
            variable.assign(value)

    # -- losses -----------------------------------------------------------------------------------
    def add_loss(self, loss: Any) -> None:
        """Add a scalar loss, or a list of them, to those of this call.

        Args:
            loss: tensors, numbers, or functions of no arguments that are called whenever `losses` is read.
        """
        losses_there_were[:] = [True]
        for one in tf.nest.flatten(loss):
            if callable(one):
                self.__dict__["_loss_functions"].append(one)
            elif one is not None:
                self.__dict__["_losses"].append(one)

    def _clear_losses(self) -> None:
        for layer in self._flatten_layers():
            layer.__dict__["_losses"].clear()

    @property
    def losses(self) -> list[Any]:
        """The losses that the last call added here and in the layers within, and those of regularizers."""
        losses: list[Any] = []
        for layer in self._flatten_layers():
            losses += [x for x in layer.__dict__["_losses"] if not _is_left_over(x)]
            losses += [function() for function in layer.__dict__["_loss_functions"]]
        for variable in self.trainable_weights:
            regularizer = getattr(variable, "regularizer", None)
            if regularizer is not None:
                losses.append(regularizer(variable))
        return losses

    # -- metrics ----------------------------------------------------------------------------------
    def add_metric(self, value: Any, name: str | None = None, aggregation: str | None = None) -> None:
        """Follow a value as the mean over the calls since the metrics were last reset.

        Args:
            value: a tensor, of which the mean over its elements counts; or a metric, which is kept as it is.
            name: the name under which `fit` reports it.
            aggregation: "mean" or None; has no effect.
        """
        del aggregation
        if _is_metric(value):
            self.__dict__["_added_metrics"].append(value)
            return
        name = name or getattr(value, "name", None) or "metric"
        metric = next((m for m in self.__dict__["_added_metrics"] if m.name == name), None)
        if metric is None:
            from .metrics import Mean
            with tf.init_scope():
                metric = Mean(name=name)
            self.__dict__["_added_metrics"].append(metric)
        metric.update_state(value)

    @property
    def metrics(self) -> list[Any]:
        """The metrics of this layer and the layers within."""
        metrics = {id(m): m for layer in self._flatten_layers() for m in layer._held() if _is_metric(m)}
        return list(metrics.values())

    @property
    def metrics_variables(self) -> list[tf.Variable]:
        """The variables of the metrics."""
        return [v for metric in self.metrics for v in metric.variables]

    # -- files ------------------------------------------------------------------------------------
    def save_own_variables(self, store: Any) -> None:
        """Write the variables of this layer itself into a mapping, by number."""
        own = self._own_variables()
        ordered = [v for v in own if v.trainable] + [v for v in own if not v.trainable]
        for n, variable in enumerate(ordered):
            store[str(n)] = variable.numpy()

    def load_own_variables(self, store: Any) -> None:
        """Read the variables of this layer itself from such a mapping.

        Raises:
            ValueError: there are more or fewer than the layer has, or a shape differs.
        """
        own = self._own_variables()
        ordered = [v for v in own if v.trainable] + [v for v in own if not v.trainable]
        if len(store.keys()) != len(ordered):
            state = "" if getattr(self, "built", True) else " The layer was never built, so it has no variables yet."
            raise ValueError(f"Layer '{self.name}' expected {len(ordered)} variables, but received {len(store.keys())} "
                             f"variables during loading.{state}")
        arrays = [np.asarray(store[str(n)]) for n in range(len(ordered))]
        for variable, array in zip(ordered, arrays, strict=True):
            if variable.dims != array.shape:
                raise ValueError(f"Layer '{self.name}': the shape of variable {variable.name!r} is {variable.dims}; "
                                 f"the file has {array.shape}.")
        for variable, array in zip(ordered, arrays, strict=True):
            variable.assign(array)


def within(value: Any) -> Iterator[Any]:
    """The variables and trackable objects in nested lists, tuples and dicts."""
    items = value.values() if isinstance(value, Mapping) else value if isinstance(value, (list, tuple)) else ()
    for item in items:
        if isinstance(item, (tf.Variable, Trackable)):
            yield item
        elif isinstance(item, (list, tuple, Mapping)):
            yield from within(item)


def _of_module(module: tf.Module, wanted: str) -> Any:
    if wanted == "weights":
        return module.variables
    return module.trainable_variables if wanted == "trainable" else module.non_trainable_variables


def _is_metric(value: Any) -> bool:
    return hasattr(value, "update_state") and hasattr(value, "result")


def _is_left_over(value: Any) -> bool:
    """Whether a loss is a tensor of a function whose trace has ended: it has no value here."""
    return tf.executing_eagerly() and isinstance(value, tf.Tensor) and type(value) is not tf.Tensor
