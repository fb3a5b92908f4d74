"""What cannot be exported is refused, with the reason and the user's line, and nothing is written."""

from __future__ import annotations

import numpy as np
import pytest

import twofold as tf
from twofold.export import link
from twofold.export.archive import archive
from twofold.export.interface import identifier, unique

VECTOR = tf.TensorSpec([None], tf.float32, name="x")


def refused(folder, function, specs, text, **options):
    """The export is an error that says so, and leaves the folder as it was."""
    traced = tf.function(function, input_signature=specs)
    with pytest.raises(tf.errors.UnimplementedError, match=rf"(?s)cannot be exported: .*{text}") as told:
        tf.export.native(traced, folder / "libno.o", **options)
    assert list(folder.iterdir()) == []
    return str(told.value)


def where_positive(x):
    return tf.where(x > 0.0)


def python_inside(x):
    return tf.py_function(lambda t: t * 2, [x], tf.TensorSpec([3], tf.float32))


def printing(x):
    tf.print(x)
    return x


def factorising(x):
    return tf.linalg.det(x[:, None] * x[None, :])


def computed_size(x):
    return tf.zeros([tf.cast(x[0], tf.int32)])


def drawing(x):
    for _ in tf.range(3):
        x = x + tf.random.normal([])
    return x


@pytest.mark.parametrize(("function", "text"), [
    (where_positive, "size of its result depends on values"), (python_inside, "calls Python"),
    (factorising, "runs in Python"), (computed_size, "size of its result depends on values"),
    (drawing, "it draws from a stream that all calls share"), (printing, "Python|text")])
def test_functions_that_need_python(tmp_path, function, text):
    told = refused(tmp_path, function, [VECTOR], text)
    assert "\n  At test_refusals.py:" in told
    assert f"{function.__name__} cannot" in told


def test_text_is_refused(tmp_path):
    refused(tmp_path, lambda s: s, [tf.TensorSpec([], tf.string)], "it takes or gives text")


def test_variables_without_a_fixed_shape(tmp_path):
    held = tf.Variable([1.0], shape=tf.TensorShape([None]), name="held")

    @tf.function(input_signature=[VECTOR])
    def f(x):
        held.assign(x)
    with pytest.raises(ValueError, match="the variable held:0 has no fixed shape"):
        tf.export.native(f, tmp_path / "libf.o")


@tf.function(input_signature=[VECTOR])
def fine(x):
    return x + 1.0


@pytest.mark.parametrize(("given", "options", "error", "text"), [
    (3, {}, TypeError, "tf.export.native takes a tf.function, .*got int"),
    ({1: fine}, {}, TypeError, "names of functions must be text; got 1"),
    (tf.function(lambda x: x), {}, ValueError, "nothing to export"),
    ("no/such/folder", {}, ValueError, "'no/such/folder' is no folder with a saved model"),
    (fine, {"path": "f.exe"}, ValueError, r"the path must end in \.o, .*; got .*f\.exe"),
    (fine, {"path": "f.dll"}, ValueError, r"end in \.so"),
    (fine, {"path": "no/f.o"}, ValueError, "there is no folder"),
    (fine, {"weights": "apart"}, ValueError, 'weights must be "embedded" or "file"; got \'apart\''),
    (fine, {"threads": 0}, ValueError, "threads must be an integer from 1 to 256; got 0"),
    (fine, {"threads": True}, ValueError, "threads must be an integer"),
    (fine, {"threads": 2, "target": "wasm32"}, ValueError, "object files and static libraries for wasm32 run on one"),
    (fine, {"target": "vax"}, ValueError, 'target must be "host", one of .*got \'vax\''),
    (fine, {"target": "riscv64-unknown-linux-gnu"}, ValueError, "target must be"),
    (fine, {"target": 7}, TypeError, "target and cpu must be text; got 7"),
    (fine, {"target": "x86_64-linux", "cpu": "pdp-11"}, ValueError, "LLVM knows no processor 'pdp-11' of x86_64"),
    *[(fine, {"cpu": cpu}, ValueError, "LLVM knows no processor '.*' of ")
      for cpu in ("abc", "", "help", "a\0b", "\udc80", "x" * 1000, "-v3 v4")],
    *[(fine, {"target": target, "cpu": cpu}, ValueError, "LLVM (knows no processor|makes no object files)")
      for target in ("x86_64-linux", "aarch64-linux", "x86_64-windows", "aarch64-macos", "wasm32")
      for cpu in ("i686", "x86-64" if target[:3] != "x86" else "apple-m1")],
    *[(fine, {"target": target}, ValueError, "LLVM makes no object files of (linux|windows|macos) for the target")
      for target in ("x86_64-unknown-linux-coff", "x86_64-unknown-linux-wasm", "x86_64-unknown-linux-gnux32",
                     "x86_64-pc-windows-elf", "x86_64-apple-macosx999999999999", "arm64-apple-darwin-wasm")],
    *[(fine, {"target": target}, ValueError, 'target must be "host", one of')
      for target in ("", "aarch64-pc-windows-msvc", "x86_64-linux\n", 'x86_64-linux-"', "x86_64-linux-\udc80",
                     "x86_64-linux-" + "a" * 10000)],
])
def test_arguments(tmp_path, given, options, error, text):
    options = dict(options)
    path = tmp_path / options.pop("path", "f.o")
    with pytest.raises(error, match=text):
        tf.export.native(given, path, **options)
    assert list(tmp_path.iterdir()) == []


def test_without_a_linker(tmp_path, monkeypatch):
    monkeypatch.setattr(link, "_compiler", lambda: None)
    monkeypatch.setattr(link.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(RuntimeError, match=r"(?s)needs a linker: .*pip install 'twofold\[aot\]'.*\.o\) and static"):
        tf.export.native(fine, tmp_path / "libf.so")
    assert list(tmp_path.iterdir()) == []
    tf.export.native(fine, tmp_path / "libf.a")


def test_what_a_linker_says_is_told(tmp_path, monkeypatch):
    def broken(job):
        job.run("sh", "-c", "echo out of ink >&2; exit 3")
    monkeypatch.setattr(link, "_linkers", lambda platform: [broken])
    with pytest.raises(RuntimeError, match="(?s)libf.so could not be linked for host.*out of ink"):
        tf.export.native(fine, tmp_path / "libf.so")


def test_names():
    assert [identifier(n, "input") for n in ("dense/kernel:0", "for", "3d", "", "a__b", "Straße")] == [
        "dense_kernel", "for_", "input_3d", "input", "a_b", "Stra_e"]
    assert unique(["a", "b", "a", "a_1", "a"]) == ["a", "b", "a_1", "a_1_1", "a_2"]


def test_archive_with_long_names_and_odd_sizes():
    code = archive([("a_rather_long_name.o", b"abc", ["f", "g"]), ("b.o", b"defg", ["h"])])
    assert code.count(b"a_rather_long_name.o/\n") == 1 and len(code) % 2 == 0
    words = np.frombuffer(code[68:68 + 16], ">u4")
    assert words[0] == 3 and [code[w:w + 4] for w in words[1:]] == [b"/0  ", b"/0  ", b"b.o/"]
