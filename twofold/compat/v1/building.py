"""What programs of TensorFlow 1 build graphs with: placeholders, variables in scopes, initialisers, gradients."""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import twofold as tf
from twofold._api import public
from twofold.ir import dtypes as dt
from twofold.ir.spec import TensorShape

from . import mode
from .graph import current_graph
from .operations import Operation, deferred

__all__ = [
    "AUTO_REUSE", "GraphKeys", "add_to_collection", "assign", "assign_add", "assign_sub", "get_collection",
    "get_default_graph", "get_variable", "get_variable_scope", "global_variables", "global_variables_initializer",
    "gradients", "group", "initialize_all_variables", "local_variables_initializer", "no_op", "placeholder",
    "placeholder_with_default", "py_func", "tables_initializer", "trainable_variables", "variable_scope",
    "variables_initializer",
]

AUTO_REUSE = "auto"  # makes a variable where there is none of its name


class GraphKeys:
    """Names of collections."""

    GLOBAL_VARIABLES = "variables"
    TRAINABLE_VARIABLES = "trainable_variables"
    GLOBAL_STEP = "global_step"
    SUMMARIES = "summaries"
    LOSSES = "losses"
    REGULARIZATION_LOSSES = "regularization_losses"
    UPDATE_OPS = "update_ops"


@public
def get_default_graph() -> Any:
    """The graph that ops go to.

    Raises:
        RuntimeError: ops run at once.
    """
    return mode.default_graph()


@public
def placeholder(dtype: Any, shape: Any = None, name: str | None = None) -> Any:
    """A tensor whose value is fed when the graph runs.

    Args:
        dtype: its dtype.
        shape: its shape, with None for sizes that are not known. Of a placeholder without any, what is computed has no
            shape until it runs, and ops that need one before are errors.
        name: its name.
    Raises:
        RuntimeError: ops run at once.

    >>> import twofold as tf
    >>> with tf.compat.v1.Session() as session:
    ...     x = tf.compat.v1.placeholder(tf.float32)
    ...     print(session.run(x * 2.0, feed_dict={x: [1.0, 2.0]}))
    [2. 4.]
    """
    graph = current_graph()
    if graph is None:
        raise RuntimeError("tf.placeholder() is not compatible with eager execution.")
    kind, dims = dt.as_dtype(dtype), TensorShape(shape).dims
    title = graph.scoped("Placeholder" if name is None else name)
    if dims is None:
        made = deferred(graph, None, (), [kind], title)[0]  # type: ignore[arg-type]
        graph.named[f"{title}:0"], made._name = made, f"{title}:0"
        return made
    return graph.trace.placeholder([graph.trace.fresh("p") if d is None else d for d in dims], kind, title)


@public
def placeholder_with_default(input: Any, shape: Any, name: str | None = None) -> Any:
    """A tensor that may be fed, and has a value where it is not.

    Args:
        input: the value.
        shape: accepted, without effect: the shape is the value's.
        name: accepted, without effect.
    """
    return tf.identity(input)


@public
def py_func(func: Callable[..., Any], inp: Sequence[Any], Tout: Any, stateful: bool = True,
            name: str | None = None) -> Any:
    """Call a Python function of tensors, which have values there, when the graph runs; at once where ops run at once.

    Args:
        func: the function.
        inp: what it is given.
        Tout: the dtype of its result, or a list of them.
        stateful, name: accepted, without effect.
    Returns:
        A tensor, or a list of them where `Tout` is a list.

    >>> import twofold as tf
    >>> with tf.compat.v1.Session() as session:
    ...     x = tf.compat.v1.placeholder(tf.float32)
    ...     print(session.run(tf.compat.v1.py_func(lambda t: t + 1.0, [x], tf.float32), feed_dict={x: 2.0}))
    3.0
    """
    graph = current_graph()
    if graph is None:
        return tf.py_function(func, inp, Tout)
    several = isinstance(Tout, (list, tuple))
    kinds = [dt.as_dtype(t) for t in (Tout if several else [Tout])]

    def make(tensors: Sequence[Any]) -> Sequence[Any]:
        return tf.py_function(func, list(tensors), kinds)
    found = deferred(graph, make, list(inp), kinds, "EagerPyFunc", python=True)
    return found if several else found[0]


