"""Random programs: statements that render themselves as Python source.

A program is made statement by statement. Each is run eagerly as it is added, on the values that the program would have
there, so that what is in scope is known with dtype and shape; most statements that fail are dropped, and some end the
program, because errors are compared too. Rows of calls come from `table.py` and from the cases of `tests/ops`.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from fuzz.compare import data
from fuzz.table import FAMILIES, Row
from hypothesis import strategies as st
from ops.table import cases

import twofold as tf
from twofold.ir import ops
from twofold.ir.dtypes import DType

__all__ = ["Program", "programs"]

DTYPES = ("float32", "float32", "float32", "float64", "int32", "bool", "int64", "float16", "bfloat16", "complex64",
          "uint8", "int8", "complex128", "uint32")
SIZES = (3, 1, 2, 4, 5, 8, 33, 0, 17, 64, 100)
LONG = (4097, 1000, 70001)
LARGE = (257, 300)
_KINDS = ("call",) * 12 + ("case",) * 3 + ("assign", "if", "for", "while", "gradient", "augment", "array")
_MOST = 1 << 18  # elements of a value
_SAFE = ("tanh", "exp", "reduce_", "transpose", "reshape", " + ", " * ", "cast", "where", "random")
_ERRORS = (tf.errors.OpError, ValueError, TypeError, IndexError, NotImplementedError, RuntimeError)


@dataclass(frozen=True)
class Line:
    """One statement in one line; it is not `safe` if values decide whether it fails."""

    text: str
    safe: bool = True

    def lines(self) -> list[str]:
        return [self.text]


@dataclass
class Block:
    """`head:` and statements below it; several make an `if` with `else`."""

    parts: list[tuple[str, list[Any]]]

    def lines(self) -> list[str]:
        actual = []
        for head, body in self.parts:
            actual += [f"{head}:", *[f"    {line}" for s in body for line in s.lines()]]
        return actual


@dataclass(frozen=True)
class Input:
    """A tensor that the program is called with, or a variable's first value."""

    name: str
    shapes: tuple[tuple[int, ...], tuple[int, ...]]  # in the first call, and in the second
    dtype: str
    seed: int
    low: float = -2.0
    high: float = 2.0
    special: bool = False

    def text(self, call: int = 0) -> str:
        rest = f", {self.low}, {self.high}" if (self.low, self.high) != (-2.0, 2.0) else ""
        special = ", special=True" if self.special else ""
        return f"data({self.seed + call}, {list(self.shapes[call])}, {self.dtype!r}{rest}{special})"

    def samples(self) -> tuple[Any, Any]:
        return tuple([data(self.seed + n, shape, self.dtype, self.low, self.high, self.special)
                      for n, shape in enumerate(self.shapes)])  # type: ignore[return-value]


@dataclass
class Program:
    """A program with its inputs; `source` is what runs."""

    inputs: list[Input] = field(default_factory=list)
    variables: list[Input] = field(default_factory=list)
    body: list[Any] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    taped: bool = False

    def source(self) -> str:
        """The definitions of `make`, `calls` and `taped`."""
        lines = ["def make():", *[f"    {v.name} = tf.Variable({v.text()})" for v in self.variables],
                 f"    def program({', '.join(i.name for i in self.inputs)}):",
                 *[f"        {line}" for s in self.body for line in s.lines()],
                 f"        return [{', '.join(self.results)}]",
                 f"    return program, [{', '.join(v.name for v in self.variables)}]", "",
                 "calls = ["]
        for call in (0, 1):
            lines.append(f"    [{', '.join(i.text(call) for i in self.inputs)}],")
        return "\n".join([*lines, "]", f"taped = {self.taped}", ""])

    def __repr__(self) -> str:
        return self.source()


@st.composite
def programs(draw: Callable[..., Any]) -> Program:
    """Strategy: any program."""
    maker = _Maker(draw)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return maker.program()


