"""`tf.compat.v1`: TensorFlow 1's names, where they differ; all others are those of `tf`."""

from __future__ import annotations

import importlib
from typing import Any

import twofold as _tf
from twofold._front import older as _older
from twofold._front.api import public as _public
from twofold._front.namespace import publish
from twofold._front.tensors import enable_eager_execution

from . import functions as _functions
from . import initializers, layers, losses, train
from . import older_functions as _older_functions
from . import sparse_functions as _sparse_functions
from .building import (
    Assert,
    Print,
    add_to_collection,
    add_to_collections,
    control_dependencies,
    get_collection,
    get_collection_ref,
    get_default_graph,
    gradients,
    group,
    identity,
    name_scope,
    no_op,
    placeholder,
    placeholder_with_default,
    py_func,
    tables_initializer,
)
from .building import print_ as print
from .building import tuple_ as tuple
from .composite_placeholders import sparse_placeholder
from .composites import SparseTensorValue
from .dimension import Dimension
from .functions import *  # noqa: F403
from .graph import Graph
from .initializers import (
    constant_initializer,
    glorot_normal_initializer,
    glorot_uniform_initializer,
    ones_initializer,
    orthogonal_initializer,
    random_normal_initializer,
    random_uniform_initializer,
    truncated_normal_initializer,
    uniform_unit_scaling_initializer,
    variance_scaling_initializer,
    zeros_initializer,
)
from .keys import GraphKeys
from .mode import disable_eager_execution, reset_default_graph
from .older import ALIASES as _ALIASES
from .older import MODULES as _OLDER_MODULES
from .older import OlderModule as _OlderModule
from .older import assertion as _assertion
from .older import resolve as _resolve
from .older_functions import *  # noqa: F403
from .operations import Operation
from .session import InteractiveSession, Session, get_default_session
from .settings import ConfigProto, GPUOptions, GraphOptions, OptimizerOptions, RunMetadata, RunOptions
from .sparse_functions import *  # noqa: F403
from .template import make_template
from .variables import (
    AUTO_REUSE,
    Variable,
    VariableScope,
    assign,
    assign_add,
    assign_sub,
    get_local_variable,
    get_variable,
    get_variable_scope,
    global_variables,
    global_variables_initializer,
    initialize_all_variables,
    is_variable_initialized,
    local_variables,
    local_variables_initializer,
    model_variables,
    moving_average_variables,
    report_uninitialized_variables,
    trainable_variables,
    variable_scope,
    variables_initializer,
)

__all__ = [
    *_functions.__all__, *_older_functions.__all__, *_sparse_functions.__all__,
    "AUTO_REUSE", "Assert", "ConfigProto", "Dimension", "GPUOptions", "Graph", "GraphKeys", "GraphOptions",
    "InteractiveSession", "Operation", "OptimizerOptions", "Print", "RunMetadata", "RunOptions", "Session",
    "SparseTensorValue",
    "Variable", "VariableScope", "add_to_collection", "add_to_collections", "all_variables", "assign", "assign_add",
    "assign_sub", "colocate_with", "constant_initializer", "control_dependencies", "control_flow_v2_enabled",
    "disable_control_flow_v2", "disable_eager_execution", "disable_resource_variables", "disable_v2_behavior",
    "disable_v2_tensorshape", "enable_control_flow_v2", "enable_eager_execution", "enable_resource_variables",
    "enable_tensor_equality", "enable_v2_behavior", "enable_v2_tensorshape", "executing_eagerly_outside_functions",
    "get_collection", "get_collection_ref", "get_default_graph", "get_default_session", "get_local_variable",
    "get_variable", "get_variable_scope", "global_variables", "global_variables_initializer",
    "glorot_normal_initializer", "glorot_uniform_initializer", "gradients", "group", "identity",
    "initialize_all_tables", "initialize_all_variables", "initialize_local_variables", "initialize_variables",
    "initializers",
    "is_variable_initialized", "layers", "local_variables", "local_variables_initializer", "log", "losses",
    "make_template", "model_variables", "moving_average_variables", "name_scope", "no_op", "ones_initializer",
    "orthogonal_initializer", "placeholder", "placeholder_with_default", "print", "py_func", "random_normal",
    "random_normal_initializer", "random_uniform", "random_uniform_initializer", "report_uninitialized_variables",
    "reset_default_graph", "sparse_placeholder", "tables_initializer",
    "train", "trainable_variables", "truncated_normal",
    "truncated_normal_initializer", "tuple", "uniform_unit_scaling_initializer", "variable_scope",
    "variables_initializer", "variance_scaling_initializer", "zeros_initializer",
]

disable_v2_behavior = disable_eager_execution
random_normal = _tf.random.normal
random_uniform = _tf.random.uniform
truncated_normal = _tf.random.truncated_normal
all_variables, initialize_variables = global_variables, variables_initializer
initialize_local_variables = local_variables_initializer
initialize_all_tables = tables_initializer
log = _tf.math.log

#: loaded when they are first asked for
_MODULES = frozenset({"app", "data", "feature_column", "flags", "gfile", "image", "logging", "metrics", "nn", "ragged",
                      "random", "sparse", "summary"})
#: messages of event files
_MESSAGES = frozenset({"Event", "HistogramProto", "LogMessage", "SessionLog", "Summary", "SummaryMetadata"})


@_public
def enable_v2_behavior() -> None:
    """Nothing is left to do: it is how things are."""


enable_resource_variables = disable_resource_variables = enable_v2_tensorshape = enable_v2_behavior
enable_control_flow_v2 = disable_control_flow_v2 = disable_v2_tensorshape = enable_v2_behavior
enable_tensor_equality = enable_v2_behavior


@_public
def control_flow_v2_enabled() -> bool:
    """Whether branches and loops are functions of their own: always."""
    return True


@_public
def colocate_with(op: Any, ignore_existing: bool = False) -> Any:
    """A block whose ops run where another runs; they run where their operands are, so that it changes nothing.

    Args:
        op, ignore_existing: accepted, without effect.
    """
    import contextlib
    return contextlib.nullcontext()


@_public
def executing_eagerly_outside_functions() -> bool:
    """Whether ops run at once outside of functions: where there is no graph."""
    from .graph import current_graph
    return current_graph() is None


def __getattr__(name: str) -> Any:
    if name in _MODULES or name in _OLDER_MODULES:
        return _module(name)
    if name in _MESSAGES:
        from twofold.summary.writer import message
        return message(name)
    if name in _ALIASES:
        return _resolve(_tf, _ALIASES[name])
    if name.startswith("assert_") and hasattr(_tf.debugging, name):
        return _assertion(name)
    return getattr(_tf, name)


def _module(name: str) -> Any:
    """A module below this one."""
    if name in _OLDER_MODULES:
        return _OlderModule(name)
    return importlib.import_module(f"{__name__}.{name}")


_older.provide("modules", _module)
publish(__name__)
