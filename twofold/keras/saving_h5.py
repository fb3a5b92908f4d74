"""Weights and models in HDF5, in the forms that Keras 3 (`.weights.h5`) and Keras 2 (`.h5`) write.

In `.weights.h5` a group stands for each object: `vars/0`, `vars/1`... are its own variables, and the objects in its
attributes are groups within; the layers of functional and sequential models are in `layers`, named by class and
number. Reading checks all shapes before it changes anything.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import math
import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

import twofold as tf
from twofold._formats import reading as _reading
from twofold.tracking import Trackable

from .layer_state import LayerState
from .naming import to_snake_case
from .serialization import by_name, custom_object_scope, deserialize_keras_object, serialize_keras_object

__all__ = ["paths_of", "read_model", "read_weights", "weights_room", "write_model", "write_weights"]


def _h5py() -> Any:
    try:
        h5py = importlib.import_module("h5py")
    except ImportError:
        raise ImportError("Files of weights need h5py: pip install twofold[h5]") from None
    return h5py


# -- .weights.h5 ----------------------------------------------------------------------------------
def paths_of(root: Any, optimizer: bool, holds: Callable[[str], bool] | None = None) -> Iterator[tuple[str, Any]]:
    """Each object with variables or objects within once, with the path of its group.

    Args:
        root: a model.
        optimizer: whether its optimizer is among them.
        holds: whether a file has a group; files of models of the user's own may be without one of their layers.
    """
    seen: dict[int, Any] = {}  # the objects as well, so that no other gets the identity of one that is gone
    stack: list[tuple[str, Any]] = [("", root)]
    while stack:
        path, value = stack.pop()
        if id(value) in seen:
            continue
        seen[id(value)] = value
        if isinstance(value, _CONTAINERS):
            below = list(_numbered(value, path))
        else:
            yield path, value
            within = f"{path}/" if path else ""
            listed = holds is None or holds(f"{within}layers")
            below = [(f"{within}{name}", child) for name, child in _children(value, optimizer, listed)]
        stack += below[::-1]


def _numbered(container: Any, path: str) -> Iterator[tuple[str, Any]]:
    """The objects of a list or dict: named by their class (lists within: "container"), further ones with numbers."""
    items = list(container.values()) if isinstance(container, Mapping) else list(container)
    counts: dict[str, int] = {}
    for item in items:
        if _is_saved(item) or isinstance(item, _CONTAINERS):
            name = "container" if isinstance(item, _CONTAINERS) else to_snake_case(type(item).__name__)
            count = counts.get(name, 0)
            counts[name] = count + 1
            yield f"{path}/{name}_{count}" if count else f"{path}/{name}", item


def _children(value: Any, optimizer: bool, listed: bool) -> Iterator[tuple[str, Any]]:
    """The objects in the attributes, in the order of names, private ones last; `layers` is one of a model's."""
    graph = value.__dict__.get("_graph")
    if graph is not None or hasattr(value, "_file_layers"):
        yield "layers", value.layers
    own = value.__dict__
    names = list(own["_tracked"]) if isinstance(value, LayerState) else []
    children = {name: own[name] for name in names if name in own}
    if optimizer and own.get("optimizer") is not None:
        children["optimizer"] = own["optimizer"]
    if listed and graph is None and hasattr(value, "train_step"):  # a model of the user's own
        children["layers"] = value.layers
    for name in sorted(children, key=lambda name: f"~{name}" if name.startswith("_") else name):
        child = children[name]
        if name.startswith("_") and getattr(value, name[1:], None) is child:
            name = name[1:]  # there is a property of that name
        if _is_saved(child) or isinstance(child, _CONTAINERS):
            yield name, child


_CONTAINERS = (list, tuple, Mapping)


def _is_saved(value: Any) -> bool:
    if isinstance(value, LayerState) or hasattr(value, "apply_gradients"):
        return True
    return isinstance(value, Trackable) and hasattr(value, "save_own_variables")


class _Store(dict):
    """The mapping that `save_own_variables` writes into."""


@contextlib.contextmanager
def _written(file: Any) -> Iterator[Any]:
    """A new HDF5 file on an open file, whose own errors are raised.

    Under Python 3.14 h5py's callbacks go on after such an error, and a SystemError takes its place.
    """
    try:
        with _h5py().File(file, "w") as f:
            yield f
    except SystemError as error:
        cause = error.__cause__
        raise cause if isinstance(cause, OSError) else error from None


