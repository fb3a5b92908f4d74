"""Libraries for other processors and systems: what can run here runs, of the others the structure is looked at.

Levels of x86-64 run as they are, WebAssembly in Node.js, AArch64 on an emulated processor. Shared libraries for other
systems need the package `ziglang`.
"""

from __future__ import annotations

import importlib.util
import json
import platform
import shutil
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest
from export.arm64 import Arm64
from export.calling import Library

import twofold as tf
from twofold.export import link

F32 = np.float32
I32 = np.int32
needs_zig = pytest.mark.skipif(importlib.util.find_spec("ziglang") is None, reason="the package ziglang is not there")
needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="there is no Node.js")


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(F32)


def functions():
    """A classifier, what mathematics has to be right about, loops, checks, 16-bit floats, and 64-bit products."""
    w1 = tf.Variable(numbers(64, 32, seed=1) / 8, name="w1")
    w2 = tf.Variable(numbers(32, 10, seed=2) / 6, name="w2")

    @tf.function(input_signature=[tf.TensorSpec([None, 64], tf.float32, "x")])
    def predict(x):
        return tf.nn.softmax(tf.nn.relu(x @ w1) @ w2)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, "x")])
    def curves(x):
        return (tf.sin(x * 30.0), tf.exp(x), tf.math.lgamma(tf.abs(x) + 0.1), tf.floor(x * 3.0), tf.round(x * 5.0),
                tf.math.erf(x), tf.pow(tf.abs(x), 1.7))

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float64, "x")])
    def wide(x):
        return tf.sin(x * 30.0), tf.exp(x), tf.math.log1p(tf.abs(x)), tf.tanh(x)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, "x"), tf.TensorSpec([], tf.int32, "n")])
    def loop(x, n):
        total = tf.zeros([])
        for i in tf.range(n):
            total += x[i] * tf.cast(i, tf.float32)
        half = tf.cast(tf.cast(x, tf.float16) * 2.0, tf.float32)
        return total, half, tf.random.stateless_uniform([6], [n, 5], minval=0, maxval=1 << 40, dtype=tf.int64)

    filters = tf.Variable(numbers(3, 2, 3, 20, seed=6) / 4, name="filters")

    @tf.function(input_signature=[tf.TensorSpec([None, 20, 7, 3], tf.float32, "x")])
    def windows(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.nn.conv2d(x, filters, [2, 1], "SAME")
            z = tf.nn.conv2d(x, filters[:, :, :, :5], 1, "VALID")
            loss = tf.reduce_sum(y * y) + tf.reduce_sum(z * z)
        return y, z, *tape.gradient(loss, [x, filters])
    return {"predict": predict, "curves": curves, "wide": wide, "loop": loop, "windows": windows}


X, CURVE, WIDE = numbers(9, 64), numbers(50, seed=3), numbers(50, seed=4).astype(np.float64)
CALLS = {
    "predict": ([X], [(F32, 2)]), "curves": ([CURVE], [(F32, 1)] * 7), "wide": ([WIDE], [(np.float64, 1)] * 4),
    "loop": ([CURVE, np.array(20, I32)], [(F32, 0), (F32, 1), (np.int64, 1)]),
    "windows": ([numbers(3, 20, 7, 3, seed=7)], [(F32, 4)] * 4)}


@pytest.fixture(scope="module")
def made():
    return functions()


def expected(made, name):
    actual = made[name](*CALLS[name][0])
    return [t.numpy() for t in (actual if isinstance(actual, tuple) else (actual,))]


def ulps(actual, wanted, least=2.0**-8):
    """How far results are from others, in units of the last place of what was wanted, at the scale of the whole: of at
    least that share of the largest."""
    unit = np.spacing(np.maximum(np.abs(wanted), np.abs(wanted).max() * least).astype(wanted.dtype))
    return np.max(np.abs(actual.astype(np.float64) - wanted.astype(np.float64)) / unit, initial=0.0)


def compare(made, name, actual, exact):
    for got, want in zip(actual, expected(made, name), strict=True):
        if exact or want.dtype.kind != "f":
            np.testing.assert_array_equal(got, want)
        else:
            # In sums of products with either sign, what rounding loses is of the size of the terms.
            assert got.shape == want.shape and ulps(got, want, 1.0 if name == "windows" else 2.0**-8) <= 4


@pytest.mark.parametrize(("cpu", "exact"), [(None, False), ("x86-64-v3", True), ("x86-64-v4", True)])
def test_levels_of_x86_64(made, tmp_path, cpu, exact):
    if not _runs(cpu):
        pytest.skip("this processor is none of the level")
    library = tf.export.native(made, tmp_path / "libm.so", target="x86_64-linux", cpu=cpu)
    for name, (inputs, outputs) in CALLS.items():
        actual = Library(library.path, "m").call(name, inputs, outputs)
        compare(made, name, actual, exact or name == "curves")  # float32 is exact without instructions for it


def _runs(cpu):
    if platform.machine() != "x86_64" or platform.system() != "Linux":
        return False
    flags = set(Path("/proc/cpuinfo").read_text().split())
    return {"x86-64-v3": {"avx2", "fma"}, "x86-64-v4": {"avx512f", "avx512vl"}}.get(cpu, set()) <= flags


@needs_zig
@pytest.mark.skipif(platform.system() != "Linux", reason="LLD makes libraries of Linux")
def test_host_library_without_a_compiler(made, tmp_path, monkeypatch):
    monkeypatch.setattr(link, "_compiler", lambda: None)
    library = tf.export.native({"predict": made["predict"]}, tmp_path / "libm.so")
    compare(made, "predict", Library(library.path, "m").call("predict", *CALLS["predict"]), True)


@needs_zig
def test_aarch64_runs_with_the_same_bits(made, tmp_path):
    pytest.importorskip("unicorn")
    library = tf.export.native(made, tmp_path / "libm.so", target="aarch64-linux")
    cpu = Arm64(library.path)
    for name, (inputs, outputs) in CALLS.items():
        compare(made, name, cpu.run("m", name, inputs, outputs), True)
    with pytest.raises(RuntimeError, match="an index is out of range"):
        cpu.run("m", "loop", [CURVE, np.array(51, I32)], CALLS["loop"][1])


RUN = """
import fs from "node:fs";
import { load, NativeError } from "./m.mjs";
const here = (name) => new URL(name, import.meta.url);
const library = await load(fs.readFileSync(here("m.wasm")));
const { calls, kinds } = JSON.parse(fs.readFileSync(here("calls.json")));
const read = (array, data) => globalThis[array].from(data);
const results = {};
for (const [name, inputs] of Object.entries(calls)) {
  const given = Object.fromEntries(Object.entries(inputs).map(([key, { array, data, shape }]) =>
    [key, { data: read(array, data), shape }]));
  const found = library[name](given);
  results[name] = Object.values(found).map(({ data, shape }) =>
    ({ bytes: Buffer.from(data.buffer).toString("base64"), shape }));
}
let error = null;
try {
  library.loop({ x: new Float32Array(3), n: { data: new Int32Array([4]), shape: [] } });
} catch (e) {
  error = { native: e instanceof NativeError, kind: e.kind, message: e.message };
}
console.log(JSON.stringify({ results, error }));
"""
ARRAYS = {"float32": "Float32Array", "float64": "Float64Array", "int32": "Int32Array"}


@needs_zig
@needs_node
def test_webassembly_in_node(made, tmp_path):
    library = tf.export.native(made, tmp_path / "m.wasm", target="wasm32")
    assert library.loader == tmp_path / "m.mjs"
    calls = {}
    for name, (inputs, _) in CALLS.items():
        calls[name] = {key: {"array": ARRAYS[a.dtype.name], "data": a.reshape(-1).tolist(), "shape": a.shape}
                       for key, a in zip(("x", "n"), inputs, strict=False)}
    (tmp_path / "calls.json").write_text(json.dumps({"calls": calls, "kinds": {}}))
    (tmp_path / "run.mjs").write_text(RUN)
    done = subprocess.run(["node", str(tmp_path / "run.mjs")], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    for name, (_, outputs) in CALLS.items():
        actual = [_array(r, dtype) for r, (dtype, _) in zip(told["results"][name], outputs, strict=True)]
        compare(made, name, actual, name == "curves")
    assert told["error"]["native"] and told["error"]["kind"] == "invalid_argument"
    assert "gather: an index is out of range" in told["error"]["message"]


def _array(result, dtype):
    import base64
    return np.frombuffer(base64.b64decode(result["bytes"]), dtype).reshape(result["shape"])


STATE = """
import fs from "node:fs";
import { load } from "./count.mjs";
const here = (name) => new URL(name, import.meta.url);
const weights = new Uint8Array(fs.readFileSync(here("count.safetensors")));
const library = await load(fs.readFileSync(here("count.wasm")), weights);
const one = library.newState(), two = library.newState();
const big = new Float32Array(1 << 18).fill(0.5);
for (let i = 0; i < 3; i++) library.add({ x: new Float32Array([1, 2, i]) }, one);
const { output } = library.total({ x: big }, one);
const values = (state) => [...state.values().w.data];
console.log(JSON.stringify([values(one), values(two), output.data[0]]));
"""


@needs_zig
@needs_node
def test_state_and_weights_in_node(tmp_path):
    w = tf.Variable([1.0, 2.0, 3.0], name="w")
    fixed = tf.Variable(numbers(100), name="fixed")

    @tf.function(input_signature=[tf.TensorSpec([3], tf.float32, "x")])
    def add(x):
        w.assign_add(x)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, "x")])
    def total(x):
        return tf.reduce_sum(x) + tf.reduce_sum(w) + 0.0 * fixed[0]
    tf.export.native({"add": add, "total": total}, tmp_path / "count.wasm", target="wasm32", weights="file")
    (tmp_path / "run.mjs").write_text(STATE)
    done = subprocess.run(["node", str(tmp_path / "run.mjs")], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [[4.0, 8.0, 6.0], [1.0, 2.0, 3.0], (1 << 17) + 18.0]


def test_types_of_the_loader(tmp_path):
    from twofold.codegen.native_entry import Member
    from twofold.export.wasm import _layout
    rows, size = _layout([Member("a", (), tf.float32), Member("b", (2, 3), tf.int64), Member("c", (), tf.bool)])
    assert [(r["at"], r["array"]) for r in rows] == [(0, "Float32Array"), (8, "BigInt64Array"), (32, "Uint8Array")]
    assert size == 40


# -- structure ----------------------------------------------------------------------------------------
ELF = {"x86_64-linux": 62, "aarch64-linux": 183}
COFF, MACHO = 0x8664, {"x86_64-macos": 0x01000007, "aarch64-macos": 0x0100000C}


@pytest.mark.parametrize("target", [*ELF, "x86_64-windows", *MACHO, "wasm32"])
def test_object_files(made, tmp_path, target):
    path = tf.export.native({"predict": made["predict"]}, tmp_path / "m.o", target=target).path
    code = path.read_bytes()
    if target in ELF:
        assert code[:6] == b"\x7fELF\x02\x01" and struct.unpack_from("<HH", code, 16) == (1, ELF[target])
    elif target in MACHO:
        assert struct.unpack_from("<II", code) == (0xFEEDFACF, MACHO[target]) and b"_m_predict\0" in code
    elif target == "wasm32":
        assert code[:8] == b"\0asm\1\0\0\0"
    else:
        assert struct.unpack_from("<H", code)[0] == COFF
    assert b"m_predict_sizes" in code and b"m_strerror" in code


@needs_zig
def test_windows_library(made, tmp_path):
    code = tf.export.native({"predict": made["predict"]}, tmp_path / "m.dll", target="x86_64-windows").path.read_bytes()
    header, = struct.unpack_from("<I", code, 0x3C)
    assert code[:2] == b"MZ" and code[header:header + 4] == b"PE\0\0"
    machine, sections, _, _, _, optional, flags = struct.unpack_from("<HHIIIHH", code, header + 4)
    assert machine == COFF and flags & 0x2000  # a library
    directory, _ = struct.unpack_from("<II", code, header + 24 + 112)  # exports
    for n in range(sections):
        size, address, length, offset = struct.unpack_from("<IIII", code, header + 24 + optional + 40 * n + 8)
        if address <= directory < address + size:
            break
    count, _, names, _ = struct.unpack_from("<IIII", code, offset + directory - address + 24)
    table = struct.unpack_from(f"<{count}I", code, offset + names - address)
    actual = [code[(at := offset + n - address):code.index(0, at)].decode() for n in table]
    assert actual == ["m_abi", "m_interface", "m_predict", "m_predict_sizes", "m_strerror"] and length


@needs_zig
@pytest.mark.parametrize("target", MACHO)
def test_macos_library(made, tmp_path, target):
    """A dynamic library that names itself and needs the system's library alone."""
    library = tf.export.native({"predict": made["predict"]}, tmp_path / "m.dylib", target=target)
    code = library.path.read_bytes()
    magic, machine, _, kind, count = struct.unpack_from("<IIIII", code)
    assert (magic, machine, kind) == (0xFEEDFACF, MACHO[target], 6) and b"_m_predict" in code
    at, names = 32, []
    for _ in range(count):
        command, size = struct.unpack_from("<II", code, at)
        if command in (0xC, 0xD):  # what it needs, and its own name
            start, = struct.unpack_from("<I", code, at + 8)
            names.append(code[at + start:at + size].rstrip(b"\0").decode())
        at += size
    assert sorted(names) == ["/usr/lib/libSystem.B.dylib", "@rpath/m.dylib"]


def test_static_library_for_macos_has_an_index(made, tmp_path):
    code = tf.export.native({"predict": made["predict"]}, tmp_path / "m.a", target="aarch64-macos").path.read_bytes()
    assert code.startswith(b"!<arch>\n#1/12 ")
    at = 8
    members = []
    while at < len(code):
        room, size = int(code[at + 3:at + 16]), int(code[at + 48:at + 58])
        members.append((code[at + 60:at + 60 + room].rstrip(b"\0").decode(), at, code[at + 60 + room:at + 60 + size]))
        at += 60 + size + size % 2
    (index, _, table), (name, start, body) = members
    assert (index, name) == ("__.SYMDEF", "m.o") and body[:4] == b"\xcf\xfa\xed\xfe" and (start + 60) % 4 == 0
    length, = struct.unpack_from("<I", table)
    places = {struct.unpack_from("<II", table, 4 + n)[1] for n in range(0, length, 8)}
    assert places == {start} and b"_m_predict\0" in table
