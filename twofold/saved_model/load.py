"""`tf.saved_model.load`: objects from directories, whoever wrote them."""

from __future__ import annotations

import os
from typing import Any

from .directory import exists, written_by_tensorflow
from .loading import read_folder
from .options import LoadOptions

__all__ = ["load"]


def load(export_dir: str | os.PathLike[str], tags: Any = None, options: LoadOptions | None = None) -> Any:
    """Load what `tf.saved_model.save` saved, here or in TensorFlow; the classes that it was made of are not needed.

    Args:
        export_dir: the directory.
        tags: which of the graphs of a directory that TensorFlow wrote: a text, or several; by default its only one, or
            the one that is served.
        options: `tf.saved_model.LoadOptions`, of which `experimental_load_function_aliases` has an effect.
    Returns:
        An object with the same attributes: variables, `tf.function`s that take what they were traced for, containers,
        and other such objects. It has `variables` and `trainable_variables`, and `signatures`, a mapping of functions
        that take their arguments by name and give a dict. Nothing is run while it is loaded but, in directories that
        TensorFlow wrote, what fills tables.
    Raises:
        NotFoundError: there is no saved model, or none with these tags. DataLossError: it is damaged, or not
            well-formed. FailedPreconditionError: a newer version wrote it. UnimplementedError: all that TensorFlow
            wrote in it uses ops that are not there; the message names them.

    >>> import tempfile
    >>> import twofold as tf
    >>> class Line(tf.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.w = tf.Variable(3.0)
    ...     @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
    ...     def __call__(self, x):
    ...         return self.w * x
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tf.saved_model.save(Line(), folder)
    ...     line = tf.saved_model.load(folder)
    >>> with tf.GradientTape() as tape:
    ...     y = line(tf.constant([1.0, 2.0]))
    >>> y.numpy().tolist(), tape.gradient(y, line.w).numpy().item()
    ([3.0, 6.0], 3.0)
    >>> line.signatures["serving_default"](x=tf.constant([1.0]))
    {'output_0': <tf.Tensor: shape=(1,), dtype=float32, numpy=array([3.], dtype=float32)>}
    """
    folder = os.fspath(export_dir)
    if not exists(folder) and written_by_tensorflow(folder):
        from twofold.tensorflow_files.load import load_folder
        return load_folder(folder, tags)
    return read_folder(folder, options is not None and options.experimental_load_function_aliases)
