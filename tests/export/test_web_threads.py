"""WebAssembly libraries whose calls share work among workers: bits, errors, ends, and pages with and without them."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli import browser
from local_server import serving
from quick.start import python

import twofold as tf

pytestmark = pytest.mark.skipif(importlib.util.find_spec("ziglang") is None, reason="the package ziglang is not there")
needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="there is no Node.js")

ROWS, LENGTH = 200, 30011
NUMBERS = np.random.default_rng(5)
# Small integers, whose sums are exact in any order; and numbers whose sums are not.
WHOLE = [NUMBERS.integers(-9, 10, (ROWS, ROWS)).astype(np.float32) for _ in range(2)]
CURVE = NUMBERS.standard_normal(LENGTH).astype(np.float32)
ISOLATED = {"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Embedder-Policy": "require-corp"}


def functions() -> dict[str, Any]:
    total = tf.Variable(tf.zeros([ROWS, ROWS]), name="total")
    square = tf.TensorSpec([ROWS, ROWS], tf.float32, "x")
    curve = tf.TensorSpec([None], tf.float32, "x")

    @tf.function(input_signature=[square, tf.TensorSpec([ROWS, ROWS], tf.float32, "y")])
    def product(x, y):
        return {"product": tf.nn.relu(x @ y), "shares": tf.nn.softmax(tf.sin(x) @ tf.cos(y))}

    @tf.function(input_signature=[curve])
    def wave(x):
        return {"wave": tf.exp(tf.sin(x)), "sum": tf.reduce_sum(x)}

    @tf.function(input_signature=[square])
    def rounds(x):
        for _ in tf.range(5):
            x = tf.tanh(x * 1.5) + 0.25
        return x

    @tf.function(input_signature=[curve, tf.TensorSpec([None], tf.int32, "at")])
    def pick(x, at):
        return tf.gather(x, at)

    @tf.function(input_signature=[square])
    def close(x):  # a name that loaded libraries have
        total.assign_add(x)
        return tf.reduce_sum(total)
    return {"product": product, "wave": wave, "rounds": rounds, "pick": pick, "close": close}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """What is exported for up to four threads, and what it is given."""
    made = tf.export.web(functions(), tmp_path_factory.mktemp("threads") / "many", threads=4)
    assert made.functions == ("product", "wave", "rounds", "pick", "close_")
    for name, values in (("x", WHOLE[0]), ("y", WHOLE[1]), ("curve", CURVE)):
        (made.path.parent / f"{name}.bin").write_bytes(values.tobytes())
    (made.path.parent / "plain.html").write_text("<!doctype html><title>A page without a policy</title>")
    return made.path.parent


# What Node.js and the browser do alike: each function of a library, and its results as text.
CALLS = f"""
const square = (data) => ({{ data, shape: [{ROWS}, {ROWS}] }});
const at = Int32Array.from({{ length: {LENGTH} }}, (_, n) => (n * 7919) % {LENGTH});
function all(library, {{ x, y, curve }}) {{
  const found = [library.product({{ x: square(x), y: square(y) }}), library.wave({{ x: curve }}),
    library.rounds({{ x: square(x) }}), library.pick({{ x: curve, at }})];
  const state = library.newState();
  for (let n = 0; n < 2; n++) found.push(library.close_({{ x: square(x) }}, state));
  return found.flatMap((results) => Object.values(results).map(({{ data }}) => data)).concat(state.values().total.data);
}}
const same = (a, b) => a.length === b.length && a.every((data, n) => data.length === b[n].length
  && new Int32Array(data.buffer).every((word, k) => word === new Int32Array(b[n].buffer)[k]));
