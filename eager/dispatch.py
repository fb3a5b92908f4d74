"""Eager execution: runs an op at once, as its declaration says: by a map or reduction kernel, a view, a lowering, or
Python.

For each op, attributes, dtypes and shapes a plan is made once: the shape rule has accepted the operands,
the kernel family is chosen. A call then looks the plan up, runs it and tells the recorders. Small
elementwise ops do not come here at all once their native entries (`entries.py`) know their kernels.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable
from typing import Any, TypeAlias, TypeVar

import numpy as np

from twofold.ir.dtypes import DType
from twofold.ir.errors import InvalidArgumentError, of_values, op_error
from twofold.ir.op import Op
from twofold.ir.scalar import Reduction
from twofold.ir.types import Attrs, HostFunction, Results, Spec
from twofold.runtime.launch import KernelCheck, MapFamily, ReduceFamily

from . import convert, entries, kernels
from .record import active, tell
from .tensor import Tensor, wrap

__all__ = ["EagerInterpreter", "eager", "inferred"]

_PLANS = 8192
_EMPTY = inspect.Parameter.empty
Computed: TypeAlias = np.ndarray | tuple[np.ndarray, ...]  # an op's result, or its results where it has several
Execute: TypeAlias = Callable[[list[np.ndarray]], Computed]  # what computes them from the operands
OpPlan: TypeAlias = tuple[Execute, bool, Attrs]  # whether there is one result; all attributes
F = TypeVar("F", MapFamily, ReduceFamily)
B = TypeVar("B")


class EagerInterpreter:
    """The interpreter of eager execution: it computes each op when it is called."""

    def __init__(self) -> None:
        self._plans: dict[Hashable, OpPlan] = {}
        self._families: dict[Hashable, Any] = {}  # for each op those of the kind that it has

    def apply(self, op: Op, inputs: tuple[Any, ...], attrs: Attrs) -> Results:
        """Run `op` now; see `ir.op.apply`. From the conversion on `inputs` are tensors."""
        for x in inputs:
            if type(x) is not Tensor:
                inputs = convert.operands(op, inputs)
                break
        arrays = [t._memory for t in inputs]
        key: tuple[Hashable, ...]
        if len(arrays) == 1:  # one and two operands are spelt out: this runs for every op
            a = arrays[0]
            key = (op, a.dtype.num, a.shape)
        elif len(arrays) == 2:
            a, b = arrays
            key = (op, a.dtype.num, a.shape, b.dtype.num, b.shape)
        else:
            key = (op, *[(a.dtype.num, a.shape) for a in arrays])
        if attrs:
            key = (*key, *attrs.items())
        try:
            plan = self._plans.get(key)
        except TypeError as e:
            raise TypeError(f"{op.name}: an attribute is not hashable: {attrs!r}") from e
        if plan is None:
            plan = self._plan(op, inputs, attrs, key)
        execute, single, attrs = plan
        try:
            result: Any = execute(arrays)  # as `single` says
        except KernelCheck as e:
            raise of_values(op_error(InvalidArgumentError, op.name, e.code, op.operands(inputs))) from None
        outputs: Any = wrap(result) if single else tuple(map(wrap, result))
        if active.get():
            tell(op, attrs, inputs, (outputs,) if single else outputs)
        return outputs

    on_host = apply  # which nothing takes the place of: `apply` of the one that is used may be another (`placed.py`)

    def _plan(self, op: Op, inputs: tuple[Tensor, ...], attrs: Attrs, key: Hashable) -> OpPlan:
        attrs, specs, single = inferred(op, inputs, attrs)
        plan = (self._runner(op, inputs, specs, single, attrs), single, attrs)
        if len(self._plans) >= _PLANS:
            self._plans.clear()
        self._plans[key] = plan
        return plan

    def _runner(self, op: Op, inputs: tuple[Tensor, ...], outs: tuple[Spec, ...], single: bool,
                attrs: Attrs) -> Execute:
        if op.body is not None:
            family = self._family(op, MapFamily, op.body, inputs, outs, attrs)
            shape: Any = outs[0].dims  # numbers only, as the operands' are
            entries.offer(op, family, inputs, outs[0])
            return (lambda arrays: family(arrays, shape)[0]) if single else lambda arrays: family(arrays, shape)
        if op.reduction is not None:
            return self._reducer(op, op.reduction, inputs, outs, attrs)
        if op.view is not None:
            view = op.view
            return lambda arrays: view(*arrays, **attrs)
        if op.host is not None:
            return _host_runner(op.host, outs, single, attrs)
        driver = kernels.driver(op, inputs, attrs)
        if driver is not None:
            return lambda arrays: driver(arrays, outs, attrs)
        from . import placing  # when the first structured op runs: what lowers them takes a while to import

        return placing.prepare(op, inputs, outs, attrs)

    def _family(self, op: Op, kind: Callable[[str, B, tuple[DType, ...], tuple[DType, ...], Attrs], F], body: B,
                inputs: tuple[Tensor, ...], outs: tuple[Spec, ...], attrs: Attrs) -> F:
        """The kernels of an op for dtypes and attributes: the `kind`, MapFamily or ReduceFamily, of its `body`."""
        dtypes, results = tuple(t.dtype for t in inputs), tuple(o.dtype for o in outs)
        key = (op, dtypes, results, *attrs.values())
        family = self._families.get(key)
        if family is None:
            family = self._families[key] = kind(op.name, body, dtypes, results, attrs)
        return family

    def _reducer(self, op: Op, reduction: Reduction, inputs: tuple[Tensor, ...], outs: tuple[Spec, ...],
                 attrs: Attrs) -> Execute:
        rest = {k: v for k, v in attrs.items() if k not in ("axis", "keepdims")}
        family = self._family(op, ReduceFamily, reduction, inputs, outs, rest)
        axis, keepdims, rank = attrs["axis"], attrs.get("keepdims", False), inputs[0].ndim
        reduced = range(rank) if axis is None else axis if isinstance(axis, tuple) else (axis,)
        axes = tuple(sorted(a % rank for a in reduced))
        single = len(outs) == 1
        if axes == tuple(range(rank)) and single:
            entries.offer_total(op, family, inputs, outs[0])

        def reduce(arrays: list[np.ndarray]) -> Computed:
            result = family(arrays, axes, keepdims)
            return result[0] if single and isinstance(result, tuple) else result
        return reduce


def _host_runner(host: HostFunction, outs: tuple[Spec, ...], single: bool,
                 attrs: Attrs) -> Execute:
    dtypes = [o.dtype.np for o in outs]

    def call_host(arrays: list[np.ndarray]) -> Computed:
        with np.errstate(all="ignore"):  # no op warns of values
            result = host(*arrays, **attrs)
            if single:
                return np.asarray(result, dtypes[0])
            return tuple(np.asarray(r, d) for r, d in zip(result, dtypes, strict=True))
    return call_host


def inferred(op: Op, inputs: tuple[Tensor, ...], attrs: Attrs) -> tuple[Attrs, tuple[Spec, ...], bool]:
    """All attributes of a call of `op`, the specs of its results, and whether there is one that is not in a tuple."""
    if not op.variadic and len(inputs) != len(op.params):
        raise TypeError(f"{op.name}: takes {len(op.params)} operands ({', '.join(op.params)}); got {len(inputs)}")
    attrs = _complete(op, attrs)
    outs = op.infer(op, *inputs, **attrs)
    return (attrs, outs, False) if isinstance(outs, tuple) else (attrs, (outs,), True)


def _complete(op: Op, attrs: Attrs) -> Attrs:
    """All attributes of `op`, in the order of its declaration.

    Where they are the defaults, they are these very objects, as native entries tell recorders: what is remembered by
    the identity of attributes does not depend on who ran the op.
    """
    full = {**op.defaults, **attrs}
    if len(full) != len(op.defaults):
        raise TypeError(f"{op.name}: unexpected attributes {sorted(set(full) - set(op.defaults))}")
    for name, value in full.items():
        if value is _EMPTY:
            raise TypeError(f"{op.name}: attribute {name!r} is missing")
    return op.defaults if all(full[name] is value for name, value in op.defaults.items()) else full


eager = EagerInterpreter()
