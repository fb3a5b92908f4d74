"""Writes `ir/special_tables.py`: the polynomials of Bessel functions, integrals and the incomplete gamma function.

    python tests/ir/fit_special.py

Each is the Chebyshev expansion of a smooth part of a function, whose coefficients are sums over 56 nodes with mpmath's
functions in 200 bits, cut where what is left out is below 2**-56 of the part; then written by powers of the argument
moved to [-1, 1]. How the parts make the functions stands in `ir/math_bessel.py`, `ir/math_integrals.py` and
`ir/math_incomplete.py`.
"""

from __future__ import annotations

from pathlib import Path

import mpmath as mp

PAGE = Path(__file__).resolve().parents[2] / "ir" / "special_tables.py"
NODES = 56
CUT = mp.mpf(2) ** -56
HEAD = '''"""Polynomials that the bodies of special functions are made of; `tests/ir/fit_special.py` writes this file.

A `Fit` is a polynomial in the argument moved from an interval to [-1, 1]; `fitted` of `math_core.py` computes it.
"""

from __future__ import annotations

from .math_core import Fit

'''


def chebyshev(f, low, high):
    """The coefficients of the expansion of `f`, and its values at the nodes."""
    angles = [mp.pi * (2 * k + 1) / (2 * NODES) for k in range(NODES)]
    values = [f((high - low) / 2 * mp.cos(t) + (high + low) / 2) for t in angles]
    coefficients = [mp.fsum(v * mp.cos(j * t) for v, t in zip(values, angles, strict=True)) * 2 / NODES
                    for j in range(NODES)]
    coefficients[0] /= 2
    return coefficients, values


def fit(f, low, high, absolute=False):
    """(powers, what is left out): the expansion cut, relative to the least or, if absolute, to the largest value."""
    c, values = chebyshev(f, mp.mpf(low), mp.mpf(high))
    size = (max if absolute else min)(abs(v) for v in values)
    left, count = mp.mpf(0), NODES
    while left + abs(c[count - 1]) < CUT * size:
        left, count = left + abs(c[count - 1]), count - 1
    before, now, powers = [mp.mpf(1)], [mp.mpf(0), mp.mpf(1)], [mp.mpf(0)] * count
    for k in range(count):
        t = before if k == 0 else now
        for i, v in enumerate(t):
            powers[i] += c[k] * v
        if k > 0:
            following = [mp.mpf(0)] + [2 * v for v in now]
            for i, v in enumerate(before):
                following[i] -= v
            before, now = now, following
    return powers, left / size


def bessel():
    """What the Bessel functions of order 0 and 1 are near 0 and far from it."""
    scale = mp.exp(mp.euler) / 2
    yield "I0_FAR", lambda v: mp.besseli(0, 1 / v) * mp.exp(-1 / v) / mp.sqrt(v), 0, mp.mpf(1) / 8
    yield "I1_FAR", lambda v: mp.besseli(1, 1 / v) * mp.exp(-1 / v) / mp.sqrt(v), 0, mp.mpf(1) / 8
    yield "K0_FAR", lambda v: mp.besselk(0, 1 / v) * mp.exp(1 / v) / mp.sqrt(v), 0, 1
    yield "K1_FAR", lambda v: mp.besselk(1, 1 / v) * mp.exp(1 / v) / mp.sqrt(v), 0, 1
    yield "J0_NEAR", lambda u: (mp.besselj(0, mp.sqrt(u)) - 1) / u, 0, 64, True
    yield "J1_NEAR", lambda u: mp.besselj(1, mp.sqrt(u)) / mp.sqrt(u), 0, 64, True
    yield "Y0_NEAR", lambda u: (mp.bessely(0, mp.sqrt(u)) - 2 / mp.pi * mp.log(scale * mp.sqrt(u))
                                * mp.besselj(0, mp.sqrt(u))), 0, 64, True
    yield "Y1_NEAR", lambda u: (mp.bessely(1, mp.sqrt(u)) - 2 / mp.pi * (mp.log(scale * mp.sqrt(u))
                                * mp.besselj(1, mp.sqrt(u)) - 1 / mp.sqrt(u))) / mp.sqrt(u), 0, 64, True
    for order in (0, 1):
        def hankel(v, order=order):
            x = 1 / mp.sqrt(v)
            turned = mp.expj(-(x - order * mp.pi / 2 - mp.pi / 4)) * mp.sqrt(mp.pi * x / 2)
            return (mp.besselj(order, x) + 1j * mp.bessely(order, x)) * turned, x
        yield f"P{order}", lambda v, h=hankel: h(v)[0].real, 0, mp.mpf(1) / 64
        yield f"Q{order}", lambda v, h=hankel: h(v)[0].imag * h(v)[1], 0, mp.mpf(1) / 64


def dawson(x):
    return mp.exp(-x * x) * mp.erfi(x) * mp.sqrt(mp.pi) / 2


def auxiliary(x):
    """The auxiliary functions f and g of the Fresnel integrals (DLMF 7.5.3, 7.5.4)."""
    s, c, phase = mp.mpf(1) / 2 - mp.fresnels(x), mp.mpf(1) / 2 - mp.fresnelc(x), mp.pi * x * x / 2
    return s * mp.cos(phase) - c * mp.sin(phase), c * mp.cos(phase) + s * mp.sin(phase)


