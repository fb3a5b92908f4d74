"""One row of the table that tests every op: what to call, on what, and what must come out.

Family files `cases_<family>.py` list `CASES` and `ERRORS`; `test_ops.py` and `test_errors.py` run them.
How operands are made is here; how results are judged is `check.py`'s.

    from ops.case import Bad, Case
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from twofold.eager.tensor import Tensor, wrap
from twofold.ir import dtypes as dt
from twofold.ir.dtypes import DType

Shape = tuple[int, ...]
Function = str | Callable[..., Any]

SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan)
_ORDER = {d: i for i, d in enumerate((
    dt.float32, dt.float64, dt.float16, dt.bfloat16, dt.complex64, dt.complex128, dt.bool_, dt.int32, dt.int64, dt.int8,
    dt.int16, dt.uint8, dt.uint16, dt.uint32, dt.uint64, dt.string))}


@dataclass(eq=False)
class Case:
    """A call of a public function, or of an op, with its oracle.

    Attributes:
        ops: the registry name, or names, of the ops that this case covers; the call must run them.
        fn: the function, or its name below `tf` ("math.softplus") or below the registry ("ops.pow_derivative"),
            looked up when the case runs. Called as `fn(*tensors, **kwargs)`; gives a tensor or a structure of them.
        shapes: the operands' shapes, `[(3, 4), (4,)]`; or a list of such lists. The first is run in every dtype, the
            others (broadcasting, sizes of 0 and 1, other ranks) in the first dtype, and for first gradients.
        oracle: `oracle(*arrays, **kwargs)` -> array, or tuple of them in the order of the results. Arrays are float64
            for float operands and complex128 for complex ones, whatever the dtype tested; integers and booleans come
            in their own dtype. None where values cannot be foreseen: then only specs and gradients are checked.
        dtypes: what the operands may be; float32, float64 and the 16-bit floats by default.
        kwargs: keyword arguments of `fn` and `oracle`.
        oracle_kwargs: those of `oracle`, where they differ.
        domain: where values are drawn from: `(low, high)`, or `f(rng, shape) -> array`, or a list with one of these per
            operand. Integers are drawn from low to high inclusive, unsigned ones from max(low, 0).
        dtypes_per_operand: per operand None (the dtype tested), or the dtype it has whatever is tested.
        result: the results' dtype, or `f(dtype) -> dtype`. By default float results of float operands have the dtype
            tested, complex likewise.
        ulps: allowed distance from the rounded oracle, in units in the last place.
        half_ulps: the same for float16 and bfloat16; by default at most 1, for one rounding of a float32 result.
        atol: distance allowed besides, in multiples of the result dtype's epsilon: for sums that cancel.
        grad: whether gradients are tested: True for all float and complex operands, or the numbers of the operands that
            have one; the others' must be None or zero. False where there is none, or where another case tests it:
            every op that has a gradient needs one that does.
        grad_domain: the domain for gradients, away from kinks and poles; `domain` by default.
        grad_dtypes: the floating dtypes in which a gradient must exist; all of the case's by default.
        differences: whether finite differences tell the gradient; a reason (text) where they cannot, as where results
            are rounded to a narrower dtype: then gradients must only exist.
        second: whether second derivatives are tested; a reason (text) where they cannot be.
        complex_grad: the same for gradients in complex128, where the case has it.
        special: values, such as 0.0, -0.0, inf and nan, that are tried in all combinations (elementwise ops), or put
            somewhere into the operands (others); real float dtypes only.
        special_ops: the operands that take the special values; all float ones by default.
        zeros: whether the signs of zeros count among the special values of elementwise ops.
        elementwise: tried on shapes of rank 0 to 4 and on empty ones; by default when every op in `ops` is.
        layouts: whether non-contiguous operands must give the same bits; a reason (text) where they need not.
        id: name of the case; made from `ops` by default.
    """

    ops: str | tuple[str, ...]
    fn: Function
    shapes: Sequence[Any]
    oracle: Callable[..., Any] | None
    dtypes: Any = dt.FLOATING
    kwargs: dict[str, Any] = field(default_factory=dict)
    oracle_kwargs: dict[str, Any] | None = None
    domain: Any = (-3, 3)
    dtypes_per_operand: Sequence[DType | None] | None = None
    result: DType | Callable[[DType], DType] | None = None
    ulps: float = 0
    half_ulps: float | None = None
    atol: float = 0
    grad: bool | tuple[int, ...] = True
    grad_domain: Any = None
    grad_dtypes: Any = None
    differences: bool | str = True
    second: bool | str = True
    complex_grad: bool | str = True
    special: Sequence[float] = ()
    special_ops: Sequence[int] | None = None
    zeros: bool = True
    elementwise: bool | None = None
    layouts: bool | str = True
    id: str | None = None

    def __post_init__(self) -> None:
        self.ops = (self.ops,) if isinstance(self.ops, str) else tuple(self.ops)
        given = {self.dtypes} if isinstance(self.dtypes, DType) else set(self.dtypes)
        self.dtypes = sorted(given, key=_ORDER.__getitem__)
        several = bool(self.shapes) and isinstance(self.shapes[0], list)
        self.shapes = [[tuple(s) for s in shapes] for shapes in (self.shapes if several else [self.shapes])]
        if self.id is None:
            self.id = "+".join(self.ops)
        if len({len(shapes) for shapes in self.shapes}) > 1 and self.dtypes_per_operand is not None:
            raise ValueError(f"{self.id}: dtypes_per_operand needs one number of operands")

    def __str__(self) -> str:
        return str(self.id)

    # -- what is called ---------------------------------------------------------------------------
    def call(self, *tensors: Any) -> list[Tensor]:
        """The results of the function on `tensors`, flat."""
        return flat(named(self.fn)(*tensors, **self.kwargs))

    def expected(self, tensors: Sequence[Tensor]) -> list[np.ndarray]:
        """The oracle's results for `tensors`, in its own wide dtypes."""
        arrays = [wide(t._array) for t in tensors]
        given = self.kwargs if self.oracle_kwargs is None else self.oracle_kwargs
        with np.errstate(all="ignore"):
            results = self.oracle(*arrays, **given)  # type: ignore[misc]
        return [np.asarray(a) for a in (results if isinstance(results, (tuple, list)) else (results,))]

    def allowed(self, dtype: DType) -> float:
        """Ulps that a result of `dtype` may be off."""
        if dtype.size > 2:
            return self.ulps
        return min(self.ulps, 1) if self.half_ulps is None else self.half_ulps

    @property
    def main(self) -> DType:
        """The dtype in which everything is tried: float32 where the case has it."""
        return self.dtypes[0]

    # -- operands ---------------------------------------------------------------------------------
    def rng(self, *salt: Any) -> np.random.Generator:
        """Random numbers that are the same in every run, and others for every case and `salt`."""
        return np.random.default_rng(zlib.crc32(repr((self.id, *salt)).encode()))

    def operand_dtypes(self, dtype: DType, count: int) -> list[DType]:
        """The dtype of each of `count` operands when `dtype` is tested."""
        fixed = self.dtypes_per_operand or [None] * count
        return [f or dtype for f in fixed]

    def arrays(self, dtype: DType, shapes: Sequence[Shape], domain: Any = None, salt: Any = 0) -> list[np.ndarray]:
        """Random contiguous operands of `shapes` when `dtype` is tested."""
        domain = self.domain if domain is None else domain
        domains = domain if isinstance(domain, list) else [domain] * len(shapes)
        dtypes = self.operand_dtypes(dtype, len(shapes))
        rng = self.rng(salt)
        return [drawn(rng, s, d, w) for s, d, w in zip(shapes, dtypes, domains, strict=True)]

    def differentiable(self, dtypes: Sequence[DType]) -> list[int]:
        """The numbers of the operands whose gradient is tested."""
        if self.grad is False:
            return []
        which = range(len(dtypes)) if self.grad is True else self.grad
        return [i for i in which if dtypes[i].is_differentiable]


