"""`twofold graph DIR -o FILE`: a function of a saved model as a page for browsers, an SVG picture, or DOT."""

from __future__ import annotations

import argparse
from pathlib import Path

from .common import Misuse, add_model, amount, doing, say, say_json, sizes_of
from .models import arrays_for, check_sizes, choose, random_arrays, read

__all__ = ["add", "run"]

_ENDINGS = (".html", ".svg", ".dot")


def add(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    add_model(parser)
    parser.add_argument("-o", "--output", metavar="FILE", required=True,
                        help="what to write; the ending says as what: .html, .svg or .dot")
    parser.add_argument("--measure", action="store_true",
                        help="run the function for a moment and show the time of each kernel (.html only)")
    parser.add_argument("--input", metavar="NAME=FILE.npy", action="append", default=[],
                        help="what to measure with; random numbers by default; may be repeated")
    parser.add_argument("--size", metavar="NAME=N", action="append", default=[],
                        help="what a size is that the signature leaves open, for random numbers; may be repeated")


def run(args: argparse.Namespace) -> None:
    """Writes the file."""
    path = Path(args.output)
    if path.suffix not in _ENDINGS:
        raise Misuse(f"--output must end in {', '.join(_ENDINGS)}; got {args.output!r}")
    if (args.measure or args.input) and path.suffix != ".html":
        raise Misuse("only the page (.html) shows times")
    sizes = sizes_of(args.size)
    model = read(args.dir)
    entry = choose(model, args.signature)
    check_sizes([entry], sizes)
    graph = entry.function.graph
    if path.suffix == ".dot":
        text = graph.to_dot() + "\n"
    elif path.suffix == ".svg":
        from twofold.tracer.page.whole import picture_of
        text = picture_of(graph)
    else:
        inputs = None
        if args.measure or args.input:
            inputs = arrays_for(entry, args.input) if args.input else random_arrays(entry, sizes)
            inputs += [captured.value for captured in entry.function.captures]
        with doing("measuring" if inputs else "drawing"):
            text = graph.to_html(inputs=inputs)
    path.write_text(text, encoding="utf-8")
    written = path.stat().st_size
    if args.json:
        say_json({"path": str(path), "bytes": written, "function": entry.name,
                  "nodes": sum(1 for _ in graph.walk())})
    else:
        say(f"{path}: {amount(written)}, {entry.name}, {sum(1 for _ in graph.walk())} nodes")
