"""The LLVM code that calls compiled programs: arguments checked, results allocated and wrapped, without any Python.

`add_program_entries(module, layout, strip, fresh)` adds two C functions of the METH_FASTCALL | METH_KEYWORDS kind.
`run` is called with the tensors of one program; its `self` is the `Bound` of a variant. `function` is the `__call__`
of a traced function: its first argument holds, in a slot, a tuple of such variants, which are tried in order. Both go
to the Python function of their `self` as soon as anything is not as a variant needs it.

A call that assigns variables is one step for all others. While it runs with the interpreter's lock held, nobody can
come between what it reads and what it assigns; where it gives the lock up, it claims the variables first
(`claims.py`). Everything that might run Python, such as memory for results, is therefore done before, and what was
read is compared once more (`agree`); then come the program and stores, and old values are released after all of them.

A variant is described by a table of 64-bit words, which `runtime/program_call.py` writes (`HEAD`, `INPUT`, `OUTPUT`
there). Nothing that Python can see is changed before a program has succeeded. The one exception is a variable that
the program overwrites in place: that happens only when nobody else refers to its value, its slot is empty meanwhile
where other threads may run, and such programs cannot fail.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from twofold.codegen.backend import INTERRUPTED

from .claims_ir import released, taken
from .emit import Glue, i8, i32, i64, ptr, void
from .native_layout import CONTIGUOUS_ALIGNED, OWNDATA, WRITEABLE
from .program_table import CLAIM, CODE, HEAD, INPUT, KIND, OUTPUT, PACKED, RESULT, STACK, STEP

__all__ = ["add_program_entries"]

_EQUAL = 2  # Py_EQ
_LEFT = 1  # what `attempt` returns where a variant does not serve the call; no object has this address


def add_program_entries(module: ir.Module, layout: dict[str, int], strip: ir.Function, fresh: ir.Function) -> None:
    """Adds `run` and `function` to the module."""
    attempt = _Attempt(module, layout, fresh).write()
    _run(module, layout, strip, attempt)
    _function(module, layout, strip, attempt)


def _run(module: ir.Module, layout: dict[str, int], strip: ir.Function, attempt: ir.Function) -> None:
    """`run(self, args, nargs, kwnames)`: one variant, called with its tensors."""
    c = Glue(module, layout, "run", ptr, [ptr, ptr, i64, ptr])
    owner, args, count, names = c.fn.args
    c.context = c.get(c.raw(owner), 0)
    slow, done = c.fn.append_basic_block(), c.fn.append_basic_block()
    c.unless(c.is_null(names), slow)
    c.leave_if(_closed(c), slow)
    result = c.call(attempt, [c.context, owner, args, count, i64(1)])
    c.cbranch(c.same(c.ptrtoint(result, i64), i64(_LEFT)), slow, done)
    _finish(c, strip, slow, done, result)


def _function(module: ir.Module, layout: dict[str, int], strip: ir.Function, attempt: ir.Function) -> None:
    """`function(self, args, nargs, kwnames)`: the variants of the function that is the first argument, in order."""
    c = Glue(module, layout, "function", ptr, [ptr, ptr, i64, ptr])
    owner, args, count, names = c.fn.args
    c.context = c.get(c.raw(owner), 0)
    slow, served = c.fn.append_basic_block("slow"), c.fn.append_basic_block("served")
    c.unless(c.is_null(names), slow)
    c.leave_if(_closed(c), slow)
    called = c.get(args, 0)
    c.unless(c.same(c.get(called, layout["object.type"]), c.shared("function")), slow)
    variants = c.get(called, c.shared("function.quick", i64))
    c.leave_if(c.is_null(variants), slow)
    c.api("Py_IncRef", void, variants)  # another thread may put others in their place
    number = c.get(variants, layout["tuple.size"], i64)
    arguments, rest = c.at(args, 8), c.sub(count, i64(1))
    before, test, inside, after = c.block, *(c.fn.append_basic_block() for _ in range(3))
    c.branch(test)
    c.position_at_end(test)
    index = c.phi(i64)
    index.add_incoming(i64(0), before)
    c.cbranch(c.icmp_signed("<", index, number), inside, after)
    c.position_at_end(inside)
    variant = c.load(c.word(c.at(variants, layout["tuple.items"]), index), typ=ptr)
    result = c.call(attempt, [c.context, variant, arguments, rest, i64(0)])
    left = c.same(c.ptrtoint(result, i64), i64(_LEFT))
    index.add_incoming(c.add(index, i64(1)), c.block)
    c.cbranch(left, test, served)
    c.position_at_end(after)
    c.release(variants)
    c.branch(slow)
    c.position_at_end(served)
    c.release(variants)
    done = c.fn.append_basic_block("done")
    c.branch(done)
    _finish(c, strip, slow, done, result)


def _closed(c: Glue) -> ir.Value:
    """Whether all calls are Python's affair now: something is traced or recorded, or compiled functions are off."""
    words = c.or_(c.or_(c.shared("tracers", i64), c.shared("recorders", i64)), c.shared("functions_off", i64))
    return c.not_(c.same(words, i64(0)))


