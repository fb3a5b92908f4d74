"""How the results of an op are judged: by ulps, by bits, by its own shape rule, and by finite differences.

Every function takes a `Case` and raises AssertionError. `test_ops.py` calls them for the whole table,
`test_harness.py` shows that each of them catches what it is there for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import ml_dtypes
import numpy as np
from ops.case import Case, combinations, tensors

import twofold as tf
from twofold.eager import record
from twofold.eager.tensor import Tensor
from twofold.ir import dtypes as dt
from twofold.ir.dims import Dim
from twofold.ir.dtypes import DType
from twofold.ir.op import REGISTRY, Op
from twofold.runtime import kernels

RANKS = ((), (5,), (2, 3), (2, 1, 3), (2, 1, 2, 2))
EMPTY = ((0,), (2, 0, 3))
STEP = 2e-4  # with four points: errors of step**4 * f''''' / 30 and of 1e-16 / step
CLOSE = 1e-7
T = TypeVar("T")
EVERY_ELEMENT = 40  # with more elements than this, random directions stand for them
DIRECTIONS = 8


class Watcher:
    """A recorder that compares every op's results with its shape rule, and remembers which ops ran, in how many calls.
    """

    def __init__(self) -> None:
        self.seen: set[str] = set()
        self.calls = 0
        self.wrong: list[str] = []

    def __enter__(self) -> Watcher:
        record.push(self)
        return self

    def __exit__(self, *exc: Any) -> None:
        record.pop(self)
        if exc[0] is None:
            assert not self.wrong, "\n".join(self.wrong)

    def _record(self, op: Op, attrs: dict[str, Any], inputs: tuple[Any, ...], outputs: tuple[Any, ...]) -> None:
        self.seen.add(op.name)
        self.calls += 1
        inferred = op.infer(op, *inputs, **{**op.defaults, **attrs})
        wanted = inferred if isinstance(inferred, tuple) else (inferred,)
        ruled = [(tuple(w.dims), w.dtype.name) for w in wanted]
        ruled = [(tuple(o.dims[i] if isinstance(d, Dim) and i < o.ndim else d for i, d in enumerate(dims)), name)
                 for (dims, name), o in zip(ruled, outputs, strict=True)]  # a size that depends on values is open
        given = [(o._array.shape, o.dtype.name) for o in outputs]
        if ruled != given:
            self.wrong.append(f"{op.name}: its shape rule says {ruled}, its kernel gave {given}")

    def _record_further(self, vjp: Any, inputs: tuple[Any, ...], outputs: tuple[Any, ...], first: int) -> None:
        """Nothing, either."""

    def _record_custom(self, vjp: Any, inputs: tuple[Any, ...], outputs: tuple[Any, ...],
                      continues: bool = False) -> None:
        """Functions with gradients of their own are made of ops that were seen."""

    def _follows(self, tensor: Any) -> bool:
        """Everything is looked at."""
        return True

    def _variable_read(self, variable: Any, value: Any) -> None:
        """Nothing to compare."""


# -- values -----------------------------------------------------------------------------------------
def values(case: Case, dtype: DType, shapes: Sequence[Any], salt: Any = 0) -> Watcher:
    """Random operands of `shapes` give what the oracle gives, and every op that runs keeps to its shape rule."""
    given = tensors(case.arrays(dtype, shapes, salt=salt))
    with Watcher() as watcher:
        results = case.call(*given)
    if case.oracle is None:
        return watcher
    wanted = case.expected(given)
    assert len(results) == len(wanted), f"{len(results)} results; the oracle has {len(wanted)}"
    for result, want in zip(results, wanted, strict=True):
        result_dtype(case, dtype, result, want)
        same_values(result, want, case.allowed(result.dtype), case.atol)
    return watcher


def in_better_code(test: Callable[[], T]) -> T:
    """What `test` returns, which runs twice: the second time in code of the second tier, of the kernels that it asked
    for first."""
    before = len(kernels._compiled)
    test()
    for compiled in list(kernels._compiled.values())[before:]:
        compiled.settle()
    return test()


def result_dtype(case: Case, dtype: DType, result: Tensor, want: np.ndarray) -> None:
    """The result has the dtype that the case says, or that follows from the oracle's kind."""
    if case.result is not None:
        wanted = case.result if isinstance(case.result, DType) else case.result(dtype)
    elif want.dtype.kind == "b":
        wanted = dt.bool_
    elif want.dtype.kind == "f" and dtype.is_differentiable:
        wanted = dtype.real_dtype
    elif want.dtype.kind == "c" and dtype.is_complex:
        wanted = dtype
    else:
        return
    assert result.dtype is wanted, f"the result is {result.dtype.name}; expected {wanted.name}"


