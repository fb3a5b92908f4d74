"""Random programs, with gradients in every placement of tapes and decorators: the bits are those of plain Python.

    python tests/fuzz/placements.py --time 600 --seed 7

A program is a function of vectors with branches, loops, calls of helpers, maps, custom gradients, arrays, reads and
assignments of variables, and tapes of its own; branches and loops also give vectors of sizes that only running tells. A
placement says what is decorated with `tf.function` (the helpers, the program, its gradient, the gradient's gradient),
which tapes are persistent, and whether sizes are known. Prints each failing program, as small as it could be made, and
in the end the number of cases and of failures.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import time
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from fuzz.compare import same_bits

import twofold as tf

__all__ = ["check", "drawn"]

SIZE = 12  # elements of a vector
# What TensorFlow refuses, too: a loop's variable gets a size that only running tells (of an array that grows).
_REFUSED = f"has shape ({SIZE},) before the loop, but shape (None,) after one iteration"

_UNARY = ("tf.sin({a})", "tf.cos({a})", "tf.tanh({a})", "tf.sigmoid({a})", "tf.exp(-{a} * {a})", "tf.nn.relu({a})",
          "tf.square({a}) * 0.3", "tf.abs({a})", "{a} * 0.7", "0.2 - {a}", "tf.stop_gradient({a})", "odd({a}, {a})",
          "tf.reverse({a}, [0])", "tf.concat([{a}[3:], {a}[:3]], 0)", "tf.nn.softmax({a})", "tf.cumsum({a}) * 0.2",
          "tf.gather({a}, [(i * 5) % {size} for i in range({size})])",
          "tf.gather({a}, [i // 2 for i in range({size})])",
          "tf.reshape(tf.transpose(tf.reshape({a}, [3, -1])), [-1])", "tf.sqrt(tf.abs({a}) + 0.5)", "tf.identity({a})",
          "{a} - tf.reduce_mean({a})", "{a} * tf.reduce_max({a}) * 0.5", "half({a})")
_BINARY = ("{a} + {b}", "{a} * {b}", "{a} - {b}", "tf.maximum({a}, {b})", "tf.where({a} > {b}, {a}, {b} * 0.5)",
           "odd({a}, {b})", "{a} * tf.sin({b})", "{a} / (tf.square({b}) + 1.0)", "tf.add_n([{a}, {b}, {a}]) * 0.3",
           "tf.stack([{a}, {b}])[1] * {a}", "tf.reduce_sum({a} * {b}) * 0.1 + {a}",
           "tf.reshape(tf.matmul(tf.reshape({a}, [3, 4]), tf.reshape({b}, [4, 3])), [-1])[:3] * 0.2 + {a}[:3] "
           "if {b}.shape[0] == {size} else {a} + {b}")
# Of a vector of any size, and one of the usual size
_SIZED = ("{s}[1:] * {s}[:-1]", "tf.sin({s})", "tf.concat([{s}, {a}[:3]], 0)", "tf.concat([{a}[:2], {s} * {s}], 0)",
          "{s} * tf.reduce_sum({a}) * 0.3", "tf.reverse({s}, [0])", "tf.cos({s}[2:])", "{s} * {s} * {a}[0]",
          "tf.concat([{s}, {s}], 0)[3:]", "tf.tanh({s}[:7])", "{s}[3:]")
_OF_SIZED = ("{a} * tf.reduce_sum({s} * {s}) * 0.1", "{a} + tf.reduce_sum(tf.cos({s})) * 0.1",
             "tf.reduce_sum(tf.sin({s}) * {s}) * 0.1 * {a}")
_KINDS = ("unary",) * 5 + ("binary",) * 7 + (
    "alias", "if", "if", "if", "for", "for", "while", "call", "call", "call", "map", "scan", "array", "assign",
    "assign", "tape", "cond", "sized_if", "sized_if", "sized_if", "sized_for", "sized_for", "sized_cond")

_BLOCKS = ("if", "for", "while", "scan", "map", "array", "tape", "sized_if", "sized_for")

_HEAD = '''
@tf.custom_gradient
def odd(a, b):
    s = tf.sin(a) * b
    return s * a, lambda dy: (dy * b * 0.5 * s, dy * tf.cos(a) + dy * s)


@tf.custom_gradient
def half(a):
    return a * a * 0.3, lambda dy: dy * a * 0.5 + dy
'''


class _Block:
    """Statements: lines, and pairs of a head and a block."""

    def __init__(self) -> None:
        self.head: list[str] = []  # lines without which loops cannot be traced
        self.items: list[Any] = []
        self.tail: list[str] = []  # lines without which loops do not end

    def text(self, depth: int) -> list[str]:
        pad = "    " * depth
        lines = []
        for item in [*self.head, *self.items, *self.tail]:
            if isinstance(item, str):
                lines.append(pad + item)
            else:
                for head, block in item:
                    lines += [pad + head, *(block.text(depth + 1) or [pad + "    pass"])]
        return lines or [pad + "pass"]

    def places(self) -> list[tuple[_Block, int]]:
        """Every statement, those inside of others after them."""
        actual = []
        for n, item in enumerate(self.items):
            actual.append((self, n))
            if not isinstance(item, str):
                for _, block in item:
                    actual += block.places()
        return actual


class _Names(list[str]):
    """The names of vectors of `SIZE` elements that may be read, and those of vectors of any size."""

    def __init__(self, names: Iterable[str], sized: Iterable[str] = ()) -> None:
        super().__init__(names)
        self.sized = list(sized)


class _Program:
    """A program under construction; `source()` is its text."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.count = 0
        self.rounds = 0  # of how many loops the statement under construction is in the rounds
        # Whether tapes watch values by names that there are before them. Helpers then make what they give back: outside
        # of functions it is a new tensor where no tape follows the arguments (docs/limits.md).
        self.direct = self.random.random() < 0.5
        self.helpers = [_Block() for _ in range(self.random.choice((1, 1, 2)))]
        self.results: list[list[str]] = []
        for helper in self.helpers:
            names = _Names(["a", "b"])
            result = self.fill(helper, names, self.random.randint(2, 4), 1, calls=False)
            more = [self.random.choice([*names, *names.sized * 2])] if self.random.random() < 0.4 else []
            self.results.append([result, *([f"tf.identity({name})" for name in more] if self.direct else more)])
        self.body = _Block()
        self.top = _Names(["x", "y"])
        self.result = self.fill(self.body, self.top, self.random.randint(3, 7), 2, calls=True)

        self.returned = self.targets()
        self.weighted = self.random.random() < 0.4

    def targets(self) -> str:
        """What the program returns: the sum that `fill` made, or values as they are, some of them several times."""
        how = self.random.random()
        if how < 0.5:
            return self.result
        names = [*self.top, *self.top[-3:], *self.top.sized]
        if how < 0.65:
            return self.random.choice(names)
        several = [self.random.choice(names) for _ in range(self.random.choice((2, 2, 3)))]
        return f"[{', '.join(several)}]"

    def source(self) -> str:
        lines = [_HEAD, "", "def make(place):",
                 f"    w = tf.Variable(np.linspace(-1.1, 1.3, {SIZE}, dtype=np.float32))",
                 f"    u = tf.Variable(np.linspace(0.7, -0.4, {SIZE}, dtype=np.float32))"]
        for n, (helper, result) in enumerate(zip(self.helpers, self.results, strict=True)):
            lines += ["", f"    def helper{n}(a, b):", *helper.text(2), f"        return {', '.join(result)}", "",
                      f"    helper{n} = place(helper{n})"]
        lines += ["", "    def program(x, y):", *self.body.text(2), f"        return {self.returned}", "",
                  f"    return program, [w, u], {self.weighted}", "", ""]
        return "\n".join(lines)

    # -- statements -------------------------------------------------------------------------------
    def fill(self, block: _Block, names: _Names, count: int, depth: int, calls: bool) -> str:
        """Add `count` statements over `names`, which grow; what is returned in the end."""
        for _ in range(count):
            self.statement(block, names, depth, calls)
        if not calls and not self.direct and self.random.random() < 0.2:
            return names[-1]
        parts = [f"tf.reduce_sum({self.expression(names)})" if calls else self.expression(names) for _ in range(2)]
        return " + ".join([*parts, f"tf.reduce_sum({names[-1]} * {names[-1]})" if calls else names[-1]])

    def expression(self, names: _Names) -> str:
        pick = self.random.choice
        pool = [*names, *names[-3:], "w", "u"] if self.random.random() < 0.5 else [*names, *names[-3:]]
        if names.sized and self.random.random() < 0.3:
            return pick(_OF_SIZED).format(a=pick(pool), s=pick(names.sized))
        form = pick(_UNARY) if self.random.random() < 0.4 else pick(_BINARY[:-1])
        return form.format(a=pick(pool), b=pick(pool), size=SIZE)

    def new(self, names: _Names) -> str:
        self.count += 1
        names.append(f"v{self.count}")
        return names[-1]

    def sized(self, names: _Names, more: Iterable[str] = ()) -> str:
        """A vector of any size: one that there is, in half of the cases."""
        source = self.random.choice([*names, *names.sized * 3, *more])
        if self.random.random() < 0.5:
            return source
        return self.random.choice(_SIZED).format(s=source, a=self.random.choice(names))

    def new_sized(self, names: _Names) -> str:
        self.count += 1
        names.sized.append(f"s{self.count}")
        return names.sized[-1]

    def inner(self, names: _Names, targets: list[str], depth: int, calls: bool) -> _Block:
        """A block that assigns `targets`."""
        block, own = _Block(), _Names(names, names.sized)
        for _ in range(self.random.choice((0, 0, 1, 1, 2))):
            self.statement(block, own, depth - 1, calls)
        for target in targets:  # one in four becomes what is there already
            source = self.random.choice([*own, *targets]) if self.random.random() < 0.25 else self.expression(own)
            block.items.append(f"{target} = {source}")
        return block

    def round_of(self, names: _Names, targets: list[str], depth: int, calls: bool) -> _Block:
        """The block of a loop that assigns `targets`."""
        self.rounds += 1
        block = self.inner(names, targets, depth, calls)
        self.rounds -= 1
        return block

    def condition(self, names: _Names) -> str:
        a = self.random.choice(names)
        return self.random.choice((f"tf.reduce_sum({a}) > 0.0", f"tf.reduce_max({a}) > 0.8", f"{a}[0] < {a}[1]"))

    def statement(self, block: _Block, names: _Names, depth: int, calls: bool) -> None:
        kind = "tape" if self.direct and calls and self.random.random() < 0.15 else self.random.choice(_KINDS)
        if kind in ("unary", "binary") or (depth <= 0 and kind in _BLOCKS):
            source = self.expression(names)
            block.items.append(f"{self.new(names)} = {source}")
        elif kind == "alias":
            source = self.random.choice(names)
            block.items.append(f"{self.new(names)} = {source}")
        elif kind == "call":
            if not calls:
                source = self.expression(names)
                block.items.append(f"{self.new(names)} = {source}")
                return
            helper = self.random.randrange(len(self.helpers))
            a, b = self.random.choice(names), self.random.choice([*names, "w"])
            if b == "w" and (any(result.isidentifier() for result in self.results[helper])
                             or "assign" in "".join(self.helpers[helper].text(0))):
                b = "w.read_value()"  # another name of the argument could be the variable, which assignments change
            targets = [self.new_sized(names) if re.search(r"^(tf.identity\()?s\d+\)?$", result) else self.new(names)
                       for result in self.results[helper]]
            block.items.append(f"{', '.join(targets)} = helper{helper}({a}, {b})")
        elif kind == "assign":
            variable, how = self.random.choice("wu"), self.random.choice(("assign", "assign_add", "assign_sub"))
            block.items.append(f"{variable}.{how}(0.3 * ({self.expression(names)}))")
        else:
            getattr(self, kind + "_")(block, names, depth, calls)

    def if_(self, block: _Block, names: _Names, depth: int, calls: bool) -> None:
        condition = self.condition(names)
        if self.random.random() < 0.3:  # one side alone, of what is there
            target = self.random.choice(names)
            block.items.append([(f"if {condition}:", self.inner(names, [target], depth, calls))])
            return
        targets = ["new0", "new1"][:self.random.choice((1, 1, 2))]
        sides = [self.inner(names, targets, depth, calls) for _ in range(2)]
        self.both(block, condition, sides, {target: self.new(names) for target in targets})

    def both(self, block: _Block, condition: str, sides: list[_Block], targets: dict[str, str]) -> None:
        """Puts a branch into a block, whose two sides give values to targets, under the new names of these."""
        for side in sides:
            for target, name in targets.items():
                side.items = [re.sub(rf"\b{target}\b", name, item) if isinstance(item, str) else item
                              for item in side.items]
        block.items.append([(f"if {condition}:", sides[0]), ("else:", sides[1])])

    def sized_if_(self, block: _Block, names: _Names, depth: int, calls: bool) -> None:
        condition, sides = self.condition(names), []
        targets = ["new0", "new1"][:self.random.choice((1, 1, 2))]
        for _ in range(2):
            side, own = _Block(), _Names(names, names.sized)
            for _ in range(self.random.choice((0, 0, 0, 1))):
                self.statement(side, own, depth - 1, calls)
            side.items += [f"{target} = {self.sized(own)}" for target in targets]
            sides.append(side)
        self.both(block, condition, sides, {target: self.new_sized(names) for target in targets})

    def sized_for_(self, block: _Block, names: _Names, depth: int, calls: bool) -> None:
        targets = []
        for _ in range(self.random.choice((1, 1, 2, 3))):
            source = self.sized(names)
            targets.append(self.new_sized(names))
            block.items.append(f"{targets[-1]} = {source}")
        self.count += 1
        body, own = _Block(), _Names(names, names.sized)
        invariants = ", ".join(f"({target}, tf.TensorShape([None]))" for target in targets)
        body.head.append(f"tf.autograph.experimental.set_loop_options(shape_invariants=[{invariants}])")
        self.rounds += 1
        for _ in range(self.random.choice((0, 0, 1))):
            self.statement(body, own, depth - 1, calls)
        self.rounds -= 1
        for target in targets:
            line = f"{target} = {self.sized(own, targets)}"
            if self.random.random() < 0.3:
                side = _Block()
                side.items.append(line)
                body.items.append([(f"if {self.condition(own)}:", side)])
            else:
                body.items.append(line)
        head = self.random.choice(("tf.range(2)", "tf.range(3)", "tf.range(1)", "tf.range(0)",
                                   f"tf.range(tf.cast(tf.reduce_sum(tf.abs({names[0]})), tf.int32) % 4)"))
        block.items.append([(f"for i{self.count} in {head}:", body)])

    def sized_cond_(self, block: _Block, names: _Names, depth: int, calls: bool) -> None:
        sides = [self.sized(names) for _ in range(2)]
        condition = self.condition(names)
        block.items.append(f"{self.new_sized(names)} = tf.cond({condition}, lambda: {sides[0]}, lambda: {sides[1]})")

    def for_(self, block: _Block, names: _Names, depth: int, calls: bool) -> None:
        targets = self.carried(block, names)
        self.count += 1
        body = self.round_of(names, targets, depth, calls)
        head = self.random.choice(("tf.range(2)", "tf.range(3)", "tf.range(1)", "tf.range(0)",
                                   f"tf.range(tf.cast(tf.reduce_sum(tf.abs({names[0]})), tf.int32) % 4)"))
        block.items.append([(f"for i{self.count} in {head}:", body)])

    def while_(self, block: _Block, names: _Names, depth: int, calls: bool) -> None:
        targets = self.carried(block, names)
        self.count += 1
        counter = f"n{self.count}"
        body = self.round_of(names, targets, depth, calls)
        body.tail.append(f"{counter} = {counter} + 1")
        block.items.append(f"{counter} = tf.constant(0)")
        also = self.random.choice(("", f" and tf.reduce_sum({targets[0]}) < 5.0"))
        block.items.append([(f"while {counter} < {self.random.randint(1, 3)}{also}:", body)])

    def carried(self, block: _Block, names: _Names) -> list[str]:
        """One or two variables that a loop changes, with names of their own or not."""
        targets = []
        for _ in range(self.random.choice((1, 1, 2))):
            source = self.random.choice([*names, *names[-2:]])
            if self.random.random() < 0.7:
                target = self.new(names)
                block.items.append(f"{target} = {self.random.choice((source, source, f'tf.sin({source})'))}")
                source = target
            if source not in targets:
                targets.append(source)
        return targets

    def cond_(self, block: _Block, names: _Names, depth: int, calls: bool) -> None:
        sides = [self.expression(names) for _ in range(2)]
        condition = self.condition(names)
        block.items.append(f"{self.new(names)} = tf.cond({condition}, lambda: {sides[0]}, lambda: {sides[1]})")

    def map_(self, block: _Block, names: _Names, depth: int, calls: bool) -> None:
        a, b = self.random.choice(names), self.random.choice([*names, "w"])
        how = self.random.choice(("tf.map_fn", "tf.vectorized_map"))
        item = f"lambda r: tf.sin(r) * r + tf.reduce_sum({b}[:4] * r)"
        block.items.append(f"{self.new(names)} = tf.reshape({how}({item}, tf.reshape({a}, [3, 4])), [-1])")

    def scan_(self, block: _Block, names: _Names, depth: int, calls: bool) -> None:
        a, b = self.random.choice(names), self.random.choice(names)
        block.items.append(f"{self.new(names)} = tf.scan(lambda s, e: tf.sin(s) * e + {b}[0], {a})")

    def array_(self, block: _Block, names: _Names, depth: int, calls: bool) -> None:
        a = self.random.choice(names)
        self.count += 1
        array, item, i = f"t{self.count}", f"r{self.count}", f"i{self.count}"
        grows = self.random.random() < 0.3
        block.items.append(f"{array} = tf.TensorArray(tf.float32, size={'0, dynamic_size=True' if grows else '3'})")
        block.items.append(f"{item} = {a}[:4]")
        if not grows and self.random.random() < 0.4:
            block.items.append(f"{array} = {array}.unstack(tf.reshape({self.random.choice(names)}, [3, 4]))")
        body = _Block()
        body.items += [f"{item} = tf.sin({item}) + {a}[4:8] * {item}",
                       f"{array} = {array}.write({i}, {item})"]
        if self.random.random() < 0.5:  # what was written is read, and used under both names
            body.items.append(f"{item} = {array}.read({i}) * {item}")
        block.items.append([(f"for {i} in tf.range(3):", body)])
        more = self.random.choice(("", f" * {array}.read(1)[0]"))
        block.items.append(f"{self.new(names)} = tf.reshape({array}.stack(), [-1]){more}")

    def handed_on(self, block: _Block, names: _Names, a: str) -> str:
        """A name that is another one of `a` where a side is taken, or without rounds."""
        condition, name = self.condition(names), self.new(names)
        source = self.expression(names if self.random.random() < 0.5 else _Names(names[:-1]))
        if self.random.random() < 0.3:
            sides = self.random.sample([a, self.expression(_Names(names[:-1]))], 2)
            block.items.append(f"{name} = tf.cond({condition}, lambda: {sides[0]}, lambda: {sides[1]})")
            return name
        inner = _Block()
        inner.items.append(f"{name} = {source}")
        rounds = f"for i{self.count} in tf.range(tf.cast(tf.reduce_sum(tf.abs({a})), tf.int32) % 2):"
        block.items += [f"{name} = {a}", [(self.random.choice((f"if {condition}:", rounds)), inner)]]
        return name

    def tape_(self, block: _Block, names: _Names, depth: int, calls: bool) -> None:
        # Arguments that are one tensor are two of a traced function, as what a loop hands on is in a round.
        direct = self.direct and calls and not self.rounds and self.random.random() < 0.9
        a = other = self.random.choice(names)
        if direct and self.random.random() < 0.7:
            a, other = self.random.sample([a, self.handed_on(block, names, a)], 2)
        self.count += 1
        tape, q = f"tape{self.count}", f"q{self.count}"
        own = _Names([*names, q, q, other], names.sized)
        body = _Block()
        block.items.append(f"{q} = {a}" if direct else f"{q} = tf.identity({a})")
        body.tail.append(f"{tape}.watch({q})")
        inside = self.inner(own, ["z"], depth, calls)
        body.tail += inside.text(0)
        block.items.append([(f"with tf.GradientTape() as {tape}:", body)])
        target, more = self.random.choice((("z", ""), ("z", ""), ("z", ""), (f"[z, {q}]", ""), ("[z, z]", ""), (q, ""),
                                           ("z", "output_gradients=z * 0.5, ")))
        sources = [q, self.random.choice([*names, other, other])] if direct and self.random.random() < 0.5 else [q]
        block.items.append(f"{self.new(names)} = tf.add_n({tape}.gradient({target}, [{', '.join(sources)}], {more}"
                           "unconnected_gradients='zero')) * 0.5")


