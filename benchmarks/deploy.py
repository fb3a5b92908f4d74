"""Measure a library that `tf.export.native` made beside ONNX Runtime: one prediction of the digits classifier, from C.

    python benchmarks/deploy.py                  size, time to load, time of a prediction at batch 1 and 64
    python benchmarks/deploy.py --rounds 50

The classifier is that of `examples/digits.py`: 64 pixels, 128 hidden units, 10 classes. A C program (`deploy.c`) opens
the library and ONNX Runtime's, and calls each in turn on the same weights and the same input, round after round;
results must agree. ONNX Runtime is measured on one thread, as the library runs, and with its default. It is optional:
the packages `onnxruntime` and `onnx` are looked for in the interpreter that TWOFOLD_BENCH_PYTHON_ONNXRUNTIME names, by
default this one. All samples go to build/bench/deploy.json.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
OUT = HERE.parent / "build" / "bench"
PEER = os.environ.get("TWOFOLD_BENCH_PYTHON_ONNXRUNTIME", sys.executable)

# Written to the peer's interpreter: a model of the same weights, and where its library is.
_MODEL = """
import pathlib, sys
import numpy as np, onnx, onnxruntime
from onnx import TensorProto, helper, numpy_helper
folder = pathlib.Path(sys.argv[1])
weights = np.load(folder / "weights.npz")
nodes = [helper.make_node("Gemm", ["x", "w1", "b1"], ["h"]), helper.make_node("Relu", ["h"], ["r"]),
         helper.make_node("Gemm", ["r", "w2", "b2"], ["z"]), helper.make_node("Softmax", ["z"], ["output"], axis=1)]
graph = helper.make_graph(nodes, "digits", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 64])],
                          [helper.make_tensor_value_info("output", TensorProto.FLOAT, ["n", 10])],
                          [numpy_helper.from_array(weights[k], k) for k in weights.files])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
onnx.save(model, folder / "digits.onnx")
found = sorted((pathlib.Path(onnxruntime.__file__).parent / "capi").glob("libonnxruntime.so.*"))
print(found[0] if found else "", onnxruntime.__version__)
"""


def weights() -> dict[str, np.ndarray]:
    """The weights of the classifier."""
    rng = np.random.default_rng(0)
    return {"w1": rng.standard_normal((64, 128)).astype(np.float32) / 8, "b1": np.zeros(128, np.float32),
            "w2": rng.standard_normal((128, 10)).astype(np.float32) / 11, "b2": np.zeros(10, np.float32)}


def exported(folder: Path, values: dict[str, np.ndarray]) -> Any:
    """The library of the classifier."""
    import twofold as tf

    w1, b1, w2, b2 = (tf.Variable(v, name=name) for name, v in values.items())

    @tf.function(input_signature=[tf.TensorSpec([None, 64], tf.float32, "x")])
    def predict(x: Any) -> Any:
        return tf.nn.softmax(tf.nn.relu(x @ w1 + b1) @ w2 + b2)
    return tf.export.native(predict, folder / "libdigits.so")


def peer(folder: Path) -> tuple[list[str], str | None]:
    """What the C program is told of ONNX Runtime, and its version; nothing and None where it is not there."""
    done = subprocess.run([PEER, "-c", _MODEL, str(folder)], capture_output=True, text=True)
    library, _, version = done.stdout.strip().rpartition(" ")
    if done.returncode or not library:
        return [], None
    return [library, str(folder / "digits.onnx")], version


def measure(rounds: int) -> dict[str, Any]:
    """All samples, in seconds by what was measured, and sizes in bytes."""
    values = weights()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        np.savez(folder / "weights.npz", **values)
        library = exported(folder, values)
        program = folder / "deploy"
        subprocess.run(["cc", "-O2", "-std=gnu11", f"-I{folder}", "-o", str(program), str(HERE / "deploy.c"), "-lm",
                        "-ldl"], check=True)
        options, version = peer(folder)
        loads = [_run([program, library.path, "0"])["load library"][0] for _ in range(15)]
        samples = _run([program, library.path, str(rounds), *options])
        held = sum(v.nbytes for v in values.values())
        return {"onnxruntime": version, "machine": platform.processor() or platform.machine(), "load": loads,
                "bytes": {"library": library.path.stat().st_size, "weights": held}, "samples": samples}


def _run(command: list[Any]) -> dict[str, list[float]]:
    seconds_of: dict[str, list[float]] = {}
    for line in subprocess.run([str(c) for c in command], capture_output=True, text=True,
                               check=True).stdout.splitlines():
        name, seconds = line.rsplit(" ", 1)
        seconds_of.setdefault(name, []).append(float(seconds))
    return seconds_of


def table(measured: dict[str, Any]) -> str:
    """The medians, and in brackets the median of twofold's time over the peer's in the same round."""
    size, samples = measured["bytes"], measured["samples"]
    lines = [f"library: {size['library'] - size['weights']:,} bytes beyond {size['weights']:,} bytes of weights",
             f"loads and predicts once in {statistics.median(measured['load']) * 1e3:.2f} ms", "",
             "| batch | twofold | onnxruntime, 1 thread | onnxruntime, default |", "| --- | --- | --- | --- |"]
    for batch in (1, 64):
        ours = samples[f"twofold {batch}"]
        cells = [f"{statistics.median(ours) * 1e6:.2f} us"]
        for peer_name in ("onnxruntime-1-thread", "onnxruntime"):
            theirs = samples.get(f"{peer_name} {batch}")
            if theirs is None:
                cells.append("-")
                continue
            ratio = statistics.median([a / b for a, b in zip(ours, theirs, strict=True)])
            cells.append(f"{statistics.median(theirs) * 1e6:.2f} us ({ratio:.2f})")
        lines.append(f"| {batch} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Measure, print, and keep what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    measured = measure(options.rounds)
    print(table(measured))
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "deploy.json").write_text(json.dumps(measured, indent=1))


if __name__ == "__main__":
    main()
