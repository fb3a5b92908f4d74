"""Folders that are damaged, made to do harm, or made of ops that are not there: one clear error each, and no crash."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import pytest
from fuzz import saved_model_mutations as mutations

import twofold as tf
from twofold._formats.wire import field, number
from twofold.tensorflow_files.graphs import Called, library_of
from twofold.tensorflow_files.messages import Message
from twofold.tensorflow_files.run import Run
from twofold.tensorflow_files.tensors import Room, array_of

_DATA = Path(__file__).parent / "data"
_FILE = "saved_model.pb"


def _with(folder: Path, name: str, old: bytes, new: bytes) -> str:
    """The folder of a model in whose graph some bytes are others."""
    assert len(old) == len(new)
    with zipfile.ZipFile(_DATA / f"{name}.zip") as archive:
        archive.extractall(folder)
    data = (folder / _FILE).read_bytes()
    assert old in data
    (folder / _FILE).write_bytes(data.replace(old, new))
    return str(folder)


def test_ops_that_are_not_there_are_named_all_at_once(tmp_path: Path) -> None:
    folder = _with(tmp_path, "dense", b"\x12\x04Relu", b"\x12\x04Xelu")
    data = (tmp_path / _FILE).read_bytes()
    (tmp_path / _FILE).write_bytes(data.replace(b"\x12\x06MatMul", b"\x12\x06XatMul"))
    model = tf.saved_model.load(folder)  # what does not need them can be used
    assert model.rows([[1.0, 2.0]], 2)[0].shape == (1, 2)
    with pytest.raises(tf.errors.UnimplementedError, match="XatMul .node 'MatMul'., Xelu .node 'Relu'."):
        model([[1.0, 2.0, 3.0, 4.0]])
    with pytest.raises(tf.errors.UnimplementedError, match="XatMul .node 'MatMul'., Xelu .node 'Relu'."):
        model.signatures["serving_default"](x=[[1.0, 2.0, 3.0, 4.0]])


def test_variables_of_a_model_of_which_nothing_can_run_are_there(tmp_path: Path) -> None:
    model = tf.saved_model.load(_with(tmp_path, "mlp", b"\x12\x05AddV2", b"\x12\x05AddV9"))
    assert len(model.variables) == 8
    with pytest.raises(tf.errors.UnimplementedError, match="AddV9 .node '.*add"):
        model.serve(tf.zeros([1, 6]))


def test_arguments_of_signatures_have_any_names(tmp_path: Path) -> None:
    folder = _with(tmp_path, "branches_1", b"\x01c\x12\t\n\x03c:0", b"\x01-\x12\t\n\x03c:0")
    branch = tf.saved_model.load(folder, tags=["serve", "old"]).signatures["branch"]
    assert branch(**{"p": tf.ones([1, 4]), "-": False})["y"].shape == (1, 4)


def test_assets_lie_in_the_folder(tmp_path: Path) -> None:
    folder = _with(tmp_path, "tables", b"words.txt", b"../ds.txt")
    with pytest.raises(tf.errors.DataLossError, match="leads out of the folder"):
        tf.saved_model.load(folder)


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    folder = _with(tmp_path, "dense", b"Relu", b"Relu")
    (tmp_path / "variables" / "variables.index").unlink()
    with pytest.raises(tf.errors.NotFoundError, match="variables.index"):
        tf.saved_model.load(folder)
    (tmp_path / _FILE).write_bytes(b"")
    with pytest.raises(tf.errors.NotFoundError, match="no graph with the tags"):
        tf.saved_model.load(folder)


def _function(name: str, *nodes: bytes) -> bytes:
    return field(1, field(1, field(1, name.encode())) + b"".join(field(3, node) for node in nodes))


def _calling(name: str, other: str) -> bytes:
    """A node that calls a function."""
    attribute = field(1, b"f") + field(2, field(10, field(1, other.encode())))
    return field(1, name.encode()) + field(2, b"PartitionedCall") + field(5, attribute)


def _run(library: bytes, name: str) -> Any:
    return Run(library_of(Message(library), Room(1 << 10))).function(Called(name, {}), [])


def test_calls_without_an_end_are_refused() -> None:
    named = field(6, field(1, b"end") + field(2, b"again"))
    function = _function("f", _calling("again", "f"))
    with pytest.raises(Exception, match="more than 64 deep"):
        _run(field(1, Message(function).bytes(1) + named), "f")


def test_constants_take_no_more_than_their_file_allows() -> None:
    sizes = b"".join(field(2, b"\x08" + number(size)) for size in (1 << 20, 1 << 10))
    tensor = b"\x08" + number(1) + field(2, sizes)  # a shape, and not one value
    with pytest.raises(ValueError, match="would take more than"):
        array_of(tensor, Room(100))


def test_mutations_end_with_results_or_clear_errors(tmp_path: Path) -> None:
    models = mutations.seeds()[:4]
    ends = [mutations.outcome(mutations.written(mutations.changed(models, n, seed=1), tmp_path / "model"))
            for n in range(12)]
    assert [end for end in ends if end.startswith("wrong")] == []
