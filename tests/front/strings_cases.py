"""Calls of `tf.strings` that TensorFlow has made and twofold makes: both run what is here.

`python tests/front/strings_cases.py FILE`, where TensorFlow 2.21 is installed, writes what TensorFlow gives; the tests
compare with `data/strings.json`, which was written so.
"""

import json
import sys

TEXTS = [["Hello World", " ab\t"], ["été 12", "x9y"]]
CASES = {
    "length": lambda tf, s: s.length(TEXTS), "characters": lambda tf, s: s.length(TEXTS, unit="UTF8_CHAR"),
    "lower": lambda tf, s: s.lower(TEXTS), "upper": lambda tf, s: s.upper(TEXTS),
    "upper_all": lambda tf, s: s.upper(TEXTS, encoding="utf-8"), "strip": lambda tf, s: s.strip(TEXTS),
    "replace": lambda tf, s: s.regex_replace(TEXTS, "([a-z])([0-9])", r"\2\1"),
    "replace_one": lambda tf, s: s.regex_replace(TEXTS, "l", "L", replace_global=False),
    "match": lambda tf, s: s.regex_full_match(TEXTS, ".*[0-9].*"), "substr": lambda tf, s: s.substr(TEXTS, 1, 3),
    "substr_each": lambda tf, s: s.substr(TEXTS, [[1, 0], [-2, -1]], [[2, 2], [9, 9]], unit="UTF8_CHAR"),
    "join": lambda tf, s: s.join([TEXTS, "!"], separator="-"), "reduce": lambda tf, s: s.reduce_join(TEXTS),
    "reduce_0": lambda tf, s: s.reduce_join(TEXTS, axis=0, separator=","),
    "reduce_kept": lambda tf, s: s.reduce_join(TEXTS, 1, keepdims=True), "split": lambda tf, s: s.split("a,b,,c", ","),
    "split_space": lambda tf, s: s.split(" a b  c "), "split_once": lambda tf, s: s.split("a b c", maxsplit=1),
    "bytes": lambda tf, s: s.bytes_split("abc"), "decode": lambda tf, s: s.unicode_decode("hé\u20ac", "UTF-8"),
    "decode_bad": lambda tf, s: s.unicode_decode(b"a\xffb", "UTF-8"),
    "decode_rest": lambda tf, s: s.unicode_decode(b"a\xffb", "UTF-8", errors="ignore"),
    "unicode_split": lambda tf, s: s.unicode_split("hé\u20ac", "UTF-8"),
    "encode": lambda tf, s: s.unicode_encode([[104, 233], [8364, 65]], "UTF-8"),
    "number": lambda tf, s: s.to_number(["1", "-2.5e3", " 7 "]),
    "number_64": lambda tf, s: s.to_number(["12", "-3"], tf.int64), "as": lambda tf, s: s.as_string([1.5, -2.0]),
    "as_scientific": lambda tf, s: s.as_string([1.5e10, 2.25], scientific=True, precision=2),
    "as_shortest": lambda tf, s: s.as_string([0.0001, 12345678.0], shortest=True),
    "as_bool": lambda tf, s: s.as_string([True, False]),
    "as_filled": lambda tf, s: s.as_string([5, -12], width=5, fill="0"),
    "as_wide": lambda tf, s: s.as_string([3.14159], precision=2, width=8),
    "format": lambda tf, s: s.format("a {} b {}", [tf.constant([1, 2]), tf.constant(2.5)]),
    "format_long": lambda tf, s: s.format("{}", tf.range(10)), "format_text": lambda tf, s: s.format("s {}", "t"),
}


def plain(value):
    """A tensor as what JSON has: dtype, shape, and the elements, with bytes as text of the same codes."""
    flat = value.numpy().ravel().tolist() if value.shape.rank else [value.numpy()]
    return [value.dtype.name, value.shape.as_list(), [x.decode("latin-1") if isinstance(x, bytes) else x for x in flat]]


if __name__ == "__main__":
    import tensorflow

    actual = {name: plain(case(tensorflow, tensorflow.strings)) for name, case in CASES.items()}
    with open(sys.argv[1], "w") as file:
        json.dump(actual, file, indent=1)
        file.write("\n")
