"""Models in files, between `tf.keras`, the genuine Keras on twofold, and the genuine Keras on TensorFlow.

    python tests/clients/keras_files.py [--python ENVIRONMENT/bin/python] [NAME ...]

The environment holds TensorFlow, Keras and what twofold needs; without one, that of `make clients` is taken. Each way
of running Keras makes the models of `keras_models.py`, trains them a little, saves them as `.keras`, `.weights.h5` and
`.h5`, and trains on. Each way reads what every way wrote. Predictions must be those of who wrote the file to 1e-6, and
the losses of training on with the optimizer of a `.keras` file to 1e-5. The files of `tests/keras/data/exchange`, which
Keras wrote on TensorFlow some time ago, are read and written again, too. What Keras on TensorFlow cannot read of its
own files is asked of nobody. Prints one line of JSON in the form of `keras_suite.py`, and what does not hold.

Run with `--way`, it is one of these ways.
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

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from clients.keras_models import COARSE, MODELS, classes

_ROOT = Path(__file__).resolve().parents[2]
_EXCHANGE = _ROOT / "tests" / "keras" / "data" / "exchange"
_WAYS = ("tf.keras", "Keras on twofold", "Keras on TensorFlow")
_FORMS = (".keras", ".weights.h5", ".h5")
_CLOSE, _LOSSES = 1e-6, 1e-5
_STEPS = 3
#: models that no older file holds: Keras writes layers of the user's own and of several variables by name there
_NO_H5 = frozenset({"subclassed"})


def _folder(way: str) -> str:
    return way.replace(" ", "_")


def keras_of(way: str) -> Any:
    """The module of a way, in its process."""
    if way == "tf.keras":
        import twofold as tf
        return tf.keras
    import keras
    return keras


def tensors(way: str, given: Any) -> Any:
    """Inputs as a way takes them: texts are tensors."""
    if isinstance(given, dict):
        return {name: tensors(way, value) for name, value in given.items()}
    if isinstance(given, list):
        return [tensors(way, value) for value in given]
    if given.dtype != object:
        return given
    if way == "tf.keras":
        import twofold as tf
    else:
        import tensorflow as tf
    return tf.constant(given.tolist())


def flat(outputs: Any) -> list[np.ndarray]:
    """Predictions as a list of arrays."""
    if isinstance(outputs, dict):
        outputs = [outputs[name] for name in sorted(outputs)]
    return [np.asarray(v, np.float64) for v in (outputs if isinstance(outputs, (list, tuple)) else [outputs])]


def trained(model: Any, x: Any, y: Any, steps: int = _STEPS) -> list[float]:
    """The losses of some steps on one batch."""
    losses = []
    for _ in range(steps):
        result = model.train_on_batch(x, y)
        losses.append(float(np.asarray(result[0] if isinstance(result, (list, tuple)) else result)))
    return losses


def far(a: Any, b: Any) -> float:
    """How far numbers are from what they should be, beside their size."""
    if len(a) != len(b) or any(np.shape(p) != np.shape(q) for p, q in zip(a, b, strict=True)):
        return float("inf")
    return max([float(np.max(np.abs(np.asarray(p) - q) / (1 + np.abs(q)), initial=0))
                for p, q in zip(a, b, strict=True)], default=0.0)


def write(way: str, names: list[str], folder: Path) -> None:
    """Makes the models, saves them in all forms with what they predict, and trains on."""
    keras = keras_of(way)
    for name in names:
        keras.utils.set_random_seed(3)
        model, x, y = MODELS[name](keras)
        x = tensors(way, x)
        if y is not None:
            trained(model, x, y)
        outputs = flat(model.predict(x, verbose=0))
        for form in _FORMS:
            if form == ".h5" and name in _NO_H5:
                continue
            path = folder / f"{name}{form}"
            try:
                model.save_weights(str(path)) if form == ".weights.h5" else model.save(str(path))
            except Exception as error:  # noqa: BLE001 - what a way cannot write is what is reported
                told(path, "written", f"{type(error).__name__}: {error}"[:1500])
        losses = trained(model, x, y) if y is not None else []
        np.savez(folder / f"{name}.npz", losses=np.array(losses), **{f"out{n}": v for n, v in enumerate(outputs)})


def kept(path: Path) -> tuple[list[np.ndarray], np.ndarray]:
    """The predictions and losses of who wrote a file."""
    with np.load(path) as stored:
        count = len([name for name in stored.files if name.startswith("out")])
        return [stored[f"out{n}"] for n in range(count)], stored["losses"] if "losses" in stored.files else np.array([])


def read(way: str, names: list[str], folder: Path) -> None:
    """Reads what the ways wrote; prints how far each file's predictions and losses are from those of who wrote it."""
    keras = keras_of(way)
    classes(keras)
    for folder, name in [(folder / _folder(other), name) for other in _WAYS for name in names]:
        outputs, losses = kept(folder / f"{name}.npz")
        for form in _FORMS:
            path = folder / f"{name}{form}"
            if not path.exists():
                continue
            try:
                made, x, y = MODELS[name](keras)
                x = tensors(way, x)
                if form == ".weights.h5":
                    model = made
                    model.predict(x, verbose=0)  # which builds it
                    model.load_weights(str(path))
                else:
                    model = keras.models.load_model(str(path), compile=form == ".keras")
                told(path, "predictions", far(flat(model.predict(x, verbose=0)), outputs))
                if y is not None and form == ".keras":  # the others have no state of optimizers that Keras reads
                    told(path, "losses", far([trained(model, x, y)], [losses]))
            except Exception as error:  # noqa: BLE001 - what a file does is what is reported
                told(path, "read", f"{type(error).__name__}: {error}"[:1500])


