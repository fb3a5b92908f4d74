"""Proofs about a dimension: integer bounds of an expression whose symbols are zero or more.

In: a `Dim`. Out: `(low, high)`, each None where nothing is known. Bounds are sound, not always tight.

Floor divisions and `max(e, 0)` are eliminated from the outside in, each replaced by what is below
(or above) it: `(a - k + 1)/k <= a//k <= a/k`, so that what divisions share cancels (`n - n//2 >= 0`).
What is left is a polynomial in symbols; where signs are mixed, symbols are split into the cases 0 and
1 or more, a few times over (`n*n - n >= 0`). Coefficients are integers over a common divisor.

A symbolic divisor is other than zero; it counts as positive only where that is provable.

A search costs milliseconds where it finds nothing, so what an expression is for some numbers (`samples`) is looked at
first: what one of them contradicts cannot be proved.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

from .dim_expr import Atom, DimLike, Mono, defines, product_of, terms_of, without

if TYPE_CHECKING:
    from fractions import Fraction

__all__ = ["bounds", "at_least", "no_less", "samples"]

Poly: TypeAlias = dict[Mono, int]
Estimate: TypeAlias = tuple[Poly, int]  # a polynomial, and what it is divided by, which is 1 or more
SPLITS = 4  # how often symbols are split into cases
LEAVES = 256  # how many ways of eliminating atoms are tried for one bound


def _checksum(name: str) -> int:
    import zlib
    return zlib.crc32(name.encode())


# Numbers for symbols: all the same, small and large; and numbers that differ, by the symbols' names.
_POINTS: tuple[Callable[[str], int], ...] = (
    lambda name: 0, lambda name: 1, lambda name: 2, lambda name: 1000, lambda name: 10**6,
    lambda name: _checksum(name) % 97, lambda name: _checksum(name[::-1]) % 1009 + 1)


@defines
def at_least(d: DimLike, least: int) -> bool:
    """Whether `d >= least` is provable."""
    if type(d) is int:
        return d >= least
    if any(value < least for value in samples(d)):
        return False
    if all(c > 0 and all(atom.kind != "div" for atom in m) for m, c in terms_of(d) if m):  # such as max(e, 1)
        *_, (mono, coef) = terms_of(d)
        if (0 if mono else coef) >= least:
            return True
    low = _lowest(d)
    return low is not None and low >= least


def no_less(a: DimLike, b: DimLike, sign: int = 1) -> bool:
    """Whether `a >= sign * b` is provable. Most often it is not, which their values tell without the difference."""
    if any(x < sign * y for x, y in zip(_sampled(a), _sampled(b), strict=True) if x is not None and y is not None):
        return False
    return at_least(a - sign * b, 0)


@defines
@lru_cache(maxsize=8192)
def samples(d: DimLike) -> tuple[int, ...]:
    """The values of `d` for some numbers, but for those that make a divisor zero."""
    return tuple([value for value in _sampled(d) if value is not None])


@lru_cache(maxsize=8192)
def _sampled(d: DimLike) -> tuple[int | None, ...]:
    """The value of `d` at each of the points; None where a divisor is zero."""
    totals: list[int | None] = [0] * len(_POINTS)
    for mono, coef in terms_of(d):
        factors = [_sampled_atom(atom) for atom in mono]
        for n, total in enumerate(totals):
            values = [factor[n] for factor in factors]
            totals[n] = None if total is None or None in values else \
                total + coef * math.prod(values)  # type: ignore[arg-type]
    return tuple(totals)


@lru_cache(maxsize=8192)
def _sampled_atom(atom: Atom) -> tuple[int | None, ...]:
    if atom.kind == "sym":
        return tuple([point(atom.name) for point in _POINTS])
    above = _sampled(atom.a)
    if atom.kind == "pos":
        return tuple([None if a is None else max(a, 0) for a in above])
    return tuple([a // b if a is not None and b else None for a, b in zip(above, _sampled(atom.b), strict=True)])


@defines
def bounds(d: DimLike) -> tuple[int | None, int | None]:
    """Integers `(low, high)` with `low <= d <= high` for all symbols >= 0; None where there is none known."""
    if type(d) is int:
        return d, d
    least = _lowest(-d)
    return _lowest(d), None if least is None else -least


@lru_cache(maxsize=8192)
def _lowest(d: DimLike) -> int | None:
    low = _Search().lower(dict(terms_of(d)), 1)
    return None if low is None else math.ceil(low)


class _Search:
    """The search for one bound: how many ways may still be tried, and what is known of polynomials met before."""

    def __init__(self) -> None:
        self.budget = LEAVES
        self.met: dict[tuple[int, frozenset[tuple[Mono, int]]], Fraction | None] = {}

    def lower(self, poly: Poly, divisor: int) -> Fraction | None:
        """A lower bound of `poly / divisor`: the best over the ways of replacing its outermost atom."""
        key = divisor, frozenset(poly.items())
        if key not in self.met:
            self.met[key] = self._lower(poly, divisor)
        return self.met[key]

    def _lower(self, poly: Poly, divisor: int) -> Fraction | None:
        atom = max((a for m in poly for a in m if a.depth), key=lambda a: a.key, default=None)
        if atom is None:
            self.budget -= 1
            least = _lower_in_symbols(poly, SPLITS)
            if least is None:
                return None
            from fractions import Fraction
            return Fraction(least, divisor)
        best: Fraction | None = None
        for replaced, scale in _without_atom(poly, atom):
            if self.budget <= 0:
                break
            bound = self.lower(replaced, divisor * scale)
            if bound is not None and (best is None or bound > best):
                best = bound
        return best


def _without_atom(poly: Poly, atom: Atom) -> list[tuple[Poly, int]]:
    """Quotients that `poly` is no less than, each with `atom` replaced, once a term, by an estimate."""
    rest: Poly = {}
    replaced: list[tuple[int, tuple[Estimate, ...]]] = []
    for mono, coef in poly.items():
        if atom not in mono:
            rest[mono] = coef
            continue
        cofactor = without(mono, (atom,)) or ()
        options = _estimates(atom, cofactor, coef > 0) if _not_negative(cofactor) else ()
        if not options:
            return []
        replaced.append((coef, options))
    return [_combined(rest, [(coef, options[min(way, len(options) - 1)]) for coef, options in replaced])
            for way in range(max(len(options) for _, options in replaced))]


def _combined(rest: Poly, parts: list[tuple[int, Estimate]]) -> tuple[Poly, int]:
    """The sum of `rest` and of each coefficient times its estimate, over one divisor."""
    scale = math.lcm(*[divisor for _, (_, divisor) in parts])
    result = {m: c * scale for m, c in rest.items()}
    for coef, (terms, divisor) in parts:
        factor = coef * (scale // divisor)
        for m, c in terms.items():
            result[m] = result.get(m, 0) + factor * c
    return {m: c for m, c in result.items() if c or not m}, scale


@lru_cache(maxsize=8192)
def _estimates(atom: Atom, cofactor: Mono, below: bool) -> tuple[Estimate, ...]:
    """Polynomials below (or above) `cofactor * atom`, for a cofactor that is not negative."""
    estimates: list[Estimate] = []
    if atom.kind == "pos":
        estimates = _times(cofactor, _positive_part_estimates(atom.a, below))
    elif type(atom.b) is int:
        shift = atom.b - 1 if below else 0
        estimates = _times(cofactor, [_affine(atom.a, -shift, atom.b)])
    elif at_least(atom.b, 0):
        estimates = _symbolic_quotient_estimates(atom, cofactor, below)
    interval = _atom_bounds(atom)[0 if below else 1]
    if interval is not None:
        estimates += _times(cofactor, [({(): interval}, 1)])
    return tuple(estimates)


def _positive_part_estimates(e: DimLike, below: bool) -> list[Estimate]:
    if below:
        return [_affine(e, 0, 1)]  # and 0, which is the interval's
    low = _lowest(e)
    estimates = [] if low is None else [_affine(e, -min(low, 0), 1)]
    if all(_not_negative(m) for m, _ in terms_of(e)):
        estimates.append(({m: c for m, c in terms_of(e) if c > 0}, 1))
    return estimates


def _symbolic_quotient_estimates(atom: Atom, cofactor: Mono, below: bool) -> list[Estimate]:
    """From `a - b + 1 <= b*(a//b) <= a` where b is one product that the cofactor holds, and `a//b <= a`."""
    a, b = atom.a, atom.b
    estimates: list[Estimate] = []
    (factor, scale), *more = terms_of(b)
    outside = None if more else without(cofactor, factor)
    if outside is not None:
        estimates += _times(outside, [_affine(a - b + 1 if below else a, 0, scale)])
    if not below and at_least(a, 0):
        estimates += _times(cofactor, [_affine(a, 0, 1)])
    return estimates


def _affine(d: DimLike, shift: int, divisor: int) -> Estimate:
    poly = dict(terms_of(d))
    poly[()] = poly.get((), 0) + shift
    return poly, divisor


def _times(factor: Mono, estimates: list[Estimate]) -> list[Estimate]:
    return [({product_of(factor, m): c for m, c in terms.items()}, divisor) for terms, divisor in estimates]


def _not_negative(mono: Mono) -> bool:
    for atom in mono:
        if atom.kind == "div" and mono.count(atom) % 2:
            low = _atom_bounds(atom)[0]
            if low is None or low < 0:
                return False
    return True


@lru_cache(maxsize=8192)
def _atom_bounds(atom: Atom) -> tuple[int | None, int | None]:
    if atom.kind == "sym":
        return 0, None
    low, high = bounds(atom.a)
    if atom.kind == "pos":
        return max(low or 0, 0), None if high is None else max(high, 0)
    if type(atom.b) is int:
        return None if low is None else low // atom.b, None if high is None else high // atom.b
    if not at_least(atom.b, 0):
        return None, None
    # A divisor of 1 or more brings a quotient nearer to 0, and a negative one no nearer than -1.
    return None if low is None else min(low, 0), None if high is None else max(high, -1)


def _lower_in_symbols(poly: Poly, splits: int) -> int | None:
    """The least value over symbols >= 0, or a lower bound; None where it is not found."""
    negative = [m for m, c in poly.items() if m and c < 0]
    if not negative:
        return poly.get((), 0)
    outgrown = [any(c > 0 and len(p) > len(m) and without(p, m) is not None for p, c in poly.items())
                for m in negative]
    if splits == 0 or not all(outgrown):
        return None
    name = negative[0][0]
    here = _lower_in_symbols({m: c for m, c in poly.items() if name not in m}, splits - 1)
    beyond = _lower_in_symbols(_shifted(poly, name), splits - 1)
    return None if here is None or beyond is None else min(here, beyond)


def _shifted(poly: Poly, atom: Atom) -> Poly:
    """`poly` with `atom + 1` in place of `atom`."""
    result: Poly = {}
    for mono, coef in poly.items():
        power = mono.count(atom)
        others = tuple(a for a in mono if a != atom)
        for k in range(power + 1):
            m = product_of(others, (atom,) * k)
            result[m] = result.get(m, 0) + coef * math.comb(power, k)
    return result
