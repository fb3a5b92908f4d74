"""Dimensions as shape rules use them: plain ints, or symbolic expressions with decisions and guards.

A dimension is an `int` (eager execution: ints pass through at no extra cost) or a `Dim`
(`ir/dim_expr.py`), an expression over unknown sizes. Shape rules compute with both alike and ask
here when they must know something: `decide_*` says what is provable, `require*` proves it, or assumes
it and records a `Guard` in the active recorder. A call that violates a guard must take another
variant: that is the tracer's part, as is making symbols.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any, NoReturn, SupportsIndex, TypeAlias, TypeVar

from .data_class import data_class, field, replace
from .dim_bounds import at_least, bounds, no_less
from .dim_expr import Dim, DimLike, ceil_div, defines, maximum, minimum, symbol, terms_of
from .dim_text import parse

__all__ = ["AnySize", "Dim", "DimLike", "Shape", "Size", "Sizes", "symbol", "parse", "ceil_div", "maximum", "minimum",
           "bounds", "is_exactly", "is_static", "all_static", "evaluate", "substitute", "symbols_of", "numel",
           "left_open", "as_dim", "decide", "decide_eq", "decide_le", "require", "require_eq", "require_same",
           "Guard", "GuardRecorder", "recording", "assumed", "UndecidedDim", "BroadcastError", "broadcast_dim",
           "broadcast_shapes"]

Shape: TypeAlias = tuple[DimLike, ...]
# A size, or several, of code that serves eager execution and programs alike: a number, or what `DimLike` is. A caller
# who knows that all are numbers need not prove it.
Size: TypeAlias = Any
Sizes: TypeAlias = tuple[Size, ...]
AnySize = TypeVar("AnySize", int, DimLike)  # numbers alone, or sizes of which some are unknown
_NEGATED = {"==": "!=", "!=": "==", "<=": ">", ">": "<=", "<": ">=", ">=": "<"}


class UndecidedDim(ValueError):
    """A question about unknown dimensions has no answer, and no trace is there to assume one."""


class BroadcastError(ValueError):
    """Shapes do not broadcast. `axis` is the result's axis, `sizes` what meets there, `shapes` all of them."""

    def __init__(self, axis: int, sizes: tuple[DimLike, ...], shapes: tuple[Shape, ...]):
        self.axis = axis
        self.sizes = sizes
        self.shapes = shapes
        text = " and ".join(map(str, shapes))
        super().__init__(f"Shapes {text} do not broadcast: axis {axis} of the result has sizes "
                         f"{' and '.join(map(str, sizes))}; sizes must match or be 1.")

    def __reduce__(self) -> tuple[object, ...]:
        return (BroadcastError, (self.axis, self.sizes, self.shapes), vars(self))


def is_exactly(size: DimLike | None, number: int) -> bool:
    """Whether a size is known, and is this number; a symbol that may have the value is not.

    >>> is_exactly(1, 1), is_exactly(symbol("n"), 1)
    (True, False)
    """
    return type(size) is int and size == number


def is_static(d: DimLike) -> bool:
    """Whether `d` is a known number."""
    return not isinstance(d, Dim)


def all_static(shape: Iterable[DimLike]) -> bool:
    """Whether every dimension is a known number."""
    return all(not isinstance(d, Dim) for d in shape)


def evaluate(shape: Iterable[DimLike], env: Mapping[str, int]) -> tuple[int, ...]:
    """The numbers of a shape, with every symbol given. Raises KeyError where one is missing."""
    return tuple([d.evaluate(env) if isinstance(d, Dim) else d for d in shape])


def substitute(shape: Iterable[DimLike], env: Mapping[str, DimLike]) -> Shape:
    """A shape with some symbols replaced by numbers or expressions."""
    return tuple([d.substitute(env) if isinstance(d, Dim) else d for d in shape])


def symbols_of(shape: Iterable[DimLike]) -> frozenset[str]:
    """The names of the symbols in a shape."""
    return frozenset().union(*[d.symbols() for d in shape if isinstance(d, Dim)])


def numel(shape: Iterable[AnySize]) -> AnySize:
    """How many elements a shape has."""
    return math.prod(shape)


def left_open(have: Iterable[DimLike], shape: Iterable[DimLike]) -> DimLike:
    """The size that -1 stands for where elements of the shape `have` are given another one.

    With a size of 0 beside the -1 any number would do. As in TensorFlow, it is computed from the sizes that are not 0.

    >>> left_open((0, 6), (0, 2, -1)), left_open((4, 3), (-1, 2))
    (3, 6)
    """
    known = [size for size in shape if not is_exactly(size, -1)]
    if is_exactly(numel(known), 0):
        have, known = ([size for size in sizes if not is_exactly(size, 0)] for sizes in (have, known))
    return numel(have) // numel(known)


