"""Instructions of PTX one by one: against Python's integers, and fractions that are rounded once."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import ml_dtypes  # noqa: F401  (NumPy's bfloat16)
import numpy as np
import pytest
from gpu.ptx_ops import DTYPES, rule


def signed(x: int, bits: int) -> int:
    x &= (1 << bits) - 1
    return x - (1 << bits) if x >> bits - 1 else x


def unsigned(x: int, bits: int) -> int:
    return x & (1 << bits) - 1


def quotient(x: int, y: int) -> int:
    return -(-x // y) if (x < 0) != (y < 0) and y else x // y if y else -1


def field(x: int, position: int, length: int, bits: int, sign: bool) -> int:
    """As NVIDIA's document says of `bfe`, bit by bit."""
    raw, position, length = unsigned(x, bits), position & 255, length & 255
    last = raw >> min(position + length - 1, bits - 1) & 1 if sign and length else 0
    return sum((raw >> position + n & 1 if n < length and position + n < bits else last) << n for n in range(bits))


def inserted(a: int, b: int, position: int, length: int, bits: int) -> int:
    for n in range(length & 255):
        if (position & 255) + n < bits:
            at = (position & 255) + n
            b = b & ~(1 << at) | (a >> n & 1) << at
    return b


def permuted(a: int, b: int, selector: int) -> int:
    data, out = a.to_bytes(4, "little") + b.to_bytes(4, "little"), 0
    for n in range(4):
        choice = selector >> 4 * n & 15
        byte = data[choice & 7]
        out |= (255 if byte & 128 else 0 if choice & 8 else byte) << 8 * n if choice & 8 else byte << 8 * n
    return out


def funnel(a: int, b: int, count: int, left: bool, wrap: bool) -> int:
    count, both = count & 31 if wrap else min(count, 32), b << 32 | a
    return unsigned(both << count >> 32 if left else both >> count, 32)


INTEGERS: dict[str, Callable[..., int]] = {
    "mul.hi.s32": lambda x, y: x * y >> 32, "mul.hi.u64": lambda x, y: x * y >> 64,
    "mul.hi.s64": lambda x, y: x * y >> 64, "mul.wide.s32": lambda x, y: x * y, "mul.wide.u16": lambda x, y: x * y,
    "mad.lo.s64": lambda x, y, z: x * y + z, "mad.hi.u32": lambda x, y, z: (x * y >> 32) + z,
    "mad.wide.s32": lambda x, y, z: x * y + z,
    "div.s32": quotient, "div.u64": lambda x, y: x // y if y else -1, "div.s16": quotient,
    "rem.s64": lambda x, y: x - quotient(x, y) * y if y else x, "rem.u16": lambda x, y: x % y if y else x,
    "min.s16": min, "max.u32": max, "abs.s32": abs, "neg.s64": lambda x: -x,
    "shl.b32": lambda x, n: x << min(n, 32), "shl.b64": lambda x, n: x << min(n, 64),
    "shr.u32": lambda x, n: x >> min(n, 32), "shr.s64": lambda x, n: x >> min(n, 64),
    "shr.s16": lambda x, n: x >> min(n, 16),
    "bfe.u32": lambda x, p, n: field(x, p, n, 32, False), "bfe.s32": lambda x, p, n: field(x, p, n, 32, True),
    "bfe.u64": lambda x, p, n: field(x, p, n, 64, False), "bfe.s64": lambda x, p, n: field(x, p, n, 64, True),
    "bfi.b32": lambda a, b, p, n: inserted(a, b, p, n, 32), "bfi.b64": lambda a, b, p, n: inserted(a, b, p, n, 64),
    "prmt.b32": permuted, "popc.b64": lambda x: x.bit_count(), "popc.b32": lambda x: x.bit_count(),
    "clz.b32": lambda x: 32 - x.bit_length(), "clz.b64": lambda x: 64 - x.bit_length(),
    "brev.b32": lambda x: int(f"{x:032b}"[::-1], 2), "brev.b64": lambda x: int(f"{x:064b}"[::-1], 2),
    "shf.l.wrap.b32": lambda a, b, n: funnel(a, b, n, True, True),
    "shf.r.wrap.b32": lambda a, b, n: funnel(a, b, n, False, True),
    "shf.l.clamp.b32": lambda a, b, n: funnel(a, b, n, True, False),
    "shf.r.clamp.b32": lambda a, b, n: funnel(a, b, n, False, False),
    "not.b16": lambda x: ~x, "cnot.b32": lambda x: int(x == 0), "xor.b64": lambda x, y: x ^ y,
    "dp4a.s32.u32": lambda a, b, c: c + sum(signed(a >> n, 8) * (b >> n & 255) for n in (0, 8, 16, 24)),
    "setp.lo.u16": lambda x, y: int(x < y), "setp.ge.s64": lambda x, y: int(x >= y),
    "cvt.s8.s32": lambda x: signed(x, 8), "cvt.u64.u32": lambda x: x, "cvt.s64.s16": lambda x: x,
    "cvt.sat.u8.s32": lambda x: min(max(x, 0), 255), "cvt.sat.s16.u64": lambda x: min(x, 32767),
}
SMALL = {"bfe": (1, 2), "bfi": (2, 3), "shl": (1,), "shr": (1,), "shf": (2,)}  # operands that are counts