@dataclass(eq=False)
class Bad:
    """A call that must fail.

    Attributes:
        id: name of the row.
        thunk: the call, without arguments.
        exception: the class it must raise.
        match: a regular expression that the message must have: the op's name, and what was given.
    """

    id: str
    thunk: Callable[[], Any]
    exception: type[BaseException] | str
    match: str = ""

    def __str__(self) -> str:
        return self.id


def named(fn: Function) -> Callable[..., Any]:
    """The function that `fn` is or names."""
    if not isinstance(fn, str):
        return fn
    if fn.startswith("ops."):
        from twofold.ir import ops
        return getattr(ops, fn.removeprefix("ops."))
    import twofold
    value: Any = twofold
    for part in fn.removeprefix("tf.").split("."):
        value = getattr(value, part)
    return value


def flat(results: Any) -> list[Tensor]:
    """The tensors of a result: itself, or those of (nested) tuples, lists and dictionaries."""
    if isinstance(results, (tuple, list)):
        return [t for r in results for t in flat(r)]
    if isinstance(results, dict):
        return [t for key in sorted(results) for t in flat(results[key])]
    if not isinstance(results, Tensor):
        raise TypeError(f"a case's function must give tensors; got {type(results).__name__} {results!r}")
    return [results]


def wide(array: np.ndarray) -> np.ndarray:
    """The same values in float64 or complex128; other dtypes stay."""
    kind = dt.from_numpy(array.dtype).kind
    return array.astype({"f": np.float64, "c": np.complex128}[kind]) if kind in "fc" else array.copy()


def drawn(rng: np.random.Generator, shape: Shape, dtype: DType, domain: Any) -> np.ndarray:
    """A random array of `dtype` from `domain`."""
    if callable(domain):
        values = np.asarray(domain(rng, shape))
        if dtype.is_unsigned and values.dtype.kind == "f":
            values = values.astype(np.int64)  # what becomes of a negative float otherwise depends on the processor
        return np.array(values.astype(dtype.np), dtype.np, order="C").reshape(shape)
    if dtype is dt.string:
        return rng.choice(np.array([b"", b"a", b"ab", b"b"], object), shape)
    low, high = domain
    if dtype.is_bool:
        return rng.random(shape) < 0.5
    if dtype.is_integer:
        low = max(int(np.ceil(low)), int(dtype.min))
        return np.asarray(rng.integers(low, max(int(np.floor(high)), low), shape, endpoint=True)).astype(dtype.np)
    values = np.asarray(rng.uniform(low, high, shape))
    if dtype.is_complex:
        values = values + 1j * rng.uniform(low, high, shape)
    return values.astype(dtype.np)


def tensors(arrays: Sequence[np.ndarray]) -> list[Tensor]:
    """Tensors on `arrays` (or NumPy scalars), layout and all."""
    return [wrap(np.asarray(a)) for a in arrays]


def combinations(values: Sequence[float], count: int, dtype: DType) -> list[np.ndarray]:
    """`count` vectors that pair every value with every other."""
    grids = np.meshgrid(*[np.array(values, np.float64)] * count, indexing="ij")
    with np.errstate(all="ignore"):
        return [np.ascontiguousarray(g.reshape(-1)).astype(dtype.np) for g in grids]
