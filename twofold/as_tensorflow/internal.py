"""`tf.__internal__`: what TensorFlow keeps for Keras and libraries like it, so far as these use it.

Classes to test for are twofold's own. Tracking follows attributes, as `tf.Module` does.
"""

from __future__ import annotations

import abc
import contextlib
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import twofold as tf
from twofold.compat.v1.graph import Graph, current_graph
from twofold.eager.tensor import Tensor
from twofold.ir.type_spec import CompositeTensor
from twofold.tracer.concrete import ConcreteFunction
from twofold.tracer.function import Function
from twofold.tracer.symbolic import SymbolicTensor
from twofold.tracking import Trackable as _Followed

__all__ = ["namespace"]


class _EagerKind(type):
    """Tells tensors that have values from symbolic ones, which are of a class below `tf.Tensor` too."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Tensor) and not isinstance(instance, SymbolicTensor)

    def __subclasscheck__(cls, kind: type) -> bool:
        return issubclass(kind, Tensor) and not issubclass(kind, SymbolicTensor)


class EagerTensor(metaclass=_EagerKind):
    """A class to test for: tensors that have values."""


class _WiderKind(abc.ABCMeta):
    """The metaclass of classes for which `isinstance` is true of further classes, too: those in `_counted`.

    They all share it, because Keras derives classes from two of them at once.
    """

    def __instancecheck__(cls, instance: object) -> bool:
        return issubclass(type(instance), cls)

    def __subclasscheck__(cls, kind: type) -> bool:
        return super().__subclasscheck__(kind) or issubclass(kind, cls.__dict__.get("_counted", ()))


class TensorLike(metaclass=_WiderKind):
    """`__internal__.types.Tensor`: a base for classes whose objects `tf.is_tensor` takes for tensors. Tensors count as
    objects of it, too."""

    _counts_as_tensor = True
    _counted = (Tensor,)


class FuncGraph(Graph):
    """A graph in which a function is run to learn of its results, such as their shapes."""

    def __init__(self, name: str = "", *args: object, **kwargs: object) -> None:
        super().__init__()
        self.name = name


#: TensorFlow's name for the attribute, which Keras leaves out where it walks over what a file holds
_BY_NAME = "_self_unconditional_dependency_names"


class Trackable(_Followed, metaclass=_WiderKind):
    """An object that checkpoints and saved models follow. Modules, variables and tables count as objects of it, too."""

    _counted = (_Followed, tf.Variable)

    def _track_trackable(self, trackable: Any, name: str, overwrite: bool = False) -> Any:
        self.__dict__.setdefault(_BY_NAME, {})[name] = trackable
        return trackable

    def _tracked_children(self) -> dict[str, Any]:
        return self._trackable_children()

    def _functions_to_save(self) -> dict[str, Any]:
        return self._trackable_children("savedmodel")

    def _trackable_children(self, save_type: str = "checkpoint", **kwargs: Any) -> dict[str, Any]:
        """What is followed, by name; classes of libraries override it. Saved models have functions as well."""
        children = {**super()._tracked_children(), **self.__dict__.get(_BY_NAME, {})}
        return {**children, **_functions_of(self)} if save_type == "savedmodel" else children


def _functions_of(value: Any) -> dict[str, Any]:
    """The functions among all attributes, those that properties give included."""
    functions = {}
    for name in dir(value):
        try:
            item = getattr(value, name, None)
        except Exception:  # noqa: BLE001  # properties raise whatever they like where they have no value yet
            continue
        if isinstance(item, (Function, ConcreteFunction)):
            functions[name] = item
    return functions


class AutoTrackable(Trackable):
    """An object whose attributes are followed as they are set."""


def no_automatic_dependency_tracking(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method that sets attributes which are not followed; here these are looked at when something is saved."""
    return method


def smart_cond(pred: Any, true_fn: Callable[[], Any] | None = None, false_fn: Callable[[], Any] | None = None,
               name: str | None = None) -> Any:
    """One of two functions: at once where the condition is known, else by `tf.cond`."""
    if not callable(true_fn) or not callable(false_fn):
        raise TypeError("both `true_fn` and `false_fn` must be callable")
    if isinstance(pred, (Tensor, tf.Variable)):
        known = pred if isinstance(pred, tf.Variable) and tf.executing_eagerly() else tf.get_static_value(pred)
        if known is None:
            return tf.cond(pred, true_fn=true_fn, false_fn=false_fn, name=name)
        pred = bool(known)
    elif pred not in (0, 1, False, True):
        raise TypeError(f"`pred` must be a Tensor, or a Python bool, or 1 or 0. Received: {pred} of type {type(pred)}")
    return true_fn() if pred else false_fn()


def maybe_merge_call(fn: Callable[..., Any], strategy: Any, *args: Any, **kwargs: Any) -> Any:
    """A function of the strategy, called in the context that updates of variables need."""
    if strategy_supports_no_merge_call():
        return fn(strategy, *args, **kwargs)
    return tf.distribute.get_replica_context().merge_call(fn, args=args, kwargs=kwargs)


def strategy_supports_no_merge_call() -> bool:
    """Whether replicas can update variables on their own: where there is one replica, or none at work."""
    context = tf.distribute.get_replica_context()
    return context is None or context.strategy.num_replicas_in_sync == 1


@contextlib.contextmanager
def eager_mode() -> Iterator[None]:
    """A block outside of graphs."""
    with tf.init_scope():
        yield


def in_graph() -> bool:
    """Whether ops go to a graph of TensorFlow 1."""
    return current_graph() is not None


def _module(path: str, **names: Any) -> ModuleType:
    module = ModuleType(f"tensorflow.__internal__{path and '.'}{path}")
    vars(module).update(names)
    return module


def namespace() -> ModuleType:
    """`tf.__internal__` as a module."""
    from twofold.data import Dataset

    return _module(
        "", CompositeTensor=CompositeTensor, EagerTensor=EagerTensor, FuncGraph=FuncGraph,
        SymbolicTensor=SymbolicTensor,
        distribute=_module("distribute", interim=_module("distribute.interim", maybe_merge_call=maybe_merge_call),
                           strategy_supports_no_merge_call=strategy_supports_no_merge_call),
        eager_context=_module("eager_context", eager_mode=eager_mode),
        smart_cond=_module("smart_cond", smart_cond=smart_cond),
        tf2=_module("tf2", enabled=lambda: True),
        tracking=_module("tracking", AutoTrackable=AutoTrackable, Trackable=Trackable,
                         no_automatic_dependency_tracking=no_automatic_dependency_tracking),
        types=_module("types", Tensor=TensorLike, data=_module("types.data", Dataset=Dataset)))
