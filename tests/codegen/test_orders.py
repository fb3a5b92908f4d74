"""Values that are computed once and read in several orders: compiled programs give the bits of eager execution.

A kernel that computes a value may hand it on in the order in which it goes over it, and memory that nobody needs any
more is written over. Neither may be done where something reads the value in another order: transposed, turned round,
with steps, repeated, or item by item in a loop. Programs are drawn here, a line for a value, of little but such reads.
`HYPOTHESIS_PROFILE=explore` draws many more.
"""

from __future__ import annotations

import linecache
import os
import random
from typing import Any

import numpy as np
import pytest
from fuzz.compare import same_bits
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import twofold as tf

_EXAMPLES = 1000 if os.environ.get("HYPOTHESIS_PROFILE") == "explore" else 40
_SIZES = (0, 1, 2, 3, 7, 15, 16, 17, 33, 63, 64, 65, 130)  # around the widths of vectors and tiles
_DTYPES = ("float32", "float32", "float64", "bfloat16", "float16", "int32", "int8")
_LIMIT = "was assumed of sizes that only running can tell"  # docs/limits.md

_ANY = ["{a} * 2", "-{a}", "tf.abs({a}) + 1", "tf.where({a} > 0, {a}, {a} * 3)", "tf.maximum({a}, 1)"]
_SMOOTH = ["tf.tanh({a})", "tf.sin({a})", "tf.exp(-tf.abs({a}))", "tf.nn.softmax({a})", "tf.nn.relu({a}) + {a}"]
# What reads a value in another order and fits it again; `row` is the number of one, `axis` that of an axis.
_TURNED = [
    "{a}[::-1]", "{a}[..., ::-1]", "tf.reverse({a}, [{axis}])", "tf.roll({a}, 1, {axis})", "{a}[:1]", "{a}[..., :1]",
    "tf.reshape(tf.reshape({a}, [-1])[::-1], tf.shape({a}))", "tf.concat([{a}[1:], {a}[:1]], 0)", "{a}[{row}]",
    "tf.gather({a}, tf.range(tf.shape({a})[0])[::-1])", "tf.cumsum({a}, {axis}, reverse=True)", "{a}[-1]",
    "tf.reduce_sum({a}, {axis}, keepdims=True)", "tf.reduce_max({a} * {a}, {axis}, keepdims=True)", "tf.gather({a}, i)",
    "tf.reshape(tf.transpose({a}), tf.shape({a}))", "tf.broadcast_to({a}[{row}], tf.shape({a}))", "{a}[i]",
    "tf.tensor_scatter_nd_update({a}, [[{row}]], {a}[:1])", "tf.map_fn(lambda item: item * 2, {a})",
    "tf.transpose({a})",
]
_SHAPED = [
    "tf.transpose({a})", "tf.reshape({a}, [-1])", "{a}[1:]", "{a}[::2]", "{a}[..., ::-2]", "tf.linalg.diag_part({a})",
    "tf.concat([{a}, {a}], {axis})", "tf.pad({a}, [[1, 1]] * {rank})", "tf.reduce_sum({a}, {axis})", "{a}[{row}]",
    "tf.gather({a}, i)", "tf.repeat({a}, 2, axis={axis})", "tf.stack([{a}, {a}], {axis})",
    "tf.expand_dims({a}, {axis})",
]
_JOINED = ["{a} + {b}", "{b} - {a}", "{a} * {b}", "tf.maximum({a}, {b})", "tf.where({a} > {b}, {b}, {a})"]
_PRODUCTS = ["tf.matmul({a}, {a}, transpose_b=True)", "tf.transpose(tf.matmul({a}, {a}, transpose_a=True))"]
_STATES = ["v.assign({v})", "v.assign_add({v} * v)", "v[1:].assign(v[:-1])", "v[::2].assign(v[::2][::-1])"]


