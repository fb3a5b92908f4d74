"""What programs of TensorFlow 1 build graphs with: placeholders, operations, control dependencies, gradients."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import twofold as tf
from twofold._front.api import block, listed, public
from twofold.ir import dtypes as dt
from twofold.ir.spec import TensorShape

from . import mode
from .graph import current_graph
from .keys import GraphKeys
from .operations import GraphTensor, Operation, deferred
from .variables import global_variables, local_variables, trainable_variables

__all__ = [
    "Assert", "Print", "add_to_collection", "add_to_collections", "control_dependencies", "get_collection",
    "get_collection_ref", "get_default_graph", "gradients", "group", "identity", "name_scope", "no_op", "placeholder",
    "placeholder_with_default", "print_", "py_func", "tables_initializer", "tuple_", "with_dependencies",
]


@public
def get_default_graph() -> Any:
    """The graph that ops go to; where they run at once or are traced, one that stays empty and gives names."""
    return mode.graph_at_hand()


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
        made = deferred(graph, None, (), [kind], title)[0]
        graph.named[f"{title}:0"], made._name = made, f"{title}:0"
        return made
    return graph.trace.placeholder([graph.trace.fresh("p") if d is None else d for d in dims], kind, title)


@public
def placeholder_with_default(input: Any, shape: Any, name: str | None = None) -> Any:
    """A tensor that may be fed, and has a value where it is not.

    Args:
        input: the value.
        shape: its shape, with None for sizes that may be others when it is fed. Where it is None, so is the shape of
            what is computed; what is fed has as many axes as the default.
        name: its name.

    >>> import twofold as tf
    >>> with tf.compat.v1.Session() as session:
    ...     x = tf.compat.v1.placeholder_with_default([1.0, 2.0], [None])
    ...     print(session.run(x * 2.0), session.run(x * 2.0, {x: [5.0]}))
    [2. 4.] [10.]
    """
    graph, value = current_graph(), tf.convert_to_tensor(input)
    if graph is None:
        return tf.identity(value)
    dims = TensorShape(shape).dims
    if not TensorShape(shape).is_compatible_with(value.shape):
        raise ValueError(f"placeholder_with_default: a value of shape {value.shape} does not fit {TensorShape(shape)}")
    sizes = graph.trace.veil(value.ndim) if dims is None else [
        graph.trace.fresh("p") if d is None else d for d in dims]
    made = graph.trace.placeholder(sizes, value.dtype, graph.scoped("PlaceholderWithDefault" if name is None else name))
    graph.defaults[made.value] = graph.trace.lift(value)
    return made


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
    kinds = [dt.as_dtype(t) for t in (listed(Tout, "Tout") if several else [Tout])]

    def make(tensors: Sequence[Any]) -> Sequence[Any]:
        return tf.py_function(func, list(tensors), kinds)
    results = deferred(graph, make, listed(inp, "inp"), kinds, "EagerPyFunc", python=True)
    return results if several else results[0]


# -- operations ----------------------------------------------------------------------------------------
@public
def no_op(name: str | None = None) -> Any:
    """What does nothing when it runs."""
    graph = current_graph()
    return None if graph is None else Operation(graph, [], graph.scoped("NoOp" if name is None else name))


@public
def tables_initializer(name: str = "init_all_tables") -> Any:
    """What runs the initialisers of iterators when it runs."""
    graph = current_graph()
    if graph is None:
        return None
    return Operation(graph, [], graph.scoped(name), after=graph.get_collection(GraphKeys.TABLE_INITIALIZERS))


@public
def group(*inputs: Any, name: str | None = None, **ignored: Any) -> Any:
    """What runs several operations, and computes tensors.

    Args:
        inputs: operations and tensors, or lists of them; None is passed over.
        name: of the operation.
        ignored: accepted, without effect.
    """
    graph = current_graph()
    if graph is None:
        return None
    first = [graph.as_operation(x) for x in tf.nest.flatten(inputs) if x is not None]
    initialises = bool(first) and all(operation.initialises for operation in first)
    return Operation(graph, [], graph.scoped("group_deps" if name is None else name), initialises, after=first)


@public
def tuple_(tensors: Sequence[Any], name: str | None = None, control_inputs: Sequence[Any] | None = None) -> list[Any]:
    """Tensors none of which can be had before all are computed.

    Args:
        tensors: tensors, variables or None.
        name: accepted, without effect.
        control_inputs: further operations that come first.
    """
    graph, tensors = current_graph(), listed(tensors, "tensors")
    if graph is None:
        return [None if t is None else tf.convert_to_tensor(t) for t in tensors]
    further = listed(control_inputs or (), "control_inputs")
    with graph.control_dependencies([*[t for t in tensors if t is not None], *further]):
        return [None if t is None else tf.identity(t) for t in tensors]


@public
def control_dependencies(control_inputs: Sequence[Any] | None) -> contextlib.AbstractContextManager[Any]:
    """A block whose operations run after others, and see the values these assign; without effect where ops run at once.

    Args:
        control_inputs: operations, tensors and variables; None leaves those of the blocks around it.
    Raises:
        TypeError: something else is among them.

    >>> import twofold as tf
    >>> with tf.compat.v1.Session() as session:
    ...     v = tf.Variable(1.0)
    ...     with tf.compat.v1.control_dependencies([v.assign_add(1.0)]):
    ...         doubled = v * 2.0
    ...     session.run(v.initializer)
    ...     print(session.run(doubled), session.run(v))
    4.0 2.0
    """
    graph = current_graph()
    return contextlib.nullcontext() if graph is None else graph.control_dependencies(control_inputs)


def with_dependencies(dependencies: Sequence[Any], output_tensor: Any, name: str | None = None) -> Any:
    """A tensor that cannot be had before some operations have run."""
    with control_dependencies(dependencies):
        return tf.identity(output_tensor)


@block
def name_scope(name: str | None = None, default_name: str | None = None, values: Any = None) -> Iterator[str]:
    """A block whose operations have a prefix; in a graph it gets a number where it is taken.

    Args:
        name: the prefix; one that ends in a slash is entered again as it is.
        default_name: the prefix where `name` is None.
        values: accepted, without effect.
    """
    graph, title = current_graph(), default_name if name is None else name
    if graph is not None and title and not title.endswith("/"):
        title = graph.scoped(title) + "/"
    with tf.name_scope(title or "") as scope:
        yield scope


@public
def identity(input: Any, name: str | None = None) -> Any:
    """`input` under a name of its own.

    Args:
        input: a tensor.
        name: its name in the graph.
    """
    return named(tf.identity(input), name)


def named(tensor: Any, name: str | None) -> Any:
    """A tensor of a graph under a further name; any other value unchanged."""
    graph = current_graph()
    if graph is None or name is None or not isinstance(tensor, GraphTensor):
        return tensor
    full = graph.scoped(name)
    graph.named[f"{full}:0"] = tensor
    tensor._name = f"{full}:0"
    return tensor


@public
def print_(*inputs: Any, **options: Any) -> Any:
    """Print when it runs; see `tf.print`. In a graph it is an operation, which something has to run."""
    graph = current_graph()
    if graph is None:
        return tf.print(*inputs, **options)
    return graph.trace.effect("PrintV2", lambda: tf.print(*inputs, **options))


@public
def Print(input_: Any, data: Sequence[Any], message: str | None = None, first_n: int | None = None,
          summarize: int | None = None, name: str | None = None) -> Any:
    """`input_`; when it is computed, `data` are printed to standard error.

    Args:
        input_: a tensor.
        data: tensors to print.
        message: a text before them.
        summarize: how many entries of an axis are shown at each end; 3 by default.
        first_n, name: accepted, without effect.
    """
    said = [*([message] if message else []), *[part for x in listed(data, "data") for part in ("[", x, "]")]]
    with control_dependencies([print_(*said, sep="", summarize=3 if summarize is None else summarize)]):
        return tf.identity(input_)


@public
def Assert(condition: Any, data: Sequence[Any], summarize: int | None = None, name: str | None = None) -> Any:
    """Raise InvalidArgumentError when it runs and the condition does not hold; in a graph, something has to run it.

    Args:
        condition: a bool scalar.
        data: what the error tells.
        summarize: has no effect.
        name: accepted, without effect.
    """
    return tf.debugging.Assert(condition, data)


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
        graph.add_to_collection(name, value)


@public
def add_to_collections(names: Any, value: Any) -> None:
    """Put a value into several collections of the current graph."""
    for name in [names] if isinstance(names, str) else listed(names, "names"):
        add_to_collection(name, value)


@public
def get_collection(key: str, scope: str | None = None) -> list[Any]:
    """The values of a collection of the current graph.

    Args:
        key: the name of the collection.
        scope: gives those alone whose name begins with it.
    """
    graph = current_graph()
    if key == GraphKeys.GLOBAL_VARIABLES:
        return global_variables(scope)
    if key == GraphKeys.LOCAL_VARIABLES:
        return local_variables(scope)
    if key == GraphKeys.TRAINABLE_VARIABLES:
        return trainable_variables(scope)
    return [] if graph is None else graph.get_collection(key, scope)


@public
def get_collection_ref(key: str) -> list[Any]:
    """A collection of the current graph itself, which may be changed; a new list where ops run at once."""
    graph = current_graph()
    return [] if graph is None else graph.get_collection_ref(key)