def write_weights(file: Any, model: Any, optimizer: bool = True) -> None:
    """Write the weights of a model, and the state of its optimizer, to an open file.

    Raises:
        ValueError: the model has no weights yet.
    """
    if not model.built:
        raise ValueError(f"Unable to save weights: model '{model.name}' has not been built yet. Build it by calling it "
                         "on data, or by `build`.")
    with _written(file) as f:
        for path, value in paths_of(model, optimizer):
            store = _Store()
            if hasattr(value, "save_own_variables"):
                value.save_own_variables(store)
            group = f.require_group(f"{path}/vars" if path else "vars")
            if getattr(value, "name", None):
                group.attrs["name"] = value.name
            for key, array in store.items():
                group.create_dataset(str(key), data=_stored(np.asarray(array)))


def _stored(array: np.ndarray) -> np.ndarray:
    """An array of a dtype that HDF5 knows."""
    return array.astype(np.float32) if array.dtype.name == "bfloat16" else array


def weights_room(model: Any) -> int:
    """Bytes that a file of a model's weights may have, with the state of its optimizer."""
    return 8 * sum(math.prod(w.shape) * w.dtype.size for w in model.weights) + _reading.SMALL


@contextlib.contextmanager
def _opened(path: str, data: bytes | None, room: int) -> Iterator[_Reader]:
    """An HDF5 file, or one that lies within another file; errors in its contents name the file.

    Args:
        path: of the file.
        data: the contents, where they lie within it.
        room: bytes that a data set may have, however small the file is.
    """
    h5py = _h5py()
    with _reading.reads(path):
        try:
            file = h5py.File(path if data is None else io.BytesIO(data), "r")
        except OSError as e:
            raise ValueError(f"it cannot be read as HDF5: {e}") from None
    size = os.path.getsize(path) if data is None else len(data)
    with file:
        yield _Reader(h5py, file, max(room, _reading.bound(size)))


class _Reader:
    """An open file whose groups and data sets are looked at before they are read.

    Links lead nowhere but into the file itself, and no data set is larger than a file of its size would hold.
    """

    def __init__(self, h5py: Any, file: Any, room: int) -> None:
        self._h5py, self.file, self._room = h5py, file, room

    def group(self, path: str, within: Any = None) -> Any:
        """A group, or None."""
        place = self.file if within is None else within
        for name in path.split("/"):
            place = self._entry(place, name)
            if not isinstance(place, self._h5py.Group):
                return None
        return place

    def dataset(self, group: Any, name: str) -> Any:
        """A data set of a group.

        Raises:
            ValueError: there is none, or it is too large.
        """
        for part in name.split("/")[:-1]:
            group = self._entry(group, part)
        dataset = self._entry(group, name.rpartition("/")[2])
        if not isinstance(dataset, self._h5py.Dataset):
            raise ValueError(f"{name!r} in group {getattr(group, 'name', '?')!r} is no data set")
        if dataset.external or dataset.is_virtual:
            raise ValueError(f"data set {dataset.name!r} lies in another file, which is not read")
        size = None if dataset.size is None else dataset.size * dataset.dtype.itemsize
        if size is not None and size > self._room:
            raise ValueError(f"data set {dataset.name!r} has {size:,} bytes; a file of this "
                             f"size holds {self._room:,} at most")
        return dataset

    def _entry(self, group: Any, name: str) -> Any:
        if not isinstance(group, self._h5py.Group):
            return None
        link = group.get(name, getlink=True)
        if link is not None and not isinstance(link, self._h5py.HardLink):
            raise ValueError(f"{name!r} in group {group.name!r} is a link, which is not followed")
        return group.get(name)


def read_weights(path: str, model: Any, skip_mismatch: bool, data: bytes | None = None) -> None:
    """Read the weights of a model from a file.

    Args:
        path: of the file.
        model: gets the weights.
        skip_mismatch: whether what does not fit is passed over.
        data: the HDF5 file, where it lies within the file.
    Raises:
        ValueError: the weights do not fit; nothing is changed then. DataLossError: the file is damaged.
    """
    with _opened(path, data, weights_room(model)) as reader, _damage(path):
        f = reader.file
        if "layer_names" in f.attrs or "model_weights" in f:
            group = reader.group("model_weights") if "model_weights" in f else f
            _read_older_weights(reader, group, model, skip_mismatch)
            return
        if not model.built:
            raise Misfit(f"Unable to load weights: model '{model.name}' has not been built yet. Build it by "
                             "calling it on data, or by `build`.")
        _build_optimizer(f, model)
        wanted: list[tuple[Any, dict[str, np.ndarray]]] = []
        for path, value in paths_of(model, True, lambda path: reader.group(path) is not None):
            store = _store_of(reader, path)
            fault = _fault(value, store)
            if fault and (hasattr(value, "apply_gradients") or skip_mismatch):
                warnings.warn(f"Skipped '{path}': {fault}", stacklevel=4)
            elif fault:
                raise Misfit(f"A total of 1 objects could not be loaded: {fault} (at '{path or '/'}' of the file)")
            else:
                wanted.append((value, {key: _array(dataset) for key, dataset in store.items()}))
    for value, store in wanted:
        if hasattr(value, "load_own_variables") and (store or _own_variables(value)):
            value.load_own_variables(store)


