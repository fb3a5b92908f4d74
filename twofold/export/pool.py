"""The threads of WebAssembly libraries: the three functions of OpenMP that sharing work needs, and what workers run.

Each worker has an instance of the library, with a stack of its own; memory is one for all. `fork_join`
(`runtime/threads.py`) opens a region to some of them, does its own part, closes the region, and waits for those that
have joined by then. It never waits for one that has not: a call goes on where workers begin late, or never.

What all see are words of 32 bits. The first says how many may still join (its upper half) and how many are at work (its
lower half), or, where it is negative, that workers are to end. The loader (`wasm.py`) calls three functions besides:

    void __work(void)                            what a worker runs until it is to end
    void __lost(void)                            says that a worker's part has ended by a trap
    int32 __threads(int32 count, int32 sleeps)   sets how many threads there are, the caller's included, and whether
                                                 that one may sleep; one thread ends the workers. Whether one was lost.
"""

from __future__ import annotations

from llvmlite import ir

from twofold.runtime.emit import Code, i32, i64, ptr, void

__all__ = ["COUNT", "EXPORTED", "OPENMP", "module"]

OPENMP = ("GOMP_parallel", "omp_get_thread_num", "omp_get_num_threads")  # `fork_join` calls them in this order
COUNT = "fork_threads"  # the symbol of an int64: how many threads there are
EXPORTED = ("__work", "__lost", "__threads")

_STATE, _NUMBER, _COUNT, _WAITS, _SLEEPS, _LOST = range(6)  # words
_WORDS = 16  # a line of a cache
_PLACE = 1 << 16
_ORDER = "seq_cst"
_FOREVER = i64(-1)
# Rounds to look for the next region, and for the end of one, before a thread sleeps: tens of microseconds.
_LOOKS = 20000


def module() -> ir.Module:
    """The module of these functions."""
    made = ir.Module("pool")
    count = ir.GlobalVariable(made, i64, COUNT)
    count.initializer = i64(1)
    shared = _Shared(made)
    _openmp(made, shared)
    _worker(made, shared)
    _settings(made, shared, count)
    return made


class _Shared:
    """What all threads see, and the instructions with which they wait for each other."""

    def __init__(self, made: ir.Module) -> None:
        kind = ir.ArrayType(i32, _WORDS)
        self.words = ir.GlobalVariable(made, kind, "fork_words")
        self.words.initializer, self.words.align = ir.Constant(kind, None), 64
        self.job = ir.GlobalVariable(made, ir.ArrayType(ptr, 2), "fork_job")  # the region, and its data
        self.job.initializer = ir.Constant(self.job.value_type, None)
        self.wait_for = ir.Function(made, ir.FunctionType(i32, [ptr, i32, i64]), "llvm.wasm.memory.atomic.wait32")
        self.notify = ir.Function(made, ir.FunctionType(i32, [ptr, i32]), "llvm.wasm.memory.atomic.notify")

    def word(self, c: Code, number: int) -> ir.Value:
        return c.gep(self.words, [i32(0), i32(number)])

    def load(self, c: Code, number: int) -> ir.Value:
        return c.load_atomic(self.word(c, number), _ORDER, 4, typ=i32)

    def store(self, c: Code, number: int, value: ir.Value) -> None:
        c.store_atomic(value, self.word(c, number), _ORDER, 4)

    def change(self, c: Code, how: str, number: int, by: ir.Value) -> ir.Value:
        """Changes a word; what it was."""
        return c.atomic_rmw(how, self.word(c, number), by, _ORDER)

    def wake(self, c: Code, count: ir.Value) -> None:
        c.call(self.notify, [self.word(c, _STATE), count])

    def run(self, c: Code) -> None:
        """Runs the region."""
        region, data = (c.load(c.gep(self.job, [i32(0), i32(n)]), typ=ptr) for n in range(2))
        c.to(region, void, data)

    def leave(self, c: Code) -> None:
        """One thread less is at work; the last one wakes the caller, if that one sleeps."""
        before = self.change(c, "sub", _STATE, i32(1))
        with c.if_then(c.and_(c.icmp_signed("==", before, i32(1)),
                              c.icmp_signed("!=", self.load(c, _WAITS), i32(0)))):
            self.wake(c, i32(-1))


