"""Datasets in folders: `Dataset.save` and `Dataset.load`.

    FOLDER/elements-01234567.tfrecord   the elements (`_state.py`), a record each
    FOLDER/dataset.json                 {"format": 1, "count": ..., "elements": the file above, "spec": ...}

A save writes a new file of elements and then replaces the index: that one step decides, so whoever dies before or after
it leaves a whole dataset. Elements that no index names are removed by the next save.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
from typing import Any

import twofold as tf
from twofold._formats.reading import SMALL, damaged, opened, parsed_json, reads
from twofold._formats.replacing import Replacement, alone, replace

from ._files import Reader
from ._node import Node
from ._records import Written, compression_of, framed, open_to_read, path_of, read_record
from ._state import decoded, encoded
from ._stream import Run, Stream
from ._structure import Form, compatible

__all__ = ["Loaded", "save"]

_FORMAT = 1
_INDEX = "dataset.json"
_ELEMENTS = re.compile(r"elements(-[0-9a-f]{8})?\.tfrecord")


def save(dataset: Any, path: Any, compression: Any) -> None:
    """Write the elements of a dataset to a folder; until they are whole, what was there stays."""
    folder, kind = path_of(path), compression_of(compression)
    spec = _tree(dataset.element_spec)
    os.makedirs(folder, exist_ok=True)
    name, count = f"elements-{secrets.token_hex(4)}.tfrecord", 0
    iterator = iter(dataset)
    with contextlib.closing(Replacement(os.path.join(folder, name))) as made:
        out = Written(made.file, kind)
        while (item := iterator._pull()) is not None:
            out.write(framed(encoded(item)))
            count += 1
        out.end()
        made.finish()
        text = json.dumps({"format": _FORMAT, "count": count, "compression": kind, "elements": name, "spec": spec})
        with alone(folder) as certain:
            before = _named(folder)
            made.commit()
            replace(os.path.join(folder, _INDEX), text.encode())
            _tidy(folder, name, None if certain else before)


def _named(folder: str) -> str | None:
    """The file of elements that a folder's index names, as far as that can be told."""
    try:
        return str(_index(folder)["elements"])
    except tf.errors.OpError:
        return None


def _tidy(folder: str, keep: str, only: str | None) -> None:
    """Remove elements that the index does not name; `only` these where others may be saving at the same time."""
    for name in os.listdir(folder):
        if name != keep and _ELEMENTS.fullmatch(name) and only in (None, name):
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(folder, name))


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


def _index(folder: str) -> dict[str, Any]:
    """The index of a folder, with `spec` as a structure of specs.

    Raises:
        NotFoundError: there is none. DataLossError: it is damaged, or of another format.
    """
    path = os.path.join(folder, _INDEX)
    try:
        file = opened(path)
    except tf.errors.NotFoundError:
        raise tf.errors.NotFoundError(None, None, f"Could not find a saved dataset at {folder}: there is no "
                                                  f"{path}.") from None
    with file:
        data = file.read(SMALL + 1)
    if len(data) > SMALL:
        raise damaged(path, f"it has more than {SMALL:,} bytes")
    index = parsed_json(data, path)
    if index.get("format") != _FORMAT:
        raise tf.errors.DataLossError(None, None, f"{path} has format {index.get('format')}; {_FORMAT} is known.")
    with reads(path):
        name, count = index.setdefault("elements", "elements.tfrecord"), index["count"]
        if not isinstance(name, str) or _ELEMENTS.fullmatch(name) is None:
            raise ValueError(f"{name!r} is no file of elements")
        if type(count) is not int or not -2 <= count < 1 << 62:
            raise ValueError(f"{count!r} is no number of elements")
        return {**index, "compression": compression_of(index["compression"]), "spec": _spec(index["spec"])}


class Loaded(Node):
    """The elements of a folder."""

    name = "Load"

    def __init__(self, path: Any, element_spec: Any) -> None:
        self.folder = path_of(path)
        index = _index(self.folder)
        self.form, self.count, self.compression = Form(index["spec"]), index["count"], index["compression"]
        self.elements = os.path.join(self.folder, index["elements"])
        if element_spec is not None:
            given = Form(element_spec)
            if not compatible(given, self.form):
                raise ValueError(f"element_spec {element_spec!r} does not describe what was saved: {self.form.spec!r}.")
            self.form = given

    def cardinality(self) -> int:
        return int(self.count)

    def start(self, run: Run) -> Stream:
        return _Reading(self.elements, self.compression)


class _Reading(Stream):
    def __init__(self, path: str, compression: str) -> None:
        file = open_to_read(path, compression)
        self.read, self.at = Reader(file, lambda: read_record(file, path)), 0
        self.path = path
        self.over = False

    def next(self) -> Any:
        record = None if self.over else self.read()
        self.over = record is None
        self.at += not self.over
        return None if record is None else decoded(record, self.path)

    def save(self) -> Any:
        return [self.at, self.over]

    def load(self, state: Any) -> None:
        at, over = state
        while self.at < at:
            self.read()
            self.at += 1
        self.over = over