# -- variables -----------------------------------------------------------------------------------------
class VariableScope:
    """A scope of `get_variable`: a prefix of names, and whether variables are made or found.

    Attributes:
        name: the prefix, without a slash at its end.
        reuse: False to make, True to find, AUTO_REUSE for either.
        initializer: what makes the values of variables that give none.
    """

    def __init__(self, name: str, reuse: Any = False, initializer: Any = None) -> None:
        self.name, self.reuse, self.initializer = name, reuse, initializer

    def reuse_variables(self) -> None:
        """Find variables from now on."""
        self.reuse = True


_scope: contextvars.ContextVar[VariableScope | None] = contextvars.ContextVar("v1_variable_scope", default=None)
_eager_store: dict[str, Any] = {}


@public
def get_variable_scope() -> VariableScope:
    """The scope of `get_variable` here."""
    found = _scope.get()
    if found is None:
        found = VariableScope("")
        _scope.set(found)
    return found


@contextlib.contextmanager
def variable_scope(name_or_scope: Any, default_name: str | None = None, values: Any = None, initializer: Any = None,
                   reuse: Any = None, **ignored: Any) -> Iterator[VariableScope]:
    """A block whose variables have a prefix.

    Args:
        name_or_scope: the prefix within the scope around it, or a scope to enter again.
        default_name: the prefix where there is none.
        initializer: for variables that give none.
        reuse: whether to find variables rather than make them; by default as around it.
        values, ignored: accepted, without effect.
    """
    around = get_variable_scope()
    if isinstance(name_or_scope, VariableScope):
        name = name_or_scope.name
    else:
        part = name_or_scope or default_name or "scope"
        name = f"{around.name}/{part}" if around.name else str(part)
    made = VariableScope(name, around.reuse if reuse is None else reuse, initializer or around.initializer)
    token = _scope.set(made)
    try:
        with tf.name_scope(f"{name}/"):
            yield made
    finally:
        _scope.reset(token)


@public
def get_variable(name: str, shape: Any = None, dtype: Any = None, initializer: Any = None, regularizer: Any = None,
                 trainable: bool | None = None, collections: Any = None, **ignored: Any) -> Any:
    """The variable of a name in the current scope: made, or found, as the scope says.

    Args:
        name: its name.
        shape: its shape, where there is no initial value.
        dtype: its dtype; float32 by default.
        initializer: a value, or a function of a shape and a dtype; Glorot's uniform one by default, and zeros for
            integers.
        trainable: whether tapes watch it.
        regularizer, collections, ignored: accepted, without effect.
    Raises:
        ValueError: it exists already, or does not exist, against what the scope says; or there is no shape.

    >>> import twofold as tf
    >>> with tf.compat.v1.variable_scope("layer", reuse=tf.compat.v1.AUTO_REUSE):
    ...     w = tf.compat.v1.get_variable("w", [2, 3])
    >>> w.name
    'layer/w:0'
    """
    scope, graph = get_variable_scope(), current_graph()
    store = _eager_store if graph is None else graph.store
    full = f"{scope.name}/{name}" if scope.name else name
    if full in store and scope.reuse:
        return store[full]
    if full in store and graph is not None:
        raise ValueError(f"Variable {full} already exists, disallowed. Did you mean to set reuse=True or "
                         "reuse=tf.AUTO_REUSE in VarScope?")
    if scope.reuse is True:
        raise ValueError(f"Variable {full} does not exist, or was not created with tf.get_variable(). Did you mean to "
                         "set reuse=tf.AUTO_REUSE in VarScope?")
    value = _initial(full, shape, dt.as_dtype(dtype or dt.float32), initializer or scope.initializer)
    with tf.name_scope(""):
        store[full] = tf.Variable(value, name=full, trainable=trainable, dtype=dtype)
    return store[full]


def _initial(name: str, shape: Any, dtype: Any, initializer: Any) -> Any:
    if initializer is not None and not callable(initializer):
        return initializer
    if shape is None:
        raise ValueError(f"Shape of a new variable ({name}) must be fully defined, but instead was <unknown>.")
    make = initializer() if isinstance(initializer, type) else initializer
    if make is None:
        make = tf.keras.initializers.GlorotUniform() if dtype.is_floating else tf.keras.initializers.Zeros()
    sizes = TensorShape(shape).as_list()
    return lambda: make(sizes, dtype=dtype)


@public
def assign(ref: Any, value: Any, validate_shape: Any = None, use_locking: Any = None, name: Any = None) -> Any:
    """Set a variable; in a graph, what sets it when it runs."""
    return ref.assign(value)


