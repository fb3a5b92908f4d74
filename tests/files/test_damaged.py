"""Files that are cut short, changed or made to do harm: readers raise errors of the library with the file's name.

A whole file of each kind is read once; then copies of it that are cut off at many places, have bytes changed, or are
something else altogether. What is read may be what was there or an error, and no reader takes more memory than the
file can explain: all run under a limit on the process's memory.
"""

from __future__ import annotations

import io
import json
import os
import random
import resource
import subprocess
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from quick.start import python

import twofold as tf

keras = tf.keras
h5py = pytest.importorskip("h5py")


def model() -> Any:
    made = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(4, name="d"), keras.layers.Dense(2)])
    made.compile("adam", "mse")
    return made


def with_vocabulary() -> Any:
    layer = keras.layers.StringLookup(vocabulary=["a", "b"])
    return keras.Sequential([keras.layers.Input((1,), dtype="string"), layer])


def saved(ending: str) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        path = folder / f"it{ending}"
        model().save_weights(path) if "weights" in ending else model().save(path)
        return path
    return write


def checkpoint(folder: Path) -> Path:
    return Path(tf.train.Checkpoint(v=tf.Variable([1.0, 2.0])).write(str(folder / "it")) + ".safetensors")


def read_checkpoint(path: Path) -> Any:
    v = tf.Variable([0.0, 0.0])
    tf.train.Checkpoint(v=v).read(str(path).removesuffix(".safetensors")).assert_consumed()
    return v.numpy().tolist()


def backup(folder: Path) -> Path:
    callback, made = keras.callbacks.BackupAndRestore(str(folder)), model()
    callback.set_model(made)
    made.optimizer.build(made.trainable_variables)
    callback.on_epoch_end(0)
    return folder / "latest.npz"


def read_backup(path: Path) -> None:
    callback = keras.callbacks.BackupAndRestore(str(path.parent))
    callback.set_model(model())
    callback.on_train_begin()


def dataset() -> Any:
    return tf.data.Dataset.from_tensor_slices({"x": np.arange(6, dtype=np.int16), "t": ["a", "", "c"] * 2})


def dataset_index(folder: Path) -> Path:
    dataset().save(folder / "d")
    return folder / "d" / "dataset.json"


def dataset_elements(kind: str) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        dataset().save(folder / "d", compression=kind)
        actual, = (folder / "d").glob("elements-*")
        return actual
    return write


def cached(folder: Path) -> Path:
    list(dataset().cache(str(folder / "c")))
    return folder / "c.elements"


def records(kind: str) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        with tf.io.TFRecordWriter(str(folder / "r"), kind) as out:
            for n in range(4):
                out.write(b"record" * n)
        return folder / "r"
    return write


def lines(folder: Path) -> Path:
    import gzip
    path = folder / "lines.gz"
    path.write_bytes(gzip.compress(b"one\ntwo\n" * 50, mtime=0))
    return path


# How a file is written, and read; and whether an error's text has its name (contents given as bytes have none).
FORMATS: dict[str, tuple[Callable[[Path], Path], Callable[[Path], Any]]] = {
    ".keras": (saved(".keras"), keras.models.load_model),
    ".keras weights": (saved(".keras"), lambda path: model().load_weights(path)),
    ".weights.h5": (saved(".weights.h5"), lambda path: model().load_weights(path)),
    ".h5": (saved(".h5"), keras.models.load_model),
    ".h5 weights": (saved(".h5"), lambda path: model().load_weights(path)),
    "checkpoint": (checkpoint, read_checkpoint),
    "backup": (backup, read_backup),
    "dataset's index": (dataset_index, lambda path: list(tf.data.Dataset.load(str(path.parent)))),
    **{f"dataset {kind}": (dataset_elements(kind), lambda path: list(tf.data.Dataset.load(str(path.parent))))
       for kind in ("NONE", "GZIP", "ZLIB")},
    "cache": (cached, lambda path: list(dataset().cache(str(path).removesuffix(".elements")))),
    **{f"records {kind}": (records(kind), lambda path, kind=kind: list(tf.data.TFRecordDataset(str(path), kind)))
       for kind in ("", "GZIP", "ZLIB")},
    "lines": (lines, lambda path: list(tf.data.TextLineDataset(str(path), "GZIP"))),
}


def mutations(data: bytes, count: int) -> Iterator[bytes]:
    """Contents that are not those that were written."""
    rng = random.Random(5)
    yield b""
    yield b"\x00" * len(data)
    yield os.urandom(200)
    yield b"[" * 100_000
    yield b"PK\x03\x04" + data[4:]
    for _ in range(count):
        yield data[:rng.randrange(len(data))]
        changed = bytearray(data)
        for _ in range(rng.choice([1, 1, 4, 30])):
            changed[rng.randrange(len(data))] = rng.choice([0, 255, rng.randrange(256)])
        yield bytes(changed)
        at = rng.randrange(len(data))
        yield data[:at] + data[at + rng.randrange(1, 40):]