class _Program:
    """A function of `x`, `y` and the index `i`, with a variable `v`, that runs eagerly as it is drawn."""

    def __init__(self, drawn: random.Random) -> None:
        self.random = drawn
        self.lines: list[str] = []
        self.dtype = tf.as_dtype(drawn.choice(_DTYPES))
        n = drawn.choice(_SIZES)
        m = n if drawn.random() < 0.4 else drawn.choice(_SIZES)
        if drawn.random() < 0.1:
            n = m = 300
        rng = np.random.default_rng(drawn.randrange(1000))
        self.x, self.y, self.state = (tf.cast(rng.uniform(-3, 3, s), self.dtype) for s in ((n, m), (m, n), (n, m)))
        self.i = tf.constant(drawn.randrange(max(min(n, m), 1)))
        self.known: dict[str, Any] = {"x": self.x, "y": self.y, "i": self.i, "v": tf.Variable(self.state), "tf": tf}
        self.values = ["x", "y"]
        for _ in range(drawn.randint(3, 9)):
            self.step()
        made = [name for name in self.values if name not in ("x", "y")] or ["x"]
        self.results = [made[-1], *[drawn.choice(made) for _ in range(drawn.randint(0, 2))]]

    def source(self) -> str:
        return "\n    ".join(["def program(x, y, i):", *self.lines, f"return [{', '.join(self.results)}]"])

    def function(self) -> tuple[Any, Any]:
        """The function, and its variable."""
        made: dict[str, Any] = {"tf": tf, "v": tf.Variable(self.state)}
        exec(_compiled(self.source()), made)
        return made["program"], made["v"]

    def step(self) -> None:
        drawn, number = self.random, len(self.lines)
        a = drawn.choice(self.values[-3:])
        made = f"t{number}"
        kind = drawn.random()
        if kind < 0.2:
            self.add([f"{made} = {self.alone(a)}"], made)
        elif kind < 0.35:
            self.add([f"{made} = {self.fill(drawn.choice(_SHAPED), a)}"], made)
        elif kind < 0.45 and self.known[a].shape.rank == 2 and self.dtype.is_floating:
            self.add([f"{made} = {drawn.choice(_PRODUCTS).format(a=a)}"], made)
        elif kind < 0.55:
            state = drawn.choice(_STATES).format(v=self.fill(drawn.choice(_TURNED), "v"))
            self.add([f"{made} = v * 2", state, f"{made} = {made} - v"], made)
        elif kind < 0.65:
            one, other = self.joined(a), self.joined(a)
            if self.add([f"{made} = {one}"], made, keep=False) and self.add([f"{made} = {other}"], made, keep=False):
                self.add([f"if tf.reduce_sum({a}) > 0:", f"    {made} = {one}", "else:", f"    {made} = {other}"], made)
        elif kind < 0.8:
            self.loop(a, made)
        else:
            self.add([f"{made} = {self.joined(a)}"], made)

    def loop(self, a: str, made: str) -> None:
        """Rounds that carry two values, and may fill an array from either end."""
        drawn = self.random
        again = "tf.tanh({a})" if self.dtype.is_floating else "tf.minimum({a}, 9)"
        first, second = self.joined("p"), self.joined(drawn.choice("pq"), "q")
        lines = drawn.choice([[f"p = {first}", f"q = {second}"], [f"p, q = q, {first}"],
                               [f"q = {second}", f"p = {first}"]])
        place = drawn.choice(["n", "2 - n", None])
        before = [] if place is None else [f"kept = tf.TensorArray({a}.dtype, size=3, element_shape={a}.shape)"]
        after = [] if place is None else [f"kept = kept.write({place}, {drawn.choice('pq')})"]
        lines = [*lines, "p = " + again.format(a="p"), "q = " + again.format(a="q"), *after]
        end = "p - q" if place is None else "kept.stack() * p"
        head = f"for n in tf.range({drawn.choice(['3', 'i % 4'])}):"
        rounds = [f"    {line.replace('[i]', '[n % tf.shape(p)[0]]')}" for line in lines]
        self.add([f"p, q = {a}, {self.alone(a)}", *before, head, *rounds, f"{made} = {end}"], made, a)

    def alone(self, a: str) -> str:
        return str(self.random.choice(_ANY + (_SMOOTH if self.dtype.is_floating else [])).format(a=a))

    def joined(self, a: str, b: str | None = None) -> str:
        text = self.random.choice(_JOINED).format(a=f"({self.fill(self.random.choice(_TURNED), a)})", b=b or a)
        return str(text)

    def fill(self, text: str, a: str) -> str:
        dims = self.known.get(a, self.x).shape.as_list()
        return text.format(a=a, axis=self.random.randrange(max(len(dims), 1)), rank=len(dims),
                           row=self.random.randrange(max(dims[0], 1)) if dims else 0)

    def add(self, lines: list[str], made: str, like: str | None = None, keep: bool = True) -> bool:
        """Whether the lines run, which then are kept: their value must have the shape of `like`, if any, but for axes
        before it."""
        known = dict(self.known)
        before = tf.constant(known["v"])
        try:
            with np.errstate(all="ignore"):
                exec(_compiled("\n".join(lines)), known)
            dims = known[made].shape.as_list()
            fits = like is None or dims[len(dims) - known[like].shape.rank:] == known[like].shape.as_list()
            if fits and len(dims) < 5 and np.prod(dims) < 200_000 and known[made].dtype is self.dtype:
                if not keep:
                    return True
                self.known[made] = known[made]
                self.values.append(made)
                self.lines += lines
                return True
        except (tf.errors.OpError, ValueError, TypeError, IndexError):
            pass
        known["v"].assign(before)
        return False


