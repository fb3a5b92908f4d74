"""The processor's emitter: a plan as LLVM modules, of kernels and an entry that runs them one after another.

In: a `Plan`, or a graph of native nodes, which is planned first. Out: a `Program`: the plan, and the modules' text.

    int64 entry(ptr buffers, ptr sizes, ptr arena, ptr threads)

`buffers` holds the addresses of inputs, outputs and constants, all row-major; `sizes` the values of the symbols; the
arena is scratch memory of `arena` bytes, aligned to a cache line; `threads` holds [fork-join function, its context,
address of the number of threads] (`runtime/threads.py`), then the addresses of library kernels. The result is the
status of a run (`plan.py`). Where sizes are unknown there is a second function, `plan` (`sizes.py`).

What runs, over what memory, is the plan's (`planner.py`); the entry is `program_entry.py`'s, linking the runtime's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from llvmlite import ir

from twofold.ir import graph as g
from twofold.ir.dims import Dim

from . import alike, gemm_shapes, llvm_cpu, planner, program_rows, sizes
from .backend import Backend
from .llvm_writer import TextBuilder, used_up
from .operands import Argument, Library
from .plan import Plan, Step, batch_arguments, parts_of
from .program_entry import EntryWriter, entry_function
from .statements import Kernel
from .step_calls import StepCall

__all__ = ["Program", "compile_graph", "emit"]

_INLINE = 6  # kernels up to which they are written into the entry
_SHORT = 1 << 12  # iterations up to which a kernel is compiled for little code rather than for long ranges
_I64 = ir.IntType(64)


class Program(NamedTuple):
    """A compiled graph before machine code.

    Attributes:
        plan: what it runs.
        module: the LLVM module of the entry as text.
        others: modules of kernels alone, which the entry's refers to by name. Where there are none, the entry is the
            one external function of its module, or one of two.
    """

    plan: Plan
    module: str
    others: Sequence[str] = ()


def compile_graph(graph: g.Graph, backend: Backend, name: str, timed: bool = False) -> Program:
    """The program of `graph`.

    Args:
        graph, backend: see `planner.plan`.
        name, timed: see `emit`.
    """
    return emit(planner.plan(graph, backend), name, timed)


def emit(plan: Plan, name: str, timed: bool = False, parts: int = 1) -> Program:
    """The program of a plan.

    Args:
        plan: what to run; it stays as it is.
        name: of the entry; names of programs linked together must differ.
        timed: whether the entry counts how long each step takes. `threads` then holds two words more, behind that of
            what is `interruptible` (`planner.plan`): the address of C's `clock_gettime`, and that of an int64 of
            nanoseconds for each step, to which a run adds.
        parts: modules that the kernels of a long program are spread over, so that several threads can compile them.
    """
    modules = _Modules(name, parts if plan.is_long else 1)
    calls = _calls(plan, modules, name)
    EntryWriter(plan, entry_function(modules.main, name), calls, timed, program_rows.write).write()
    if plan.symbols:
        dims = [d for v in plan.graph.outputs for d in v.dims]
        sizes.write_plan(modules.main, plan.symbols, [plan.arena, plan.work, *dims], plan.graph, plan.sums)
    return Program(plan, used_up(modules.main), [used_up(module) for module in modules.others])


class _Modules:
    """The modules of a program. Where there are several, kernels are spread over them so that LLVM has about as much to
    do for each, and may be called from the first.

    Attributes:
        main: the first, which holds the entry.
        others: the others.
    """

    def __init__(self, name: str, count: int) -> None:
        """Args:
            name: of the first module; the others' begin with it.
            count: how many modules there are.
        """
        self.main, *self.others = [ir.Module(f"{name}_{n}" if n else name) for n in range(count)]
        self._weights = [0] * count

    def add(self, name: str, kernel: Kernel, weight: int, **options: Any) -> ir.Function:
        """Writes a kernel into the module that has the least; the function by which the first module calls it.

        Args:
            weight: about how much LLVM has to do for it, compared with other kernels.
            options: see `llvm_cpu.emit_kernel`.
        """
        at = self._weights.index(min(self._weights))
        self._weights[at] += weight
        function = llvm_cpu.emit_kernel([self.main, *self.others][at], kernel, name, **options)
        if not self.others:
            function.linkage = "internal"
        return function if at == 0 else ir.Function(self.main, llvm_cpu.KERNEL, name)


def _calls(plan: Plan, modules: _Modules, name: str) -> list[StepCall]:
    """For each step its function, or the number of a library kernel, and its arguments."""
    calls: list[StepCall] = []
    by_text: dict[str, ir.Function] = {}
    texts: dict[int, str] = {}  # of kernels, by identity: many steps may share one
    inline = len(plan.steps) <= _INLINE
    runs = [run for step in plan.steps for run in _runs_of(step)]
    written = iter(zip(runs, alike.shared(runs), strict=True))
    for number, step in enumerate(plan.steps):
        if isinstance(step.kernel, Library) and step.epilogue is None:
            calls.append((plan.libraries.index(step.kernel), step.arguments))
            continue
        parts = parts_of(step)
        functions: list[ir.Function] = []
        arguments: list[list[Argument | ir.Function]] = []
        for at, part in enumerate(parts or [step]):
            run, one = next(written)
            arguments.append([*part.arguments, *one.values])
            if id(one.kernel) not in texts:
                texts[id(one.kernel)] = str(one.kernel) if len(runs) > 1 else ""  # by which equal ones are found
            text = f"{run.ranges} {sorted(one.numbers.items())} {sorted(one.slots.items())} {texts[id(one.kernel)]}"
            if text not in by_text:
                by_text[text] = modules.add(
                    f"{name}_k{number}_{at}", one.kernel, len(text), short=run.ranges.short, alone=run.ranges.alone,
                    numbers=one.numbers, constants=one.slots)
                if len(parts) > 1 or part.shares is not None:
                    by_text[text].attributes.add("noinline")  # else each part, and one thread, had a copy
                elif inline:
                    by_text[text].attributes.add("inlinehint")
            functions.append(by_text[text])
        if isinstance(step.kernel, Library):
            calls.append((plan.libraries.index(step.kernel), _with_epilogue(arguments[0], functions[0], one.values)))
            continue
        if len(parts) > 1:
            whole = _dispatcher(modules.main, f"{name}_k{number}", arguments, functions)
            calls.append((whole, batch_arguments(parts, arguments)))
        else:
            calls.append((functions[0], arguments[0]))
    return calls


def _with_epilogue(arguments: Sequence[Argument | ir.Function], function: ir.Function,
                   values: Sequence[int]) -> list[Argument | ir.Function]:
    """The arguments of a product with the function of its epilogue, which has `values` behind its other args."""
    at = next(n for n, a in enumerate(arguments) if isinstance(a, Kernel))
    count = arguments[at + 1]
    assert isinstance(count, int)
    return [*arguments[:at], function, count + len(values), *arguments[at + 2:]]


def _runs_of(step: Step) -> list[alike.Candidate]:
    """The kernels of a step."""
    if step.epilogue is not None:
        takes = gemm_shapes.TILE_WORDS + len(step.epilogue.arguments)
        return [alike.Candidate(step.epilogue.kernel, alike.Ranges(False, False), takes, {})]
    parts = parts_of(step)
    short = all(not isinstance(part.total, Dim) and part.total <= _SHORT for part in parts)
    return [alike.Candidate(_kernel_of(part), alike.Ranges(short, not isinstance(part.total, Dim) and part.total == 1),
                            len(part.arguments), {slot: a for slot, a in enumerate(part.arguments) if type(a) is int})
            for part in parts]


def _kernel_of(part: Step) -> Kernel:
    """The kernel of a part of a step, which is the program's own."""
    assert isinstance(part.kernel, Kernel)
    return part.kernel


def _dispatcher(module: ir.Module, name: str, arguments: Sequence[Sequence[Argument]],
                functions: Sequence[ir.Function]) -> ir.Function:
    """The kernel of a `Batch`: each part runs over its share of the range."""
    fn = ir.Function(module, llvm_cpu.KERNEL, name)
    fn.linkage = "internal"
    b = TextBuilder(fn.append_basic_block("entry"))
    start, stop, args = fn.args
    begin: ir.Value = _I64(0)
    at = len(arguments)
    for n, (args_of_part, function) in enumerate(zip(arguments, functions, strict=True)):
        length = b.load(b.gep(args, [_I64(n)], source_etype=_I64), typ=_I64)
        low, high = b.sub(start, begin), b.sub(stop, begin)
        low = b.select(b.icmp_signed("<", low, _I64(0)), _I64(0), low)
        high = b.select(b.icmp_signed("<", high, length), high, length)
        with b.if_then(b.icmp_signed("<", low, high)):
            b.call(function, [low, high, b.gep(args, [_I64(at)], source_etype=_I64)])
        begin = b.add(begin, length)
        at += len(args_of_part)
    b.ret(_I64(0))
    return fn
