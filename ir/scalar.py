"""Scalar bodies: what an op does to one element, as SSA.

A body is a Python function of a builder `s` and scalar values: `lambda s, x, y: s.add(x, y)`. Running
it records typed SSA instructions. Handlers turn them into numba source (`codegen/numba_source.py`),
LLVM IR, and NumPy expressions (`ir/reference.py`).

Instructions and their arithmetic are `ir/instructions.py`'s. Mathematical functions (`s.exp`, `s.log`,
...) are bodies too and live in `ir/scalar_math.py`; loops and memory are `codegen/loop.py`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from .data_class import data_class
from .dtypes import DType
from .instructions import INSTRUCTIONS, Instr, InstructionBuilder, Scalar
from .types import Attrs

__all__ = ["INSTRUCTIONS", "Scalar", "Instr", "ScalarBuilder", "ScalarBody", "ScalarFunction", "Reduction", "build"]

# (builder, *scalars, **attributes) -> a result, or several
ScalarBody: TypeAlias = Callable[..., "Scalar | Sequence[Scalar]"]


@data_class()
class ScalarFunction:
    """A recorded body: parameters, instructions in order, results, and checks that must hold.

    `checks` are `(condition, code)`: where a condition is false for some element, the kernel reports
    `code` (see `ScalarBuilder.check`) and the op raises.
    """

    name: str
    params: tuple[Scalar, ...]
    instrs: list[Instr]
    results: tuple[Scalar, ...]
    checks: list[tuple[Scalar, str]]

    def __str__(self) -> str:
        names = {p.id: f"%{n}" for p, n in zip(self.params, _param_names(len(self.params)), strict=True)}
        head = ", ".join(f"{names[p.id]}: {p.dtype.short}" for p in self.params)
        outs = ", ".join(r.dtype.short for r in self.results)
        lines = [f"scalar {self.name}({head}) -> {outs} {{"]
        for i in self.instrs:
            if i.op == "const":
                names[i.out.id] = f"{i.const!r}"
                continue
            names[i.out.id] = f"%{len(lines) - 1}"
            args = ", ".join(names[a.id] for a in i.args)
            lines.append(f"  {names[i.out.id]} = {i.op} {args} : {i.out.dtype.short}")
        lines += [f"  check {names[c.id]} {code!r}" for c, code in self.checks]
        lines.append(f"  return {', '.join(names[r.id] for r in self.results)}")
        return "\n".join([*lines, "}"])


def _param_names(n: int) -> list[str]:
    return ["x", "y", "z", "w"][:n] if n <= 4 else [f"p{i}" for i in range(n)]


class ScalarBuilder(InstructionBuilder):
    """Records the instructions of a scalar body, which may call mathematical functions."""

    def __getattr__(self, name: str) -> Callable[..., Scalar]:
        """`s.exp(x)` and its like: the bodies of `ir/scalar_math.py`, inlined."""
        from . import scalar_math
        body = scalar_math.function(name)
        if body is None:
            raise AttributeError(f"scalar builder has no instruction or function {name!r}")
        return lambda *args, **kw: body(self, *args, **kw)


def build(body: ScalarBody, dtypes: tuple[DType, ...], attrs: Attrs | None = None,
          name: str = "body") -> ScalarFunction:
    """Record `body` for operands of `dtypes`.

    Args:
        body: `body(s, *values, **attrs)`, returning a Scalar or a tuple of them.
        dtypes: one DType per operand; 16-bit floats become float32 values.
        attrs: the op's attributes, passed on by keyword.
        name: how text and errors call it.
    Returns:
        The recorded ScalarFunction.
    """
    s = ScalarBuilder()
    params = tuple(s.new(d.compute) for d in dtypes)
    out = body(s, *params, **(attrs or {}))
    return ScalarFunction(name, params, s.instrs, _tuple(out), s.checks)


@data_class(frozen=True, eq=False)
class Reduction:
    """The part of a reduction that concerns each element, apart from where elements lie and in which order they come.

    The order is one for every layout and number of threads: the reduced elements, row-major, are split in chunks of
    4096; in a chunk element i joins lane i mod 32; lanes meet by halving, chunks by a balanced tree. So `combine` must
    be associative and commutative up to rounding, and combining with `identity` must give the other side exactly.

    Attributes:
        combine: `combine(s, a, b)` for two tuples of accumulator values; gives such a tuple, or one Scalar.
        identity: `identity(dtypes)` for the operands' dtypes: the accumulators' start values, Python numbers.
        pre: `pre(s, *xs, **attrs)`, the accumulators of one element; by default its value in the accumulator's type.
        post: `post(s, acc, count, **attrs)` from the accumulators and the number of elements (int64) to the result or
            a tuple of them, converted to the result's dtype; by default the first accumulator.
        acc: `acc(dtypes)`, the accumulators' dtypes; by default one, of the first operand's compute type.
        indexed: whether `pre` also takes the element's number (int64, row-major over the reduced axes), after `xs`.
    """

    combine: Callable[[ScalarBuilder, tuple[Scalar, ...], tuple[Scalar, ...]], Scalar | Sequence[Scalar]]
    identity: Callable[[tuple[DType, ...]], tuple[complex, ...]]
    pre: ScalarBody | None = None
    post: ScalarBody | None = None
    acc: Callable[[tuple[DType, ...]], tuple[DType, ...]] | None = None
    indexed: bool = False

    def acc_dtypes(self, dtypes: tuple[DType, ...]) -> tuple[DType, ...]:
        """The accumulators' dtypes for operands of `dtypes`."""
        acc_dtypes = (dtypes[0],) if self.acc is None else self.acc(dtypes)
        return tuple(d.compute for d in acc_dtypes)

    def start(self, s: ScalarBuilder, dtypes: tuple[DType, ...]) -> tuple[Scalar, ...]:
        """The accumulators before the first element."""
        values = self.identity(dtypes)
        return tuple(s.const(v, d) for v, d in zip(values, self.acc_dtypes(dtypes), strict=True))

    def element(self, s: ScalarBuilder, dtypes: tuple[DType, ...], xs: tuple[Scalar, ...], index: Scalar,
                attrs: Attrs) -> tuple[Scalar, ...]:
        """The accumulators of one element alone."""
        if self.pre is None:
            return (s.cast(xs[0], self.acc_dtypes(dtypes)[0]),)
        return _tuple(self.pre(s, *xs, index, **attrs) if self.indexed else self.pre(s, *xs, **attrs))

    def join(self, s: ScalarBuilder, a: tuple[Scalar, ...], b: tuple[Scalar, ...]) -> tuple[Scalar, ...]:
        """The accumulators of two sets of elements together."""
        return _tuple(self.combine(s, a, b))

    def result(self, s: ScalarBuilder, acc: tuple[Scalar, ...], count: Scalar, attrs: Attrs) -> tuple[Scalar, ...]:
        """The results, from the accumulators of all elements."""
        return acc[:1] if self.post is None else _tuple(self.post(s, acc, count, **attrs))


def _tuple(values: Scalar | Sequence[Scalar]) -> tuple[Scalar, ...]:
    return (values,) if isinstance(values, Scalar) else tuple(values)
