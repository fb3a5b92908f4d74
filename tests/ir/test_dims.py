"""Dimensions: arithmetic against Python's ints, text, proofs against evaluation, guards, broadcasting."""

from __future__ import annotations

import copy
import itertools
import operator
import pickle
import threading

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from twofold.ir import dim_bounds, dims
from twofold.ir.dims import Dim, Guard, UndecidedDim, parse, recording, symbol

NAMES = ("n", "m", "b")
n, m, b = map(symbol, NAMES)

OPS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod}
envs = st.fixed_dictionaries({name: st.integers(0, 9) for name in NAMES})
leaves = st.sampled_from(NAMES) | st.integers(-7, 7)
polynomials = st.recursive(leaves, lambda t: st.tuples(st.sampled_from("+-*"), t, t), max_leaves=6)
divisors = (st.integers(-6, 6).filter(bool) | st.sampled_from(NAMES)
            | st.tuples(st.sampled_from("+-*"), st.sampled_from(NAMES), leaves))
trees = st.recursive(
    leaves,
    lambda t: st.tuples(st.sampled_from(["+", "-", "*", "max", "min"]), t, t)
    | st.tuples(st.sampled_from(["//", "%"]), t, divisors),
    max_leaves=7)


def as_dim(tree):
    """A Dim built by arithmetic from a tree of operations."""
    if isinstance(tree, str):
        return symbol(tree)
    if isinstance(tree, int):
        return tree
    op, left, right = tree[0], as_dim(tree[1]), as_dim(tree[2])
    if op in ("max", "min"):
        return (dims.maximum if op == "max" else dims.minimum)(left, right)
    return OPS[op](left, right)


def as_int(tree, env):
    """The same tree by Python's own ints."""
    if not isinstance(tree, tuple):
        return env[tree] if isinstance(tree, str) else tree
    op, left, right = tree[0], as_int(tree[1], env), as_int(tree[2], env)
    return {"max": max, "min": min}.get(op, OPS.get(op))(left, right)


def value(d, env):
    return dims.evaluate((d,), env)[0]


def expected(tree, env):
    try:
        return as_int(tree, env)
    except ZeroDivisionError:
        assume(False)


@settings(max_examples=400, deadline=None)
@given(trees, envs)
def test_arithmetic_agrees_with_ints(tree, env):
    try:
        d = as_dim(tree)
    except ZeroDivisionError:
        with pytest.raises(ZeroDivisionError):
            as_int(tree, env)
        return
    wanted = expected(tree, env)
    assert value(d, env) == wanted


@settings(max_examples=300, deadline=None)
@given(trees)
def test_text_parses_back(tree):
    try:
        d = as_dim(tree)
    except ZeroDivisionError:
        assume(False)
    assert parse(str(d)) == d
    assert str(parse(str(d))) == str(d)
    assert pickle.loads(pickle.dumps(d)) == d


@settings(max_examples=200, deadline=None)
@given(trees, trees, envs)
def test_substitution_agrees_with_evaluation(tree, inner, env):
    try:
        d, replacement = as_dim(tree), as_dim(inner)
        assume(isinstance(d, Dim) and value(replacement, env) >= 0)
        substituted = d.substitute({"n": replacement})
        assert value(substituted, env) == d.evaluate({**env, "n": value(replacement, env)})
    except ZeroDivisionError:
        assume(False)


@settings(max_examples=300, deadline=None)
@given(trees)
def test_samples_are_values_and_lie_within_bounds(tree):
    try:
        d = as_dim(tree)
        thousand = value(d, dict.fromkeys(NAMES, 1000))
    except ZeroDivisionError:
        assume(False)
    low, high = dims.bounds(d)
    assert thousand in dim_bounds.samples(d)
    for sample in dim_bounds.samples(d):
        assert (low is None or low <= sample) and (high is None or sample <= high)


@settings(max_examples=400, deadline=None)
@given(trees, trees, envs)
def test_decisions_never_contradict_evaluation(left, right, env):
    try:
        a, c = as_dim(left), as_dim(right)
    except ZeroDivisionError:
        assume(False)
    x, y = expected(left, env), expected(right, env)
    low, high = dims.bounds(a)
    assert low is None or low <= x
    assert high is None or x <= high
    assert dims.decide_eq(a, c) in (None, x == y)
    assert dims.decide_le(a, c) in (None, x <= y)
    for op, function in COMPARISONS.items():
        assert dims.decide(a, op, c) in (None, function(x, y))


