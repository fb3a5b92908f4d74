"""`native`: from functions to files that C programs use. Nothing is written before all of it has been made."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twofold._formats.replacing import Contents, replace_all
from twofold._front.api import public
from twofold.version import __version__

from .interface import identifier
from .targets import Platform, platform_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from twofold.tracer.traced import Traced

    from .assemble import Assembled

__all__ = ["native", "assembled", "check_threads", "object_code", "NativeLibrary"]

_OBJECTS, _STATIC, _SHARED = (".o", ".obj"), (".a", ".lib"), (".so", ".dylib", ".dll", ".wasm")


@dataclass(frozen=True)
class NativeLibrary:
    """What `tf.export.native` wrote.

    Attributes:
        path: the library.
        header: the C header.
        weights: the file with weights, or None where they are part of the library.
        loader: for WebAssembly, the module of JavaScript that loads it; else None.
        functions: the symbols of the functions.
        target: the platform.
    """

    path: Path
    header: Path
    weights: Path | None
    loader: Path | None
    functions: tuple[str, ...]
    target: str


@public
def native(function: Any, path: str | os.PathLike[str], target: str = "host", cpu: str | None = None,
           weights: str = "embedded", gradients: bool = False, threads: int = 1) -> NativeLibrary:
    """Compile functions to a library with a C header, which needs neither Python nor twofold.

    What the ending of `path` says is written: an object file (`.o`) or static library (`.a`), for which no toolchain is
    needed, or a shared library (`.so`, `.dylib`, `.dll`, `.wasm`), which the system's linker or the package `ziglang`
    links. Beside it lies the header, `digits.h` for `libdigits.so`; all names in it begin with `digits_`.

    Each signature is a function of C. Sizes that the signature leaves open are arguments of every call. Variables that
    a function assigns are a struct which the caller keeps, so that a training step can run from C; other variables
    have the values that they have now. The results are those of the compiled function, to the bit on processors with
    fused multiply-add.

    Args:
        function: a `tf.function`, a concrete function, a dict of names and these, an object with such methods, a model
            of `tf.keras` that knows its inputs (exported as `predict`), or the folder of a saved model.
        path: the library to write.
        target: "host", "x86_64-linux", "aarch64-linux", "x86_64-windows", "x86_64-macos", "aarch64-macos", "wasm32", or
            a triple of LLVM.
        cpu: the oldest processor that it is to run on, as LLVM names it, such as "x86-64-v3". By default the host's
            own, or the oldest of the target.
        weights: "embedded" in the library, or in a "file" beside it (`digits.safetensors`) whose contents callers pass.
        gradients: whether each function that has float inputs or trainable variables gets a second one, `NAME_grad`,
            which takes cotangents of the results and gives those of inputs and trainable variables besides.
        threads: how many threads a call may share its work with; 1 needs none. They are OpenMP's, or, for a library
            that ends in `.wasm`, workers that its loader starts where memory can be shared.

    Returns:
        A `NativeLibrary` with the paths of what was written.

    Raises:
        UnimplementedError: a function needs Python; the error names the op and its line.
        TypeError, ValueError: there is nothing to export, or an argument is none of the above.
        RuntimeError: there is no linker for a shared library, or it failed.

    >>> import pathlib, tempfile
    >>> import twofold as tf
    >>> @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
    ... def twice(x):
    ...     return 2.0 * x
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     library = tf.export.native(twice, pathlib.Path(folder) / "doubling.o")
    ...     print(library.functions, library.header.name, library.path.exists())
    ('doubling_twice',) doubling.h True
    """
    from .collect import collect

    to = Path(path)
    form = _form(to)
    if weights not in ("embedded", "file"):
        raise ValueError(f'weights must be "embedded" or "file"; got {weights!r}.')
    check_threads(threads)
    platform = platform_of(target, cpu, threads)
    _fits(to, form, platform, threads)
    name = re.sub(r"^lib(?=.)", "", to.stem)
    made = assembled(collect(function), name, platform, weights == "embedded", gradients, threads)
    return _written(to, form, platform, made)


def assembled(traces: Mapping[str, Traced], name: str, platform: Platform, embedded: bool = True,
              gradients: bool = False, threads: int = 1) -> Assembled:
    """The library of traces with their names, before machine code; `name` is what its symbols begin with."""
    from .assemble import assemble, part_of
    from .gradients import gradient_of
    from .lowering import Streams

    streams = Streams()
    parts = [part_of(key, traced, streams) for key, traced in traces.items()]
    if gradients:
        gradient_parts = [gradient_of(key, traced, streams) for key, traced in traces.items()]
        parts += [part for part in gradient_parts if part is not None]
    return assemble(parts, identifier(name, "library").lower(), platform, embedded, threads)


def object_code(made: Assembled, platform: Platform) -> bytes:
    """The object file of a library."""
    from twofold.codegen import llvm_module
    from twofold.codegen import target as targets

    with targets.use(platform.target):
        return llvm_module.object_code(made.module, quick=True)


def check_threads(threads: int) -> None:
    """Refuses a number of threads that is none."""
    if isinstance(threads, bool) or not isinstance(threads, int) or not 1 <= threads <= 256:
        raise ValueError(f"threads must be an integer from 1 to 256; got {threads!r}.")


def _form(path: Path) -> str:
    for form, endings in (("object", _OBJECTS), ("static", _STATIC), ("shared", _SHARED)):
        if path.suffix in endings:
            return form
    raise ValueError(f"the path must end in {', '.join((*_OBJECTS, *_STATIC, *_SHARED))}; got {os.fspath(path)!r}.")


def _fits(path: Path, form: str, platform: Platform, threads: int) -> None:
    if form == "shared" and path.suffix != platform.shared:
        raise ValueError(f"shared libraries for {platform.name} end in {platform.shared}; got {os.fspath(path)!r}.")
    if threads > 1 and not (platform.openmp or (platform.system == "wasm" and form == "shared")):
        what = "object files and static libraries" if platform.system == "wasm" else "libraries"
        raise ValueError(f"{what} for {platform.name} run on one thread; got threads={threads}.")
    if not path.parent.is_dir():
        raise ValueError(f"there is no folder {os.fspath(path.parent)!r} to write to.")


def _written(to: Path, form: str, platform: Platform, made: Assembled) -> NativeLibrary:
    from .archive import archive
    from .header import header
    from .link import shared_library

    library, code, loader = made.interface, object_code(made, platform), None
    files: dict[str | os.PathLike[str], Contents] = {}
    if platform.system == "wasm" and form == "shared":
        from .wasm import files_of
        loader = to.with_name(f"{library.prefix}.mjs")
        linked = files_of(library, platform, code, to.name, made.threads)
        files |= {to.with_name(name): contents for name, contents in linked.items()}
    elif form == "static":
        symbols = [f"_{s}" if platform.system == "macos" else s for s in library.exported]
        files[to] = archive([(f"{library.prefix}.o", code, symbols)], platform.system == "macos")
    else:
        files[to] = code if form == "object" else shared_library(code, platform, to.name, library.exported)
    files[to.with_name(f"{library.prefix}.h")] = header(library, __version__).encode()
    weights = None
    if made.weights is not None:
        weights = to.with_name(f"{library.prefix}.safetensors")
        files[weights] = made.weights
    replace_all(files)
    return NativeLibrary(to, to.with_name(f"{library.prefix}.h"), weights, loader,
                         tuple([s.name for s in library.signatures]), platform.name)
