"""The values of the fuzzer of bad values: what no argument should be, and what arguments of a name usually are."""

from __future__ import annotations

import datetime
import decimal
import fractions
import itertools
from typing import Any

import numpy as np

import twofold as tf

__all__ = ["BAD", "ENDLESS", "KINDS", "Boom", "make", "valid"]


class Boom(Exception):
    """What a user's own function raises: it must come out as it is."""


def boom(*args: Any, **kwargs: Any) -> Any:
    """A user's function that fails."""
    raise Boom("the user's own error")


def looped() -> list[Any]:
    """A list that contains itself."""
    result: list[Any] = []
    result.append(result)
    return result


def looped_dict() -> dict[str, Any]:
    """A dict that contains itself."""
    result: dict[str, Any] = {}
    result["a"] = result
    return result


def nested(depth: int) -> list[Any]:
    """Lists in lists."""
    result: list[Any] = [1.0]
    for _ in range(depth):
        result = [result]
    return result


class Hostile:
    """An object whose special methods all fail."""

    def __len__(self) -> int:
        raise Boom("len")

    def __iter__(self) -> Any:
        raise Boom("iter")

    def __index__(self) -> int:
        raise Boom("index")

    def __float__(self) -> float:
        raise Boom("float")

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise Boom("array")


class Unending:
    """A sequence as Python had them first: without a length, and with an item of every number."""

    __getitem__ = int  # not the user's own code, of which a caller might wait for the end


# What has items for ever, or more than any memory holds.
ENDLESS: tuple[str, ...] = (
    "range(2**40)", "itertools.count()", "iter(int, 1)", "itertools.repeat('a')", "itertools.repeat(tf.ones([2]))",
    "Unending()",
)
BAD: tuple[str, ...] = (
    "None", "True", "False", "0", "1", "-1", "2", "3", "7", "-9", "2**31", "-2**31", "2**62", "2**63", "-2**63 - 1",
    "10**400", "0.5", "-1.5", "1e300", "float('nan')", "float('inf')", "-float('inf')", "1j", "''", "'abc'", "'same'",
    "'float99'", "'a/b'", "'\\udc80'", "'\\0'", "b'x\\xff'", "()", "[]", "[[]]", "{}", "set()", "{'a': 1}", "{1: 2}",
    "object()", "Hostile()", "len", "int", "lambda *a, **k: None", "lambda *a, **k: 'text'", "boom", "np.sin",
    "np.array(0)", "np.array('a')", "np.array([None, 1], object)", "np.zeros(0)", "np.zeros((0, 3))", "np.ones(2)",
    "np.ones((2, 3, 4))", "np.array([1, 2**40])", "np.float32(2.5)", "np.int64(-3)", "np.datetime64('2020-01-01')",
    "np.zeros((1,) * 20)", "tf.constant(0)", "tf.constant(1)", "tf.constant(-1)", "tf.constant(2.5)",
    "tf.constant(5, tf.int64)", "tf.constant(2**62)", "tf.constant(True)", "tf.constant([True, False])",
    "tf.constant('s')", "tf.constant(['s', 't'])", "tf.constant(1 + 2j)", "tf.constant([5, -7])",
    "tf.constant([1, 2, 3], tf.uint8)", "tf.constant(float('nan'))", "tf.zeros([0])", "tf.zeros([2, 0])",
    "tf.zeros([3])", "tf.ones([2, 3])", "tf.zeros([2, 3, 4, 5])", "tf.zeros([1, 1, 1, 1, 1, 1, 1])",
    "tf.zeros([3, 3], tf.bfloat16)", "tf.zeros([2, 2], tf.complex64)", "tf.Variable(1.0)", "tf.Variable([1, 2])",
    "[0, 5]", "[0, 0]", "[1, -1]", "[-9]", "[2**40, 2**40]", "[[1, 2], [3]]", "['a', 1]", "[None]", "[1, None]",
    "[None, None]", "[1.5, 2]", "[True]", "(1, (2, 3))", "[[0, 0]]", "[[1, 1], [2, 2]]", "[tf.zeros([2]), 'a']",
    "[tf.ones([2]), tf.ones([3])]", "range(3)", "iter([1, 2])", "(i for i in (1, 2))", "looped()",
    "looped_dict()", "nested(100)", "nested(5000)", "tf.float32", "tf.string", "tf.complex64", "tf.bool",
    "np.float64", "tf.TensorSpec([2], tf.float32)", "tf.TensorShape([2, None])", "tf.TensorShape(None)",
    "decimal.Decimal('1.5')", "fractions.Fraction(1, 3)", "datetime.date(2020, 1, 1)", "slice(None)", "slice(1, 'a')",
    "...", "type", "Exception('an object')", "tf", "tf.data.Dataset.range(2)", "tf.keras.Input([3])",
    "tf.keras.layers.Dense(2)", "tf.random.Generator.from_seed(1)", "'a' * 100000", "memoryview(b'abc')",
    *ENDLESS,
)
_NAMES: dict[str, Any] = {"tf": tf, "np": np, "decimal": decimal, "fractions": fractions, "datetime": datetime,
                          "itertools": itertools, "boom": boom, "looped": looped, "looped_dict": looped_dict,
                          "nested": nested, "Hostile": Hostile, "Unending": Unending}