def drawn(seed: int) -> _Program:
    """The program of a number."""
    return _Program(seed)


# -- running ------------------------------------------------------------------------------------------
def _gradient(f: Any, variables: list[Any], persistent: bool, weighted: bool) -> Any:
    """A function that gives the gradients of `f` by its arguments and the variables, as a list."""
    def gradient(x: Any, y: Any) -> Any:
        with tf.GradientTape(persistent=persistent) as tape:
            tape.watch([x, y])
            actual = f(x, y)
        weights = tf.nest.map_structure(lambda t: tf.cos(tf.stop_gradient(t)), actual) if weighted else None
        return tape.gradient(actual, [x, y, *variables], output_gradients=weights, unconnected_gradients="zero")
    return gradient


def _run(make: Any, placement: dict[str, Any]) -> list[np.ndarray]:
    """The results of a placement: gradients, and the variables afterwards."""
    def compiled(f: Any) -> Any:
        return tf.function(f, fallback=False)
    program, variables, weighted = make(compiled if placement["helpers"] else (lambda f: f))
    levels = [program]
    for n in range(placement["order"]):
        f = levels[-1]
        if placement["compiled"][n]:
            specs = [tf.TensorSpec([None if placement["unknown"] else SIZE], tf.float32)] * 2
            f = tf.function(f, input_signature=specs, fallback=False)
        levels.append(_gradient(f, variables, placement["persistent"], weighted and not n))
    last = compiled(levels[-1]) if placement["compiled"][placement["order"]] else levels[-1]
    rng = np.random.default_rng(3)
    x, y = [tf.constant(rng.normal(size=SIZE).astype(np.float32)) for _ in range(2)]
    actual = tf.nest.flatten([last(x, y), last(x * 0.5, y)])
    return [t.numpy() for t in (*actual, *variables)]


