"""The text of a dimension, and the way back.

`render` shows a canonical expression as a person would write it: floor divisions, remainders, `max`
and `min` are put back together where that names fewer symbols or takes fewer letters, so
`n - 2*(n//2)` reads `n%2`. `parse(render(d)) == d` always.

Grammar: sums and products of integers, symbols, `( )`, `//`, `%`, `max(a, b)` and `min(a, b)`, with
Python's precedence. It is parsed here by hand; nothing is evaluated as Python.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import TypeAlias

from .dim_expr import Atom, DimLike, Mono, defines, floordiv, from_terms, maximum, minimum, symbol, terms_of, without

__all__ = ["render", "parse"]

Shown: TypeAlias = tuple[int, str]  # coefficient, text of the rest of the product
View: TypeAlias = tuple[int, Mono, str, DimLike]  # coefficient, cofactor, text of the atom, what is left to show
_DEEPEST = 100  # parentheses within parentheses
_TERMS = 1000  # of a product when it is multiplied out, so that short text makes no huge expression
_NOTHING: set[Mono] = set()
_CONSTANT: set[Mono] = {()}


@defines
@lru_cache(maxsize=8192)
def render(d: DimLike) -> str:
    """The text of an int or Dim."""
    if type(d) is int:
        return str(d)
    shown: list[Shown] = []
    rest: DimLike = d
    while True:
        term = next(((m, c) for m, c in terms_of(rest) if _lone_compound(m) is not None), None)
        if term is None:
            return _joined(shown + _plain(rest))
        mono, coef = term
        rest = rest - from_terms([term])
        piece, rest = min(_views(mono, coef, rest), key=lambda v: _cost(_joined([*shown, v[0], *_plain(v[1])])))
        shown.append(piece)


def _cost(text: str) -> tuple[int, int, str]:
    return len(re.findall(r"(?!max\b|min\b)\b[A-Za-z_]\w*", text)), len(text) + text.count("-"), text


def _joined(pieces: list[Shown]) -> str:
    front = next((i for i, (c, _) in enumerate(pieces) if c > 0), 0)
    pieces = [pieces[front], *pieces[:front], *pieces[front + 1:]] if pieces else [(0, "")]
    text = ""
    for coef, body in pieces:
        sign = ("-" if coef < 0 else "") if not text else (" - " if coef < 0 else " + ")
        if sign == "-" and _is_quotient(body):  # -(a//b) is not (-a)//b
            body = f"({body})"
        text += sign + _product_text(abs(coef), body)
    return text


def _product_text(size: int, body: str) -> str:
    if not body:
        return str(size)
    if size == 1:
        return body
    return f"{size}*({body})" if _is_quotient(body) else f"{size}*{body}"


def _is_quotient(body: str) -> bool:
    depth = 0
    for ch in body:
        depth += (ch == "(") - (ch == ")")
        if depth == 0 and ch in "/%":
            return True
    return False


def _plain(d: DimLike) -> list[Shown]:
    return [(c, _mono_text(m)) for m, c in terms_of(d)]


def _mono_text(mono: Mono) -> str:
    factors = [_atom_text(a) for a in mono]
    if len(factors) > 1:
        factors = [f"({f})" if _is_quotient(f) else f for f in factors]
    return "*".join(factors)


def _atom_text(atom: Atom) -> str:
    if atom.kind == "sym":
        return atom.name
    return _quotient_text(atom.a, "//", atom.b) if atom.kind == "div" else f"max({atom.a}, 0)"


def _quotient_text(a: DimLike, op: str, b: DimLike) -> str:
    return f"{_operand(a)}{op}{_operand(b)}"


def _operand(d: DimLike) -> str:
    text = str(d)
    return text if re.fullmatch(r"\w+", text) else f"({text})"


def _lone_compound(mono: Mono) -> Atom | None:
    compound = [a for a in mono if a.depth]
    return compound[0] if len(compound) == 1 else None


def _views(mono: Mono, coef: int, rest: DimLike) -> Iterator[tuple[Shown, DimLike]]:
    """Ways to show `coef * mono + rest`, each a shown product and the rest that remains beside it."""
    atom = _lone_compound(mono)
    assert atom is not None
    cofactor = without(mono, (atom,)) or ()
    before = _compounds(rest)
    views = _quotient_views if atom.kind == "div" else _max_views
    candidates = views(atom, cofactor, coef, rest)
    for scale, outside, text, left in candidates:
        if _compounds(left) <= before:  # else a view could bring back what another one took away
            body = f"({text})" if outside and _is_quotient(text) else text
            yield (scale, "*".join([*(a.name for a in outside), body])), left


def _compounds(d: DimLike) -> set[Mono]:
    return {m for m, _ in terms_of(d) if any(a.depth for a in m)}


def _quotient_views(atom: Atom, cofactor: Mono, coef: int, rest: DimLike) -> Iterator[View]:
    a, b = atom.a, atom.b
    monos = {m for m, _ in terms_of(a)}
    for sign, numerator in ((1, a), (-1, b - 1 - a)):  # a//b is -((b - 1 - a)//b)
        if sign < 0 and type(b) is not int:
            continue
        for taken in _multiples(rest, cofactor, sign * coef, _NOTHING, _CONSTANT, monos - _CONSTANT, monos | _CONSTANT):
            left = rest - taken * from_terms([(cofactor, sign * coef)])
            plain = sign > 0 and taken == 0
            if not plain and terms_of(numerator + b * taken)[0][1] < 0:  # -((n + 1)//2) reads better than (-n)//2
                continue
            yield sign * coef, cofactor, _quotient_text(numerator + b * taken, "//", b), left
    (factor, scale), *more = terms_of(b)
    outside = None if more else without(cofactor, factor)
    if outside is None or coef % scale:
        return
    times = -coef // scale  # -t*b*(a//b) is t*(a%b) - t*a
    yield times, outside, _quotient_text(a, "%", b), rest - a * from_terms([(outside, times)])


def _max_views(atom: Atom, cofactor: Mono, coef: int, rest: DimLike) -> Iterator[View]:
    plus = from_terms((m, c) for m, c in terms_of(atom.a) if c > 0)
    minus = plus - atom.a
    outside = from_terms([(cofactor, coef)])
    for high, low in ((atom.a, 0), (plus, minus)):  # max(high - low, 0)
        for name, scale, left in (("max", coef, rest - low * outside), ("min", -coef, rest + high * outside)):
            for taken in _multiples(left, cofactor, scale, _NOTHING, _CONSTANT, {m for m, _ in terms_of(atom.a)}):
                first, second = high + taken, low + taken
                if type(first) is int:
                    first, second = second, first
                yield scale, cofactor, f"{name}({first}, {second})", left - taken * from_terms([(cofactor, scale)])


def _multiples(d: DimLike, cofactor: Mono, coef: int, *wanted: set[Mono]) -> list[DimLike]:
    """`_multiple_within` for several sets of products, each result once."""
    return list(dict.fromkeys(_multiple_within(d, cofactor, coef, products) for products in wanted))


def _multiple_within(d: DimLike, cofactor: Mono, coef: int, wanted: set[Mono]) -> DimLike:
    """The y, made of `wanted` products, for which `coef * cofactor * y` is a part of `d`."""
    terms = []
    for mono, c in terms_of(d):
        inner = without(mono, cofactor)
        if inner is not None and inner in wanted and c % coef == 0:
            terms.append((inner, c // coef))
    return from_terms(terms)


_TOKEN = re.compile(r"\s*(?:(\d+)|([A-Za-z_]\w*)|(//|[-+*%(),]))", re.ASCII)


@defines
def parse(text: str) -> DimLike:
    """The int or Dim that `text` spells.

    Raises:
        ValueError: `text` is not an expression of this grammar; the message points at the place.

    >>> from twofold.ir import dims
    >>> dims.parse("(n - 3)//2 + 1") == dims.parse("(n - 1)//2")
    True
    """
    parser = _Parser(text)
    parsed = parser.sum(0)
    if parser.peek() is not None:
        raise parser.error("an operator or the end")
    return parsed


class _Parser:
    def __init__(self, text: str):
        self.text = text
        self.tokens: list[tuple[str, int]] = []
        self.at = 0
        place = 0
        while text[place:].strip():
            match = _TOKEN.match(text, place)
            if match is None:
                raise self.error("a number, a name or an operator", place)
            token = match.group().strip()
            self.tokens.append((token, match.end() - len(token)))
            place = match.end()

    def error(self, expected: str, place: int | None = None) -> ValueError:
        if place is None:
            place = self.tokens[self.at][1] if self.at < len(self.tokens) else len(self.text)
        return ValueError(f"Dimension {self.text!r} cannot be read: {expected} is expected at column {place + 1}.")

    def peek(self) -> str | None:
        return self.tokens[self.at][0] if self.at < len(self.tokens) else None

    def take(self, token: str) -> None:
        if self.peek() != token:
            raise self.error(repr(token))
        self.at += 1

    def sum(self, depth: int) -> DimLike:
        if depth > _DEEPEST:
            raise self.error("less nesting")
        total = self.product(depth)
        while self.peek() in ("+", "-"):
            plus = self.peek() == "+"
            self.at += 1
            term = self.product(depth)
            total = total + term if plus else total - term
        return total

    def product(self, depth: int) -> DimLike:
        result = self.factor(depth)
        while (op := self.peek()) in ("*", "//", "%"):
            self.at += 1
            other = self.factor(depth)
            if op != "*" and other == 0:
                raise ValueError(f"Dimension {self.text!r} divides by zero.")
            if len(terms_of(result)) * len(terms_of(other)) > _TERMS:
                raise self.error(f"an expression of at most {_TERMS} products")
            result = result * other if op == "*" else floordiv(result, other) if op == "//" else result % other
        return result

    def factor(self, depth: int) -> DimLike:
        negative = False
        while self.peek() in ("-", "+"):
            negative ^= self.peek() == "-"
            self.at += 1
        value = self.operand(depth)
        return -value if negative else value

    def operand(self, depth: int) -> DimLike:
        token = self.peek()
        if token is None or token in ("//", "*", "%", ")", ","):
            raise self.error("a number, a name or '('")
        self.at += 1
        if token == "(":
            value = self.sum(depth + 1)
            self.take(")")
            return value
        if token in ("max", "min"):
            return self.extreme(maximum if token == "max" else minimum, depth)
        return int(token) if token.isdigit() else symbol(token)

    def extreme(self, function: Callable[..., DimLike], depth: int) -> DimLike:
        self.take("(")
        args = [self.sum(depth + 1)]
        while self.peek() == ",":
            self.at += 1
            args.append(self.sum(depth + 1))
        self.take(")")
        return function(*args)
