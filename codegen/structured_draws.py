"""Random draws inside of programs: see `placer.py`. The loops are `kernels/random.py`'s and `kernels/draws.py`'s."""

from __future__ import annotations

from twofold.ir import dims as dm
from twofold.ir import dtypes as dt
from twofold.ir import graph as g
from twofold.ir import math_random
from twofold.ir.math_draws import SKIP
from twofold.ir.ops.random import LIKE_TENSORFLOW

from .backend import lowering
from .kernels import cut_normal, draws, random
from .operands import Argument, Detail, Run, Work
from .placer import Placer
from .units import Source

__all__ = ["install"]


def install() -> None:
    """Makes the lowerings of this module known, which importing it has done."""


def _like_tensorflow(p: Placer) -> bool:
    return bool(p.attrs.get("like") == LIKE_TENSORFLOW)


def _whole(p: Placer) -> tuple[g.Value, dm.DimLike, int]:
    """Memory for whole blocks' numbers, the result itself where it has as many; how many blocks, and numbers of one."""
    dtype, size = p.out.dtype, dm.numel(p.out.dims)
    each = math_random.per_block(dtype)
    blocks = dm.ceil_div(size, each)
    room = p.out if dm.decide_eq(blocks * each, size) is True else g.Value((blocks * each,), dtype)
    return room, blocks, each


@lowering(*[f"random_{name}" for name in math_random.DISTRIBUTIONS])
def _fill(p: Placer) -> None:
    (room, blocks, each), name, dtype = _whole(p), p.node.op.name.removeprefix("random_"), p.out.dtype
    arguments: list[Argument] = [room, p.at(p.dense(p.operands[0]))]
    if not _like_tensorflow(p):
        kernel = p.kernel(random.fill, name, dtype)
        p.fill([room], Run(kernel, arguments, blocks, p.weight(kernel)))
    elif name == "truncated_normal":
        apart = SKIP * each // 4
        first, again = p.kernel(draws.fill, "normal", dtype, apart), p.kernel(draws.accepted, dtype, apart)
        p.fill([room], Run(first, arguments, blocks, p.weight(first)), Run(again, arguments, blocks, p.weight(first)))
    else:
        kernel = p.kernel(draws.fill, name, dtype)
        p.fill([room], Run(kernel, arguments, blocks, p.weight(kernel)))
    p.give(room)


@lowering("random_integers")
def _integers(p: Placer) -> None:
    dtype, alike = p.out.dtype, _like_tensorflow(p)
    state, low, high = p.dense(p.operands[0]), p.lasting(p.operands[1]), p.lasting(p.operands[2])
    pair = Work(dt.uint64, 3 if alike else 2)
    ends = [p.at(low), p.at(high)]
    bounds = p.kernel(draws.ends if alike else random.bounds, dtype)
    kernel = p.kernel(draws.integers if alike else random.integers, dtype)
    room, count = p.out, dm.numel(p.out.dims)
    if alike:
        room, count, _ = _whole(p)
    p.fill([room], Run(bounds, [pair, *ends], 1, 1, Detail("bounds", ((ends[0], ()), (ends[1], ())))),
           Run(kernel, [room, p.at(state), pair], count, p.weight(kernel)))
    if alike:
        p.give(room)


@lowering("random_gamma", "random_poisson", "random_binomial")
def _searched(p: Placer) -> None:
    module = draws if _like_tensorflow(p) else random
    build = getattr(module, p.node.op.name.removeprefix("random_"))
    state, *params = p.operands
    rank = max(len(s.layout.shape) for s in params)
    kinds = dm.numel(p.out.dims[len(p.out.dims) - rank:])
    state, strides, operands = p.dense(state), [], []
    for s in params:
        alone = dm.decide_eq(dm.numel(s.layout.shape), 1) is True
        strides.append(int(not alone))
        operands.append(p.dense(s if alone else Source(s.base, s.layout.broadcast_to(p.out.dims))))
    kernel = p.kernel(build, p.out.dtype, *[s.base.dtype for s in operands])
    arguments: list[Argument] = [p.out, p.at(state), *[p.at(s) for s in operands], *strides]
    if module is draws:
        arguments += [kinds, dm.numel(p.out.dims[:len(p.out.dims) - rank])]
    p.fill([p.out], Run(kernel, arguments, dm.numel(p.out.dims), 8 * p.weight(kernel)))


@lowering("random_cut_normal")
def _cut_normal(p: Placer) -> None:
    state, *params = p.operands
    rank = max(len(s.layout.shape) for s in params)
    inner, outer = p.out.dims[len(p.out.dims) - rank:], p.out.dims[:len(p.out.dims) - rank]
    strides, operands = [], []
    for s in params:
        alone = dm.decide_eq(dm.numel(s.layout.shape), 1) is True
        strides.append(int(not alone))
        operands.append(p.dense(s if alone else Source(s.base, s.layout.broadcast_to(inner))))
    arguments: list[Argument] = [p.out, p.at(p.dense(state)), *[p.at(s) for s in operands], *strides]
    kernel = p.kernel(cut_normal.cut_normal, p.out.dtype)
    p.fill([p.out], Run(kernel, [*arguments, dm.numel(inner), dm.numel(outer)], 1, 1))


@lowering("random_permutation")
def _permutation(p: Placer) -> None:
    kernel, state = p.kernel(draws.permutation, p.out.dtype), p.dense(p.operands[0])
    p.fill([p.out], Run(kernel, [p.out, p.at(state), p.out.dims[0]], 1, 1))


@lowering("random_place")
def _place(p: Placer) -> None:
    index, seed, most = p.operands
    alone = dm.decide_eq(dm.numel(most.layout.shape), 1) is True
    seeds, one = p.dense(seed), len(seed.layout.shape) == 1
    if not one:
        seeds = p.dense(Source(seed.base, seed.layout.broadcast_to((*p.out.dims, 2))))
    tops = p.dense(most if alone else Source(most.base, most.layout.broadcast_to(p.out.dims)))
    kernel = p.kernel(draws.place_in_order, p.out.dtype, seed.base.dtype)
    arguments: list[Argument] = [p.out, p.at(p.dense(index)), p.at(tops), p.at(seeds)]
    arguments += [1, int(not alone), 0 if one else 2]
    p.fill([p.out], Run(kernel, arguments, dm.numel(p.out.dims), 8 * p.weight(kernel)))


@lowering("random_skip")
def _skip(p: Placer) -> None:
    state, count = (p.dense(s) for s in p.operands)
    p.fill([p.out], Run(random.skip(count.base.dtype), [p.out, p.at(state), p.at(count)], 1, 1))


@lowering("random_seed_state")
def _seeded(p: Placer) -> None:
    seed = p.dense(p.operands[0])
    dtype = seed.base.dtype
    kernel = draws.seeded(dtype) if _like_tensorflow(p) else random.seeded(dtype, p.attrs["purpose"])
    p.fill([p.out], Run(kernel, [p.out, p.at(seed)], 1, 1))
