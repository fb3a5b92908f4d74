"""Private modules of TensorFlow, each with the library that imports it, and names of classes that libraries test.

What no library is known to need is not here.
"""

from __future__ import annotations

import abc
import contextlib
import functools
import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType, SimpleNamespace
from typing import Any

import twofold as tf
from twofold.eager.custom import Decorated
from twofold.tracer.concrete import ConcreteFunction
from twofold.tracer.function import Function

from .version import VERSION

__all__ = ["DEFINING", "add_methods", "module", "name_classes_of"]


def _internal() -> dict[str, Any]:
    from .internal import namespace
    return vars(namespace())


def _version() -> dict[str, Any]:
    from twofold import version
    return {**{name: value for name, value in vars(version).items() if not name.startswith("__")}, "VERSION": VERSION,
            "__version__": VERSION, "GIT_VERSION": VERSION, "COMPILER_VERSION": "LLVM"}


def _structures() -> dict[str, Any]:
    # Keras, optree and dm-tree's users: classes that TensorFlow puts in the place of lists and dicts of a module, to
    # be told from others. Lists and dicts stay themselves here.
    return {"ListWrapper": type("ListWrapper", (list,), {}), "_DictWrapper": type("_DictWrapper", (dict,), {})}


def _context() -> dict[str, Any]:
    # Keras: `clear_session` empties a cache of kernels, `fit` waits for what runs asynchronously. There is neither.
    class Context:
        executing_eagerly = staticmethod(tf.executing_eagerly)
        device_spec = SimpleNamespace(device_type="CPU")  # Sonnet picks recurrences by it: those of CPUs run anywhere

        def clear_kernel_cache(self) -> None:
            """Does nothing: kernels are compiled once and hold no state."""

    @contextlib.contextmanager
    def graph_mode() -> Iterator[None]:  # the tests of TensorFlow Probability
        """A block in which ops go to the graph that is current, or to one of its own."""
        from .internal import in_graph
        with contextlib.nullcontext() if in_graph() else tf.compat.v1.Graph().as_default():
            yield

    from .internal import eager_mode
    only = Context()
    # Keras's tests of strategies begin with a processor that counts as one device.
    def reset_context() -> None:
        cpu, = tf.config.list_physical_devices("CPU")
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()])

    return {"context": lambda: only, "async_wait": lambda: None, "executing_eagerly": tf.executing_eagerly,
            "_reset_context": reset_context, "eager_mode": eager_mode, "graph_mode": graph_mode}


def _xla() -> dict[str, Any]:
    # Keras: `keras.ops.slice_update`.
    def dynamic_update_slice(operand: Any, update: Any, indices: Any) -> Any:
        from twofold.keras.ops import core
        return core.slice_update(operand, indices, update)

    return {"dynamic_update_slice": dynamic_update_slice}


def _sparse_csr() -> dict[str, Any]:
    # Keras: products of sparse tensors with each other.
    from . import sparse_matrices
    return {name: getattr(sparse_matrices, name) for name in sparse_matrices.__all__}


def _is_nan() -> dict[str, Any]:
    return {"is_nan": tf.math.is_nan}  # Keras: `keras.ops.nan_to_num` and others


def _tensor_util() -> dict[str, Any]:
    # Keras: constants in exported functions.
    return {"constant_value": tf.get_static_value, "is_tf_type": tf.is_tensor, "is_tensor": tf.is_tensor}


def _evaluated() -> dict[str, Any]:
    # TensorFlow Probability: values that are known while a function is traced.
    return {**_tensor_util(), "try_evaluate_constant": tf.get_static_value,
            "constant_value_as_shape": lambda value: _shape_of(value)}


def _shape_of(value: Any) -> Any:
    """A vector of sizes as a shape, of which it knows what is known of the vector."""
    known = tf.get_static_value(value)
    if known is not None:
        return tf.TensorShape([None if size < 0 else size for size in known.tolist()])
    sizes = [tf.get_static_value(value[i]) for i in range(value.shape[0])] if value.shape[0] is not None else None
    return tf.TensorShape(
        None if sizes is None else [None if size is None or size < 0 else int(size) for size in sizes])


# -- TensorFlow Probability, and GPflow and Sonnet by way of it ---------------------------------------------------
def _nest() -> dict[str, Any]:
    # And dm-tree's users, tf_keras: structures that are walked as far as another one goes.
    from .nests import names
    return names()


