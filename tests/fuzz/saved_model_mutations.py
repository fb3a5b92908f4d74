"""Damaged folders of TensorFlow's: each load, and a call of each function that it gives, ends with results or with a
clear error, within bounds of time and memory.

    python tests/fuzz/saved_model_mutations.py --count 5000 [--seed 0]

Files are changed byte by byte, and as messages of protocol buffers: numbers, texts, whole fields (`damaged.py`).
"""

from __future__ import annotations

import math
import random
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from fuzz import damaged

__all__ = ["changed", "outcome", "seeds"]

_DATA = Path(__file__).resolve().parent.parent / "tensorflow_files" / "data"
_NAMES = ("dense", "control", "tables", "version_1", "text", "mlp", "recurrent", "loops_1", "variables_1")
_FILE = "saved_model.pb"
_BATCH = 100  # folders that one process loads
_SECONDS = 40  # that one of them may take
_MEMORY = 4 << 30  # bytes that a process may take beside what it has when it starts
_DEEP = 12  # messages within one another that are changed

_NUMBERS = (0, 1, 2, 3, 7, 20, 21, 255, 1 << 20, (1 << 31) - 1, 1 << 31, 1 << 40, (1 << 63) - 1, (1 << 64) - 1)
_TEXTS = (b"", b"x", b"Identity", b"While", b"StatefulPartitionedCall", b"Const", b"^x", b"x:output:0", b"../x",
          b"Enter", b"Exit", b"Switch", b"Merge", b"NextIteration", b"LoopCond", b"Assign")


def seeds() -> list[dict[str, bytes]]:
    """The files of some small models, by their paths."""
    models = []
    for name in _NAMES:
        with zipfile.ZipFile(_DATA / f"{name}.zip") as archive:
            models.append({n: archive.read(n) for n in archive.namelist() if not n.endswith(".npz")})
    return models


def changed(models: list[dict[str, bytes]], number: int, seed: int) -> dict[str, bytes]:
    """The changed files of a number."""
    rng = random.Random(seed * 1_000_003 + number)
    files = dict(models[number % len(models)])
    name = _FILE if rng.random() < 0.85 else rng.choice(sorted(files))
    files[name] = _message_changed(files[name], rng) if name == _FILE and rng.random() < 0.75 else (
        damaged.bytes_changed(files[name], rng))
    return files


def _message_changed(data: bytes, rng: random.Random) -> bytes:
    """A file in which fields were changed, somewhere within messages; it still parses."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        data = _field_changed(data, rng, 0)
    return data


def _field_changed(data: bytes, rng: random.Random, depth: int) -> bytes:
    """A message with one field changed: its own, or one of a message within it."""
    parts = _parts(data)
    if not parts:
        return data
    place = rng.randrange(len(parts))
    tag, value = parts[place]
    within = isinstance(value, bytes) and bool(_parts(value))
    if within and depth < _DEEP and rng.random() < 0.9:
        parts[place] = tag, _field_changed(value, rng, depth + 1)  # type: ignore[arg-type]
    elif isinstance(value, int):
        parts[place] = tag, rng.choice((*_NUMBERS, value + 1, max(value - 1, 0)))
    else:
        how = rng.randrange(4)
        if how == 0:
            del parts[place]
        elif how == 1:
            parts.insert(rng.randrange(len(parts) + 1), parts[place])
        elif how == 2:
            texts = [v for _, v in parts if isinstance(v, bytes)]
            parts[place] = tag, rng.choice((*_TEXTS, *texts))
        else:
            other = rng.randrange(len(parts))
            parts[place], parts[other] = parts[other], parts[place]
    return _joined(parts)


def _parts(data: bytes) -> list[tuple[int, int | bytes]]:
    """The fields of a message with their tags; none of what is no message."""
    from twofold._formats.wire import varint
    parts: list[tuple[int, int | bytes]] = []
    at = 0
    try:
        while at < len(data):
            tag, at = varint(data, at)
            kind = tag & 7
            if not tag >> 3 or kind not in (0, 1, 2, 5):
                return []
            if kind == 0:
                value, at = varint(data, at)
                parts.append((tag, value))
                continue
            size, at = varint(data, at) if kind == 2 else (8 if kind == 1 else 4, at)
            if at + size > len(data):
                return []
            parts.append((tag, bytes(data[at:at + size])))
            at += size
    except (IndexError, ValueError):
        return []
    return parts


def _joined(parts: list[tuple[int, int | bytes]]) -> bytes:
    from twofold._formats.wire import number
    out = bytearray()
    for tag, value in parts:
        out += number(tag)
        if isinstance(value, int):
            out += number(value)
        else:
            out += (number(len(value)) if tag & 7 == 2 else b"") + value
    return bytes(out)


def outcome(folder: str) -> str:
    """The class of error that loading a folder, or calls of its functions, end with, and "model" if there is none; a
    text that begins with "wrong" for what must not be."""
    import twofold as tf
    try:
        model = tf.saved_model.load(folder)
    except tf.errors.OpError as e:
        return type(e).__name__ if str(e).strip() else "wrong: an error without a text"
    except Exception as e:  # noqa: BLE001 (a report of what it is)
        return f"wrong: load: {type(e).__module__}.{type(e).__name__}: {str(e)[:200]}"
    ends = [(name, _called(lambda name=name: _given(model.signatures[name]), tf)) for name in list(model.signatures)]
    for name, value in list(vars(model).items()):
        for graph in getattr(getattr(value, "_restored", None), "_graphs", ()):
            ends.append((name, _called(lambda value=value, graph=graph: (value, graph.form), tf)))
    return next((f"{end} of {name}" for name, end in ends if end.startswith("wrong")), "model")


def _given(signature: Any) -> tuple[Any, Any]:
    """A signature, and the specs of its arguments."""
    return signature, signature.structured_input_signature


def _called(callee: Any, tf: Any) -> str:
    """How a call with ones, or with words, ends."""
    try:
        call, form = callee()
        args, kwargs = tf.nest.map_structure(_value, form)
        call(*args, **kwargs)
    except (tf.errors.OpError, ValueError) as e:  # no graph takes a call: ValueError, as in TensorFlow
        return type(e).__name__ if str(e).strip() else "wrong: an error without a text"
    except Exception as e:  # noqa: BLE001 (a report of what it is)
        if isinstance(e, TypeError) and "Binding inputs" in str(e):  # the parameters are others than the graph's
            return "TypeError"
        return f"wrong: call: {type(e).__module__}.{type(e).__name__}: {str(e)[:200]}"
    return "model"


def _value(spec: Any) -> Any:
    import twofold as tf
    if not isinstance(spec, tf.TensorSpec):
        return spec
    shape = [2 if d is None else d for d in spec.shape.as_list()] if spec.shape.rank is not None else [2]
    if math.prod(shape) > 1 << 16:
        raise ValueError("it takes a large tensor")
    return tf.constant(np.full(shape, b"x", object) if spec.dtype is tf.string else np.ones(shape, spec.dtype.np))


def written(files: dict[str, bytes], folder: Path) -> str:
    """A folder with these files."""
    shutil.rmtree(folder, ignore_errors=True)
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return str(folder)


def _child(first: int, count: int, seed: int) -> None:
    """Load some folders, and print a line for each."""
    import warnings

    warnings.simplefilter("ignore")
    models = seeds()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "model"
        outcome(written(models[0], folder))
        damaged.watched(lambda number: outcome(written(changed(models, number, seed), folder)), first, count, _SECONDS,
                        _MEMORY)


if __name__ == "__main__":
    sys.exit(damaged.main(__file__, __doc__, 5_000, _BATCH, _child))
