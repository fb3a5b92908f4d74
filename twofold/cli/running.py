"""`twofold run DIR --input x=FILE.npy`: one call of a function, its results printed or written to files."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from .common import add_model, amount, say, say_json
from .models import arrays_for, choose, read, shape_text

__all__ = ["add", "run"]

_LONGEST = 100  # letters of a file's name
_SHOWN = 60  # elements up to which an array is printed in full


def add(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    add_model(parser)
    parser.add_argument("--input", metavar="NAME=FILE.npy", action="append", default=[],
                        help="the array of an input, also as NAME=FILE.npz[ARRAY]; may be repeated")
    parser.add_argument("--output", metavar="FOLDER", help="write each result there as NAME.npy, and print none")


def run(args: argparse.Namespace) -> None:
    """Calls the function once."""
    model = read(args.dir)
    entry = choose(model, args.signature)
    arrays = arrays_for(entry, args.input)
    import twofold as tf

    results = entry.call(model)(*[tf.constant(a) for a in arrays])
    named = [(name, t.numpy()) for (name, _), t in zip(entry.outputs, results, strict=True)]
    written = {} if args.output is None else _write(Path(args.output), named)
    if args.json:
        say_json({"function": entry.name, "outputs": {name: {
            "dtype": _dtype(a), "shape": list(np.shape(a)),
            **({"path": str(written[name])} if name in written else {"values": np.asarray(a).tolist()})}
            for name, a in named}})
        return
    for name, array in named:
        array = np.asarray(array)
        if name in written:
            say(f"{name}: {_dtype(array)}{shape_text(array.shape)} -> {written[name]} "
                f"({amount(written[name].stat().st_size)})")
        else:
            say(f"{name}: {_dtype(array)}{shape_text(array.shape)}",
                np.array2string(array, threshold=_SHOWN, max_line_width=100))


def _write(folder: Path, named: list[tuple[str, np.ndarray]]) -> dict[str, Path]:
    folder.mkdir(parents=True, exist_ok=True)
    written: dict[str, Path] = {}
    for name, array in named:
        safe = "".join(c if c.isalnum() or c in "._-" else "_" for c in name).lstrip(".")[:_LONGEST] or "output"
        path, number = folder / f"{safe}.npy", 1
        while path in written.values():
            path, number = folder / f"{safe}-{number}.npy", number + 1
        array = np.asarray(array)
        np.save(path, array.astype(bytes) if array.dtype.kind == "O" else array, allow_pickle=False)
        written[name] = path
    return written


def _dtype(array: np.ndarray) -> str:
    dtype = np.asarray(array).dtype
    return "string" if dtype.kind == "O" else dtype.name