def integers(dtype: np.dtype, count: int, rng: np.random.Generator) -> np.ndarray:
    """The ends of a type, small ones, and random ones of all sizes, in some order."""
    info = np.iinfo(dtype)
    ends = [info.min, info.max, 0, 1, 2, 3, info.max - 1, info.min + 1, *([-1, -2, -3] if info.min else [])]
    shifts = rng.integers(0, info.bits - 1, count).astype(dtype)
    drawn = rng.integers(info.min, info.max, count, dtype, endpoint=True) >> shifts
    return rng.permutation(np.concatenate([np.array(ends, dtype), drawn]))[:count]


@pytest.mark.parametrize("opcode", INTEGERS)
def test_integers(opcode: str) -> None:
    found, rng = rule(opcode), np.random.default_rng(len(opcode))
    assert found is not None
    operands = [integers(DTYPES[kind], 200, rng) for kind in found.sources]
    for n in SMALL.get(opcode.split(".")[0], ()):
        operands[n] = rng.integers(0, 70, 200).astype(operands[n].dtype)
    result = found.function(*operands).view(DTYPES[found.result])
    bits = 8 * DTYPES[found.result].itemsize
    for got, *given in zip(result.tolist(), *(o.tolist() for o in operands), strict=True):
        wanted = INTEGERS[opcode](*given)
        assert unsigned(int(got), bits) == unsigned(wanted, bits), (opcode, given)


def floats(kind: str, count: int, rng: np.random.Generator, spread: int) -> np.ndarray:
    """Random floats as bits of the type, near and far from each other."""
    values = rng.uniform(-1, 1, size=count) * 2.0 ** rng.integers(-spread, spread, count)
    dtype = np.dtype("bfloat16") if kind == "bf16" else DTYPES[kind]
    return values.astype(dtype).view(DTYPES[kind])


def exactly(x: np.ndarray, kind: str) -> list[float]:
    return x.view("bfloat16" if kind == "bf16" else x.dtype).astype(np.float64).tolist()


def nearest(value: Fraction, kind: str) -> float:
    """The float of a type that is nearest, ties to even."""
    digits, least = {"f16": (11, -24), "bf16": (8, -133), "f32": (24, -149), "f64": (53, -1074)}[kind]
    if not value:
        return 0.0
    exponent = max(abs(value).numerator.bit_length() - value.denominator.bit_length() - digits - 1, least)
    while abs(value) / Fraction(2) ** exponent >= 2**digits:
        exponent += 1
    return float(round(value / Fraction(2) ** exponent) * Fraction(2) ** exponent)


@pytest.mark.parametrize("kind,spread", [("f16", 4), ("f16", 12), ("bf16", 10), ("f32", 20), ("f32", 70), ("f64", 60)])
def test_fused_multiply_add(kind: str, spread: int) -> None:
    """Rounded once, in sums that nearly vanish, too."""
    rng, found = np.random.default_rng(spread), rule(f"fma.rn.{kind}")
    assert found is not None
    a, b, c = (floats(kind, 400, rng, spread) for _ in range(3))
    negative = rule(f"neg.{kind}")
    assert negative is not None
    with np.errstate(all="ignore"):
        product = found.function(a, b, np.zeros_like(a))
        c[:200] = negative.function(product.view(f"u{c.dtype.itemsize}")).view(c.dtype)[:200]
        result = exactly(found.function(a, b, c), kind)
    for got, x, y, z in zip(result, exactly(a, kind), exactly(b, kind), exactly(c, kind), strict=True):
        if np.isfinite([got, x, y, z]).all():
            assert got == nearest(Fraction(x) * Fraction(y) + Fraction(z), kind), (kind, x, y, z)


def directed(value: Fraction, kind: str, rounding: str) -> float:
    """A float of a type, rounded as `rounding` says."""
    near, bits = nearest(value, kind), DTYPES[kind]
    exact = Fraction(near)
    down = rounding == "rm" or (rounding == "rz" and value > 0)
    up = rounding == "rp" or (rounding == "rz" and value < 0)
    if (down and exact > value) or (up and exact < value):
        return float(np.nextafter(bits.type(near), bits.type(-np.inf if down else np.inf)))
    return near


@pytest.mark.parametrize("rounding", ["rn", "rz", "rm", "rp"])
def test_conversion_to_floats(rounding: str) -> None:
    rng = np.random.default_rng(1)
    for source, result in (("s64", "f32"), ("u64", "f64"), ("s32", "f32"), ("f64", "f32"), ("f32", "f16"),
                           ("f64", "f16"), ("s32", "f16"), ("s64", "f16")):
        found = rule(f"cvt.{rounding}.{result}.{source}")
        assert found is not None
        x = floats(source, 300, rng, 9) if "f" in source else integers(DTYPES[source], 300, rng)
        if result == "f16":
            x = np.clip(x, -30000 if source[0] != "u" else 0, 30000).astype(x.dtype)
        for got, value in zip(found.function(x).tolist(), x.tolist(), strict=True):
            assert got == directed(Fraction(value), result, rounding), (source, result, value)