def integrals():
    """Parts of Dawson's, the exponential and Fresnel's integrals."""
    yield "DAWSON_0", lambda u: dawson(mp.sqrt(u)) / mp.sqrt(u), 0, 2
    yield "DAWSON_1", lambda x: dawson(x) * x, mp.sqrt(2), mp.mpf(5) / 2
    yield "DAWSON_2", lambda x: dawson(x) * x, mp.mpf(5) / 2, 4
    yield "DAWSON_3", lambda x: dawson(x) * x, 4, 6
    yield "DAWSON_FAR", lambda v: dawson(1 / mp.sqrt(v)) / mp.sqrt(v), 0, mp.mpf(1) / 36
    yield "EXPINT_0", lambda v: (mp.ei(v) - mp.log(v) - mp.euler) / v, 0, 3
    for n, (low, high) in enumerate(((3, 7), (7, 14), (14, 30)), 1):
        yield f"EXPINT_{n}", lambda v: mp.ei(1 / v) * mp.exp(-1 / v) / v, mp.mpf(1) / high, mp.mpf(1) / low
    yield "EXPINT_FAR", lambda v: mp.ei(1 / v) * mp.exp(-1 / v) / v, 0, mp.mpf(1) / 30
    yield "FRESNEL_S", lambda v: mp.fresnels(mp.root(v, 4)) / mp.root(v, 4) ** 3, 0, 16, True
    yield "FRESNEL_C", lambda v: mp.fresnelc(mp.root(v, 4)) / mp.root(v, 4), 0, 16, True
    yield "FRESNEL_F", lambda v: auxiliary(1 / mp.sqrt(v))[0] / mp.sqrt(v), 0, mp.mpf(1) / 4
    yield "FRESNEL_G", lambda v: auxiliary(1 / mp.sqrt(v))[1] / mp.sqrt(v) ** 3, 0, mp.mpf(1) / 4


def gamma():
    """Parts of the gamma function between 1 and 2."""
    yield "RECIPROCAL_GAMMA", lambda v: mp.rgamma(1 + v), 0, 1
    yield "LOG_GAMMA", lambda v: mp.loggamma(1 + v) / (v * (1 - v)), 0, 1


def temme(terms=60):
    """Temme's coefficients (DLMF 8.12.7 to 8.12.11), enough for a >= 25 and |eta| <= 0.8.

    With `lambda - 1 = sum(alpha[n] * eta**n)`, C_0 is `1/(lambda - 1) - 1/eta`, and C_k is `C_(k-1)'/eta` and a
    multiple of `1/(lambda - 1)` that removes the pole.
    """
    alpha = [mp.mpf(0), mp.mpf(1)]
    for n in range(2, terms + 1):  # from (lambda - 1) dlambda = lambda eta deta
        inner = mp.fsum(alpha[k] * alpha[n + 1 - k] for k in range(2, n))
        alpha.append((alpha[n - 1] - inner * (n + 1) / 2) / (n + 1))
    inverse = [mp.mpf(1)]  # eta / (lambda - 1)
    for n in range(1, terms):
        inverse.append(-mp.fsum(alpha[k + 1] * inverse[n - k] for k in range(1, n + 1)))
    row = inverse[1:]
    rows = [row]
    for _ in range(14):
        slope = [n * c for n, c in enumerate(row)][1:]  # slope / eta has the pole slope[0] / eta
        row = [d - slope[0] * i for d, i in zip(slope[1:], inverse[1:], strict=False)]
        rows.append(row)
    return [short(r, mp.mpf(25) ** -k) for k, r in enumerate(rows)]


def short(row, factor):
    """A row without what comes to nothing at its end, where |eta| is at most 0.8."""
    kept = [n for n, c in enumerate(row) if abs(c) * mp.mpf("0.8") ** n * factor > CUT / 16]
    return row[:kept[-1] + 1] if kept else []


def numbers(values):
    """A tuple as lines of at most 120 characters."""
    lines, line = [], "    "
    for text in (f"{float(v)!r}," for v in values):
        if len(line) + len(text) > 118:
            lines, line = [*lines, line.rstrip()], "    "
        line += text + " "
    return "\n".join([*lines, line.rstrip()])


def main():
    mp.mp.prec = 200
    parts = [HEAD]
    for name, f, low, high, *absolute in (*bessel(), *integrals(), *gamma()):
        powers, left = fit(f, low, high, *absolute)
        parts.append(f"# 2**{float(mp.log(left, 2)):.1f}\n{name} = Fit({float(low)!r}, {float(high)!r}, (\n"
                     f"{numbers(powers)}\n))\n")
    parts.append("# the coefficients C_k(eta) of DLMF 8.12.7, from the constant term upwards, for |eta| <= 0.8\n")
    parts.append("TEMME = (\n")
    parts += [f"    (\n{numbers(row)}\n    ),\n" for row in temme() if row]
    PAGE.write_text("".join(parts) + ")\n")


if __name__ == "__main__":
    main()