# Decisions


def decide_eq(a: DimLike, b: DimLike) -> bool | None:
    """Whether `a == b` for all symbols >= 0 (True), for none (False), or unknown (None)."""
    difference = a - b
    return difference == 0 if type(difference) is int else _decide_zero(difference)


def decide_le(a: DimLike, b: DimLike) -> bool | None:
    """Whether `a <= b` for all symbols >= 0 (True), for none (False), or unknown (None)."""
    difference = b - a
    return difference >= 0 if type(difference) is int else _decide_not_negative(difference)


def decide(a: DimLike, op: str, b: DimLike) -> bool | None:
    """Whether `a op b` for all symbols >= 0 (True), for none (False), or unknown (None).

    Args:
        a: the left side.
        op: one of `== != <= < >= >`.
        b: the right side.
    """
    kind, difference = _question(a, op, b)
    return _decided(kind, difference)


def _question(a: DimLike, op: str, b: DimLike) -> tuple[str, DimLike]:
    """The comparison as one of "zero", "not zero" and "not negative" of a difference."""
    if op == "==":
        return "zero", a - b
    if op == "!=":
        return "not zero", a - b
    if op == "<=":
        return "not negative", b - a
    if op == "<":
        return "not negative", b - a - 1
    if op == ">=":
        return "not negative", a - b
    if op == ">":
        return "not negative", a - b - 1
    raise ValueError(f"{op!r} is no comparison: one of == != <= < >= > is expected.")


def _decided(kind: str, d: DimLike) -> bool | None:
    if kind == "not negative":
        return d >= 0 if type(d) is int else _decide_not_negative(d)
    zero = d == 0 if type(d) is int else _decide_zero(d)
    return zero if zero is None or kind == "zero" else not zero


@lru_cache(maxsize=8192)
def _decide_not_negative(d: DimLike) -> bool | None:
    if at_least(d, 0):
        return True
    return False if at_least(-d, 1) else None


@lru_cache(maxsize=8192)
def _decide_zero(d: DimLike) -> bool | None:
    if at_least(d, 1) or at_least(-d, 1):
        return False
    if at_least(d, 0) and at_least(-d, 0):
        return True
    terms = terms_of(d)
    constant = 0 if terms[-1][0] else terms[-1][1]
    return False if constant % math.gcd(*[c for m, c in terms if m]) else None  # 2*n is never 3


# Guards


@data_class(frozen=True)
class Guard:
    """An assumption about unknown dimensions, `left op right`.

    >>> from twofold.ir import dims
    >>> guard = dims.Guard.parse("2*n <= m")
    >>> guard.holds({"n": 3, "m": 6}), str(guard)
    (True, '2*n <= m')
    """

    left: DimLike
    op: str
    right: DimLike
    origin: Any = field(default=None, compare=False, repr=False)  # an `assumptions.Origin`, which needs this class

    def holds(self, env: Mapping[str, int]) -> bool:
        """Whether the assumption is true with every symbol given. Raises KeyError where one is missing."""
        left, right = evaluate((self.left, self.right), env)
        return _decided(*_question(left, self.op, right)) is True

    def symbols(self) -> frozenset[str]:
        """The names of the symbols it speaks of."""
        return symbols_of((self.left, self.right))

    def negated(self) -> Guard:
        """The guard that holds when this one does not."""
        return Guard(self.left, _NEGATED[self.op], self.right)

    @staticmethod
    def parse(text: str) -> Guard:
        """The guard that `text` spells. Raises ValueError when it spells none."""
        parts = re.split(r"(==|!=|<=|>=|<|>)", text)
        if len(parts) != 3:
            raise ValueError(f"Guard {text!r} cannot be read: one comparison of two dimensions is expected.")
        return Guard(parse(parts[0]), parts[1], parse(parts[2]))

    def __str__(self) -> str:
        return f"{self.left} {self.op} {self.right}"


