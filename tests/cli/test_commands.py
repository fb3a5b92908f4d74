"""The command line: what each command says and writes, how it fails, and what it ends with."""

from __future__ import annotations

import ctypes
import fcntl
import importlib.util
import json
import os
import select
import shutil
import struct
import subprocess
import termios
import xml.etree.ElementTree as xml

import numpy as np
import pytest
from quick.start import python

import twofold as tf
from twofold.cli import main


class Net(tf.Module):
    """Two layers, a counter, and functions of several kinds."""

    def __init__(self):
        super().__init__()
        rng = np.random.default_rng(3)
        self.hidden = tf.Variable(rng.standard_normal((6, 5)).astype(np.float32), name="hidden")
        self.last = tf.Variable(rng.standard_normal((5, 3)).astype(np.float32), name="last")
        self.steps = tf.Variable(0, trainable=False, name="steps")

    @tf.function(input_signature=[tf.TensorSpec([None, 6], tf.float32, name="images")])
    def predict(self, images):
        scores = tf.matmul(tf.nn.relu(tf.matmul(images, self.hidden)), self.last)
        return {"scores": scores, "digit": tf.argmax(scores, axis=1)}

    @tf.function(input_signature=[{"a": tf.TensorSpec([2], tf.int32), "z": tf.TensorSpec([], tf.bool)},
                                  tf.TensorSpec([None], tf.float32)])
    def nested(self, parts, x):
        self.steps.assign_add(1)
        return [tf.where(parts["z"], x, -x)] + [parts["a"] + n for n in range(11)]

    @tf.function
    def traced(self, x):
        return x + x


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model") / "net"
    net = Net()
    net.traced(tf.constant([1.0]))
    net.traced(tf.constant([1, 2]))
    tf.saved_model.save(net, folder, signatures=net.predict)
    return folder


@pytest.fixture
def images(tmp_path):
    array = np.random.default_rng(0).standard_normal((4, 6)).astype(np.float32)
    np.save(tmp_path / "images.npy", array)
    return tmp_path / "images.npy"


def expected(net: Net, images: np.ndarray) -> np.ndarray:
    """The scores, in float64."""
    wide = images.astype(np.float64)
    return np.maximum(wide @ net.hidden.numpy().astype(np.float64), 0) @ net.last.numpy().astype(np.float64)


@pytest.fixture
def call(capsys):
    def run(*args):
        try:
            code = main([str(a) for a in args])
        except SystemExit as end:  # of argparse
            code = end.code
        out, err = capsys.readouterr()
        return code, out, err
    return run


def answer(call, *args):
    code, out, err = call(*args, "--json")
    assert code == 0, err
    return json.loads(out)


# -- what commands do ---------------------------------------------------------------------------------
def test_inspect_tells_everything(call, saved):
    actual = answer(call, "inspect", saved)
    functions = {f["name"]: f for f in actual["functions"]}
    assert set(functions) == {"serving_default", "predict", "nested", "traced#0", "traced#1"}
    default = functions["serving_default"]
    [images] = default["inputs"]
    assert (images["name"], images["dtype"], images["shape"][1]) == ("images", "float32", 6)
    assert isinstance(images["shape"][0], str)
    assert [(o["name"], o["dtype"]) for o in default["outputs"]] == [("digit", "int64"), ("scores", "float32")]
    assert default["ops"] == {"matmul": 2, "relu": 1, "argmax": 1}
    assert functions["nested"]["assigns"] == ["steps"]
    assert [i["name"] for i in functions["nested"]["inputs"]] == ["parts.a", "parts.z", "x"]
    assert [o["name"] for o in functions["nested"]["outputs"]] == [f"output_{n}" for n in range(12)]
    assert {v["name"]: (v["shape"], v["bytes"], v["trainable"]) for v in actual["variables"]} == {
        "hidden": ([6, 5], 120, True), "last": ([5, 3], 60, True), "steps": ([], 4, False)}
    assert actual["bytes"] == sum(p.stat().st_size for p in saved.rglob("*") if p.is_file() and
                                 p.name != "manifest.json")
    symbol = images["shape"][0]
    sized = answer(call, "inspect", saved, "--size", f"{symbol}=10")
    memory = next(f for f in sized["functions"] if f["name"] == "serving_default")["memory"]
    assert memory["outputs"] == 10 * (3 * 4 + 8)
    assert isinstance(memory["scratch"], int) and memory["scratch"] >= 10 * 5 * 4
    code, out, _ = call("inspect", saved)
    assert code == 0
    assert "serving_default(images: float32[" in out and "variables: 3, 184 bytes" in out


