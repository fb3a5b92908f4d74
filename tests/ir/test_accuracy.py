"""The table of `docs/numerics.md` is true: another sample than the one it was printed from stays within it."""

from __future__ import annotations

import accuracy
import numpy as np
import pytest

STATED = accuracy.stated(accuracy.PAGE.read_text())


def test_the_table_names_every_function_that_is_measured():
    assert set(STATED) == set(accuracy.FUNCTIONS)
    assert accuracy.stated(accuracy.BEGIN + accuracy.table(STATED) + accuracy.END) == STATED


@pytest.mark.parametrize("name", accuracy.FUNCTIONS)
def test_no_error_exceeds_the_stated_bound(name):
    narrow, wide = STATED[name]
    function = accuracy.FUNCTIONS[name]
    assert accuracy.worst(name, np.float32, 20000 if function.bits else 5000, seed=77) <= narrow
    assert accuracy.worst(name, np.float64, int(200 * function.share), seed=78, rounds=int(function.bits)) <= wide


def test_a_function_made_of_others_exceeds_it():
    """The measurement sees what a composite costs: a cube root by a power is a hundred units off."""
    import dataclasses

    import twofold as tf

    x = np.random.default_rng(0).uniform(1, 2, 200) * 1e300
    power = dataclasses.replace(accuracy.FUNCTIONS["cbrt"], call=lambda v: tf.pow(v, tf.constant(1 / 3, v.dtype)))
    assert accuracy.error(power, [tf.constant(x).numpy()]).max() > 10 * STATED["cbrt"][1]
