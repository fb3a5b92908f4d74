"""How raw ops are declared: a function with the op's arguments and defaults, under the op's name in small letters.

`tf.raw_ops` takes them from here, makes their arguments keywords, and names their results. Ops that stand for one
call of a public function are rows of text (`ROWS` of the files beside this one).
"""

from __future__ import annotations

import collections
import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import twofold as tf
from twofold._front.api import listed
from twofold.ir.errors import InvalidArgumentError

__all__ = ["FUNCTIONS", "RawFunction", "batched", "known", "op", "pulled", "rank_of", "refuse_others"]

F = TypeVar("F", bound=Callable[..., Any])


class RawFunction:
    """A raw op that a function of ours computes.

    Args:
        name: TensorFlow's.
        function: takes the op's arguments, in its order and with its defaults.
        results: the names of its results, where there are several.
        lists: the names of its arguments that are several tensors.
    """

    def __init__(self, name: str, function: Callable[..., Any], results: str, lists: str) -> None:
        self.name, self.function, self.lists = name, function.__name__, frozenset(lists.split())
        self._compute = function
        parameters = inspect.signature(function).parameters.values()
        self.signature = inspect.Signature([inspect.Parameter(p.name, p.KEYWORD_ONLY, default=p.default)
                                            for p in parameters] + [
            inspect.Parameter("name", inspect.Parameter.KEYWORD_ONLY, default=None)])
        self.results = collections.namedtuple(name, results.split()) if results else None

    def __call__(self, values: dict[str, Any]) -> Any:
        """The results for the values of the op's arguments."""
        given = {name: value for name, value in values.items() if name != "name"}
        for name in self.lists & given.keys():
            if not isinstance(given[name], (list, tuple, tf.Tensor)):
                given[name] = listed(given[name], name)
        result = self._compute(**given)
        return result if self.results is None else self.results(*result)


#: the functions by the names of their ops
FUNCTIONS: dict[str, RawFunction] = {}


def op(results: str = "", name: str = "", lists: str = "") -> Callable[[F], F]:
    """Declare a raw op.

    Args:
        results: the names of its results, where there are several.
        name: TensorFlow's name, where it is not the function's with capitals.
        lists: the names of its arguments that are several tensors.
    """
    def declare(function: F) -> F:
        raw = name or "".join(part[0].upper() + part[1:] for part in function.__name__.split("_"))
        FUNCTIONS[raw] = RawFunction(raw, function, results, lists)
        return function
    return declare


def refuse_others(name: str, **settings: tuple[Any, Any]) -> None:
    """Refuse settings that have no meaning here: of each what was given and what it must be.

    Raises:
        InvalidArgumentError: one is another.
    """
    for argument, (given, wanted) in settings.items():
        if given != wanted:
            raise InvalidArgumentError(f"{name}: {argument} must be {wanted!r} here, got {given!r}.")


def known(value: Any, what: str) -> Any:
    """The value of an operand as an array; it decides what is computed.

    Raises:
        InvalidArgumentError: it is not known while a function is traced.
    """
    array = tf.get_static_value(tf.convert_to_tensor(value))
    if array is None:
        raise InvalidArgumentError(f"{what} must be known when a function is traced.")
    return array


def rank_of(x: Any) -> int:
    """The rank of a tensor, which is always known."""
    return len(x.shape.as_list())


def pulled(call: Callable[..., Any], operands: Sequence[Any], cotangents: Any) -> list[Any]:
    """The gradients of `call` for its operands, at cotangents of its results; zeros where nothing depends on one."""
    tensors = [tf.convert_to_tensor(x) for x in operands]
    with tf.GradientTape() as tape:
        tape.watch(tensors)
        results = call(*tensors)
    gradients: list[Any] = tape.gradient(results, tensors, output_gradients=cotangents,
                                         unconnected_gradients=tf.UnconnectedGradients.ZERO)
    return gradients


def batched(x: Any, *sizes: Any) -> Any:
    """Zeros of a shape of which a number of the first sizes are those of `x`."""
    return tf.zeros(tf.concat([tf.shape(x)[:1], tf.convert_to_tensor(sizes, tf.int32)], 0), x.dtype)