def _build_optimizer(f: Any, model: Any) -> None:
    optimizer = model.__dict__.get("optimizer")
    if optimizer is not None and "optimizer" in f and not getattr(optimizer, "built", True):
        optimizer.build(model.trainable_variables)


def _store_of(reader: _Reader, path: str) -> dict[str, Any]:
    """The data sets of an object's own variables by name; they are read when their shapes are known to fit."""
    group = reader.group(f"{path}/vars" if path else "vars")
    return {} if group is None else {key: reader.dataset(group, key) for key in group}


def _array(dataset: Any) -> np.ndarray:
    """A data set as an array; 16-bit floats of Keras are marked."""
    array = np.asarray(dataset)
    if dataset.attrs.get("dtype") == "bfloat16" and array.dtype.itemsize == 2:
        return array.view(tf.bfloat16.as_numpy_dtype)
    return array


def _own_variables(value: Any) -> list[Any]:
    if isinstance(value, LayerState):
        own = value._own_variables()
        return [v for v in own if v.trainable] + [v for v in own if not v.trainable]
    return list(getattr(value, "variables", ()))


def _fault(value: Any, store: Mapping[str, Any]) -> str:
    """Why the arrays of a group cannot be the variables of an object; empty when they can."""
    standard = getattr(type(value), "load_own_variables", None) is LayerState.load_own_variables
    if not (standard or hasattr(value, "apply_gradients")):
        return ""
    variables = _own_variables(value)
    if len(variables) != len(store):
        return (f"Layer '{value.name}' expected {len(variables)} variables, but received {len(store)} variables during "
                f"loading. Expected: {[v.name for v in variables]}")
    for n, variable in enumerate(variables):
        array = store.get(str(n))
        if array is None or (standard and array.shape != variable.dims):
            have = "none" if array is None else str(array.shape)
            return f"the shape of variable {variable.name!r} is {variable.dims}; the file has {have}"
    return ""


# -- .h5 ------------------------------------------------------------------------------------------
def write_model(file: Any, model: Any, include_optimizer: bool) -> None:
    """Write a whole model in the older form to an open file.

    Raises:
        ValueError: the model has no weights yet.
    """
    if not model.built:
        raise ValueError(f"Unable to save model '{model.name}': it has not been built yet.")
    described = serialize_keras_object(model)
    config = {"class_name": described["class_name"], "config": described["config"],
              "module": described["module"], "registered_name": described["registered_name"]}
    with _written(file) as f:
        f.attrs["keras_version"], f.attrs["backend"] = "3.0.0", "tensorflow"
        f.attrs["model_config"] = json.dumps(config)
        _write_older_weights(f.create_group("model_weights"), model)
        compiled = model.get_compile_config()
        if include_optimizer and compiled:
            optimizer = serialize_keras_object(model.optimizer)
            training = {"optimizer_config": {k: optimizer[k] for k in ("class_name", "config")},
                        **{k: compiled.get(k) for k in ("loss", "metrics", "weighted_metrics", "loss_weights")}}
            f.attrs["training_config"] = json.dumps(training)
            group = f.create_group("optimizer_weights")
            variables = list(model.optimizer.variables)
            names = [f"{n}_{v.name.replace('/', '_')}" for n, v in enumerate(variables)]
            group.attrs["weight_names"] = [name.encode() for name in names]
            for name, variable in zip(names, variables, strict=True):
                group.create_dataset(name, data=_stored(np.asarray(variable.numpy())))


def _older_layers(model: Any) -> list[Any]:
    return model._file_layers() if hasattr(model, "_file_layers") else model.layers


def _older_weights(layer: Any) -> list[Any]:
    return [*layer.trainable_weights, *layer.non_trainable_weights] if layer.trainable else list(layer.weights)


def _write_older_weights(group: Any, model: Any) -> None:
    layers = [layer for layer in _older_layers(model) if type(layer).__name__ != "InputLayer"]
    group.attrs["layer_names"] = [layer.name.encode() for layer in layers]
    group.attrs["backend"], group.attrs["keras_version"] = b"tensorflow", b"3.0.0"
    for layer in layers:
        _write_variables(group.create_group(layer.name), _older_weights(layer))
    _write_variables(group.create_group("top_level_model_weights"), model._own_variables())


