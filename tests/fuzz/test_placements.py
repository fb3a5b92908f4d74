"""Some random programs with gradients in placements of tapes and decorators; `make fuzz` runs more."""

from __future__ import annotations

import re

import pytest
from fuzz import placements

PROGRAMS = 8



@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_bits_are_those_of_plain_python(seed: int) -> None:
    source = placements.drawn(seed).source()
    count, difference = placements.run_source(source, f"placed{seed}", seed, several=2, orders=(1,))
    assert count == 2 and difference is None, f"{difference}\n{source}"


def test_programs_have_everything() -> None:
    """Control flow, helpers, assignments, maps and tapes occur, and loops that run no round."""
    text = "\n".join(placements.drawn(seed).source() for seed in range(200))
    for word in ("    if ", "    for ", "    while ", "tf.range(0)", "helper0(", ".assign", "tf.scan", "tf.TensorArray",
                 "tf.GradientTape", "tf.cond", "odd(", "tf.stop_gradient"):
        assert word in text
    assert placements.drawn(3).source() == placements.drawn(3).source()


def test_placements_are_all() -> None:
    """Each of the program's helpers, itself, and its gradients is decorated or not; nothing is plain Python."""
    for order in (1, 2):
        actual = placements.placements(order)
        plain = [p for p in actual if not p["helpers"] and not any(p["compiled"])]
        assert not plain and len([p for p in actual if not p["persistent"]]) == (1 << order + 2) - 1


def test_a_difference_is_seen() -> None:
    source = ("def make(place):\n"
              "    def program(x, y):\n"
              "        return tf.reduce_sum(x * (2.0 if tf.executing_eagerly() else 3.0))\n"
              "    return program, [], False\n")
    count, difference = placements.run_source(source, "different", 0, several=9, orders=(1,))
    assert count and re.search(r"result 0: 12 of 12 differ: \[2\. 2\. 2\.\], \[3\. 3\. 3\.\]", str(difference))