def test_run_gives_the_results(call, saved, images, tmp_path):
    given = np.load(images)
    want = expected(Net(), given)
    actual = answer(call, "run", saved, "--input", f"images={images}")
    assert actual["outputs"]["digit"] == {"dtype": "int64", "shape": [4], "values": want.argmax(1).tolist()}
    np.testing.assert_allclose(actual["outputs"]["scores"]["values"], want, rtol=1e-5, atol=1e-5)
    code, out, _ = call("run", saved, "--input", images, "--output", tmp_path / "out" / "deep")
    assert code == 0 and "scores: float32[4, 3] -> " in out
    np.testing.assert_allclose(np.load(tmp_path / "out" / "deep" / "scores.npy"), want, rtol=1e-5, atol=1e-5)
    np.savez(tmp_path / "many.npz", first=given, second=given[:1])
    actual = answer(call, "run", saved, "--input", f"images={tmp_path}/many.npz[second]")
    assert actual["outputs"]["digit"]["values"] == want[:1].argmax(1).tolist()


def test_nested_arguments_and_many_results_keep_their_places(call, saved, tmp_path):
    np.save(tmp_path / "a.npy", np.array([5, 7], np.int32))
    np.save(tmp_path / "z.npy", np.array(False))
    np.save(tmp_path / "x.npy", np.array([1.0, np.inf, np.nan], np.float32))
    actual = answer(call, "run", saved, "--signature", "nested", *[
        word for name, file in (("x", "x"), ("parts.z", "z"), ("parts.a", "a"))
        for word in ("--input", f"{name}={tmp_path}/{file}.npy")])
    assert actual["outputs"]["output_0"]["values"] == [-1.0, "-inf", "nan"]
    assert [actual["outputs"][f"output_{n}"]["values"] for n in range(1, 12)] == [[5 + n, 7 + n] for n in range(11)]


def test_traces_of_one_function_have_numbers(call, saved, tmp_path):
    np.save(tmp_path / "x.npy", np.array([3, 4], np.int32))
    actual = answer(call, "run", saved, "--signature", "traced#1", "--input", tmp_path / "x.npy")
    assert actual["outputs"]["output_0"]["values"] == [6, 8]


def test_strings_go_in_and_out(call, tmp_path):
    module = tf.Module()
    module.same = tf.function(lambda s: s, input_signature=[tf.TensorSpec([None], tf.string)])
    tf.saved_model.save(module, tmp_path / "strings", signatures=module.same)
    np.save(tmp_path / "s.npy", np.array(["a", "bcd"]))
    assert call("run", tmp_path / "strings", "--input", tmp_path / "s.npy", "--output", tmp_path)[0] == 0
    assert np.load(tmp_path / "output_0.npy").tolist() == [b"a", b"bcd"]


def test_names_of_strangers_do_no_harm(call, tmp_path):
    module = tf.Module()
    module.f = tf.function(lambda x: {"../a": x, "..\\a": x + 1.0, ".._array": x + 2.0, "\x1b[31mred\x9b": x + 3.0},
                           input_signature=[tf.TensorSpec([], tf.float32, name="x")])
    tf.saved_model.save(module, tmp_path / "odd", signatures={"\x1b[2Jclear": module.f})
    np.save(tmp_path / "x.npy", np.float32(1.0))
    code, out, err = call("inspect", tmp_path / "odd")
    assert code == 0 and r"\x1b[2Jclear(x" in out and "\x1b" not in out + err and "\x9b" not in out + err
    assert "\x1b" not in call("inspect", tmp_path / "odd", "--json")[1]
    code, out, err = call("run", tmp_path / "odd", "--input", tmp_path / "x.npy", "--output", tmp_path / "out",
                          "--signature", "\x1b[2Jclear")
    assert code == 0, err
    written = sorted((tmp_path / "out").iterdir())
    assert sorted(float(np.load(p)) for p in written) == [1.0, 2.0, 3.0, 4.0]
    assert "\x1b" not in call("run", tmp_path / "odd", "--signature", "\x1b[0m")[2]


