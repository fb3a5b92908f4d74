"""A linked WebAssembly library, the module of JavaScript that loads it, and its types for TypeScript.

Programs give typed arrays with shapes and get the like; structs, memory and statuses are the module's affair. It takes
the bytes of the library as they are, so it runs in browsers and in Node.js alike.

A library that shares work imports its memory. In the file that memory is one thread's, which any page may have; where
memory can be shared with workers the loader says so in one byte of the library (`_Limits`), before it is compiled.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from twofold.codegen.native_entry import KINDS, Member, shape_text
from twofold.ir.dtypes import DType

from . import link, pool
from .interface import ABI, Interface, Signature
from .targets import Platform

__all__ = ["files_of", "method_of"]

_ARRAYS = {"float32": "Float32Array", "float64": "Float64Array", "bool": "Uint8Array", "float16": "Uint16Array",
           "bfloat16": "Uint16Array", "complex64": "Float32Array", "complex128": "Float64Array",
           "int64": "BigInt64Array", "uint64": "BigUint64Array"}


_OWN_NAMES = frozenset({"newState", "threads", "close"})  # members of a loaded library that are no functions
_MEMORY_IMPORT = b"\x03env\x06memory\x02"  # names with their lengths, and the kind of what is imported


class _Limits(NamedTuple):
    """How large the memory is that a library imports.

    Attributes:
        at: the place of the byte that says whether it is shared: 3 where it is, else 1.
        pages: how many pages of 64 KiB it begins with.
    """

    at: int
    pages: int


def files_of(library: Interface, platform: Platform, code: bytes, file: str, threads: int) -> dict[str, bytes]:
    """The linked library, its loader and the types, by the names of their files.

    Args:
        code: the object file.
        file: the name of the library's file.
        threads: with how many threads a call shares its work at most.
    Raises:
        RuntimeError: there is no linker, or it failed.
    """
    linked = link.shared_library(code, platform, file, [*library.exported, *(pool.EXPORTED if threads > 1 else ())],
                                 workers=threads > 1)
    limits = None
    if threads > 1:
        limits = _limits(linked)
        linked = linked[:limits.at] + b"\1" + linked[limits.at + 1:]
    return {file: linked, f"{library.prefix}.mjs": _module(library, file, threads, limits).encode(),
            f"{library.prefix}.d.mts": _types(library).encode()}


def _limits(code: bytes) -> _Limits:
    """The limits of the memory that a linked library imports, which is shared."""
    at = code.index(_MEMORY_IMPORT) + len(_MEMORY_IMPORT)
    if code[at] != 3:
        raise RuntimeError("the linker made no library whose memory can be shared")
    pages = 0
    for n, byte in enumerate(code[at + 1:at + 6]):  # seven bits a byte, the last one below 128
        pages |= (byte & 127) << 7 * n
        if byte < 128:
            break
    return _Limits(at, pages)


def _array(dtype: DType) -> str:
    return _ARRAYS.get(dtype.name) or f"{dtype.name.capitalize()}Array"


def method_of(library: Interface, s: Signature) -> str:
    """What a function is called in JavaScript."""
    name = s.name.removeprefix(f"{library.prefix}_")
    return f"{name}_" if name in _OWN_NAMES else name


def _layout(members: Sequence[Member]) -> tuple[list[dict[str, Any]], int]:
    """Where tensors lie in a struct of 32-bit addresses, and its bytes."""
    rows, at = [], 0
    for member in members:
        align = 8 if member.dims else 4
        at = -(-at // align) * align
        row = {"name": member.name, "array": _array(member.dtype), "rank": len(member.dims), "at": at,
               "each": 2 if member.dtype.is_complex else 1, "dtype": member.dtype.name,
               "shape": [d if isinstance(d, int) else str(d) for d in member.dims]}
        rows.append(row)
        at += 8 + 8 * len(member.dims) if member.dims else 4
    return rows, -(-max(at, 1) // 8) * 8


def _described(library: Interface, threads: int, limits: _Limits | None) -> dict[str, Any]:
    functions = {}
    for s in library.signatures:
        (inputs, input_bytes), (outputs, output_bytes) = _layout(s.inputs), _layout(s.outputs)
        functions[method_of(library, s)] = {
            "symbol": s.name, "title": s.title, "inputs": inputs, "inputBytes": input_bytes, "outputs": outputs,
            "outputBytes": output_bytes, "state": s.state, "weights": s.weights, "workspace": s.takes_workspace}
    state = [{"name": m.name, "array": _array(m.dtype), "dtype": m.dtype.name, "shape": list(m.dims), "at": 4 * n,
              "each": 2 if m.dtype.is_complex else 1} for n, m in enumerate(library.state)]
    return {"prefix": library.prefix, "abi": ABI, "interface": str(library.fingerprint), "functions": functions,
            "state": state, "stateBytes": library.state_bytes, "weightsBytes": library.weights_bytes,
            "kinds": {str(n): name for name, n in KINDS.items()}, "threads": threads,
            "limits": None if limits is None else limits._asdict()}


def _module(library: Interface, file: str, threads: int, limits: _Limits | None) -> str:
    described = json.dumps(_described(library, threads, limits), indent=1)
    return "\n".join([f"// Loads {file}. Made by twofold; do not edit. {library.prefix}.d.mts says what there is.",
                      f"const library = {described};".replace("<", "\\u003c"),  # it may stand in a page
                      "", _script("loader"), _script("alone" if limits is None else "workers")])


def _script(name: str) -> str:
    return Path(__file__).with_name(f"{name}.js").read_text(encoding="utf-8")


def _types(library: Interface) -> str:
    return "\n".join(_type_lines(library)) + "\n"


def _type_lines(library: Interface) -> Iterator[str]:
    yield "// Made by twofold; do not edit."
    yield "export interface Tensor<A> { data: A; shape: number[]; }"
    yield "/** What a call says that failed; `kind` is one of " + ", ".join(KINDS) + ". */"
    yield "export class NativeError extends Error { status: number; kind: string; }"
    if library.state:
        yield "/** Variables, which functions read and assign. */"
        yield "export class State {"
        yield from _members("  values(): {", library.state, "Tensor<{}>", "  };")
        yield "}"
    yield "export interface Library {"
    for s in library.signatures:
        state = ", state: State" if s.state else ""
        yield f"  /** {s.title} */"
        yield from _members(f"  {method_of(library, s)}(inputs: {{", s.inputs, "Tensor<{}> | {}", f"  }}{state}): {{",
                            "Tensor<{}>")
        yield from _members("", s.outputs, "Tensor<{}>", "  };")
    if library.state:
        yield "  newState(): State;"
    yield "  /** How many threads share the work of a call. */"
    yield "  readonly threads: number;"
    yield "  /** Ends the workers: calls have one thread from here on. */"
    yield "  close(): void;"
    yield "}"
    yield "/** How many threads there may be, by default as many as cores; where memory is not shared there is one. */"
    yield "export interface Options { threads?: number; }"
    weights = ", weights: Uint8Array" if library.weights_bytes else ""
    yield f"export function load(source: BufferSource | Response | WebAssembly.Module{weights}, options?: Options):"
    yield "  Promise<Library>;"


def _members(before: str, members: Sequence[Member], form: str, after: str, plain: str = "") -> Iterator[str]:
    if before:
        yield before
    for m in members:
        kind = (form if len(m.dims) == 1 or not plain else plain).replace("{}", _array(m.dtype))
        yield f"    {m.name}: {kind};  // {m.dtype.name} {shape_text(m.dims)}"
    yield after
