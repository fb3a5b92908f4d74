"""`tf.import_onnx`; what it does is in `twofold/onnx_files/`, which is loaded when it is first called."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from .api import public

if TYPE_CHECKING:
    from twofold.onnx_files.import_function import OnnxModel

__all__ = ["import_onnx"]


@public
def import_onnx(source: str | os.PathLike[str] | bytes) -> OnnxModel:
    """A model in the Open Neural Network Exchange format as a compiled, differentiable function.

    The weights become variables, so that the model can be trained further, saved, and exported to a native library.
    The file is data: nothing of it is run, and what is made of it is bounded by its size. `docs/onnx.md` lists the ops.

    Args:
        source: the path of a file, or its bytes. Tensors that lie in files beside the model are read from its folder
            only.
    Returns:
        A `tf.Module` that is called with arrays, by position or by name, and gives a tensor or a tuple of them. Its
        `inputs` and `outputs` are specs; its weights are in `variables` and `trainable_variables`.
    Raises:
        ImportError: the package `onnx` is missing. tf.errors.NotFoundError: there is no such file.
        tf.errors.DataLossError: the file is damaged. tf.errors.UnimplementedError: it uses ops that are not
        supported; the message names all of them. tf.errors.InvalidArgumentError: a node makes no sense.

    >>> import onnx.helper as oh
    >>> import twofold as tf
    >>> w = oh.make_tensor("w", 1, [2, 1], [3.0, -1.0])
    >>> x, y = (oh.make_tensor_value_info(n, 1, ["rows", size]) for n, size in (("x", 2), ("y", 1)))
    >>> graph = oh.make_graph([oh.make_node("MatMul", ["x", "w"], ["y"])], "line", [x], [y], [w])
    >>> file = oh.make_model(graph, opset_imports=[oh.make_opsetid("", 21)]).SerializeToString()
    >>> model = tf.import_onnx(file)
    >>> model([[1.0, 2.0], [0.0, 1.0]]).numpy().tolist()
    [[1.0], [-1.0]]
    >>> [(v.name, v.shape) for v in model.trainable_variables]
    [('w:0', TensorShape([2, 1]))]
    """
    from twofold.onnx_files.import_function import imported

    return imported(source)
