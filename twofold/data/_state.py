"""States and elements as bytes: JSON for the structure, raw arrays after it. Nothing in it is code.

    8 bytes   length of the JSON text
    JSON      {"tree": ..., "arrays": [[dtype, shape], ...]}; an array in the tree is {"array": its number}
    arrays    their bytes, one after another, in C order; an array of strings is in the tree itself
"""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np

import twofold as tf
from twofold._front import iteration as engine

from ._listed import Listed
from ._structure import Form
from ._value import dataset_from, is_dataset

__all__ = ["decoded", "encoded"]


def encoded(value: Any) -> bytes:
    """A state or an item as bytes.

    Raises:
        TypeError: it holds a dataset, or anything else that has no such form.
    """
    arrays: list[np.ndarray] = []
    tree = _tree(value, arrays)
    head = json.dumps({"tree": tree, "arrays": [[engine.dtype_of(a).name, list(a.shape)] for a in arrays]},
                      separators=(",", ":")).encode()
    return b"".join([len(head).to_bytes(8, "little"), head, *[a.tobytes() for a in arrays]])


def _tree(value: Any, arrays: list[np.ndarray]) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.ndarray) and value.dtype == object:
        return {"strings": [_text(v) for v in value.ravel().tolist()], "shape": list(value.shape)}
    if isinstance(value, np.ndarray):
        arrays.append(value)
        return {"array": len(arrays) - 1}
    if isinstance(value, bytes):
        return {"bytes": _text(value)}
    if isinstance(value, tuple):
        return {"tuple": [_tree(v, arrays) for v in value]}
    if isinstance(value, (list, range)):
        return [_tree(v, arrays) for v in value]
    if isinstance(value, dict):
        return {"dict": {key: _tree(v, arrays) for key, v in value.items()}}
    if is_dataset(value) and isinstance(value._node, Listed) and isinstance(value.element_spec, tf.TensorSpec):
        spec = value.element_spec
        shape = None if spec.shape.rank is None else list(spec.shape)
        return {"window": _tree(value._node.items.items, arrays), "dtype": spec.dtype.name, "shape": shape}
    if is_dataset(value):
        raise TypeError("an iterator cannot be saved while it holds datasets as elements: "
                        "turn them into elements with flat_map before shuffle, cache or prefetch.")
    raise TypeError(f"a state cannot hold {type(value).__name__} {value!r}.")


def _text(value: bytes) -> str:
    return base64.b64encode(value).decode("ascii")


def decoded(data: bytes, name: str = "a saved state") -> Any:
    """What `encoded` made bytes of.

    Args:
        data: the bytes.
        name: the file that they are from, for errors.
    Raises:
        DataLossError: it is damaged.
    """
    try:
        start = 8 + int.from_bytes(data[:8], "little")
        head = json.loads(data[8:start])
        arrays = []
        for name, shape in head["arrays"]:
            dtype = np.dtype(tf.as_dtype(name).as_numpy_dtype)
            count = int(np.prod(shape, dtype=np.int64))
            arrays.append(np.frombuffer(data, dtype, count, start).reshape(shape).copy())
            start += count * dtype.itemsize
        return _value(head["tree"], arrays)
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, OverflowError, RecursionError,
            MemoryError) as e:
        raise tf.errors.DataLossError(None, None, f"{name}: a saved state or element cannot be read: {e}") from e


def _value(tree: Any, arrays: list[np.ndarray]) -> Any:
    if isinstance(tree, list):
        return [_value(t, arrays) for t in tree]
    if not isinstance(tree, dict):
        return tree
    if "array" in tree:
        return arrays[tree["array"]]
    if "strings" in tree:
        made = np.empty(len(tree["strings"]), object)
        made[:] = [base64.b64decode(t) for t in tree["strings"]]
        return made.reshape(tree["shape"])
    if "bytes" in tree:
        return base64.b64decode(tree["bytes"])
    if "tuple" in tree:
        return tuple([_value(t, arrays) for t in tree["tuple"]])
    if "window" in tree:
        spec = tf.TensorSpec(tree["shape"], tree["dtype"])
        return dataset_from(Listed(_value(tree["window"], arrays), Form(spec)))
    return {key: _value(t, arrays) for key, t in tree["dict"].items()}
