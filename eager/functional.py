"""Gradients of functions: the function-style interface of TensorFlow's early eager mode.

`gradients_function` differentiates by arguments, `implicit_gradients` by the variables that a function
reads. Both are a few lines around `GradientTape`, and apply to their own results for higher orders.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from twofold.ir import nest, ops
from twofold.runtime import native
from twofold.runtime.native_layout import PythonFunction

from . import convert
from .tape import GradientTape
from .tensor import NumpyValue, Tensor
from .types import AnyVariable, Nest

__all__ = ["gradients_function", "value_and_gradients_function", "implicit_gradients", "implicit_value_and_gradients"]

Derivative: TypeAlias = Any  # a tensor, or None where a function does not depend on an argument
Params = Sequence[int] | Sequence[str] | None


class Gradients(list[Derivative]):
    """A list of derivatives. One alone also reads as its tensor: `tfe.gradients_function(f)(0.0).numpy()`."""

    def numpy(self) -> NumpyValue:
        """The value of the only derivative.

        Raises:
            ValueError: there are several, or none.
        """
        if len(self) != 1:
            raise ValueError(f"numpy() reads a single derivative; this list has {len(self)}. Index it first.")
        return self[0].numpy()


@native.guard
def gradients_function(f: PythonFunction, params: Params = None) -> Callable[..., list[Derivative]]:
    """A function that computes the derivatives of `f` by its arguments.

    Args:
        f: a function of tensors. It should return a scalar; the elements of anything else are added up.
        params: the arguments to differentiate by, all as names or all as positions; by default every argument
            that is given.
    Returns:
        A function of the same positional arguments, which may be tensors, variables, Python numbers or arrays, and
        which reach `f` as tensors. It returns a list with the derivative by each of `params`: a tensor of that
        argument's shape and dtype, or None where `f` does not depend on it, or where it holds no floats. The
        keyword `dy` weights the elements of the result of `f`.
    Raises:
        ValueError: (by the function returned) `f` returned None, `params` mixes names and positions or names no
            argument, or keywords other than `dy` were given.

    >>> import twofold.contrib.eager as tfe
    >>> derivative = tfe.gradients_function(lambda x, y: x * x * y)
    >>> [d.numpy().item() for d in derivative(3.0, 2.0)]
    [12.0, 9.0]
    """
    both = value_and_gradients_function(f, params)

    @_named_after(f)
    def gradients(*args: object, **kwargs: object) -> list[Derivative]:
        gradients: list[Derivative] = both(*args, **kwargs)[1]
        return gradients
    return gradients


@native.guard
def value_and_gradients_function(f: PythonFunction,
                                 params: Params = None) -> Callable[..., tuple[Nest, list[Derivative]]]:
    """Like `gradients_function`, for a function that returns the value of `f` too: `(value, derivatives)`.

    >>> import twofold.contrib.eager as tfe
    >>> value, (dx,) = tfe.value_and_gradients_function(lambda x: x * x)(3.0)
    >>> value.numpy().item(), dx.numpy().item()
    (9.0, 6.0)
    """
    @_named_after(f)
    def value_and_gradients(*args: object, dy: Nest = None,
                            **kwargs: object) -> tuple[Nest, list[Derivative]]:
        if kwargs:
            raise ValueError("Functions to be differentiated cannot receive keyword arguments; "
                             f"got {', '.join(sorted(kwargs))}.")
        places = _places(f, params, args)
        arguments = list(args)
        sources: list[Tensor] = []
        with GradientTape(watch_accessed_variables=False) as tape:
            for i in places:
                arguments[i] = source = _own(arguments[i], sources)
                sources.append(source)
            tape.watch(sources)
            value = _required(f, f(*arguments))
            value = nest.map_structure(convert.as_tensor, value)
        return value, Gradients(tape.gradient(value, sources, output_gradients=dy))
    return value_and_gradients


@native.guard
def implicit_gradients(f: PythonFunction) -> Callable[..., list[tuple[Derivative, AnyVariable]]]:
    """A function that computes the derivatives of `f` by all the trainable variables that `f` reads.

    Args:
        f: a function of any arguments. It should return a scalar; the elements of anything else are added up.
    Returns:
        A function of the same arguments. It returns a list of `(gradient, variable)` in the order in which the
        variables were made; the gradient is None where the result does not depend on the variable.
    Raises:
        ValueError: (by the function returned) `f` returned None or read no trainable variable.

    >>> import twofold.contrib.eager as tfe
    >>> w = tfe.Variable(2.0)
    >>> [(gradient, variable)] = tfe.implicit_gradients(lambda x: w * x)(3.0)
    >>> gradient.numpy().item(), variable is w
    (3.0, True)
    """
    both = implicit_value_and_gradients(f)

    @_named_after(f)
    def gradients(*args: object, **kwargs: object) -> list[tuple[Derivative, AnyVariable]]:
        gradients: list[tuple[Derivative, AnyVariable]] = both(*args, **kwargs)[1]
        return gradients
    return gradients


@native.guard
def implicit_value_and_gradients(
        f: PythonFunction) -> Callable[..., tuple[Nest, list[tuple[Derivative, AnyVariable]]]]:
    """Like `implicit_gradients`, for a function that returns the value of `f` too: `(value, pairs)`.

    >>> import twofold.contrib.eager as tfe
    >>> w = tfe.Variable(2.0)
    >>> value, [(gradient, _)] = tfe.implicit_value_and_gradients(lambda x: w * x)(3.0)
    >>> value.numpy().item(), gradient.numpy().item()
    (6.0, 3.0)
    """
    @_named_after(f)
    def value_and_gradients(*args: object, **kwargs: object) -> tuple[Nest, list[tuple[Derivative, AnyVariable]]]:
        with GradientTape() as tape:
            value = _required(f, f(*args, **kwargs))
        variables = tape.watched_variables()
        if not variables:
            raise ValueError("No trainable variables were accessed while the function was being computed.")
        return value, list(zip(tape.gradient(value, list(variables)), variables, strict=True))
    return value_and_gradients


def _named_after(f: PythonFunction) -> Callable[[PythonFunction], PythonFunction]:
    return functools.wraps(f, assigned=("__name__", "__qualname__", "__module__"), updated=())


def _required(f: PythonFunction, value: object) -> object:
    if value is None:
        name = getattr(f, "__name__", repr(f))
        raise ValueError("Cannot differentiate a function that returns None; "
                         f"did you forget to return a value from {name}?")
    return value


def _own(value: object, others: list[Tensor]) -> Tensor:
    """`value` as a tensor that is none of `others` and no variable's, so that derivatives tell arguments apart."""
    tensor = convert.as_tensor(value)
    shared = hasattr(value, "_read_tensor") or any(tensor is t for t in others)
    return ops.identity(tensor) if shared else tensor


def _places(f: PythonFunction, params: Params, args: tuple[object, ...]) -> list[int]:
    """The positions of the arguments to differentiate by."""
    if params is None:
        return list(range(len(args)))
    if all(isinstance(p, str) for p in params):
        try:
            names = list(inspect.signature(f).parameters)
        except (TypeError, ValueError) as e:
            raise ValueError(f"params={list(params)!r} are names, but the arguments of {f!r} have none that can be "
                             f"looked up: {e}") from e
        places = [names.index(p) if p in names else len(args) for p in params]
    elif all(isinstance(p, int) and not isinstance(p, bool) for p in params):
        places = [int(p) for p in params]
    else:
        raise ValueError(f"params must be all strings or all integers; got {params}.")
    for param, place in zip(params, places, strict=True):
        if not 0 <= place < len(args):
            raise ValueError(f"params names {param!r}, which is none of the {len(args)} arguments that were given.")
    return places