class _Maker:
    """A program under construction: `scope` holds values that the names that can be read have in the first call,
    `later` those in the second."""

    def __init__(self, draw: Callable[..., Any]) -> None:
        self.draw, self.made = draw, Program()
        self.scope: dict[str, Any] = {}
        self.later: dict[str, Any] = {}
        self.count = 0
        self.failed = False  # the last statement fails: nothing may follow
        self.large = False
        self.last: str | None = None

    # -- choices ----------------------------------------------------------------------------------
    def pick(self, options: Sequence[Any]) -> Any:
        return self.draw(st.sampled_from(options))

    def number(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def chance(self, percent: int) -> bool:
        return self.number(0, 99) >= 100 - percent

    def fresh(self, letter: str = "t") -> str:
        self.count += 1
        return f"{letter}{self.count}"

    # -- the whole --------------------------------------------------------------------------------
    def program(self) -> Program:
        self.large = self.chance(10)
        for _ in range(self.number(1, 3)):
            self.new_input()
        for _ in range(self.pick((0, 0, 1, 2))):
            self.new_variable()
        self.block(self.made.body, self.number(1, 14), 0)
        names = [n for n in self.scope if n not in {v.name for v in self.made.variables}]
        chosen = [n for n in names if self.chance(25)]
        last = self.last or names[-1]
        self.made.results = [*[n for n in chosen if n != last], last]
        _prune(self.made)
        self.made.taped = self.chance(15)
        return self.made

    def shapes(self) -> tuple[Any, Any]:
        rank = self.pick((2, 1, 2, 0, 3, 2, 4))
        first, second = [], []
        for axis in range(rank):
            large = (LARGE if rank > 1 else LONG) if self.large and axis >= rank - 2 else None
            n = self.pick(large or (SIZES[:5] if rank > 2 else SIZES))
            first.append(n)
            second.append(n if n == 1 or self.large else n + 1)
        return tuple(first), tuple(second)

    def new_input(self, shapes: Any = None, dtype: Any = None, low: float = -2.0, high: float = 2.0) -> str:
        name = f"x{len(self.made.inputs)}"
        special = self.chance(12)
        i = Input(name, shapes or self.shapes(), dtype or self.pick(DTYPES), self.number(0, 9) * 10, low, high, special)
        self.made.inputs.append(i)
        first, second = i.samples()
        self.scope, self.later = {name: first, **self.scope}, {name: second, **self.later}
        return name

    def new_variable(self) -> None:
        name = f"v{len(self.made.variables)}"
        shape = self.shapes()[0]
        v = Input(name, (shape, shape), self.pick(("float32", "float64", "int32", "float16")), self.number(0, 9) * 10)
        self.made.variables.append(v)
        self.scope[name] = self.later[name] = v.samples()[0]

    # -- statements -------------------------------------------------------------------------------
    def block(self, body: list[Any], count: int, depth: int) -> None:
        for _ in range(count):
            if self.failed:
                return
            self.statement(body, depth)

    def statement(self, body: list[Any], depth: int) -> None:
        kind = self.pick(_KINDS)
        if kind == "case" and depth == 0:
            self.case(body)
        elif kind == "assign" and self.made.variables:
            self.assign(body)
        elif kind in ("if", "for", "while") and depth < 2:
            self.control(kind, body, depth)
        elif kind == "gradient" and depth < 2:
            self.gradient(body, depth)
        elif kind == "array" and depth == 0:
            self.array(body)
        elif kind == "augment":
            self.update(body, self.pick(list(self.scope)))
        else:
            self.call(body, depth)

    def call(self, body: list[Any], depth: int) -> None:
        family = FAMILIES[self.pick(list(FAMILIES))]
        row = self.pick(family)
        operands = self.operands(row.kinds)
        if operands is not None:
            self.add(body, self.fresh(), self.filled(row, operands), depth == 0)

    def operands(self, kinds: str) -> list[str] | None:
        actual: list[str] = []
        for kind in kinds:
            fitting = [n for n, t in self.scope.items() if _fits(kind, t, actual and self.scope[actual[0]])]
            if actual:
                alike = [n for n in fitting if _broadcast(self.scope[n], self.scope[actual[0]])]
                fitting = alike if alike and self.chance(80) else fitting
            if not fitting:
                return None
            actual.append(self.pick(fitting[::-1]))  # the newest first
        return actual

    def filled(self, row: Row, operands: list[str]) -> str:
        rank = len(self.scope[operands[0]].shape)
        text, given = row.text, dict(zip("abc", operands, strict=False))
        makers: dict[str, Callable[[], Any]] = {
            "axis": lambda: self.pick([*range(rank), *range(-rank, 0)]) if rank else -1,
            "axes": lambda: [n for n in range(rank) if self.chance(50)],
            "perm": lambda: list(self.draw(st.permutations(range(rank)))),
            "keep": lambda: self.chance(50), "int": lambda: self.number(0, 5), "rank": lambda: rank,
            "float": lambda: self.pick((0.5, -1.5, 3.0, 0.1)), "dtype": lambda: f"tf.{self.pick(DTYPES)}"}
        filled = {name: make() for name, make in makers.items() if f"{{{name}}}" in text}
        return text.format(**given, **filled)

    def add(self, body: list[Any], name: str, text: str, may_fail: bool = False) -> bool:
        """Add `name = text` where it runs in both calls; where it fails, sometimes, too: it ends the program."""
        actual = self.tried(text)
        line = Line(f"{name} = {text}", any(word in text for word in _SAFE))
        if actual is None:
            if may_fail and self.chance(4):
                body.append(line)
                self.failed, self.last = True, name
            return False
        body.append(line)
        self.scope[name], self.later[name] = actual
        return True

    def tried(self, text: str) -> list[Any] | None:
        """What `text` gives in each call; None where it fails in one."""
        results = []
        for scope in (self.scope, self.later):
            names = {"tf": tf, "np": np, "ops": ops, **scope}
            try:
                exec(f"found = {text}", names)
            except _ERRORS:
                return None
            value = names["found"]
            if not isinstance(value, tf.Tensor) or value.dtype == tf.string or value.numpy().size > _MOST:
                return None
            results.append(value)
        return results

    def case(self, body: list[Any]) -> None:
        """A call of a case of the op tests, on operands that are its own or come from the program."""
        row, dtype, shapes = self.pick(_cases())
        names = []
        domains = row.domain if isinstance(row.domain, list) else [row.domain] * len(shapes)
        for shape, wanted, domain in zip(shapes, row.operand_dtypes(dtype, len(shapes)), domains, strict=True):
            alike = [n for n, t in self.scope.items() if t.dtype == wanted and tuple(t.shape) == shape]
            if alike and self.chance(50):
                names.append(self.pick(alike))
            else:
                low, high = domain if isinstance(domain, tuple) else (0.5, 2.0)
                names.append(self.new_input((shape, shape), wanted.name, float(low), float(high)))
        given = "".join(f", {k}={_literal(v)}" for k, v in row.kwargs.items())
        prefix = "" if row.fn.startswith("ops.") else "tf."
        call = f"{prefix}{row.fn}({', '.join(names)}{given})"
        self.add(body, self.fresh(), call) or self.add(body, self.fresh(), f"{call}[0]")

    def update(self, body: list[Any], name: str) -> bool:
        """`name = ...` of the same dtype and shape, so that it can stand in a branch or a loop."""
        if any(v.name == name for v in self.made.variables):
            return self.assign(body, name)
        old = self.scope[name]
        alike = [n for n, t in self.scope.items() if t.dtype == old.dtype and _broadcast(t, old)]
        other = self.pick(alike[::-1])
        kind = "b" if old.dtype == tf.bool else "r" if not old.dtype.is_complex else "c"
        forms = {"b": ("{o} & {n}", "~{n}", "{n} ^ {o}"), "c": ("{n} + {o}", "{n} * {o}"),
                 "r": ("{n} + {o}", "{n} * {o}", "tf.maximum({n}, {o})", "{n} - {o}")}[kind]
        more = ("{n} * 0.5 + {o}", "tf.tanh({n})", "{n} / (1.0 + tf.reduce_sum(tf.abs({o})))", "{n}[::-1]")
        text = self.pick(forms + (more if old.dtype.is_floating else ())).format(n=name, o=other)
        actual = self.tried(text)
        if actual is None or any(new.shape != scope[name].shape or new.dtype != old.dtype
                                for new, scope in zip(actual, (self.scope, self.later), strict=True)):
            text = f"tf.identity({name})"
        body.append(Line(f"{name} = {text}"))
        return True

    def assign(self, body: list[Any], name: str | None = None) -> bool:
        name = name or self.pick(self.made.variables).name
        old = self.scope[name]
        alike = [n for n, t in self.scope.items() if n != name and t.dtype == old.dtype
                 and tuple(t.shape) == tuple(self.later[n].shape) == tuple(old.shape)]
        value = self.pick(alike[::-1]) if alike else f"tf.cast({name} * 2 - 1, tf.{old.dtype.name})"
        method = self.pick(("assign_add", "assign", "assign_sub"))
        body.append(Line(f"{name}.{method}({value})"))
        if len(old.shape) and old.shape[0] and self.chance(15):
            body.append(Line(f"{name}[0].assign({name}[-1])"))
        return True

    # -- blocks -----------------------------------------------------------------------------------
    def control(self, kind: str, body: list[Any], depth: int) -> None:
        targets = [n for n in self.scope if self.chance(25)][:3] or [self.pick(list(self.scope))]
        if kind == "if":
            test = self.test()
            parts = [(f"if {test}", self.inner(targets, depth))]
            if self.chance(70):
                parts.append(("else", self.inner(targets, depth)))
            body.append(Block(parts))
            return
        rounds = self.number(0, 4)
        inside = self.inner(targets, depth)
        if kind == "for":
            name = self.fresh("i")
            limit = self.pick((f"tf.range({rounds})", f"tf.range(tf.constant({rounds}))", f"range({rounds})"))
            if self.chance(20):
                leave = Block([(f"if {self.test()}", [Line(self.pick(("break", "continue")))])])
                inside += [leave, *self.inner(targets, depth)]
            body.append(Block([(f"for {name} in {limit}", inside)]))
            return
        name = self.fresh("i")
        body.append(Line(f"{name} = tf.constant(0)"))
        inside.append(Line(f"{name} = {name} + 1"))
        body.append(Block([(f"while {name} < {rounds}", inside)]))
        self.scope[name] = self.later[name] = tf.constant(0)

    def array(self, body: list[Any]) -> None:
        """Values of rounds of a loop, gathered in a TensorArray or a list."""
        name = self.pick([n for n in self.scope if n[0] != "v"][::-1])
        rounds, array, index, stacked = self.number(1, 4), self.fresh("a"), self.fresh("i"), self.fresh()
        dtype = f"tf.{self.scope[name].dtype.name}"
        empty, write, stack = self.pick((
            (f"tf.TensorArray({dtype}, size={rounds})", f"{array} = {array}.write({index}, {name})",
             f"{array}.stack()"),
            (f"tf.TensorArray({dtype}, size=0, dynamic_size=True)",
             f"{array} = {array}.write({array}.size(), {name})", f"{array}.stack()"),
            ("[]", f"{array}.append({name})", f"tf.stack({array})")))
        inside: list[Any] = [Line(write)]
        self.update(inside, name)
        limit = f"tf.range({rounds})" if empty != "[]" else f"range({rounds})"
        body += [Line(f"{array} = {empty}"), Block([(f"for {index} in {limit}", inside)]), Line(f"{stacked} = {stack}")]
        for scope in (self.scope, self.later):
            scope[stacked] = tf.stack([scope[name]] * rounds)

    def inner(self, targets: Sequence[str], depth: int) -> list[Any]:
        """Statements below a head: their names end there, and `targets` keep dtype and shape."""
        outside, body = list(self.scope), []
        self.block(body, self.number(0, 3), depth + 1)
        for name in targets:
            self.update(body, name)
        self.scope, self.later = ({name: scope[name] for name in scope if name in outside or name[0] == "x"}
                                  for scope in (self.scope, self.later))
        return body

    def test(self) -> str:
        options = [n for n, t in self.scope.items() if not t.dtype.is_complex]
        if not options:
            return "tf.constant(True)"
        name = self.pick(options[::-1])
        if self.scope[name].dtype == tf.bool:
            return f"tf.reduce_any({name})"
        return f"tf.reduce_sum({name}) {self.pick(('>', '<='))} 0"

    def gradient(self, body: list[Any], depth: int) -> None:
        inputs = [n for n, t in self.scope.items() if (t.dtype.is_floating or t.dtype.is_complex) and self.chance(60)]
        if not inputs:
            return
        watched = [n for n in inputs if not n.startswith("v")]
        tape, inside = self.fresh("g"), []
        if watched:
            inside.append(Line(f"{tape}.watch([{', '.join(watched)}])"))
        before = set(self.scope)
        sources = [{n: scope[n] for n in inputs} for scope in (self.scope, self.later)]
        self.block(inside, self.number(1, 5), depth + 1)
        ends = [n for n, t in self.scope.items() if n not in before and (t.dtype.is_floating or t.dtype.is_complex)]
        end = self.pick(ends[::-1]) if ends else inputs[0]
        body.append(Block([(f"with tf.GradientTape() as {tape}", inside or [Line("pass")])]))
        names = [self.fresh("d") for _ in inputs]
        body.append(Line(f"[{', '.join(names)}] = settled({tape}.gradient({end}, [{', '.join(inputs)}], "
                         "unconnected_gradients='zero'))"))
        for scope, values in zip((self.scope, self.later), sources, strict=True):
            scope.update({d: tf.zeros_like(values[n]) for d, n in zip(names, inputs, strict=True)})


def _prune(program: Program) -> None:
    """Take out what nothing reads and may fail: compiled functions leave it out, error and all, as TensorFlow's do."""
    while True:
        words = re.findall(r"\w+", program.source())

        def kept(body: list[Any], words: list[str] = words) -> list[Any]:
            actual = []
            for s in body:
                if isinstance(s, Block):
                    s.parts = [(head, kept(inside) or [Line("pass")]) for head, inside in s.parts]
                elif not s.safe and words.count(s.text.split(" ")[0]) < 2:
                    continue
                actual.append(s)
            return actual
        program.body = kept(program.body)
        if re.findall(r"\w+", program.source()) == words:
            return


def _fits(kind: str, t: Any, first: Any) -> bool:
    d = t.dtype
    return {"f": d.is_floating, "c": d.is_complex, "n": d != tf.bool, "r": not d.is_complex and d != tf.bool,
            "i": d.is_integer, "b": d == tf.bool, "*": True, "j": d in (tf.int32, tf.int64),
            "=": first is not None and first is not False and not isinstance(first, list) and d == first.dtype}[kind]


def _broadcast(a: Any, b: Any) -> bool:
    try:
        return bool(np.broadcast_shapes(tuple(a.shape), tuple(b.shape)) == tuple(b.shape))
    except ValueError:
        return False


@cache
def _cases() -> list[tuple[Any, DType, tuple[Any, ...]]]:
    """Cases that can be written as a call in one line, with one of their dtypes and shapes."""
    actual = []
    for row in cases():
        if not isinstance(row.fn, str) or tf.string in row.dtypes or "string" in row.fn:
            continue
        try:
            for v in row.kwargs.values():
                _literal(v)
        except TypeError:
            continue
        actual += [(row, d, row.shapes[0]) for d in row.dtypes] + [(row, row.main, s) for s in row.shapes[1:]]
    return actual


def _literal(value: Any) -> str:
    """Python text of a keyword argument.

    Raises:
        TypeError: it has none.
    """
    if isinstance(value, DType):
        return f"tf.{value.name}"
    if isinstance(value, float) and not np.isfinite(value):
        return f"float('{value}')"
    if isinstance(value, (list, tuple)):
        inside = ", ".join(map(_literal, value))
        return f"[{inside}]" if isinstance(value, list) else f"({inside}{',' if len(value) == 1 else ''})"
    if value is None or isinstance(value, (bool, int, float, str)):
        return repr(value)
    raise TypeError(f"no literal: {value!r}")
