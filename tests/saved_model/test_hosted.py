"""Functions of the library that Python runs: saved by name, and called again in another process."""

from __future__ import annotations

import ast
import importlib
import json
import pickle
import subprocess
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from house.tree import ROOT
from quick.start import python

import twofold as tf
from twofold._front import hosted as _hosted
from twofold.onnx_files import words

TEXTS = tf.constant(["ab 12", "", "x3"])
PIXELS = tf.cast(tf.reshape(tf.range(48), [4, 4, 3]), tf.uint8)
PNG = tf.io.encode_png(PIXELS)
JPEG = tf.io.encode_jpeg(PIXELS, quality=90)
strings = tf.strings
BOXES = tf.constant([[0.0, 0.0, 1.0, 1.0], [0.0, 0.1, 1.0, 1.1], [2.0, 2.0, 3.0, 3.0]])
LENGTH = tf.constant(6)
WAV = tf.audio.encode_wav([[0.5], [-0.25]], 8000)


def _feature(**values: Any) -> tf.train.Feature:
    (kind, value), = values.items()
    lists = {"bytes_list": tf.train.BytesList, "float_list": tf.train.FloatList, "int64_list": tf.train.Int64List}
    return tf.train.Feature(**{kind: lists[kind](value=value)})


EXAMPLE = tf.train.Example(features=tf.train.Features(feature={
    "x": _feature(float_list=[1.0, 2.5]), "y": _feature(int64_list=[7, 8, 9])})).SerializeToString()
STEPS = tf.train.SequenceExample(
    context=tf.train.Features(feature={"x": _feature(float_list=[1.0, 2.5])}),
    feature_lists=tf.train.FeatureLists(feature_list={"steps": tf.train.FeatureList(feature=[
        _feature(int64_list=[1]), _feature(int64_list=[2])])})).SerializeToString()
FEATURES = {
    "x": tf.io.FixedLenFeature([2], tf.float32), "y": tf.io.FixedLenSequenceFeature([], "int64", True, -1),
    "none": tf.io.FixedLenFeature([2, 1], tf.string, [[b"a"], [b"\xff"]]),
    "nan": tf.io.FixedLenFeature([3], tf.float32, np.array(np.nan, np.float32)),
    "no steps": tf.io.FixedLenSequenceFeature([2], tf.float32, allow_missing=True)}

