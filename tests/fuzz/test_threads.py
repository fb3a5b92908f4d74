"""Eight threads at everything that has a state; `tests/fuzz/threads.py` runs more."""

from __future__ import annotations

import random

import pytest
from fuzz.subjects import SUBJECTS, Subject
from fuzz.threads import check


@pytest.mark.parametrize("kind", SUBJECTS)
@pytest.mark.parametrize("seed", [1, 2])
def test_threads_get_what_one_thread_gets(kind: type[Subject], seed: int) -> None:
    check([kind], [seed], 8, 6, random.Random(seed))
