"""`tf.strings` against TensorFlow 2.21 (`strings_cases.py`), in functions and pipelines, and what is refused."""

import importlib.util
import json
from pathlib import Path

import pytest

import twofold as tf

HERE = Path(__file__).parent
spec = importlib.util.spec_from_file_location("strings_cases", HERE / "strings_cases.py")
cases = importlib.util.module_from_spec(spec)
spec.loader.exec_module(cases)
KNOWN = json.loads((HERE / "data" / "strings.json").read_text())


@pytest.mark.parametrize("name", cases.CASES)
def test_against_tensorflow(name):
    assert cases.plain(cases.CASES[name](tf, tf.strings)) == KNOWN[name]


@pytest.mark.parametrize("name", ["length", "upper", "replace", "substr_each", "join", "reduce_0", "split", "number",
                                  "format"])
def test_in_functions(name):
    assert cases.plain(tf.function(lambda: cases.CASES[name](tf, tf.strings))()) == KNOWN[name]


def test_lines_of_a_file(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("a,1\nb,2.5\n")

    def parse(line):
        name, value = tf.unstack(tf.strings.split(line, ","), num=2)
        return tf.strings.upper(name), tf.strings.to_number(value)
    actual = [(n.numpy(), float(v)) for n, v in tf.data.TextLineDataset(str(path)).map(parse)]
    assert actual == [(b"A", 1.0), (b"B", 2.5)]


def test_as_many_parts_as_are_said():
    @tf.function(input_signature=[tf.TensorSpec([], tf.string)])
    def f(line):
        return tf.unstack(tf.strings.split(line, ","), num=2)
    assert [x.numpy() for x in f("a,b")] == [b"a", b"b"]
    with pytest.raises(tf.errors.InvalidArgumentError):
        f("a,b,c")
    g = tf.function(lambda x: tf.unstack(x, num=2), input_signature=[tf.TensorSpec([None])])
    assert [float(x) for x in g(tf.constant([1.0, 2.0]))] == [1.0, 2.0]
    with pytest.raises(tf.errors.InvalidArgumentError):
        g(tf.constant([1.0, 2.0, 3.0]))


def test_shapes_are_known_where_they_can_be():
    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.string)])
    def f(x):
        assert tf.strings.length(x).shape.as_list() == [None, 3]
        assert tf.strings.reduce_join(x, axis=1).shape.as_list() == [None]
        return tf.strings.join([x, tf.constant(["a", "b", "c"])])
    assert f([["x", "y", "z"]]).numpy().tolist() == [[b"xa", b"yb", b"zc"]]


def test_errors():
    for call, error, text in (
            (lambda: tf.strings.length([1]), tf.errors.InvalidArgumentError, "expected strings"),
            (lambda: tf.strings.length("a", unit="WORD"), ValueError, "unit"),
            (lambda: tf.strings.lower("a", encoding="latin"), ValueError, "encoding"),
            (lambda: tf.strings.regex_replace("a", "(", "b"), tf.errors.InvalidArgumentError, "Invalid pattern"),
            (lambda: tf.strings.substr("abc", 4, 1), tf.errors.InvalidArgumentError, "out of range"),
            (lambda: tf.strings.to_number("x1"), tf.errors.InvalidArgumentError, "convert string"),
            (lambda: tf.strings.to_number("1_0"), tf.errors.InvalidArgumentError, "convert string"),
            (lambda: tf.strings.unicode_decode(b"\xff", "UTF-8", errors="strict"), tf.errors.InvalidArgumentError,
             "Invalid formatting"),
            (lambda: tf.strings.as_string([1], precision=2), ValueError, "for floats"),
            (lambda: tf.strings.as_string([1.0], scientific=True, shortest=True), ValueError, "both"),
            (lambda: tf.strings.format("{}", [1, 2]), ValueError, "placeholder")):
        with pytest.raises(error, match=text):
            call()
