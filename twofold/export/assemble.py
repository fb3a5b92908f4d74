"""From traces to the parts of a library: the interface, and one optimised module of LLVM with all its code.

Values that functions read are laid out once for all of them: variables that some function assigns are the state, which
the caller keeps; other variables and captured tensors are weights, in the code or in a file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from llvmlite import ir

from twofold.codegen import conv, gemm, llvm_module, native_entry
from twofold.codegen import target as targets
from twofold.codegen.native_entry import CFunction, Member, Place, Texts
from twofold.codegen.plan import Plan
from twofold.eager.tensor import Tensor
from twofold.ir import dims as dm
from twofold.ir import dtypes as dt
from twofold.ir import graph as g
from twofold.ir import passes
from twofold.ir.errors import line_text
from twofold.ir.passes.inlining import inline_calls
from twofold.ir.replay import bind_sizes
from twofold.runtime import threads as work_sharing
from twofold.runtime.compiled import compile_program
from twofold.runtime.cpu import cpu
from twofold.tracer.traced import Traced

from . import link, lowering, pool, weights
from .interface import ABI, Interface, Signature, identifier, unique
from .naming import name_sizes, result_names
from .targets import Platform

if TYPE_CHECKING:
    from llvmlite import binding

__all__ = ["Assembled", "assemble", "Part"]

_FAMILIES: dict[str, Any] = {"gemm": gemm, "conv": conv}  # what compiles library kernels
_SMALL = 256  # bytes up to which a captured tensor is part of the code


@dataclass(eq=False)
class Part:
    """A graph that becomes a function.

    Attributes:
        name: in C. title: how the user calls it.
        graph: inputs: the tensors of a call, then `captures`; outputs: those of the result, then `updates`.
        inputs, outputs: the names of the tensors of a call and of the result.
        captures, updates: tensors and variables.
    """

    name: str
    title: str
    graph: g.Graph
    inputs: list[str]
    outputs: list[str]
    captures: list[Any]
    updates: list[Any]


@dataclass(eq=False)
class Assembled:
    """A library before machine code.

    Attributes:
        interface: what C sees.
        module: the code.
        weights: the file with weights, or None.
        threads: how many threads a call shares its work with at most; 1 where there is none to share.
    """

    interface: Interface
    module: binding.ModuleRef
    weights: bytes | None
    threads: int


def assemble(parts: Sequence[Part], prefix: str, platform: Platform, embedded: bool, threads: int) -> Assembled:
    """The library of some graphs.

    Args:
        parts: the functions.
        prefix: what symbols begin with.
        platform: where it is to run.
        embedded: whether weights are part of the code.
        threads: how many threads a call uses at most.
    Raises:
        ValueError: a function needs Python.
    """
    return _Assembler(parts, prefix, platform, embedded, threads).assemble()


def part_of(name: str, traced: Traced, streams: lowering.Streams) -> Part:
    """The part that a trace is; random draws are from `streams`."""
    count = len(traced.specs)
    graph = traced.graph.copy()
    passes.optimise(graph, passes=(inline_calls,))
    drawn = streams.lower(graph)
    names = [v.name or f"input_{n}" for n, v in enumerate(graph.inputs[:count])]
    inputs = unique(identifier(n, "input") for n in names)
    outputs = unique(identifier(n, "output") for n in result_names(traced.result))
    name_sizes(graph, inputs)
    title = f"{traced.name}({', '.join(names)})"
    return Part(name, title, graph, inputs, outputs, [*traced.captures, *drawn], [*traced.assigned, *drawn])


@dataclass(eq=False)
class _Values:
    """The values that functions read, each once: in the code, in a file, or in the state."""

    embedded: bool
    held: dict[str, np.ndarray] = field(default_factory=dict)  # by symbol
    file: weights.Writer = field(default_factory=weights.Writer)
    state: list[Any] = field(default_factory=list)

    def place(self, capture: Any) -> Place:
        """Where the value of a variable or tensor lies."""
        for n, variable in enumerate(self.state):
            if variable is capture:
                return Place("state", n)
        return self.value(_array(capture))

    def value(self, array: np.ndarray) -> Place:
        """Where a value that never changes lies."""
        if not self.embedded:
            return Place("weights", self.file.place(array))
        return Place("constant", 0, self.constant(array))

    def constant(self, array: np.ndarray) -> str:
        """The symbol of a value in the code."""
        symbol = f"value_{hashlib.sha256(array.tobytes()).hexdigest()[:24]}"
        self.held.setdefault(symbol, array)
        return symbol


def _array(capture: Any) -> np.ndarray:
    value = capture._array if isinstance(capture, Tensor) else capture._read_tensor()._array
    return np.asarray(value, order="C")


class _Assembler:
    def __init__(self, parts: Sequence[Part], prefix: str, platform: Platform, embedded: bool, threads: int) -> None:
        self.parts, self.prefix, self.platform, self.threads = parts, prefix, platform, threads
        self.values, self.texts = _Values(embedded), Texts()
        self.libraries: dict[tuple[Any, ...], str] = {}
        self.modules: list[Any] = []
        self.signatures: list[Signature] = []
        self.is_shared = False
        for part in parts:
            for variable in part.updates:
                if not any(variable is v for v in self.values.state):
                    self.values.state.append(variable)

    def assemble(self) -> Assembled:
        names = unique(identifier(v.name, "variable") for v in self.values.state)
        self.state = [_variable(v, name) for v, name in zip(self.values.state, names, strict=True)]
        file = None if self.values.embedded else self.weights_file()
        module = ir.Module(self.prefix)
        for part in self.parts:
            self.function(module, part)
        state_bytes = self.initial_state(module)
        interface = Interface(self.prefix, self.signatures, self.state, state_bytes, len(file or b""),
                              f"{self.platform.target.triple} ({self.platform.target.cpu})")
        native_entry.write_number(module, f"{self.prefix}_abi", ABI)
        native_entry.write_number(module, f"{self.prefix}_interface", interface.fingerprint)
        if file is not None:
            weights.write_check(module, f"{self.prefix}_weights_check", file, self.texts)
        native_entry.write_texts(module, f"{self.prefix}_strerror", self.texts)
        exported = [*interface.exported, *(pool.EXPORTED if self.is_shared and self.has_pool else ())]
        with targets.use(self.platform.target):
            linked = llvm_module.linked([*self.modules, module, *self.sharing()], [*self.kernels(), self.data()],
                                        set(exported))
        return Assembled(interface, linked, file, self.threads if self.is_shared else 1)

    def weights_file(self) -> bytes:
        """The file of weights, with all that functions read."""
        for part in self.parts:
            for value, capture in zip(part.graph.inputs[len(part.inputs):], part.captures, strict=True):
                if not _is_small(capture):
                    self.values.file.add(identifier(getattr(capture, "name", value.name), "tensor"), _array(capture))
        for variable, member in zip(self.values.state, self.state, strict=True):
            self.values.file.add(member.name, _array(variable))
        return self.values.file.close()

    # -- one function -----------------------------------------------------------------------------
    def function(self, module: ir.Module, part: Part) -> None:
        """Compiles a graph, and writes what C calls."""
        graph, count = part.graph, len(part.inputs)
        captures = self.folded(graph, part)
        dims = [(tuple(v.dims), v.dtype) for v in graph.outputs]
        sizes: dict[str, Any] = {}
        for value, capture in zip(graph.inputs[count:], captures, strict=True):
            bind_sizes(value.dims, _array(capture).shape, sizes)
        places = [Place("input", n) for n in range(count)]
        places += [self.values.place(c) for c in captures]
        results = [Place("output", n) for n in range(len(part.outputs))]
        results += [self.values.place(u) for u in part.updates]
        inputs = [Member(n, tuple(v.dims), v.dtype) for n, v in zip(part.inputs, graph.inputs, strict=False)]
        outputs = [Member(n, *d) for n, d in zip(part.outputs, dims, strict=False)]
        lowering.check_counting(graph)
        symbol = f"{self.prefix}_{part.name}_program"
        with targets.use(self.platform.target):
            lowering.require_native(graph, part.name, sizes)
            made = compile_program(graph, cpu, symbol, _donations(places, results, graph))
        self.modules.append(made.module.replace('@"plan"(', f'@"{symbol}_plan"('))
        entry = CFunction(
            f"{self.prefix}_{part.name}", inputs, outputs, places, results, sizes,
            len(self.state) if any(p.kind == "state" for p in (*places, *results)) else None,
            [(guard, _guard_text(guard)) for guard in graph.guards if guard.symbols() <= _bound(inputs, sizes)],
            any(p.kind == "weights" for p in places), made.plan, symbol,
            [self.values.constant(c) for c in made.plan.constants],
            [self.libraries.setdefault(lib.key, _FAMILIES[lib.key[0]].symbol(lib.key[2], dt.as_dtype(lib.key[1])))
             for lib in made.plan.libraries], _checks(made.plan))
        if self.threads > 1 and made.plan.is_shared():
            self.is_shared = True
            entry.fork = ("fork_join", "fork_context", pool.COUNT if self.has_pool else self.threads)
        with targets.use(self.platform.target):
            native_entry.write_entry(module, entry, self.texts)
        self.signatures.append(Signature(
            entry.name, part.title, inputs, outputs, native_entry.workspace_of(entry), entry.state is not None,
            entry.weights, sorted({p.at for p in results if p.kind == "state"})))

    def folded(self, graph: g.Graph, part: Part) -> list[Any]:
        """Puts small tensors that were captured into the graph, which passes then improve; the other captures."""
        count = len(part.inputs)
        kept, front = [], []
        known: dict[g.Value, g.Value] = {}
        for value, capture in zip(graph.inputs[count:], part.captures, strict=True):
            if _is_small(capture):
                spec = (value,)
                node = g.Node(g.CONSTANT, (), {"value": np.asarray(capture._array, order="C")}, spec)
                front.append(node)
                known[value] = node.outputs[0]
            else:
                kept.append((value, capture))
        graph.inputs = [*graph.inputs[:count], *[v for v, _ in kept]]
        for n, value in enumerate(graph.inputs):
            value.index = n
        for node in graph.nodes:
            node.inputs = [known.get(v, v) for v in node.inputs]
        graph.outputs = [known.get(v, v) for v in graph.outputs]
        graph.nodes[:0] = front
        passes.optimise(graph)
        return [c for _, c in kept]

    # -- what functions share ---------------------------------------------------------------------
    def initial_state(self, module: ir.Module) -> int:
        if not self.state:
            return 0
        variables = [(member, self.values.value(_array(v)))
                     for member, v in zip(self.state, self.values.state, strict=True)]
        return native_entry.write_state(module, f"{self.prefix}_state_init", variables, not self.values.embedded,
                                        self.texts)

    def data(self) -> str:
        """The module with constants, and with what the system expects of large frames."""
        text = weights.module(self.values.held)
        if self.platform.system == "windows" and targets.assembles_x86():
            text += "".join([f'module asm "{line}"\n' for line in link.PROBE.split("\n") if line])
        return text

    def kernels(self) -> list[Any]:
        """The modules of library kernels, and of sharing work."""
        modules, made = [], set()
        for kind, dtype, name in self.libraries:
            family = _FAMILIES[kind]
            part = next(p for p, names in family.PARTS.items() if name in names)
            if (kind, dtype, part) not in made:
                made.add((kind, dtype, part))
                module = ir.Module()
                family.build(module, dt.as_dtype(dtype), family.tiling(dt.as_dtype(dtype)), part)
                modules.append(module)
        return modules

    @property
    def has_pool(self) -> bool:
        """Whether threads are workers of the loader's, and not OpenMP's."""
        return self.platform.system == "wasm"

    def sharing(self) -> list[Any]:
        """The modules of the functions that share work among threads."""
        if not self.is_shared:
            return []
        module = ir.Module()
        functions = [ir.Function(module, ir.FunctionType(ir.VoidType(), []), n) for n in pool.OPENMP]
        native_entry.address_words(module, "fork_context", functions)
        return [work_sharing.fork_join_module(), module, *([pool.module()] if self.has_pool else [])]


def _is_small(capture: Any) -> bool:
    """Whether a captured value is part of the code."""
    return isinstance(capture, Tensor) and capture._memory.nbytes <= _SMALL


def _variable(variable: Any, name: str) -> Member:
    shape = variable._shape
    if shape.num_elements() is None:
        raise ValueError(f"the variable {variable.name} has no fixed shape ({shape}), so that memory for its values "
                         "cannot be planned; give tf.Variable a shape.")
    return Member(name, tuple(shape.as_list()), variable.dtype)


def _donations(places: Sequence[Place], results: Sequence[Place], graph: g.Graph) -> dict[int, int]:
    """Output number -> number of the input whose memory it may take: new values of variables, over the old ones."""
    donations = {}
    for n, place in enumerate(results):
        given = next((i for i, p in enumerate(places) if p == place), None) if place.kind == "state" else None
        if given is not None and graph.inputs[given].dims == graph.outputs[n].dims:
            donations[n] = given
    return donations


def _bound(inputs: Sequence[Member], sizes: Mapping[str, Any]) -> frozenset[str]:
    return dm.symbols_of([d for m in inputs for d in m.dims]) | sizes.keys()


def _guard_text(guard: dm.Guard) -> str:
    origin = guard.origin
    where = "" if origin is None or origin.loc is None else f"\n  {line_text(*origin.loc)}"
    return f"the function was made for sizes with {guard}{where}"


def _checks(plan: Plan) -> list[tuple[int, str]]:
    """The meanings of the results of a program other than 0."""
    checks = []
    for number, step in enumerate(plan.steps):
        for status in range(1, len(step.codes) + 1):
            node, code = step.failed(status)
            where = "" if node is None or node.loc is None else f"\n  {line_text(*node.loc)}"
            name = "" if node is None else f"{node.op.name}: "
            checks.append(((number + 1) << 16 | status, f"{name}{code}{where}"))
    return checks