"""
NODE = """
import fs from "node:fs";
import { load, NativeError } from "./many.mjs";
const here = (name) => new URL(name, import.meta.url);
const read = (name) => new Float32Array(new Uint8Array(fs.readFileSync(here(`${name}.bin`))).buffer);
const bytes = fs.readFileSync(here("many.wasm")), given = { x: read("x"), y: read("y"), curve: read("curve") };
const tasks = () => (fs.existsSync("/proc/self/task") ? fs.readdirSync("/proc/self/task").length : 0);
const told = { threads: [], same: [], errors: [] };
const alone = await load(bytes, { threads: 1 }), first = all(alone, given);
fs.writeFileSync(here("results.bin"), Buffer.concat(first.map((data) => Buffer.from(data.buffer))));
const before = tasks(), two = await load(bytes, { threads: 2 }), four = await load(bytes, { threads: 9 });
const compiled = await load(await WebAssembly.compile(bytes));
told.threads = [alone.threads, two.threads, four.threads, compiled.threads];
for (let n = 0; n < 3; n++) for (const library of [two, four, compiled]) {
  told.same.push(same(first, all(library, given)));
}
for (const library of [alone, four]) {
  at[LENGTH - 5] = LENGTH;
  at[LENGTH >> 1] = -1;
  try {
    library.pick({ x: given.curve, at });
  } catch (error) {
    told.errors.push([error instanceof NativeError, error.message]);
  }
}
at[LENGTH - 5] = ((LENGTH - 5) * 7919) % LENGTH;
at[LENGTH >> 1] = ((LENGTH >> 1) * 7919) % LENGTH;
four.close();
four.close();
alone.close();
told.closed = [four.threads, same(first, all(four, given)), same(first, all(two, given))];
two.close();
for (let n = 0; n < 500 && tasks() > before; n++) await new Promise((done) => setTimeout(done, 10));
told.ended = tasks() <= before;
for (const threads of [0, 1.5, "2"]) await load(bytes, { threads }).catch((error) => told.errors.push(error.message));
const left = await load(bytes, { threads: 2 });  // which nobody closes
told.left = left.threads;
console.log(JSON.stringify(told));
""".replace("LENGTH", str(LENGTH))


@needs_node
def test_bits_are_those_of_one_thread(folder):
    (folder / "run.mjs").write_text(CALLS + NODE)
    done = subprocess.run(["node", folder / "run.mjs"], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    assert told["threads"] == [1, 2, 4, 1] and told["same"] == [True] * 9
    assert told["closed"] == [1, True, True] and told["ended"] and told["left"] == 2
    (one, text), (several, again), *refused = told["errors"]
    assert one and several and text == again and "an index is out of range" in text
    assert refused == [f"many: threads must be an integer from 1 on; got {n}" for n in ("0", "1.5", "2")]
    found = np.frombuffer((folder / "results.bin").read_bytes(), np.float32)
    x, y = (values.astype(np.float64) for values in WHOLE)
    size = ROWS * ROWS
    np.testing.assert_array_equal(found[:size].reshape(ROWS, ROWS), np.maximum(x @ y, 0))
    np.testing.assert_allclose(found[size:2 * size].reshape(ROWS, ROWS).sum(1), 1, rtol=1e-5)
    assert found[2 * size] == tf.reduce_sum(CURVE).numpy()
    wave = found[2 * size + 1:2 * size + 1 + LENGTH]
    np.testing.assert_allclose(wave, np.exp(np.sin(CURVE.astype(np.float64))), rtol=1e-6)
    np.testing.assert_array_equal(wave, tf.exp(tf.sin(CURVE)).numpy())
    at = 2 * size + LENGTH + 1
    np.testing.assert_array_equal(found[at + size:at + size + LENGTH],
                                  CURVE[np.arange(LENGTH) * 7919 % LENGTH])
    np.testing.assert_array_equal(found[at + size + LENGTH:at + size + LENGTH + 2], [x.sum(), 2 * x.sum()])
    np.testing.assert_array_equal(found[-size:].reshape(ROWS, ROWS), 2 * x)


LOST = """
import fs from "node:fs";
import { load } from "./lost.mjs";
const library = await load(fs.readFileSync(new URL("many.wasm", import.meta.url)), { threads: 2 });
const x = { data: new Float32Array(ROWS * ROWS).fill(1), shape: [ROWS, ROWS] }, told = [library.threads];
for (let n = 0; n < 10000 && told.length < 2; n++) {
  try {
    library.product({ x, y: x });
  } catch (error) {
    told.push(error.message);
  }
}
told.push(library.threads, library.product({ x, y: x }).product.data.every((sum) => sum === ROWS));
console.log(JSON.stringify(told));
""".replace("ROWS", str(ROWS))


@needs_node
def test_a_worker_that_fails_is_told(folder):
    """One whose stack is none: calls go on without it."""
    loader = (folder / "many.mjs").read_text()
    line = "exports.__stack_pointer.value = stack;"
    assert loader.count(line) == 1
    (folder / "lost.mjs").write_text(loader.replace(line, "exports.__stack_pointer.value = 16;"))
    (folder / "run_lost.mjs").write_text(LOST)
    done = subprocess.run(["node", folder / "run_lost.mjs"], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == [2, "many_product: a worker failed", 1, True]


@needs_node
def test_workers_that_do_not_begin_are_left_out(folder):
    loader = (folder / "many.mjs").read_text()
    (folder / "late.mjs").write_text(loader.replace('tell("ready");', 'throw new Error("not today");'))
    (folder / "run_late.mjs").write_text(LOST.replace("lost", "late").replace("10000", "1"))
    done = subprocess.run(["node", folder / "run_late.mjs"], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == [1, 1, True]


BROWSER = """
(async () => {
  const { load } = await import("./many.mjs");
  const read = async (name) => new Float32Array(await (await fetch(`${name}.bin`)).arrayBuffer());
  const given = { x: await read("x"), y: await read("y"), curve: await read("curve") };
  const several = await load(await fetch("many.wasm"), { threads: 3 });
  const alone = await load(await fetch("many.wasm"), { threads: 1 }), first = all(alone, given);
  const told = [crossOriginIsolated, several.threads, same(first, all(several, given))];
  several.close();
  return [...told, several.threads, same(first, all(several, given))];
})()
"""
TIMES = "[...document.querySelectorAll('.time')].map((e) => e.innerText).filter((text) => text)"


def test_pages_share_work_where_they_are_isolated(folder):
    program = browser.find()
    if program is None:
        pytest.skip("no Chromium on this machine")
    with browser.opened(program, "127.0.0.1") as page:
        for headers in (ISOLATED, {}):
            with serving(folder, headers) as (address, _):
                page.open(f"{address}plain.html")
                page.run(f"{CALLS} undefined")
                assert page.run(BROWSER) == [bool(headers), 3 if headers else 1, True, 1, True]
                page.open(f"{address}index.html")
                page.until("document.querySelector('main').getAttribute('aria-busy') === 'false'")
                page.settle()
                threads = min(page.run("navigator.hardwareConcurrency"), 4) if headers else 1
                times = page.run(TIMES)
                assert times and all(text.endswith(f"on {threads} threads" if threads > 1 else " ms") for text in times)
                assert page.run("document.getElementById('failure').innerText") == ""
                assert [text for text in page.complaints() if not text.startswith("asked for ")] == []


# -- what is written -----------------------------------------------------------------------------------
def test_what_is_worth_sharing_decides(tmp_path):
    """A function that does little has no workers, and owns its memory."""
    @tf.function(input_signature=[tf.TensorSpec([8, 8], tf.float32, "x")])
    def small(x):
        return x @ x

    @tf.function(input_signature=[tf.TensorSpec([ROWS, ROWS], tf.float32, "x")])
    def large(x):
        return x @ x
    found = {}
    for name, function, threads in (("small", small, 4), ("large", large, 4), ("alone", large, 1)):
        made = tf.export.web(function, tmp_path / name, threads=threads)
        imports = b"\x03env\x06memory\x02\x01" in made.library.read_bytes()
        found[name] = (imports, "__work" in made.loader.read_text())
        assert "readonly threads: number" in made.types.read_text()
    assert found == {"small": (False, False), "large": (True, True), "alone": (False, False)}
    tf.export.native(large, tmp_path / "native.wasm", target="wasm32", threads=2)
    assert '"threads": 2' in (tmp_path / "native.mjs").read_text()
    with pytest.raises(ValueError, match="threads must be an integer from 1 to 256; got 0"):
        tf.export.web(small, tmp_path / "none", threads=0)
    assert not (tmp_path / "none").exists()


LARGE = """
import pathlib, sys
import twofold as tf
matrices = [tf.Variable(tf.eye(40) * 2.0) for _ in range(60)]

@tf.function(input_signature=[tf.TensorSpec([40, 40], tf.float32, "x")])
def long(x):
    for matrix in matrices:
        x = tf.nn.tanh(x @ matrix) + tf.reduce_sum(x, axis=1, keepdims=True)
    return x

@tf.function(input_signature=[tf.TensorSpec([512, 512], tf.float32, "x")])
def large(x):
    return tf.nn.relu(x @ x)

print(tf.export.native({"long": long, "large": large}, pathlib.Path(sys.argv[1]) / "big.o", target="wasm32").functions)
"""


def test_large_programs_for_one_thread(tmp_path):
    """In a process of its own, which LLVM ended for words of 64 bits with addresses of 32."""
    done = subprocess.run(python("-c", LARGE, tmp_path), capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (0, "('big_long', 'big_large')\n"), done.stderr
