"""`tf.function` and what tells whether one is being traced."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from twofold.eager import playing
from twofold.eager.playing import CotangentsByNumber, Entry
from twofold.ir.op import tracing
from twofold.tracer import options
from twofold.tracer.creation import eagerly
from twofold.tracer.trace import current
from twofold.tracer.types import Cotangent

from .api import public

__all__ = ["function", "executing_eagerly", "inside_function", "init_scope"]


@public
def function(func: Callable[..., Any] | None = None, input_signature: Any = None, autograph: bool = True,
             jit_compile: bool | None = None, reduce_retracing: bool = False, experimental_implements: Any = None,
             experimental_autograph_options: Any = None, experimental_attributes: Any = None,
             experimental_relax_shapes: bool | None = None, experimental_compile: bool | None = None,
             experimental_follow_type_hints: bool | None = None, *, fallback: bool = True,
             fast_math: bool = False) -> Any:
    """Compile a Python function of tensors into one program.

    The function is traced: it runs once with tensors that have no value, and its ops become a graph. Python code
    runs while it is traced and not again, so `print` and appends to lists happen once per trace; `tf.print`,
    assignments to variables and random ops happen in every call. There is a trace for each combination of Python
    values (by type and equality), dtypes and ranks; a second shape of an argument makes the sizes that differ
    unknown, so that there is no third trace for a third shape.

    Args:
        func: the function, method or callable; without it the result is a decorator.
        input_signature: a sequence of `tf.TensorSpec`, or structures of them, one for each argument: calls must fit
            it, and the sizes that it gives as None are unknown from the first trace on.
        autograph: whether `if`, `while` and `for` over tensors are staged.
        fallback: whether a function that cannot be traced runs eagerly, with one warning that names the line; if
            not, the error is raised.
        fast_math: whether results may differ from those of eager execution by rounding.
        jit_compile, reduce_retracing, experimental_implements, experimental_autograph_options,
            experimental_attributes, experimental_relax_shapes, experimental_compile,
            experimental_follow_type_hints: accepted, without effect.
    Returns:
        A callable with the arguments of `func`. What it returns are tensors, in structures, or None.
    Raises:
        TypeError: `func` is not callable, or the signature is not made of specs. ValueError: (when called) variables
            are created in another call than the first.

    >>> import twofold as tf
    >>> @tf.function
    ... def f(x, y):
    ...     return x ** 2 + y
    >>> f(tf.constant([2.0, 3.0]), tf.constant(1.0)).numpy().tolist()
    [5.0, 10.0]
    """
    del jit_compile, reduce_retracing, experimental_implements, experimental_autograph_options
    del experimental_attributes, experimental_relax_shapes, experimental_compile, experimental_follow_type_hints
    settings = options.Options(input_signature, bool(autograph), bool(fallback), bool(fast_math))

    def decorate(fn: Any) -> Any:
        return _decorated(fn, settings)
    return decorate if func is None else decorate(func)


def _decorated(fn: Any, settings: options.Options) -> Any:
    if isinstance(fn, (staticmethod, classmethod)):
        return type(fn)(_decorated(fn.__func__, settings))
    if isinstance(fn, property):
        return property(_decorated(fn.fget, settings), fn.fset, fn.fdel, fn.__doc__)
    from twofold.tracer.function import Function
    if isinstance(fn, Function):
        fn = fn.plain
    if not callable(fn):
        raise TypeError(f"tf.function takes a callable; got {type(fn).__name__} {fn!r}.")
    return Function(fn, settings)


@public
def executing_eagerly() -> bool:
    """Whether ops run at once in this context: not while a `tf.function` is traced.

    >>> import twofold as tf
    >>> tf.executing_eagerly()
    True
    """
    return tracing() is None


@public
def inside_function() -> bool:
    """Whether a `tf.function` is being traced in this context.

    >>> import twofold as tf
    >>> tf.inside_function()
    False
    """
    return tracing() is not None


@public  # and no `block`: it takes nothing that could be wrong, and optimizers enter it at each step
@contextmanager
def init_scope() -> Iterator[None]:
    """A block whose ops run at once even where a `tf.function` is traced around it; no tape records them.

    >>> import twofold as tf
    >>> @tf.function
    ... def f():
    ...     with tf.init_scope():
    ...         print(tf.executing_eagerly())
    >>> f()
    True
    """
    with eagerly():
        yield


def creating() -> None:
    """What makes its variables in an `init_scope` when it is first used asks before that whether it may.

    Raises:
        ValueError: a function is traced here that was traced before.
    """
    trace = current()
    if trace is not None:
        trace.creation.once()


def _compiled_backward(entries: Sequence[Entry], numbers: Sequence[Sequence[int]], cts: CotangentsByNumber,
                       stored: bool) -> Callable[..., list[Cotangent]] | None:
    from twofold.tracer.function import compiled_backward
    return compiled_backward(entries, numbers, cts, stored)


playing.compile_with(_compiled_backward)
