"""Models in files, between `tf.keras`, the genuine Keras on twofold, and the genuine Keras on TensorFlow.

    python tests/clients/keras_files.py --python ENVIRONMENT/bin/python

The environment holds TensorFlow, Keras and what twofold needs. The models are those of `tests/keras/data/exchange`,
which Keras wrote on TensorFlow. Each way of running Keras reads the `.keras` files and writes them again; the others
read what it wrote. Predictions must differ by at most 1e-5 from what TensorFlow gave at first. Prints one
line of JSON in the form of `keras_suite.py`, and the files that do not pass.

Run with `--read FOLDER...`, it is one of these ways: it prints the predictions of the models of folders.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

_ROOT = Path(__file__).resolve().parents[2]
_EXCHANGE = _ROOT / "tests" / "keras" / "data" / "exchange"
_WAYS = ("tf.keras", "Keras on twofold", "Keras on TensorFlow")
_CLOSE = 1e-5


def keras_of(way: str) -> Any:
    """The module of a way, in its process."""
    if way == "tf.keras":
        import twofold as tf
        return tf.keras
    import keras
    return keras


def given(stem: str) -> list[np.ndarray]:
    """The inputs of a model."""
    with np.load(_EXCHANGE / f"{stem}.npz") as stored:
        return [stored[f"in{n}"] for n in range(len([name for name in stored.files if name.startswith("in")]))]


def wanted(stem: str) -> list[np.ndarray]:
    """What TensorFlow predicted."""
    with np.load(_EXCHANGE / f"{stem}.npz") as stored:
        return [stored[f"out{n}"] for n in range(len([name for name in stored.files if name.startswith("out")]))]


def read(way: str, folders: list[Path], write: Path | None) -> None:
    """Prints for each file of the folders how far its predictions are from TensorFlow's, or what went wrong."""
    models = keras_of(way).models
    for path in sorted(p for folder in folders for p in folder.iterdir() if p.suffix == ".keras"):
        stem, inputs = path.stem, given(path.stem)
        try:
            model = models.load_model(path)
            outputs = model.predict(inputs if len(inputs) > 1 else inputs[0], verbose=0)
            outputs = outputs if isinstance(outputs, list) else [outputs]
            far = max(float(np.max(np.abs(np.asarray(a, np.float64) - b)))
                      for a, b in zip(outputs, wanted(stem), strict=True))
            if write is not None:
                model.save(write / path.name)
            print(json.dumps([str(path), far]))
        except Exception as error:  # noqa: BLE001 - what a file does is what is reported
            print(json.dumps([str(path), f"{type(error).__name__}: {error}"]))


def told(python: str, way: str, folders: list[Path], write: Path | None) -> dict[str, Any]:
    """`read` in a process of its own."""
    here = [str(_ROOT / "twofold" / "as_tensorflow" / "path"), str(_ROOT)] if way == "Keras on twofold" else []
    environment = {**os.environ, "KERAS_BACKEND": "tensorflow", "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "",
                   "PYTHONPATH": os.pathsep.join(here)}
    written = ["--write", str(write)] if write is not None else []
    ran = subprocess.run([python if way != "tf.keras" else sys.executable, __file__, "--way", way, *written,
                          "--read", *map(str, folders)], env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return dict(json.loads(line) for line in ran.stdout.splitlines() if line.startswith("["))


def main() -> None:
    """Has each way read what the others wrote."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", help="the interpreter of an environment")
    parser.add_argument("--way", choices=_WAYS)
    parser.add_argument("--read", nargs="+", type=Path)
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    if options.read:
        read(options.way, options.read, options.write)
        return
    started = time.monotonic()
    failures, count = [], 0
    with tempfile.TemporaryDirectory() as place:
        folders = {way: Path(place) / way.replace(" ", "_") for way in _WAYS}
        for folder in folders.values():
            folder.mkdir()
        first = {way: told(options.python, way, [_EXCHANGE], folders[way]) for way in _WAYS}
        then = {way: told(options.python, way, [f for other, f in folders.items() if other != way], None)
                for way in _WAYS}
    for way in _WAYS:
        for path, far in (first[way] | then[way]).items():
            count += 1
            if isinstance(far, str) or far > _CLOSE:
                failures.append([way, "/".join(Path(path).parts[-2:]), far])
    for failure in failures:
        print(*failure, file=sys.stderr)
    print(json.dumps({"client": "files of Keras", "tests_on_tensorflow": count, "passed_there": count,
                      "passed_here": count - len(failures), "seconds": round(time.monotonic() - started)}))


if __name__ == "__main__":
    main()
