"""Writes `data/ops.npz`: what Keras 3 gives for the calls of `ops_cases.py` and `ops_shape_cases.py`.

Run it with a Python that has TensorFlow and Keras 3: `python tests/keras/make_ops_reference.py`. The tests read what it
wrote and need neither.
"""

from __future__ import annotations

import importlib
import json
import pathlib
import sys
import types

import keras
import numpy as np

HERE = pathlib.Path(__file__).resolve().parent


def cases_module(name):
    """A module of cases, in a package of another name than Keras's."""
    package = sys.modules.setdefault("cases", types.ModuleType("cases"))
    package.__path__ = [str(HERE)]
    return importlib.import_module(f"cases.{name}")


def given(value):
    if type(value).__name__ == "Half":
        return keras.ops.cast(value.values, "bfloat16")
    if isinstance(value, np.ndarray):
        return keras.ops.convert_to_tensor(value)
    if isinstance(value, list):
        return [given(v) for v in value]
    return tuple(given(v) for v in value) if isinstance(value, tuple) else value


def flat(value):
    return [x for v in value for x in flat(v)] if isinstance(value, (list, tuple)) else [value]


def main():
    cases, more = cases_module("ops_cases"), cases_module("ops_shape_cases")
    values, kinds, refused = [], {}, []
    for case in [*cases.dtype_cases(), *more.setting_cases()]:
        name, args, kwargs = case
        key = cases.key(case)
        if key in kinds:
            continue
        function = keras.ops
        for part in name.split("."):
            function = getattr(function, part)
        try:
            found = flat(function(*[given(a) for a in args], **{k: v if isinstance(v, (tuple, list)) else given(v)
                                                                 for k, v in kwargs.items()}))
        except Exception as error:  # noqa: BLE001 - Keras with TensorFlow does not have it for these dtypes
            refused.append((name, cases.described((args, kwargs))[:60], str(error)[:60].replace("\n", " ")))
            continue
        kinds[key] = []
        for x in found:
            kind = keras.backend.standardize_dtype(x.dtype) if hasattr(x, "dtype") else type(x).__name__
            array = np.asarray(keras.ops.cast(x, "float32") if kind == "bfloat16" else x)
            kinds[key].append([kind, list(array.shape)])
            parts = [array.real, array.imag] if np.iscomplexobj(array) else [array]
            values += [part.astype(np.float64).ravel() for part in parts]
    np.savez_compressed(HERE / "data" / "ops.npz", kinds=np.array(json.dumps(kinds)), values=np.concatenate(values))
    for line in refused:
        print("left out:", *line)


if __name__ == "__main__":
    main()
