"""Private modules of TensorFlow, each with the library that imports it, and names of classes that libraries test.

What no library is known to need is not here.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import twofold as tf

from .version import VERSION

__all__ = ["module", "name_classes"]


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

        def clear_kernel_cache(self) -> None:
            """Does nothing: kernels are compiled once and hold no state."""

    only = Context()
    # Keras's tests of strategies begin with a processor that counts as one device.
    def reset_context() -> None:
        cpu, = tf.config.list_physical_devices("CPU")
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()])

    return {"context": lambda: only, "async_wait": lambda: None, "executing_eagerly": tf.executing_eagerly,
            "_reset_context": reset_context}


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


def _framework_config() -> dict[str, Any]:
    # Keras: whether results are to be the same in every run; they are.
    return {"is_op_determinism_enabled": lambda: True}


_PRIVATE: dict[str, Callable[[], dict[str, Any]]] = {
    "__internal__": _internal,
    "version": _version,
    "compiler.tf2xla.python.xla": _xla,
    "python.eager.context": _context,
    "python.framework.config": _framework_config,
    "python.framework.tensor_util": _tensor_util,
    "python.ops.linalg.sparse.sparse_csr_matrix_ops": _sparse_csr,
    "python.ops.math_ops": _is_nan,
    "python.trackable.data_structures": _structures,
}
_made: dict[str, ModuleType] = {}


def module(fullname: str) -> ModuleType | None:
    """The private module of a name that begins with `tensorflow.`; None if there is none."""
    known = _made.get(fullname)
    if known is not None:
        return known
    path = fullname.partition(".")[2]
    make = _PRIVATE.get(path)
    if make is None and path not in _CLASSES and not any(
            name.startswith(f"{path}.") for name in (*_PRIVATE, *_CLASSES)):
        return None
    made = ModuleType(fullname)
    made.__path__ = []
    vars(made).update(make() if make is not None else {}, __name__=fullname)
    if path in _CLASSES:
        kind, name = _CLASSES[path]()
        setattr(made, name or kind.__name__, kind)
    _made[fullname] = made
    return made


# Modules and names that libraries look for in the classes of what they are given, instead of importing TensorFlow:
# eagerpy, Keras's data adapters and tests of `type(x).__module__` for "tensorflow".
_CLASSES: dict[str, Callable[[], tuple[type, str | None]]] = {
    "python.framework.tensor": lambda: (tf.Tensor, None),
    "python.ops.variables": lambda: (tf.Variable, None),
    "python.ops.ragged.ragged_tensor": lambda: (tf.RaggedTensor, None),
    "python.framework.sparse_tensor": lambda: (tf.SparseTensor, None),
    "python.data.ops.dataset_ops": lambda: (tf.data.Dataset, "DatasetV2"),
    "python.distribute.input_lib": lambda: (_distributed(), None),
}


def _distributed() -> type:
    from twofold.distribute._datasets import DistributedDataset
    return DistributedDataset


def name_classes() -> None:
    """Give classes the modules and the names that TensorFlow's have."""
    for path, which in _CLASSES.items():
        kind, name = which()
        kind.__module__ = f"tensorflow.{path}"
        if name is not None:
            kind.__name__ = kind.__qualname__ = name