def rounded(want: np.ndarray, dtype: DType) -> np.ndarray:
    """`want` in `dtype`, rounded as results are: 16-bit floats by way of float32."""
    with np.errstate(all="ignore"):
        return want.astype(dtype.compute.np).astype(dtype.np)


def same_values(result: Tensor, want: np.ndarray, ulps: float, atol: float = 0, zeros: bool = False) -> None:
    """`result` is `want` rounded to its dtype, up to `ulps` or `atol` epsilons.

    Args:
        result: what came out.
        want: what should have, in a wider dtype.
        ulps: distance allowed, in units in the last place of the rounded value.
        atol: distance allowed besides, in epsilons of the result's dtype.
        zeros: whether the signs of zeros count.
    """
    dtype, got = result.dtype, result._array
    assert got.shape == want.shape, f"the result has shape {got.shape}; expected {want.shape}"
    if not dtype.is_differentiable:
        if dtype.is_integer:
            want = want.astype(dtype.np)
        wrong = got != want
        assert not wrong.any(), _report(got, want, wrong)
        return
    want = rounded(want, dtype)
    wide = np.complex128 if dtype.is_complex else np.float64
    have, goal = got.astype(wide), want.astype(wide)
    nan = np.isnan(have), np.isnan(goal)
    finite = np.isfinite(have) & np.isfinite(goal)
    with np.errstate(all="ignore"):
        error = np.where(finite, np.abs(have - goal), 0.0)
        unit = spacing(np.where(finite, np.abs(goal), 0.0), dtype.real_dtype)
    near = error <= np.maximum(ulps * unit, atol * float(ml_dtypes.finfo(dtype.real_dtype.np).eps))
    right = np.where(finite, near, (have == goal) | (nan[0] & nan[1]))
    if zeros:
        right &= (goal != 0) | (np.signbit(have.real) == np.signbit(goal.real))
    assert right.all(), _report(got, want, ~right, error / unit)


def spacing(size: np.ndarray, dtype: DType) -> np.ndarray:
    """The unit in the last place of `dtype` at `size`, in float64."""
    info = ml_dtypes.finfo(dtype.np)
    least = float(info.smallest_normal)
    _, exponent = np.frexp(np.maximum(size, least))
    return np.ldexp(float(info.eps), exponent - 1)


def _report(got: np.ndarray, want: np.ndarray, wrong: np.ndarray, ulps: np.ndarray | None = None) -> str:
    where = np.argwhere(wrong)
    lines = [f"{len(where)} of {got.size} values are wrong"]
    for index in map(tuple, where[:5]):
        off = "" if ulps is None else f", {np.asarray(ulps)[index]:.3g} ulps off"
        lines.append(f"  at {list(map(int, index))}: {got[index]!r}, expected {want[index]!r}{off}")
    return "\n".join(lines)


