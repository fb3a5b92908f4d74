"""`tf.compat.v1`: TensorFlow 1's names, where they differ; all others are those of `tf`."""

from __future__ import annotations

from typing import Any

import twofold as _tf
from twofold._tensors import enable_eager_execution
from twofold.eager.variable import Variable

from . import layers, losses, train
from .building import (
    AUTO_REUSE,
    GraphKeys,
    add_to_collection,
    assign,
    assign_add,
    assign_sub,
    get_collection,
    get_default_graph,
    get_variable,
    get_variable_scope,
    global_variables,
    global_variables_initializer,
    gradients,
    group,
    initialize_all_variables,
    local_variables_initializer,
    no_op,
    placeholder,
    placeholder_with_default,
    py_func,
    tables_initializer,
    trainable_variables,
    variable_scope,
    variables_initializer,
)
from .graph import Graph
from .mode import disable_eager_execution, reset_default_graph
from .operations import Operation
from .session import InteractiveSession, Session

__all__ = [
    "AUTO_REUSE", "Graph", "GraphKeys", "InteractiveSession", "Operation", "Session", "Variable", "add_to_collection",
    "assign", "assign_add", "assign_sub", "disable_eager_execution", "disable_v2_behavior", "enable_eager_execution",
    "get_collection", "get_default_graph", "get_variable", "get_variable_scope", "global_variables",
    "global_variables_initializer", "gradients", "group", "initialize_all_variables", "layers",
    "local_variables_initializer", "losses", "no_op", "placeholder", "placeholder_with_default", "py_func",
    "random_normal", "random_uniform", "reset_default_graph", "tables_initializer", "train", "trainable_variables",
    "truncated_normal", "variable_scope", "variables_initializer",
]

disable_v2_behavior = disable_eager_execution
random_normal = _tf.random.normal
random_uniform = _tf.random.uniform
truncated_normal = _tf.random.truncated_normal
log = _tf.math.log


def enable_v2_behavior() -> None:
    """Nothing is left to do: it is how things are."""


def __getattr__(name: str) -> Any:
    return getattr(_tf, name)
