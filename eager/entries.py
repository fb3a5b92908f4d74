"""Native entries of ops: machine code that computes small plain calls without any Python, and the tables of kernels
that it reads.

An entry goes to its op's door with whatever it does not compute itself (`runtime/native.py`). Its table is empty at
first: where dispatch has made the kernels of a call that an entry could have answered, it offers them here. Which ops
have entries, and their operators, is `operators.py`'s.
"""

from __future__ import annotations

from twofold.ir.dtypes import DType
from twofold.ir.op import Op
from twofold.ir.types import Spec
from twofold.runtime import native, sharing
from twofold.runtime.launch import MapFamily, ReduceFamily
from twofold.runtime.native_layout import PythonFunction
from twofold.runtime.products import functions

from .tensor import Tensor

__all__ = ["ENTRIES", "TABLES", "add", "another", "limit", "offer", "offer_total", "offer_product"]

ENTRIES: dict[Op, PythonFunction] = {}
TABLES: dict[Op, native.OpTable] = {}
_KINDS: dict[Op, dict[str, bool]] = {}  # see `add`
_SMALL = 1 << 15  # elements that entries always compute


def add(op: Op, door: PythonFunction, most: int, **kind: bool) -> None:
    """Gives `op` an entry, which calls `door` for everything that it does not compute itself.

    Args:
        most: elements, or multiplications of a product, beyond which it computes nothing.
        kind: "total" or "product", as `native.entry` takes them.
    """
    TABLES[op], _KINDS[op] = native.OpTable(most), kind
    ENTRIES[op] = another(op, door, op.name)


def another(op: Op, slow: PythonFunction, name: str | None = None) -> PythonFunction:
    """A further entry of an op that has one, by the same kernels.

    Args:
        slow: called for everything that the entry does not compute itself.
        name: what errors call it; that of `slow` by default.
    """
    return native.entry(TABLES[op], slow, len(op.params), name or slow.__name__, op.__doc__, op=op, **_KINDS[op])


def limit(op: Op) -> int:
    """The elements, or multiplications of a product, up to which the op's entry computes; 0 where it has none."""
    return TABLES[op].limit if op in TABLES else 0


def offer(op: Op, family: MapFamily, inputs: tuple[Tensor, ...], out: Spec) -> None:
    """Let the entry of an elementwise op answer calls like this one: of one dtype and one shape, a scalar or a row."""
    table = TABLES.get(op)
    if table is None:
        return
    dtypes, dims = {t.dtype for t in inputs}, tuple(out.dims or ())
    mask = "".join(["s" if dims and not t.dims else "v" if t.dims == dims[len(dims) - t.ndim:] else "?"
                    for t in inputs])
    if len(dtypes) == 1 and "?" not in mask and "v" in mask:
        dtype = inputs[0].dtype.np
        if dtype.kind != "O":
            family.when_best(mask, lambda address: table.set(dtype.num, mask, address, out.dtype.np))
            table.allow(max(_SMALL, min(table.limit, (sharing.AT_ONCE - 1) // family.weight(mask))))


def offer_total(op: Op, family: ReduceFamily, inputs: tuple[Tensor, ...], out: Spec) -> None:
    """Let the entry of a reduction answer calls that reduce all elements of this dtype to one."""
    if op in TABLES:
        dtype = inputs[0].dtype.np
        family.when_best(lambda address: TABLES[op].set(dtype.num, "v", address, out.dtype.np))


def offer_product(op: Op, dtype: DType) -> None:
    """Let the entry of the product answer calls on small matrices of this dtype."""
    if op in TABLES:
        TABLES[op].set(dtype.np.num, "vv", functions(dtype)["small"], dtype.np)