class GuardRecorder(list[Guard]):
    """The guards of one trace, in the order they were needed, and what follows from them.

    An equation is solved for a symbol where that is possible, so what follows from it by arithmetic is
    known and not assumed a second time. Add to it with `require` only.
    """

    def __init__(self) -> None:
        super().__init__()
        self.origin: Callable[[], Any] | None = None  # tells what makes an assumption
        self._solved: dict[str, DimLike] = {}
        self._facts: list[tuple[str, DimLike]] = []
        self._answers: dict[tuple[str, DimLike], bool | None] = {}  # of `known`, until there is another guard

    def known(self, kind: str, d: DimLike) -> bool | None:
        """The answer that bounds and the recorded guards give; None for no answer."""
        key = kind, d
        if key not in self._answers:
            self._answers[key] = self._answer(kind, d)
        return self._answers[key]

    def _answer(self, kind: str, d: DimLike) -> bool | None:
        answer = _decided(kind, d)
        if answer is not None:
            return answer
        reduced = _replaced(d, self._solved)
        answer = _decided(kind, reduced)
        if answer is not None or not self._facts:
            return answer
        if self._follows(kind, reduced):
            return True
        opposite = {"zero": ("not zero", reduced), "not zero": ("zero", reduced),
                    "not negative": ("not negative", -reduced - 1)}[kind]
        return False if self._follows(*opposite) else None

    def assume(self, guard: Guard) -> None:
        """Record a guard that `known` did not decide."""
        if self.origin is not None and guard.origin is None:
            guard = replace(guard, origin=self.origin())
        self.append(guard)
        self._answers.clear()
        kind, d = _question(guard.left, guard.op, guard.right)
        d = _replaced(d, self._solved)
        solution = _solved_for_symbol(d) if kind == "zero" else None
        if solution is None:
            self._facts.append((kind, d))
            return
        self._solved = {name: _replaced(v, solution) for name, v in self._solved.items()} | solution
        self._facts = [(k, _replaced(f, solution)) for k, f in self._facts]
        self._facts += [("not negative", value) for value in solution.values() if not at_least(value, 0)]

    def _follows(self, kind: str, d: DimLike) -> bool:
        if type(d) is int:
            return _decided(kind, d) is True
        if kind == "not negative":
            return any(no_less(d, f) or (k == "zero" and no_less(d, f, -1)) for k, f in self._facts if k != "not zero")
        if any(k == kind and _proportional(d, f) for k, f in self._facts):
            return True
        if kind == "zero":
            return self._follows("not negative", d) and self._follows("not negative", -d)
        return self._follows("not negative", d - 1) or self._follows("not negative", -d - 1)


def _replaced(d: DimLike, env: Mapping[str, DimLike]) -> DimLike:
    return d.substitute(env) if isinstance(d, Dim) and env else d


def _proportional(a: DimLike, b: DimLike) -> bool:
    if type(a) is int or type(b) is int:
        return False
    first, second = terms_of(a)[0][1], terms_of(b)[0][1]
    return a * second == b * first


def _solved_for_symbol(d: DimLike) -> dict[str, DimLike] | None:
    """`{symbol: expression}` from d == 0, for the last symbol that stands alone with a factor of 1 or -1."""
    if type(d) is int:
        return None
    candidates = [(m[0], c) for m, c in terms_of(d) if len(m) == 1 and m[0].kind == "sym" and abs(c) == 1]
    for atom, coef in reversed(candidates):
        value = symbol(atom.name) - coef * d
        if is_static(value) or atom.name not in value.symbols():  # type: ignore[union-attr]
            return {atom.name: value}
    return None


_recorder: ContextVar[GuardRecorder | None] = ContextVar("twofold_dim_guards", default=None)


@contextmanager
def recording(recorder: GuardRecorder | None = None) -> Iterator[GuardRecorder]:
    """Collect the guards of what runs inside; an inner recording knows nothing of an outer one.

    Args:
        recorder: what to go on with; by default a new one, which assumes nothing yet.

    >>> from twofold.ir import dims
    >>> with dims.recording() as guards:
    ...     shape = dims.broadcast_shapes((dims.symbol("n"), 3), (4, 1))
    >>> shape, [str(g) for g in guards]
    ((4, 3), ['n == 4'])
    """
    recorder = GuardRecorder() if recorder is None else recorder
    token = _recorder.set(recorder)
    try:
        yield recorder
    finally:
        _recorder.reset(token)


def assumed(guards: Iterable[Guard]) -> GuardRecorder:
    """A recorder that assumes `guards` from the start."""
    with recording() as recorder:
        for guard in guards:
            require(guard.left, guard.op, guard.right)
    return recorder


def require_eq(a: DimLike, b: DimLike) -> bool:
    """Whether `a == b`; `require(a, "==", b)`."""
    if type(a) is int and type(b) is int:
        return a == b
    return require(a, "==", b)


