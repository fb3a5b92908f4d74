"""Functions of `tf.keras.ops` as operations: their calls with KerasTensors, and the layers by which models keep them.

`operation` makes a function of `tf.keras.ops` out of a function of tensors. Called with a KerasTensor it becomes a
layer of the functional model: a `KerasOperation`, written as Keras 3 writes it, with the arguments that are no tensors
as settings. Reading looks a class up among the functions there are, a closed list. Functions of `tf` on KerasTensors
are `op_layer.py`'s.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import twofold as tf
from twofold._front.api import public

from . import _registry
from .composites import is_composite
from .configs import config_of
from .keras_tensor import KerasTensor, any_symbolic
from .layer import Layer

__all__ = ["KerasOperation", "operation", "operation_class"]

_HOME = "keras.src.ops."


class _Operation(NamedTuple):
    """A function, and which of its arguments a layer is called with; the others are the layer's settings."""

    function: Callable[..., Any]
    signature: inspect.Signature
    tensors: tuple[str, ...]
    home: tuple[str, str]


_operations: dict[tuple[str, str], _Operation] = {}


class KerasOperation(Layer):
    """An operation of Keras as a layer; its settings are those of the config.

    Args:
        name: the layer's name.
        settings: arguments of the operation that are no tensors.
    Raises:
        ValueError: the operation has no such argument.
    """

    autocast = False
    _keras_home: tuple[str, str]  # the module and the class that configs name
    _operation: _Operation

    def __init__(self, name: str | None = None, **settings: Any):
        unknown = sorted(set(settings) - set(self._operation.signature.parameters))
        if unknown and not self._open():
            raise ValueError(f"{type(self).__name__}: unknown settings {', '.join(unknown)}.")
        super().__init__(name=name)
        self._settings = settings
        self.built = True

    @classmethod
    def _open(cls) -> bool:
        """Whether the operation takes further arguments by name."""
        return any(p.kind is p.VAR_KEYWORD for p in cls._operation.signature.parameters.values())

    def _converted(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return args, kwargs  # numbers take the dtype of the tensors beside them

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Run the operation."""
        function, signature, tensors, _ = self._operation
        if any(map(is_composite, tf.nest.flatten((args, kwargs)))):
            function = _registry.ask("operations")[function.__name__]  # the public one asks what there is for them
        kinds = [signature.parameters[name].kind for name in tensors]
        if inspect.Parameter.VAR_POSITIONAL in kinds:  # only settings are before these
            before = [self._settings[name] for name, p in signature.parameters.items()
                      if name in self._settings and p.kind is p.POSITIONAL_OR_KEYWORD]
            rest = {k: v for k, v in self._settings.items()
                    if signature.parameters[k].kind is not inspect.Parameter.POSITIONAL_OR_KEYWORD}
            return function(*before, *args, **rest, **kwargs)
        named = dict(zip(tensors, args, strict=False))
        return function(**{**self._settings, **named, **kwargs})

    def __reduce__(self) -> tuple[Any, ...]:
        return (_remade, self._keras_home, self.__getstate__())  # the class has no name that pickles could look up

    def get_config(self) -> dict[str, Any]:
        """The settings, and the layer's name."""
        return {"name": self.name, **self._settings}

    def get_build_config(self) -> None:
        """None: there is nothing to build."""
        return None

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> KerasOperation:
        """A layer made from what Keras, or `get_config`, wrote.

        Some versions of Keras write the layer's policy under "dtype", which for other operations is a setting.
        """
        config = config_of(config)
        dtype = config.get("dtype")
        dropped = {"trainable"}
        if "dtype" not in cls._operation.signature.parameters or not (dtype is None or isinstance(dtype, str)):
            dropped.add("dtype")
        return cls(**{key: value for key, value in config.items() if key not in dropped})


def operation(home: str, cls: str | None = None, tensors: str | None = None, also: str = "") -> Callable[[Any], Any]:
    """A decorator for the functions of `tf.keras.ops`: calls with KerasTensors make layers.

    Args:
        home: the module of Keras that has the operation, such as "numpy".
        cls: the operation's class there; by default the function's name in capitals, as `TopK` for `top_k`.
        tensors: the parameters that a layer is called with, by names with spaces between; by default those without
            a default. The others are settings.
        also: names of further classes that do the same.
    """
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(function)
        given = tuple(tensors.split()) if tensors is not None else tuple(
            [p.name for p in signature.parameters.values() if p.default is p.empty and p.kind is not p.VAR_KEYWORD])
        name = cls or "".join([part.capitalize() for part in function.__name__.split("_")])
        module = _HOME + home
        wrapped = _Operation(function, signature, given, (module, name))
        for each in (name, *also.split()):
            _operations[module, each] = wrapped

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if any_symbolic(args, kwargs):
                return _as_layer(wrapped, args, kwargs)
            return function(*args, **kwargs)
        return public(call)
    return decorate


def _as_layer(made: _Operation, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of a function for KerasTensors: the outputs of a layer of the functional model."""
    bound = made.signature.bind(*args, **kwargs)
    bound.apply_defaults()
    inputs: list[Any] = []
    settings: dict[str, Any] = {}
    symbolic: dict[str, Any] = {}  # and what else Keras gives with the call
    for name, value in bound.arguments.items():
        kind = made.signature.parameters[name].kind
        if name in made.tensors:
            inputs += value if kind is inspect.Parameter.VAR_POSITIONAL else [value]
        elif kind is inspect.Parameter.VAR_KEYWORD:
            symbolic.update(value)
        else:
            (symbolic if any_symbolic((value,), {}) else settings)[name] = value
    while inputs and inputs[-1] is None:
        inputs.pop()
    return operation_class(*made.home)(**settings)(*inputs, **symbolic)


@functools.cache
def operation_class(module: str, name: str) -> Any:
    """The layer class of an operation that a config names; None if it is not known.

    >>> from twofold.keras.keras_ops import operation_class
    >>> bool(operation_class("keras.src.ops.numpy", "NotEqual")()(3, 0))
    True
    """
    _registry.ask("operations")  # all of them are there
    registered = _operations.get((module, name))
    if registered is None:
        return None
    return type(registered.home[1], (KerasOperation,), {"_keras_home": registered.home, "_operation": registered,
                                                        "__module__": __name__})


def _remade(module: str, name: str) -> Any:
    """A layer of the class of an operation, without its state."""
    cls = operation_class(module, name)
    return cls.__new__(cls)


def is_symbolic(value: Any) -> bool:
    """Whether something is a KerasTensor."""
    return type(value) is KerasTensor


_registry.provide("operation_class", operation_class)
