"""`tf.types.experimental`: how classes of users tell `tf.function` when to trace again."""

from __future__ import annotations

import abc
import typing
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from twofold._front.namespace import publish

__all__ = ["AtomicFunction", "Callable", "ConcreteFunction", "FunctionType", "GenericFunction", "PolymorphicFunction",
           "SupportsTracingProtocol", "TensorLike", "TraceType"]

class Callable(abc.ABC):  # noqa: B024 - a question about classes, by `__subclasshook__`
    """What is called with tensors and has traces: a `tf.function`, and one trace of it.

    >>> import twofold as tf
    >>> isinstance(tf.function(lambda x: x), tf.types.experimental.Callable)
    True
    """

    @classmethod
    def __subclasshook__(cls, other: type) -> bool:
        return other.__module__.startswith("twofold.tracer.") and callable(other) and "__call__" in vars(other)


@typing.runtime_checkable
class SupportsTracingProtocol(typing.Protocol):
    """Objects that say themselves what a trace depends on; see `TraceType`."""

    def __tf_tracing_type__(self, context: Any) -> TraceType:
        """The properties that a trace depends on."""


class TraceType(abc.ABC):
    """The properties of an argument that a trace depends on; see `__tf_tracing_type__`.

    An argument whose class defines `__tf_tracing_type__(self, context)` is judged by what that returns: calls share
    a trace where these are equal and have the same hash. Other objects are judged by their identity or, where their
    class defines it, equality. `context` is None here. A trace keeps the value that the first call gave: it must not
    depend on what the trace type leaves out.

    The methods are TensorFlow's protocol. Equality decides here: a subtype that is not equal is traced for itself.
    The argument itself is what the function is traced with, so that `placeholder_value` is not asked for.

    >>> import twofold as tf
    >>> class Kind(tf.types.experimental.TraceType):
    ...     def __init__(self, kind): self.kind = kind
    ...     def is_subtype_of(self, other): return self == other
    ...     def most_specific_common_supertype(self, others): return self if all(self == o for o in others) else None
    ...     def __eq__(self, other): return isinstance(other, Kind) and self.kind is other.kind
    ...     def __hash__(self): return hash(self.kind)
    >>> class Doubled:
    ...     factor = 2
    ...     def __tf_tracing_type__(self, context): return Kind(type(self))
    >>> scale = tf.function(lambda unit, x: unit.factor * x)
    >>> int(scale(Doubled(), tf.constant(2))), int(scale(Doubled(), tf.constant(3)))
    (4, 6)
    >>> scale.experimental_get_tracing_count()
    1
    """

    @abc.abstractmethod
    def is_subtype_of(self, other: TraceType) -> bool:
        """Whether a trace made for `other` would do for this."""

    @abc.abstractmethod
    def most_specific_common_supertype(self, others: Sequence[TraceType]) -> TraceType | None:
        """The type that serves this and all of `others`, if there is one."""

    @abc.abstractmethod
    def __hash__(self) -> int:
        """Equal for equal trace types."""

    @abc.abstractmethod
    def __eq__(self, other: object) -> bool:
        """Whether one trace serves both."""


if TYPE_CHECKING:
    from twofold.tracer.concrete import ConcreteFunction
    from twofold.tracer.function import Function as GenericFunction
    from twofold.tracer.function import Function as PolymorphicFunction
    from twofold.tracer.function_type import FunctionType
    from twofold.tracer.function_type import InferenceFunction as AtomicFunction

    TensorLike = Any

# Names of classes that `import twofold` does not load: where they are.
_ELSEWHERE = {
    "AtomicFunction": ("twofold.tracer.function_type", "InferenceFunction"),
    "ConcreteFunction": ("twofold.tracer.concrete", "ConcreteFunction"),
    "FunctionType": ("twofold.tracer.function_type", "FunctionType"),
    "GenericFunction": ("twofold.tracer.function", "Function"),
    "PolymorphicFunction": ("twofold.tracer.function", "Function"),
}


def __getattr__(name: str) -> Any:
    import importlib
    if name == "distributed":
        return importlib.import_module(f"{__name__}.distributed")
    if name in _ELSEWHERE:
        module, own = _ELSEWHERE[name]
        return getattr(importlib.import_module(module), own)
    if name == "TensorLike":  # what `tf.convert_to_tensor` takes
        import numpy as np

        import twofold as tf
        return (tf.Tensor | tf.Variable | np.ndarray | np.generic | int | float | complex | str | bytes | bool | list
                | tuple)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


publish(__name__)
