"""What programs state of order, names and several devices: `control_dependencies`, scopes, aggregation.

Where ops run at once, and in functions, what has effects happens in program order anyway; on one device there is
nothing to be aggregated or synchronised. Graphs of `tf.compat.v1` keep to what is stated.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from twofold.eager import naming
from twofold.eager.aggregation import VariableAggregation, VariableSynchronization
from twofold.eager.variable import creators
from twofold.runtime import devices
from twofold.tracer.symbolic import SymbolicTensor
from twofold.tracer.trace import current

from .api import block, listed, public, tensor
from .convert import identity
from .hosted import call, hosted

if TYPE_CHECKING:
    import logging

__all__ = ["AggregationMethod", "VariableAggregation", "VariableSynchronization", "control_dependencies", "device",
           "get_current_name_scope", "get_logger", "guarantee_const", "is_symbolic_tensor", "timestamp", "tuple",
           "variable_creator_scope"]


device = block(devices.device)


class AggregationMethod:
    """How gradients of one tensor are added up; accepted, without effect."""

    ADD_N = 0
    DEFAULT = 0
    EXPERIMENTAL_TREE = 1
    EXPERIMENTAL_ACCUMULATE_N = 2


@public
def control_dependencies(control_inputs: Sequence[Any] | None) -> contextlib.AbstractContextManager[Any]:
    """A block whose operations come after others. Outside of graphs of `tf.compat.v1` all is in order anyway.

    Args:
        control_inputs: operations, tensors and variables.

    >>> import twofold as tf
    >>> v = tf.Variable(1.0)
    >>> with tf.control_dependencies([v.assign_add(1.0)]):
    ...     print(float(v))
    2.0
    """
    trace = current()
    return contextlib.nullcontext() if trace is None else trace.after(control_inputs)


@block
def variable_creator_scope(variable_creator: Callable[..., Any]) -> Iterator[None]:
    """A block in which variables are made by a function.

    Args:
        variable_creator: called as `variable_creator(next_creator, **kwargs)` with the arguments of `tf.Variable`;
            gives the variable, usually that of `next_creator(**kwargs)`. Of nested scopes the innermost is asked
            first, and its `next_creator` is that of the scope around it.

    >>> import twofold as tf
    >>> def frozen(next_creator, **kwargs):
    ...     return next_creator(**{**kwargs, "trainable": False})
    >>> with tf.variable_creator_scope(frozen):
    ...     v = tf.Variable(1.0)
    >>> v.trainable
    False
    """
    token = creators.set((*creators.get(), variable_creator))
    try:
        yield
    finally:
        creators.reset(token)


@public
def tuple(tensors: Sequence[Any], control_inputs: Sequence[Any] | None = None, name: str | None = None) -> list[Any]:
    """Tensors none of which can be had before all are computed.

    Args:
        tensors: tensors or None.
        control_inputs: further operations that come first.
        name: has no effect.

    >>> import twofold as tf
    >>> [int(x) for x in tf.tuple([tf.constant(1), tf.constant(2)])]
    [1, 2]
    """
    given = listed(tensors, "tensors")
    first = [*[t for t in given if t is not None], *listed(control_inputs or (), "control_inputs")]
    with control_dependencies(first):
        return [None if t is None else identity(tensor(t)) for t in given]


@public
def get_current_name_scope() -> str:
    """The scope of names here, without a slash at its end.

    >>> import twofold as tf
    >>> with tf.name_scope("a"), tf.name_scope("b"):
    ...     tf.get_current_name_scope()
    'a/b'
    """
    return naming.full_name("").rstrip("/")


@public
def is_symbolic_tensor(tensor: Any) -> bool:
    """Whether something is a tensor of a function that is traced, or of a graph.

    >>> import twofold as tf
    >>> tf.is_symbolic_tensor(tf.constant(1))
    False
    """
    return isinstance(tensor, SymbolicTensor)


@public
def guarantee_const(input: Any, name: str | None = None) -> Any:
    """`input` itself. `name` has no effect."""
    return identity(input)


@public
def get_logger() -> logging.Logger:
    """The logger of the package.

    >>> import twofold as tf
    >>> tf.get_logger().name
    'twofold'
    """
    import logging
    return logging.getLogger("twofold")


@public
@hosted
def timestamp(name: str | None = None) -> Any:
    """The seconds since 1970, float64; in a function, at each run.

    `name` has no effect.

    >>> import twofold as tf
    >>> bool(tf.timestamp() > 1e9)
    True
    """
    from twofold.ir import dtypes as dt
    from twofold.ir.spec import TensorSpec
    return call(lambda: [tensor(time.time(), dt.float64)], "Timestamp", [], [TensorSpec((), dt.float64)])[0]
