"""`tf.verify`: whether a compiled function does what its ops do one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from twofold.eager.tensor import Tensor

from .api import public
from .function import function

if TYPE_CHECKING:
    from twofold.tracer.verify import Verification

__all__ = ["verify"]


@public
def verify(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Verification:
    """Runs a function compiled and op by op, and compares all results and all values inside, to the bit.

    Variables keep their values. What has an effect, such as a random draw or `tf.print`, runs once, for both.

    Args:
        fn: a `tf.function`, one of its concrete functions, or a Python function, which is compiled for this.
        args, kwargs: of a call.
    Returns:
        A `Verification`: true where all agree; its `op`, `line` and `text` name the first op that differs.
    Raises:
        ValueError: the function runs eagerly, because it cannot be traced.

    >>> import twofold as tf
    >>> @tf.function
    ... def f(x):
    ...     return tf.reduce_mean(tf.tanh(x) * x)
    >>> result = tf.verify(f, tf.constant([1.0, -2.0, 3.0]))
    >>> bool(result)
    True
    >>> print(result)
    equal: 4 values agree to the bit
    """
    from twofold.tracer.concrete import ConcreteFunction
    from twofold.tracer.function import Function
    from twofold.tracer.verify import verify_graph
    compiled = fn if isinstance(fn, (Function, ConcreteFunction)) else function(fn, fallback=False)
    traced, leaves = compiled.traced_for(args, kwargs)
    if isinstance(traced, str):
        raise ValueError(f"verify: {getattr(fn, '__name__', fn)} runs eagerly, because it cannot be traced: {traced}")
    captured = [c if isinstance(c, Tensor) else c._kept_tensor() for c in traced.captures]
    return verify_graph(traced.graph, [*leaves, *captured])
