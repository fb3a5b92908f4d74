"""Cases of what replicas compute together, of a process that has all of them."""

from __future__ import annotations

from ops.case import Case

from twofold.ir import dtypes as dt
from twofold.ir import ops


def reduced(*tensors, reduction, rows):
    return ops.collective_all_reduce(*tensors, reduction=reduction, group="none", replicas=rows, rows=rows)


def gathered(*tensors):
    return ops.collective_all_gather(*tensors, axis=0, group="none", replicas=1)


def mean(a, b):
    return (a + b) // 2 if a.dtype.kind in "iu" else (a + b) / 2


CASES = [
    Case("collective_all_reduce", reduced, [[(3, 4), (3, 4)], [(), ()]], lambda a, b: a + b,
         dtypes=dt.NUMERIC, kwargs={"reduction": "SUM", "rows": 2}, oracle_kwargs={}, domain=(0, 50)),
    Case("collective_all_reduce", reduced, [[(3, 4), (3, 4)]], mean, dtypes=dt.FLOATING | {dt.int32, dt.complex64},
         kwargs={"reduction": "MEAN", "rows": 2}, oracle_kwargs={}),
    Case("collective_all_reduce", reduced, [[(2,), (3, 1)]], lambda a, b: (a, b), kwargs={"reduction": "SUM",
                                                                                         "rows": 1}, oracle_kwargs={}),
    Case("collective_all_gather", gathered, [[(3, 4), (2,)]], lambda a, b: (a, b), dtypes=dt.ALL, grad=False),
]
