"""The parameters of a layer's `call`: which argument is which, whether it takes `training` and masks."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import twofold as tf

from . import call_context
from .shapes import shapes_of

__all__ = ["CallSpec"]

_MISSING = inspect.Parameter.empty


class CallSpec:
    """The parameters of a `call`.

    Attributes:
        names: of the parameters that can be given by position, without `self`.
        takes_training: whether there is a `training` parameter.
        default_training: its default, None if it has none.
    """

    __slots__ = ("names", "takes_training", "default_training", "_all", "_open")

    def __init__(self, call: Callable[..., Any], bound: bool):
        parameters = list(inspect.signature(getattr(call, "python_function", call)).parameters.values())
        if not bound:
            parameters = parameters[1:]
        by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        self.names = tuple([p.name for p in parameters if p.kind in by_position])
        self._all = {p.name: p for p in parameters}
        self._open = any(p.kind is p.VAR_KEYWORD for p in parameters)
        parameter = self._all.get("training")
        self.takes_training = parameter is not None or (self._open and getattr(call, "_passes_training", False))
        self.default_training = None if parameter is None or parameter.default is _MISSING else parameter.default

    @staticmethod
    def of(layer: Any) -> CallSpec:
        """The spec of a layer's `call`."""
        if "call" in layer.__dict__:
            return CallSpec(layer.call, bound=True)
        return _of_class(type(layer).call)

    def first_argument(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What `call` gets first."""
        if args:
            return args[0]
        if self.names and self.names[0] in kwargs:
            return kwargs[self.names[0]]
        return next(iter(kwargs.values()), None)

    def named(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """All arguments by name, in order."""
        arguments = dict(zip(self.names, args, strict=False))
        arguments.update({f"argument_{n}": x for n, x in enumerate(args[len(self.names):])})
        arguments.update(kwargs)
        return arguments

    def with_training(self, args: tuple[Any, ...], kwargs: dict[str, Any],
                      outer: call_context.CallContext | None) -> tuple[dict[str, Any], Any]:
        """Keyword arguments with the training flag that is in force, and the flag itself."""
        given = kwargs.get("training")
        if given is None and self.takes_training and "training" in self.names[:len(args)]:
            given = args[self.names.index("training")]
            if given is not None:
                return kwargs, given
        training = given
        if training is None and outer is not None:
            training = outer.training
        if training is None:
            training = call_context.learning_phase()
        if training is None:
            training = self.default_training
        if "training" in self.names[:len(args)]:
            return kwargs, training
        if self.takes_training and training is not None:
            if given is not training:
                kwargs = {**kwargs, "training": training}
        elif "training" in kwargs and not (self._open or self.takes_training):
            kwargs = {k: v for k, v in kwargs.items() if k != "training"}
        return kwargs, training

    def with_masks(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[dict[str, Any], Any]:
        """Keyword arguments with the masks that go with the tensors, and the masks of the first argument."""
        first_masks = None
        for n, (name, value) in enumerate(self.named(args, kwargs).items()):
            masks = _masks_of(value)
            if masks is None:
                continue
            if n == 0:
                first_masks = masks
            wanted = "mask" if n == 0 and "mask" in self._all else f"{name}_mask"
            if wanted in self._all and kwargs.get(wanted) is None and wanted not in self.names[:len(args)]:
                kwargs = {**kwargs, wanted: masks}
        return kwargs, first_masks

    def build_shapes(self, build: Callable[..., Any], args: tuple[Any, ...],
                     kwargs: dict[str, Any]) -> dict[str, Any]:
        """Shapes by the names of the parameters of `build` (or of another method that takes shapes)."""
        wanted = list(inspect.signature(build).parameters.values())[1:]
        named = self.named(args, kwargs)
        if not wanted:
            return {}
        shapes: dict[str, Any] = {}
        for n, parameter in enumerate(wanted):
            stem = parameter.name.removesuffix("_shape")
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                continue
            if stem in named and stem != parameter.name:
                shapes[parameter.name] = shapes_of(named[stem])
            elif n == 0:
                shapes[parameter.name] = shapes_of(self.first_argument(args, kwargs))
            elif parameter.default is _MISSING:
                shapes[parameter.name] = None
        return shapes


def _masks_of(value: Any) -> Any:
    """The masks that go with tensors in a structure; None if none does."""
    if isinstance(value, tf.Tensor):
        return call_context.get_mask(value)
    if not tf.nest.is_nested(value):
        return None
    masks = [call_context.get_mask(v) for v in tf.nest.flatten(value)]
    return tf.nest.pack_sequence_as(value, masks) if any(m is not None for m in masks) else None


@functools.lru_cache(maxsize=1024)
def _of_class(call: Callable[..., Any]) -> CallSpec:
    return CallSpec(call, bound=False)