# Functions by the name of what they call first; and their arguments.
CASES: dict[str, tuple[Any, tuple[tf.Tensor, ...]]] = {
    "parsed_record": (lambda x: tf.io.parse_single_example(x, FEATURES), (tf.constant(EXAMPLE),)),
    "parsed_records": (lambda x: tf.io.parse_example(x, FEATURES), (tf.constant([EXAMPLE] * 2),)),
    "parsed_lists": (lambda x: tf.io.parse_example(x, {"y": tf.io.RaggedFeature(tf.int64)})["y"].to_tensor(),
                     (tf.constant([EXAMPLE] * 2),)),
    "parsed_sequence": (lambda x: tf.io.parse_single_sequence_example(
        x, {"x": FEATURES["x"]}, {"steps": tf.io.FixedLenSequenceFeature([], tf.int64)}), (tf.constant(STEPS),)),
    "parsed_sequences": (lambda x: tf.io.parse_sequence_example(
        x, {"x": FEATURES["x"]}, {"steps": tf.io.FixedLenSequenceFeature([], tf.int64)}), (tf.constant([STEPS] * 2),)),
    "extract_jpeg_shape": (lambda x: tf.io.extract_jpeg_shape(x, tf.int64), (JPEG,)),
    "jpeg_of_quality": (lambda x, q: tf.image.adjust_jpeg_quality(x, q), (PIXELS, tf.constant(20))),
    "chosen_boxes": (lambda b, s: tf.image.non_max_suppression(b, s, 3), (BOXES, tf.constant([0.9, 0.8, 0.7]))),
    "edits": (lambda x: tf.edit_distance(tf.sparse.from_dense(x), tf.sparse.from_dense(x[:, ::-1])), (
        tf.constant([[1, 2, 3]]),)),
    "crossed_rows": (lambda x: tf.ragged.cross([tf.RaggedTensor.from_tensor(x), [[7], [8]]]).flat_values, (
        tf.constant([["a", "b"], ["c", "d"]]),)),
    "rising_runs": (lambda x: tf.nn.isotonic_regression(x).segments, (tf.constant([3.0, 1.0, 2.0]),)),
    "kept_boxes": (lambda b, s: tf.image.non_max_suppression_with_scores(b, s, 3)[0], (
        BOXES, tf.constant([0.9, 0.8, 0.7]))),
    "combined_boxes": (lambda b: tf.image.combined_non_max_suppression(
        b[tf.newaxis, :, tf.newaxis], tf.ones([1, 3, 1]), 2, 2)[0], (BOXES,)),
    "distorted_box": (lambda b: tf.image.stateless_sample_distorted_bounding_box(
        [8, 8, 3], b[tf.newaxis], [1, 2])[2], (BOXES,)),
    "beam_paths": (lambda x: tf.keras.ops.ctc_decode(x, [3, 2], "beam_search", 4), (tf.reshape(
        tf.sin(tf.range(18.0)), [2, 3, 3]),)),
    "drawn_classes": (lambda t: tf.random.uniform_candidate_sampler(t, 1, 1, True, 1)[0], (tf.constant([[0]]),)),
    "window_numbers": (lambda n: tf.concat([
        tf.signal.hann_window(n), tf.signal.hamming_window(n, periodic=False), tf.signal.vorbis_window(n),
        tf.signal.kaiser_window(n, 3.0), tf.signal.kaiser_bessel_derived_window(n)], 0), (LENGTH,)),
    "padded_parts": (lambda x: words.padded_parts(x, "", -1), (TEXTS,)),
    "words_left": (lambda x: words.words_left(x, ["X3", ""], False, "UPPER"), (TEXTS,)),
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
    "to_hash_bucket": (lambda x: strings.to_hash_bucket(x, 99), (TEXTS,)),
    "to_hash_bucket_fast": (lambda x: strings.to_hash_bucket_fast(x, 99), (TEXTS,)),
    "to_hash_bucket_strong": (lambda x: strings.to_hash_bucket_strong(x, 99, [1, 2]), (TEXTS,)),
    "unicode_decode_with_offsets": (lambda x: strings.unicode_decode_with_offsets(x, "UTF-8"), (TEXTS[0],)),
    "unicode_split_with_offsets": (lambda x: strings.unicode_split_with_offsets(x, "UTF-8"), (TEXTS[0],)),
    "unicode_transcode": (lambda x: strings.unicode_transcode(x, "UTF-8", "UTF-16-BE"), (TEXTS,)),
    "unicode_script": (strings.unicode_script, (tf.constant([97, 945]),)),
    "ngrams": (lambda x: strings.ngrams(x, [1, 2], pad_values=("<", ">")), (TEXTS,)),
    "unsorted_segment_join": (lambda x, n: strings.unsorted_segment_join(x, n, 2), (TEXTS, tf.constant([0, 1, 0]))),
    "set_operation": (lambda x, y: tf.sets.union(x, y).values, (tf.constant([[1, 2]]), tf.constant([[5, 2]]))),
    "set_sizes": (lambda x: tf.sets.size(tf.sparse.from_dense(x)), (tf.constant([[1, 0], [3, 4]]),)),
    "ngrams_of_rows": (lambda x: strings.ngrams(strings.split(x), 2).flat_values, (TEXTS,)),
    "encode_ragged_rows": (lambda x: strings.unicode_encode(strings.unicode_decode(x, "UTF-8"), "UTF-16-BE"), (TEXTS,)),
    "encode_base64": (lambda x: tf.io.encode_base64(x, pad=True), (TEXTS,)),
    "decode_base64": (tf.io.decode_base64, (tf.constant(["YQ", ""]),)),
    "decode_compressed": (lambda x: tf.io.decode_compressed(x, "ZLIB"), (tf.constant([zlib.compress(b"a")]),)),
    "decode_csv": (lambda x: tf.io.decode_csv(x, [tf.constant([7]), "none"]), (tf.constant(["1,a", ",b"]),)),
    "decode_json_example": (tf.io.decode_json_example, (tf.constant(["{}"]),)),
    "decode_wav": (lambda x: tf.audio.decode_wav(x, desired_samples=9), (WAV,)),
    "encode_wav": (tf.audio.encode_wav, (tf.constant([[0.5]]), tf.constant(8000))),
    "crossed_buckets": (lambda x, y: tf.keras.layers.HashedCrossing(9)([x, y]), (TEXTS, tf.constant([1, 2, 3]))),
    "fingerprint": (lambda x: tf.fingerprint(x), (TEXTS,)),
    "serialize_tensor": (tf.io.serialize_tensor, (tf.constant([[1.0, 2.0]]),)),
    "parse_tensor": (lambda x: tf.ensure_shape(tf.io.parse_tensor(x, tf.float32), [1, 2]),
                     (tf.io.serialize_tensor([[1.0, 2.0]]),)),
    "sparse_parts": (lambda x: tf.io.serialize_sparse(tf.SparseTensor([[0, 1]], x, [2, 3])), (tf.constant([5.0]),)),
    "sparse_rows": (lambda x: tf.io.serialize_many_sparse(tf.SparseTensor([[0, 1]], x, [2, 3])), (tf.constant([5.0]),)),
    "sparse_of_rows": (lambda x: tf.io.deserialize_many_sparse(x, tf.float32, 2).values,
                       (tf.io.serialize_many_sparse(tf.SparseTensor([[0, 1]], [5.0], [2, 3])),)),
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
    tf.saved_model.save(loaded, tmp_path / "again")
    for actual in (module.f(*args), loaded.f(*args), tf.saved_model.load(tmp_path / "again").f(*args)):
        tf.nest.map_structure(_same, actual, expected)


def _same(actual: Any, expected: Any) -> None:
    assert actual.dtype == expected.dtype
    np.testing.assert_array_equal(actual, expected, strict=True)


def test_each_hosted_function_that_has_no_file_is_here() -> None:
    for module in _hosted._MODULES:
        importlib.import_module(f"twofold.{module}")
    tables = {f"table_{call}" for call in ("find", "insert", "remove", "size", "export")}  # tests/front/test_lookup.py
    rest = {"read_file", "write_file", "matching_files", "timestamp", "decode_bmp", "decode_gif",
            "decode_and_crop_jpeg", "decode_webp", *tables}
    assert set(_hosted._functions) - rest == set(CASES)


# Where the library calls Python for what is no plain function of tensors and settings: an object has the state.
STATEFUL = {"_front/host.py", "_front/iteration.py", "_front/texts.py", "data/dataset.py", "data/iterator.py",
            "data/_functions.py",
            "summary/ops.py", "compat/v1/variables.py", "compat/v1/data.py", "compat/v1/summary.py",
            "compat/v1/building.py",
            "keras/layers/lookup.py", "queue/_queues.py"}
CALLS = {"host_call", "host_effect", "numpy_function", "py_function", "each_text", "text_parts"}


def _calls(function: ast.AST) -> set[str]:
    return {node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id for node in ast.walk(function)
            if isinstance(node, ast.Call) and isinstance(node.func, (ast.Attribute, ast.Name))}


def test_each_function_of_the_library_that_calls_python_is_hosted() -> None:
    missing = []
    for path in sorted((ROOT / "twofold").rglob("*.py")):
        name = path.relative_to(ROOT / "twofold").as_posix()
        functions = [f for f in ast.parse(path.read_text()).body if isinstance(f, ast.FunctionDef)]
        calls = set(CALLS)
        before = 0
        while len(calls) > before:  # a private function that calls Python does so for those that call it
            before = len(calls)
            open_ = [f for f in functions if _calls(f) & calls
                     and not any(isinstance(d, ast.Name) and d.id == "hosted" for d in f.decorator_list)]
            calls |= {f.name for f in open_ if f.name.startswith("_")}
        missing += [f"{name}: {f.name}" for f in open_ if not f.name.startswith("_") and name not in STATEFUL]
    assert missing == []


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
    done = subprocess.run(python("-c", script, tmp_path), capture_output=True, text=True, check=True)
    pixels, told = done.stdout.splitlines()
    assert json.loads(pixels) == [PIXELS.numpy().tolist(), 1] and told == "True"


def test_all_is_done_in_another_process(tmp_path: Path) -> None:
    """Every function above, files that are written, and the time, in a process that has not this module."""
    model, expected = tf.Module(), {}
    for name, (fn, args) in CASES.items():
        setattr(model, name, tf.function(fn, input_signature=[tf.TensorSpec(x.shape, x.dtype) for x in args]))
        expected[name] = [np.asarray(x) for x in tf.nest.flatten(fn(*args))]
    model.write = tf.function(lambda path, text: tf.io.write_file(path, strings.upper(text)),
                              input_signature=[tf.TensorSpec([], tf.string)] * 2)
    model.now = tf.function(tf.timestamp, input_signature=[])
    tf.saved_model.save(model, tmp_path / "m")
    with open(tmp_path / "given.pickle", "wb") as file:
        pickle.dump({name: [x.numpy() for x in args] for name, (_, args) in CASES.items()}, file)
    script = """
import pickle, sys, time
import numpy as np
import twofold as tf
loaded = tf.saved_model.load(sys.argv[1] + "/m")
given = pickle.load(open(sys.argv[1] + "/given.pickle", "rb"))
found = {name: [np.asarray(x) for x in tf.nest.flatten(getattr(loaded, name)(*args))] for name, args in given.items()}
pickle.dump(found, open(sys.argv[1] + "/found.pickle", "wb"))
loaded.write(sys.argv[1] + "/new/a.txt", "some text")
before = time.time()
print(before <= float(loaded.now()) <= time.time())
"""
    done = subprocess.run(python("-c", script, tmp_path), capture_output=True, text=True)
    assert done.stdout == "True\n", done.stderr
    assert (tmp_path / "new" / "a.txt").read_text() == "SOME TEXT"
    with open(tmp_path / "found.pickle", "rb") as file:
        actual = pickle.load(file)
    for name, arrays in expected.items():
        for one, other in zip(actual[name], arrays, strict=True):
            np.testing.assert_array_equal(one, other, strict=True, err_msg=name)


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


NAMED: dict[str, tuple[Any, tuple[tf.Tensor, ...]]] = {
    "lower": (strings.lower, (TEXTS,)), "split": (strings.split, (TEXTS[0],)),
    "reduce_join": (strings.reduce_join, (TEXTS,)), "as_string": (strings.as_string, (tf.constant([1.5]),)),
    "encode_png": (tf.image.encode_png, (PIXELS,)),
    "decode_image": (lambda x, name: tf.io.decode_image(x, expand_animations=False, name=name), (PNG,)),
    "non_max_suppression": (lambda b, s, name: tf.image.non_max_suppression(b, s, 3, name=name),
                            (BOXES, tf.constant([0.9, 0.8, 0.7]))),
}


def _named(fn: Any, name: Any) -> Any:
    return lambda *tensors: fn(*tensors, name=name)


@pytest.mark.parametrize("name", NAMED)
def test_only_tensors_are_taken_for_tensors(name: str) -> None:
    """What stands beside the tensors goes through a trace as it is: specs, which stand for none, and any object."""
    fn, args = NAMED[name]
    for other in (tf.TensorSpec([2]), np.array([None, 1], object), [tf.TensorSpec([]), "a"], None):
        expected = fn(*args, name=other)
        got = tf.function(_named(fn, other), fallback=False)(*args)
        for one, two in zip(tf.nest.flatten(expected), tf.nest.flatten(got), strict=True):
            assert np.asarray(one).tolist() == np.asarray(two).tolist()


def nested(depth: int) -> list[Any]:
    """Lists in lists."""
    result: list[Any] = []
    for _ in range(depth):
        result = [result]
    return result


@pytest.mark.parametrize("name", [nested(5000), [tf.ones([2]), "a"], tf.TensorSpec([2]), {"a": object()}],
                         ids=["deep", "tensors", "spec", "object"])
def test_a_traced_call_takes_the_names_that_an_eager_one_takes(name: Any) -> None:
    for call in (lambda x: strings.length(x, name=name), lambda x: strings.length(x, "BYTE", name),
                 lambda x: strings.join([x, x], name=name), lambda x: tf.io.serialize_tensor(x, name)):
        assert np.array_equal(tf.function(call)(TEXTS), call(TEXTS))


def test_named_arguments_keep_their_places() -> None:
    def call(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
        return strings.substr(pos=x, len=y, input=["ab 12", "x3"])
    assert tf.function(call)(tf.constant(1), tf.constant(2)).numpy().tolist() == [b"b ", b"3"]
