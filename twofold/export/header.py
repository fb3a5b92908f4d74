"""The C99 header of a library, from its `Interface`; C++ takes it too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from twofold.codegen.native_entry import KINDS, Member, shape_text
from twofold.ir.dims import Dim

from .interface import ABI, Interface, Signature, c_type

__all__ = ["header", "declaration"]


def header(library: Interface, version: str) -> str:
    """The text of the header; `version` is of twofold."""
    return "\n".join(_lines(library, version)) + "\n"


def _lines(library: Interface, version: str) -> Iterator[str]:
    upper, prefix = library.upper, library.prefix
    yield f"/* {prefix}: made by twofold {version} for {library.platform}. Do not edit."
    yield " *"
    yield " * Tensors are row-major. Functions return 0, or a status whose text is"
    yield f" * {prefix}_strerror(status). They allocate nothing, keep nothing and may run on any"
    yield " * number of threads at once, on memory of their own. Results may overlap nothing."
    yield " * A call takes up to 512 KiB of stack. */"
    yield f"#ifndef {upper}_H"
    yield f"#define {upper}_H"
    yield "#include <stdint.h>"
    yield "#ifdef __cplusplus"
    yield 'extern "C" {'
    yield "#endif"
    yield ""
    yield f"#define {upper}_ABI {ABI}"
    yield f"#define {upper}_INTERFACE INT64_C(0x{library.fingerprint:016x})"
    yield ""
    yield "/* What a status means at large. */"
    yield f"#define {upper}_KIND(status) ((status) & 0xff)"
    for name, number in KINDS.items():
        yield f"#define {upper}_ERROR_{name.upper()} {number}"
    yield ""
    yield "/* The text of a status: what was expected, and the line of the source. */"
    yield f"const char *{prefix}_strerror(int32_t status);"
    yield "/* The versions of the library: they equal the macros above if header and library fit. */"
    yield f"int64_t {prefix}_abi(void);"
    yield f"int64_t {prefix}_interface(void);"
    if library.weights_bytes:
        yield ""
        yield f"/* The weights: the contents of {prefix}.safetensors, read or mapped, at any address that is a"
        yield " * multiple of 16. The check reads all of it. */"
        yield f"#define {upper}_WEIGHTS_SIZE INT64_C({library.weights_bytes})"
        yield f"int32_t {prefix}_weights_check(const void *weights, int64_t size);"
    if library.state:
        yield from _state(library)
    for signature in library.signatures:
        yield from _signature(library, signature)
    yield ""
    yield "#ifdef __cplusplus"
    yield "}"
    yield "#endif"
    yield "#endif"


def _state(library: Interface) -> Iterator[str]:
    prefix, upper = library.prefix, library.upper
    yield ""
    yield "/* The variables. A program has as many states as it likes. */"
    yield f"typedef struct {prefix}_state {{"
    for member in library.state:
        yield f"    {c_type(member.dtype)} *{member.name};{_comment(member)}"
    yield f"}} {prefix}_state;"
    yield "/* Puts the variables into `memory`, at the values that they had when the library was made. */"
    yield f"#define {upper}_STATE_SIZE INT64_C({library.state_bytes})"
    weights = "const void *weights, " if library.weights_bytes else ""
    yield f"int32_t {prefix}_state_init({prefix}_state *state, {weights}void *memory, int64_t size);"


def _signature(library: Interface, s: Signature) -> Iterator[str]:
    yield ""
    yield f"/* {s.title} */"
    for struct, members, const in (("inputs", s.inputs, "const "), ("outputs", s.outputs, "")):
        if members:
            yield f"typedef struct {s.name}_{struct} {{"
            for member in members:
                shape = f" int64_t shape[{len(member.dims)}];" if member.dims else ""
                yield f"    struct {{ {const}{c_type(member.dtype)} *data;{shape} }} {member.name};{_comment(member)}"
            yield f"}} {s.name}_{struct};"
    if not isinstance(s.workspace, Dim):
        yield f"#define {s.name.upper()}_WORKSPACE INT64_C({s.workspace})"
    yield "/* The shapes of the results and the bytes of workspace, for the shapes of the inputs. */"
    yield f"int32_t {s.name}_sizes({', '.join([*_structs(s, ''), 'int64_t *workspace'])});"
    yield from _wrapped(f"int32_t {s.name}", declaration(library, s))


def declaration(library: Interface, s: Signature) -> list[str]:
    """The arguments of a function."""
    const = "" if s.writes else "const "
    arguments = _structs(s, "const ")
    arguments += [f"{const}{library.prefix}_state *state"] * s.state + ["const void *weights"] * s.weights
    arguments += ["void *workspace", "int64_t workspace_size"] if s.takes_workspace else []
    return arguments or ["void"]


def _structs(s: Signature, const: str) -> list[str]:
    return [f"const {s.name}_inputs *in"] * bool(s.inputs) + [f"{const}{s.name}_outputs *out"] * bool(s.outputs)


def _wrapped(start: str, arguments: Sequence[str]) -> Iterator[str]:
    line = f"{start}({', '.join(arguments)});"
    if len(line) <= 100:
        yield line
        return
    yield f"{start}("
    yield from [f"    {a}," for a in arguments[:-1]]
    yield f"    {arguments[-1]});"


def _comment(member: Member) -> str:
    return f"  /* {member.dtype.name} {shape_text(member.dims)} */"