@public
def assign_add(ref: Any, value: Any, use_locking: Any = None, name: Any = None) -> Any:
    """Add to a variable; in a graph, what adds to it when it runs."""
    return ref.assign_add(value)


@public
def assign_sub(ref: Any, value: Any, use_locking: Any = None, name: Any = None) -> Any:
    """Subtract from a variable; in a graph, what subtracts from it when it runs."""
    return ref.assign_sub(value)


@public
def global_variables(scope: str | None = None) -> list[Any]:
    """The variables of the current graph; none where ops run at once."""
    graph = current_graph()
    return [] if graph is None else [v for v in graph.variables if scope is None or v.name.startswith(scope)]


@public
def trainable_variables(scope: str | None = None) -> list[Any]:
    """The trainable variables of the current graph; none where ops run at once."""
    return [v for v in global_variables(scope) if v.trainable]


@public
def variables_initializer(var_list: Sequence[Any], name: str = "init") -> Any:
    """What gives variables their first values when it runs; nothing where ops run at once.

    Args:
        var_list: the variables.
        name: accepted, without effect.
    """
    graph = current_graph()
    if graph is None:
        return None
    updates = []
    for variable in var_list:
        start = graph.initial[id(variable)]
        updates.append((variable, tf.convert_to_tensor(start() if callable(start) else start, dtype=variable.dtype)))
    return Operation(graph, updates, graph.unique(name), initialises=True)


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
def no_op(name: str | None = None) -> Any:
    """What does nothing when it runs."""
    graph = current_graph()
    return None if graph is None else Operation(graph, [], graph.unique("NoOp" if name is None else name))


@public
def local_variables_initializer() -> Any:
    """What does nothing when it runs: there are no local variables."""
    return no_op("local_init")


@public
def tables_initializer(name: str = "init_all_tables") -> Any:
    """What does nothing when it runs: there are no tables."""
    return no_op(name)


@public
def group(*inputs: Any, **ignored: Any) -> Any:
    """What runs several operations."""
    graph = current_graph()
    if graph is None:
        return None
    operations = [getattr(x, "operation", x) for given in inputs
                  for x in (given if isinstance(given, (list, tuple)) else [given])]
    updates = [u for op in operations if isinstance(op, Operation) for u in op.updates]
    initialises = any(getattr(op, "initialises", False) for op in operations)
    return Operation(graph, updates, graph.unique("group_deps"), initialises)


@public
def gradients(ys: Any, xs: Any, grad_ys: Any = None, name: str = "gradients",
              colocate_gradients_with_ops: bool = False, gate_gradients: bool = False, aggregation_method: Any = None,
              stop_gradients: Any = None, unconnected_gradients: Any = "none") -> list[Any]:
    """The derivatives of the sum of `ys` by each of `xs`, in the current graph or function; see `tf.gradients`.

    Args:
        ys: a tensor or a list of them.
        xs: a tensor or variable, or a list of them.
        grad_ys: cotangents of `ys`; ones by default.
        stop_gradients: tensors that count as constants.
        unconnected_gradients: what there is for an x that no y depends on: "none" for None, "zero" for zeros.
        name, colocate_gradients_with_ops, gate_gradients, aggregation_method: accepted, without effect.
    Raises:
        RuntimeError: ops run at once, where a tape gives gradients.
        ValueError: a tensor has no shape before it runs.

    >>> import twofold as tf
    >>> with tf.compat.v1.Session() as session:
    ...     x = tf.compat.v1.placeholder(tf.float32, [])
    ...     print(session.run(tf.compat.v1.gradients(x * x, x)[0], feed_dict={x: 3.0}))
    6.0
    """
    return tf.gradients(ys, xs, grad_ys, stop_gradients=stop_gradients, unconnected_gradients=unconnected_gradients)


# -- collections ---------------------------------------------------------------------------------------
@public
def add_to_collection(name: str, value: Any) -> None:
    """Put a value into a collection of the current graph; nothing happens where ops run at once."""
    graph = current_graph()
    if graph is not None:
        graph.collections.setdefault(name, []).append(value)


@public
def get_collection(key: str, scope: str | None = None) -> list[Any]:
    """The values of a collection of the current graph."""
    graph = current_graph()
    if key == GraphKeys.GLOBAL_VARIABLES:
        return global_variables(scope)
    if key == GraphKeys.TRAINABLE_VARIABLES:
        return trainable_variables(scope)
    return [] if graph is None else list(graph.collections.get(key, []))
