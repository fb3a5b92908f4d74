"""`twofold export DIR`: a saved model for runtimes other than this one; without `--onnx` it lists what there is."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twofold.ir.errors import OpError

from .common import Misuse, add_model, amount, doing, say, say_json, table
from .models import Entry, choose, entries, read

if TYPE_CHECKING:
    from twofold.saved_model.reader import SavedModel

__all__ = ["add", "run"]

_LIBRARY = "a program in C, C++, Rust or the like"
_NEEDS = {"wasm32": "a browser, Node.js, or a program in C"}


def add(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    add_model(parser)
    parser.add_argument("--onnx", metavar="FILE", help="write a function as an ONNX model, FILE.onnx")
    parser.add_argument("--opset", type=int, metavar="N", help="the version of ONNX's operators; by default the newest "
                        "that is of use")
    parser.add_argument("--no-check", action="store_true", help="do not run the model beside the function")


def run(args: argparse.Namespace) -> None:
    """Writes the model, or lists the targets."""
    model = read(args.dir)
    if args.onnx is None:
        if args.opset is not None or args.no_check:
            raise Misuse("--opset and --no-check are for --onnx FILE.onnx")
        _list(model, args)
        return
    entry = choose(model, args.signature)
    with doing("exporting"):
        made = _onnx(model, entry, args.onnx, args.opset, not args.no_check)
    files = [p for p in (made.path, made.weights) if p is not None]
    document = {"function": entry.name, "opset": made.opset, "inputs": list(made.inputs),
                "outputs": list(made.outputs), "state": list(made.state), "operators": made.operators,
                "checked": made.checked, "unchecked": made.unchecked,
                "files": {str(p): p.stat().st_size for p in files}}
    if args.json:
        say_json(document)
        return
    say(*[f"{p}: {amount(p.stat().st_size)}" for p in files],
        f"{entry.name}({', '.join(made.inputs)}) -> {', '.join(made.outputs)}",
        *([f"assigns {', '.join(made.state)}: inputs with defaults, and results NAME_new"] if made.state else []),
        f"opset {made.opset}; " + ", ".join(f"{kind} {count}" for kind, count in made.operators.items()),
        *[f"{runtime}: {_told(result)}" for runtime, result in made.checked.items()],
        *[f"not in the model: {text}" for text in made.unchecked.values()])


def _told(result: float | str) -> str:
    return result if isinstance(result, str) else f"as the function, to {result:.1g} of the largest element"


def _onnx(model: SavedModel, entry: Entry, path: str | Path, opset: int | None, check: bool) -> Any:
    from twofold.export import onnx
    from twofold.saved_model.loading import concrete_functions

    function = concrete_functions(model)[entry.function.number]
    return onnx(function, path, check=check) if opset is None else onnx(function, path, opset, check)


# -- the list -----------------------------------------------------------------------------------------
def _list(model: SavedModel, args: argparse.Namespace) -> None:
    with doing("measuring"):
        rows = list(_targets(model, args))
    if args.json:
        say_json({"targets": [dict(zip(("target", "bytes", "needs", "refused", "command"), row, strict=True))
                              for row in rows]})
        return
    shown = [(target, "-" if size is None else amount(size), needs if refused is None else refused.splitlines()[0])
             for target, size, needs, refused, _ in rows]
    say(*table([("target", "size", "needs"), *shown], indent="", right=(1,)), "",
        f"made by: {rows[0][-1]}", f"         {rows[-1][-1]}")


_Row = tuple[str, int | None, str, str | None, str]  # target, bytes, what it needs, why not, the command


def _targets(model: SavedModel, args: argparse.Namespace) -> Iterator[_Row]:
    """What the model can be exported to, with the size that it has there, or why it cannot."""
    from twofold.onnx_files.export import DEFAULT_OPSET

    callables = [e for e in entries(model) if e.kind == "signature"] or entries(model)
    if args.signature is not None:
        callables = [choose(model, args.signature)]
    with tempfile.TemporaryDirectory() as folder:
        for entry in callables:
            size, refused = _measured(lambda to, e=entry: _onnx(model, e, to, None, False), Path(folder) / "it.onnx")
            name = "onnx" if len(callables) == 1 else f"onnx, {entry.name}"
            signature = "" if len(callables) == 1 else f" --signature {entry.name}"
            yield (name, size, f"a runtime of ONNX, opset {DEFAULT_OPSET}, such as onnxruntime", refused,
                   f"twofold export {args.dir} --onnx FILE.onnx{signature}")
        yield from _libraries(args.dir, Path(folder))


def _libraries(source: str, folder: Path) -> Iterator[_Row]:
    from twofold.export import native
    from twofold.export.targets import SHORT

    for target in ("host", *SHORT):
        size, refused = _measured(lambda to, t=target: native(source, to, t, weights="file"), folder / "it.o")
        option = "" if target == "host" else f" --target {target}"
        platform = "this machine" if target == "host" else target
        yield (f"library, {platform}", size, _NEEDS.get(target, _LIBRARY), refused,
               f"twofold compile {source} -o FILE.a{option}")


def _measured(make: Any, to: Path) -> tuple[int | None, str | None]:
    """The bytes of code and weights that `make(to)` writes, or why it cannot."""
    try:
        made = make(to)
    except (OpError, ValueError, ImportError) as error:
        return None, str(error)
    files = [p for p in (made.path, made.weights) if p is not None]
    size = sum(p.stat().st_size for p in files)
    for p in files:
        p.unlink()
    return size, None