def same_bits(one: Tensor, other: Tensor) -> None:
    """The same dtype, shape and bits; one NaN is as good as another."""
    a, b = one._array, other._array
    assert (a.dtype, a.shape) == (b.dtype, b.shape), f"{a.dtype}{a.shape} and {b.dtype}{b.shape}"
    if one.dtype.is_differentiable:
        parts = [(a.real, b.real), (a.imag, b.imag)] if one.dtype.is_complex else [(a, b)]
        equal = np.ones(a.shape, bool)
        for x, y in parts:
            equal &= (np.isnan(x) & np.isnan(y)) | ((x == y) & (np.signbit(x) == np.signbit(y)))
    else:
        equal = a == b
    assert equal.all(), _report(a, b, ~equal)


# -- special values ---------------------------------------------------------------------------------
def specials(case: Case, dtype: DType) -> None:
    """Special values come out as the oracle has them: NaN, infinities, and the signs of zeros for elementwise ops."""
    count = len(case.shapes[0])
    dtypes = case.operand_dtypes(dtype, count)
    chosen = case.special_ops if case.special_ops is not None else [i for i in range(count) if dtypes[i] is dtype]
    if is_elementwise(case):
        vectors = combinations(case.special, len(chosen), dtype)
        rest = case.arrays(dtype, [vectors[0].shape] * count, salt="special")
        for i, vector in zip(chosen, vectors, strict=True):
            rest[i] = vector
        _compare_special(case, rest, case.zeros)
        return
    rng = case.rng("places")
    for value in case.special:
        arrays = case.arrays(dtype, case.shapes[0], salt="special")
        for i in chosen:
            if arrays[i].size:
                arrays[i].reshape(-1)[rng.integers(arrays[i].size)] = value
        _compare_special(case, arrays, False)


def _compare_special(case: Case, arrays: list[np.ndarray], zeros: bool) -> None:
    given = tensors(arrays)
    for result, want in zip(case.call(*given), case.expected(given), strict=True):
        real = result.dtype.is_floating
        same_values(result, want, case.allowed(result.dtype), case.atol, zeros=zeros and real)


# -- layouts ----------------------------------------------------------------------------------------
def layouts(case: Case) -> None:
    """Transposed, strided, reversed and broadcast operands give the bits that contiguous ones give."""
    shapes = case.shapes[0]
    arrays = case.arrays(case.main, shapes, salt="layout")
    _same_for(case, arrays, [arranged(a) for a in arrays])
    spread = [np.broadcast_to(a[:1], a.shape) if a.ndim and a.size else a for a in arrays]
    _same_for(case, [np.array(a, order="C") for a in spread], [{"broadcast": a} for a in spread])
    if is_elementwise(case):
        deep = case.arrays(case.main, [(2, 3, 1, 4)] * len(shapes), salt="layout4")
        turned = [np.ascontiguousarray(a.transpose(2, 0, 3, 1)).transpose(1, 3, 0, 2) for a in deep]
        _same_for(case, deep, [{"permuted": a} for a in turned])