def _deprecation() -> dict[str, Any]:
    from .decorators import deprecation
    return deprecation()


def _inspection() -> dict[str, Any]:
    from .decorators import inspection
    return inspection()


def _export() -> dict[str, Any]:
    from .decorators import export
    return export()


def _ops() -> dict[str, Any]:
    # Shapes of what is no tensor are asked of its conversion; the graph is only handed on to `control_flow_util`.
    v1 = tf.compat.v1
    return {"convert_to_tensor": tf.convert_to_tensor, "get_default_graph": v1.get_default_graph,
            "executing_eagerly_outside_functions": v1.executing_eagerly_outside_functions, "Graph": v1.Graph,
            "Tensor": tf.Tensor, "name_scope": tf.name_scope, "device": tf.device, "init_scope": tf.init_scope,
            "register_tensor_conversion_function": tf.register_tensor_conversion_function}


def _type_spec() -> dict[str, Any]:
    from .specs import BatchableTypeSpec, type_spec_from_value
    return {"TypeSpec": tf.TypeSpec, "BatchableTypeSpec": BatchableTypeSpec,
            "type_spec_from_value": type_spec_from_value}


def _type_spec_registry() -> dict[str, Any]:
    from .specs import registry
    return registry()


def _tensor_spec() -> dict[str, Any]:
    from .specs import DenseSpec
    return {"TensorSpec": tf.TensorSpec, "DenseSpec": DenseSpec}


def _composite_tensor() -> dict[str, Any]:
    from twofold.ir.type_spec import CompositeTensor
    return {"CompositeTensor": CompositeTensor}


def _tensor_shape() -> dict[str, Any]:
    return {"TensorShape": tf.TensorShape, "as_shape": tf.TensorShape,
            "dimension_value": tf.compat.dimension_value}


def _variable_spec() -> dict[str, Any]:
    from .specs import VariableSpec
    return {"VariableSpec": VariableSpec, "is_resource_variable": lambda value: isinstance(value, tf.Variable)}


def _object_identity() -> dict[str, Any]:
    from twofold.eager.tensor import TensorRef
    return {"Reference": TensorRef}  # GPflow: what `ref()` of tensors and variables gives


def _iterators() -> dict[str, Any]:
    return {"OwnedIterator": type(iter(tf.data.Dataset.range(0)))}  # GPflow: tells an iterator from a batch


def _variable_utils() -> dict[str, Any]:
    from .specs import convert_variables_to_tensors
    return {"convert_variables_to_tensors": convert_variables_to_tensors}


def _control_flow_util() -> dict[str, Any]:
    # Whether XLA compiles what is traced: nothing does here.
    return {"GraphOrParentsInXlaContext": lambda graph: False, "ENABLE_CONTROL_FLOW_V2": True}


def _case() -> dict[str, Any]:
    def _case_helper(cond_fn: Callable[..., Any], pred_fn_pairs: Any, default: Any, exclusive: bool, name: str,
                     allow_python_preds: bool = False, **kwargs: Any) -> Any:
        """`tf.case` by a function in the place of `tf.cond`."""
        pairs = list(pred_fn_pairs.items() if isinstance(pred_fn_pairs, dict) else pred_fn_pairs)
        if default is None:
            default = pairs.pop()[1]
        if exclusive:
            count = tf.add_n([tf.cast(chosen, tf.int32) for chosen, _ in pairs])
            tf.debugging.assert_less_equal(count, 1, message="Input error: exclusive=True")
        chosen_function = default
        for chosen, function in reversed(pairs):
            chosen_function = functools.partial(cond_fn, chosen, true_fn=function, false_fn=chosen_function, **kwargs)
        return chosen_function()

    return {"_case_helper": _case_helper}


def _pfor() -> dict[str, Any]:
    def pfor(loop_fn: Callable[[Any], Any], iters: Any, **kwargs: Any) -> Any:
        """The results of a function for each number below `iters`, stacked."""
        return tf.vectorized_map(loop_fn, tf.range(iters))

    return {"pfor": pfor}


