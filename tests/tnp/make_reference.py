"""Writes what TensorFlow gives for the calls of `cases.py`: run it in an environment with TensorFlow.

    python tests/tnp/make_reference.py
"""

from __future__ import annotations

import json
import os

import tensorflow as tf
from cases import DTYPES, MADE, calls, kinds, operands, run

HERE = os.path.dirname(os.path.abspath(__file__))
MODES = {"legacy": {}, "all": {"dtype_conversion_mode": "all"}}
NAMES = ["bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16", "bfloat16",
         "float32", "float64", "complex64", "complex128"]
WEAK = ["1", "1.0", "1j"]


def told(call: str, names: dict[str, object]) -> str:
    """The kinds of a call's results; "!" where it is an error."""
    try:
        return kinds(run(call, {"np": tf.experimental.numpy, **names}))
    except Exception:  # noqa: BLE001 (any error is one)
        return "!"


def weak(name: str) -> object:
    return run(name, {}) if name in WEAK else tf.zeros((), name)


def joins() -> list[str]:
    """For each dtype the dtypes in which it meets the others and Python's numbers."""
    return [" ".join(told("np.result_type(x, y)", {"x": weak(x), "y": weak(y)}) for y in [*NAMES, *WEAK])
            for x in [*NAMES, *WEAK]]


def main() -> None:
    """Ask TensorFlow and write the file."""
    numpy = tf.experimental.numpy
    public = [name for name in dir(numpy) if not name.startswith("_")]
    public += [f"random.{name}" for name in dir(numpy.random) if not name.startswith("_")]
    reference: dict[str, object] = {"public": public, "names": [*NAMES, *WEAK], "joins": {}}
    for mode, settings in {**MODES, "safe": {"dtype_conversion_mode": "safe"}}.items():
        tf.experimental.numpy.experimental_enable_numpy_behavior(**settings)
        reference["joins"][mode] = joins()
        if mode in MODES:
            made = {dtype: {k: tf.constant(v) for k, v in operands(dtype).items()} for dtype in DTYPES}
            reference[mode] = {call: " ".join(told(call, made[dtype]).replace(" ", "_") for dtype in DTYPES)
                               for call in calls()}
            reference[f"{mode} made"] = {call: told(call, {}) for call in MADE}
    with open(os.path.join(HERE, "reference.json"), "w") as file:
        json.dump(reference, file, indent=0)


if __name__ == "__main__":
    main()