def exchange(way: str, folder: Path, written: Path | None) -> None:
    """Reads `.keras` files that are as those of the exchange, and writes them again."""
    keras = keras_of(way)
    for path in sorted(folder.glob("*.keras")):
        if not (_EXCHANGE / f"{path.stem}.npz").exists():
            continue
        try:
            with np.load(_EXCHANGE / f"{path.stem}.npz") as stored:
                inputs = [stored[f"in{n}"] for n in range(len([n for n in stored.files if n.startswith("in")]))]
            model = keras.models.load_model(str(path))
            told(path, "predictions", far(flat(model.predict(inputs if len(inputs) > 1 else inputs[0], verbose=0)),
                                          kept(_EXCHANGE / f"{path.stem}.npz")[0]))
            if written is not None:
                model.save(str(written / path.name))
        except Exception as error:  # noqa: BLE001 - what a file does is what is reported
            told(path, "read", f"{type(error).__name__}: {error}"[:1500])


def told(path: Path, what: str, value: Any) -> None:
    """Prints what a file gave."""
    print(json.dumps(["/".join(path.parts[-2:]), what, value]), flush=True)


def in_process(python: str, way: str, *arguments: str) -> list[Any]:
    """What a way tells in a process of its own."""
    here = [str(_ROOT / "twofold" / "as_tensorflow" / "path"), str(_ROOT)] if way == "Keras on twofold" else []
    environment = {**os.environ, "KERAS_BACKEND": "tensorflow", "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "",
                   "TF_ENABLE_ONEDNN_OPTS": "0", "PYTHONPATH": os.pathsep.join(here)}
    ran = subprocess.run([python if way != "tf.keras" else sys.executable, __file__, "--way", way, *arguments],
                         env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return [[way, *json.loads(line)] for line in ran.stdout.splitlines() if line.startswith("[")]


def _model_of(line: list[Any]) -> str:
    """Of which file of which model a line tells, whoever wrote it."""
    return str(line[1]).rpartition("/")[2]


def held(name: str, what: str, value: Any) -> bool:
    """Whether a line that a way told is as it should be."""
    coarse = COARSE.get(Path(name).name.partition(".")[0], 0.0)
    return not isinstance(value, str) and value <= max(_LOSSES if what == "losses" else _CLOSE, coarse)


def environment_python() -> str:
    """The interpreter of the environment of `make clients`, with Keras in it."""
    from clients.suites import BASE, Places, install
    places = Places(Path.home() / ".cache" / "twofold-clients" / "environment", Path())
    if not places.environment.is_dir():
        import venv
        venv.create(places.environment, with_pip=True)
    install(places, "base", BASE)
    install(places, "keras", ("keras==3.15.1", "h5py>=3.12"))
    return places.python


def main() -> None:
    """Has each way read what the others wrote."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help=f"of models: {', '.join(MODELS)}")
    parser.add_argument("--python", help="the interpreter of an environment")
    parser.add_argument("--way", choices=_WAYS, help=argparse.SUPPRESS)
    parser.add_argument("--do", choices=("write", "read", "exchange"), help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--written", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    names = options.names or list(MODELS)
    if options.way and options.do == "exchange":
        exchange(options.way, options.folder, options.written)
        return
    if options.way:
        {"write": write, "read": read}[options.do](options.way, names, options.folder)
        return
    started, lines = time.monotonic(), []
    python = options.python or environment_python()
    with tempfile.TemporaryDirectory() as place:
        folders = {way: Path(place) / _folder(way) for way in _WAYS}
        again = {way: folder / "again" for way, folder in folders.items()}
        for folder in again.values():
            folder.mkdir(parents=True)
        for way in _WAYS:
            lines += in_process(python, way, "--do", "write", "--folder", str(folders[way]), *names)
            if not options.names:
                lines += in_process(python, way, "--do", "exchange", "--folder", str(_EXCHANGE), "--written",
                                    str(again[way]))
        for way in _WAYS:
            lines += in_process(python, way, "--do", "read", "--folder", place, *names)
            for other in _WAYS if not options.names else ():
                if other != way:
                    lines += in_process(python, way, "--do", "exchange", "--folder", str(again[other]))
    there = {_model_of(line) for line in lines if line[0] == _WAYS[2] and line[1].startswith(_folder(_WAYS[2]))
             and not held(*line[1:])}
    asked = [line for line in lines if _model_of(line) not in there]
    for line in asked:
        if not held(*line[1:]):
            print("DIFFERS", *line, file=sys.stderr)
    print(json.dumps({"client": "files of Keras", "tests_on_tensorflow": len(lines), "passed_there": len(asked),
                      "passed_here": sum(held(*line[1:]) for line in asked),
                      "seconds": round(time.monotonic() - started)}))


if __name__ == "__main__":
    main()
