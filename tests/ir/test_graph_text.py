"""The text of graphs reads back to the same graph, to the bit; what is no graph is told with its line."""

from __future__ import annotations

import re

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twofold.ir import dims as dm
from twofold.ir import dtypes as dt
from twofold.ir import graph as g
from twofold.ir import ops
from twofold.ir.errors import InvalidArgumentError
from twofold.ir.graph_text import GraphTextError, parse, text
from twofold.ir.op import REGISTRY

EVERYTHING = """
graph f(%0 x: f32[n,3], %1 "my var:0": f32[3,4], %2: i1[]) {
  assume n <= 8
  assume m + n == 2*k
  %3 = matmul(%0, %1) : f32[n,4]   # model.py:12 in f
  %4 = constant [[1.0, -0.0], [nan, inf], [1e-45, 0.1]] : f32[3,2]   # a folder/of "that".py:3 in <lambda>
  %5 = shape(%0) {out_type: i64} : i64[2]
  %6 hits = reduce_sum(%3) {axis: [0], keepdims: true} : f32[1,4]   # m.py:1 in f.<locals>.g
  %7 = strided_slice(%0) {spec: [0, [none, n//2, 2], none]} : f32[1,2]
  %8 = size_of() {size: dim(f32) + 3*n, dtype: i32} : i32[]
  %9, %10 = svd(%1) {compute_uv: false} : f32[3], f32[3]
  bind(%8) {symbol: "d_3"}
  assert(%2, %3) {message: "must \\"hold\\"\\n", summarize: 3, error: @InvalidArgumentError}   # m.py:4 in f
  %11 = cond(%2, %6) : f32[1,4] {   # m.py:5 in f
    graph then(%0: f32[1,4]) {
      return %0
    }
    graph otherwise(%0: f32[1,4]) {
      %1 = negative(%0) : f32[1,4]   # m.py:6 in f
      return %1
    }
  }
  return %11, %0
}
""".strip().replace('a folder/of "that".py:3', '"a folder/of \\"that\\".py":3').replace("dim(f32) + 3*n", "f32 + 3*n")


def test_text_of_everything_reads_back():
    graph = parse(EVERYTHING)
    assert text(graph) == EVERYTHING
    assert text(graph.copy()) == EVERYTHING
    assert text(graph, locations=False) == "\n".join(line.partition("   # ")[0] for line in EVERYTHING.splitlines())


def test_text_without_names_has_none():
    plain = text(parse(EVERYTHING), names=False)
    assert set(re.findall(r"graph (\S+)\(", plain)) == {"f"}
    assert '"my var:0"' not in plain and " hits " not in plain
    assert "%0: f32[n,3], %1: f32[3,4]" in plain and "%6 = reduce_sum" in plain
    assert text(parse(plain)) == plain


def test_parsed_parts():
    graph = parse(EVERYTHING)
    assert [v.name for v in graph.inputs] == ["x", "my var:0", ""]
    assert graph.inputs[0].dims == (dm.symbol("n"), 3) and graph.inputs[2].dtype is dt.bool_
    assert graph.guards == [dm.Guard.parse("n <= 8"), dm.Guard.parse("m + n == 2*k")]
    matmul, constant, shape, total, sliced, size, svd, bind, check, cond = graph.nodes
    assert matmul.loc == g.Location("model.py", 12, "f") and sliced.loc is None
    assert constant.loc == g.Location('a folder/of "that".py', 3, "<lambda>")
    assert total.loc == g.Location("m.py", 1, "f.<locals>.g")
    assert matmul.attrs == {"transpose_a": False, "transpose_b": False, "adjoint_a": False, "adjoint_b": False,
                            "precision": "exact"}
    assert shape.attrs == {"out_type": dt.int64}
    assert sliced.attrs == {"spec": (0, (None, dm.parse("n//2"), 2), None)}
    assert size.attrs["size"] == dm.symbol("f32") + 3 * dm.symbol("n")
    assert len(svd.outputs) == 2 and bind.outputs == []
    assert check.attrs == {"message": 'must "hold"\n', "summarize": 3, "error": InvalidArgumentError}
    assert [r.name for r in cond.regions] == ["then", "otherwise"]
    assert cond.regions[1].nodes[0].inputs == [cond.regions[1].inputs[0]]


