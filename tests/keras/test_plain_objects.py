"""Plain values are read from serialised bytes as Python reads them, and damaged bytes are an error and nothing else."""

from __future__ import annotations

import pickle
import random
import tracemalloc
from collections import OrderedDict

import numpy as np
import pytest

from twofold.keras.datasets._plain import loads

VALUES = [[1, 2, -5, 300, 70000, 2**40, 1.5, None, True, "ä", b"xy"], {"a": [(1, 2), (3,)], b"k": [[], {}, ()]},
          np.arange(6, dtype=">i2").reshape(2, 3), np.asfortranarray(np.arange(6.0).reshape(2, 3)),
          np.array([[1], [2, 3], np.arange(3)], dtype=object), np.array(2.0, np.float32), list(range(70000))]


@pytest.mark.parametrize("protocol", [2, 3, 4])
@pytest.mark.parametrize("value", VALUES, ids=range(len(VALUES)))
def test_plain_values(value, protocol):
    actual = loads(pickle.dumps(value, protocol=protocol))
    assert repr(actual) == repr(value)
    if isinstance(value, np.ndarray):
        assert actual.dtype == value.dtype
        assert actual.flags.f_contiguous == value.flags.f_contiguous


@pytest.mark.parametrize("value", [print, object(), np.random.default_rng, OrderedDict(a=1), np.dtype([("a", "i4")])])
def test_other_objects_are_refused(value):
    with pytest.raises(ValueError, match="The file"):
        loads(pickle.dumps(value, protocol=2))


def test_shared_lists_stay_shared():
    inner = [1]
    actual = loads(pickle.dumps([inner, inner, (inner,)]))
    assert actual[0] is actual[1] is actual[2][0]
    deep = ()
    for _ in range(200):  # each twice in the next: 2**200 of them, if they were written out
        deep = (deep, deep)
    assert loads(pickle.dumps(deep))[0] is not None


def test_damaged_bytes():
    whole = pickle.dumps({"a": [(1, 2), (3,)], b"k": np.arange(6, dtype=">i2").reshape(2, 3)}, protocol=2)
    for n in range(len(whole)):
        with pytest.raises(ValueError):
            loads(whole[:n])
    rng, failed = random.Random(0), 0
    for _ in range(3000):
        changed = bytearray(whole)
        changed[rng.randrange(len(changed))] = rng.randrange(256)
        try:
            loads(bytes(changed))
        except ValueError:
            failed += 1
    assert failed > 1000


@pytest.mark.parametrize("program", [
    b"Nr\xff\xff\xff\x3f.", b"Np1000000000\n.", b"\x80\x04\x8e" + (1 << 40).to_bytes(8, "little") + b"abc.",
    b"\x80\x04\x96" + (1 << 40).to_bytes(8, "little") + b"abc.", b"T\xff\xff\xff\x7fabc."],
    ids=["place", "place as text", "bytes", "bytearray", "string"])
def test_small_files_get_little_memory(program):
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="The file"):
            loads(program)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("program", [
    b"cnumpy\ndtype\n}X\x04\x00\x00\x00whatNsb.", b"cnumpy\ndtype\n(N}X\x04\x00\x00\x00whatNstb.",
    b"cnumpy\nndarray\n)R.", b"cbuiltins\neval\n.", b"cnumpy\ndtype\n.", b"]}X\x01\x00\x00\x00aNsb.", b"Npx\n."],
    ids=["attributes", "slots", "call", "function", "name alone", "list", "place"])
def test_programs_that_do_more_are_refused(program):
    with pytest.raises(ValueError, match="The file"):
        loads(program)
