"""Names from TensorFlow 1 that its early guides use for functions which are unchanged but for where they live."""

import logging
from typing import Any

from . import math, random

__all__ = ["log", "random_normal", "random_uniform"]

log = math.log
random_normal = random.normal
random_uniform = random.uniform

TOP_LEVEL = ("log", "random_normal", "random_uniform")

#: names of `tf.compat.v1` that programs of TensorFlow 1 look for in `tf`
FROM_V1 = frozenset({
    "AUTO_REUSE", "Graph", "GraphKeys", "InteractiveSession", "Session", "add_to_collection", "assign", "assign_add",
    "assign_sub", "disable_eager_execution", "get_collection", "get_default_graph", "get_variable",
    "get_variable_scope", "global_variables", "global_variables_initializer", "group",
    "initialize_all_variables", "layers", "local_variables_initializer", "no_op", "placeholder",
    "placeholder_with_default", "py_func", "reset_default_graph", "tables_initializer", "trainable_variables",
    "truncated_normal", "variable_scope", "variables_initializer",
})
_told = False


def from_v1(name: str) -> Any:
    """A name of `tf.compat.v1`; the first one is told of."""
    global _told
    from .compat import v1
    if not _told:
        _told = True
        logging.getLogger("twofold").warning(
            "tf.%s is a name of TensorFlow 1, which lives in tf.compat.v1; new programs do without it.", name)
    return getattr(v1, name)
