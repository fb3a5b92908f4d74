"""The statements of the loop IR, kernels and functions made of them, and their text.

A statement is a pure instruction of `ir/scalar.py` (or one of `VECTOR_OPS`), or one of the classes here. What each
means is said at its class; `lockstep.py` executes them, `loop_verify.py` says which are well formed, and `loop.py`
records them and explains how they are meant to be used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from twofold.ir.data_class import data_class, field
from twofold.ir.dtypes import DType
from twofold.ir.scalar import Instr, Scalar

from .value_types import Vector

__all__ = ["Pointer", "Kernel", "LoopFunction", "Load", "Store", "At", "Prefetch", "IntegerArgument", "Set", "Get",
           "For", "If", "Break", "Room", "Barrier", "Check", "Fail", "Callee", "Call", "Invoke", "Spread", "Statement",
           "VECTOR_OPS", "TEAM_OPS", "SHARED_ALIGNMENT", "Printer", "uses", "result_of", "blocks", "walk", "accesses",
           "instruction_count", "shared_bytes"]

# Instructions of vectors, which scalar bodies do not have:
#   splat x           x in all lanes
#   first n           the mask of the first n lanes: none where n < 0, all where there are no more lanes
#   shuffle x y [..]  the lanes of x, and after them those of y, picked by number
#   extract x [n]     lane n of x
#   pack x y ...      the vector of these numbers
#   aligned x [n]     whether the address x is a multiple of n bytes
#   add_pairs x y z   z + x1 y1 + x0 y0, each product by a fused multiply-add, where lanes of x and y hold two bfloat16
#                     numbers each, x1 and y1 in their high bits; subnormal numbers are taken, and given, as 0
#   add_quads x y z   z + x3 y3 + x2 y2 + x1 y1 + x0 y0, wrapping around, where lanes of int32 hold four numbers of 8
#                     bits each: those of x count as unsigned, those of y as signed
VECTOR_OPS = frozenset(("splat", "first", "shuffle", "extract", "pack", "aligned", "add_pairs", "add_quads"))
# Instructions of kernels whose iterations each belong to a team of threads: a warp, whose threads run in lockstep,
# or a block of several warps. All threads of a warp come to `further` and `leading` together.
#   thread          the number of this thread in its block
#   lane            the number of this thread in its warp
#   further x [n]   the x of the thread n further on in the warp, and its own where there is none
#   leading x       the x of the first thread of the warp
#   mma x y z [of]  z + x y for matrices of 16 rows and 8 columns, of which each thread of the warp has a fragment, by a
#                   tensor core: exact products, added in float32 in no order that is told (`loop.TeamBuilder.mma`)
TEAM_OPS = frozenset(("thread", "lane", "further", "leading", "mma"))
SHARED_ALIGNMENT = 16  # bytes, of memory that a team shares
_NUMBERED = frozenset(("shuffle", "extract", "aligned", "further", "mma"))  # instructions whose text has their constant


@data_class(eq=False)
class Pointer:
    """Typed memory: an argument, whose place in the args array is `slot`; `size` elements of the kernel's own stack, or
    of memory that a team shares; or what an address leads to, `at`."""

    name: str
    dtype: DType
    slot: int | None = None
    size: int = 0
    base: Pointer | None = None  # the pointer that this one views as another type
    at: Scalar | None = None


@data_class(eq=False)
class Load:
    """`out = ptr[index]`; a 16-bit float widens to float32. A vector is as many neighbours from `index` on; lanes that
    are not in `mask` are 0, and their memory is not read. One may be known to be `aligned`: at a multiple of its size.
    """

    out: Scalar
    ptr: Pointer
    index: Scalar
    mask: Scalar | None = None
    aligned: bool = False


@data_class(eq=False)
class Store:
    """`ptr[index] = value`, rounded once where `ptr` holds 16-bit floats (from float32 or float64). The lanes of a
    vector become neighbours from `index` on; those not in `mask` are not written. `aligned` is as for loads."""

    ptr: Pointer
    index: Scalar
    value: Scalar
    mask: Scalar | None = None
    aligned: bool = False


@data_class(eq=False)
class At:
    """`out` = the address of `ptr[index]`, which need not exist."""

    out: Scalar
    ptr: Pointer
    index: Scalar


@data_class(eq=False)
class Prefetch:
    """Asks for the cache line of `ptr[index]`, which need not exist: the first cache if it is to be written, else the
    second. It changes nothing."""

    ptr: Pointer
    index: Scalar
    write: bool


@data_class(eq=False)
class IntegerArgument:
    """`out = args[index]`."""

    out: Scalar
    index: int


@data_class(eq=False)
class Set:
    """Gives mutable variable number `var` a value; the first Set of a variable declares it."""

    var: int
    value: Scalar


@data_class(eq=False)
class Get:
    """`out` = what variable `var` holds now."""

    out: Scalar
    var: int


@data_class(eq=False)
class For:
    """`for index in range(lo, hi, step)`; a constant step may be negative."""

    index: Scalar
    lo: Scalar
    hi: Scalar
    step: Scalar | int
    body: list[Statement]


@data_class(eq=False)
class If:
    cond: Scalar
    body: list[Statement]
    otherwise: list[Statement] = field(default_factory=list)


@data_class(eq=False)
class Break:
    """Leaves the innermost loop where `cond` holds."""

    cond: Scalar


@data_class(eq=False)
class Room:
    """`out` = the address of `count` uninitialised elements of `dtype`, at most `most`, on a cache line of their own,
    which `body` has. They are on the stack, or from the heap where they are many and the code may use one; where there
    is no memory, the kernel returns 1 at once."""

    out: Scalar
    dtype: DType
    count: Scalar
    most: int
    body: list[Statement]


@data_class(eq=False)
class Barrier:
    """Where the threads of a block wait for one another: what any of them has written to memory that they share, all
    see from here on. They all come to it together."""


@data_class(eq=False)
class Check:
    """Where `cond` is false the kernel, having run to its end, returns 1 + `code`."""

    cond: Scalar
    code: int


@data_class(eq=False)
class Fail:
    """The kernel, having run to its end, returns the first `status` that is not 0."""

    status: Scalar


@data_class(eq=False)
class Callee:
    """A kernel that is an argument. What `word` of the args array stands for it is the backend's affair, which puts it
    there: on the processor, the address at which the kernel was loaded."""

    word: Scalar


@data_class(eq=False)
class Call:
    """`out = kernel(start, stop, args)` for a kernel of the same module or an argument; `args` is memory of int64."""

    out: Scalar
    kernel: Kernel | Callee
    start: Scalar
    stop: Scalar
    args: Pointer


@data_class(eq=False)
class Invoke:
    """Runs a function of the same module."""

    function: LoopFunction
    args: tuple[Scalar, ...]


@data_class(eq=False)
class Spread:
    """Runs a kernel over [0, `total`), shared by the threads of a block, all of which come to it together: an iteration
    is a thread's, a warp's, or that of as many of the block's first threads as the kernel's teams have. Nobody waits
    for the others before it or behind it. `args` are the words of the kernel's args array. A status of the kernel that
    is not 0 makes the number at `status` one less than it, unless a lower one is there, where -1 is above all others.
    `room` is what kernels have for the memory that their teams share."""

    kernel: Kernel
    total: Scalar
    args: tuple[Scalar, ...]
    status: Scalar | None
    room: Pointer | None


Statement = (Instr | Load | Store | At | Prefetch | IntegerArgument | Set | Get | For | If | Break | Room | Barrier
             | Check | Fail | Call | Invoke | Spread)


@data_class()
class Kernel:
    """A finished loop nest; `str` gives its text. `team` threads share an iteration of its outermost range, and the
    memory `shared`, which is new in each iteration."""

    name: str
    start: Scalar
    stop: Scalar
    args: Pointer
    pointers: list[Pointer]
    scratch: list[Pointer]
    body: list[Statement]
    codes: tuple[str, ...]
    team: int = 1
    shared: list[Pointer] = field(default_factory=list)

    def __str__(self) -> str:
        return Printer(self).text()


@data_class()
class LoopFunction:
    """A function that kernels of one module share: statements over named parameters, numbers and addresses. It has no
    checks, and gives nothing back but what it stores."""

    name: str
    params: tuple[tuple[str, Scalar], ...]
    scratch: list[Pointer]
    body: list[Statement]

    def __str__(self) -> str:
        return Printer(self).text()


def uses(statement: Statement) -> Sequence[Scalar]:
    """The values that a statement reads itself, blocks apart."""
    match statement:
        case Instr(args=args):
            return args
        case Load(ptr=ptr, index=index, mask=mask):
            return _present(index, ptr.at, mask)
        case Store(ptr=ptr, index=index, value=value, mask=mask):
            return _present(index, value, ptr.at, mask)
        case At(ptr=ptr, index=index) | Prefetch(ptr=ptr, index=index):
            return _present(index, ptr.at)
        case Set(value=value):
            return (value,)
        case For(lo=lo, hi=hi, step=step):
            return (lo, hi, step) if isinstance(step, Scalar) else (lo, hi)
        case If(cond=cond) | Break(cond=cond) | Check(cond=cond):
            return (cond,)
        case Room(count=count):
            return (count,)
        case Fail(status=status):
            return (status,)
        case Call(kernel=kernel, start=start, stop=stop, args=args):
            return _present(start, stop, kernel.word if isinstance(kernel, Callee) else None, args.at)
        case Invoke(args=args):
            return args
        case Spread(total=total, args=args, status=status):
            return (*_present(total, status), *args)
    return ()


def _present(*values: Scalar | None) -> tuple[Scalar, ...]:
    return tuple([v for v in values if v is not None])


def result_of(statement: Statement) -> Scalar | None:
    """The value that a statement gives to those after it."""
    return statement.out if isinstance(statement, (Instr, Load, At, IntegerArgument, Get, Call)) else None


def blocks(statement: Statement) -> tuple[list[Statement], ...]:
    """The blocks inside a statement."""
    match statement:
        case If(body=body, otherwise=otherwise):
            return (body, otherwise) if otherwise else (body,)
        case For(body=body) | Room(body=body):
            return (body,)
    return ()


def walk(block: list[Statement]) -> Iterator[Statement]:
    """The statements of a block and of those inside it, in order."""
    for statement in block:
        yield statement
        if isinstance(statement, (For, If, Room)):
            for inner in blocks(statement):
                yield from walk(inner)


def accesses(kernel: Kernel) -> tuple[set[int], set[int]]:
    """The places in the args array of memory that a kernel reads, and of memory that it writes, itself."""
    reads: set[int] = set()
    writes: set[int] = set()
    slots: dict[int, int] = {}  # of the memory that an address points into, by the id of the address

    def slot(ptr: Pointer) -> int | None:
        return ptr.slot if ptr.at is None else slots.get(ptr.at.id)

    for statement in walk(kernel.body):
        if isinstance(statement, (At, Load, Store)) and (place := slot(statement.ptr)) is not None:
            if isinstance(statement, At):
                slots[statement.out.id] = place
            else:
                (reads if isinstance(statement, Load) else writes).add(place)
    return reads, writes


def shared_bytes(*memory: Pointer) -> int:
    """The bytes of memory that a team shares, each piece of which begins at a multiple of `SHARED_ALIGNMENT`."""
    return sum(-(-p.size * p.dtype.size // SHARED_ALIGNMENT) * SHARED_ALIGNMENT for p in memory)


def instruction_count(block: list[Statement]) -> int:
    """How many instructions, constants apart, a block and those inside it hold."""
    return sum(isinstance(s, Instr) and s.op != "const" for s in walk(block))


def _aligned(access: Load | Store) -> str:
    return "aligned " if access.aligned else ""


class Printer:
    """The text of a kernel or function: values are numbered in order of appearance."""

    def __init__(self, of: Kernel | LoopFunction) -> None:
        self.of = of
        self.names: dict[int, str] = {}
        self.count = 0
        self.lines: list[str] = []

    def text(self) -> str:
        """All of it."""
        of = self.of
        codes: tuple[str, ...] = ()
        shared: list[Pointer] = []
        if isinstance(of, Kernel):
            self.names, codes = {of.start.id: "start", of.stop.id: "stop"}, of.codes
            params = "".join(f", {p.name}: {p.dtype.short}* = args[{p.slot}]" for p in of.pointers)
            shared = of.shared
            team = f" of teams of {of.team}" if of.team > 1 else ""
            self.lines = [f"kernel {of.name}(start, stop{params}){team} {{"]
        else:
            self.names = {value.id: name for name, value in of.params}
            params = ", ".join(f"{name}: {value.dtype.short}" for name, value in of.params)
            self.lines = [f"function {of.name}({params}) {{"]
        self.lines += [f"  {p.name} = scratch {p.size} x {p.dtype.short}" for p in of.scratch]
        self.lines += [f"  {p.name} = shared {p.size} x {p.dtype.short}" for p in shared]
        self.block(of.body, 1)
        self.lines += [f"  check {n} is {code!r}" for n, code in enumerate(codes)]
        return "\n".join([*self.lines, "}"])

    def new(self, value: Scalar) -> str:
        """The name of a value that appears."""
        name = self.names[value.id] = f"%{self.count}"
        self.count += 1
        return name

    def block(self, block: list[Statement], depth: int) -> None:
        """The lines of a block."""
        for statement in block:
            if isinstance(statement, Instr) and statement.op == "const":
                self.names[statement.out.id] = repr(statement.const)
                continue
            self.lines.append("  " * depth + self.line(statement))
            if isinstance(statement, (For, If, Room)):
                self.block(statement.body, depth + 1)
                if isinstance(statement, If) and statement.otherwise:
                    self.lines.append("  " * depth + "} else {")
                    self.block(statement.otherwise, depth + 1)
                self.lines.append("  " * depth + "}")

    def place(self, ptr: Pointer, index: Scalar) -> str:
        """An element of memory."""
        return f"{ptr.name if ptr.at is None else self.names[ptr.at.id]}[{self.names[index.id]}]"

    def line(self, statement: Statement) -> str:
        """A statement without the blocks inside it."""
        at = [self.names[v.id] for v in uses(statement)]
        match statement:
            case Instr(op=op, out=out, const=const):
                more = [str(list(const)) if op == "shuffle" else str(const)] if op in _NUMBERED else []
                words = [op, *at, *more]
                return f"{self.new(out)} = {' '.join(words)} : {out.dtype.short}"
            case Load() | Store() | At() | Prefetch():
                return self.access(statement)
            case IntegerArgument(out=out, index=index):
                return f"{self.new(out)} = args[{index}]"
            case Set(var=var):
                return f"var{var} = {at[0]}"
            case Get(out=out, var=var):
                return f"{self.new(out)} = var{var}"
            case For(index=index, step=step):
                by = "" if step == 1 else f" by {at[2] if len(at) == 3 else step}"
                return f"for {self.new(index)} in {at[0]}..{at[1]}{by} {{"
            case If():
                return f"if {at[0]} {{"
            case Break():
                return f"break if {at[0]}"
            case Barrier():
                return "barrier"
            case Room(out=out, dtype=dtype, most=most):
                return f"room {self.new(out)} = {at[0]} x {dtype.short}, at most {most} {{"
            case Check(code=code):
                return f"check {code} {at[0]}"
            case Fail():
                return f"fail {at[0]}"
            case Call(out=out, kernel=kernel, args=args):
                name = at[2] if isinstance(kernel, Callee) else kernel.name
                return f"{self.new(out)} = call {name}({at[0]}, {at[1]}, {args.name if args.at is None else at[-1]})"
            case Invoke(function=function):
                return f"invoke {function.name}({', '.join(at)})"
            case Spread(kernel=kernel, status=status):
                first = 1 if status is None else 2
                told = "" if status is None else f", status to {at[1]}"
                return f"spread {kernel.name} over {at[0]}({', '.join(at[first:])}){told}"
        raise TypeError(f"not a statement: {statement!r}")

    def access(self, statement: Load | Store | At | Prefetch) -> str:
        """A statement about memory."""
        place = self.place(statement.ptr, statement.index)
        match statement:
            case Load(out=out, mask=mask):
                lanes = f" : {out.dtype.short}" if isinstance(out.dtype, Vector) else ""
                under = "" if mask is None else f" where {self.names[mask.id]}"
                return f"{self.new(out)} = load {_aligned(statement)}{place}{under}{lanes}"
            case Store(value=value, mask=mask):
                under = "" if mask is None else f" where {self.names[mask.id]}"
                return f"store {_aligned(statement)}{place}{under} = {self.names[value.id]}"
            case At(out=out):
                return f"{self.new(out)} = at {place}"
        return f"prefetch {place}{' to write' if statement.write else ''}"