@pytest.mark.parametrize("value", [
    None, True, False, 0, -7, 1, 0.0, -0.0, 1.5, 1e300, float("inf"), -float("inf"), "", 'a "b"\n', "none", 2 + 3j,
    complex(-0.0, float("inf")), dt.float32, dt.bfloat16, (), (1,), ((1, 2), (), None), (None, (True, 1, 1.0)),
    dm.symbol("n"), dm.parse("(n + 1)//2*k"), dm.parse("max(n, 3) - min(n, k)"), dm.symbol("f32"), dm.symbol("none"),
    dm.symbol("inf"), dm.symbol("complex"), (dm.symbol("i1"), dm.parse("2*f64")), InvalidArgumentError,
])
def test_attributes_read_back(value):
    graph = g.Graph("f")
    graph.add(g.HOST, (), {"anything": value, "other name": 1}, ())
    parsed = parse(text(graph)).nodes[0].attrs
    assert list(parsed) == ["anything", "other name"]
    assert repr(parsed["anything"]) == repr(value) and type(parsed["anything"]) is type(value)


def constant_back(array: np.ndarray) -> np.ndarray:
    graph = g.Graph("f")
    graph.outputs = [graph.constant(array)]
    back = parse(text(graph))
    assert text(back) == text(graph)
    value = g.constant_of(back.outputs[0])
    assert value is not None and not value.flags.writeable
    return value


NUMBERS = sorted(dt.ALL, key=lambda d: d.name)


@pytest.mark.parametrize("dtype", NUMBERS, ids=lambda d: d.name)
@given(data=st.data())
def test_constants_read_back_to_the_bit(dtype, data):
    shape = data.draw(hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5))
    size = int(np.prod(shape)) * dtype.size
    raw = np.frombuffer(data.draw(st.binary(min_size=size, max_size=size)), np.uint8)
    array = (raw & 1 if dtype.is_bool else raw).view(dtype.np).reshape(shape)
    back = constant_back(array)
    assert back.dtype == array.dtype and back.shape == array.shape and back.tobytes() == array.tobytes()


@pytest.mark.parametrize("dtype", NUMBERS, ids=lambda d: d.name)
@pytest.mark.parametrize("size", [6, 600])
def test_special_values_and_strides(dtype, size):
    with np.errstate(all="ignore"):
        flat = np.resize(np.array([0.1, -0.0, np.nan, np.inf, -np.inf, 1]), size).astype(dtype.np)
    array = flat[::-1].reshape(2, -1).T
    back = constant_back(array)
    assert back.shape == array.shape and back.tobytes() == array.tobytes()


def test_strings_read_back():
    array = np.array([[b"a", b"\xc3\xa9\x00"], [b'"]', b"%0 # : \n"]], object)
    assert constant_back(array).tolist() == array.tolist()
    assert constant_back(np.array(b"QUJD", object)).tolist() == b"QUJD"


def test_constants_are_short():
    graph = g.Graph("f")
    for array in (np.float32(0.1), np.array([1, 2], np.int8), np.array([[True]]), np.zeros((0, 2), np.float64)):
        graph.constant(np.asarray(array))
    graph.constant(np.zeros(100, np.uint8))
    shown = [line.strip().partition(" = ")[2] for line in text(graph).splitlines()[1:-2]]
    assert shown[:4] == ["constant 0.1 : f32[]", "constant [1, 2] : i8[2]", "constant [[true]] : i1[1,1]",
                         "constant [] : f64[0,2]"]
    assert shown[4].startswith('constant base64 "AAAA')


def test_every_default_is_left_out_and_comes_back():
    for op in REGISTRY.values():
        given_attrs = {k: 1 for k, v in op.defaults.items() if v is ops.reshape.defaults["shape"]}
        graph = g.Graph("f")
        graph.add(op, (), g.complete(op, given_attrs), ())
        assert text(graph).splitlines()[1] == f"  {op.name}()" + (
            f" {{{', '.join(f'{k}: 1' for k in given_attrs)}}}" if given_attrs else "")
        assert parse(text(graph)).nodes[0].attrs == g.complete(op, given_attrs)


