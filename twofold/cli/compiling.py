"""`twofold compile DIR -o LIBRARY`: a saved model as a library with a C header, by `tf.export.native`."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from .common import amount, doing, say, say_json

__all__ = ["add", "run"]


def add(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument("dir", metavar="DIR", help="the folder of a saved model (tf.saved_model.save)")
    parser.add_argument("-o", "--output", metavar="FILE", required=True,
                        help="the library; the ending says as what: .o, .a, .so, .dylib, .dll or .wasm")
    parser.add_argument("--target", default="host", help="the platform, such as aarch64-linux or wasm32, or a "
                        "triple of LLVM; by default this machine")
    parser.add_argument("--cpu", help="the oldest processor that it is to run on, such as x86-64-v3")
    parser.add_argument("--gradients", action="store_true", help="also a gradient function for each function")
    parser.add_argument("--weights", choices=("embedded", "file"), default="embedded",
                        help="in the library, or in a file beside it")
    parser.add_argument("--threads", type=int, default=1, help="how many threads a call may use, by OpenMP")


def run(args: argparse.Namespace) -> None:
    """Writes the files."""
    from twofold.export import native
    from twofold.saved_model import reader

    reader.read(args.dir)  # tells of a folder that is none before anything is made
    start = time.perf_counter()
    with doing("compiling"):
        made = native(args.dir, args.output, args.target, args.cpu, args.weights, args.gradients, args.threads)
    seconds = time.perf_counter() - start
    files = [Path(p) for p in (made.path, made.header, made.weights, made.loader) if p is not None]
    if args.json:
        say_json({"target": made.target, "functions": list(made.functions), "seconds": seconds,
                  "files": {str(p): p.stat().st_size for p in files}})
        return
    say(*[f"{p}: {amount(p.stat().st_size)}" for p in files],
        f"for {made.target}, in {seconds:.2f} s; functions: {', '.join(made.functions)}")
