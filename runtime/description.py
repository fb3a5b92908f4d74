"""The description by which a compiled program is loaded and called, and how it is written to disk with the code.

A `Description` says in numbers, names and size expressions what a program takes, gives and needs, and what a failed
check means. It refers to no graph: another process makes one from what was stored and never builds the program. Lines
of the user are kept as numbers of the nodes of the graph that was compiled, so that an equal graph traced from another
place tells its own lines.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from twofold.codegen.operands import Library, Memory, PackedInput, PartialResults, Work
from twofold.ir import dim_table
from twofold.ir import dtypes as dt
from twofold.ir import graph as g
from twofold.ir.data_class import data_class, field
from twofold.ir.dims import DimLike

if TYPE_CHECKING:
    from twofold.codegen.plan import Plan, Step

__all__ = ["ProgramCode", "Description", "CheckInfo", "DetailArguments", "Buffer", "describe", "named", "pack",
           "unpack"]

_FORMAT = 5


class ProgramCode(NamedTuple):
    """The machine code of a program.

    Attributes:
        files: its object files.
        modules: what they were made of, as LLVM's bitcode, where they are of the first tier; else none.
        quick: whether those of the second are to be emitted in less time (`llvm_module.object_code`).
    """

    files: Sequence[bytes]
    modules: Sequence[bytes] = ()
    quick: bool = False


class CheckInfo(NamedTuple):
    """A check that a step makes: its op, the number of the node whose line it is at, and the text of its error."""

    op: str | None
    line: int | None
    code: str


class DetailArguments(NamedTuple):
    """The arguments of `codegen/kernels/indexing.py: detail`; an array is (buffer or None for the arena, byte at which
    its memory begins, dtype, first element, shape)."""

    kind: str
    arrays: list[tuple[int | None, DimLike, str, DimLike, list[DimLike]]]
    sizes: list[DimLike]


class Buffer(NamedTuple):
    """Scratch memory: what it holds, bytes, the first and last step that needs it, the byte at which it begins."""

    name: str
    size: DimLike
    first: int
    last: int
    offset: DimLike


@data_class(eq=False)
class Description:
    """A program without its code.

    Attributes:
        outputs: shape and name of the dtype of each.
        symbols: in the order of their values.
        arena, work: bytes, simple operations.
        own: the simple operations of its own kernels, where each loop runs some rounds.
        constants: arrays, which follow inputs and outputs.
        donated: output number -> number of the input whose memory it has.
        libraries: keys of library kernels.
        checks: by number of a step, what each status from 1 on means, and what tells more.
        buffers: what lies in the arena.
        packings: what is packed once for many runs; its memory follows the constants.
        worth_packing: the numbers of inputs for which that would be worth it, if they stay the same.
    """

    outputs: list[tuple[tuple[DimLike, ...], str]]
    symbols: list[str]
    arena: DimLike
    work: DimLike
    own: DimLike
    constants: list[np.ndarray]
    donated: dict[int, int]
    libraries: list[tuple[str, ...]]
    checks: dict[int, tuple[list[CheckInfo], DetailArguments | None]]
    buffers: list[Buffer]
    packings: list[PackedInput] = field(default_factory=list)
    worth_packing: list[int] = field(default_factory=list)

    def failed(self, status: int) -> tuple[CheckInfo, DetailArguments | None]:
        """The check that a nonzero result of the entry stands for."""
        checks, arrays = self.checks.get((status >> 16) - 1, ([], None))
        number = status & 0xFFFF
        if 0 < number <= len(checks):
            return checks[number - 1], arrays
        op, line = (checks[0].op, checks[0].line) if checks else (None, None)
        return CheckInfo(op, line, f"status {number}"), None


def describe(p: Plan, line_of: Callable[[g.Node], int | None]) -> Description:
    """The description of the program of a plan; `line_of` gives the number under which a node's line is kept."""
    return Description(
        [(v.dims, v.dtype.name) for v in p.graph.outputs], p.symbols, p.arena, p.work, p.own_work(), p.constants,
        p.donated, [lib.key for lib in p.libraries],
        {n: (_checks(s, line_of), _arrays(s, p)) for n, s in enumerate(p.steps)
         if s.codes or isinstance(s.kernel, Library)},
        [Buffer(named(b.owner), b.size, b.first, b.last, p.offsets[b.owner]) for b in p.blocks],
        list(p.packings), list(p.worth_packing))


def _checks(step: Step, line_of: Callable[[g.Node], int | None]) -> list[CheckInfo]:
    checks = []
    for status in range(1, max(len(step.codes), 1) + 1):
        node, code = step.failed(status)
        checks.append(CheckInfo(None, None, code) if node is None else CheckInfo(node.op.name, line_of(node), code))
    return checks


