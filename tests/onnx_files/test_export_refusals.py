"""What cannot be exported to ONNX is refused before anything is written, with the user's line and what to do."""

from __future__ import annotations

import builtins

import numpy as np
import pytest

import twofold as tf
from twofold.onnx_files import export_checks, export_table
from twofold.onnx_files.export_writer import Ref

VECTOR = tf.TensorSpec([None], tf.float32, name="x")


def python_inside(x):
    return tf.py_function(lambda t: t * 2, [x], tf.TensorSpec([3], tf.float32))


def printing(x):
    tf.print(x)
    return x


def drawing(x):
    return x + tf.random.normal([1])


def drawing_in_a_branch(x):
    if tf.reduce_sum(x) > 0.0:
        return x + tf.random.uniform([1])
    return x


def solving(x):
    return tf.linalg.solve(x[:, None] * x[None, :], x[:, None])


def transforming(x):
    return tf.math.real(tf.signal.fft(tf.cast(x, tf.complex64)))


@pytest.mark.parametrize(("function", "text"), [
    (python_inside, "calls Python .*; do it before or after the model"), (printing, "calls Python"),
    (drawing, "random numbers .*; draw outside of the model"), (drawing_in_a_branch, "random numbers"),
    (solving, "no operator that factorises or solves; compute the factors once"),
    (transforming, "complex numbers; keep real and imaginary parts")])
def test_ops_without_a_meaning(tmp_path, function, text):
    with pytest.raises(tf.errors.UnimplementedError, match=f"(?s)cannot be exported to ONNX: .*{text}") as told:
        tf.export.onnx(tf.function(function, input_signature=[VECTOR]), tmp_path / "no.onnx")
    assert "\n  At test_export_refusals.py:" in str(told.value)
    assert list(tmp_path.iterdir()) == []


@tf.function(input_signature=[VECTOR])
def fine(x):
    tf.debugging.assert_greater(tf.reduce_sum(x), -1e9)
    return tf.exp(x)


@pytest.mark.parametrize(("options", "error", "text"), [
    ({"path": "model.txt"}, ValueError, "must end in .onnx"), ({"path": "none/model.onnx"}, ValueError, "no folder"),
    ({"opset": 17}, ValueError, "from 18 to 28; got 17"), ({"opset": 29}, ValueError, "got 29"),
    ({"opset": True}, ValueError, "opset must be"), ({"opset": "26"}, ValueError, "opset must be"),
    ({"inputs": []}, ValueError, "inputs must be 1 arrays"), ({"inputs": [[[1.0]]]}, ValueError, r"x: float32\[n\]"),
    ({"function": 3}, TypeError, "tf.export.onnx takes a tf.function"),
    ({"function": {"a": fine, "b": fine}}, ValueError, "one function, and there are several: a, b"),
    ({"function": tf.function(lambda x: x)}, ValueError, "nothing to export"),
    ({"function": tf.function(lambda x: None, input_signature=[VECTOR])}, ValueError, "gives no tensors")])
def test_bad_arguments(tmp_path, options, error, text):
    options = {"function": fine, **options, "path": tmp_path / options.get("path", "model.onnx")}
    with pytest.raises(error, match=text):
        tf.export.onnx(**options)
    assert list(tmp_path.iterdir()) == []


def test_opsets_that_lack_what_is_needed(tmp_path):
    wide = tf.function(tf.math.lgamma, input_signature=[VECTOR])
    with pytest.raises(tf.errors.UnimplementedError, match="from opset 26 on; give opset=26 or more"):
        tf.export.onnx(wide, tmp_path / "model.onnx", opset=23)
    assert tf.export.onnx(wide, tmp_path / "model.onnx").opset == 26


def test_text_needs_its_opset(tmp_path):
    twice = tf.function(lambda s: s + s, input_signature=[tf.TensorSpec([None], tf.string)])
    with pytest.raises(tf.errors.UnimplementedError, match="operators for text from opset 20 on"):
        tf.export.onnx(twice, tmp_path / "model.onnx", opset=19, check=False)
    assert tf.export.onnx(twice, tmp_path / "model.onnx", opset=20).checked["onnxruntime"] == 0.0


def test_what_the_model_does_not_check_is_told(tmp_path):
    model = tf.export.onnx(fine, tmp_path / "model.onnx")
    assert "assertions at test_export_refusals.py:" in model.unchecked["unchecked"]


def test_arrays_with_which_the_function_does_not_run(tmp_path):
    @tf.function(input_signature=[VECTOR])
    def picky(x):
        tf.debugging.assert_greater(tf.reduce_min(x), 100.0)
        return tf.sqrt(x)
    with pytest.raises(ValueError, match=r"(?s)picky\(x\) does not run with the arrays .*Give inputs=\[\.\.\.\]"):
        tf.export.onnx(picky, tmp_path / "model.onnx")
    assert tf.export.onnx(picky, tmp_path / "model.onnx", inputs=[[200.0, 300.0]]).checked["onnxruntime"] < 1e-6


def test_a_wrong_meaning_is_found_before_anything_is_written(tmp_path, monkeypatch):
    def wrong(w, node, x):
        return w.op("Sin", x)
    monkeypatch.setitem(export_table.MEANINGS, "exp", wrong)
    with pytest.raises(ValueError, match="the result output of onnxruntime is not that of the function: the largest"):
        tf.export.onnx(fine, tmp_path / "model.onnx")
    assert list(tmp_path.iterdir()) == []
    assert tf.export.onnx(fine, tmp_path / "model.onnx", check=False).checked == {}


def test_an_invalid_model_is_found(tmp_path, monkeypatch):
    def invalid(w, node, x):
        return Ref(w.op("NoSuchOperator", x).name, x.dtype)
    monkeypatch.setitem(export_table.MEANINGS, "exp", invalid)
    with pytest.raises(ValueError, match="onnx.checker refuses the model: .*NoSuchOperator"):
        tf.export.onnx(fine, tmp_path / "model.onnx")
    assert list(tmp_path.iterdir()) == []


def test_a_missing_runtime_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(export_checks, "has_onnxruntime", lambda: False)
    model = tf.export.onnx(fine, tmp_path / "model.onnx")
    assert model.checked["onnxruntime"] == "not installed"
    assert isinstance(model.checked["reference"], float)


def test_missing_kernels_are_told(tmp_path):
    wide = tf.function(tf.atan, input_signature=[tf.TensorSpec([2], tf.float64)])
    model = tf.export.onnx(wide, tmp_path / "model.onnx")
    assert model.checked["onnxruntime"].startswith("not run: ")
    assert isinstance(model.checked["reference"], float)


def test_a_missing_package_is_told(tmp_path, monkeypatch):
    plain = builtins.__import__

    def without(name, *args, **kwargs):
        if name == "onnx":
            raise ImportError(name)
        return plain(name, *args, **kwargs)
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"pip install 'twofold\[onnx\]'"):
        tf.export.onnx(fine, tmp_path / "model.onnx")


def test_what_was_there_stays(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(b"before")
    with pytest.raises(tf.errors.UnimplementedError):
        tf.export.onnx(tf.function(drawing, input_signature=[VECTOR]), path)
    assert path.read_bytes() == b"before"
    tf.export.onnx(fine, path, inputs=[np.ones(2)])
    assert path.read_bytes()[:6] != b"before"