def test_graph_writes_pages_pictures_and_dot(call, saved, tmp_path, images):
    assert call("graph", saved, "-o", tmp_path / "g.svg")[0] == 0
    texts = {e.text for e in xml.parse(tmp_path / "g.svg").iter("{http://www.w3.org/2000/svg}text")}
    assert {"matmul", "relu", "argmax", "images"} <= texts
    assert call("graph", saved, "-o", tmp_path / "g.dot")[0] == 0
    assert (tmp_path / "g.dot").read_text().startswith("digraph predict {")
    actual = answer(call, "graph", saved, "-o", tmp_path / "g.html")
    assert actual["nodes"] == 4
    assert '"us":' not in (tmp_path / "g.html").read_text()
    assert call("graph", saved, "-o", tmp_path / "t.html", "--input", f"images={images}")[0] == 0
    assert '"us":' in (tmp_path / "t.html").read_text()
    assert call("graph", saved, "-o", tmp_path / "g.png") == (
        2, "", f"twofold: error: --output must end in .html, .svg, .dot; got '{tmp_path}/g.png'\n")


def test_compile_makes_a_library_that_runs(call, saved, tmp_path):
    actual = answer(call, "compile", saved, "-o", tmp_path / "libnet.a")
    assert set(actual["files"]) == {str(tmp_path / "libnet.a"), str(tmp_path / "net.h")}
    assert actual["functions"] == ["net_serving_default"]
    if shutil.which("cc"):
        code, _, err = call("compile", saved, "-o", tmp_path / "libnet.so", "--gradients")
        assert code == 0, err
        library = ctypes.CDLL(str(tmp_path / "libnet.so"))
        assert library.net_serving_default and library.net_serving_default_grad
    code, _, err = call("compile", saved, "-o", tmp_path / "net.zip")
    assert code == 1 and "the path must end in" in err


def test_export_lists_targets(call, saved, tmp_path):
    listed = answer(call, "export", saved)["targets"]
    assert [row["target"] for row in listed[:3]] == ["onnx", "page", "library, this machine"]
    assert all(row["bytes"] > 100 and row["refused"] is None for row in listed)
    code, out, _ = call("export", saved)
    assert code == 0 and "a runtime of ONNX" in out
    assert list(tmp_path.iterdir()) == []