PLAIN = {"helpers": False, "compiled": (False,) * 4, "persistent": False, "unknown": False}


def placements(order: int) -> list[dict[str, Any]]:
    """All placements of some order but that of plain Python."""
    actual = []
    for bits in range(1, 1 << (order + 2)):
        flags = [bool(bits >> n & 1) for n in range(order + 2)]
        actual.append({"order": order, "helpers": flags[0], "compiled": tuple(flags[1:]), "persistent": False,
                      "unknown": False})
    actual.append({**actual[1], "persistent": True})
    actual.append({**actual[0], "persistent": True})
    return actual


def check(make: Any, seed: int, several: int = 4, orders: tuple[int, ...] = (1, 2)) -> tuple[int, str | None]:
    """How many placements, chosen by `seed`, were compared, and the first difference, in words."""
    chosen = random.Random(seed)
    count = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for order in orders:
            plain = _run(make, {**PLAIN, "order": order})
            if not all(np.isfinite(a).all() for a in plain):
                continue
            every = placements(order)
            for placement in chosen.sample(every, min(several, len(every))):
                count += 1
                try:
                    other = _run(make, placement)
                except NameError:  # a branch that plain Python does not take
                    return count, None
                except ValueError as e:
                    if _REFUSED not in str(e):
                        return count, f"{placement}: raises ValueError: {e}"
                    return count, None
                except Exception as e:  # noqa: BLE001 (whatever it is, it is told)
                    return count, f"{placement}: raises {type(e).__name__}: {e}"
                for n, (a, b) in enumerate(zip(plain, other, strict=True)):
                    if not same_bits(a, b):
                        apart = int((a.view(np.int32) != b.view(np.int32)).sum())
                        return count, f"{placement}: result {n}: {apart} of {a.size} differ: {a[:3]}, {b[:3]}"
    return count, None