_CODE = {text: compile(text, "<bad>", "eval") for text in BAD}


def make(text: str) -> Any:
    """A fresh value of the table."""
    return eval(_CODE[text], dict(_NAMES))  # noqa: S307 (the texts are those above)


# What arguments may be where no example says: tried in turn.
KINDS: tuple[str, ...] = ("float", "integer", "image", "text", "vector", "list", "object")
_BY_KIND: dict[str, Any] = {
    "float": lambda: tf.constant([[1.0, 2.0], [3.0, 5.0]]), "integer": lambda: tf.constant([1, 0]),
    "image": lambda: tf.ones([1, 4, 4, 3]), "text": lambda: "text", "vector": lambda: tf.constant([1.0, 2.0]),
    "list": lambda: [tf.constant(1.0), tf.constant(2.0)], "object": lambda: 3,
}
VALID: dict[str, Any] = {
    "axis": lambda: 0, "num_classes": lambda: 2, "depth": lambda: 3, "seed": lambda: (1, 2),
    "dtype": lambda: tf.float32,
    "fn": lambda: tf.identity, "func": lambda: tf.identity, "function": lambda: tf.identity, "image": lambda:
    tf.ones([4, 4, 3]), "images": lambda: tf.ones([1, 4, 4, 3]), "size": lambda: [2, 2], "filename": lambda: "file",
    "path": lambda: "file", "filepath": lambda: "file.keras", "k": lambda: 1, "n": lambda: 2, "num": lambda: 2,
    "key": lambda: 0,
    "index": lambda: 0, "shape": lambda: [2, 2], "delta": lambda: 0.1, "lower": lambda: 0.5, "upper": lambda: 1.5,
    "max_delta": lambda: 0.2,
    "factor": lambda: 0.5, "learning_rate": lambda: 0.1, "units": lambda: 2, "batch_size": lambda: 2,
    "global_step": lambda: 3, "decay_steps": lambda: 10, "dataset": lambda: tf.data.Dataset.range(4),
    "ref": lambda: tf.Variable([1.0, 2.0]), "indices": lambda: [0, 1], "window_length": lambda: 8, "crop_size": lambda:
    [2, 2], "condition": lambda: True, "data": lambda: [tf.constant(1.0)], "input_shape": lambda: (None, 4, 4, 3),
}


def valid(parameter: str, kind: int) -> Any:
    """A value for a parameter of this name; for names that say nothing, one of the kind."""
    maker = VALID.get(parameter, _BY_KIND[KINDS[kind]])
    return maker()
