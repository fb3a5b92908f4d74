"""How one structured op runs at once: its lowering, written down as steps on arrays.

A lowering says which kernels an op becomes, in terms of a `Placer` (`codegen/placer.py`). The one here keeps what it is
asked for as a list of closures, once for each dtype, shape and attribute; a call goes through them. What programs are
made of comes from the same lowerings, so both modes run the same kernels on the same memory layouts.

Ops whose result has a size that only values decide have drivers instead (`eager/kernels/`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from twofold.codegen import library
from twofold.codegen.backend import Backend
from twofold.codegen.kernels import indexing
from twofold.codegen.layout import Layout, contiguous
from twofold.codegen.loop import Kernel
from twofold.codegen.operands import Detail, Library, Memory, PartialResults, Run, Within, Work
from twofold.codegen.placer import Placer, same
from twofold.codegen.units import Source
from twofold.ir import dims as dm
from twofold.ir import graph as g
from twofold.ir.dims import Dim, DimLike
from twofold.ir.dtypes import DType
from twofold.ir.op import Op
from twofold.ir.scalar import ScalarBody
from twofold.ir.types import Attrs, Spec
from twofold.runtime import generated, kernels
from twofold.runtime.calls import KernelCheck, RowCall
from twofold.runtime.cpu import cpu
from twofold.runtime.kernels import Compiled
from twofold.runtime.launch import MapFamily, copy_into
from twofold.runtime.launch import contiguous as dense
from twofold.runtime.products import Product

from . import entries

__all__ = ["prepare"]

Arrays: TypeAlias = list[Any]  # of NumPy; None in the place of one that no step has made yet
ArrayStep: TypeAlias = Callable[[Arrays], None]
_family = lru_cache(1024)(MapFamily)


def prepare(op: Op, inputs: Sequence[Spec], outs: Sequence[Spec], attrs: Attrs,
            in_place: bool = False) -> Callable[[Arrays], np.ndarray]:
    """A function that runs `op` on arrays of the shapes and dtypes of `inputs`, made by its lowering.

    Args:
        inputs, outs: specs, of known dims, of operands and results.
        attrs: all attributes.
        in_place: whether a result that begins as a copy of the first operand may take over its memory.
    Returns:
        A function of the list of operands, of any strides, that gives the result.
    """
    from twofold.runtime import lowerings  # noqa: F401 - registers them, when the first structured op runs

    node = g.Node(op, [g.Value(x.dims, x.dtype) for x in inputs], attrs, outs)
    placer = EagerPlacer(op, node, cpu, in_place)
    library.lowering(op.name)(placer)
    return placer.finished()


class EagerPlacer(Placer):
    """A placer that records what a lowering asks for as steps. A value is known by its number in the list of arrays
    that steps share.

    The first numbers are the operands, of any strides; all other arrays are row-major.
    """

    def __init__(self, op: Op, node: g.Node, backend: Backend, in_place: bool = False) -> None:
        super().__init__(node, [Source(v, contiguous(v.dims)) for v in node.inputs])
        self._op, self._backend, self._in_place = op, backend, in_place
        self._steps: list[ArrayStep] = []
        self._operand_numbers: dict[g.Value, int] = {v: n for n, v in enumerate(node.inputs)}  # operands as they are
        self._dense: dict[Memory, int] = {}  # memory that is row-major: of operands, values and scratch
        self._count = len(node.inputs)
        self._result: int | None = None
        self._product: Product | None = None  # where the op is nothing but one product of its operands

    def finished(self) -> Callable[[Arrays], np.ndarray]:
        """The recorded steps as one function."""
        if self._product is not None and len(self._steps) == 2:  # the result's memory, and the product
            return self._product
        steps, blank = tuple(self._steps), [None] * (self._count - len(self.operands))
        result = self._dense[self.out] if self._result is None else self._result

        def run_steps(arrays: Arrays) -> np.ndarray:
            arrays = [*arrays, *blank]
            for step in steps:
                step(arrays)
            array: np.ndarray = arrays[result]
            return array
        return run_steps

    # -- operands ---------------------------------------------------------------------------------
    def in_memory(self, source: Source) -> Source:
        return source

    def lasting(self, source: Source) -> Source:
        return self.dense(source)

    def copy(self, source: Source, dtype: DType | None = None, body: ScalarBody = same) -> Source:
        dtype = dtype or source.base.dtype
        if body is not same:
            return self.item([source], g.Value(source.layout.shape, dtype), body, "copy")
        value = g.Value(source.layout.shape, dtype)
        self._dense[value] = self._converted(self._seen(source), dtype)
        return Source(value, contiguous(value.dims))

    def item(self, sources: Sequence[Source], out: g.Value, body: ScalarBody, name: str = "part") -> Source:
        seen, shape = [self._seen(s) for s in sources], dm.evaluate(out.dims, {})
        family = _family(name, body, tuple([s.base.dtype for s in sources]), (out.dtype,))
        at = self._dense[out] = self._new()

        def step(arrays: Arrays) -> None:
            arrays[at], = family([arrays[n] for n in seen], shape)
        self._steps.append(step)
        return Source(out, contiguous(out.dims))

    # -- results ----------------------------------------------------------------------------------
    def kernel(self, build: Callable[..., Kernel], *args: Hashable) -> Compiled:
        return kernels.get((build, *args), lambda: build(*args))

    def weight(self, kernel: Compiled) -> int:
        return int(kernel.weight)

    def fill(self, outs: Sequence[g.Value], *runs: Run) -> None:
        for value in outs:
            self._memory(value)
        for run in runs:
            self._add(run)

    def product(self, out: g.Value, left: Source, right: Source, layout: Layout | None = None) -> None:
        at = self._memory(out)
        (a, dims_a, flip_a), (b, dims_b, flip_b) = self._matrix(left), self._matrix(right)
        dtype = left.base.dtype
        product = Product(dtype, dims_a, dims_b, flip_a, flip_b)
        if (a, b) == (0, 1) and out is self.out:
            self._product = product
            entries.offer_product(self._op, dtype)
        shape = product.shape

        def step(arrays: Arrays) -> None:
            product.into(arrays[at].reshape(shape), arrays[a], arrays[b])
        self._steps.append(step)

    def give(self, value: g.Value, layout: Layout | None = None) -> None:
        if value is self.out:
            return
        at, dtype = self._seen(Source(value, layout or contiguous(self.out.dims))), self.out.dtype
        if value.dtype is not dtype:
            at = self._converted(at, dtype)
        self._result = at

    def part(self, whole: g.Value, layout: Layout, source: Source, after: g.Value | None = None,
             name: str = "part") -> None:
        if 0 in layout.shape:
            self._memory(whole)
            return
        to, view = self._memory(whole), _view(layout, whole.dims)
        origin, dtype = self._seen(source), whole.dtype.np

        def step(arrays: Arrays) -> None:
            array = arrays[origin]
            copy_into(view(arrays[to]), array if array.dtype == dtype else _rounded(array, dtype))
        self._steps.append(step)

    def carry(self, source: Source, dtype: DType | None = None) -> g.Value:
        value = source.base
        if self._in_place and self._operand_numbers.get(value) == 0 and dtype in (None, value.dtype):
            self._memory(value)  # row-major: a copy, if it is not
            return value
        return super().carry(source, dtype)

    def zeros(self, dtype: DType | None = None, dims: Sequence[DimLike] | None = None) -> g.Value:
        whole = self.target(dtype, dims)
        at = self._memory(whole)
        self._steps.append(lambda arrays: arrays[at].fill(0))
        return whole

    # -- steps ------------------------------------------------------------------------------------
    def _new(self) -> int:
        self._count += 1
        return self._count - 1

    def _memory(self, of: Memory) -> int:
        """The number of the row-major array of a value or of scratch memory, which a step allocates if there is none
        yet."""
        at = self._dense.get(of)
        if at is not None:
            return at
        if isinstance(of, g.Value) and of in self._operand_numbers:
            at = self._converted(self._operand_numbers[of], of.dtype)
            self._dense[of] = at
            return at
        at = self._dense[of] = self._new()
        shape = dm.evaluate((of.size,) if isinstance(of, (Work, PartialResults)) else of.dims, {})
        dtype = of.dtype.np
        empty = self._backend.allocator(shape, dtype)

        def step(arrays: Arrays) -> None:
            arrays[at] = empty(shape, dtype)
        self._steps.append(step)
        return at

    def _converted(self, origin: int, dtype: DType) -> int:
        """The number of array `origin` as a row-major array of `dtype`: its own if it is one."""
        at, want = self._new(), dtype.np

        def step(arrays: Arrays) -> None:
            array = arrays[origin]
            if array.dtype != want:
                array = _rounded(array, want)
            arrays[at] = array if array.flags.c_contiguous else dense(array)
        self._steps.append(step)
        return at

    def _seen(self, source: Source) -> int:
        """The number of the array that views a source, of any strides."""
        base, layout = source.base, source.layout
        operand = self._operand_numbers.get(base)
        if layout == contiguous(base.dims):
            return self._memory(base) if operand is None else operand
        order = _order(layout, base.dims)
        if order is not None and operand is not None:
            origin, view = operand, lambda array: array.transpose(order)
        else:
            origin, view = self._memory(base), _view(layout, base.dims)
        at = self._new()

        def step(arrays: Arrays) -> None:
            arrays[at] = view(arrays[origin])
        self._steps.append(step)
        return at

    def _matrix(self, source: Source) -> tuple[int, tuple[int, ...], bool]:
        """The number of the array of a product's operand, its shape, and whether it holds the matrices transposed."""
        rank = len(source.layout.shape)
        turned = source.layout.transpose((*range(rank - 2), rank - 1, rank - 2))
        is_operand = source.base in self._operand_numbers
        if turned == contiguous(source.base.dims) if is_operand else turned.is_dense() and \
                not source.layout.is_dense():
            return self._seen(Source(source.base, turned)), tuple(turned.shape), True
        return self._seen(source), tuple(source.layout.shape), False

    def _add(self, run: Run) -> None:
        """Adds a step that runs a kernel."""
        operands = [a for a in run.arguments if isinstance(a, (g.Value, Work, Within))]
        integers = [a for a in run.arguments
                    if not isinstance(a, (g.Value, Work, PartialResults, Within, Library, Kernel, Dim))]
        assert run.arguments == [*operands, *integers]
        total, weight = dm.evaluate((run.total, run.weight), {})  # numbers, as all sizes are here
        numbers = [self._place(a) for a in operands]
        if not total:
            return
        call = RowCall(_compiled(run.kernel, total * weight), len(numbers), total, total * weight, integers, None)
        if run.detail is None:
            def step(arrays: Arrays) -> None:
                call.run([arrays[n] for n in numbers])
            self._steps.append(step)
            return
        message = self._message(run.detail)

        def checked(arrays: Arrays) -> None:
            try:
                call.run([arrays[n] for n in numbers])
            except KernelCheck:
                raise KernelCheck(message(arrays)) from None
        self._steps.append(checked)

    def _place(self, argument: Memory | Within) -> int:
        """The number of the array that begins at an argument of a kernel."""
        if not isinstance(argument, Within):
            return self._memory(argument)
        origin, offset = self._memory(argument.value), argument.offset
        if not offset:
            return origin
        at = self._new()

        def step(arrays: Arrays) -> None:
            arrays[at] = arrays[origin].reshape(-1)[offset:]
        self._steps.append(step)
        return at

    def _message(self, detail: Detail) -> Callable[[Arrays], str]:
        """A function that makes the text of a failed check, which is empty where nothing is wrong."""
        parts = [(self._memory(within.value), within.offset, shape) for within, shape in detail.arrays]
        sizes = dm.evaluate(detail.sizes, {})

        def text(arrays: Arrays) -> str:
            seen = [arrays[n].reshape(-1)[offset:offset + math.prod(shape)].reshape(shape)
                    for n, offset, shape in parts]
            return indexing.detail(detail.kind, seen, sizes)
        return text


