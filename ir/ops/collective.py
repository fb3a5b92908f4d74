"""Ops that several replicas of a program compute together: sums and means of what each has, and joins.

Each replica comes with tensors of its own and gets the same results. Who the others are stands in the attributes, as
the name of a group (`ir/groups.py`). In a run of a compiled function such an op begins as soon as its operands are
there, and ends where its results are needed (`runtime/parts.py`).
"""

from __future__ import annotations

import functools
from typing import Any

from .. import dims as dm
from .. import dtypes as dt
from .. import grad, groups, ops, rules
from ..errors import InvalidArgumentError
from ..op import Op, primitive
from ..spec import spec
from ..types import AnyTensor, Cotangents, Spec

__all__ = ["collective_all_gather", "collective_all_reduce"]

_TRAITS = ("effect", "exchange")


def _reduce_infer(op: Op, *tensors: Spec, reduction: str, group: str, replicas: int, rows: int) -> tuple[Spec, ...]:
    if rows < 1 or not tensors or len(tensors) % rows or replicas % rows:
        raise rules.fail(op, tensors, f"{len(tensors)} operands and {replicas} replicas are not {rows} rows and a "
                         "multiple of that.", InvalidArgumentError)
    if reduction not in ("SUM", "MEAN"):
        raise rules.fail(op, tensors, f"reduction is {reduction!r}; expected 'SUM' or 'MEAN'.", InvalidArgumentError)
    count = len(tensors) // rows
    for n, tensor in enumerate(tensors):
        rules.require_dtype(op, tensors, n, dt.NUMERIC)
        first = tensors[n % count]
        if tensor.dtype is not first.dtype or len(tensor.dims) != len(first.dims) or not all(
                map(dm.require_eq, tensor.dims, first.dims)):
            raise rules.fail(op, tensors, "the replicas' tensors differ in dtype or shape.")
    return tuple([spec(t.dims, t.dtype) for t in tensors[:count]])


def _reduce_vjp(ct: Any, out: Spec, *tensors: Spec, reduction: str, group: str, replicas: int, rows: int) -> Cotangents:
    """Each replica's result goes into what that replica computes: the gradients of all are reduced alike."""
    cts = [ct] if rows == len(tensors) else ct
    whole: list[Any] = [grad.zeros_like(t) if c is None else c for c, t in zip(cts, tensors, strict=False)]
    if replicas == rows:
        share = whole if reduction == "SUM" else [ops.divide(c, grad.scalar(rows, like=c)) for c in whole]
        return tuple(share * rows)
    if reduction == "MEAN" and rows > 1:
        whole = [ops.divide(c, grad.scalar(rows, like=c)) for c in whole]
    reduced: Any = ops.collective_all_reduce(*whole, reduction=reduction, group=group, replicas=replicas // rows)
    return tuple([*reduced] * rows)


@primitive(infer=_reduce_infer, vjp=_reduce_vjp, saves=(), traits=_TRAITS,
           host=functools.partial(groups.exchanged, "collective_all_reduce"))
def collective_all_reduce(*tensors: AnyTensor, reduction: str, group: str, replicas: int,
                          rows: int = 1) -> tuple[AnyTensor, ...]:
    """The sums or means over replicas of what each has, added in the order of the replicas' numbers.

    Args:
        tensors: numeric; for each replica of this process the same number of them, with the shapes of the first one's.
        reduction: "SUM" or "MEAN".
        group: the name of the replicas.
        replicas: how many there are.
        rows: how many of them are of this process, and have operands here.
    Raises:
        ShapeError: the replicas' tensors differ. FailedPreconditionError: this process is not in the group.
    Gradient: reduced over the replicas in the same way.
    """


def _gather_infer(op: Op, *tensors: Spec, axis: int, group: str, replicas: int) -> tuple[Spec, ...]:
    joined = []
    for n, tensor in enumerate(tensors):
        if not tensor.dims:
            raise rules.fail(op, tensors, "a scalar cannot be gathered along an axis.", InvalidArgumentError)
        at = rules.normalize_axis(op, tensors, axis, len(tensor.dims))
        size = tensor.dims[at] if replicas == 1 else dm.symbol(f"gathered{n}")
        joined.append(spec((*tensor.dims[:at], size, *tensor.dims[at + 1:]), tensor.dtype))
    return tuple(joined)


@primitive(infer=_gather_infer, vjp=None, traits=(*_TRAITS, "dynamic"),
           host=functools.partial(groups.exchanged, "collective_all_gather"))
def collective_all_gather(*tensors: AnyTensor, axis: int, group: str, replicas: int) -> tuple[AnyTensor, ...]:
    """What replicas have, joined along an axis in the order of the replicas' numbers.

    Args:
        tensors: of at least one axis; sizes may differ between replicas along `axis`.
        group: the name of the replicas.
        replicas: how many there are.
    Raises:
        InvalidArgumentError: a tensor is a scalar. FailedPreconditionError: this process is not in the group.
    """