def test_export_tells_what_a_model_cannot_become(call, tmp_path):
    class Texts(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
        def cut(self, text):
            return tf.strings.substr(text, 0, 2)
    texts = Texts()
    tf.saved_model.save(texts, tmp_path / "texts", signatures=texts.cut)
    rows = answer(call, "export", tmp_path / "texts")["targets"]
    assert all(row["bytes"] is None for row in rows)
    assert "cannot be exported to ONNX" in rows[0]["refused"]


def test_export_writes_onnx_that_runs(call, saved, images, tmp_path):
    import onnxruntime
    made = answer(call, "export", saved, "--onnx", tmp_path / "net.onnx", "--opset", "20")
    assert made["opset"] == 20 and made["inputs"] == ["images: float32[n, 6]"]
    assert made["checked"]["onnxruntime"] < 1e-5
    array = np.load(images)
    scores = onnxruntime.InferenceSession(tmp_path / "net.onnx").run(["scores"], {"images": array})[0]
    np.testing.assert_allclose(scores, expected(Net(), array), rtol=1e-4, atol=1e-5)
    code, out, _ = call("export", saved, "--onnx", tmp_path / "other.onnx", "--no-check", "--signature", "nested")
    assert code == 0 and "onnxruntime" not in out and "assigns steps: inputs with defaults" in out


def test_inspect_tells_what_an_onnx_file_holds(call, saved, tmp_path):
    answer(call, "export", saved, "--onnx", tmp_path / "net.onnx", "--no-check")
    told = answer(call, "inspect", tmp_path / "net.onnx")
    assert told["opsets"] == {"ai.onnx": 26} and told["producer"].startswith("twofold")
    assert [(v["name"], v["dtype"], v["shape"]) for v in told["inputs"]] == [("images", "float32", ["n", 6])]
    held = {t["name"]: (t["shape"], t["bytes"]) for t in told["initializers"]}
    assert held["hidden"] == ([6, 5], 120) and held["last"] == ([5, 3], 60)
    assert told["operators"]["MatMul"] == 2
    code, out, _ = call("inspect", tmp_path / "net.onnx")
    assert code == 0 and "operators of ai.onnx 26" in out


@pytest.mark.skipif(importlib.util.find_spec("ziglang") is None, reason="the package ziglang is not there")
def test_export_makes_a_page(call, saved, tmp_path):
    actual = answer(call, "export", saved, "--web", tmp_path / "net")
    names = ("index.html", "net.wasm", "net.mjs", "net.d.mts")
    assert actual["files"] == {str(p): p.stat().st_size for p in [tmp_path / "net" / name for name in names]}
    assert actual["functions"] == ["serving_default"]
    code, out, _ = call("export", saved, "--web", tmp_path / "other", "--signature", "nested")
    assert code == 0 and "functions: nested; open " in out and (tmp_path / "other" / "index.html").exists()
    code, _, err = call("export", saved, "--web", tmp_path / "net", "--onnx", tmp_path / "net.onnx")
    assert code == 2 and "not allowed with argument" in err


def test_bench_measures_each_batch(call, saved):
    actual = answer(call, "bench", saved, "--batch", "1,16", "--seconds", "0.05")
    assert [r["batch"] for r in actual["results"]] == [1, 16]
    for r in actual["results"]:
        assert 0 < r["p50"] <= r["p90"] <= r["p99"] <= r["max"]
        assert r["calls"] >= 20
    code, out, err = call("bench", saved, "--seconds", "0.02")
    assert code == 0 and err == "" and "items/s" in out  # no bar where no terminal is


def test_cache_is_told_and_emptied(call, empty_cache, monkeypatch):
    monkeypatch.setenv("TWOFOLD_CACHE", "1")
    assert answer(call, "cache", "info")["entries"] == 0
    from twofold.runtime import cache
    cache.write("kernels", cache.digest("one"), b"12345", "text", ".py")
    cache.write("programs", cache.digest("two"), b"1")
    other = empty_cache / "mine" / "ab" / "photo.jpg"
    other.parent.mkdir(parents=True)
    other.write_text("keep me")
    actual = answer(call, "cache", "info")
    assert {k: v["entries"] for k, v in actual["kinds"].items()} == {"kernels": 1, "programs": 1}
    assert actual["bytes"] == sum(p.stat().st_size for p in empty_cache.rglob("*") if p.is_file()) - 7
    code, out, _ = call("cache", "clear")
    assert code == 0 and out.startswith("deleted 2 entries")
    assert [p for p in empty_cache.rglob("*") if p.is_file()] == [other]
    assert cache.read("kernels", cache.digest("one")) is None


# -- how commands fail --------------------------------------------------------------------------------
@pytest.mark.parametrize(("args", "status", "told"), [
    (["inspect", "{tmp}/nowhere"], 1, "nowhere"),
    (["inspect", "{tmp}"], 1, "does not exist"),
    (["inspect", "{saved}", "--size", "n"], 2, "--size wants NAME=NUMBER"),
    (["inspect", "{saved}", "--size", "nothing=4"], 2, "there is no size 'nothing'"),
    (["run", "{saved}"], 2, "also needs --input for images (float32["),
    (["run", "{saved}", "--input", "pictures={tmp}/x.npy"], 2, "has no input 'pictures'; it has images"),
    (["run", "{saved}", "--input", "images={tmp}/no.npy"], 1, "No such file or directory"),
    (["run", "{saved}", "--input", "images={tmp}/text.npy"], 1, "no whole file of numpy.save"),
    (["run", "{saved}", "--input", "images={tmp}/objects.npy"], 1, "holds Python objects"),
    (["run", "{saved}", "--input", "images={tmp}/wide.npy"], 1, "the file has float64[2, 6]"),
    (["run", "{saved}", "--input", "images={tmp}/flat.npy"], 1, "the file has float32[6]"),
    (["run", "{saved}", "--signature", "other"], 2, "has no signature or function 'other'; it has serving_default"),
    (["graph", "{saved}", "-o", "{tmp}/no/where.html"], 1, "No such file or directory"),
    (["graph", "{saved}", "-o", "{tmp}/g.html", "--measure"], 2, "say what"),
    (["bench", "{saved}", "--batch", "0"], 2, "--batch wants positive numbers"),
    (["bench", "{saved}", "--seconds", "-1"], 2, "--seconds must be above 0"),
    (["compile", "{saved}", "-o", "{tmp}/net.o", "--target", "moon"], 1, "moon"),
    (["export", "{saved}", "--onnx", "{tmp}/net.txt"], 1, "must end in .onnx"),
    (["export", "{saved}", "--onnx", "{tmp}/net.onnx", "--opset", "9"], 1, "from 18 to 28"),
    (["export", "{saved}", "--opset", "20"], 2, "are for --onnx"),
    (["inspect", "{tmp}/none.onnx"], 1, "No such file"),
    (["inspect", "{saved}/manifest.json.onnx", "--size", "n=3"], 2, "--size is for"),
    (["cache", "burn"], 2, "invalid choice"),
    ([], 2, "COMMAND"),
])
def test_errors_are_one_message(call, saved, tmp_path, args, status, told):
    (tmp_path / "text.npy").write_text("no array")
    np.save(tmp_path / "objects.npy", np.array([{}], object), allow_pickle=True)
    np.save(tmp_path / "wide.npy", np.zeros((2, 6)))
    np.save(tmp_path / "flat.npy", np.zeros(6, np.float32))
    np.save(tmp_path / "x.npy", np.zeros((1, 6), np.float32))
    code, out, err = call(*[a.format(saved=saved, tmp=tmp_path) for a in args])
    assert (code, out) == (status, "")
    assert told in err and "Traceback" not in err


def test_a_damaged_model_is_told(call, saved, tmp_path):
    copy = tmp_path / "damaged"
    shutil.copytree(saved, copy)
    [weights] = copy.rglob("weights.safetensors")
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    code, out, err = call("inspect", copy)
    assert (code, out) == (1, "") and err.count("\n") <= 2


@pytest.mark.parametrize("contents", [b"", b"not a model", b"\x08\x07", b"\x3a\xff\xff\xff\xff\x0f"])
def test_a_file_that_is_no_onnx_model_is_told(call, tmp_path, contents):
    (tmp_path / "no.onnx").write_bytes(contents)
    code, out, err = call("inspect", tmp_path / "no.onnx")
    assert (code, out) == (1, "") and "is no ONNX model" in err


def test_sizes_that_no_memory_has_are_told_all_the_same(call, tmp_path):
    import onnx
    tensor = onnx.TensorProto(name="\x1b[2J", data_type=1, dims=[1 << 62] * 30)
    graph = onnx.GraphProto(name="g", initializer=[tensor, onnx.TensorProto(name="b", data_type=99, dims=[-3, 2])])
    model = onnx.helper.make_model(graph)
    (tmp_path / "no.onnx").write_bytes(model.SerializeToString())
    code, out, _ = call("inspect", tmp_path / "no.onnx")
    assert code == 0 and "type 99" in out and "\x1b" not in out


def test_traceback_shows_where(call, tmp_path):
    with pytest.raises(tf.errors.OpError):
        main(["inspect", str(tmp_path / "no"), "--traceback"])


# -- as a process -------------------------------------------------------------------------------------
def process(*args, **env):
    return subprocess.run(python("-m", "twofold", *map(str, args)), capture_output=True, text=True,
                          env={**os.environ, **env}, timeout=300)


def test_as_a_module(saved, images):
    done = process("run", saved, "--input", f"images={images}", "--json")
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["outputs"]["digit"]["values"]) == 4
    done = process("inspect", saved / "nowhere")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("twofold: error: ")