def _array_ops() -> dict[str, Any]:
    def prevent_gradient(input: Any, message: str = "", name: str | None = None) -> Any:
        """The operand; who asks for its gradient gets a LookupError with a message."""
        def refused(*upstream: Any) -> Any:
            raise LookupError(f"Gradient explicitly disabled. Reason: {message}")

        return tf.custom_gradient(lambda x: (tf.identity(x), refused))(input)

    return {"prevent_gradient": prevent_gradient}


def _random_ops() -> dict[str, Any]:
    def parameterized_truncated_normal(shape: Any, means: Any = 0.0, stddevs: Any = 1.0, minvals: Any = -2.0,
                                       maxvals: Any = 2.0, dtype: Any = tf.float32, seed: Any = None,
                                       name: str | None = None) -> Any:
        """Normal numbers cut at two bounds, from a seed that is drawn."""
        drawn = tf.random.uniform([2], maxval=2**31 - 1, dtype=tf.int32, seed=seed)
        means, stddevs, minvals, maxvals = [tf.cast(value, dtype) for value in (means, stddevs, minvals, maxvals)]
        return tf.random.stateless_parameterized_truncated_normal(shape, drawn, means, stddevs, minvals, maxvals)

    return {"parameterized_truncated_normal": parameterized_truncated_normal}


def _nn_ops() -> dict[str, Any]:
    # Variational convolutions of TensorFlow Probability.
    class Convolution:
        """A convolution whose arguments are known before its operands."""

        def __init__(self, input_shape: Any, filter_shape: Any, padding: Any, strides: Any = None,
                     dilation_rate: Any = None, name: str | None = None, data_format: str | None = None) -> None:
            self._how = {"strides": strides, "padding": padding, "data_format": data_format,
                         "dilations": dilation_rate}

        def __call__(self, inp: Any, filter: Any) -> Any:
            return tf.nn.convolution(inp, filter, **self._how)

    return {"Convolution": Convolution}


def _linear_operator() -> dict[str, Any]:
    # Operators are composite values already, those of other classes as well.
    return {"LinearOperator": tf.linalg.LinearOperator,
            "make_composite_tensor": lambda cls, module_name="tf.linalg": cls}


def _sum_of_operators() -> dict[str, Any]:
    def add_operators(operators: Any, operator_name: str | None = None, **kwargs: Any) -> list[Any]:
        """A list of one operator, the sum of these."""
        total = tf.add_n([operator.to_dense() for operator in operators])
        return [tf.linalg.LinearOperatorFullMatrix(total, name=operator_name or "sum")]

    return {"add_operators": add_operators}


def _framework_config() -> dict[str, Any]:
    # Keras: whether results are to be the same in every run; they are, whatever is asked for.
    return {"is_op_determinism_enabled": lambda: True, "enable_op_determinism": lambda: None,
            "disable_op_determinism": lambda: None}


def _sharing_of_datasets() -> dict[str, Any]:
    # Keras: its DataParallel asks how many rows the batches of a dataset have.
    from twofold.data._sharding import batch_size_of

    def compute_batch_size(dataset: Any) -> tf.Tensor:
        """How many rows batches have, as an int64 scalar; -1 where nothing tells."""
        rows = batch_size_of(dataset._node)
        return tf.constant(-1 if rows is None else rows, tf.int64)

    return {"compute_batch_size": compute_batch_size}


def _messages() -> dict[str, Any]:
    # Keras's tests of TensorBoard: what event files hold, which TensorBoard has, too.
    from twofold.summary.writer import protos
    return {"event_pb2": protos()}


def _records() -> dict[str, Any]:
    # Keras's tests of TensorBoard.
    def tf_record_iterator(path: str) -> Iterator[Any]:
        """The records of a file."""
        return iter(tf.data.TFRecordDataset([path]).as_numpy_iterator())
    return {"tf_record_iterator": tf_record_iterator}


def _saved_model_experimental() -> dict[str, Any]:
    # Keras: its export looks for tables among what a model tracks. tf.saved_model follows them by itself.
    from twofold.lookup._tables import StaticVocabularyTable, Table

    resource = abc.ABCMeta("TrackableResource", (), {})
    for kind in (Table, StaticVocabularyTable):
        resource.register(kind)
    return {"TrackableResource": resource}