COMPARISONS = {"==": operator.eq, "!=": operator.ne, "<=": operator.le, "<": operator.lt, ">=": operator.ge,
               ">": operator.gt}


@settings(max_examples=200, deadline=None)
@given(polynomials, polynomials, st.integers(1, 8))
def test_multiples_of_the_divisor_come_out(x, y, k):
    x, y = as_dim(x), as_dim(y)
    assert (x + k * y) // k == x // k + y
    assert (x + k * y) % k == x % k
    assert (k * y) // k == y
    assert k * (x // k) + x % k == x


@settings(max_examples=100, deadline=None)
@given(polynomials, polynomials)
def test_exact_symbolic_division(x, y):
    x, y = as_dim(x), as_dim(y)
    assume(y != 0)
    assert (x * y) // y == x
    assert (x * y) % y == 0


@settings(max_examples=100, deadline=None)
@given(trees, trees)
def test_max_and_min_laws(x, y):
    try:
        x, y = as_dim(x), as_dim(y)
    except ZeroDivisionError:
        assume(False)
    assert dims.decide_eq(dims.maximum(x, y), dims.maximum(y, x))
    assert dims.decide_eq(dims.minimum(x, y), dims.minimum(y, x))
    assert dims.maximum(x, y) + dims.minimum(x, y) == x + y
    assert dims.maximum(x + n, y + n) == dims.maximum(x, y) + n
    assert dims.minimum(-x, -y) == -dims.maximum(x, y)


@pytest.mark.parametrize("given_text, canonical", [
    ("n", "n"), ("n*4", "4*n"), ("(4*n)//4", "n"), ("(n + 2) - 2", "n"), ("(2*n)%2", "0"), ("(2*n + 1)%2", "1"),
    ("(n - 3)//2 + 1", "(n - 1)//2"), ("n//2 + 1", "n//2 + 1"), ("-(-n//3)", "(n + 2)//3"), ("-(-n//2)", "(n + 1)//2"),
    ("n - 2*(n//2)", "n%2"), ("n//2*2 + n%2", "n"), ("n//2//3", "n//6"), ("(n//2 + 1)//2", "(n + 2)//4"),
    ("(n%3)//4", "0"), ("(n%3)%5", "n%3"), ("(6*n + 4)//4", "(3*n + 2)//2"), ("n*m//n", "m"), ("n*m//(2*n)", "m//2"),
    ("n//(n + 1)", "0"),
    ("-1//n", "-1"), ("-1%n", "n - 1"), ("n%m", "n%m"), ("b*(n%m)", "b*(n%m)"), ("0 - n", "-n"), ("3 - n", "3 - n"),
    ("n//-2", "-((n + 1)//2)"), ("n%-3", "(n + 2)%3 - 2"), ("max(n, n + 1)", "n + 1"), ("min(n, n + 1)", "n"),
    ("max(n, m) + min(n, m)", "m + n"), ("max(n, 0)", "n"), ("max(0, n - m)*2", "2*max(n - m, 0)"),
    ("max(2*n, 2*m)", "2*max(m, n)"), ("min(3, n)", "min(n, 3)"), ("(n + 1)*(n - 1)", "n*n - 1"),
    ("2*((h - 3)//2 + 1)*b", "2*b*((h - 1)//2)"), ("-2*((n + 1)//3)", "-2*((n + 1)//3)"), ("7", "7"), ("-(2)", "-2"),
])
def test_canonical_text(given_text, canonical):
    d = parse(given_text)
    assert str(d) == canonical
    assert parse(canonical) == d
    for values in itertools.product(range(1, 8), repeat=3):
        env = dict(zip("nmb", values, strict=True), h=7)
        assert value(d, env) == value(parse(canonical), env)


def test_constant_results_are_ints():
    for d in (n - n, 0 * n, (2 * n) % 2, n // n, (4 * n) // n, dims.minimum(n, 0), n - n + 3, 5 % symbol("k") * 0):
        assert type(d) is int
    assert dims.is_static(n - n) and not dims.is_static(n)
    assert dims.all_static((1, 2)) and not dims.all_static((1, n))


def test_reflected_and_numpy_operands():
    assert 3 + n == n + 3 and 3 - n == -(n - 3) and 3 * n == n * 3
    assert np.int64(3) * n == 3 * n and n + np.int32(1) == n + 1 and np.int64(7) - n == 7 - n
    assert (7 // n).evaluate({"n": 2}) == 3 and (7 % n).evaluate({"n": 4}) == 3
    assert divmod(n, 4) == (n // 4, n % 4) and +n is n
    with pytest.raises(TypeError):
        n + 1.5
    with pytest.raises(TypeError):
        assert n < 3
    with pytest.raises(TypeError):
        range(n)
    with pytest.raises(ZeroDivisionError):
        n // 0
    with pytest.raises(ZeroDivisionError):
        n % 0


def test_equality_is_structural_and_hashable():
    assert n == symbol("n") and n != m and n != "n" and n != 1
    assert len({n + 1, 1 + n, (2 * n + 2) // 2}) == 1
    assert copy.deepcopy(n // 2) == n // 2
    assert (n * m // 3).symbols() == {"n", "m"}


def test_evaluation_names_what_is_missing():
    with pytest.raises(KeyError, match="m"):
        (n + m).evaluate({"n": 1})
    with pytest.raises(ZeroDivisionError):
        (n // m).evaluate({"n": 1, "m": 0})


@pytest.mark.parametrize("name", ["", "1n", "n m", "max", "min", "n-1", "é"])
def test_symbol_names_are_checked(name):
    with pytest.raises(ValueError, match="cannot name a dimension"):
        symbol(name)


@pytest.mark.parametrize("text", ["", "n +", "(n", "n)", "n n", "n // 0", "n % 0", "n / 2", "2 ** n", "max n", "max(n",
                                  "n.real", "__import__('os')", "(" * 5000 + "n" + ")" * 5000, "-" * 9 + "*n", "é"])
def test_malformed_text_is_refused(text):
    with pytest.raises(ValueError):
        parse(text)


def test_long_chains_of_signs_and_terms_parse():
    assert parse("-" * 5001 + "n") == -n
    assert parse(" + ".join(["n"] * 2000)) == 2000 * n


@pytest.mark.parametrize("a, op, c", [
    ("n", "<=", "n + 1"), ("0", "<=", "n"), ("n", "!=", "n + 1"), ("2*n", "!=", "3"), ("6*n + 3", "!=", "4*m"),
    ("n//2", "<=", "n"), ("n", "<=", "2*n"), ("(n + 1)//2", ">=", "n//2"), ("(n + 1)//2 + n//2", "==", "n"),
    ("n%4", "<", "4"), ("n%4", "<=", "n"), ("b*(n%2)", "<=", "b"), ("max(n, m)", ">=", "m"), ("min(n, m)", "<=", "n"),
    ("max(n - 3, 0)", "<=", "n"), ("max(n - m, 0)", "<=", "n"), ("n*n", ">=", "n"), ("n*n + 2", ">=", "3*n"),
    ("n//m", "<=", "n"), ("m*(n//m)", "<=", "n"), ("n%m", "<", "m"), ("n%m", ">=", "0"), ("n*m + 1", ">", "0"),
    ("(2*n)//3 + (n + 2)//3", "==", "n"), ("4*((n + 3)//4)", ">=", "n"), ("4*((n + 3)//4)", "<", "n + 4"),
    ("min(max(n, 2), 5)", "<=", "5"), ("n//2//2", "<=", "n//3"),
])
def test_provable(a, op, c):
    assert dims.decide(parse(a), op, parse(c)) is True
    assert Guard(parse(a), op, parse(c)).negated() and dims.decide(parse(a), dims._NEGATED[op], parse(c)) is False


@pytest.mark.parametrize("a, op, c", [("n", "==", "m"), ("n", "<=", "m"), ("n", "==", "4"), ("2*n", "==", "4"),
                                      ("n%3", "==", "0"), ("n*m", ">=", "n"), ("n", ">", "0"), ("n//2", "<", "n"),
                                      ("-1//(m - n)", "==", "-1"), ("b//(n - m)", "<=", "b")])
def test_undecidable(a, op, c):
    assert dims.decide(parse(a), op, parse(c)) is None


def test_decide_refuses_other_operators():
    with pytest.raises(ValueError, match="no comparison"):
        dims.decide(n, "=<", m)


def test_ints_are_decided_plainly():
    assert dims.decide_eq(3, 3) is True and dims.decide_eq(3, 4) is False
    assert dims.decide_le(3, 4) is True and dims.decide_le(4, 3) is False
    assert dims.require_eq(3, 3) and not dims.require(3, "<", 3)


def test_require_records_what_it_must_assume():
    with recording() as guards:
        assert dims.require_eq(n, 4)
        assert dims.require(m, "<=", 3)
        assert dims.require(m, "!=", 0)
    assert guards == [Guard(n, "==", 4), Guard(m, "<=", 3), Guard(m, "!=", 0)]
    assert [str(g) for g in guards] == ["n == 4", "m <= 3", "m != 0"]
    assert all(Guard.parse(str(g)) == g for g in guards)


def test_require_does_not_ask_twice():
    with recording() as guards:
        assert dims.require_eq(n, m)
        assert dims.require_eq(m, n) and dims.require_eq(2 * n * b, 2 * m * b) and not dims.require(n, "<", m)
        assert dims.require(b, ">=", 3)
        assert dims.require(b, ">", 1) and dims.require(b + n, "!=", 2) and not dims.require_eq(b, 2)
        assert dims.require(b - n, "!=", 5)
        assert dims.require(2 * b, "!=", 2 * n + 10) and not dims.require_eq(m + 5, b)
    assert [str(g) for g in guards] == ["n == m", "b >= 3", "b - n != 5"]


def test_equations_are_solved_in_turn():
    with recording() as guards:
        assert dims.require_eq(n, m + 1) and dims.require_eq(m, 2 * b) and dims.require_eq(b, 4)
        assert dims.require_eq(n, 9) and dims.require_eq(n * m, 72)
        assert not dims.require_eq(n, 8)
    assert len(guards) == 3


def test_a_size_that_others_tell_is_still_no_less_than_zero():
    a, b, c = map(symbol, "abc")
    with recording() as guards:
        assert dims.require(a, "==", b + c)
        assert dims.require(a, ">=", 0) and dims.require(b, ">=", 0) and dims.require(c, ">=", 0)
        assert dims.require(b, "<=", a) and dims.require(c, "<=", a)
        assert dims.require(2 * a, ">=", b)
    assert [str(g) for g in guards] == ["a == b + c"]


def test_require_follows_proofs_without_a_guard():
    with recording() as guards:
        assert dims.require(n + 1, ">", n) and not dims.require(n, ">", n) and not dims.require_eq(2 * n, 5)
    assert guards == []


def test_undecided_outside_a_recording():
    with pytest.raises(UndecidedDim, match=r"n == m depends on the unknown m, n"):
        dims.require_eq(n, m)
    with pytest.raises(UndecidedDim):
        bool(n)
    assert bool(n + 1)
    with recording() as guards:
        assert bool(n)
    assert [str(g) for g in guards] == ["n != 0"]


def test_recordings_nest_apart_and_end_with_errors():
    with recording() as outer:
        dims.require_eq(n, 1)
        with recording() as inner:
            dims.require_eq(n, 2)
        with pytest.raises(RuntimeError), recording():
            raise RuntimeError
        dims.require_eq(m, 3)
    assert [str(g) for g in outer] == ["n == 1", "m == 3"] and [str(g) for g in inner] == ["n == 2"]


def test_recordings_belong_to_their_thread():
    failures = []

    def other():
        try:
            dims.require_eq(n, 1)
        except UndecidedDim:
            failures.append("undecided")

    with recording() as guards:
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert failures == ["undecided"] and guards == []


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(trees, st.sampled_from(sorted(COMPARISONS)), trees), min_size=1, max_size=5), envs)
def test_answers_hold_wherever_the_guards_do(questions, env):
    try:
        sides = [(as_dim(left), op, as_dim(right)) for left, op, right in questions]
        with recording() as guards:
            answers = [dims.require(*side) for side in sides]
        assume(all(g.holds(env) for g in guards))
    except ZeroDivisionError:
        assume(False)
    for answer, (left, op, right) in zip(answers, questions, strict=True):
        assert answer == COMPARISONS[op](expected(left, env), expected(right, env))


def test_guard_holds():
    guard = Guard(n // 2, ">=", m)
    assert guard.holds({"n": 5, "m": 2}) and not guard.holds({"n": 3, "m": 2})
    assert guard.symbols() == {"n", "m"}
    with pytest.raises(KeyError):
        guard.holds({"n": 1})
    with pytest.raises(AttributeError):
        guard.op = "=="
    for text in ("n", "n == m == b", "n = m", "n == "):
        with pytest.raises(ValueError):
            Guard.parse(text)


# Broadcasting

shapes = st.lists(st.sampled_from([0, 1, 1, 2, 3]), max_size=4).map(tuple)


@settings(max_examples=300, deadline=None)
@given(st.lists(shapes, max_size=4))
def test_broadcast_shapes_agrees_with_numpy(given_shapes):
    try:
        wanted = np.broadcast_shapes(*given_shapes)
    except ValueError:
        with pytest.raises(dims.BroadcastError) as caught:
            dims.broadcast_shapes(*given_shapes)
        sizes = [s for s in caught.value.sizes if s != 1]
        assert len(set(sizes)) > 1 and caught.value.axis < max(map(len, given_shapes))
        return
    assert dims.broadcast_shapes(*given_shapes) == wanted


symbolic_sizes = st.sampled_from([0, 1, 3, n, m, n + 1, 2 * n, m // 2])


@settings(max_examples=400, deadline=None)
@given(st.lists(st.lists(symbolic_sizes, max_size=3), min_size=1, max_size=3), envs)
def test_symbolic_broadcasting_holds_under_its_guards(given_shapes, env):
    concrete = [dims.evaluate(s, env) for s in given_shapes]
    try:
        with recording() as guards:
            result = dims.broadcast_shapes(*given_shapes)
    except dims.BroadcastError:
        if not guards_hold(guards, env):
            return
        with pytest.raises(ValueError):
            np.broadcast_shapes(*concrete)
        return
    assume(guards_hold(guards, env))
    assert dims.evaluate(result, env) == np.broadcast_shapes(*concrete)


def guards_hold(guards, env):
    return all(g.holds(env) for g in guards)


@pytest.mark.parametrize("a, c, result, guards", [
    (1, n, n, []), (n, 1, n, []), (n, n, n, []), (n, 4, 4, ["n == 4"]), (4, n, 4, ["n == 4"]), (n, m, n, ["n == m"]),
    (n, 0, 0, ["n == 0"]), (2 * n + 1, 4, 4, ["2*n + 1 == 1"]), (n + 1, n, n, ["n + 1 == 1"]), (5, 1, 5, []),
    (1, 5, 5, []),
])
def test_broadcast_dim(a, c, result, guards):
    with recording() as recorded:
        assert dims.broadcast_dim(a, c) == result
    assert [str(g) for g in recorded] == guards


@pytest.mark.parametrize("a, c", [(2, 3), (n + 5, 3), (2 * n, 3), (n + 2, n + 3), (0, 2)])
def test_broadcast_dim_refuses(a, c):
    with recording() as recorded, pytest.raises(ValueError, match="do not broadcast"):
        dims.broadcast_dim(a, c)
    assert recorded == []


def test_broadcast_needs_a_recording_for_guards():
    with pytest.raises(UndecidedDim):
        dims.broadcast_shapes((n,), (m,))
    assert dims.broadcast_shapes((n, 1), (1, n), (1,)) == (n, n)


def test_broadcast_error_says_where():
    with pytest.raises(dims.BroadcastError) as caught:
        dims.broadcast_shapes((32, 8), (32,))
    assert (caught.value.axis, caught.value.sizes) == (1, (8, 32))
    assert str(caught.value) == ("Shapes (32, 8) and (32,) do not broadcast: axis 1 of the result has sizes 8 and 32; "
                                 "sizes must match or be 1.")


def test_shape_helpers():
    assert dims.numel(()) == 1 and dims.numel((2, 3)) == 6 and dims.numel((n, 0)) == 0
    assert dims.numel((n, 4, m)) == 4 * n * m and dims.numel((n, 4)) // (2 * n) == 2
    assert dims.evaluate((n, 3, n // 2), {"n": 5}) == (5, 3, 2)
    assert dims.substitute((n, 3), {"n": m + 1}) == (m + 1, 3)
    assert dims.symbols_of((n, 3, m * b)) == {"n", "m", "b"}
    assert dims.ceil_div(7, 2) == 4 and dims.ceil_div(n, 2).evaluate({"n": 7}) == 4
    assert dims.as_dim(np.int64(3)) == 3 and dims.as_dim("n//2") == n // 2 and dims.as_dim(n) is n
    for bad, error in ((1.5, TypeError), (None, TypeError), (-1, ValueError), ("n +", ValueError)):
        with pytest.raises(error):
            dims.as_dim(bad)


def test_what_numbers_or_signs_decide_is_not_searched_for():
    boxes = ((13 * n + 83) // 4 // 8) * ((13 * m + 979) // 4 // 64)
    searches = dim_bounds._lowest.cache_info().misses
    assert isinstance((127 * (64 + dims.maximum(boxes, 64))) // 64, Dim)
    assert dim_bounds.at_least(dims.maximum((boxes * n - m * n // 3) // 7, 1), 1)
    assert dim_bounds._lowest.cache_info().misses == searches