def test_help_is_quick_and_loads_no_compiler():
    script = ("import sys\ntry:\n    from twofold.cli import main; main(['--help'])\nexcept SystemExit:\n"
              "    print([m for m in ('llvmlite.binding', 'numba', 'networkx', 'tqdm') if m in sys.modules])")
    done = subprocess.run(python("-c", script), capture_output=True, text=True, timeout=300)
    assert done.stdout.endswith("[]\n"), done.stdout + done.stderr
    assert all(name in done.stdout for name in ("inspect", "graph", "run", "compile", "export", "bench", "cache"))


def test_the_entry_point_is_declared():
    from house.tree import project
    assert project()["project"]["scripts"] == {"twofold": "twofold.cli:main"}


def test_a_terminal_gets_a_bar(saved):
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    running = subprocess.Popen(python("-m", "twofold", "bench", str(saved), "--batch", "4", "--seconds",
                                "0.3"), stdout=subprocess.PIPE, stderr=theirs, text=True)
    out, _ = running.communicate(timeout=300)
    assert select.select([ours], [], [], 5)[0]
    shown = os.read(ours, 1 << 16).decode()
    os.close(theirs)
    os.close(ours)
    assert running.returncode == 0 and "p50" in out
    assert "batch 4" in shown and "block" in shown


def test_a_closed_pipe_is_no_error(saved):
    reader = subprocess.Popen(python("-m", "twofold", "inspect", str(saved)), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE)
    reader.stdout.close()
    assert reader.wait(60) == 0
    assert reader.stderr.read() == b""
    reader.stderr.close()