def _write_variables(group: Any, variables: list[Any]) -> None:
    names: list[str] = []
    for variable in variables:
        name = variable.name
        names.append(name if name not in names else f"{name.partition(':')[0]}_{len(names)}:0")
    group.attrs["weight_names"] = [name.encode() for name in names]
    for name, variable in zip(names, variables, strict=True):
        group.create_dataset(name, data=_stored(np.asarray(variable.numpy())))


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _read_older_weights(reader: _Reader, group: Any, model: Any, skip_mismatch: bool) -> None:
    """Weights of the older form: layers that have some, in order."""
    named = [(_text(n), reader.group(_text(n), group)) for n in group.attrs["layer_names"]]
    stored = [(name, [_array(reader.dataset(g, _text(w))) for w in g.attrs["weight_names"]]) for name, g in named]
    stored = [(name, arrays) for name, arrays in stored if arrays]
    if "top_level_model_weights" in group:
        top = reader.group("top_level_model_weights", group)
        arrays = [_array(reader.dataset(top, _text(w))) for w in top.attrs["weight_names"]]
        stored.append(("the model itself", arrays))
        stored = [(name, arrays) for name, arrays in stored if arrays]
    have = [(layer.name, _older_weights(layer)) for layer in model.layers]
    have = [(name, weights) for name, weights in [*have, (model.name, model._own_variables())] if weights]
    if len(have) != len(stored):
        raise Misfit(f"Layer count mismatch when loading weights from file. Model expected {len(have)} layers, "
                         f"found {len(stored)} saved layers.")
    pairs: list[tuple[Any, np.ndarray]] = []
    for (name, weights), (stored_name, arrays) in zip(have, stored, strict=True):
        fits = len(weights) == len(arrays) and all(
            w.dims == a.shape for w, a in zip(weights, arrays, strict=True))
        if fits:
            pairs += list(zip(weights, arrays, strict=True))
        elif skip_mismatch:
            warnings.warn(f"Skipped layer '{name}': the shapes of its weights differ.", stacklevel=5)
        else:
            raise Misfit(f"Shape mismatch in layer '{name}' for the weights of '{stored_name}': expected "
                             f"{[w.dims for w in weights]}, the file has {[a.shape for a in arrays]}.")
    for variable, array in pairs:
        variable.assign(array)


def read_model(path: str, custom_objects: Any, compile: bool) -> Any:
    """The model of a file of the older form.

    Raises:
        ValueError: the file holds no model.
    """
    with _opened(path, None, 0) as reader:
        with _reading.reads(path):
            attributes = {name: _text(reader.file.attrs[name]) for name in ("model_config", "training_config")
                          if name in reader.file.attrs}
        if "model_config" not in attributes:
            raise ValueError(f"No model config found in the file at {path}: it may hold weights only.")
        room = _reading.bound(os.path.getsize(path))
        with _reading.makes(path, room):
            model = deserialize_keras_object(_reading.parsed_json(attributes["model_config"], path), custom_objects)
        with _damage(path):
            _read_older_weights(reader, reader.group("model_weights"), model, False)
        if compile and "training_config" in attributes:
            training = _reading.parsed_json(attributes["training_config"], path)
            with _reading.makes(path, room), custom_object_scope(by_name(custom_objects)):
                _compile(model, training, reader)
    return model


class Misfit(ValueError):
    """The weights of a file are not those of the model: no damage."""


@contextlib.contextmanager
def _damage(path: str) -> Iterator[None]:
    """A block that reads weights, whose errors name the file."""
    try:
        with _reading.reads(path, Misfit):
            yield
    except Misfit as e:
        raise ValueError(f"{e} ({path})") from None


def _compile(model: Any, config: dict[str, Any], reader: _Reader) -> None:
    from . import optimizers
    others = {k: deserialize_keras_object(config.get(k)) for k in ("loss", "metrics", "weighted_metrics",
                                                                   "loss_weights")}
    model.compile(optimizers.deserialize(config["optimizer_config"]), **others)
    optimizer = model.optimizer
    optimizer.build(model.trainable_variables)
    if "optimizer_weights" in reader.file:
        group = reader.group("optimizer_weights")
        arrays = [_array(reader.dataset(group, _text(name))) for name in group.attrs["weight_names"]]
        _restore(list(optimizer.variables), arrays, lambda text: warnings.warn(text, stacklevel=6))


def _restore(variables: list[Any], arrays: list[np.ndarray], tell: Callable[[str], None]) -> None:
    if len(variables) != len(arrays) or any(
            v.dims != a.shape for v, a in zip(variables, arrays, strict=True)):
        tell("The optimizer's state in the file does not fit the optimizer: it begins anew.")
        return
    for variable, array in zip(variables, arrays, strict=True):
        variable.assign(array)
