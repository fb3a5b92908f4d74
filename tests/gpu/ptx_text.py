"""PTX text, taken apart: the entries of a module with their statements, and the variables of the module.

In: text as LLVM's NVPTX target writes it. Out: names, numbers and operands, still as text; what instructions mean is
`ptx_ops.py`'s and `ptx_machine.py`'s affair. Functions that are called are not part of it.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, field
from functools import lru_cache

__all__ = ["Entry", "Module", "Parameter", "PtxError", "Statement", "Variable", "parse", "size_of"]

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
_ENTRY = re.compile(r"(?:\.visible\s+|\.weak\s+)*\.entry\s+([\w$]+)\s*(?:\((.*?)\))?([^{;]*)\{", re.S)
_PARAMETER = re.compile(r"\.param\s+(?:\.align\s+(\d+)\s+)?\.(\w+)\s+"
                        r"(?:\.ptr\s+(?:\.(?!align)\w+\s+)?(?:\.align\s+\d+\s+)?)?([\w$]+)(?:\[(\d+)\])?")
_VARIABLE = re.compile(r"(?:\.(?:visible|weak|extern|common)\s+)*\.(global|const|shared|local)\s+"
                       r"(?:\.align\s+(\d+)\s+)?\.(\w+)\s+([\w$]+)(\[(\d*)\])?(?:\s*=\s*(.+))?$", re.S)
_REGISTERS = re.compile(r"\.reg\s+\.(\w+)\s+(.+)$", re.S)
_STATEMENT = re.compile(r"(?:@(!?)([%\w$.]+)\s+)?([\w.:]+)\s*(.*)$", re.S)
_LABEL = re.compile(r"([\w$]+)\s*:(?!:)")
_OPERAND = re.compile(r"(?:\{[^}]*\}|\[[^\]]*\]|[^,\[{])+")


class PtxError(Exception):
    """What is wrong with a module, or with a program that runs, and with which of its lines."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(f"{kind}: {text}")
        self.kind = kind


@dataclass(frozen=True)
class Parameter:
    """Where a parameter of an entry lies among its bytes."""

    offset: int
    size: int


@dataclass(frozen=True)
class Variable:
    """An array of a module or of an entry; one of no size takes the shared memory that a launch adds."""

    name: str
    space: str
    align: int
    size: int
    data: bytes


@dataclass(frozen=True)
class Statement:
    """An instruction: its guard, its opcode and its operands."""

    guard: str
    negated: bool
    opcode: str
    operands: tuple[str, ...]
    text: str
    line: int


@dataclass(eq=False)
class Entry:
    """A kernel."""

    name: str
    parameters: dict[str, Parameter]
    directives: dict[str, tuple[int, ...]]
    registers: dict[str, str] = field(default_factory=dict)  # types by name
    statements: list[Statement] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)  # the statement that follows
    tables: dict[str, tuple[str, ...]] = field(default_factory=dict)  # labels to branch to, by number
    variables: list[Variable] = field(default_factory=list)


@dataclass(eq=False)
class Module:
    """All of a text."""

    version: tuple[int, int]
    target: str
    entries: dict[str, Entry]
    variables: dict[str, Variable]


@lru_cache(maxsize=64)
def size_of(kind: str) -> int:
    """Bytes of a type such as `f32`; a predicate has one."""
    return 1 if kind == "pred" else int(re.sub(r"\D+", "", kind.replace("bf", ""))) // 8


@lru_cache(maxsize=200)
def parse(text: str) -> Module:
    """A module.

    Raises:
        PtxError: of kind "invalid image", where the text is no PTX or holds what this does not know.
    """
    text = _COMMENT.sub(lambda m: "\n" * m.group().count("\n"), text)
    head = re.match(r"\s*\.version\s+(\d+)\.(\d+)\s+\.target\s+(\w+)[^\n]*\s+\.address_size\s+64\b", text)
    if head is None:
        raise PtxError("invalid image", "the text does not begin with .version, .target and .address_size 64")
    module = Module((int(head[1]), int(head[2])), head[3], {}, {})
    at = head.end()
    outside = []
    while (found := _ENTRY.search(text, at)) is not None:
        outside.append(text[at:found.start()])
        end = _matching(text, found.end())
        module.entries[found[1]] = _entry(found, text[found.end():end], text.count("\n", 0, found.end()) + 1)
        at = end + 1
    for piece in "".join([*outside, text[at:]]).split(";"):
        if piece.strip():
            variable = _variable(piece.strip())
            module.variables[variable.name] = variable
    return module