@pytest.fixture(autouse=True, scope="module")
def little_memory() -> Iterator[None]:
    """Room for 2 GiB beyond what the process has."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm", encoding="ascii") as file:
        used = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (used + (2 << 30), before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.mark.filterwarnings("ignore:Skipped")
@pytest.mark.filterwarnings("ignore:.*optimizer's state")
@pytest.mark.parametrize("form", FORMATS)
def test_damaged_files(form: str, tmp_path: Path) -> None:
    write, read = FORMATS[form]
    path = write(tmp_path)
    read(path)
    data = path.read_bytes()
    whole = 0
    for contents in mutations(data, 25):
        path.write_bytes(contents)
        try:
            read(path)
            whole += 1
        except tf.errors.OpError as e:
            assert path.name.removesuffix(".safetensors") in str(e) or str(path.parent) in str(e), (contents[:80], e)
        except ValueError as e:
            assert type(e) is ValueError and str(path) in str(e), (type(e), e)
    assert whole < 45  # some changes are to bytes that nobody reads


# -- files that are made to do harm ---------------------------------------------------------------
def archive(path: Path, **changed: Any) -> Path:
    """A `.keras` file with members in another form."""
    whole = path.parent / "whole.keras"
    model().save(whole)
    with zipfile.ZipFile(whole) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            change = changed.get(name.split(".")[0])
            new.writestr(name, old.read(name) if change is None else change(old.read(name)))
    return path


def config_with(change: Callable[[dict[str, Any]], Any]) -> Callable[[bytes], bytes]:
    def changed(data: bytes) -> bytes:
        config = json.loads(data)
        change(config)
        return json.dumps(config).encode()
    return changed


def test_a_config_that_inflates(tmp_path: Path) -> None:
    path = archive(tmp_path / "m.keras", config=lambda data: data[:-1] + b" " * (100 << 20) + data[-1:])
    with pytest.raises(tf.errors.DataLossError, match=r"m.keras is damaged.*inflates to 104,\d+,\d+ bytes"):
        keras.models.load_model(path)


def test_weights_that_inflate(tmp_path: Path) -> None:
    path = archive(tmp_path / "m.keras", model=lambda data: data + bytes(100 << 20))
    for read in (keras.models.load_model, model().load_weights):
        with pytest.raises(tf.errors.DataLossError, match=r"m.keras is damaged.*inflates to"):
            read(path)


def test_sizes_that_no_file_explains(tmp_path: Path) -> None:
    def enormous(config: dict[str, Any]) -> None:
        for layer in config["config"]["layers"]:
            if layer["class_name"] == "Dense":
                layer["config"]["units"] = 10 ** 9
    path = archive(tmp_path / "m.keras", config=config_with(enormous))
    with pytest.raises(ValueError, match=r"variables of more than [\d,]+ bytes(.|\n)*m.keras"):
        keras.models.load_model(path)


def test_brackets(tmp_path: Path) -> None:
    for text in (b'{"config": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", b"[" * 100_000):
        path = archive(tmp_path / "m.keras", config=lambda data, text=text: text)
        with pytest.raises(tf.errors.DataLossError, match=r"m.keras is damaged: .* brackets"):
            keras.models.load_model(path)


def test_brackets_in_texts_are_none(tmp_path: Path) -> None:
    made = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(2)], name="n" + "[" * 1000)
    made.save(tmp_path / "m.keras")
    assert keras.models.load_model(tmp_path / "m.keras").name == made.name


def weights_with(change: Callable[[Any], Any]) -> bytes:
    file = io.BytesIO()
    with h5py.File(file, "w") as f:
        change(f)
    return file.getvalue()


@pytest.mark.parametrize("kind", ["much", "external", "soft", "group"])
def test_hdf5_with_much_or_elsewhere(kind: str, tmp_path: Path) -> None:
    secret = tmp_path / "secret.h5"
    model().save_weights(tmp_path / "m.weights.h5")
    os.link(tmp_path / "m.weights.h5", secret)
    whole = (tmp_path / "m.weights.h5").read_bytes()
    file = io.BytesIO(whole)
    with h5py.File(file, "r+") as f:
        group = f["layers/dense/vars"]
        del group["0"]
        if kind == "much":
            group.create_dataset("0", shape=(1 << 40,), dtype="f8", chunks=(1 << 10,))
        elif kind == "external":
            group["0"] = h5py.ExternalLink(str(secret), "/layers/dense/vars/0")
        elif kind == "soft":
            group["0"] = h5py.SoftLink("/layers/dense/vars/1")
        else:
            group.create_group("0")
    (tmp_path / "new.weights.h5").write_bytes(file.getvalue())
    with pytest.raises((tf.errors.DataLossError, ValueError), match=r"new.weights.h5"):
        model().load_weights(tmp_path / "new.weights.h5")


def test_pipes_and_folders_are_not_waited_for(tmp_path: Path) -> None:
    script = """
import sys
import twofold as tf
m = tf.keras.Sequential([tf.keras.layers.Input((3,)), tf.keras.layers.Dense(4)])
for read in (tf.keras.models.load_model, m.load_weights):
    try:
        read(sys.argv[1])
    except (tf.errors.OpError, ValueError) as e:
        print(type(e).__name__, "it" in str(e))
"""
    for name in ("it.keras", "it.weights.h5"):
        os.mkfifo(tmp_path / name)
        done = subprocess.run(python("-c", script, tmp_path / name), capture_output=True, text=True,
                              timeout=300)
        assert done.stdout.count("True") == 2, done.stderr


def test_a_record_with_a_length_that_the_file_does_not_have(tmp_path: Path) -> None:
    from twofold.data._records import _checksum
    head = (1 << 62).to_bytes(8, "little")
    (tmp_path / "r").write_bytes(head + _checksum(head) + b"x" * 100)
    with pytest.raises(tf.errors.DataLossError, match="truncated record in .*r"):
        list(tf.data.TFRecordDataset(str(tmp_path / "r")))
