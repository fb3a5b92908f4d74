"""`tf.keras.saving`: objects as plain values and back, and models as files.

What is in the files is `saving_h5.py`'s (weights, and whole models in HDF5); this module owns the `.keras` archive and
the choice of a format by a file's ending. No file holds code, and none is run from one.
"""

from __future__ import annotations

import importlib
import io
import json
import os
import zipfile
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import twofold as tf
from twofold._formats import reading as _reading
from twofold._formats import replacing as _replacing
from twofold._front import replica
from twofold._front.api import public
from twofold._front.namespace import publish

from .composites import spec_of
from .serialization import (
    CustomObjectScope,
    by_name,
    custom_object_scope,
    deserialize_keras_object,
    get_custom_objects,
    get_registered_name,
    get_registered_object,
    register_keras_serializable,
    serialize_keras_object,
)

__all__ = ["CustomObjectScope", "custom_object_scope", "deserialize_keras_object", "get_custom_objects",
           "get_registered_name", "get_registered_object", "load_model", "load_weights", "register_keras_serializable",
           "save_model", "save_weights", "serialize_keras_object"]

_KERAS_FORMAT = "3.0.0"  # the version of Keras whose archives these are
_HDF5 = (".h5", ".hdf5")


@public
@replica.reading_own()
def save_model(model: Any, filepath: Any, overwrite: bool = True, include_optimizer: bool = True,
               save_format: str | None = None, **kwargs: Any) -> None:
    """Write a model to a file: its layers, its weights, and the state of its optimizer.

    Args:
        model: a model; a subclass needs `get_config`, unless its constructor's arguments are plain values.
        filepath: ends in `.keras` for the archive of Keras 3, or in `.h5` for the older form. Both need the extra
            `h5`.
        overwrite: whether a file that is there is replaced.
        include_optimizer: whether the optimizer is written.
        save_format: "tf" writes a saved model, see `tf.saved_model.save`; else the ending decides.
        kwargs: `zipped`, accepted if not false.
    Raises:
        ValueError: the ending is another. FileExistsError: there is a file, and it is not to be replaced.
        ImportError: h5py is not there.
    """
    path = os.fspath(filepath)
    if set(kwargs) - {"zipped", "options", "save_traces", "signatures"}:
        raise ValueError(f"The following argument(s) are not supported: {sorted(kwargs)}")
    _check_free(path, overwrite)
    if save_format == "tf":
        _saved_models().save(model, path)
    elif path.endswith(_HDF5):
        from .saving_h5 import write_model
        with _replacing.replaced(path) as file:
            write_model(file, model, include_optimizer)
    elif path.endswith(".keras"):
        with _replacing.replaced(path) as file:
            _write_archive(file, model, include_optimizer)
    else:
        raise ValueError("Invalid filepath extension for saving. Please add either a `.keras` extension for the native "
                         "Keras format (recommended) or a `.h5` extension. Use `model.export(filepath)` if you want "
                         f"to export a SavedModel. Received: filepath={path}.")


@public
def load_model(filepath: Any, custom_objects: Mapping[str, Any] | None = None, compile: bool = True,
               safe_mode: bool = True) -> Any:
    """The model of a file that `save_model`, or Keras itself, wrote.

    Args:
        filepath: a `.keras` or `.h5` file.
        custom_objects: classes and functions of the user's own by name.
        compile: whether the model is compiled as it was.
        safe_mode: accepted, without effect: code in the file is refused in any case. A `Lambda` is made where its
            function is among the custom objects.
    Raises:
        ValueError: the file is no such file, or names a class that is not known. FileNotFoundError: there is none.
    """
    del safe_mode
    path = os.fspath(filepath)
    if not os.path.exists(path):
        raise FileNotFoundError(f"File not found: filepath={path}. Please ensure the file is an accessible `.keras` "
                                "zip file or `.h5` file.")
    if os.path.isdir(path):
        raise ValueError(f"{path} is a folder: saved models are read by tf.saved_model.load, and "
                         "are layers by tf.keras.layers.TFSMLayer.")
    _reading.opened(path).close()  # a pipe would be waited for
    if zipfile.is_zipfile(path):
        return _read_archive(path, custom_objects, compile)
    if path.endswith(_HDF5):
        from .saving_h5 import read_model
        return read_model(path, custom_objects, compile)
    raise ValueError(f"{path} is neither a `.keras` archive nor an `.h5` file.")


@public
@replica.reading_own()
def save_weights(model: Any, filepath: Any, overwrite: bool = True) -> None:
    """Write the weights of a model to a file that ends in `.weights.h5`.

    Raises:
        ValueError: the ending is another, or the model has no weights yet. FileExistsError: there is a file.
    """
    from .saving_h5 import write_weights
    path = os.fspath(filepath)
    if not path.endswith(".weights.h5"):
        raise ValueError(f"The filename must end in `.weights.h5`. Received: filepath={path}")
    _check_free(path, overwrite)
    with _replacing.replaced(path) as file:
        write_weights(file, model)


