"""`tf.saved_model.save`: an object with its functions and variables, as a directory that needs no Python to be read."""

from __future__ import annotations

import os
from typing import Any

from twofold._front import replica
from twofold.ir.errors import user_line
from twofold.ir.op import tracing
from twofold.tracking import Trackable

from . import op_sets
from .collect import collect
from .directory import exchange, exists, written_by_tensorflow
from .options import SaveOptions
from .signatures import chosen
from .writing import Contents

__all__ = ["save", "contains_saved_model"]


def save(obj: Any, export_dir: str | os.PathLike[str], signatures: Any = None,
         options: SaveOptions | None = None) -> None:
    """Save an object: its variables, its `tf.function`s as graphs, and what its attributes lead to.

    Every trace of a `tf.function` is saved, and the one that its `input_signature` declares. What is in `export_dir`
    stays whole until the new model is: a save that is killed changes nothing.

    Args:
        obj: a `tf.Module`, or another object that is tracked.
        export_dir: the directory; it is made when it is not there, and a saved model that is there is replaced.
        signatures: a `tf.function` with an `input_signature` or a concrete function, or a dict of them by name. Their
            results are dicts of tensors, sequences (`output_0` and so on) or one tensor (`output_0`); results and
            arguments may be nested. By default the object's only function with an `input_signature`, if it has just
            one, as "serving_default".
        options: `tf.saved_model.SaveOptions`, of which `function_aliases` has an effect.
    Raises:
        ValueError: `obj` is not tracked, a signature is no function of one signature, or an alias no function of `obj`.
        AssertionError: a function uses a variable that is no attribute of anything that is saved.
        UnimplementedError: a function calls Python while it runs (`tf.py_function`), or cannot be traced.

    >>> import os, tempfile
    >>> import twofold as tf
    >>> model = tf.Module()
    >>> model.w = tf.Variable([1.0, 2.0])
    >>> model.double = tf.function(lambda: model.w * 2.0)
    >>> model.double()
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([2., 4.], dtype=float32)>
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tf.saved_model.save(model, folder)
    ...     print(tf.saved_model.load(folder).double().numpy())
    [2. 4.]
    """
    if tracing() is not None:
        raise AssertionError("tf.saved_model.save is not supported inside a traced @tf.function. Move the call to the "
                             f"outer eagerly-executed context.\n  {user_line()}")
    if not isinstance(obj, Trackable):
        raise ValueError("Expected an object of type `Trackable`, such as `tf.Module` or a subclass of the `Trackable` "
                         f"class, for export. Got {obj} with type {type(obj)}.")
    with replica.reading_own():
        objects = collect(obj)
        functions = {name: objects[n].value for name, n in objects[0].children.items()}
        aliases = {} if options is None else options.function_aliases
        contents = Contents(objects, chosen(signatures, obj, functions), aliases)
        exchange(os.fspath(export_dir), op_sets.CURRENT, contents.write)


def contains_saved_model(export_dir: str | os.PathLike[str]) -> bool:
    """Whether a directory holds a saved model.

    Args:
        export_dir: the directory, which need not exist.

    >>> import twofold as tf
    >>> tf.saved_model.contains_saved_model("no/such/directory")
    False
    """
    folder = os.fspath(export_dir)
    return exists(folder) or written_by_tensorflow(folder)
