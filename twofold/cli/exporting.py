"""`twofold export DIR`: a saved model for runtimes other than this one; without `--onnx` or `--web` it lists what there
is."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator
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
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--onnx", metavar="FILE", help="write a function as an ONNX model, FILE.onnx")
    kinds.add_argument("--web", metavar="FOLDER", help="write a page that runs in a browser, and a module for programs")
    parser.add_argument("--opset", type=int, metavar="N", help="the version of ONNX's operators; by default the newest "
                        "that is of use")
    parser.add_argument("--no-check", action="store_true", help="do not run the model beside the function")


def run(args: argparse.Namespace) -> None:
    """Writes the model or the page, or lists the targets."""
    model = read(args.dir)
    if args.onnx is None:
        if args.opset is not None or args.no_check:
            raise Misuse("--opset and --no-check are for --onnx FILE.onnx")
        (_list if args.web is None else _write_page)(model, args)
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


def _write_page(model: SavedModel, args: argparse.Namespace) -> None:
    with doing("exporting"):
        made = _page(model, args, args.web)
    files = [made.path, made.library, made.loader, made.types]
    if args.json:
        say_json({"functions": list(made.functions), "files": {str(p): p.stat().st_size for p in files}})
        return
    say(*[f"{p}: {amount(p.stat().st_size)}" for p in files],
        f"functions: {', '.join(made.functions)}; open {made.path} in a browser")


def _page(model: SavedModel, args: argparse.Namespace, folder: str | Path) -> Any:
    from twofold.export import web
    from twofold.saved_model.loading import concrete_functions

    if args.signature is None:
        return web(args.dir, folder)
    entry = choose(model, args.signature)
    return web({entry.name: concrete_functions(model)[entry.function.number]}, folder)


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
            to = Path(folder) / "it.onnx"
            size, refused = _measured(lambda e=entry, to=to: _code_and_weights(_onnx(model, e, to, None, False)))
            name = "onnx" if len(callables) == 1 else f"onnx, {entry.name}"
            signature = "" if len(callables) == 1 else f" --signature {entry.name}"
            yield (name, size, f"a runtime of ONNX, opset {DEFAULT_OPSET}, such as onnxruntime", refused,
                   f"twofold export {args.dir} --onnx FILE.onnx{signature}")
        size, refused = _measured(lambda: [_page(model, args, Path(folder) / "page").path])
        yield "page", size, "a browser", refused, f"twofold export {args.dir} --web FOLDER"
        yield from _libraries(args.dir, Path(folder))


def _libraries(source: str, folder: Path) -> Iterator[_Row]:
    from twofold.export import native
    from twofold.export.targets import SHORT

    for target in ("host", *SHORT):
        size, refused = _measured(
            lambda t=target: _code_and_weights(native(source, folder / "it.o", t, weights="file")))
        option = "" if target == "host" else f" --target {target}"
        platform = "this machine" if target == "host" else target
        yield (f"library, {platform}", size, _NEEDS.get(target, _LIBRARY), refused,
               f"twofold compile {source} -o FILE.a{option}")


def _code_and_weights(made: Any) -> list[Path]:
    return [p for p in (made.path, made.weights) if p is not None]


def _measured(make: Callable[..., list[Path]]) -> tuple[int | None, str | None]:
    """The bytes of the files that `make` writes and gives, or why it cannot."""
    try:
        files = make()
    except (OpError, ValueError, ImportError, RuntimeError) as error:  # the last is of a linker
        return None, str(error)
    size = sum(p.stat().st_size for p in files)
    for p in files:
        p.unlink()
    return size, None
