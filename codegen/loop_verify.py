"""Which kernels and functions of the loop IR are well formed.

Every value is made before it is used, in the block of the use or one around it; cells are set before they are read,
with values of one type; types agree; functions get what they take and do not run themselves. What the numbers are, such
as whether an index lies inside of memory, only running tells (`lockstep.py`).
"""

from __future__ import annotations

import os

from twofold.ir import dtypes as dt
from twofold.ir.dtypes import DType
from twofold.ir.scalar import INSTRUCTIONS, Instr, Scalar

from .loop import TEAM
from .statements import (
    TEAM_OPS,
    VECTOR_OPS,
    At,
    Barrier,
    Break,
    Call,
    Check,
    For,
    Get,
    If,
    IntegerArgument,
    Invoke,
    Kernel,
    Load,
    LoopFunction,
    Pointer,
    Room,
    Set,
    Spread,
    Statement,
    Store,
    blocks,
    result_of,
    shared_bytes,
    uses,
)
from .value_types import Address, Vector, address, lane_type, lanes_of, like, vector

__all__ = ["verify", "CHECKING"]

MOST_THREADS = 1024  # of a team
CHECKING = os.environ.get("TWOFOLD_VERIFY") == "1"  # whether all kernels are verified before code is made of them


def verify(of: Kernel | LoopFunction) -> None:
    """Requires a kernel or function to be well formed, and the functions and kernels that it runs.

    Raises:
        ValueError: it is not; the text says which statement is to blame.
    """
    _verify(of, ())


def _verify(of: Kernel | LoopFunction, around: tuple[Kernel | LoopFunction, ...]) -> None:
    if of in around:
        raise ValueError(f"{of.name}: runs itself")
    if isinstance(of, Kernel) and of.team != 1 and (of.team % TEAM or not 0 < of.team <= MOST_THREADS):
        raise ValueError(f"{of.name}: a team of {of.team} threads")
    parameters = {of.start.id, of.stop.id} if isinstance(of, Kernel) else {p.id for _, p in of.params}
    _LoopChecker(of, parameters, (*around, of)).block(of.body, {}, False)