def _openmp(made: ir.Module, shared: _Shared) -> None:
    parallel, number, count = OPENMP
    c = Code(made, parallel, void, [ptr, ptr, i32, i32])
    region, data, threads, _ = c.fn.args
    for at, value in enumerate((region, data)):
        c.store(value, c.gep(shared.job, [i32(0), i32(at)]))
    shared.store(c, _NUMBER, i32(0))
    shared.store(c, _COUNT, threads)
    others = c.sub(threads, i32(1))
    shared.store(c, _STATE, c.mul(others, i32(_PLACE)))
    shared.wake(c, others)
    shared.run(c)
    shared.change(c, "and", _STATE, i32(_PLACE - 1))
    _wait_for_all(c, shared)
    with c.if_then(c.icmp_signed("!=", shared.load(c, _LOST), i32(0)), likely=False):
        c.call(c.module.declare_intrinsic("llvm.trap", fnty=ir.FunctionType(void, [])), [])
    c.ret_void()
    c = Code(made, number, i32, [])  # each thread that takes part in a region asks once
    c.ret(shared.change(c, "add", _NUMBER, i32(1)))
    c = Code(made, count, i32, [])
    c.ret(shared.load(c, _COUNT))


def _wait_for_all(c: Code, shared: _Shared) -> None:
    """Waits until nobody is at work; asleep after a while, where this thread may."""
    look, again, sleep, done = (c.append_basic_block(name) for name in ("look", "again", "sleep", "done"))
    looks = c.alloca(i32)
    c.store(i32(_LOOKS), looks)
    c.branch(look)
    c.position_at_end(look)
    c.cbranch(c.icmp_signed("==", shared.load(c, _STATE), i32(0)), done, again)
    c.position_at_end(again)
    left = c.sub(c.load(looks, typ=i32), i32(1))
    c.store(left, looks)
    tired = c.and_(c.icmp_signed("<", left, i32(0)), c.icmp_signed("!=", shared.load(c, _SLEEPS), i32(0)))
    c.cbranch(tired, sleep, look)
    c.position_at_end(sleep)
    shared.store(c, _WAITS, i32(1))
    state = shared.load(c, _STATE)
    with c.if_then(c.icmp_signed("!=", state, i32(0))):
        c.call(shared.wait_for, [shared.word(c, _STATE), state, _FOREVER])
    shared.store(c, _WAITS, i32(0))
    c.branch(look)
    c.position_at_end(done)


def _worker(made: ir.Module, shared: _Shared) -> None:
    work, lost, _ = EXPORTED
    c = Code(made, work, void, [])
    rest, look, idle, sleep, join, run, end = (
        c.append_basic_block(name) for name in ("rest", "look", "idle", "sleep", "join", "run", "end"))
    looks = c.alloca(i32)
    c.branch(rest)
    c.position_at_end(rest)
    c.store(i32(_LOOKS), looks)
    c.branch(look)
    c.position_at_end(look)
    state = shared.load(c, _STATE)
    c.cbranch(c.icmp_signed(">=", state, i32(_PLACE)), join, idle)
    c.position_at_end(idle)
    left = c.sub(c.load(looks, typ=i32), i32(1))
    c.store(left, looks)
    choose = c.select(c.icmp_signed("<", state, i32(0)), i32(2), c.zext(c.icmp_signed("<", left, i32(0)), i32))
    ways = c.switch(choose, look)
    ways.add_case(i32(1), sleep)
    ways.add_case(i32(2), end)
    c.position_at_end(sleep)
    c.call(shared.wait_for, [shared.word(c, _STATE), state, _FOREVER])
    c.branch(rest)
    c.position_at_end(join)
    got = c.cmpxchg(shared.word(c, _STATE), state, c.sub(state, i32(_PLACE - 1)), _ORDER)
    c.cbranch(c.extract_value(got, 1), run, look)
    c.position_at_end(run)
    shared.run(c)
    shared.leave(c)
    c.branch(rest)
    c.position_at_end(end)
    c.ret_void()
    c = Code(made, lost, void, [])
    shared.store(c, _LOST, i32(1))
    shared.leave(c)
    c.ret_void()


def _settings(made: ir.Module, shared: _Shared, threads: ir.GlobalVariable) -> None:
    c = Code(made, EXPORTED[2], i32, [i32, i32])
    count, sleeps = c.fn.args
    c.store(c.zext(count, i64), threads)
    shared.store(c, _SLEEPS, sleeps)
    with c.if_then(c.icmp_signed("==", count, i32(1))):
        shared.store(c, _STATE, i32(-(1 << 31)))
        shared.wake(c, i32(-1))
    c.ret(shared.load(c, _LOST))
