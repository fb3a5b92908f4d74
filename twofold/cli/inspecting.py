"""`twofold inspect DIR`: the contents of a saved model, or of an ONNX file, none of which is run."""

from __future__ import annotations

import argparse
import os
from collections import Counter
from typing import TYPE_CHECKING, Any

from .common import Misuse, amount, say, say_json, sizes_of, table
from .models import Entry, check_sizes, dims_of, entries, read, shape_text, signature

if TYPE_CHECKING:
    from twofold.ir.dims import DimLike
    from twofold.saved_model.reader import SavedModel

__all__ = ["add", "run"]


def add(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument("dir", metavar="DIR", help="the folder of a saved model (tf.saved_model.save), or an ONNX "
                        "file")
    parser.add_argument("--size", metavar="NAME=N", action="append", default=[],
                        help="what a size is that signatures leave open, for the memory plan; may be repeated")


def run(args: argparse.Namespace) -> None:
    """Print the contents of a saved model, or of an ONNX file."""
    sizes = sizes_of(args.size)
    if args.dir.endswith(".onnx") and not os.path.isdir(args.dir):
        if sizes:
            raise Misuse("--size is for the memory plan of a saved model")
        _inspect_onnx(args)
        return
    model = read(args.dir)
    check_sizes(entries(model), sizes)
    document = _about(model, sizes)
    if args.json:
        say_json(document)
    else:
        _print(document)


def _about(model: SavedModel, sizes: dict[str, int]) -> dict[str, Any]:
    files = {name: size for name, (size, _) in model.manifest.files.items()}
    return {
        "path": os.path.abspath(model.path), "twofold": model.manifest.twofold, "op_set": model.manifest.op_set,
        "bytes": sum(files.values()), "files": files,
        "functions": [_entry(e, sizes) for e in entries(model)],
        "variables": [{"name": (v.paths or [v.name])[0], "dtype": v.dtype.name, "shape": list(v.value.shape),
                       "bytes": v.value.nbytes, "trainable": v.trainable} for v in model.variables.values()],
        "assets": [os.path.basename(path) for path in model.assets.values()],
    }


def _entry(entry: Entry, sizes: dict[str, int]) -> dict[str, Any]:
    graph = entry.function.graph
    ops = Counter(node.op.name for node in graph.walk())
    return {
        "name": entry.name, "kind": entry.kind, "text": signature(entry),
        "inputs": [_tensor(name, spec, dims) for (name, spec), dims in zip(entry.inputs, dims_of(entry), strict=True)],
        "outputs": [_tensor(name, spec, v.dims)
                    for (name, spec), v in zip(entry.outputs, graph.outputs, strict=False)],
        "assigns": [(v.paths or [v.name])[0] for v in entry.function.updates],
        "nodes": sum(ops.values()), "ops": dict(ops.most_common()), "memory": _memory(entry, sizes),
    }


def _tensor(name: str, spec: Any, dims: Any) -> dict[str, Any]:
    return {"name": name, "dtype": spec.dtype.name, "shape": [d if isinstance(d, int) else str(d) for d in dims]}


def _memory(entry: Entry, sizes: dict[str, int]) -> dict[str, Any]:
    """The memory that a call needs besides its arguments, in bytes, or as expressions in the sizes that are unknown."""
    from twofold.ir import dims as dm
    from twofold.ir import passes
    from twofold.tracer.kernels import kernels_of

    graph = entry.function.graph.copy()
    passes.optimise(graph)
    kernels, plans = kernels_of(graph)
    scratch: DimLike = 0
    for plan in plans:
        scratch = scratch + plan.arena
    made: DimLike = 0
    for value in graph.outputs:
        made = made + dm.numel(value.dims) * value.dtype.size
    known = {name: dm.substitute((size,), sizes)[0] for name, size in (("scratch", scratch), ("outputs", made))}
    return {"kernels": len(kernels), "python_calls": len(plans) - 1 if plans else len(graph.nodes),
            **{name: size if isinstance(size, int) else str(size) for name, size in known.items()}}


def _print(document: dict[str, Any]) -> None:
    variables = document["variables"]
    held = sum(v["bytes"] for v in variables)
    say(document["path"], f"  {amount(document['bytes'])} in {len(document['files'])} files, written by twofold "
        f"{document['twofold']}, op set {document['op_set']}", "")
    for kind, title in (("signature", "signatures"), ("function", "functions")):
        chosen = [f for f in document["functions"] if f["kind"] == kind]
        say(title, *([] if chosen else ["  none"]))
        for f in chosen:
            ops = ", ".join(f"{name} {count}" for name, count in f["ops"].items())
            say(f"  {f['text']}", f"    {f['nodes']} nodes: {ops}", f"    {_plan_text(f['memory'])}")
            if f["assigns"]:
                say(f"    assigns {', '.join(f['assigns'])}")
        say("")
    say(f"variables: {len(variables)}, {amount(held)}",
        *table([(v["name"], v["dtype"], str(v["shape"]), amount(v["bytes"]), "" if v["trainable"] else "not trainable")
                for v in variables], right=(3,)))
    if document["assets"]:
        say("", "assets", *[f"  {name}" for name in document["assets"]])


def _plan_text(plan: dict[str, Any]) -> str:
    def told(size: Any) -> str:
        return amount(size) if isinstance(size, int) else f"{size} bytes"
    text = (f"{plan['kernels']} kernels, {told(plan['scratch'])} of memory between them, "
            f"{told(plan['outputs'])} of results")
    return text if not plan["python_calls"] else f"{text}; Python runs in between"


# -- ONNX files ---------------------------------------------------------------------------------------
def _inspect_onnx(args: argparse.Namespace) -> None:
    from twofold.onnx_files.describe import describe

    document = describe(args.dir)
    if args.json:
        say_json(document)
        return
    opsets = ", ".join(f"{domain} {version}" for domain, version in document["opsets"].items())
    say(document["path"], f"  {amount(document['bytes'])}, written by {document['producer'] or 'an unknown program'}, "
        f"IR version {document['ir_version']}, operators of {opsets}", "")
    say(document["name"] + (f"  {document['doc']}" if document["doc"] else ""))
    tensors = [(kind[:-1], v) for kind in ("inputs", "outputs") for v in document[kind]]
    say(*table([(kind, v["name"], v["dtype"], "?" if v["shape"] is None else shape_text(v["shape"]),
                 "has a default" if v.get("default") else "") for kind, v in tensors]))
    operators = ", ".join(f"{name} {count}" for name, count in document["operators"].items())
    say(f"  {document['nodes']} nodes: {operators}", "")
    held = document["initializers"]
    say(f"initializers: {len(held)}, {amount(sum(t['bytes'] or 0 for t in held))}",
        *table([(t["name"], t["dtype"], str(t["shape"]), "" if t["bytes"] is None else amount(t["bytes"]),
                 "" if t["file"] is None else f"in {t['file']}") for t in held], right=(3,)))
    for title in ("functions", "properties"):
        if document[title]:
            told = document[title]
            rows = [(k, told[k]) for k in told] if isinstance(told, dict) else [(name,) for name in told]
            say("", title, *table(rows))