def _rounded(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The elements of `x` as a C-contiguous array of another floating dtype, rounded once."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return x.astype(dtype, order="C")


def _compiled(kernel: Compiled | Library, work: int) -> Compiled:
    """A kernel to be run that does so much work."""
    if isinstance(kernel, Library):
        return generated.GeneratedFunction(kernel.name, library.address(kernel.key, work >= generated.AT_ONCE))
    return kernel


def _order(layout: Layout, dims: Sequence[DimLike]) -> tuple[int, ...] | None:
    """The order of axes by which `layout` follows from a row-major array of `dims`; None where it is no transpose."""
    whole = contiguous(dims)
    if layout.offset != 0 or len(layout.shape) != len(whole.shape):
        return None
    left = list(range(len(dims)))
    order = []
    for size, stride in zip(layout.shape, layout.strides, strict=True):
        axis = next((n for n in left if whole.shape[n] == size and whole.strides[n] == stride), None)
        if axis is None:
            return None
        left.remove(axis)
        order.append(axis)
    return tuple(order)


def _view(layout: Layout, dims: Sequence[DimLike]) -> Callable[[np.ndarray], np.ndarray]:
    """A function that views a row-major array of `dims` as `layout` says."""
    whole, shape = contiguous(dims), tuple(layout.shape)
    if layout == whole:
        return lambda array: array
    order = _order(layout, dims)
    if order is not None:
        return lambda array: array.transpose(order)
    if layout.offset == 0 and layout.is_dense() and math.prod(shape) == math.prod(dims):
        return lambda array: array.reshape(shape)
    box = _box(layout, whole)
    if box is not None:
        return lambda array: array[box]
    offset, strides = layout.offset, layout.strides

    def strided(array: np.ndarray) -> np.ndarray:
        steps = [s * array.itemsize for s in strides]
        return np.lib.stride_tricks.as_strided(array.reshape(-1)[offset:], shape, steps)
    return strided


def _box(layout: Layout, whole: Layout) -> tuple[slice, ...] | None:
    """The slices that take `layout` out of a row-major array; None where it is no box of neighbours."""
    if layout.strides != whole.strides:
        return None
    rest, slices = layout.offset, []
    for size, full, stride in zip(layout.shape, whole.shape, whole.strides, strict=True):
        begin = rest // stride if stride else 0
        if begin + size > full:
            return None
        rest -= begin * stride
        slices.append(slice(begin, begin + size))
    return None if rest else tuple(slices)
