"""Datasets in folders: `Dataset.save` and `Dataset.load`.

    FOLDER/elements.tfrecord   the elements (`_state.py`), a record each
    FOLDER/dataset.json        {"format": 1, "count": ..., "spec": ...}; written last, when the folder is whole
"""

from __future__ import annotations

import json
import os
from typing import Any

import twofold as tf

from ._files import Reader
from ._node import Node
from ._records import compression_of, framed, open_to_read, open_to_write, path_of, read_record
from ._state import decoded, encoded
from ._stream import Run, Stream
from ._structure import Form, compatible

__all__ = ["Loaded", "save"]

_FORMAT = 1


def save(dataset: Any, path: Any, compression: Any) -> None:
    """Write the elements of a dataset to a folder."""
    folder, kind = path_of(path), compression_of(compression)
    spec = _tree(dataset.element_spec)
    os.makedirs(folder, exist_ok=True)
    index, elements = os.path.join(folder, "dataset.json"), os.path.join(folder, "elements.tfrecord")
    count, partial = 0, f"{elements}.{os.getpid()}.partial"
    iterator = iter(dataset)
    file = open_to_write(partial, kind)
    try:
        while (item := iterator._pull()) is not None:
            file.write(framed(encoded(item)))
            count += 1
        file.close()
        if os.path.exists(index):
            os.remove(index)  # it tells of the elements that are replaced now
        os.replace(partial, elements)
    finally:
        file.close()
        if os.path.exists(partial):
            os.remove(partial)
    text = json.dumps({"format": _FORMAT, "count": count, "compression": kind, "spec": spec})
    with open(index + ".partial", "w", encoding="utf-8") as out:
        out.write(text)
    os.replace(index + ".partial", index)


def _tree(spec: Any) -> Any:
    """A structure of specs as JSON.

    Raises:
        TypeError: it is made of more than tuples, dicts and tensors.
    """
    if isinstance(spec, tf.TensorSpec):
        return {"dtype": spec.dtype.name, "shape": None if spec.shape.rank is None else list(spec.shape)}
    if type(spec) is tuple:
        return [_tree(s) for s in spec]
    if isinstance(spec, dict):
        return {"dict": {key: _tree(s) for key, s in spec.items()}}
    raise TypeError(f"Dataset.save writes tuples and dicts of tensors; elements of this dataset hold {spec!r}.")


def _spec(tree: Any) -> Any:
    if isinstance(tree, list):
        return tuple([_spec(t) for t in tree])
    if "dict" in tree:
        return {key: _spec(t) for key, t in tree["dict"].items()}
    return tf.TensorSpec(tree["shape"], tree["dtype"])


class Loaded(Node):
    """The elements of a folder."""

    name = "Load"

    def __init__(self, path: Any, element_spec: Any) -> None:
        self.folder = path_of(path)
        index = os.path.join(self.folder, "dataset.json")
        try:
            with open(index, encoding="utf-8") as file:
                found = json.load(file)
        except FileNotFoundError:
            raise tf.errors.NotFoundError(None, None, f"Could not find a saved dataset at {self.folder}: there is no "
                                                      f"{index}.") from None
        if found.get("format") != _FORMAT:
            raise tf.errors.DataLossError(None, None, f"{index} has format {found.get('format')}; {_FORMAT} is known.")
        self.form, self.count, self.compression = Form(_spec(found["spec"])), found["count"], found["compression"]
        if element_spec is not None:
            given = Form(element_spec)
            if not compatible(given, self.form):
                raise ValueError(f"element_spec {element_spec!r} does not describe what was saved: {self.form.spec!r}.")
            self.form = given

    def cardinality(self) -> int:
        return int(self.count)

    def start(self, run: Run) -> Stream:
        return _Reading(os.path.join(self.folder, "elements.tfrecord"), self.compression)


class _Reading(Stream):
    def __init__(self, path: str, compression: str) -> None:
        file = open_to_read(path, compression)
        self.read, self.at = Reader(file, lambda: read_record(file, path)), 0
        self.over = False

    def next(self) -> Any:
        record = None if self.over else self.read()
        self.over = record is None
        self.at += not self.over
        return None if record is None else decoded(record)

    def save(self) -> Any:
        return [self.at, self.over]

    def load(self, state: Any) -> None:
        at, over = state
        while self.at < at:
            self.read()
            self.at += 1
        self.over = over