def _matching(text: str, at: int) -> int:
    """Where the brace that was opened before `at` is closed."""
    depth = 1
    for brace in re.finditer(r"[{}]", text[at:]):
        depth += 1 if brace.group() == "{" else -1
        if not depth:
            return at + brace.start()
    raise PtxError("invalid image", "a brace is not closed")


def _entry(head: re.Match[str], body: str, line: int) -> Entry:
    parameters, offset = {}, 0
    for align, kind, name, count in _PARAMETER.findall(head[2] or ""):
        size = size_of(kind) * int(count or 1)
        alignment = int(align or size_of(kind))
        offset = -(-offset // alignment) * alignment
        parameters[name] = Parameter(offset, size)
        offset += size
    directives = {name: tuple(int(n) for n in numbers.split(","))
                  for name, numbers in re.findall(r"\.(\w+)\s+([\d,\s]*\d)", head[3])}
    entry = Entry(head[1], parameters, directives)
    scopes: list[dict[str, str]] = []
    for piece in body.split(";"):
        start = line + piece[:len(piece) - len(piece.lstrip())].count("\n")
        line += piece.count("\n")
        _piece(entry, piece.strip(), start, scopes)
    return entry


def _piece(entry: Entry, piece: str, line: int, scopes: list[dict[str, str]]) -> None:
    """Takes in what stands before a semicolon: labels, braces of scopes, and a declaration or an instruction."""
    while piece:
        if piece[0] in "{}":
            if piece[0] == "{":
                scopes.append({})
            else:
                scopes.pop()
            piece = piece[1:].lstrip()
        elif (label := _LABEL.match(piece)) is not None:
            piece = piece[label.end():].lstrip()
            if piece.startswith(".branchtargets"):
                entry.tables[label[1]] = tuple(re.findall(r"[\w$]+", piece.removeprefix(".branchtargets")))
                return
            entry.labels[label[1]] = len(entry.statements)
        else:
            break
    if piece.startswith(".reg"):
        _registers(entry, piece, scopes)
    elif piece.startswith((".local", ".shared")):
        entry.variables.append(_variable(piece))
    elif piece and not piece.startswith(".pragma"):
        for name, own in ((k, v) for scope in scopes for k, v in scope.items()):
            piece = re.sub(rf"(?<![\w%]){re.escape(name)}(?!\w)", own, piece)
        entry.statements.append(_statement(piece, line))


def _registers(entry: Entry, piece: str, scopes: list[dict[str, str]]) -> None:
    found = _REGISTERS.match(piece)
    if found is None:
        raise PtxError("invalid image", piece)
    for name in found[2].split(","):
        counted = re.fullmatch(r"\s*([%\w$]+)<(\d+)>\s*", name)
        if counted is not None:
            entry.registers |= {f"{counted[1]}{n}": found[1] for n in range(int(counted[2]))}
        elif scopes:
            scopes[-1][name.strip()] = own = f"{name.strip()}.{len(entry.registers)}"
            entry.registers[own] = found[1]
        else:
            entry.registers[name.strip()] = found[1]


def _statement(piece: str, line: int) -> Statement:
    found = _STATEMENT.match(piece)
    if found is None:
        raise PtxError("invalid image", f"line {line}: {piece}")
    operands = tuple(o.strip() for o in _OPERAND.findall(found[4]))
    return Statement(found[2] or "", found[1] == "!", found[3], operands, " ".join(piece.split()), line)


def _variable(piece: str) -> Variable:
    found = _VARIABLE.match(piece)
    if found is None:
        raise PtxError("invalid image", f"unknown declaration: {' '.join(piece.split())[:100]}")
    space, align, kind, name, array, count, values = found.groups()
    size = size_of(kind) * (int(count or 0) if array else 1)
    data = b""
    for value in re.findall(r"[^\s,{}]+", values or ""):
        bits = _bits(value)
        data += (bits & (1 << 8 * size_of(kind)) - 1).to_bytes(size_of(kind), "little")
    return Variable(name, space, int(align or size_of(kind)), size, data.ljust(size, b"\0") if values else b"")


def _bits(value: str) -> int:
    """The bits of a literal: of a float those of its own width."""
    if re.fullmatch(r"0[fF][0-9a-fA-F]{8}|0[dD][0-9a-fA-F]{16}", value):
        return int(value[2:], 16)
    if "." in value:
        return int.from_bytes(struct.pack("<d", float(value)), "little")
    try:
        return int(value.rstrip("U"), 0)
    except ValueError:
        raise PtxError("invalid image", f"no number: {value}") from None
