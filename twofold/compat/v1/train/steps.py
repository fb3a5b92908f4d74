"""The variable that counts the steps of training: one of a graph, or of the process where ops run at once."""

from __future__ import annotations

from typing import Any

import twofold as tf
from twofold._front.api import public

from ..graph import current_graph
from ..keys import GraphKeys

__all__ = ["assert_global_step", "create_global_step", "get_global_step", "get_or_create_global_step", "global_step"]

_eager_step: list[Any] = []


def _steps(graph: Any) -> list[Any]:
    owner = graph or current_graph()
    steps: list[Any] = _eager_step if owner is None else owner.get_collection_ref(GraphKeys.GLOBAL_STEP)
    return steps


@public
def get_global_step(graph: Any = None) -> Any:
    """The variable that counts steps, or None where none was made.

    Args:
        graph: the graph; by default the current one.
    """
    owner = graph or current_graph()
    if not _steps(owner) and owner is not None:
        for variable in owner.variables:
            if variable.name == "global_step:0":
                return variable
    return _steps(owner)[0] if _steps(owner) else None


@public
def create_global_step(graph: Any = None) -> Any:
    """Make the variable that counts steps.

    Args:
        graph: the graph; by default the current one.
    Raises:
        ValueError: there is one.
    """
    if get_global_step(graph) is not None:
        raise ValueError('"global_step" already exists.')
    with tf.name_scope(""):
        made = tf.Variable(0, dtype=tf.int64, trainable=False, name="global_step")
    _steps(graph).append(made)
    return made


@public
def get_or_create_global_step(graph: Any = None) -> Any:
    """The variable that counts steps: one of the process, or of the graph.

    Args:
        graph: the graph; by default the current one.

    >>> import twofold as tf
    >>> step = tf.compat.v1.train.get_or_create_global_step()
    >>> step is tf.compat.v1.train.get_or_create_global_step(), step.dtype
    (True, tf.int64)
    """
    step = get_global_step(graph)
    return create_global_step(graph) if step is None else step


@public
def global_step(sess: Any, global_step_tensor: Any) -> int:
    """The number of steps that a variable says.

    Args:
        sess: the session; None where ops run at once.
        global_step_tensor: the variable.
    """
    return int(global_step_tensor if sess is None else sess.run(global_step_tensor))


@public
def assert_global_step(global_step_tensor: Any) -> None:
    """Assert that something can count steps.

    Raises:
        TypeError: it is no scalar of integers.
    """
    if not global_step_tensor.dtype.is_integer or global_step_tensor.shape.rank not in (0, None):
        raise TypeError(f"The global step must be an integer scalar; got {global_step_tensor!r}")