def test_true_is_not_one():
    graph = g.Graph("f")
    graph.add(ops.matmul, (), g.complete(ops.matmul, {"transpose_a": 0}), ())
    assert "{transpose_a: 0}" in text(graph)


def test_python_functions_are_shown_and_do_not_read_back():
    graph = g.Graph("f")
    graph.add(g.HOST, (), {"fn": test_true_is_not_one, "name": "print"}, (), (), g.Location("m.py", 3, "f"))
    shown = text(graph)
    assert '  host() {fn: <python "test_true_is_not_one">, name: "print"}   # m.py:3 in f' in shown
    with pytest.raises(GraphTextError, match='line 2: a Python object .*test_true_is_not_one.* cannot be read back'):
        parse(shown)


@pytest.mark.parametrize(("wrong", "told"), [
    ("", "line 1: 'graph' is expected"),
    ("graph f() {", "line 1: 'return' is missing|a node, 'assume'"),
    ("graph f() {\n  %0 = nothing() : f32[]\n return }", "line 2: there is no op 'nothing'"),
    ("graph f() {\n\n  %0 = exp(%1) : f32[]\n return }", "line 3: %1 is not defined"),
    ("graph f(%0: f32[2]) {\n  %0 = exp(%0) : f32[]\n return }", "line 2: %0 is defined twice"),
    ("graph f(%0: f32) { return }", "line 1: a type"),
    ("graph f(%0: g32[2]) { return }", "line 1: Spec"),
    ("graph f(%0: f32[n n]) { return }", "line 1: Dimension"),
    ("graph f(%0: f32[*]) { return }", "line 1: a type"),
    ("graph f(%0: f32[2]) {\n  %1, %2 = exp(%0) : f32[2]\n return }", "line 2: 2 results have 1 types"),
    ("graph f(%0: f32[2]) {\n  %1 = exp(%0) {axis: 1} : f32[2]\n return }", "line 2: exp: unexpected attributes"),
    ("graph f(%0: f32[2]) {\n  %1 = cast(%0) : f32[2]\n return }", "line 2: cast: attribute 'dtype' is missing"),
    ("graph f(%0: f32[2]) {\n  %1 = cast(%0) {dtype: f32, dtype: f32} : f32[2]\n return }", "line 2: .* given twice"),
    ("graph f() {\n  %0 = constant [1.0, 2.0] : f32[3]\n return }", "line 2: the constant cannot be read: 3 elements"),
    ("graph f() {\n  %0 = constant 300 : i8[]\n return }", "line 2: .*300 is no int8"),
    ("graph f() {\n  %0 = constant 1.5 : i32[]\n return }", "line 2: .*'1.5' is no element of int32"),
    ("graph f() {\n  %0 = constant __import__ : f32[]\n return }", "line 2: .* is no element of float32"),
    ('graph f() {\n  %0 = constant base64 "AAAA" : f32[2]\n return }', "line 2: the constant cannot be read"),
    ('graph f() {\n  %0 = constant base64 "A!" : f32[2]\n return }', "line 2: Only base64"),
    ("graph f() {\n  %0 = constant 1 : i32[n]\n return }", "line 2: .*no unknown sizes"),
    ("graph f() {\n assume n ~ 2\n return }", "line 2: Guard"),
    ("graph f() { return }\nmore", "line 2: nothing more is expected"),
    ("graph f() { size_of() {size: os.system} return }", "line 1: Dimension"),
    ("graph f() { assert() {error: @OSError} return }", "line 1: 'OSError' is no class of errors"),
])
def test_wrong_text_is_told_with_its_line(wrong, told):
    with pytest.raises(GraphTextError, match=told):
        parse(wrong)


@given(st.integers(0, len(EVERYTHING)), st.integers(0, 30))
def test_damaged_text_gives_no_other_error(at, count):
    damaged = EVERYTHING[:at] + EVERYTHING[at + count:]
    try:
        graph = parse(damaged)
    except GraphTextError as e:
        assert "line " in str(e)
    else:
        assert text(parse(text(graph))) == text(graph)