def _compiled(source: str) -> Any:
    name = f"<orders {hash(source)}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)  # where autograph finds it
    return compile(source, name, "exec")


def _run(fn: Any, variable: Any, args: list[Any], taped: bool) -> list[np.ndarray]:
    gradients = []
    for _ in range(2):  # the second time with what the first left in the variable
        if taped:
            with tf.GradientTape() as tape:
                tape.watch(args[:2])
                results = fn(*args)
            gradients += tape.gradient(results, args[:2], unconnected_gradients="zero")
        else:
            results = fn(*args)
        gradients += results
    return [t.numpy() for t in (*gradients, variable)]


def _check(program: _Program, unknown: bool, taped: bool, threads: int) -> None:
    args = [program.x, program.y, program.i]
    eager, variable = program.function()
    want = _run(eager, variable, args, taped)
    traced, variable = program.function()
    specs = [tf.TensorSpec([None] * t.shape.rank if unknown else t.shape, t.dtype) for t in args]
    fn = tf.function(traced, input_signature=specs, fallback=False)
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    try:
        computed = _run(fn, variable, args, taped)
    except (tf.errors.OpError, ValueError) as error:
        if unknown and (_LIMIT in str(error) or "shape" in str(error)):
            return  # sizes that values decide
        if "before the loop, but shape" in str(error) or "TensorArray: incompatible shape" in str(error):
            return  # which eager execution lets pass, as shapes may then change from round to round
        if int(program.i) % 4 == 0 and "for n in tf.range(i % 4)" in program.source():
            return  # eager execution does not enter the loop, whose body is traced in any case
        if "tensor_scatter: updates have shape" in str(error) and "kept.write" in str(error):
            return  # an array of items whose sizes are not known before the loop
        raise AssertionError(f"{type(error).__name__}: {error}\n{program.source()}") from None
    finally:
        tf.config.threading.set_intra_op_parallelism_threads(0)
    for a, b in zip(want, computed, strict=True):
        assert same_bits(a, b), f"{a}\n{b}\n{program.source()}"


@settings(max_examples=_EXAMPLES, deadline=None, report_multiple_bugs=False, suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False), st.booleans(), st.integers(1, 2))
def test_random_programs(drawn: Any, unknown: bool, threads: int) -> None:
    program = _Program(drawn)
    _check(program, unknown, False, threads)
    if program.dtype.is_floating and "for " not in program.source() and "if " not in program.source():
        _check(program, False, True, threads)  # of control flow, gradients may be added up in another order


def test_a_difference_is_seen() -> None:
    made = _Program(random.Random(1))
    made.lines.append("x = x + (0 if tf.executing_eagerly() else 1)")
    made.results = ["x"]
    made.x = made.y = tf.ones([2, 2], made.dtype)
    with pytest.raises(AssertionError, match="executing_eagerly"):
        _check(made, False, False, 1)
