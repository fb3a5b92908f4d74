"""Places in scratch memory: what lives at one time does not overlap, and no more is used than must be."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twofold.codegen.arena import Block, bound, plan
from twofold.ir import dims as dm

BLOCKS = st.lists(st.tuples(st.integers(1, 40), st.integers(0, 12), st.integers(0, 6)), max_size=14)


@given(BLOCKS)
@settings(max_examples=200, deadline=None)
def test_known_sizes(spans: list[tuple[int, int, int]]) -> None:
    blocks = [Block(n, size * 64, first, first + more) for n, (size, first, more) in enumerate(spans)]
    layout = plan(blocks)
    for n, a in enumerate(blocks):
        at = layout.offsets[a.owner]
        assert at % 64 == 0 and at + a.size <= layout.size
        for b in blocks[n + 1:]:
            if a.meets(b):
                other = layout.offsets[b.owner]
                assert at + a.size <= other or other + b.size <= at
    assert layout.size <= sum(b.size for b in blocks)


def test_a_chain_needs_two_places() -> None:
    layout = plan([Block(n, 640, n, n + 1) for n in range(20)])
    assert layout.size == 1280


def test_unknown_sizes_share_places_of_one_size() -> None:
    n = dm.symbol("n")
    layout = plan([Block("a", 4 * n, 0, 1), Block("b", 4 * n, 1, 2), Block("c", 4 * n, 2, 3), Block("d", 8 * n, 2, 3)])
    assert layout.offsets["a"] == layout.offsets["c"] != layout.offsets["b"]
    assert dm.evaluate((layout.size,), {"n": 16})[0] == 2 * 64 + 128


@pytest.mark.parametrize("seed", range(60))
def test_random_lifetimes_need_what_lives_at_one_time(seed: int) -> None:
    r = random.Random(seed)
    spans = [(64 * r.choice((1, 2, 4, 8, 16, r.randint(1, 100))), r.randint(0, 14), r.randint(0, 6)) for _ in range(14)]
    blocks = [Block(n, size, first, first + more) for n, (size, first, more) in enumerate(spans)]
    most = max(sum(b.size for b in blocks if b.first <= step <= b.last) for step in range(22))
    assert bound(blocks) == most == plan(blocks).size


@pytest.mark.parametrize("layers", [1, 5, 40])
def test_what_a_backward_pass_needs_again(layers: int) -> None:
    r = random.Random(layers)
    sizes = [64 * r.randint(1, 100) for _ in range(layers)]
    kept = [Block(("value", n), size, n, 2 * layers - n) for n, size in enumerate(sizes)]
    passed = [Block(("ct", n), size, 2 * layers - n, 2 * layers - n + 1) for n, size in enumerate(sizes)]
    assert plan([*kept, *passed]).size == bound([*kept, *passed])


def test_large_plans_come_near() -> None:
    r = random.Random(0)
    for _ in range(5):
        blocks = [Block(n, 64 * r.randint(1, 100), f := r.randint(0, 100), f + r.randint(0, 20)) for n in range(100)]
        assert plan(blocks).size <= 1.05 * bound(blocks)


def test_places_of_unknown_sizes_follow_from_each_other() -> None:
    n = dm.symbol("n")
    blocks = [Block(name, size, 0, 0) for name, size in (("a", 8 * n), ("b", 100), ("c", n * n), ("d", 64 * n + 1))]
    made = plan(blocks)
    at, env = made.sums[0][0], {"n": 5}
    for first, size, after in made.sums:
        assert first == at
        assert dm.evaluate((first + size, after), env)[0] == dm.evaluate((after,), env)[0]
        at = after
    assert at == made.size
    assert [made.offsets[name] for name in "acd"] == [first for first, _, _ in made.sums]