def require_same(a: Sequence[DimLike], b: Sequence[DimLike]) -> bool:
    """Whether two shapes are the same, as `require` decides it for each size."""
    return len(a) == len(b) and all(require_eq(x, y) for x, y in zip(a, b, strict=True))


@defines
def require(a: DimLike, op: str, b: DimLike) -> bool:
    """Whether `a op b`: as decided, or else True with a guard recorded for it.

    Args:
        a: the left side.
        op: one of `== != <= < >= >`.
        b: the right side.

    Raises:
        UndecidedDim: it cannot be decided and nothing is recording.
    """
    kind, difference = _question(a, op, b)
    if type(difference) is int:
        return _decided(kind, difference) is True
    recorder = _recorder.get()
    answer = _decided(kind, difference) if recorder is None else recorder.known(kind, difference)
    if answer is not None:
        return answer
    if recorder is None:
        _undecided(a, op, b)
    recorder.assume(Guard(a, op, b))
    return True


def _undecided(a: DimLike, op: str, b: DimLike) -> NoReturn:
    names = ", ".join(sorted(symbols_of((a, b))))
    raise UndecidedDim(f"Whether {a} {op} {b} depends on the unknown {names}, and nothing is being traced "
                       f"that could assume it.")


# Broadcasting


def broadcast_dim(a: DimLike, b: DimLike) -> DimLike:
    """The size that `a` and `b` broadcast to.

    1 gives way to the other. A known number above an unknown one gives the number, and two unknown ones
    give the first; both with the guard that they are equal. Where they cannot be equal, the one that
    can be 1 is assumed to be.

    Raises:
        ValueError: the sizes cannot broadcast.
        UndecidedDim: a guard is needed and nothing is recording.
    """
    if type(a) is int and type(b) is int:
        if a == b or b == 1:
            return a
        if a == 1:
            return b
        raise ValueError(f"Sizes {a} and {b} do not broadcast: they must match or be 1.")
    if type(a) is int:
        a, b = b, a
    if a == b or (type(b) is int and b == 1):
        return a
    if require_eq(a, b):
        return b if type(b) is int else a
    if decide_eq(a, 1) is not False and require_eq(a, 1):
        return b
    if decide_eq(b, 1) is not False and require_eq(b, 1):
        return a
    raise ValueError(f"Sizes {a} and {b} do not broadcast: they must match or be 1.")


def broadcast_shapes(*shapes: Sequence[DimLike]) -> Shape:
    """The shape that `shapes` broadcast to, aligned at the last axis as in NumPy.

    Raises:
        BroadcastError: two sizes meet that cannot broadcast.
        UndecidedDim: a guard is needed and nothing is recording.

    >>> from twofold.ir import dims
    >>> dims.broadcast_shapes((4, 1), (3,), ())
    (4, 3)
    """
    if not shapes:
        return ()
    result = tuple(shapes[0])
    for shape in shapes[1:]:
        other = tuple(shape)
        if other != result:
            result = _broadcast_two(result, other, shapes)
    return result


def _broadcast_two(a: Shape, b: Shape, shapes: Sequence[Sequence[DimLike]]) -> Shape:
    if len(a) < len(b):
        a, b = b, a
    offset = len(a) - len(b)
    result = list(a)
    for i, size in enumerate(b, offset):
        here = result[i]
        if here is size or (type(size) is int and size == 1):
            continue
        if type(here) is int and (here == 1 or here == size):
            result[i] = size
            continue
        try:
            result[i] = broadcast_dim(here, size)
        except UndecidedDim:
            raise
        except ValueError:
            raise _broadcast_error(i - len(a), shapes) from None
    return tuple(result)


def _broadcast_error(axis_from_end: int, shapes: Sequence[Sequence[DimLike]]) -> BroadcastError:
    rank = max(map(len, shapes))
    sizes = tuple([s[axis_from_end] for s in shapes if len(s) >= -axis_from_end])
    return BroadcastError(rank + axis_from_end, sizes, tuple([tuple(s) for s in shapes]))


def as_dim(value: SupportsIndex | Dim | str) -> DimLike:
    """`value` as a dimension: a Dim, an integer of any kind, or the text of one.

    Raises:
        TypeError: it is none of these.
        ValueError: it is negative, or text that cannot be read.
    """
    if isinstance(value, str):
        value = parse(value)
    if isinstance(value, Dim):
        return value
    try:
        size = operator.index(value)
    except TypeError:
        raise TypeError(f"A dimension must be an integer or a Dim, not {value!r} of type "
                        f"{type(value).__name__}.") from None
    if size < 0:
        raise ValueError(f"A dimension must be zero or more, not {size}.")
    return size