def run_source(source: str, name: str, seed: int, several: int = 4,
               orders: tuple[int, ...] = (1, 2)) -> tuple[int, str | None]:
    """`check` of a program's text; a program that fails in plain Python is none."""
    import linecache
    path = f"<{name}>"
    linecache.cache[path] = (len(source), None, source.splitlines(True), path)
    names: dict[str, Any] = {"tf": tf, "np": np, "__name__": name}
    exec(compile(source, path, "exec"), names)
    try:
        _run(names["make"], {**PLAIN, "order": 1})
    except Exception:  # noqa: BLE001 (such as a name that is not there)
        return 0, None
    return check(names["make"], seed, several, orders)


def orders_of(number: int) -> tuple[int, ...]:
    """The orders of gradients that are taken of a program of a run: third ones, which take long, of every eighth."""
    return (1, 2) if number % 8 else (1, 2, 3)


def smaller(program: _Program, difference: str, seed: int, several: int, orders: tuple[int, ...],
            seconds: float) -> str:
    """The failing program without the statements that it fails without, with an error or not as before."""
    end, number = time.monotonic() + seconds, 0
    changed = True
    while changed and time.monotonic() < end:
        changed = False
        for block in (program.body, *program.helpers):
            for owner, n in reversed(block.places()):
                if time.monotonic() > end:
                    break
                item = owner.items.pop(n)
                number += 1
                left = run_source(program.source(), f"smaller{seed}_{number}", seed, several, orders)[1]
                if left is None or (": raises " in left) != (": raises " in difference):
                    owner.items.insert(n, item)
                else:
                    changed = True
    return program.source()


def main() -> int:
    """Run until the time is over; the exit status."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--time", type=float, default=600, help="seconds")
    options.add_argument("--seed", type=int, default=None)
    options.add_argument("--shrink", type=float, default=60, help="seconds to make a failing program smaller")
    options.add_argument("--several", type=int, default=4, help="placements of each order for a program")
    args = options.parse_args()
    first = random.SystemRandom().randrange(1 << 30) if args.seed is None else args.seed
    print(f"seed {first}", flush=True)
    end, programs, cases, failures = time.monotonic() + args.time, 0, 0, 0
    while time.monotonic() < end:
        seed = first * 1_000_003 + programs
        program, orders = drawn(seed), orders_of(programs)
        programs += 1
        count, difference = run_source(program.source(), f"program{seed}", seed, args.several, orders)
        cases += count
        if difference is None:
            continue
        failures += 1
        source = smaller(program, difference, seed, args.several, orders, args.shrink)
        again = run_source(source, f"again{seed}", seed, args.several, orders)[1]
        print(f"failure {failures}, after {programs} programs and {cases} cases, drawn by {seed}: {again}\n{source}",
              flush=True)
    print(f"{programs} programs, {cases} cases, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