def arranged(array: np.ndarray) -> dict[str, np.ndarray]:
    """The same values in other places of memory, by the name of the layout."""
    layouts = {}
    if array.ndim >= 2:
        layouts["transposed"] = np.ascontiguousarray(array.T).T
    if array.ndim and array.size:
        spread = np.empty((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
        spread[..., 1::2] = spread[..., ::2] = array
        layouts["strided"] = spread[..., ::2]
        layouts["reversed"] = np.ascontiguousarray(array[::-1])[::-1]
    return layouts


def _same_for(case: Case, plain: list[np.ndarray], others: list[dict[str, np.ndarray]]) -> None:
    want = outcome(case, plain)
    for name in sorted({name for o in others for name in o}):
        got = outcome(case, [o.get(name, p) for o, p in zip(others, plain, strict=True)])
        if isinstance(want, type) or isinstance(got, type):
            assert want is got, f"{name}: {got}; contiguous: {want}"
            continue
        for one, other in zip(got, want, strict=True):
            try:
                same_bits(one, other)
            except AssertionError as e:
                raise AssertionError(f"{name} differs from contiguous: {e}") from None


def outcome(case: Case, arrays: list[np.ndarray]) -> list[Tensor] | type[BaseException]:
    """The results, or the class of the error where the op rejects these values."""
    try:
        return case.call(*tensors(arrays))
    except (tf.errors.OpError, ValueError) as e:
        return type(e)


def ranks(case: Case) -> None:
    """Elementwise: scalars, vectors and so on to rank 4, and empty operands, agree with the oracle."""
    for shape in (*RANKS, *EMPTY):
        try:
            values(case, case.main, [shape] * len(case.shapes[0]), salt=shape)
        except AssertionError as e:
            raise AssertionError(f"shape {shape}: {e}") from None


def is_elementwise(case: Case) -> bool:
    """Whether the operands of `case` may have any shape."""
    if case.elementwise is not None:
        return case.elementwise
    return bool(case.shapes[0]) and all(name in REGISTRY and REGISTRY[name].body is not None for name in case.ops)


# -- gradients --------------------------------------------------------------------------------------
def gradient(case: Case, dtype: DType, shapes: Sequence[Any]) -> None:
    """First derivatives of every differentiable operand agree with finite differences; the others have none."""
    arrays = case.arrays(dtype, shapes, case.grad_domain, salt="grad")
    dtypes = [dt.from_numpy(a.dtype) for a in arrays]
    chosen = case.differentiable(dtypes)
    everything = [i for i, d in enumerate(dtypes) if d.is_differentiable]
    weights = _weights(case, arrays)
    gradients = dict(zip(everything, _pull(case, arrays, weights, everything), strict=True))
    for i in everything:
        if i not in chosen:
            g = gradients[i]
            assert g is None or not np.asarray(g).any(), f"operand {i} is not marked differentiable, but has a gradient"
    slope = {i: np.zeros(arrays[i].shape, arrays[i].dtype) if gradients[i] is None else gradients[i]._array
             for i in chosen}
    _compare(case, arrays, slope, lambda moved: _dot(case.call(*tensors(moved)), weights), "gradient", EVERY_ELEMENT)


def second(case: Case, dtype: DType) -> None:
    """Second derivatives, by the operands and by the cotangent, agree with finite differences of the first."""
    arrays = case.arrays(dtype, case.shapes[0], case.grad_domain, salt="second")
    chosen = case.differentiable([dt.from_numpy(a.dtype) for a in arrays])
    weights = _weights(case, arrays)
    rng = case.rng("vectors")
    vectors = [_random_like(rng, arrays[i]) for i in chosen]
    count = len(arrays)

    def pulled(given: list[np.ndarray]) -> float:
        return _dot(_pull(case, given[:count], given[count:], chosen), vectors)

    inputs = tensors([*arrays, *weights])
    wanted = [*chosen, *range(count, len(inputs))]
    with tf.GradientTape() as outer:
        outer.watch([inputs[i] for i in wanted])
        firsts = _tape(case, inputs[:count], inputs[count:], chosen)
        pairs = [(g, v) for g, v in zip(firsts, vectors, strict=True) if g is not None]
    gradients = outer.gradient([g for g, _ in pairs], [inputs[i] for i in wanted],
                           output_gradients=tensors([v for _, v in pairs])) if pairs else [None] * len(wanted)
    whole = [*arrays, *weights]
    slope = {i: np.zeros_like(whole[i]) if g is None else g._array for i, g in zip(wanted, gradients, strict=True)}
    _compare(case, whole, slope, pulled, "second derivative", 0)


def gradient_exists(case: Case, dtype: DType) -> None:
    """Gradients in `dtype` are finite and have their operand's dtype and shape."""
    arrays = case.arrays(dtype, case.shapes[0], case.grad_domain, salt="grad")
    chosen = case.differentiable([dt.from_numpy(a.dtype) for a in arrays])
    for i, g in zip(chosen, _pull(case, arrays, _weights(case, arrays), chosen), strict=True):
        assert g is not None, f"operand {i} has no gradient in {dtype.name}"
        assert (g._array.dtype, g._array.shape) == (arrays[i].dtype, arrays[i].shape), \
            f"operand {i} is {arrays[i].dtype}{arrays[i].shape}; its gradient {g._array.dtype}{g._array.shape}"
        assert np.isfinite(g._array).all(), f"operand {i}: the gradient is {g._array}"


def _tape(case: Case, inputs: list[Tensor], weights: list[Tensor], chosen: Sequence[int]) -> list[Tensor | None]:
    with tf.GradientTape() as tape:
        tape.watch([inputs[i] for i in chosen])
        results = [r for r in case.call(*inputs) if r.dtype.is_differentiable]
    return tape.gradient(results, [inputs[i] for i in chosen], output_gradients=weights)


def _pull(case: Case, arrays: Sequence[np.ndarray], weights: Sequence[np.ndarray],
          chosen: Sequence[int]) -> list[Tensor | None]:
    return _tape(case, tensors(arrays), tensors(weights), chosen)


def _weights(case: Case, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """A random cotangent for every differentiable result."""
    rng = case.rng("weights")
    results = case.call(*tensors(arrays))
    seeds = [_random_like(rng, r._array) for r in results if r.dtype.is_differentiable]
    assert seeds, "no result is differentiable: say grad=False"
    return seeds


def _random_like(rng: np.random.Generator, array: np.ndarray) -> np.ndarray:
    direction = rng.uniform(-1, 1, array.shape)
    if array.dtype.kind == "c":
        direction = direction + 1j * rng.uniform(-1, 1, array.shape)
    return np.asarray(direction).astype(array.dtype)


def _dot(results: Sequence[Tensor | None], weights: Sequence[np.ndarray]) -> float:
    """The real part of sum(conj(weight) * result): what the gradients are gradients of."""
    parts = [r for r in results if r is None or r.dtype.is_differentiable]
    return float(sum(np.sum(np.conj(w) * r._array).real for r, w in zip(parts, weights, strict=True) if r is not None))


def _compare(case: Case, arrays: list[np.ndarray], slope: dict[int, np.ndarray], f: Callable[[list[np.ndarray]], float],
             what: str, every: int) -> None:
    rng = case.rng("directions")
    for i, derivative in slope.items():
        for direction in _directions(rng, arrays[i], every):
            got = float(np.sum(np.conj(derivative) * direction).real)
            want, size = _difference(f, arrays, i, direction)
            where = np.flatnonzero(direction)
            place = f"element {int(where[0])}" if len(where) == 1 else "a random direction"
            assert abs(got - want) <= CLOSE * max(1.0, abs(want), size), \
                f"{what} by operand {i}, {place}: {got!r}; finite differences give {want!r}"


def _directions(rng: np.random.Generator, array: np.ndarray, every: int) -> Iterator[np.ndarray]:
    """Every element, and every part of it; random ones where they are too many."""
    parts = (1, 1j) if array.dtype.kind == "c" else (1,)
    if array.size <= every:
        for index in np.ndindex(array.shape):
            for part in parts:
                direction = np.zeros(array.shape, array.dtype)
                direction[index] = part
                yield direction
        return
    for _ in range(DIRECTIONS if every else DIRECTIONS // 2):
        sign = rng.choice([-1.0, 1.0], array.shape)
        yield np.asarray(sign if len(parts) == 1 else sign * rng.choice([1, 1j], array.shape)).astype(array.dtype)


def _difference(f: Callable[[list[np.ndarray]], float], arrays: list[np.ndarray], i: int,
                direction: np.ndarray) -> tuple[float, float]:
    """The derivative of `f` along `direction` at operand `i` from four points, and the size of the values used."""
    at = [f([*arrays[:i], arrays[i] + s * STEP * direction, *arrays[i + 1:]]) for s in (1, -1, 2, -2)]
    return (8 * (at[0] - at[1]) - (at[2] - at[3])) / (12 * STEP), max(map(abs, at)) * 1e-3
