"""`Recent`: which entries go, and that threads may share it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from restless import InACycle, restless

from twofold.ir.recent import Recent


def test_the_oldest_goes() -> None:
    recent = Recent[str, int](2)
    assert [recent.remember(k, v) for k, v in (("a", 1), ("b", 2), ("c", 3))] == [1, 2, 3]
    assert dict(recent) == {"b": 2, "c": 3}
    recent.move_to_end("b")
    recent.remember("d", 4)
    assert dict(recent) == {"b": 2, "d": 4}


def test_another_value_of_a_key_drives_nothing_out() -> None:
    recent = Recent[str, int](2)
    for value in range(5):
        recent.remember("a", value)
        recent.remember("b", value)
    assert dict(recent) == {"a": 4, "b": 4}


def test_preferred_entries_stay() -> None:
    recent = Recent[int, int](3, lambda value: value >= 100)
    recent.remember(0, 100)
    for key in range(1, 20):
        recent.remember(key, key)
    assert dict(recent) == {0: 100, 18: 18, 19: 19} and len(recent) == 3


def test_among_preferred_entries_the_oldest_goes() -> None:
    recent = Recent[int, int](3, lambda value: True)
    for key in range(5):
        recent.remember(key, key)
    assert dict(recent) == {2: 2, 3: 3, 4: 4}


@pytest.mark.parametrize("most", [1, 50])
def test_threads_share_it(most: int) -> None:
    recent = Recent[tuple[int, int], int](most, lambda value: value % 3 == 0)

    def work(i: int) -> None:
        for n in range(500):
            InACycle()
            assert recent.remember((i, n), n) == n
            assert recent.get((i, n), n) == n  # unless others have driven it out
    with restless(), ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert len(recent) <= most + 7
    recent.remember((8, 0), 1)
    assert len(recent) <= most and recent.get((8, 0)) == 1