@public
def load_weights(model: Any, filepath: Any, skip_mismatch: bool = False, **kwargs: Any) -> None:
    """Read the weights of a model from a `.weights.h5`, `.h5` or `.keras` file.

    Args:
        model: a model that is built.
        filepath: the file.
        skip_mismatch: whether layers whose weights do not fit are left as they are, with a warning.
        kwargs: `by_name`, accepted if false; `objects_to_skip`, accepted if None.
    Raises:
        ValueError: the weights do not fit the model's; nothing is changed then.
    """
    from .saving_h5 import read_weights, weights_room
    if any(kwargs.values()) or set(kwargs) - {"by_name", "objects_to_skip"}:
        raise ValueError(f"Invalid keyword arguments: {kwargs}")
    path = os.fspath(filepath)
    if not os.path.exists(path):
        raise FileNotFoundError(f"File not found: filepath={path}.")
    _reading.opened(path).close()
    if not zipfile.is_zipfile(path):
        read_weights(path, model, skip_mismatch)
        return
    with _archive(path) as archive:
        data = _member(archive, path, "model.weights.h5", weights_room(model))
    read_weights(path, model, skip_mismatch, data)


@replica.reading_own()
def _export_model(model: Any, filepath: Any, format: str, verbose: bool, **kwargs: Any) -> None:
    """Write a saved model with the endpoint `serve`."""
    import sys
    if format != "tf_saved_model" or set(kwargs) - {"input_signature"}:
        raise ValueError(f"`export` writes format 'tf_saved_model'. Received: format={format!r}, {sorted(kwargs)}")
    specs = kwargs.get("input_signature") or _input_specs(model)
    archive: Any = tf.Module()
    archive.model = model
    archive.serve = tf.function(lambda inputs: model(inputs, training=False), input_signature=[specs])
    _saved_models().save(archive, os.fspath(filepath), signatures=archive.serve)
    if verbose:
        sys.stdout.write(f"Saved artifact at '{os.fspath(filepath)}'. Endpoint: serve\n")


def _saved_models() -> Any:
    return importlib.import_module("twofold.saved_model")


def _input_specs(model: Any) -> Any:
    """TensorSpecs for the inputs of a model.

    Raises:
        ValueError: it was not built, so that they are not known.
    """
    graph = model.__dict__.get("_graph")
    if graph is not None:
        return tf.nest.map_structure(lambda x: spec_of(x) if x.sparse or x.ragged else tf.TensorSpec(
            x.shape, x.dtype, name=x.name), graph.input_structure)
    shapes = model._build_shapes
    if not shapes:
        raise ValueError("The model has not been called or built yet, so that the shapes of its inputs are not known.")
    def spec(shape: Any) -> Any:
        if isinstance(shape, dict):
            return {k: spec(v) for k, v in shape.items()}
        if isinstance(shape, list):
            return [spec(v) for v in shape]
        return tf.TensorSpec((None, *shape[1:]), model.compute_dtype)
    return spec(next(iter(shapes.values())))


# -- the archive ----------------------------------------------------------------------------------
def _write_archive(file: Any, model: Any, include_optimizer: bool) -> None:
    from .saving_h5 import write_weights
    config = serialize_keras_object(model)
    if not include_optimizer:
        config.pop("compile_config", None)
    about = {"keras_version": _KERAS_FORMAT, "date_saved": datetime.now().strftime("%Y-%m-%d@%H:%M:%S")}
    weights = io.BytesIO()
    write_weights(weights, model, include_optimizer)
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("metadata.json", json.dumps(about))
        archive.writestr("config.json", json.dumps(config))
        archive.writestr("model.weights.h5", weights.getvalue())


def _read_archive(path: str, custom_objects: Any, compile: bool) -> Any:
    from .saving_h5 import read_weights, weights_room
    with _archive(path) as archive:
        config = _reading.parsed_json(_member(archive, path, "config.json"), path)
        compiled = config.pop("compile_config", None)
        with _reading.makes(path, _reading.bound(os.path.getsize(path))):
            model = deserialize_keras_object(config, custom_objects)
            if not issubclass(type(model), tf.Module):
                raise ValueError(f"its config describes {type(model).__name__}, which is no model")
            if compile and compiled:
                with custom_object_scope(by_name(custom_objects)):
                    model.compile_from_config(compiled)
        read_weights(path, model, False, _member(archive, path, "model.weights.h5", weights_room(model)))
        _read_vocabularies(archive, path, model)
    return model


def _archive(path: str) -> zipfile.ZipFile:
    with _reading.reads(path):
        return zipfile.ZipFile(path)


def _read_vocabularies(archive: zipfile.ZipFile, archive_path: str, model: Any) -> None:
    """Give layers the vocabularies that Keras keeps beside the weights, in texts of a term a line."""
    from .saving_h5 import paths_of
    names = {name for name in archive.namelist() if name.startswith("assets/")}
    for path, value in paths_of(model, False) if names else ():
        name = f"assets/{path}/vocabulary.txt"
        if name in names and hasattr(value, "load_vocabulary"):
            with _reading.reads(archive_path):
                text = _reading.member(archive, name, archive_path).decode("utf-8")
            value.load_vocabulary(text.rstrip("\n").split("\n"))


def _member(archive: zipfile.ZipFile, path: str, name: str, more: int = 0) -> bytes:
    if name not in archive.namelist():
        raise ValueError(f"The archive {path} has no {name}: it is not one of Keras.")
    return _reading.member(archive, name, path, more)


def _check_free(path: str, overwrite: bool) -> None:
    if os.path.exists(path) and not overwrite:
        raise FileExistsError(f"{path} exists already, and `overwrite=False`.")


publish(__name__)
