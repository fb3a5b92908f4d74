"""Comparison and addition of string tensors, which are operators; arithmetic else refuses them."""

from __future__ import annotations

import numpy as np
from ops.case import Bad, Case

import twofold as tf
from twofold.ir import dtypes as dt

CASES = [
    Case("string_equal", "equal", [[(3, 4), (4,)], [(), (2,)], [(0,), (0,)], [(2, 1, 2), (3, 1)]],
         lambda a, b: (a == b).astype(bool), dt.string, grad=False),
    Case("string_equal", "not_equal", [(3, 4), (3, 1)], lambda a, b: (a != b).astype(bool), dt.string, grad=False,
         id="string_equal-not"),
    Case("string_add", "add", [[(3, 4), (4,)], [(), (2,)], [(0,), (0,)], [(2, 1, 2), (3, 1)]], np.add, dt.string,
         grad=False),
    Case("string_add", lambda x: ("<" + x) + b">", [[(3,)], [()]], lambda x: b"<" + x + b">", dt.string, grad=False,
         id="string_add-python"),
]

ERRORS = [
    Bad("subtract: strings", lambda: tf.constant("a") - "b", TypeError, "subtract(.|\n)*string"),
    Bad("add: string and number", lambda: tf.constant("a") + tf.constant(1), TypeError, "string_add(.|\n)*int32"),
    Bad("equal: string and number", lambda: tf.equal(tf.constant(["a"]), tf.constant([1])), TypeError,
        "string_equal: y has dtype int32; expected string"),
    Bad("equal: shapes of strings", lambda: tf.equal(tf.constant(["a", "b"]), tf.constant(["a", "b", "c"])),
        tf.errors.InvalidArgumentError, r"string\[2\](.|\n)*string\[3\]"),
]
