"""Saved models that were made to harm: how they are put together, and what reads them under watch.

`rewritten` changes files of a saved model and makes a manifest that fits, so that what is tested is what comes after
checksums. `watched` loads directories in children with little memory and time, and tells how each ended.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from quick.start import python

from twofold.saved_model import directory

SECONDS = 10  # of processor time
MEMORY = 512 << 20  # bytes beyond what the process has at its start

_WATCH = f'''
import os, resource, signal, sys, time
import twofold as tf
from twofold.saved_model import loading

page = resource.getpagesize()
for line in sys.stdin:
    read, write = os.pipe()
    child = os.fork()
    if not child:
        used = int(open("/proc/self/statm").read().split()[0]) * page
        resource.setrlimit(resource.RLIMIT_AS, (used + {MEMORY}, used + {MEMORY}))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.setitimer(signal.ITIMER_PROF, {SECONDS})
        try:
            tf.saved_model.load(line.rstrip("\\n"))
            told = "loaded"
        except tf.errors.OpError as e:
            told = f"{{type(e).__name__}}: {{e}}"
        except BaseException as e:
            told = f"!{{type(e).__name__}}: {{e}}"
        os.write(write, told[:400].encode())
        os._exit(0)
    os.close(write)
    told = b"".join(iter(lambda: os.read(read, 4096), b"")).decode("utf-8", "replace")
    os.close(read)
    ended = os.waitpid(child, 0)[1]
    print(" ".join(told.split()) if not ended else f"!killed by signal {{ended & 127}}", flush=True)
'''


def watched(folders: list[Path]) -> list[str]:
    """How the loading of each ended: "loaded", "CLASS: TEXT" of a `tf.errors` error, or "!" and what must not be."""
    done = subprocess.run(python("-c", _WATCH), input="\n".join(map(str, folders)), capture_output=True,
                          text=True, timeout=60 + SECONDS * len(folders))
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a saved model."""
    return json.loads((folder / "manifest.json").read_text())


def data_of(folder: Path) -> Path:
    """The data folder of a saved model."""
    return folder / manifest(folder)["data"]


def put_manifest(folder: Path, body: dict[str, Any]) -> None:
    """Write a manifest with a checksum that fits."""
    body.pop("checksum", None)
    body["checksum"] = hashlib.sha256(directory._dumped(body)).hexdigest()
    (folder / "manifest.json").write_bytes(directory._dumped(body))


def rewritten(folder: Path, files: dict[str, bytes], **changes: Any) -> None:
    """Change files of a saved model and entries of its manifest, which fits afterwards."""
    body = manifest(folder)
    for name, data in files.items():
        path = folder / body["data"] / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_bytes(data)
        body["files"][name] = {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    body["files"] = dict(sorted(body["files"].items()))
    body.update(changes)
    put_manifest(folder, body)


def edited(folder: Path, edit: Callable[[dict[str, Any]], Any]) -> None:
    """Change `objects.json` by a function of what is in it."""
    body = json.loads((data_of(folder) / "objects.json").read_text())
    edit(body)
    rewritten(folder, {"objects.json": json.dumps(body).encode()})


def graph_of(folder: Path, name: str) -> str:
    """The path in the data folder of the graph of a function."""
    body = json.loads((data_of(folder) / "objects.json").read_text())
    return next(entry["graph"] for entry in body["concrete"] if entry["name"] == name)


def regraphed(folder: Path, name: str, edit: Callable[[str], str]) -> None:
    """Change the graph of a function by a function of its text."""
    path = graph_of(folder, name)
    old = (data_of(folder) / path).read_text()
    new = edit(old)
    assert new != old
    rewritten(folder, {path: new.encode()})


_RUN = f'''
import os, resource, signal, sys
import numpy as np
import twofold as tf
from twofold.ir.spec import TensorSpec
from twofold.saved_model.graphs import text_to_graph
from twofold.tracer.restored import restore_trace

for text in sys.stdin.read().split("\\n---\\n"):
    sys.stdout.flush()
    child = os.fork()
    if not child:
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + 4 * {MEMORY}, used + 4 * {MEMORY}))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.setitimer(signal.ITIMER_PROF, {SECONDS})
        told = ""
        try:
            graph = text_to_graph(text, 1, "<model>")
            specs = [TensorSpec(v.dims, v.dtype) for v in graph.inputs]
            found = restore_trace("f", graph, [], (tuple(specs), {{}}), [
                (f"a{{n}}", "POSITIONAL_OR_KEYWORD", s) for n, s in enumerate(specs)],
                tuple(TensorSpec(v.dims, v.dtype) for v in graph.outputs), [])
            told = "not accepted"
            for big in (3, 5_000_000):  # the second of two sizes is the large one
                sizes = {{name: big if n else 3 for n, name in enumerate(sorted(graph.symbols()))}}
                given = [tf.cast(tf.ones([d if type(d) is int else d.evaluate(sizes) for d in s.dims]), s.dtype)
                         for s in specs]
                if found.accepts([x.dims for x in given]) is not None:
                    with tf.GradientTape() as tape:
                        tape.watch([x for x in given if x.dtype.is_floating])
                        result = found(given)
                    tape.gradient(result, [x for x in given if x.dtype.is_floating])
                    told = "ran"
        except (ValueError, TypeError, KeyError, IndexError, AttributeError, ArithmeticError, RuntimeError,
                AssertionError, MemoryError) as e:
            told += f" {{type(e).__name__}}: {{e}}"
        os.write(1, (" ".join(told.split())[:300] + "\\n").encode())
        os._exit(0)
    ended = os.waitpid(child, 0)[1]
    if ended and ended & 127 != signal.SIGPROF:  # a loop may run for ever if its graph says so
        os.write(1, f"!killed by signal {{ended & 127}}\\n".encode())
    elif ended:
        os.write(1, b"slow\\n")
'''


def survived(texts: list[str]) -> list[str]:
    """How calls of functions with these graphs ended, with small tensors and with large ones, and their gradients."""
    done = subprocess.run(python("-c", _RUN), input="\n---\n".join(texts), capture_output=True, text=True,
                          timeout=60 + SECONDS * len(texts))
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()
