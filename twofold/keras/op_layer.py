"""`TFOpLambda`: a function of `tf` as a layer, which is what calls of them with KerasTensors become.

Configs name the function; the names are those of `tf`'s public functions, a closed list.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from typing import Any

import twofold as tf
from twofold._front.api import SymbolicOperand, is_ours, stand_in, unguarded, user_line

from . import _registry
from .layer import Layer
from .naming import uniquify
from .serialization import OPERATIONS

__all__ = ["TFOpLambda"]

_KERAS = os.path.join(os.path.dirname(__file__), "")
_MODULES = ("math", "nn", "linalg", "bitwise", "signal", "random")
#: the classes of Keras 3 by the functions of `tf` that do the same
_CLASSES = {function: name for name, function in OPERATIONS.items()}


def _getitem(value: Any, key: Any) -> Any:
    return value[tuple(key) if isinstance(key, list) else key]  # tuples are lists in files


def function_of(name: str) -> Callable[..., Any]:
    """The function of `tf` of a name such as "math.add".

    Raises:
        ValueError: there is none.
    """
    if name == "getitem":
        return _getitem
    module: Any = tf
    stem, _, leaf = name.rpartition(".")
    if stem:
        module = getattr(tf, stem) if stem in _MODULES else None
    if module is None or leaf not in module.__all__ or isinstance(getattr(module, leaf), type):
        raise ValueError(f"Unknown function of tf: {name!r}.")
    return getattr(module, leaf)


@functools.cache
def _names() -> dict[int, str]:
    """The public functions of `tf` by the identity of the Python function behind each."""
    names: dict[int, str] = {}
    for stem in ("", *_MODULES):
        module = getattr(tf, stem) if stem else tf
        for name in module.__all__:
            value = getattr(module, name)
            if callable(value) and not isinstance(value, type):
                names.setdefault(id(unguarded(value)), f"{stem}.{name}" if stem else name)
    return names


def on_keras_tensors(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
                     error: SymbolicOperand) -> Any:
    """The call of a public function of `tf` with KerasTensors: it becomes a layer of the functional model.

    Raises:
        SymbolicOperand: the function is not called by a user, whose call is the one that counts; or it is no function.
    """
    caller = sys._getframe(2).f_code.co_filename
    name = _names().get(id(function))
    if name is None or (is_ours(caller) and not caller.startswith(_KERAS)):
        called = getattr(function, "__qualname__", str(function)).rstrip("_")  # `tuple_` is public as `tuple`
        raise SymbolicOperand(f"{called} cannot be a part of a functional model: it was given a KerasTensor, which has "
                              f"no value. Use a Lambda layer, or one of your own.\n  {user_line()}")
    return TFOpLambda(name)(*args, **kwargs)


stand_in(on_keras_tensors)


class TFOpLambda(Layer):
    """A function of `tf` as a layer.

    Args:
        function: its name, such as "add" or "nn.relu".
        name: the layer's name.
    Raises:
        ValueError: there is no such function.

    >>> import twofold as tf
    >>> x = tf.keras.Input([2])
    >>> y = tf.keras.Model(x, tf.square(x))
    >>> y(tf.constant([[1.0, 2.0]])).numpy().tolist()
    [[1.0, 4.0]]
    """

    autocast = False
    _keras_home = ("keras.layers", "TFOpLambda")  # the module and the class that configs name

    def __init__(self, function: str, name: str | None = None, **kwargs: Any):
        self._function = function_of(function)
        self._function_name = function
        super().__init__(name=uniquify(f"tf.{function}") if name is None else name, **kwargs)
        self.built = True

    def _converted(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return args, kwargs  # numbers take the dtype of the tensors beside them

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        return self._function(*args, **kwargs)

    @property
    def _keras_operation(self) -> str | None:
        """The class of Keras 3 that does what this layer does in all its calls; None if there is none."""
        plain = all(not node.kwargs and len(node.args) <= 2 for node in self.inbound_nodes)
        return _CLASSES.get(self._function_name) if plain else None

    def get_config(self) -> dict[str, Any]:
        """The function's name, and the layer's."""
        return {"function": self._function_name, "name": self.name}


_registry.provide("TFOpLambda", TFOpLambda)
