"""Functions of the library that Python runs: saved by name, and called again in another process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import twofold as tf
from twofold import _hosted

TEXTS = tf.constant(["ab 12", "", "x3"])
PIXELS = tf.cast(tf.reshape(tf.range(48), [4, 4, 3]), tf.uint8)
PNG = tf.io.encode_png(PIXELS)
JPEG = tf.io.encode_jpeg(PIXELS, quality=90)
strings = tf.strings

# Functions by the name of what they call first; and their arguments.
CASES: dict[str, tuple[Any, tuple[tf.Tensor, ...]]] = {
    "length": (lambda x: strings.length(x, unit="UTF8_CHAR"), (TEXTS,)), "lower": (strings.lower, (TEXTS,)),
    "upper": (lambda x: strings.upper(x, "utf-8"), (TEXTS,)), "strip": (strings.strip, (TEXTS,)),
    "regex_replace": (lambda x: strings.regex_replace(x, "([a-z]+)", r"<\1>", replace_global=False), (TEXTS,)),
    "regex_full_match": (lambda x, p: strings.regex_full_match(x, p), (TEXTS, tf.constant("[a-z].*"))),
    "substr": (lambda x, n: strings.substr(x, 0, n), (TEXTS, tf.constant([2, 0, 1]))),
    "join": (lambda x, y: strings.join([x, "-", y], separator=" "), (TEXTS, tf.constant("z"))),
    "reduce_join": (lambda x: strings.reduce_join(x, separator=","), (TEXTS,)),
    "split": (lambda x: strings.split(x, sep=" "), (TEXTS[0],)), "bytes_split": (strings.bytes_split, (TEXTS[0],)),
    "unicode_decode": (lambda x: strings.unicode_decode(x, "UTF-8"), (TEXTS[0],)),
    "unicode_split": (lambda x: strings.unicode_split(x, "UTF-8"), (TEXTS[0],)),
    "unicode_encode": (lambda x: strings.unicode_encode(x, "UTF-8"), (tf.constant([104, 105]),)),
    "to_number": (lambda x: strings.to_number(x, tf.int64), (tf.constant(["1", "22"]),)),
    "as_string": (lambda x: strings.as_string(x, precision=2), (tf.constant([1.5, 2.25]),)),
    "format": (lambda x, y: strings.format("{} and {}", [x, y]), (tf.constant([1, 2]), tf.constant(3.5))),
    "serialize_tensor": (tf.io.serialize_tensor, (tf.constant([[1.0, 2.0]]),)),
    "parse_tensor": (lambda x: tf.ensure_shape(tf.io.parse_tensor(x, tf.float32), [1, 2]),
                     (tf.io.serialize_tensor([[1.0, 2.0]]),)),
    "decode_raw": (lambda x: tf.io.decode_raw(x, tf.uint8), (tf.constant("abc"),)),
    "decode_png": (lambda x: tf.io.decode_png(x, channels=3), (PNG,)),
    "decode_jpeg": (lambda x: tf.io.decode_jpeg(x), (JPEG,)),
    "decode_image": (lambda x: tf.io.decode_image(x, channels=3, expand_animations=False), (PNG,)),
    "encode_png": (tf.io.encode_png, (PIXELS,)), "encode_jpeg": (lambda x: tf.io.encode_jpeg(x, quality=80), (PIXELS,)),
}


@pytest.mark.parametrize("name", CASES)
def test_calls_are_made_again(name: str, tmp_path: Path) -> None:
    fn, args = CASES[name]
    module = tf.Module()
    module.f = tf.function(fn, input_signature=[tf.TensorSpec(x.shape, x.dtype) for x in args])
    expected = fn(*args)
    tf.saved_model.save(module, tmp_path)
    assert f'function: "{name}"' in "".join(p.read_text() for p in tmp_path.glob("data-*/graphs/*.txt"))
    loaded = tf.saved_model.load(tmp_path)
    for found in (module.f(*args), loaded.f(*args)):
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected, strict=True)
    tf.saved_model.save(loaded, tmp_path / "again")
    np.testing.assert_array_equal(tf.saved_model.load(tmp_path / "again").f(*args), expected, strict=True)


def test_each_hosted_function_that_has_no_file_is_here() -> None:
    rest = {"read_file", "matching_files", "decode_bmp", "decode_gif", "decode_and_crop_jpeg"}
    assert set(_hosted._functions) - rest == set(CASES)


def test_files_are_read_in_another_process(tmp_path: Path) -> None:
    """A pipeline from the name of a file to pixels, in a process that has not this module."""
    tf.io.write_file(str(tmp_path / "a.png"), PNG)
    module = tf.Module()
    module.f = tf.function(lambda name: tf.image.decode_png(tf.io.read_file(name), channels=3),
                           input_signature=[tf.TensorSpec([], tf.string)])
    module.g = tf.function(tf.io.matching_files, input_signature=[tf.TensorSpec([], tf.string)])
    tf.saved_model.save(module, tmp_path / "m")
    script = """
import json, sys
import twofold as tf
loaded = tf.saved_model.load(sys.argv[1] + "/m")
print(json.dumps([loaded.f(sys.argv[1] + "/a.png").numpy().tolist(), len(loaded.g(sys.argv[1] + "/*.png"))]))
try:
    loaded.f("/none/at/all")
except tf.errors.NotFoundError as e:
    print("/none/at/all" in str(e))
"""
    done = subprocess.run([sys.executable, "-c", script, tmp_path], capture_output=True, text=True, check=True)
    pixels, told = done.stdout.splitlines()
    assert json.loads(pixels) == [PIXELS.numpy().tolist(), 1] and told == "True"


def test_what_is_the_users_is_still_refused(tmp_path: Path) -> None:
    module = tf.Module()
    module.f = tf.function(lambda x: tf.numpy_function(lambda a: a, [x], tf.TensorSpec([], tf.float32)),
                           input_signature=[tf.TensorSpec([])])
    with pytest.raises(tf.errors.UnimplementedError, match="cannot be saved"):
        tf.saved_model.save(module, tmp_path)


@pytest.mark.parametrize(("old", "new"), [
    ('function: "lower"', 'function: "system"'), ('function: "lower"', "function: 3"), ("tensor", "tensors"),
    ("tuple", "list")])
def test_calls_that_were_changed(old: str, new: str) -> None:
    from twofold.saved_model import graphs
    fn = tf.function(strings.lower, input_signature=[tf.TensorSpec([], tf.string)]).get_concrete_function()
    text = graphs.graph_to_text(fn._traced.graph, graphs.Sources())
    graphs.text_to_graph(text, 1, "x")
    changed = text.replace(old, new)
    assert changed != text
    with pytest.raises(ValueError):
        graphs.text_to_graph(changed, 1, "x")
