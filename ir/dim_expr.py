"""Symbolic dimensions: integer expressions in canonical form.

Owns `Dim` and its exact arithmetic: polynomials with integer coefficients over atoms. An atom is a
symbol (an unknown size, zero or more), a floor division that does not come out, or `max(e, 0)`.
Everything else is written with these: `a % k` is `a - k*(a//k)`, `max(a, b)` is `b + max(a - b, 0)`,
`min(a, b)` is `a - max(a - b, 0)`. So expressions that differ only by ring arithmetic, by multiples of
the divisor or by common factors are the same object in structure, and arithmetic that comes out
constant is an `int`.

Bounds are `ir/dim_bounds.py`'s, text is `ir/dim_text.py`'s, decisions and guards are `ir/dims.py`'s.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache, reduce
from typing import Any, SupportsIndex, TypeAlias, TypeVar

__all__ = ["Dim", "DimLike", "Atom", "Mono", "symbol", "floordiv", "ceil_div", "maximum", "minimum", "positive_part",
           "terms_of", "from_terms", "divided", "without_number", "defines"]


_Function = TypeVar("_Function", bound=Callable[..., Any])
_DEFINED: dict[str, Callable[..., Any]] = {}


def defines(function: _Function) -> _Function:
    """Hands in what dims themselves need of the modules about them: `bounds`, `samples` and `at_least`
    (`ir/dim_bounds.py`), `render` and `parse` (`ir/dim_text.py`), `require` (`ir/dims.py`, with which all of them are
    loaded)."""
    _DEFINED[function.__name__] = function
    return function


class Atom(str):
    """A factor in a polynomial: a symbol, `a//b` (`b` an int >= 2 or a Dim) or `max(a, 0)`.

    It is its own text, that of a canonical expression: equal texts mean equal atoms. So products of atoms, which are
    keys of most tables here, are hashed and compared without any Python.
    """

    __slots__ = ("kind", "name", "a", "b", "depth", "key", "symbols")

    kind: str  # "sym", "div" or "pos"
    name: str
    a: DimLike
    b: DimLike
    depth: int
    key: tuple[int, str, str]  # by which atoms are ordered
    symbols: frozenset[str]

    def __new__(cls, kind: str, name: str = "", a: DimLike = 0, b: DimLike = 0) -> Atom:
        text = name or f"{a}|{b}"
        atom = super().__new__(cls, f"{kind} {text}")
        atom.kind, atom.name, atom.a, atom.b = kind, name, a, b
        atom.depth = 0 if kind == "sym" else 1 + max(_depth(a), _depth(b))
        atom.symbols = frozenset([name]) if kind == "sym" else _symbols_of(a) | _symbols_of(b)
        atom.key = (atom.depth, kind, text)
        return atom

    def __repr__(self) -> str:
        return str(Dim((((self,), 1),)))

    __str__ = __repr__


Mono: TypeAlias = tuple[Atom, ...]  # a product of atoms in the order of their keys; () is 1
Terms: TypeAlias = tuple[tuple[Mono, int], ...]
_atom_key = operator.attrgetter("key")


_Place: TypeAlias = tuple[int, tuple[tuple[int, str, str], ...]]


@lru_cache(maxsize=4096)
def _place(mono: Mono) -> _Place:
    """Higher degree first, then by atoms: an order that products respect, as polynomial division needs."""
    return (-len(mono), tuple([a.key for a in mono]))


def _order(term: tuple[Mono, int]) -> _Place:
    return _place(term[0])


class Dim:
    """A dimension that is known only as an expression, such as `n` or `(n - 1)//2`.

    Symbols stand for sizes, so they are zero or more. A Dim never changes, is hashable, and equals
    what has the same canonical form. Its text parses back. `<` and the like are not defined: decisions
    belong to `ir.dims`, and the truth value of a Dim is `dims.require(d, "!=", 0)`.

    >>> from twofold.ir import dims
    >>> n = dims.symbol("n")
    >>> (4 * n) // 4, (n + 2) - 2 == n, (2 * n) % 2, str((n + 3) // 2)
    (n, True, 0, '(n + 3)//2')
    """

    __slots__ = ("terms", "_hash", "_text", "_symbols")
    __array_ufunc__ = None  # so that numpy.int64(3) * dim reaches __rmul__

    terms: Terms

    def __init__(self, terms: Terms):
        """Wrap terms that are canonical already; use `symbol` and arithmetic to make a Dim."""
        self.terms = terms
        self._hash = hash(terms)
        self._text: str | None = None
        self._symbols: frozenset[str] | None = None

    def symbols(self) -> frozenset[str]:
        """The names of the symbols in this expression."""
        if self._symbols is None:
            self._symbols = frozenset().union(*[atom.symbols for mono, _ in self.terms for atom in mono])
        return self._symbols

    def name_alone(self) -> str | None:
        """The name of the symbol that this is, or None where it is more than a symbol."""
        if len(self.terms) != 1 or self.terms[0][1] != 1 or len(self.terms[0][0]) != 1:
            return None
        atom = self.terms[0][0][0]
        return atom.name if atom.kind == "sym" else None

    def evaluate(self, env: Mapping[str, int]) -> int:
        """The value with every symbol given.

        Raises:
            KeyError: a symbol is missing from `env`.
            ZeroDivisionError: a divisor is zero there.
        """
        total = 0
        for mono, coef in self.terms:
            for atom in mono:
                coef *= env[atom.name] if atom.kind == "sym" else _atom_value(atom, env)
            total += coef
        return total

    def substitute(self, env: Mapping[str, DimLike]) -> DimLike:
        """This expression with some symbols replaced by ints or expressions."""
        if env.keys().isdisjoint(self.symbols()):
            return self
        total: DimLike = 0
        for mono, coef in self.terms:
            part: DimLike = coef
            for atom in mono:
                part = part * _atom_substituted(atom, env)
            total = total + part
        return total

    def __add__(self, other: DimLike) -> DimLike:
        operand = _coerce(other)
        if operand is None:
            return NotImplemented
        return _add(self, operand, 1)

    __radd__ = __add__

    def __sub__(self, other: DimLike) -> DimLike:
        operand = _coerce(other)
        if operand is None:
            return NotImplemented
        return _add(self, operand, -1)

    def __rsub__(self, other: DimLike) -> DimLike:
        operand = _coerce(other)
        if operand is None:
            return NotImplemented
        return _add(-self, operand, 1)

    def __mul__(self, other: DimLike) -> DimLike:
        operand = _coerce(other)
        if operand is None:
            return NotImplemented
        return _product(self, operand) if isinstance(operand, Dim) else _scaled(self, operand)

    __rmul__ = __mul__

    def __floordiv__(self, other: DimLike) -> DimLike:
        operand = _coerce(other)
        return NotImplemented if operand is None else floordiv(self, operand)

    def __rfloordiv__(self, other: DimLike) -> DimLike:
        operand = _coerce(other)
        return NotImplemented if operand is None else floordiv(operand, self)

    def __mod__(self, other: DimLike) -> DimLike:
        operand = _coerce(other)
        return NotImplemented if operand is None else self - operand * floordiv(self, operand)

    def __rmod__(self, other: DimLike) -> DimLike:
        operand = _coerce(other)
        return NotImplemented if operand is None else operand - self * floordiv(operand, self)

    def __divmod__(self, other: DimLike) -> tuple[DimLike, DimLike]:
        operand = _coerce(other)
        if operand is None:
            return NotImplemented
        whole = floordiv(self, operand)
        return whole, self - operand * whole

    def __neg__(self) -> Dim:
        return Dim(tuple([(m, -c) for m, c in self.terms]))

    def __pos__(self) -> Dim:
        return self

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Dim) and self._hash == other._hash and self.terms == other.terms

    def __hash__(self) -> int:
        return self._hash

    def __bool__(self) -> bool:
        return bool(_DEFINED["require"](self, "!=", 0))

    def __str__(self) -> str:
        if self._text is None:
            self._text = _DEFINED["render"](self)
        return self._text

    __repr__ = __str__

    def __reduce__(self) -> tuple[object, ...]:
        return (_DEFINED["parse"], (str(self),))


DimLike: TypeAlias = int | Dim


@lru_cache(maxsize=1024)
def symbol(name: str) -> Dim:
    """The unknown size called `name`.

    Raises:
        ValueError: `name` is not an ASCII identifier, or is `max` or `min`.
    """
    if not (name.isidentifier() and name.isascii()) or name in ("max", "min"):
        raise ValueError(f"{name!r} cannot name a dimension: an ASCII identifier other than max and min is needed.")
    return _of_atom(Atom("sym", name))


def maximum(first: DimLike, *rest: DimLike) -> DimLike:
    """The largest of some dims, exactly."""
    return reduce(lambda a, b: b + positive_part(a - b), rest, first)


def minimum(first: DimLike, *rest: DimLike) -> DimLike:
    """The smallest of some dims, exactly."""
    return reduce(lambda a, b: a - positive_part(a - b), rest, first)


def ceil_div(a: DimLike, b: DimLike) -> DimLike:
    """`a / b` rounded up."""
    return -(-a // b)


def terms_of(d: DimLike) -> Terms:
    """The `(product of atoms, coefficient)` pairs of an int or Dim, highest degree first."""
    if type(d) is int:
        return (((), d),) if d else ()
    return d.terms  # type: ignore[union-attr]


def from_terms(terms: Iterable[tuple[Mono, int]]) -> DimLike:
    """The sum of some terms; products must be in atom order."""
    collected: dict[Mono, int] = {}
    for mono, coef in terms:
        collected[mono] = collected.get(mono, 0) + coef
    return _make(collected)


def divided(d: Dim, factor: int) -> Dim:
    """`d / factor`, for a factor of all its coefficients."""
    return Dim(tuple([(mono, coef // factor) for mono, coef in d.terms]))


def without_number(d: Dim) -> tuple[DimLike, int]:
    """`d` without its constant, and that."""
    mono, coef = d.terms[-1]
    return (d, 0) if mono else (Dim(d.terms[:-1]) if len(d.terms) > 1 else 0, coef)


def product_of(a: Mono, b: Mono) -> Mono:
    """The product of two monomials."""
    if not a:
        return b
    return tuple(sorted(a + b, key=_atom_key)) if b else a


def without(mono: Mono, part: Mono) -> Mono | None:
    """`mono / part`, or None where it does not divide."""
    left = list(mono)
    for atom in part:
        if atom not in left:
            return None
        left.remove(atom)
    return tuple(left)


def _coerce(value: SupportsIndex | Dim) -> DimLike | None:
    if type(value) is int or isinstance(value, Dim):
        return value
    try:
        return operator.index(value)
    except TypeError:
        return None


def _of_atom(atom: Atom) -> Dim:
    return Dim((((atom,), 1),))


def _make(collected: dict[Mono, int], ordered: bool = False) -> DimLike:
    """The sum of some terms; `ordered` says whether they are in the order of a `Dim`."""
    terms = [t for t in collected.items() if t[1]]
    if not terms:
        return 0
    if len(terms) == 1:
        mono, coef = terms[0]
        return Dim(((mono, coef),)) if mono else coef
    if not ordered:
        terms.sort(key=_order)
    return Dim(tuple(terms))


def _add(a: Dim, b: DimLike, sign: int) -> DimLike:
    if type(b) is int:
        return _shifted(a, sign * b)
    collected = dict(a.terms)
    for mono, coef in terms_of(b):
        collected[mono] = collected.get(mono, 0) + sign * coef
    return _make(collected, len(collected) == len(a.terms))  # which it is where no product is new


def _shifted(d: Dim, by: int) -> Dim:
    mono, coef = d.terms[-1]
    if not by:
        return d
    if mono:
        return Dim((*d.terms, ((), by)))
    return Dim((*d.terms[:-1], ((), coef + by)) if coef + by else d.terms[:-1])


def _scaled(d: Dim, factor: int) -> DimLike:
    if factor == 1:
        return d
    return Dim(tuple([(m, c * factor) for m, c in d.terms])) if factor else 0


@lru_cache(maxsize=4096)
def _product(a: Dim, b: Dim) -> DimLike:
    return from_terms((product_of(m, o), c * k) for m, c in a.terms for o, k in b.terms)


def _depth(d: DimLike) -> int:
    return 0 if type(d) is int else max(a.depth for m, _ in terms_of(d) for a in m)


def _symbols_of(d: DimLike) -> frozenset[str]:
    return frozenset() if type(d) is int else d.symbols()  # type: ignore[union-attr]


def _value(d: DimLike, env: Mapping[str, int]) -> int:
    return d.evaluate(env) if isinstance(d, Dim) else d


def _atom_value(atom: Atom, env: Mapping[str, int]) -> int:
    a = _value(atom.a, env)
    return a // _value(atom.b, env) if atom.kind == "div" else max(a, 0)


def _replaced(d: DimLike, env: Mapping[str, DimLike]) -> DimLike:
    return d.substitute(env) if isinstance(d, Dim) else d


def _atom_substituted(atom: Atom, env: Mapping[str, DimLike]) -> DimLike:
    if atom.kind == "sym":
        size = env.get(atom.name)
        return _of_atom(atom) if size is None else size
    a = _replaced(atom.a, env)
    return floordiv(a, _replaced(atom.b, env)) if atom.kind == "div" else positive_part(a)


# Division


def floordiv(a: DimLike, b: DimLike) -> DimLike:
    """`a // b` as Python rounds it. A symbolic divisor is taken to be other than zero.

    Raises:
        ZeroDivisionError: `b` is 0.
    """
    if type(b) is not int:
        return _divided_by_dim(a, b)
    if type(a) is int or b == 0:
        return a // b if b else operator.floordiv(1, 0)
    return _divided_by_int(a, b) if b > 0 else _divided_by_int(-a, -b)


@lru_cache(maxsize=4096)
def _divided_by_int(a: DimLike, k: int) -> DimLike:
    """`a // k`, k > 0. What the rules below leave has a constant in [0, k), no common factor with k,
    coefficients in (-k/2, k/2] and a positive sign in front, which makes it the only one of its kind."""
    if k == 1:
        return a
    if type(a) is int:
        return a // k
    quotient = _known_quotient(a, k)
    if quotient is not None:
        return quotient
    whole, rest = _split(a, k)
    if type(rest) is int:
        return whole
    coefs = [c for m, c in terms_of(rest) if m]
    common = math.gcd(k, *coefs)
    if common > 1:  # (g*a + c)//(g*k) is (a + c//g)//k
        return whole + _divided_by_int(from_terms((m, c // common) for m, c in terms_of(rest)), k // common)
    if next((c for c in coefs if 2 * c != k), 1) < 0:  # (-a)//k is -((a + k - 1)//k)
        return whole - _divided_by_int(k - 1 - rest, k)
    inner = [m for m, _ in terms_of(rest) if any(t.kind == "div" for t in m)]
    if len(inner) == 1 and (inner[0], 1) in terms_of(rest) and len(inner[0]) == 1 and type(inner[0][0].b) is int:
        division = inner[0][0]  # (a//j + y)//k is (a + j*y)//(j*k)
        outside = rest - _of_atom(division)
        return whole + _divided_by_int(division.a + division.b * outside, division.b * k)
    if k == 2 and terms_of(rest)[-1][0] == ():  # (a + 1)//2 is a - a//2
        return whole + (rest - 1) - _divided_by_int(rest - 1, 2)
    return whole + _of_atom(Atom("div", a=rest, b=k))


def _known_quotient(a: DimLike, k: int) -> int | None:
    """`a // k` where bounds alone decide it; a polynomial in symbols has none on one side."""
    if _depth(a) == 0:
        return None
    if len({value // k for value in _DEFINED["samples"](a)}) > 1:
        return None
    low, high = _DEFINED["bounds"](a)
    if low is None or high is None or low // k != high // k:
        return None
    return low // k


def _split(a: DimLike, k: int) -> tuple[DimLike, DimLike]:
    """`(whole, rest)` with a == k*whole + rest and rest's coefficients least in size."""
    whole, rest = [], []
    for mono, coef in terms_of(a):
        left = coef % k
        if mono and 2 * left > k:
            left -= k
        whole.append((mono, (coef - left) // k))
        rest.append((mono, left))
    return from_terms(whole), from_terms(rest)


@lru_cache(maxsize=4096)
def _divided_by_dim(a: DimLike, b: Dim) -> DimLike:
    if terms_of(b)[0][1] < 0:
        a, b = -a, -b
    whole, rest = _polynomial_division(a, b)
    if rest == 0:
        return whole
    common, factor = _common_factor(rest, b)
    if common or factor > 1:
        return whole + floordiv(_cancelled(rest, common, factor), _cancelled(b, common, factor))
    at_least = _DEFINED["at_least"]
    if at_least(b, 0):  # and not zero, being a divisor
        if at_least(rest, 0) and at_least(b - rest, 1):
            return whole
        if at_least(-rest, 1) and (at_least(rest, -1) or at_least(rest + b, 0)):
            return whole - 1
    return whole + _of_atom(Atom("div", a=rest, b=b))


def _polynomial_division(a: DimLike, b: Dim) -> tuple[DimLike, DimLike]:
    """`(whole, rest)` with a == b*whole + rest, where b's leading term goes into no term of rest."""
    lead, lead_coef = b.terms[0]
    whole: DimLike = 0
    rest: DimLike = 0
    while a != 0:
        mono, coef = terms_of(a)[0]
        quotient = without(mono, lead)
        times = coef // lead_coef if quotient is not None else 0
        if quotient is not None and times:
            part = from_terms([(quotient, times)])
            whole, a = whole + part, a - part * b
        left = dict(terms_of(a)).get(mono, 0)
        head = from_terms([(mono, left)])
        rest, a = rest + head, a - head
    return whole, rest


def _common_factor(a: DimLike, b: DimLike) -> tuple[Mono, int]:
    """The largest monomial and integer that divide every term of both."""
    terms = terms_of(a) + terms_of(b)
    shared = list(terms[0][0])
    for mono, _ in terms[1:]:
        left = list(mono)
        shared = [x for x in shared if x in left and (left.remove(x) or True)]  # type: ignore[func-returns-value]
    return tuple(shared), math.gcd(*[c for _, c in terms])


def _cancelled(d: DimLike, common: Mono, factor: int) -> DimLike:
    return from_terms((without(m, common) or (), c // factor) for m, c in terms_of(d))


@lru_cache(maxsize=4096)
def positive_part(e: DimLike) -> DimLike:
    """`max(e, 0)`."""
    if type(e) is int:
        return max(e, 0)
    at_least = _DEFINED["at_least"]
    if at_least(e, 0):
        return e
    if at_least(-e, 0):
        return 0
    factor = math.gcd(*[c for _, c in terms_of(e)])
    if factor > 1:
        return factor * positive_part(_cancelled(e, (), factor))
    if terms_of(e)[0][1] < 0:
        return e + positive_part(-e)
    return _of_atom(Atom("pos", a=e))