@pytest.mark.parametrize("rounding,whole", [("rni", round), ("rzi", int), ("rmi", lambda x: x.__floor__()),
                                            ("rpi", lambda x: x.__ceil__())])
def test_conversion_to_integers(rounding: str, whole: Callable[[float], int]) -> None:
    values = [0.5, -0.5, 1.5, 2.5, -2.5, 0.0, -0.0, 3e4, -3e4, 1e19, -1e19, np.inf, -np.inf, 254.5, 1.75, -1.75]
    for source, result in (("f32", "s32"), ("f64", "u64"), ("f16", "s16"), ("f64", "s64"), ("f32", "u8"),
                           ("f64", "s8")):
        found, info = rule(f"cvt.{rounding}.{result}.{source}"), np.iinfo(DTYPES[result])
        assert found is not None
        with np.errstate(all="ignore"):
            x = np.array(values).astype(DTYPES[source])
            got = found.function(x).tolist()
        for value, integer in zip(x.tolist(), got, strict=True):
            ends = {np.inf: info.max, -np.inf: info.min}
            wanted = ends[value] if value in ends else min(max(whole(value), info.min), info.max)
            assert integer == wanted, (source, result, value)
        nan = int(found.function(np.array([np.nan], DTYPES[source]))[0])
        assert unsigned(nan, info.bits) == (1 << info.bits - 1 if source == "f64" or info.bits == 64 else 0)


def test_signs_and_extremes() -> None:
    nan, a = np.nan, np.array([-0.0, 0.0, np.nan, 1.0, np.nan], np.float32)
    b = np.array([0.0, -0.0, 1.0, np.nan, np.nan], np.float32)

    def run(opcode: str, *args: np.ndarray) -> list[str]:
        found = rule(opcode)
        assert found is not None
        given = [x.view(DTYPES[kind]) for x, kind in zip(args, found.sources, strict=True)]
        return [str(v) for v in found.function(*given).view(np.float32).tolist()]

    assert run("min.f32", a, b) == ["-0.0", "-0.0", "1.0", "1.0", "nan"]
    assert run("max.f32", a, b) == ["0.0", "0.0", "1.0", "1.0", "nan"]
    assert run("min.NaN.f32", a, b) == ["-0.0", "-0.0", "nan", "nan", "nan"]
    assert run("neg.f32", a[:2]) == ["0.0", "-0.0"] and run("abs.f32", a[:2]) == ["0.0", "0.0"]
    assert run("copysign.f32", np.array([-0.0, 2.0], np.float32), np.array([3.0, -3.0], np.float32)) == ["-3.0", "3.0"]
    assert run("cvt.sat.f32.f32", np.array([nan, 2.0, -1.0, 0.25], np.float32)) == ["0.0", "1.0", "0.0", "0.25"]


def test_comparisons_of_floats() -> None:
    a, b = np.array([1.0, 2.0, 1.0, np.nan], np.float32), np.array([1.0, 1.0, 2.0, 1.0], np.float32)
    table = {"eq": "1000", "ne": "0110", "lt": "0010", "le": "1010", "gt": "0100", "ge": "1100", "equ": "1001",
             "neu": "0111", "ltu": "0011", "leu": "1011", "gtu": "0101", "geu": "1101", "num": "1110", "nan": "0001"}
    for what, wanted in table.items():
        found = rule(f"setp.{what}.f32")
        assert found is not None
        assert "".join(str(int(v)) for v in found.function(a, b)) == wanted, what


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_sums_of_two_types(kind: str) -> None:
    rng = np.random.default_rng(5)
    a, b, c = floats(kind, 200, rng, 5), floats(kind, 200, rng, 5), floats("f32", 200, rng, 5)
    rows = list(zip(exactly(a, kind), exactly(b, kind), exactly(c, "f32"), strict=True))
    for opcode, operands, wanted in ((f"sub.rn.f32.{kind}", (a, c), [Fraction(x) - Fraction(z) for x, _, z in rows]),
                                     (f"fma.rn.f32.{kind}", (a, b, c), [Fraction(x) * Fraction(y) + Fraction(z)
                                                                        for x, y, z in rows])):
        found = rule(opcode)
        assert found is not None
        assert found.function(*operands).tolist() == [nearest(value, "f32") for value in wanted]


@pytest.mark.parametrize("opcode", ["add.f32", "mul.ftz.f32", "ex2.approx.f32", "fma.rn.ftz.f32", "div.full.f32",
                                    "add.rz.f32", "sqrt.approx.f32", "tanh.approx.f32", "fma.rn.sat.f32"])
def test_what_is_loose_is_unknown(opcode: str) -> None:
    assert rule(opcode) is None
