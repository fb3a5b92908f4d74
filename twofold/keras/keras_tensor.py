"""`KerasTensor`: takes the place of a tensor while a functional model is put together.

It has a shape and a dtype, and remembers the call that made it. Calling a layer on one, or using it in an operator or
a function of `tf`, gives others; `functional.py` makes a model of them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import twofold as tf
from twofold._front.api import SymbolicOperand, listed, told, user_line

from . import _registry
from .shapes import InputShape

__all__ = ["History", "KerasTensor", "Node", "any_symbolic", "replaced"]

_numbers = itertools.count()


class History(NamedTuple):
    """Which call made a KerasTensor, and which of its results it is."""

    operation: Any
    node_index: int
    tensor_index: int


class KerasTensor:
    """A tensor of a functional model: a shape and a dtype without a value.

    Args:
        shape: with None for sizes that are unknown.
        dtype: the element type.
        name: for messages.
        sparse, ragged: whether the values are sparse, or ragged, tensors.
    Raises:
        ValueError: they are to be both.

    >>> import twofold as tf
    >>> x = tf.keras.Input((3,))
    >>> x.shape, x.dtype
    ((None, 3), tf.float32)
    >>> (2 * x + 1).shape
    (None, 3)
    """

    __array_priority__ = 1000

    def __init__(self, shape: Any, dtype: Any = "float32", name: str | None = None, sparse: Any = False,
                 ragged: Any = False):
        if sparse and ragged:
            raise ValueError("KerasTensor cannot have `sparse=True` and `ragged=True` at the same time.")
        self.sparse, self.ragged = bool(sparse), bool(ragged)
        self._shape = InputShape(listed(shape, "A shape"))
        self._dtype = tf.as_dtype(dtype)
        self.name = name or f"keras_tensor_{next(_numbers)}"
        self._keras_history: History | None = None

    @property
    def shape(self) -> Any:
        """The shape, None for sizes that are unknown."""
        return self._shape

    @property
    def dtype(self) -> tf.DType:
        """The element type."""
        return self._dtype

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self._shape)

    def get_shape(self) -> Any:
        """The shape; the same as `.shape`."""
        return self._shape

    @property
    def _history(self) -> History:
        """Which call made it."""
        history = self._keras_history
        assert history is not None
        return history

    @property
    def _node(self) -> Node:
        """The call that made it."""
        return self._history.operation.inbound_nodes[self._history.node_index]

    def __repr__(self) -> str:
        return (f"<KerasTensor shape={tuple(self.shape)}, dtype={self.dtype.name}, sparse={self.sparse}, "
                f"ragged={self.ragged}, name={self.name}>")

    def _no_value(self, *args: Any, **kwargs: Any) -> Any:
        raise SymbolicOperand(f"{self!r} has no value: it stands for a tensor of a functional model. Use layers, "
                              f"operators and functions of tf on it, or a Lambda layer.\n  {user_line()}")

    __array__ = __bool__ = __int__ = __float__ = __index__ = __len__ = __iter__ = _no_value
    __hash__ = object.__hash__

    @told
    def __getitem__(self, key: Any) -> Any:
        return _apply("get_item", self, key)


def _apply(name: str, *args: Any) -> Any:
    return _registry.ask("operations")[name](*args)


def _operator(python: str, name: str, swapped: bool = False) -> Callable[..., Any]:
    """A method for an operator of Python, whose errors are told of the operation."""
    def method(x: KerasTensor, *other: Any) -> Any:
        return _apply(name, *other, x) if swapped else _apply(name, x, *other)
    method.__name__ = f"__{python}__"
    return told(method)


# Operators are operations of Keras: their operands meet in a dtype, which those of tensors do not.
for _python, _name in {"add": "add", "sub": "subtract", "mul": "multiply", "truediv": "true_divide", "pow": "power",
                       "matmul": "matmul", "floordiv": "floor_divide", "mod": "mod", "and": "logical_and",
                       "or": "logical_or", "xor": "logical_xor"}.items():
    setattr(KerasTensor, f"__{_python}__", _operator(_python, _name))
    setattr(KerasTensor, f"__r{_python}__", _operator(f"r{_python}", _name, swapped=True))
for _python, _name in {"neg": "negative", "abs": "absolute", "invert": "logical_not", "lt": "less",
                       "le": "less_equal", "gt": "greater", "ge": "greater_equal"}.items():
    setattr(KerasTensor, f"__{_python}__", _operator(_python, _name))  # no eq and ne: they are keys of dicts


class Node:
    """One call of a layer on KerasTensors.

    Attributes:
        operation: the layer.
        args, kwargs: of the call.
        input_structure: what `call` got first.
        output_structure: what came out.
        inputs, outputs: the KerasTensors among the arguments, and those that came out; None for what is none.
    """

    def __init__(self, operation: Any, args: tuple[Any, ...], kwargs: dict[str, Any], outputs: Any,
                 first: Any = None):
        self.operation, self.args, self.kwargs = operation, args, kwargs
        self.input_structure, self.output_structure = first, outputs
        self.inputs = [x for x in tf.nest.flatten((args, kwargs)) if type(x) is KerasTensor]
        self.outputs = tf.nest.flatten(outputs)
        nodes = operation.__dict__.setdefault("_inbound_nodes", [])
        for n, tensor in enumerate(self.outputs):
            if tensor is not None:
                tensor._keras_history = History(operation, len(nodes), n)
        nodes.append(self)

    @property
    def parents(self) -> list[Node]:
        """The calls that made the inputs."""
        return [x._node for x in self.inputs]


def any_symbolic(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether there is a KerasTensor among arguments."""
    for value in args:
        if type(value) is KerasTensor or (tf.nest.is_nested(value) and _within(value)):
            return True
    return bool(kwargs) and any(type(v) is KerasTensor or (tf.nest.is_nested(v) and _within(v))
                                for v in kwargs.values())


def _within(value: Any) -> bool:
    return any(type(v) is KerasTensor for v in tf.nest.flatten(value))


def replaced(value: Any, what: Callable[[Any], Any]) -> Any:
    """`value` with `what(x)` in the place of each KerasTensor x in it."""
    if type(value) is KerasTensor:
        return what(value)
    if tf.nest.is_nested(value) and _within(value):
        return tf.nest.map_structure(lambda v: what(v) if type(v) is KerasTensor else v, value)
    return value
