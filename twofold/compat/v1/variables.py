"""Variables of graphs: `Variable`, `get_variable` in scopes that make or find them, and their initialisers."""

from __future__ import annotations

import contextvars
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import twofold as tf
from twofold._front.api import block, describe, listed, public
from twofold.eager import sessions
from twofold.eager.variable import Variable as _Variable
from twofold.ir import dtypes as dt
from twofold.ir.spec import TensorShape

from . import keys, mode
from .current import default_session, session_or_default
from .graph import current_graph
from .keys import GraphKeys
from .operations import Operation

__all__ = [
    "AUTO_REUSE", "Variable", "VariableScope", "assign", "assign_add", "assign_sub", "get_local_variable",
    "get_variable", "get_variable_scope", "global_variables", "global_variables_initializer",
    "initialize_all_variables", "is_variable_initialized", "local_variables", "local_variables_initializer",
    "model_variables", "moving_average_variables", "report_uninitialized_variables", "trainable_variables",
    "variable_names", "variable_scope", "variables_initializer",
]

AUTO_REUSE = "auto"  # makes a variable where there is none of its name
_LOCAL = (GraphKeys.LOCAL_VARIABLES, GraphKeys.METRIC_VARIABLES)


class _OfAllVariables(type(_Variable)):  # type: ignore[misc]
    """Every variable counts as an instance."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, _Variable)


class Variable(_Variable, metaclass=_OfAllVariables):
    """A variable, with the arguments that TensorFlow 1 has for it; all variables are instances.

    Args:
        initial_value: the first value, or a function of no arguments that gives it.
        trainable: whether it is among the trainable variables of the graph; by default those of float dtype.
        collections: names of collections; with GraphKeys.LOCAL_VARIABLES among them it is a local variable.
        validate_shape: whether the shape is fixed by the initial value.
        name: its name.
        dtype: the dtype to convert the initial value to.
        constraint: a function of the value, which optimizers apply after an update.
        shape: a shape more general than the initial value's.
        caching_device, variable_def, expected_shape, import_scope, use_resource, synchronization, aggregation:
            accepted, without effect.

    >>> import twofold as tf
    >>> isinstance(tf.Variable(1.0), tf.compat.v1.Variable)
    True
    """

    def __init__(self, initial_value: Any = None, trainable: bool | None = None, collections: Any = None,
                 validate_shape: bool = True, caching_device: Any = None, name: str | None = None,
                 variable_def: Any = None, dtype: Any = None, expected_shape: Any = None, import_scope: Any = None,
                 constraint: Any = None, use_resource: Any = None, synchronization: Any = None,
                 aggregation: Any = None, shape: Any = None):
        super().__init__(initial_value, trainable, validate_shape, None, name, None, dtype, None, constraint,
                         shape=shape)
        _collect(self, collections)


def _collect(variable: Any, collections: Sequence[str] | None) -> None:
    """Put a new variable into collections; a local one is taken from the others."""
    graph = current_graph()
    if graph is None or not collections:
        return
    if any(name in _LOCAL for name in collections) and GraphKeys.GLOBAL_VARIABLES not in collections:
        graph.variables[:] = [v for v in graph.variables if v is not variable]
        graph.local_variables.append(variable)
    for name in collections:
        if name not in keys.OF_VARIABLES:
            graph.add_to_collection(name, variable)


class VariableScope:
    """A scope of `get_variable`: a prefix of names, and whether variables are made or found.

    Attributes:
        name: the prefix, without a slash at its end.
        reuse: False to make, True to find, AUTO_REUSE for either.
        initializer: what makes the values of variables that give none.
        regularizer: what gives a loss for variables that have no regularizer of their own.
        dtype: of variables that give none.
        custom_getter: what is called in the place of `get_variable`, with that as its first argument.
        caching_device: where values would be kept that were read; it has no effect.
    """

    caching_device: Any = None

    def __init__(self, name: str, reuse: Any = False, initializer: Any = None, regularizer: Any = None,
                 dtype: Any = None, custom_getter: Any = None) -> None:
        self.name, self.reuse, self.initializer = name, reuse, initializer
        self.regularizer, self.dtype, self.custom_getter = regularizer, dtype, custom_getter

    @property
    def original_name_scope(self) -> str:
        """The prefix of the names of operations."""
        return f"{self.name}/" if self.name else ""

    def reuse_variables(self) -> None:
        """Find variables from now on."""
        self.reuse = True

    def set_initializer(self, initializer: Any) -> None:
        """What makes the values of variables that give none from now on."""
        self.initializer = initializer

    def set_regularizer(self, regularizer: Any) -> None:
        """What gives a loss for variables without a regularizer of their own from now on."""
        self.regularizer = regularizer

    def set_custom_getter(self, custom_getter: Any) -> None:
        """What is called in the place of `get_variable` from now on."""
        self.custom_getter = custom_getter

    def set_caching_device(self, caching_device: Any) -> None:
        """Note where values would be kept that were read; it has no effect."""
        self.caching_device = caching_device

    def global_variables(self) -> list[Any]:
        """The variables of the graph in this scope."""
        return global_variables(self.original_name_scope)

    def trainable_variables(self) -> list[Any]:
        """The trainable variables of the graph in this scope."""
        return trainable_variables(self.original_name_scope)


class _Names:
    """What `get_variable` knows of a graph, or of eager execution."""

    def __init__(self) -> None:
        self.root = VariableScope("")
        self.variables: dict[str, Any] = {}
        self.opened: dict[str, int] = {}  # how often a scope was opened since that around it was


_scope: contextvars.ContextVar[VariableScope | None] = contextvars.ContextVar("v1_variable_scope", default=None)
_eager = _Names()


def _names() -> _Names:
    graph = current_graph()
    if graph is None:
        return _eager
    if graph.names is None:
        graph.names = _Names()
    names: _Names = graph.names
    return names


def variable_names() -> dict[str, Any]:
    """The variables by the names that `get_variable` knows here."""
    return _names().variables


@public
def get_variable_scope() -> VariableScope:
    """The scope of `get_variable` here."""
    return _scope.get() or _names().root


@block
def variable_scope(name_or_scope: Any, default_name: str | None = None, values: Any = None, initializer: Any = None,
                   regularizer: Any = None, caching_device: Any = None, partitioner: Any = None,
                   custom_getter: Any = None, reuse: Any = None, dtype: Any = None, use_resource: Any = None,
                   constraint: Any = None, auxiliary_name_scope: bool = True) -> Iterator[VariableScope]:
    """A block whose variables have a prefix.

    Args:
        name_or_scope: the prefix within the scope around it, or a scope to enter again.
        default_name: the prefix where `name_or_scope` is None; it gets a number where it is taken.
        initializer: for variables that give none.
        regularizer: for variables that give none.
        reuse: True to find variables rather than make them, AUTO_REUSE for either; by default as around it.
        dtype: of variables that give none.
        custom_getter: called in the place of `get_variable`, as `custom_getter(getter, name=name, shape=shape, ...)`
            with the whole name; `getter` is `get_variable`, or the custom getter around this block.
        values, caching_device, partitioner, use_resource, constraint, auxiliary_name_scope: accepted, without effect.
    Raises:
        ValueError: there is no name.

    >>> import twofold as tf
    >>> with tf.compat.v1.variable_scope("a"), tf.compat.v1.variable_scope("b") as scope:
    ...     print(scope.name)
    a/b
    """
    around, names = get_variable_scope(), _names()
    if isinstance(name_or_scope, VariableScope):
        name, base = name_or_scope.name, name_or_scope
    elif name_or_scope is None and default_name is None:
        raise ValueError("If default_name is None then name_or_scope is required")
    else:
        part = str(name_or_scope) if name_or_scope is not None else _free(names, around.name, str(default_name))
        name, base = f"{around.name}/{part}" if around.name else part, around
    made = VariableScope(name, reuse or base.reuse or around.reuse, initializer or base.initializer,
                         regularizer or base.regularizer, dtype or base.dtype,
                         _within(custom_getter, base.custom_getter))
    names.opened[name] = names.opened.get(name, 0) + 1
    token = _scope.set(made)
    try:
        with tf.name_scope(f"{name}/" if name else ""):
            yield made
    finally:
        _scope.reset(token)
        for inner in [n for n in names.opened if n.startswith(f"{name}/")]:
            del names.opened[inner]  # when the scope is entered again, the names in it are, too


def _within(getter: Any, around: Any) -> Any:
    """A custom getter whose `getter` is the one around it."""
    if getter is None or around is None:
        return getter or around

    def both(true_getter: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return getter(functools.partial(around, true_getter), *args, **kwargs)
    return both


def _free(names: _Names, around: str, name: str) -> str:
    """`name`, with a number behind it where a scope of that name was opened already."""
    prefix, tried, number = f"{around}/" if around else "", name, 0
    while names.opened.get(prefix + tried):
        number += 1
        tried = f"{name}_{number}"
    return tried


@public
def get_variable(name: str, shape: Any = None, dtype: Any = None, initializer: Any = None, regularizer: Any = None,
                 trainable: bool | None = None, collections: Any = None, caching_device: Any = None,
                 partitioner: Any = None, validate_shape: bool = True, use_resource: Any = None,
                 custom_getter: Any = None, constraint: Any = None, synchronization: Any = None,
                 aggregation: Any = None) -> Any:
    """The variable of a name in the current scope: made, or found, as the scope says.

    Args:
        name: its name.
        shape: its shape, where there is no initial value.
        dtype: its dtype; float32 by default.
        initializer: a value, or a function of a shape and a dtype; Glorot's uniform one by default, and zeros for
            integers.
        regularizer: gives a loss for the variable, which goes into the collection REGULARIZATION_LOSSES.
        trainable: whether it is among the trainable variables.
        collections: names of collections; with GraphKeys.LOCAL_VARIABLES among them it is a local variable.
        constraint: a function of the value, which optimizers apply after an update.
        validate_shape: whether the shape is fixed by the initial value.
        custom_getter: see `variable_scope`; it takes the place of the scope's.
        caching_device, partitioner, use_resource, synchronization, aggregation: handed to custom getters alone.
    Raises:
        ValueError: it exists already, or does not exist, against what the scope says; it exists with another shape or
            dtype; or there is no shape.

    >>> import twofold as tf
    >>> with tf.compat.v1.variable_scope("layer", reuse=tf.compat.v1.AUTO_REUSE):
    ...     w = tf.compat.v1.get_variable("w", [2, 3])
    >>> w.name
    'layer/w:0'
    """
    scope = get_variable_scope()
    full = f"{scope.name}/{name}" if scope.name else name
    initializer = scope.initializer if initializer is None else initializer
    regularizer = scope.regularizer if regularizer is None else regularizer
    getter, wanted = custom_getter or scope.custom_getter, dtype or scope.dtype
    if getter is None:
        return _made_or_shared(full, shape, wanted, initializer, regularizer, scope.reuse, trainable, collections,
                               validate_shape=validate_shape, constraint=constraint)
    return getter(_made_or_shared, name=full, shape=shape, dtype=wanted or dt.float32, initializer=initializer,
                  regularizer=regularizer, reuse=scope.reuse, trainable=trainable, collections=collections,
                  caching_device=caching_device, partitioner=partitioner, validate_shape=validate_shape,
                  use_resource=use_resource, constraint=constraint, synchronization=synchronization,
                  aggregation=aggregation)


def _made_or_shared(name: str, shape: Any = None, dtype: Any = None, initializer: Any = None, regularizer: Any = None,
                    reuse: Any = None, trainable: bool | None = None, collections: Any = None,
                    caching_device: Any = None, partitioner: Any = None, validate_shape: bool = True,
                    use_resource: Any = None, constraint: Any = None, synchronization: Any = None,
                    aggregation: Any = None) -> Any:
    """`get_variable` of a whole name; what custom getters get for a getter."""
    graph, store = current_graph(), _names().variables
    if name in store and reuse:
        return _shared(name, store[name], shape, dtype)
    if name in store and graph is not None:
        raise ValueError(f"Variable {name} already exists, disallowed. Did you mean to set reuse=True or "
                         "reuse=tf.AUTO_REUSE in VarScope?")
    if reuse is True:
        raise ValueError(f"Variable {name} does not exist, or was not created with tf.get_variable(). Did you mean to "
                         "set reuse=tf.AUTO_REUSE in VarScope?")
    if regularizer is not None and not callable(regularizer):
        raise TypeError(f"get_variable: regularizer must be a function of the variable; got {describe(regularizer)}.")
    value = _initial(name, shape, dt.as_dtype(dtype or dt.float32), initializer)
    with tf.name_scope(""):
        made = Variable(value, trainable, collections, validate_shape, name=name, dtype=dtype, constraint=constraint)
    store[name] = made
    _regularise(made, regularizer, name)
    return made


def _shared(name: str, variable: Any, shape: Any, dtype: Any) -> Any:
    if shape is not None and not TensorShape(shape).is_compatible_with(variable.shape):
        raise ValueError(f"Trying to share variable {name}, but specified shape {TensorShape(shape)} and found shape "
                         f"{variable.shape}.")
    if dtype is not None and dt.as_dtype(dtype) is not variable.dtype:
        raise ValueError(f"Trying to share variable {name}, but specified dtype {dt.as_dtype(dtype).name} and found "
                         f"dtype {variable.dtype.name}.")
    return variable


def _regularise(variable: Any, regularizer: Any, name: str) -> None:
    graph = current_graph()
    if regularizer is None or graph is None:
        return
    with tf.name_scope(f"{name}/Regularizer/"):
        loss = regularizer(variable)
    if loss is not None:
        graph.add_to_collection(GraphKeys.REGULARIZATION_LOSSES, loss)


def _initial(name: str, shape: Any, dtype: Any, initializer: Any) -> Any:
    if initializer is not None and not callable(initializer):
        if shape is not None and not isinstance(initializer, (tf.Tensor, _Variable)):
            return lambda: tf.broadcast_to(tf.constant(initializer, dtype), TensorShape(shape).as_list())
        return initializer
    make = initializer() if isinstance(initializer, type) else initializer
    if shape is None:
        if make is not None and initializer is make:
            return make  # a function of no arguments
        raise ValueError(f"Shape of a new variable ({name}) must be fully defined, but instead was <unknown>.")
    if make is None:
        make = tf.keras.initializers.GlorotUniform() if dtype.is_floating else tf.keras.initializers.Zeros()
    sizes = TensorShape(shape).as_list()
    return lambda: make(sizes, dtype=dtype)


@public
def get_local_variable(name: str, shape: Any = None, dtype: Any = None, initializer: Any = None,
                       **options: Any) -> Any:
    """A local variable, which is not trained and not saved; see `get_variable`."""
    options["collections"] = [*(options.get("collections") or []), GraphKeys.LOCAL_VARIABLES]
    options["trainable"] = False
    return get_variable(name, shape, dtype, initializer, **options)


@public
def assign(ref: Any, value: Any, validate_shape: Any = None, use_locking: Any = None, name: Any = None) -> Any:
    """Set a variable; in a graph, what sets it when it runs.

    `validate_shape`, `use_locking` and `name` have no effect.
    """
    return ref.assign(value)


@public
def assign_add(ref: Any, value: Any, use_locking: Any = None, name: Any = None) -> Any:
    """Add to a variable; in a graph, what adds to it when it runs. `use_locking` and `name` have no effect."""
    return ref.assign_add(value)


@public
def assign_sub(ref: Any, value: Any, use_locking: Any = None, name: Any = None) -> Any:
    """Subtract from a variable; in a graph, what subtracts from it when it runs.

    `use_locking` and `name` have no effect.
    """
    return ref.assign_sub(value)


# -- those of a graph ----------------------------------------------------------------------------------
@public
def global_variables(scope: str | None = None) -> list[Any]:
    """The variables of the current graph; none where ops run at once.

    Args:
        scope: gives those alone whose name begins with it.
    """
    graph = current_graph()
    return [] if graph is None else [v for v in graph.variables if scope is None or v.name.startswith(scope)]


@public
def local_variables(scope: str | None = None) -> list[Any]:
    """The local variables of the current graph, which are not saved; see `global_variables`."""
    graph = current_graph()
    return [] if graph is None else [v for v in graph.local_variables if scope is None or v.name.startswith(scope)]


@public
def trainable_variables(scope: str | None = None) -> list[Any]:
    """The trainable variables of the current graph; see `global_variables`."""
    return [v for v in global_variables(scope) if v.trainable]


@public
def model_variables(scope: str | None = None) -> list[Any]:
    """The variables of the collection MODEL_VARIABLES; see `global_variables`."""
    graph = current_graph()
    return [] if graph is None else graph.get_collection(GraphKeys.MODEL_VARIABLES, scope)


@public
def moving_average_variables(scope: str | None = None) -> list[Any]:
    """The variables that moving averages are kept of; see `global_variables`."""
    graph = current_graph()
    return [] if graph is None else graph.get_collection(GraphKeys.MOVING_AVERAGE_VARIABLES, scope)


@public
def variables_initializer(var_list: Sequence[Any], name: str = "init") -> Any:
    """What gives variables their first values when it runs; nothing where ops run at once.

    Args:
        var_list: the variables.
        name: of the operation.
    """
    graph = current_graph()
    if graph is None:
        return None
    updates = [(variable, _first_value(graph, variable)) for variable in listed(var_list, "var_list")]
    return Operation(graph, updates, graph.scoped(name), initialises=True)


def _first_value(graph: Any, variable: Any) -> Any:
    start = graph.initial[id(variable)]
    return tf.convert_to_tensor(start() if callable(start) and not isinstance(start, tf.Tensor) else start,
                                dtype=variable.dtype)


@public
def global_variables_initializer() -> Any:
    """What gives all variables of the current graph their first values when it runs.

    >>> import twofold as tf
    >>> with tf.compat.v1.Session() as session:
    ...     v = tf.Variable(3.0)
    ...     session.run(tf.compat.v1.global_variables_initializer())
    ...     print(session.run(v), session.run(v.assign_add(1.0)))
    3.0 4.0
    """
    return variables_initializer(global_variables())


initialize_all_variables = global_variables_initializer


@public
def local_variables_initializer() -> Any:
    """What gives the local variables of the current graph their first values when it runs."""
    return variables_initializer(local_variables(), "init_local")


@public
def is_variable_initialized(variable: Any) -> Any:
    """Whether a variable has a value: a bool scalar, of the moment when it runs in a graph."""
    graph = current_graph()
    if graph is None:
        return tf.constant(True)
    return tf.numpy_function(lambda: id(variable) not in graph.uninitialised, [], tf.TensorSpec([], tf.bool))


@public
def report_uninitialized_variables(var_list: Sequence[Any] | None = None, name: str | None = None) -> Any:
    """The names of variables that have no value yet: a string tensor of rank 1.

    Args:
        var_list: the variables to look at; all global and local ones by default.
        name: accepted, without effect.
    """
    graph = current_graph()
    if graph is None:
        return tf.constant([], tf.string)
    looked_at = listed(var_list, "var_list") if var_list is not None else [*global_variables(), *local_variables()]

    def names() -> Any:
        import numpy as np
        return np.array([v.name[:-2].encode() for v in looked_at if id(v) in graph.uninitialised], object)
    return tf.numpy_function(names, [], tf.TensorSpec([None], tf.string))


# -- what variables themselves offer (twofold.eager.sessions) ------------------------------------------
class _Front:
    """Graphs and sessions, as variables know them."""

    @staticmethod
    def graph_of(variable: Any) -> Any:
        """The graph that a variable was made in."""
        return mode.graph_of(variable)

    def operation_of(self, variable: Any) -> Operation:
        """The operation that has a variable as its output."""
        graph, name = self.graph_of(variable), variable.name[:-2]
        operation: Operation = graph.operations.get(name) or Operation(graph, [], name, outputs=[variable],
                                                                       kind="VariableV2")
        return operation

    def initializer_of(self, variable: Any) -> Any:
        """The operation that assigns a variable its initial value; None for one that was made where ops run at once."""
        graph = mode.graph_with(variable)
        if graph is None:
            return None
        with graph.as_default():
            return variables_initializer([variable], f"{variable.name[:-2]}/Assign")

    def initialized_value_of(self, variable: Any) -> Any:
        """The initial value of a variable, which is the same wherever it is used in a run."""
        graph = self.graph_of(variable)
        with graph.as_default():
            start = _first_value(graph, variable)
            graph.initial[id(variable)] = start
            return start

    @staticmethod
    def new_session(graph: Any) -> Any:
        """A session for a graph, or for the current one."""
        from .session import Session
        return Session(graph=graph)

    def session_here(self) -> Any:
        """What runs the current graph: the session that is open, or one of its own, since variables have their values
        in themselves; None where ops run at once."""
        return None if current_graph() is None else default_session.get() or self.new_session(None)

    @staticmethod
    def value_in(variable: Any, session: Any) -> Any:
        """The value in a session."""
        return session_or_default(session).run(variable)

    def load_into(self, variable: Any, value: Any, session: Any) -> None:
        """Set a variable in a session."""
        session_or_default(session)
        with tf.init_scope():
            variable.assign(value)
        self.graph_of(variable).uninitialised.discard(id(variable))


if not sessions.front:
    sessions.front.append(_Front())
