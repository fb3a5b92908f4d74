"""Tables of dimensions: what is written is read back, once each, through JSON."""

from __future__ import annotations

import json

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from ir.test_dims import as_dim, trees

from twofold.ir import dims
from twofold.ir.dim_table import Reader, Writer


@settings(deadline=None)
@given(st.lists(trees, max_size=6))
def test_dimensions_come_back(some):
    try:
        table, given_dims = Writer(), [as_dim(tree) for tree in some]
    except ZeroDivisionError:
        assume(False)
    references = json.loads(json.dumps([table.reference(d) for d in given_dims]))
    reader = Reader(json.loads(json.dumps(table.rows)))
    back = [reader.dim(r) for r in references]
    assert back == given_dims
    assert [type(d) for d in back] == [type(d) for d in given_dims]
    assert [str(d) for d in back] == [str(d) for d in given_dims]


def test_each_part_is_written_once():
    n, table = dims.symbol("n"), Writer()
    half = (n + 1) // 2
    references = [table.reference(d) for d in (half, 4 * half + n, half, 4 * half + n)]
    assert references[:2] == references[2:]
    assert [row[0] for row in table.rows].count("div") == 1
    assert table.rows.count(["sym", "n"]) == 1


@pytest.mark.parametrize("rows", [
    [["sym"]], [["sym", "2n"]], [["sym", 3]],
    [["sum", [1, 0]]], [["sym", "n"], ["sum", [1, 1]]], [["other", 1]], [[]], 3,
    [["sym", "n"], ["div", "0", 2]], [["pos", 1, 2]], [["sym", "n"], ["sum", ["x", 0]]],
])
def test_other_tables_are_refused(rows):
    with pytest.raises((ValueError, KeyError, TypeError, IndexError)):
        Reader(rows)


@pytest.mark.parametrize("reference", ["0", "7", None, True, 1.5, "x"])
def test_other_references_are_refused(reference):
    with pytest.raises((ValueError, KeyError, TypeError, AttributeError)):
        Reader([["sym", "n"]]).dim(reference)