_PRIVATE: dict[str, Callable[[], dict[str, Any]]] = {
    "__internal__": _internal,
    "version": _version,
    "compiler.tf2xla.python.xla": _xla,
    "python.data.experimental.ops.distribute": _sharing_of_datasets,
    "core.util": _messages,
    "python.data.ops.iterator_ops": _iterators,
    "python.eager.context": _context,
    "python.framework.config": _framework_config,
    "saved_model.experimental": _saved_model_experimental,
    "python.framework.composite_tensor": _composite_tensor,
    "python.framework.ops": _ops,
    "python.framework.tensor_shape": _tensor_shape,
    "python.framework.tensor_spec": _tensor_spec,
    "python.framework.tensor_util": _evaluated,
    "python.framework.type_spec": _type_spec,
    "python.framework.type_spec_registry": _type_spec_registry,
    "python.lib.io.tf_record": _records,
    "python.ops.array_ops": _array_ops,
    "python.ops.control_flow_case": _case,
    "python.ops.control_flow_util": _control_flow_util,
    "python.ops.linalg.linear_operator": _linear_operator,
    "python.ops.linalg.linear_operator_addition": _sum_of_operators,
    "python.ops.nn_ops": _nn_ops,
    "python.ops.parallel_for.control_flow_ops": _pfor,
    "python.ops.random_ops": _random_ops,
    "python.ops.resource_variable_ops": _variable_spec,
    "python.ops.linalg.sparse.sparse_csr_matrix_ops": _sparse_csr,
    "python.ops.math_ops": _is_nan,
    "python.trackable.data_structures": _structures,
    "python.util.deprecation": _deprecation,
    "python.util.nest": _nest,
    "python.util.object_identity": _object_identity,
    "python.util.tf_export": _export,
    "python.util.tf_inspect": _inspection,
    "python.util.variable_utils": _variable_utils,
}
_made: dict[str, ModuleType] = {}


def module(fullname: str) -> ModuleType | None:
    """The private module of a name that begins with `tensorflow.`; None if there is none."""
    known = _made.get(fullname)
    if known is not None:
        return known
    path = fullname.partition(".")[2]
    if path.startswith(_AUTOGRAPH):
        return _autograph(path.removeprefix(_AUTOGRAPH))
    make = _PRIVATE.get(path)
    if path == "saved_model":  # a public module, though one below it is here
        return None
    if make is None and path not in _CLASSES and not any(
            name.startswith(f"{path}.") for name in (*_PRIVATE, *_CLASSES)):
        return None
    made = ModuleType(fullname)
    made.__path__ = []
    vars(made).update(make() if make is not None else {}, __name__=fullname)
    if path in _CLASSES:
        setattr(made, _CLASSES[path].name, _CLASSES[path].kind())
    _made[fullname] = made
    return made


_AUTOGRAPH = "python.autograph"


def _autograph(below: str) -> ModuleType | None:
    """A module of AutoGraph, which diastatic-malt has: TensorFlow Probability's `auto_batching` is made with it."""
    try:
        return importlib.import_module(f"malt{below}")
    except ModuleNotFoundError:
        return None


class _OlderKeras(ModuleType):
    """`tf_keras`, the package of Keras 2: twofold's Keras."""

    def __getattr__(self, name: str) -> Any:
        return importlib.import_module("tf_keras.optimizers") if name == "optimizers" else getattr(tf.keras, name)


class _OlderOptimizers(ModuleType):
    """`tf_keras.optimizers`: those of twofold's Keras, with another base."""

    def __getattr__(self, name: str) -> Any:
        if name == "Optimizer":
            from .older_optimizers import Optimizer
            return Optimizer
        return getattr(tf.keras.optimizers, name)


def older_keras(fullname: str) -> ModuleType | None:
    """The module of a name of `tf_keras`, which is twofold's Keras; None if there is none.

    TensorFlow Probability, and with it GPflow, asks for the package whether or not it uses a layer. It is ours where
    the package is installed, too: that is written on dozens of TensorFlow's private modules, and what the libraries
    need beside layers are names that Keras 2 and 3 share.
    """
    path = fullname.partition(".")[2]
    if path in ("", "api", "api._v1", "api._v1.keras", "__internal__", "api._v1.keras.__internal__",
                "api._v1.keras.__internal__.legacy"):
        made = _OlderKeras(fullname) if path in ("", "api._v1.keras") else ModuleType(fullname)
        made.__path__ = []
        if path == "__internal__":  # what layers take for a tensor is asked of the value itself here
            vars(made)["utils"] = SimpleNamespace(register_symbolic_tensor_type=lambda kind: None)
        vars(made)["__all__"] = list(tf.keras.__all__) if isinstance(made, _OlderKeras) else []
        return made
    if path == "api._v1.keras.__internal__.legacy.layers":
        return tf.compat.v1.layers
    if path == "optimizers":
        return _OlderOptimizers(fullname)
    public = getattr(tf.keras, path, None)
    return public if isinstance(public, ModuleType) else None