def _finish(c: Glue, strip: ir.Function, slow: ir.Block, done: ir.Block, result: ir.Value) -> None:
    """Returns `result`, or from `slow` what the Python function gives; errors are trimmed."""
    owner, args, count, names = c.fn.args
    leave = c.fn.append_basic_block()
    c.position_at_end(done)
    c.branch(leave)
    c.position_at_end(slow)
    other = c.api("PyObject_Vectorcall", ptr, c.slot(owner, "bound.fn"), args, count, names)
    from_slow = c.block
    c.branch(leave)
    c.position_at_end(leave)
    returned = c.phi(ptr)
    returned.add_incoming(result, done)
    returned.add_incoming(other, from_slow)
    with c.if_then(c.is_null(returned), likely=False):
        c.call(strip, [c.context, owner, i64(-1)])
    c.ret(returned)


class _Attempt(Glue):
    """`attempt(context, variant, args, count, direct)`: the result of a call, NULL with an error, or `_LEFT`.

    `direct` says that the arguments are exactly the tensors of the program.
    """

    def __init__(self, module: ir.Module, layout: dict[str, int], fresh: ir.Function) -> None:
        super().__init__(module, layout, "attempt", ptr, [ptr, ptr, ptr, i64, i64], internal=True)
        self.context, self.variant, self.args, self.count, self.direct = self.fn.args
        self.fresh = fresh

    def head(self, name: str, kind: ir.Type = i64) -> ir.Value:
        """A word of the table's head."""
        return self.get(self.table, 8 * HEAD[name], kind)

    def code(self, name: str) -> ir.Value:
        """The address of a word of the program's code."""
        return self.at(self.head("words", ptr), 8 * CODE[name])

    def row(self, name: str, size: int, index: ir.Value) -> ir.Value:
        """The address of row number `index` of a part of the table, of `size` words."""
        return self.at(self.head(name, ptr), self.mul(index, i64(8 * size)))

    def block_(self, name: str) -> ir.Block:
        return self.fn.append_basic_block(name)

    def write(self) -> ir.Function:
        self.table = self.get(self.raw(self.variant), 8, ptr)
        self.leave, self.fail, self.undo = (self.block_(n) for n in ("leave", "fail", "undo"))
        self.outcome = self.room(i64)  # what `undo` returns
        self.inputs, self.outputs = self.head("inputs"), self.head("outputs")
        self.leaves = self.room(ptr, self.add(self.head("leaves"), i64(1)))
        self.gather()
        self.buffers = self.room(i64, self.add(self.head("buffers"), i64(1)))
        self.symbols = self.room(i64, self.add(self.head("symbols"), i64(1)))
        self.sizes = self.room(i64, self.add(self.head("sizes"), i64(2)))
        self.arrays = self.room(ptr, self.add(self.inputs, i64(1)))  # of the inputs, borrowed
        self.tensors = self.room(ptr, self.add(self.inputs, i64(1)))
        self.references = self.room(ptr, self.add(self.inputs, i64(1)))  # to values of variables, which are owned
        self.outs = self.room(ptr, self.add(self.outputs, i64(1)))  # arrays, until each is wrapped in a tensor
        self.wrapped = self.room(ptr, self.add(self.outputs, i64(1)))
        self.scratch, self.claimed = self.room(ptr), self.room(i64)
        self.packed = self.room(ptr)  # an object that packed operands lie in, which is owned
        self.known = self.room(i64)  # the number of those for which there is scratch memory
        self.clear()
        self.each(self.inputs, self.input)
        self.plan()
        self.find_packed(self.leave)
        self.count_call()
        self.each(self.inputs, self.hold)
        self.each(self.outputs, self.allocate)
        self.each(self.head("constants"), self.constant)
        arena = self.arena()
        self.each(self.outputs, self.wrap)
        self.each(self.outputs, self.take)
        self.agree()
        self.start(arena)
        self.finish()
        self.ends()
        return self.fn

    def clear(self) -> None:
        null = ptr(None)

        def output(n: ir.Value) -> None:
            self.store(null, self.word(self.outs, n))
            self.store(null, self.word(self.wrapped, n))

        self.store(null, self.scratch)
        self.store(null, self.packed)
        self.store(i64(0), self.claimed)
        self.store(i64(_LEFT), self.outcome)
        self.each(self.inputs, lambda n: self.store(null, self.word(self.references, n)))
        self.each(self.outputs, output)
        self.each(self.head("symbols"), lambda n: self.store(i64(-1), self.word(self.symbols, n)))

    # -- arguments --------------------------------------------------------------------------------
    def gather(self) -> None:
        """The tensors among the arguments; the others must equal those that the variant was made for."""
        direct, indirect, go = (self.block_(n) for n in ("direct", "indirect", "go"))
        self.cbranch(self.same(self.direct, i64(0)), indirect, direct)
        self.position_at_end(direct)
        self.unless(self.same(self.count, self.head("leaves")), self.leave)
        self.each(self.count, lambda n: self.store(self.load(self.word(self.args, n), typ=ptr),
                                                   self.word(self.leaves, n)))
        self.branch(go)
        self.position_at_end(indirect)
        self.unless(self.same(self.count, self.head("arguments")), self.leave)
        wanted = self.head("objects", ptr)
        place = self.room(i64)
        self.store(i64(0), place)

        def gather_one(n: ir.Value) -> None:
            argument, want = (self.load(self.word(at, n), typ=ptr) for at in (self.args, wanted))
            leaf, other, on = (self.fn.append_basic_block() for _ in range(3))
            self.cbranch(self.is_null(want), leaf, other)
            self.position_at_end(leaf)
            at = self.load(place, typ=i64)
            self.store(argument, self.word(self.leaves, at))
            self.store(self.add(at, i64(1)), place)
            self.branch(on)
            self.position_at_end(other)
            self.leave_if(self.same(argument, want), on)
            self.equal(argument, want, on)
            self.position_at_end(on)

        self.each(self.count, gather_one)
        self.branch(go)
        self.position_at_end(go)
        self.next_leaf = self.room(i64)
        self.store(i64(0), self.next_leaf)

    def equal(self, argument: ir.Value, want: ir.Value, on: ir.Block) -> None:
        """Goes on where two Python values of exactly one immutable type are equal, floats to the bit."""
        kind = self.get(want, self.layout["object.type"])
        self.unless(self.same(self.get(argument, self.layout["object.type"]), kind), self.leave)
        number, other = self.fn.append_basic_block(), self.fn.append_basic_block()
        self.cbranch(self.same(kind, self.shared("float")), number, other)
        self.position_at_end(number)
        bits = [self.get(x, self.layout["float.value"], i64) for x in (argument, want)]
        self.cbranch(self.same(*bits), on, self.leave)
        self.position_at_end(other)
        answer = self.api("PyObject_RichCompareBool", i32, argument, want, i32(_EQUAL))
        self.cbranch(self.same(answer, i32(1)), on, self.leave)

    def input(self, n: ir.Value) -> None:
        """Checks input number `n`, and notes where it lies."""
        row = self.row("input_rows", len(INPUT), n)
        kind, what = self.get(row, 8 * INPUT["kind"], i64), self.get(row, 8 * INPUT["what"], ptr)
        leaf, variable, fixed, check, on = (self.fn.append_basic_block() for _ in range(5))
        switch = self.switch(kind, leaf)
        switch.add_case(i64(KIND["variable"]), variable)
        switch.add_case(i64(KIND["fixed"]), fixed)
        self.position_at_end(fixed)
        self.store(self.ptrtoint(what, i64), self.word(self.buffers, n))
        self.branch(on)
        self.position_at_end(leaf)
        at = self.load(self.next_leaf, typ=i64)
        self.store(self.add(at, i64(1)), self.next_leaf)
        argument = self.load(self.word(self.leaves, at), typ=ptr)
        self.branch(check)
        self.position_at_end(variable)
        value = self.get(what, self.shared("variable.value", i64))
        from_variable = self.block
        self.cbranch(self.is_null(value), self.leave, check)
        self.position_at_end(check)
        tensor = self.phi(ptr)
        tensor.add_incoming(argument, leaf)
        tensor.add_incoming(value, from_variable)
        array = self.array_of(tensor, row)
        self.store(self.get(array, self.layout["array.data"], i64), self.word(self.buffers, n))
        self.store(array, self.word(self.arrays, n))
        self.store(tensor, self.word(self.tensors, n))
        self.branch(on)
        self.position_at_end(on)

    def array_of(self, tensor: ir.Value, row: ir.Value) -> ir.Value:
        """The array of a tensor, which must have the dtype and the shape that `row` says."""
        field, leave = self.layout, self.leave
        self.unless(self.same(self.get(tensor, field["object.type"]), self.shared("tensor")), leave)
        array = self.get(tensor, self.shared("tensor.array", i64))
        self.leave_if(self.is_null(array), leave)
        self.unless(self.same(self.get(array, field["object.type"]), self.shared("ndarray")), leave)
        flags = self.and_(self.get(array, field["array.flags"], i32), i32(CONTIGUOUS_ALIGNED))
        self.unless(self.same(flags, i32(CONTIGUOUS_ALIGNED)), leave)
        self.unless(self.same(self.get(array, field["array.descr"]), self.get(row, 8 * INPUT["descr"])), leave)
        rank = self.get(row, 8 * INPUT["rank"], i64)
        self.unless(self.same(self.sext(self.get(array, field["array.rank"], i32), i64), rank), leave)
        dims, wanted = self.get(array, field["array.dims"]), self.get(row, 8 * INPUT["dims"])

        def dim(n: ir.Value) -> None:
            have, want = (self.load(self.word(at, n), typ=i64) for at in (dims, wanted))
            number, symbol, bind, on = (self.fn.append_basic_block() for _ in range(4))
            self.cbranch(self.icmp_signed(">=", want, i64(0)), number, symbol)
            self.position_at_end(number)
            self.cbranch(self.same(have, want), on, leave)
            self.position_at_end(symbol)
            place = self.word(self.symbols, self.sub(i64(-1), want))
            value = self.load(place, typ=i64)
            self.leave_if(self.same(value, i64(-1)), bind)
            self.cbranch(self.same(have, value), on, leave)
            self.position_at_end(bind)
            self.store(have, place)
            self.branch(on)
            self.position_at_end(on)

        self.each(rank, dim)
        return array

    def plan(self) -> None:
        """Sizes that follow from the symbols, and whether what was assumed of them holds."""
        address = self.load(self.code("plan"), typ=i64)
        skip = self.block_("static")
        self.leave_if(self.same(address, i64(0)), skip)
        self.leave_if(self.same(self.to(address, i64, self.symbols, self.sizes), i64(0)), self.leave)
        self.branch(skip)
        self.position_at_end(skip)

    def count_call(self) -> None:
        """Counts what the call does; leaves where that is enough for Python to have better code made."""
        charge = self.head("charge")
        work = self.sub(self.load(self.word(self.sizes, 1), typ=i64), charge)
        at = self.code("left")
        left = self.sub(self.load(at, typ=i64), self.select(self.icmp_signed("<", charge, i64(0)), work, charge))
        self.store(left, at)
        self.leave_if(self.icmp_signed("<", left, i64(0)), self.leave)

    def hold(self, n: ir.Value) -> None:
        """Keeps the value of a variable, which other threads may replace; from here on `undo` gives it back."""
        row = self.row("input_rows", len(INPUT), n)
        is_variable = self.same(self.get(row, 8 * INPUT["kind"], i64), i64(KIND["variable"]))
        with self.if_then(self.and_(is_variable, self.same(self.get(row, 8 * INPUT["donor"], i64), i64(0)))):
            array = self.load(self.word(self.arrays, n), typ=ptr)
            self.api("Py_IncRef", void, array)
            self.store(array, self.word(self.references, n))

    # -- memory -----------------------------------------------------------------------------------
    def allocate(self, n: ir.Value) -> None:
        """Memory for output number `n`; none where it may overwrite the variable that it is a new value of."""
        row = self.row("output_rows", len(OUTPUT), n)
        donor = self.get(row, 8 * OUTPUT["donor"], i64)
        plain, donated, on = (self.fn.append_basic_block() for _ in range(3))
        self.cbranch(self.icmp_signed("<", donor, i64(0)), plain, donated)
        self.position_at_end(plain)
        array = self.new(n, row)
        self.store(self.get(array, self.layout["array.data"], i64), self.word(self.buffers, self.add(self.inputs, n)))
        self.branch(on)
        self.position_at_end(donated)
        self.leave_if(self.alone(donor), on)
        copy = self.new(n, row)  # others have the old value: work on a copy
        data = self.get(copy, self.layout["array.data"], i64)
        old = self.get(self.current(donor), self.shared("tensor.array", i64))
        self.unless(self.same(old, self.load(self.word(self.arrays, donor), typ=ptr)), self.undo)
        self.api("memcpy", ptr, data, self.get(old, self.layout["array.data"], i64),
                 self.get(row, 8 * OUTPUT["bytes"], i64))
        self.store(data, self.word(self.buffers, donor))
        self.branch(on)
        self.position_at_end(on)

    def new(self, n: ir.Value, row: ir.Value) -> ir.Value:
        """A new array for output number `n`."""
        dims = self.get(row, 8 * OUTPUT["dims"], i64)
        static = self.same(self.get(row, 8 * OUTPUT["static"], i64), i64(1))
        at = self.select(static, dims, self.add(self.ptrtoint(self.sizes, i64), dims))
        array = self.call(self.fresh, [self.context, self.get(row, 8 * OUTPUT["descr"]),
                                       self.get(row, 8 * OUTPUT["rank"], i64), self.inttoptr(at, ptr),
                                       self.get(row, 8 * OUTPUT["size"], i64)])
        self.leave_if(self.is_null(array), self.fail)
        self.store(array, self.word(self.outs, n))
        return array

    def current(self, donor: ir.Value) -> ir.Value:
        """The tensor that the variable of input number `donor` holds now; leaves where it holds none."""
        row = self.row("input_rows", len(INPUT), donor)
        value = self.get(self.get(row, 8 * INPUT["what"]), self.shared("variable.value", i64))
        self.leave_if(self.is_null(value), self.undo)
        return value

    def alone(self, donor: ir.Value) -> ir.Value:
        """Whether nobody but its variable refers to the value of input number `donor`."""
        tensor = self.current(donor)
        self.unless(self.same(tensor, self.load(self.word(self.tensors, donor), typ=ptr)), self.undo)
        array = self.load(self.word(self.arrays, donor), typ=ptr)
        once = self.and_(self.same(self.get(tensor, 0, i32), i32(1)), self.same(self.get(array, 0, i32), i32(1)))
        seen = self.ptrtoint(self.get(tensor, self.shared("tensor.weak", i64)), i64)
        flags = self.get(array, self.layout["array.flags"], i32)
        writable = self.not_(self.same(self.and_(flags, i32(WRITEABLE)), i32(0)))
        owned = self.and_(self.not_(self.same(self.and_(flags, i32(OWNDATA)), i32(0))),
                          self.is_null(self.get(array, self.layout["array.base"])))
        mine = self.and_(writable, self.or_(owned, self.pooled(array)))
        return self.and_(self.and_(once, mine), self.same(seen, i64(0)))

    def pooled(self, array: ir.Value) -> ir.Value:
        """Whether an array is one of the pool's, and nobody else has a view of its block: the pool and the array refer
        to that, and the first weak reference to the array is the pool's."""
        base = self.get(array, self.layout["array.base"])
        weak = self.get(array, self.layout["array.weak"])
        none = self.or_(self.is_null(base), self.is_null(weak))
        count = self.get(self.select(none, array, base), 0, i32)
        kind = self.get(self.select(none, array, weak), self.layout["object.type"])
        return self.and_(self.not_(none), self.and_(self.same(count, i32(2)), self.same(kind, self.shared("lease"))))

    def take(self, n: ir.Value) -> None:
        """Just before the program runs: whether the memory that is overwritten still belongs to nobody else."""
        row = self.row("output_rows", len(OUTPUT), n)
        donor = self.get(row, 8 * OUTPUT["donor"], i64)
        check, on = self.fn.append_basic_block(), self.fn.append_basic_block()
        self.cbranch(self.in_place(n, donor), check, on)
        self.position_at_end(check)
        self.unless(self.alone(donor), self.undo)
        self.branch(on)
        self.position_at_end(on)

    def in_place(self, n: ir.Value, donor: ir.Value) -> ir.Value:
        """Whether output number `n` overwrites its donor."""
        nothing_new = self.is_null(self.load(self.word(self.wrapped, n), typ=ptr))
        return self.and_(self.icmp_signed(">=", donor, i64(0)), nothing_new)

    # -- one step for all others ------------------------------------------------------------------
    def for_claims(self, each: Callable[[ir.Value, ir.Value, ir.Value], None]) -> None:
        """Does something for each variable of a program that assigns any: `each(row, word, mode)`, with the row of the
        table and the address of the variable's word."""
        def variable(n: ir.Value) -> None:
            row = self.row("claim_rows", len(CLAIM), n)
            each(row, self.get(row, 8 * CLAIM["word"]), self.get(row, 8 * CLAIM["mode"], i64))

        self.each(self.head("claims"), variable)

    def agree(self) -> None:
        """Leaves where a variable does not hold any more what was read, where another call has claimed it, or where
        others wait for variables: Python decides whose turn it is."""
        skip = self.block_("agreed")
        self.leave_if(self.same(self.head("claims"), i64(0)), skip)
        self.unless(self.same(self.shared("claims.waiting", i64), i64(0)), self.undo)

        def check(row: ir.Value, word: ir.Value, mode: ir.Value) -> None:
            same, free, on = (self.fn.append_basic_block() for _ in range(3))
            n = self.get(row, 8 * CLAIM["input"], i64)
            value = self.load(self.get(row, 8 * CLAIM["slot"]), typ=ptr)
            self.cbranch(self.same(value, self.load(self.word(self.tensors, n), typ=ptr)), same, self.undo)
            self.position_at_end(same)
            array = self.get(value, self.shared("tensor.array", i64))
            self.cbranch(self.same(array, self.load(self.word(self.arrays, n), typ=ptr)), free, self.undo)
            self.position_at_end(free)
            self.cbranch(taken(self, self.load(word, typ=i64), mode)[0], on, self.undo)
            self.position_at_end(on)

        self.for_claims(check)
        self.branch(skip)
        self.position_at_end(skip)

    def claim(self) -> None:
        """Claims the variables, before the interpreter's lock is given up; `agree` has found them free."""
        def put(_: ir.Value, word: ir.Value, mode: ir.Value) -> None:
            self.store(taken(self, self.load(word, typ=i64), mode)[1], word)

        with self.if_then(self.not_(self.same(self.head("claims"), i64(0)))):
            self.for_claims(put)
            self.store(i64(1), self.claimed)
            self.count_running(1)

    def count_running(self, by: int) -> None:
        at = self.at(self.context, 8 * self.layout["context.claims.running"])
        self.store(self.add(self.load(at, typ=i64), i64(by)), at)

    def unclaim(self) -> None:
        """Gives back what `claim` took."""
        def put(_: ir.Value, word: ir.Value, mode: ir.Value) -> None:
            self.store(released(self, self.load(word, typ=i64), mode), word)

        with self.if_then(self.same(self.load(self.claimed, typ=i64), i64(1)), likely=False):
            self.for_claims(put)
            self.store(i64(0), self.claimed)
            self.count_running(-1)

    def constant(self, n: ir.Value) -> None:
        value = self.load(self.word(self.head("constant_rows", ptr), n), typ=i64)
        self.store(value, self.word(self.buffers, self.add(self.add(self.inputs, self.outputs), n)))

    def arena(self) -> ir.Value:
        """The address of the scratch memory."""
        static = self.head("arena")
        need = self.select(self.icmp_signed("<", static, i64(0)), self.load(self.sizes, typ=i64), static)
        need = self.need_of_packed(need)
        small, large, on = (self.fn.append_basic_block() for _ in range(3))
        room = self.add(need, i64(64))
        dims = self.room(i64)
        self.store(room, dims)
        self.cbranch(self.icmp_signed("<=", need, i64(STACK)), small, large)
        self.position_at_end(small)
        local = self.ptrtoint(self.alloca(i8, room), i64)
        self.branch(on)
        self.position_at_end(large)
        descr = self.head("bytes", ptr)
        array = self.call(self.fresh, [self.context, descr, i64(1), dims, i64(1)])
        self.leave_if(self.is_null(array), self.fail)
        self.store(array, self.scratch)
        data = self.get(array, self.layout["array.data"], i64)
        from_large = self.block
        self.branch(on)
        self.position_at_end(on)
        at = self.phi(i64)
        at.add_incoming(local, small)
        at.add_incoming(data, from_large)
        return self.inttoptr(self.and_(self.add(at, i64(63)), i64(-64)), ptr)

    # -- running ----------------------------------------------------------------------------------
    def find_packed(self, differ: ir.Block) -> ir.Value:
        """The address of the words of operands that are packed once, or NULL; to `differ` where inputs are others now:
        Python has them packed anew, or drops them."""
        packed = self.load(self.code("packed"), typ=ptr)
        looked = self.fn.append_basic_block()
        self.leave_if(self.is_null(packed), looked)

        def guard(n: ir.Value) -> None:
            pair = self.at(packed, self.add(self.mul(n, i64(16)), i64(8 * len(PACKED))))
            lies = self.load(self.word(self.buffers, self.get(pair, 0, i64)), typ=i64)
            self.unless(self.same(lies, self.get(pair, 8, i64)), differ)

        self.each(self.get(packed, 8 * PACKED["guards"], i64), guard)
        self.branch(looked)
        self.position_at_end(looked)
        return packed

    def need_of_packed(self, need: ir.Value) -> ir.Value:
        """The bytes of scratch memory where operands that are packed once may be read; which these are is noted."""
        packed = self.load(self.code("packed"), typ=ptr)
        before, some, sized, on = self.block, *(self.block_(n) for n in ("some", "sized", "needed"))
        self.store(i64(0), self.known)
        self.cbranch(self.is_null(packed), on, some)
        self.position_at_end(some)
        self.store(self.get(packed, 8 * PACKED["number"], i64), self.known)
        plan, own = self.get(packed, 8 * PACKED["plan"], i64), self.get(packed, 8 * PACKED["arena"], i64)
        self.cbranch(self.same(plan, i64(0)), on, sized)
        self.position_at_end(sized)
        sizes = self.room(i64, self.add(self.head("sizes"), i64(2)))
        self.to(plan, i64, self.symbols, sizes)
        of_sizes, from_sized = self.load(sizes, typ=i64), self.block
        self.branch(on)
        self.position_at_end(on)
        other = self.phi(i64)
        for value, block in ((i64(0), before), (own, some), (of_sizes, from_sized)):
            other.add_incoming(value, block)
        return self.select(self.icmp_signed("<", need, other), other, need)

    def code_to_run(self) -> tuple[ir.Value, ir.Value, ir.Value]:
        """The entry, the words and the buffers of the run that is about to begin."""
        plain, better, on = (self.block_(n) for n in ("plain", "better", "chosen"))
        entry, words = self.load(self.code("entry"), typ=i64), self.head("words", ptr)
        packed, look = self.find_packed(self.undo), self.block_("look")
        self.cbranch(self.is_null(packed), plain, look)
        self.position_at_end(look)
        self.cbranch(self.same(self.get(packed, 8 * PACKED["number"], i64), self.load(self.known, typ=i64)), better,
                     plain)
        self.position_at_end(plain)
        self.branch(on)
        self.position_at_end(better)
        own, memory = self.get(packed, 8 * PACKED["entry"], i64), self.get(packed, 8 * PACKED["memory"])
        own_words = self.get(packed, 8 * PACKED["words"])
        self.api("Py_IncRef", void, memory)
        self.store(memory, self.packed)
        given, rest = self.add(self.inputs, self.outputs), self.get(packed, 8 * PACKED["rest"], i64)
        guards = self.get(packed, 8 * PACKED["guards"], i64)
        own_buffers = self.room(i64, self.add(given, rest))
        first = self.at(packed, self.add(self.mul(guards, i64(16)), i64(8 * len(PACKED))))

        def copy(source: ir.Value, to: ir.Value, count: ir.Value) -> None:
            self.each(count, lambda n: self.store(self.load(self.word(source, n), typ=i64), self.word(to, n)))

        copy(self.buffers, own_buffers, given)
        copy(first, self.word(own_buffers, given), rest)
        from_better = self.block
        self.branch(on)
        self.position_at_end(on)
        chosen = []
        for plainly, packedly in ((entry, own), (words, own_words), (self.buffers, own_buffers)):
            one = self.phi(plainly.type)
            one.add_incoming(plainly, plain)
            one.add_incoming(packedly, from_better)
            chosen.append(one)
        return chosen[0], chosen[1], chosen[2]

    def start(self, arena: ir.Value) -> None:
        entry, words, buffers = self.code_to_run()
        locked, unlocked, on = (self.block_(n) for n in ("locked", "unlocked", "ran"))
        static = self.head("work")
        work = self.select(self.icmp_signed("<", static, i64(0)), self.load(self.word(self.sizes, 1), typ=i64), static)
        self.cbranch(self.icmp_signed("<", work, self.head("small")), locked, unlocked)
        self.position_at_end(locked)
        first = self.to(entry, i64, buffers, self.symbols, arena, words)
        self.branch(on)
        self.position_at_end(unlocked)
        self.claim()
        self.each(self.outputs, lambda n: self.swap(n, None))
        state = self.api("PyEval_SaveThread", ptr)
        second = self.to(entry, i64, buffers, self.symbols, arena, words)
        self.api("PyEval_RestoreThread", void, state)
        self.each(self.outputs, lambda n: self.swap(n, self.tensors))
        from_unlocked = self.block
        self.branch(on)
        self.position_at_end(on)
        status = self.phi(i64)
        status.add_incoming(first, locked)
        status.add_incoming(second, from_unlocked)
        failed, well, stopped = self.block_("failed"), self.block_("well"), self.block_("stopped")
        self.cbranch(self.same(status, i64(0)), well, failed)
        self.position_at_end(failed)
        self.unclaim()
        self.wake_waiting(self.fail)
        self.cbranch(self.same(status, i64(INTERRUPTED)), stopped, self.undo)
        self.position_at_end(stopped)
        self.to(self.shared("interrupts.raise", i64), i64, self.shared("interrupts"))
        self.branch(self.fail)
        self.position_at_end(well)

    def swap(self, n: ir.Value, tensors: ir.Value | None) -> None:
        """Empties the slot of a variable that is overwritten in place, or puts its tensor back."""
        row = self.row("output_rows", len(OUTPUT), n)
        donor = self.get(row, 8 * OUTPUT["donor"], i64)
        with self.if_then(self.in_place(n, donor)):
            slot = self.at(self.get(row, 8 * OUTPUT["variable"]), self.shared("variable.value", i64))
            before = self.load(slot, typ=ptr)
            if tensors is None:
                self.store(ptr(None), slot)
            else:
                self.store(self.load(self.word(tensors, donor), typ=ptr), slot)
                self.release(before)  # what another thread assigned meanwhile

    def finish(self) -> None:
        """The results as tensors, in their structure; variables get their values."""
        results = self.head("results")
        self.each(self.outputs, self.assign)
        self.unclaim()
        self.each(self.sub(self.outputs, results), lambda n: self.release(
            self.load(self.word(self.wrapped, self.add(results, n)), typ=ptr)))  # the old values
        self.each(self.inputs, lambda n: self.release(self.load(self.word(self.references, n), typ=ptr)))
        self.release(self.load(self.scratch, typ=ptr))
        self.release(self.load(self.packed, typ=ptr))
        interrupted = self.block_("interrupted")
        self.wake_waiting(interrupted)
        one, built, packer = (self.block_(n) for n in ("one", "built", "packer"))
        switch = self.switch(self.head("result_kind"), packer)
        switch.add_case(i64(RESULT["one"]), one)
        switch.add_case(i64(RESULT["built"]), built)
        self.position_at_end(one)
        self.ret(self.load(self.wrapped, typ=ptr))
        self.position_at_end(packer)
        packed = self.api("PyObject_Vectorcall", ptr, self.head("result", ptr), self.wrapped, results, ptr(None))
        self.release_all(results, self.wrapped)
        self.ret(packed)
        self.position_at_end(built)
        self.build(results)
        self.position_at_end(interrupted)
        self.release_all(results, self.wrapped)
        self.ret(ptr(None))

    def wake_waiting(self, failed: ir.Block) -> None:
        """Wakes those who wait for variables; to `failed` where the user interrupts that."""
        on, wake = self.block_("awake"), self.block_("wake")
        self.cbranch(self.same(self.shared("claims.waiting", i64), i64(0)), on, wake)
        self.position_at_end(wake)
        answer = self.api("PyObject_Vectorcall", ptr, self.shared("claims.changed"), ptr(None), i64(0), ptr(None))
        self.release(answer)
        self.cbranch(self.is_null(answer), failed, on)
        self.position_at_end(on)

    def release_all(self, count: ir.Value, things: ir.Value) -> None:
        self.each(count, lambda n: self.release(self.load(self.word(things, n), typ=ptr)))

    def build(self, results: ir.Value) -> None:
        """Runs the steps that put the result together, on a stack of objects."""
        steps, count = self.head("result", ptr), self.head("steps")
        stack, top = self.room(ptr, self.add(count, i64(1))), self.room(i64)
        lost = self.block_("lost")
        self.store(i64(0), top)

        def step(n: ir.Value) -> None:
            row = self.at(steps, self.mul(n, i64(16)))
            code, what = self.get(row, 0, i64), self.get(row, 8, i64)
            blocks = {name: self.fn.append_basic_block(name) for name in STEP}
            on = self.fn.append_basic_block()
            switch = self.switch(code, blocks["tensor"])
            for name, number in STEP.items():
                if name != "tensor":
                    switch.add_case(i64(number), blocks[name])
            for name, source in (("tensor", None), ("object", self.inttoptr)):
                self.position_at_end(blocks[name])
                thing = self.load(self.word(self.wrapped, what), typ=ptr) if source is None else source(what, ptr)
                self.api("Py_IncRef", void, thing)
                self.push(stack, top, thing)
                self.branch(on)
            self.position_at_end(blocks["tuple"])
            self.container("PyTuple_New", what, stack, top, lost, lambda container, i, x: self.store(
                x, self.word(self.at(container, self.layout["tuple.items"]), i)))
            self.branch(on)
            self.position_at_end(blocks["list"])
            self.container("PyList_New", what, stack, top, lost,
                           lambda container, i, x: self.api("PyList_SetItem", i32, container, i, x))
            self.branch(on)
            self.position_at_end(blocks["dict"])
            self.dictionary(self.inttoptr(what, ptr), stack, top, lost)
            self.branch(on)
            self.position_at_end(on)

        self.each(count, step)
        self.release_all(results, self.wrapped)
        self.ret(self.load(stack, typ=ptr))
        self.position_at_end(lost)
        self.release_all(results, self.wrapped)
        self.release_all(self.load(top, typ=i64), stack)
        self.ret(ptr(None))

    def push(self, stack: ir.Value, top: ir.Value, thing: ir.Value) -> None:
        at = self.load(top, typ=i64)
        self.store(thing, self.word(stack, at))
        self.store(self.add(at, i64(1)), top)

    def container(self, function: str, count: ir.Value, stack: ir.Value, top: ir.Value, lost: ir.Block,
                  put: Callable[[ir.Value, ir.Value, ir.Value], object]) -> None:
        """Puts a new container in the place of the last `count` objects, which it takes over."""
        container = self.api(function, ptr, count)
        self.leave_if(self.is_null(container), lost)
        first = self.sub(self.load(top, typ=i64), count)
        self.each(count, lambda i: put(container, i, self.load(self.word(stack, self.add(first, i)), typ=ptr)))
        self.store(first, top)
        self.push(stack, top, container)

    def dictionary(self, keys: ir.Value, stack: ir.Value, top: ir.Value, lost: ir.Block) -> None:
        """Puts a new dict in the place of the objects for the tuple `keys`."""
        count = self.get(keys, self.layout["tuple.size"], i64)
        dictionary = self.api("PyDict_New", ptr)
        self.leave_if(self.is_null(dictionary), lost)
        first = self.sub(self.load(top, typ=i64), count)
        failed = self.room(i32)
        self.store(i32(0), failed)

        def put(i: ir.Value) -> None:
            value = self.load(self.word(stack, self.add(first, i)), typ=ptr)
            key = self.load(self.word(self.at(keys, self.layout["tuple.items"]), i), typ=ptr)
            status = self.api("PyDict_SetItem", i32, dictionary, key, value)
            self.store(self.or_(self.load(failed, typ=i32), status), failed)
            self.release(value)

        self.each(count, put)
        self.store(first, top)
        self.push(stack, top, dictionary)
        self.unless(self.same(self.load(failed, typ=i32), i32(0)), lost)

    def wrap(self, n: ir.Value) -> None:
        """A tensor for the array of output number `n`."""
        array = self.load(self.word(self.outs, n), typ=ptr)
        with self.if_then(self.not_(self.is_null(array))):
            tensor = self.api("tensor.alloc", ptr, self.shared("tensor"), i64(0))
            self.leave_if(self.is_null(tensor), self.fail)
            self.put(array, tensor, self.shared("tensor.array", i64))
            self.store(ptr(None), self.word(self.outs, n))
            self.store(tensor, self.word(self.wrapped, n))

    def assign(self, n: ir.Value) -> None:
        """Gives a variable its new value. Where that lies in the place of the old one, recorders know that no more."""
        variable = self.get(self.row("output_rows", len(OUTPUT), n), 8 * OUTPUT["variable"])
        value = self.load(self.word(self.wrapped, n), typ=ptr)
        wanted = self.and_(self.not_(self.is_null(variable)), self.not_(self.is_null(value)))
        with self.if_then(wanted):
            slot = self.at(variable, self.shared("variable.value", i64))
            before = self.load(slot, typ=ptr)
            self.store(value, slot)
            self.store(before, self.word(self.wrapped, n))  # to be released when all variables have their values
        with self.if_then(self.and_(self.not_(self.is_null(variable)), self.is_null(value))):
            tensor = self.get(variable, self.shared("variable.value", i64))
            number = self.at(tensor, self.shared("tensor.id", i64))
            known = self.load(number, typ=ptr)
            self.store(ptr(None), number)
            self.release(known)

    def ends(self) -> None:
        """`leave` before anything was taken; `fail` with an error set; `undo` gives back what was taken."""
        self.position_at_end(self.leave)
        self.ret(self.inttoptr(i64(_LEFT), ptr))
        self.position_at_end(self.fail)
        self.store(i64(0), self.outcome)
        self.branch(self.undo)
        self.position_at_end(self.undo)
        self.each(self.inputs, lambda n: self.release(self.load(self.word(self.references, n), typ=ptr)))
        for list_ in (self.outs, self.wrapped):
            def release(n: ir.Value, at: ir.Value = list_) -> None:
                self.release(self.load(self.word(at, n), typ=ptr))
            self.each(self.outputs, release)
        self.release(self.load(self.scratch, typ=ptr))
        self.release(self.load(self.packed, typ=ptr))
        self.ret(self.inttoptr(self.load(self.outcome, typ=i64), ptr))
