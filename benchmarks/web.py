"""WebAssembly libraries under Node.js: the time of a call on one thread and on several, from one library.

    python benchmarks/web.py [--rounds 300] [--threads 2]

A library that was made for one thread is measured beside it, to see what it costs that work can be shared. Results are
compared bit for bit before anything is timed. Calls take turns, and the least time of each counts, since other
programs may have the cores for a while.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import twofold as tf

_RUN = """
import fs from "node:fs";
import { load as loadAlone } from "./alone/alone.mjs";
import { load } from "./many/many.mjs";
const [rounds, threads] = process.argv.slice(2).map(Number);
const read = (name) => fs.readFileSync(new URL(`${name}/${name}.wasm`, import.meta.url));
const libraries = { alone: await loadAlone(read("alone")), one: await load(read("many"), { threads: 1 }),
  several: await load(read("many"), { threads }) };
if (libraries.several.threads !== threads) throw new Error("too few workers began");
const numbers = (length) => Float32Array.from({ length }, (_, n) => Math.sin(0.37 * n));
const of = (...shape) => ({ data: numbers(shape.reduce((a, b) => a * b)), shape });
const cases = { product: { x: of(512, 512), y: of(512, 512) }, network: { x: of(32, 28, 28, 1) },
  wave: { x: of(100000) } };
const least = {};
for (const [name, inputs] of Object.entries(cases)) {
  const [first, ...others] = Object.values(libraries).map((library) => library[name](inputs).output.data);
  for (const other of others) if (Buffer.compare(Buffer.from(first.buffer), Buffer.from(other.buffer))) {
    throw new Error(`${name}: results differ`);
  }
  least[name] = Object.fromEntries(Object.keys(libraries).map((key) => [key, Infinity]));
  for (let n = 0; n < rounds; n++) for (const [key, library] of Object.entries(libraries)) {
    const began = performance.now();
    library[name](inputs);
    least[name][key] = Math.min(least[name][key], performance.now() - began);
  }
}
console.log(JSON.stringify(least));
"""
_TOLD = {"product": "relu of a 512x512x512 product", "wave": "exp(sin(x)) of 100,000 numbers",
         "network": "a CNN: 32 images of 28x28, two convolutions, two layers"}


def functions() -> dict[str, Any]:
    """What is measured."""
    random = np.random.default_rng(0)

    def weights(*shape: int) -> tf.Variable:
        return tf.Variable(0.1 * random.standard_normal(shape).astype(np.float32))
    first, second, third, last = weights(3, 3, 1, 32), weights(3, 3, 32, 64), weights(7 * 7 * 64, 128), weights(128, 10)

    @tf.function(input_signature=[tf.TensorSpec([512, 512], tf.float32, n) for n in "xy"])
    def product(x: Any, y: Any) -> Any:
        return tf.nn.relu(x @ y)

    @tf.function(input_signature=[tf.TensorSpec([32, 28, 28, 1], tf.float32, "x")])
    def network(x: Any) -> Any:
        for filters in (first, second):
            x = tf.nn.max_pool2d(tf.nn.relu(tf.nn.conv2d(x, filters, 1, "SAME")), 2, 2, "VALID")
        return tf.nn.softmax(tf.nn.relu(tf.reshape(x, [32, -1]) @ third) @ last)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, "x")])
    def wave(x: Any) -> Any:
        return tf.exp(tf.sin(x))
    return {"product": product, "network": network, "wave": wave}


def main() -> None:
    """Print a row for each function."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--threads", type=int, default=2)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder, made = Path(name), functions()
        tf.export.web(made, folder / "alone", threads=1)
        tf.export.web(made, folder / "many", threads=max(chosen.threads, 4))
        (folder / "run.mjs").write_text(_RUN)
        command = ["node", folder / "run.mjs", str(chosen.rounds), str(chosen.threads)]
        least = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    version = subprocess.run(["node", "--version"], check=True, capture_output=True, text=True).stdout.strip()
    print(f"Node.js {version}, {platform.machine()}; milliseconds, the least of {chosen.rounds} calls\n")
    print(f"| function | made for one thread | one thread | {chosen.threads} threads | ratio |")
    print("| --- | --- | --- | --- | --- |")
    for name, times in least.items():
        alone, one, several = (times[key] for key in ("alone", "one", "several"))
        print(f"| {_TOLD[name]} | {alone:.2f} | {one:.2f} | {several:.2f} | {several / one:.2f} |")


if __name__ == "__main__":
    main()