@dataclass(frozen=True)
class _Named:
    """A class that has the name of TensorFlow's: the module that defines it, and the name where it is another."""

    defined_in: str
    own_name: str
    name: str

    def kind(self) -> type:
        """The class, whose module is loaded for it."""
        return getattr(importlib.import_module(self.defined_in), self.own_name)


# Modules and names that libraries look for in the classes of what they are given, instead of importing TensorFlow:
# eagerpy, Keras's data adapters and tests of `type(x).__module__` for "tensorflow".
_CLASSES: dict[str, _Named] = {
    "python.framework.tensor": _Named("twofold.eager.tensor", "Tensor", "Tensor"),
    "python.ops.variables": _Named("twofold.eager.variable", "Variable", "Variable"),
    # and this is the name it has: GPflow prints it
    "python.ops.resource_variable_ops": _Named("twofold.eager.variable", "Variable", "ResourceVariable"),
    "python.ops.ragged.ragged_tensor": _Named("twofold._ragged.ragged_tensor", "RaggedTensor", "RaggedTensor"),
    "python.framework.sparse_tensor": _Named("twofold._sparse.sparse_tensor", "SparseTensor", "SparseTensor"),
    "python.data.ops.dataset_ops": _Named("twofold.data.dataset", "Dataset", "DatasetV2"),
    "python.distribute.input_lib": _Named("twofold.distribute._datasets", "DistributedDataset", "DistributedDataset"),
}

#: the modules whose classes get such names, to be told of when they are loaded (`name_classes_of`)
DEFINING = frozenset(named.defined_in for named in _CLASSES.values())


def _decorate(function: Any, decorator: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    """Sonnet: the Python function of a `tf.function` that was not called yet, decorated in its place."""
    if function.experimental_get_tracing_count():
        raise ValueError("Functions cannot be decorated after they have been traced.")
    function.__init__(decorator(function.python_function), function._settings)


def _concrete_functions(function: Function, save_type: str = "checkpoint", **kwargs: Any) -> dict[str, Any]:
    # Keras: its export takes the trace of a function that was registered as it is.
    if save_type == "checkpoint":
        return {}
    return {f"trace_{n}": f for n, f in enumerate(function._list_all_concrete_functions())}


def _nothing_to_add(self: ConcreteFunction, g: Any = None) -> None:
    """Does nothing: a graph knows the functions that it calls."""


def add_methods() -> None:
    """Give classes methods that libraries call."""
    Function._decorate = _decorate  # type: ignore[attr-defined]
    Function._trackable_children = _concrete_functions  # type: ignore[attr-defined]
    # Sonnet, TensorFlow Probability: functions that the graph is to know, of which a pass picks one for a processor.
    for name in ("add_to_graph", "add_gradient_functions_to_graph"):
        setattr(ConcreteFunction, name, _nothing_to_add)
    # GPflow's tests: what was decorated.
    Decorated.__original_wrapped__ = property(lambda self: self.function)  # type: ignore[attr-defined]
    # TensorFlow Probability: its operator with a sum of its own.
    tf.linalg.LinearOperatorLowerTriangular._get_diag = lambda self: self.diag_part()
    # TensorFlow Probability: what is not to be followed; checkpoints do not follow its private attributes twice anyway.
    tf.Module._no_dependency = lambda self, value: value  # type: ignore[attr-defined]
    tf.Tensor.__nonzero__ = tf.Tensor.__bool__  # type: ignore[attr-defined]  # TensorFlow Probability: an old name


def name_classes_of(module: ModuleType) -> None:
    """Give the classes that a loaded module defines the modules and the names that TensorFlow's have."""
    for path, named in _CLASSES.items():
        if named.defined_in == module.__name__:
            kind = getattr(module, named.own_name)
            kind.__module__ = f"tensorflow.{path}"
            kind.__name__ = kind.__qualname__ = named.name