def _arrays(step: Step, p: Plan) -> DetailArguments | None:
    """Where the operands lie that the message of a failed check shows; None where one lies in a slot of a surrounding
    graph."""
    if step.detail is None:
        return None
    arrays = []
    for w, dims in step.detail.arrays:
        place = p.place_of(w.value)
        if place is None:
            return None
        arrays.append((*place, w.value.dtype.name, w.offset, list(dims)))
    return DetailArguments(step.detail.kind, arrays, list(step.detail.sizes))


def named(owner: Memory) -> str:
    """The contents of a block of the arena, in words."""
    if isinstance(owner, PartialResults):
        return "partial results"
    if isinstance(owner, Work):
        return "work memory"
    return owner.name or ("a copy" if owner.node is None else owner.node.op.name)


# -- on disk ------------------------------------------------------------------------------------------
def pack(about: Description, code: ProgramCode) -> bytes:
    """A description and its code as bytes: a line of JSON, the constants, the object files, the modules."""
    table = dim_table.Writer()
    size = table.reference

    def sizes(dims: Sequence[DimLike]) -> list[int | str]:
        return [size(d) for d in dims]
    constants = [np.ascontiguousarray(c) for c in about.constants]
    head = {
        "format": _FORMAT, "outputs": [[sizes(dims), name] for dims, name in about.outputs],
        "symbols": about.symbols, "arena": size(about.arena), "work": size(about.work),
        "own": size(about.own),
        "constants": [[dt.from_numpy(c.dtype).name, list(c.shape)] for c in constants],
        "donated": sorted(about.donated.items()), "libraries": [list(key) for key in about.libraries],
        "checks": [[n, [list(c) for c in checks], arrays and [arrays.kind, [
            [buffer, size(at), name, size(first), sizes(shape)] for buffer, at, name, first, shape in arrays.arrays
        ], sizes(arrays.sizes)]] for n, (checks, arrays) in about.checks.items()],
        "buffers": [[b.name, size(b.size), b.first, b.last, size(b.offset)] for b in about.buffers],
        "packings": [[p.kernel.key, p.input, p.offset, p.addresses, p.integers, p.total, p.size, p.dtype.name]
                     for p in about.packings],
        "worth_packing": about.worth_packing, "sizes": table.rows, "files": [len(file) for file in code.files],
        "modules": [len(module) for module in code.modules], "quick": code.quick,
    }
    return b"".join([json.dumps(head).encode(), b"\n", *[c.tobytes() for c in constants], *code.files, *code.modules])


def unpack(stored: bytes) -> tuple[Description, ProgramCode] | None:
    """The description and code that `pack` stored; None where they are not in the form that this version writes."""
    head, _, rest = stored.partition(b"\n")
    try:
        fields = json.loads(head)
        if fields["format"] != _FORMAT:
            return None
        size = dim_table.Reader(fields["sizes"]).dim

        def sizes(references: Sequence[int | str]) -> list[DimLike]:
            return [size(r) for r in references]
        constants = []
        for name, shape in fields["constants"]:
            array = np.empty(shape, dt.as_dtype(name).np)
            if len(rest) < array.nbytes:
                return None
            constants.append(np.frombuffer(rest[:array.nbytes], array.dtype).reshape(shape))
            rest = rest[array.nbytes:]
        checks = {n: ([CheckInfo(*c) for c in checks], arrays and DetailArguments(arrays[0], [
            (buffer, size(at), name, size(first), sizes(shape)) for buffer, at, name, first, shape in arrays[1]
        ], sizes(arrays[2]))) for n, checks, arrays in fields["checks"]}
        pieces, files = _pieces(rest, [*fields["files"], *fields["modules"]]), len(fields["files"])
        code = ProgramCode(pieces[:files], pieces[files:], fields["quick"])
        return Description(
            [(tuple(sizes(dims)), name) for dims, name in fields["outputs"]], fields["symbols"],
            size(fields["arena"]), size(fields["work"]), size(fields["own"]), constants, dict(fields["donated"]),
            [tuple(key) for key in fields["libraries"]], checks,
            [Buffer(name, size(of), first, last, size(offset))
             for name, of, first, last, offset in fields["buffers"]],
            [PackedInput(Library(tuple(key)), number, at, addresses, tuple(integers), total, room, dt.as_dtype(name))
             for key, number, at, addresses, integers, total, room, name in fields["packings"]],
            fields["worth_packing"]), code
    except (ValueError, KeyError, TypeError, IndexError):
        return None


def _pieces(data: bytes, lengths: Sequence[int]) -> list[bytes]:
    """Consecutive pieces of `data`.

    Raises:
        ValueError: their lengths do not add up to that of the data.
    """
    ends = list(itertools.accumulate(lengths))
    if not ends or ends[-1] != len(data) or min(lengths) < 0:
        raise ValueError("the object files are not as long as they are said to be")
    return [data[end - length:end] for end, length in zip(ends, lengths, strict=True)]