class _LoopChecker:
    """Goes through the statements of one kernel or function."""

    def __init__(self, of: Kernel | LoopFunction, visible: set[int], around: tuple[Kernel | LoopFunction, ...]) -> None:
        self.of, self.visible, self.around = of, visible, around

    def require(self, holds: bool, statement: Statement, what: str) -> None:
        if not holds:
            raise ValueError(f"{self.of.name}: {type(statement).__name__.lower()}: {what}")

    def block(self, block: list[Statement], cells: dict[int, DType], looped: bool) -> None:
        """Checks the statements of a block.

        Args:
            cells: the types of the cells that are set here.
            looped: whether there is a loop around.
        """
        new: set[int] = set()
        cells = dict(cells)
        for statement in block:
            for value in uses(statement):
                self.require(value.id in self.visible, statement,
                             "a value is used where it is not made yet, or not seen")
            self.statement(statement, cells, looped)
            inside = _inside(statement)
            self.visible.update(inside)
            for inner in blocks(statement) if isinstance(statement, (For, If, Room)) else ():
                self.block(inner, cells, looped or isinstance(statement, For))
            self.visible.difference_update(inside)
            out = result_of(statement)
            if out is not None:
                self.require(out.id not in self.visible, statement, "a value is made twice")
                self.visible.add(out.id)
                new.add(out.id)
        self.visible -= new

    def statement(self, statement: Statement, cells: dict[int, DType], looped: bool) -> None:
        """Checks the types of one statement."""
        match statement:
            case Instr():
                self.instruction(statement)
            case Load(out=out, ptr=ptr):
                self.memory(statement, ptr)
                self.require(lane_type(out.dtype) is ptr.dtype.compute, statement, "another type than the memory's")
                self.vector(statement, out)
            case Store(ptr=ptr, value=value):
                self.memory(statement, ptr)
                lane = lane_type(value.dtype)
                narrowed = ptr.dtype.is_floating and ptr.dtype.size == 2 and lane is dt.float64
                self.require(lane is ptr.dtype.compute or narrowed, statement, "another type than the memory's")
                self.vector(statement, value)
            case At(out=out, ptr=ptr):
                self.memory(statement, ptr)
                self.require(isinstance(out.dtype, Address) and out.dtype.element is ptr.dtype, statement,
                             "an address of another type")
            case Set(var=var, value=value):
                self.require(cells.setdefault(var, value.dtype) is value.dtype, statement, "a cell changes its type")
            case Get(out=out, var=var):
                self.require(cells.get(var) is out.dtype, statement, "a cell is not set, or of another type")
            case Break():
                self.require(looped, statement, "there is no loop around")
            case Invoke(function=function, args=args):
                self.require([a.dtype for a in args] == [p.dtype for _, p in function.params], statement,
                             f"not what {function.name} takes")
                _verify(function, self.around)
            case Call(kernel=kernel):
                if isinstance(kernel, Kernel):
                    _verify(kernel, self.around)
            case Barrier():
                self.require(self.team() > TEAM, statement, "there is no block of threads")
            case Spread():
                self.spread(statement)
            case Room():
                self.require(not looped, statement, "a room in a loop would need new memory in each round")
        if isinstance(self.of, LoopFunction):
            self.require(not isinstance(statement, (IntegerArgument, Check, Room)), statement, "functions have none")

    def spread(self, spread: Spread) -> None:
        """Checks a kernel that a block shares."""
        kernel, status = spread.kernel, spread.status
        self.require(self.team() > TEAM and kernel.team <= self.team(), spread, "a block of too few threads")
        self.require(all(a.dtype is dt.int64 or isinstance(a.dtype, Address) for a in spread.args), spread,
                     "an argument that is neither an address nor an integer")
        self.require(status is None or status.dtype is address(dt.int64), spread, "a status of another type")
        room = 0 if spread.room is None else spread.room.size * spread.room.dtype.size
        self.require(room >= shared_bytes(*kernel.shared), spread, "too little memory that threads share")
        _verify(kernel, self.around)

    def team(self) -> int:
        """How many threads share an iteration."""
        return self.of.team if isinstance(self.of, Kernel) else 1

    def memory(self, statement: Statement, ptr: Pointer) -> None:
        """Checks what a statement accesses."""
        if ptr.at is not None:
            self.require(isinstance(ptr.at.dtype, Address) and ptr.at.dtype.element is ptr.dtype, statement,
                         "memory of another type than the address says")
        elif ptr.slot is None:
            own = [p.name for p in self.of.scratch]
            if isinstance(self.of, Kernel):
                own += [p.name for p in self.of.shared] + ["args"]
            self.require(ptr.name in own, statement, f"no memory is called {ptr.name!r}")
        else:
            self.require(isinstance(self.of, Kernel), statement, "functions have no arguments in an array")

    def vector(self, access: Load | Store, value: Scalar) -> None:
        """Checks what an access says of a vector."""
        self.mask(access, access.mask, value)
        lanes = lanes_of(value.dtype)
        self.require(not access.aligned or lanes > 0 and lanes & lanes - 1 == 0, access, "aligned, but no vector")

    def mask(self, statement: Statement, mask: Scalar | None, of: Scalar) -> None:
        """Checks the mask of an access."""
        if mask is not None:
            self.require(bool(lanes_of(of.dtype)) and mask.dtype is like(dt.bool_, of.dtype), statement,
                         "a mask with other lanes than the vector")

    def instruction(self, instr: Instr) -> None:
        """Checks operands and result of an instruction."""
        op, out, types = instr.op, instr.out.dtype, [a.dtype for a in instr.args]
        lanes = lanes_of(out)
        if op in VECTOR_OPS:
            self.vector_op(instr, types)
            return
        if op in TEAM_OPS:
            self.require(self.team() > (TEAM if op == "thread" else 1), instr, "there is no team")
            if op == "mma":
                fragments = [vector(dt.uint32, 4), vector(dt.uint32, 2), vector(dt.float32, 4)]
                self.require(types == fragments and out is fragments[2], instr, "mma of other fragments")
                return
            alone = op in ("lane", "thread")
            self.require(types == ([] if alone else [out]) and not lanes, instr, f"{op} of other types")
            return
        self.require(op in INSTRUCTIONS and len(types) == INSTRUCTIONS[op][0], instr, f"no such instruction: {op}")
        kind = INSTRUCTIONS[op][1]
        if kind == "same":
            self.require(all(t is out for t in types), instr, f"{op} of other types than its result")
        elif kind == "bool":
            self.require(types[0] is types[1] and out is like(dt.bool_, types[0]), instr, f"{op} of different types")
        elif kind == "select":
            fits = types[0] is dt.bool_ or types[0] is like(dt.bool_, out)
            self.require(fits and types[1] is out and types[2] is out, instr, "select of different types")
        elif op == "cast":
            self.require(lanes_of(types[0]) == lanes, instr, "cast to other lanes")
        elif op == "bitcast":
            bits = [lane_type(t).size * max(lanes_of(t), 1) for t in (types[0], out)]
            self.require(bits[0] == bits[1], instr, "bitcast to another number of bits")

    def vector_op(self, instr: Instr, types: list[DType]) -> None:
        """Checks an instruction that only vectors have."""
        out = instr.out.dtype
        lanes = lanes_of(out)
        match instr.op:
            case "splat":
                good = isinstance(out, Vector) and types == [out.element]
            case "first":
                good = types == [dt.int64] and out is like(dt.bool_, out) and lanes > 0
            case "extract":
                good = lane_type(types[0]) is out and 0 <= instr.const < lanes_of(types[0])
            case "pack":
                good = isinstance(out, Vector) and types == [out.element] * lanes
            case "aligned":
                good = isinstance(types[0], Address) and out is dt.bool_ and instr.const & instr.const - 1 == 0
            case "add_pairs" | "add_quads":
                lane = dt.float32 if instr.op == "add_pairs" else dt.int32
                good = lane_type(out) is lane and lanes > 0 and types == [out] * 3
            case _:
                picked = all(0 <= n < 2 * lanes_of(types[0]) for n in instr.const) and len(instr.const) == lanes
                good = types[0] is types[1] and lane_type(types[0]) is lane_type(out) and picked
        self.require(good, instr, f"{instr.op} of other types than its result")


def _inside(statement: Statement) -> list[int]:
    """The values that only the blocks inside a statement see."""
    if isinstance(statement, For):
        return [statement.index.id]
    return [statement.out.id] if isinstance(statement, Room) else []
