"""The LLVM code that claims variables: what calls that assign them do to the words of `claims.py`.

A word is the payload of a bytes object in the slot `_word` of a variable: 0 where nobody is at work on it, n where n
calls read it, -1 where one assigns it. All of this runs with the interpreter's lock held, so that each function is one
step for every thread. `program_ir.py` uses the same rules inside of calls.
"""

from __future__ import annotations

from llvmlite import ir

from .emit import Code, Glue, i64, ptr, void
from .program_table import MODE

__all__ = ["add_claims", "released", "taken", "word_of"]


def word_of(c: Glue, variable: ir.Value) -> ir.Value:
    """The address of a variable's word."""
    return c.at(c.get(variable, c.shared("variable.word", i64)), c.layout["bytes.payload"])


def taken(c: Code, word: ir.Value, mode: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Whether a variable with this word may be claimed, and the word after that."""
    assigned = c.same(mode, i64(MODE["assigned"]))
    free = c.select(assigned, c.same(word, i64(0)), c.icmp_signed(">=", word, i64(0)))
    return free, c.select(assigned, i64(-1), c.add(word, i64(1)))


def released(c: Code, word: ir.Value, mode: ir.Value) -> ir.Value:
    """The word after a claim is given back."""
    return c.select(c.same(mode, i64(MODE["assigned"])), i64(0), c.sub(word, i64(1)))


def add_claims(module: ir.Module, layout: dict[str, int]) -> None:
    """Adds `take`, `drop`, `swap`, `commit` and `snapshot`, functions of the METH_FASTCALL | METH_KEYWORDS kind."""
    _take(module, layout)
    _drop(module, layout)
    _swap(module, layout)
    _commit(module, layout)
    _snapshot(module, layout)


def _function(module: ir.Module, layout: dict[str, int], name: str) -> tuple[Glue, ir.Value, ir.Value, ir.Value]:
    c = Glue(module, layout, name, ptr, [ptr, ptr, i64, ptr])
    owner, args, count, _ = c.fn.args
    c.context = c.get(c.raw(owner), 0)
    return c, owner, args, count


def _answer(c: Glue, number: int) -> None:
    c.ret(c.api("PyLong_FromLongLong", ptr, i64(number)))


def _pairs(c: Glue, owner: ir.Value) -> tuple[ir.Value, ir.Value]:
    """The words of a claim, each with its mode, and how many there are."""
    return c.get(c.raw(owner), 8), c.get(c.raw(owner), 16, i64)


def _pair(c: Glue, pairs: ir.Value, n: ir.Value) -> tuple[ir.Value, ir.Value]:
    """The address of word number `n` of a claim, and its mode."""
    at = c.mul(n, i64(2))
    return c.load(c.word(pairs, at), typ=ptr), c.load(c.word(pairs, c.add(at, i64(1))), typ=i64)


def _take(module: ir.Module, layout: dict[str, int]) -> None:
    """`take(flag)`: claims all variables and sets the flag, bytes of eight; or none, where one is not free: 0."""
    c, owner, args, _ = _function(module, layout, "take")
    refused = c.fn.append_basic_block("refused")
    pairs, count = _pairs(c, owner)

    def test(n: ir.Value) -> None:
        word, mode = _pair(c, pairs, n)
        c.unless(taken(c, c.load(word, typ=i64), mode)[0], refused)

    def put(n: ir.Value) -> None:
        word, mode = _pair(c, pairs, n)
        c.store(taken(c, c.load(word, typ=i64), mode)[1], word)

    c.each(count, test)
    c.each(count, put)
    c.put(i64(1), c.get(args, 0), layout["bytes.payload"])
    _answer(c, 1)
    c.position_at_end(refused)
    _answer(c, 0)


def _drop(module: ir.Module, layout: dict[str, int]) -> None:
    """`drop(flag)`: gives back what `take` claimed and clears the flag; nothing where it is not set: 0."""
    c, owner, args, _ = _function(module, layout, "drop")
    nothing = c.fn.append_basic_block("nothing")
    pairs, count = _pairs(c, owner)
    flag = c.get(args, 0)
    c.leave_if(c.same(c.get(flag, layout["bytes.payload"], i64), i64(0)), nothing)
    c.put(i64(0), flag, layout["bytes.payload"])

    def put(n: ir.Value) -> None:
        word, mode = _pair(c, pairs, n)
        c.store(released(c, c.load(word, typ=i64), mode), word)

    c.each(count, put)
    _answer(c, 1)
    c.position_at_end(nothing)
    _answer(c, 0)


def _swap(module: ir.Module, layout: dict[str, int]) -> None:
    """`swap(variable, after, before)`: gives a variable a tensor, where nobody else is assigning it and, if `before`
    is given, where it still holds that; else 0."""
    c, _, args, count = _function(module, layout, "swap")
    refused, store = c.fn.append_basic_block("refused"), c.fn.append_basic_block("store")
    variable, after = c.get(args, 0), c.get(args, 8)
    c.leave_if(c.same(c.load(word_of(c, variable), typ=i64), i64(-1)), refused)
    slot = c.at(variable, c.shared("variable.value", i64))
    now = c.load(slot, typ=ptr)
    c.leave_if(c.is_null(now), refused)
    c.leave_if(c.same(count, i64(2)), store)
    c.cbranch(c.same(now, c.get(args, 16)), store, refused)
    c.position_at_end(store)
    c.api("Py_IncRef", void, after)
    c.store(after, slot)
    c.release(now)
    _answer(c, 1)
    c.position_at_end(refused)
    _answer(c, 0)


def _commit(module: ir.Module, layout: dict[str, int]) -> None:
    """`commit(variables, tensors)`: gives all variables of a tuple their values; who assigns them is not asked."""
    c, _, args, _ = _function(module, layout, "commit")
    variables, tensors = c.get(args, 0), c.get(args, 8)
    count = c.get(variables, layout["tuple.size"], i64)
    before = c.room(ptr, c.add(count, i64(1)))

    def put(n: ir.Value) -> None:
        variable, tensor = (c.load(c.word(c.at(x, layout["tuple.items"]), n), typ=ptr) for x in (variables, tensors))
        slot = c.at(variable, c.shared("variable.value", i64))
        c.store(c.load(slot, typ=ptr), c.word(before, n))
        c.api("Py_IncRef", void, tensor)
        c.store(tensor, slot)

    c.each(count, put)
    c.each(count, lambda n: c.release(c.load(c.word(before, n), typ=ptr)))
    _answer(c, 1)


def _snapshot(module: ir.Module, layout: dict[str, int]) -> None:
    """`snapshot(variables)`: the tensors of a tuple of variables at one moment; 0 where one is overwritten now."""
    c, _, args, _ = _function(module, layout, "snapshot")
    refused, failed = c.fn.append_basic_block("refused"), c.fn.append_basic_block("failed")
    variables = c.get(args, 0)
    count = c.get(variables, layout["tuple.size"], i64)
    tensors = c.api("PyTuple_New", ptr, count)
    c.leave_if(c.is_null(tensors), failed)

    def put(n: ir.Value) -> None:
        variable = c.load(c.word(c.at(variables, layout["tuple.items"]), n), typ=ptr)
        tensor = c.get(variable, c.shared("variable.value", i64))
        c.leave_if(c.is_null(tensor), refused)
        c.api("Py_IncRef", void, tensor)
        c.store(tensor, c.word(c.at(tensors, layout["tuple.items"]), n))

    c.each(count, put)
    c.ret(tensors)
    c.position_at_end(refused)
    c.release(tensors)
    _answer(c, 0)
    c.position_at_end(failed)
    c.ret(ptr(None))
