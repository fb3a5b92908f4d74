"""tf.cond, tf.case, tf.switch_case, tf.while_loop and the loops over slices: arguments, errors, and what they stage."""

from __future__ import annotations

import numpy as np
import pytest

import twofold as tf

BOTH = pytest.mark.parametrize("mode", ["eager", "traced"])


def run(mode, fn, *args):
    return fn(*args) if mode == "eager" else tf.function(fn, fallback=False)(*args)


@BOTH
def test_cond_runs_one_side(mode):
    def fn(x):
        return tf.cond(x > 0, lambda: 1 // x, lambda: x)
    assert int(run(mode, fn, tf.constant(0))) == 0


@BOTH
def test_cond_of_ranks_takes_the_side_that_they_decide(mode):
    def fn(x, y):
        return tf.cond(tf.less(tf.rank(x) + 1, tf.rank(y) + 1), lambda: x[..., None], lambda: x)
    x = tf.ones([3])
    assert [run(mode, fn, x, y).shape for y in (tf.ones([3, 1]), x)] == [(3, 1), (3,)]


@BOTH
def test_cond_with_python_bool_returns_what_the_function_returns(mode):
    seen = []

    def fn(x):
        out = tf.cond(True, lambda: ("text", x), lambda: 1 / 0)
        seen.append(out[0])
        return out[1]
    assert int(run(mode, fn, tf.constant(3))) == 3
    assert seen == ["text"]


@BOTH
@pytest.mark.parametrize("call", [lambda: tf.cond(True, 1, lambda: 2), lambda: tf.cond(True, lambda: 1),
                                  lambda: tf.while_loop(1, lambda i: i, [0]),
                                  lambda: tf.while_loop(lambda i: True, None, [0]),
                                  lambda: tf.case([1]), lambda: tf.case([]), lambda: tf.case([(True, 3)]),
                                  lambda: tf.case([(True, lambda: 1)], default=3),
                                  lambda: tf.switch_case(0, []), lambda: tf.switch_case(0, [1]),
                                  lambda: tf.switch_case(0.5, [lambda: 1]),
                                  lambda: tf.switch_case(0, {"a": lambda: 1})])
def test_wrong_arguments(mode, call):
    with pytest.raises(TypeError):
        run(mode, call)


S = tf.TensorShape
BAD_SHAPES = {
    "fewer": [S([])], "a shape": S([None]), "text": "ab", "number": 3, "by name": {"i": S([])},
    "no shape": [S([]), "a"], "floats": [S([]), [1.5]], "tensor of floats": [S([]), tf.ones([1])],
    "rank": (S([]), S([2, None])), "size": (S([]), S([3])),
    "spec": (None, tf.TensorSpec([3])), "deeper": (S([]), (S([2]), S([3]))),
}
BAD_LIMITS = {"text": "a", "float": 2.5, "bool": True, "pair": [1, 2], "none": [None], "too large": 1 << 63,
              "floats": np.ones(1), "tensor of floats": tf.constant(2.0), "matrix": tf.ones([2, 2], tf.int32),
              "function": len, "deep": [[1]], "items": [1, "a"]}
REFUSED = ([{"shape_invariants": v} for v in BAD_SHAPES.values()]
           + [{"maximum_iterations": v} for v in BAD_LIMITS.values()])


@pytest.mark.parametrize("options", REFUSED, ids=[*(f"shapes {k}" for k in BAD_SHAPES), *BAD_LIMITS])
def test_both_modes_refuse_a_loop_alike(options):
    def message(mode):
        with pytest.raises((TypeError, ValueError, tf.errors.InvalidArgumentError)) as raised:
            run(mode, lambda: tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x + 1.0),
                                            (tf.constant(0), tf.zeros([2])), **options))
        return type(raised.value), str(raised.value)
    assert message("eager") == message("traced")


@BOTH
def test_the_most_rounds_are_counted_in_64_bits(mode):
    def fn(n, most):
        return tf.while_loop(lambda i: i < n, lambda i: [i + 1], [0], maximum_iterations=most)[0]
    for most in (1 << 40, tf.constant(1 << 40, tf.int64), [1 << 40]):
        assert int(run(mode, fn, tf.constant(5), most)) == 5


@BOTH
def test_loops_over_arrays_with_invariants(mode):
    def fn(n):
        array = tf.TensorArray(tf.float32, 0, dynamic_size=True)
        return tf.while_loop(lambda i, a: i < n, lambda i, a: (i + 1, a.write(i, tf.cast(i, tf.float32))),
                             (tf.constant(0), array), shape_invariants=(S([]), S(None)))[1].stack()
    assert run(mode, fn, tf.constant(3)).numpy().tolist() == [0, 1, 2]


def test_invariants_of_a_statement_fit_the_value_before_it():
    @tf.function
    def fn(n):
        v = tf.ones([1])
        while tf.reduce_sum(v) < n:
            tf.autograph.experimental.set_loop_options(shape_invariants=[(v, S([None, None]))])
            v = tf.concat([v, v], 0)
        return v
    with pytest.raises(ValueError, match="'v' has shape .1,. before the loop"):
        fn(tf.constant(3.0))


@BOTH
def test_no_loop_variables(mode):
    with pytest.raises(ValueError, match="loop_vars"):
        run(mode, lambda: tf.while_loop(lambda: True, list, []))


@BOTH
@pytest.mark.parametrize("x", [-5, 3, 30])
def test_case_with_exclusive_and_no_default(mode, x):
    def fn(x):
        return tf.case([(x > 20, lambda: x), (x > 0, lambda: x * 2)], exclusive=True)
    if x == 3:
        assert int(run(mode, fn, tf.constant(x))) == 6
        return
    with pytest.raises(tf.errors.InvalidArgumentError, match="none of the conditions" if x < 0 else "more than one"):
        run(mode, fn, tf.constant(x))


@BOTH
def test_switch_case_numbers(mode):
    def fn(n):
        return tf.switch_case(n, [(5, lambda: n * 10), (2, lambda: n * 100)])
    assert [int(run(mode, fn, tf.constant(v))) for v in (5, 2, 9)] == [50, 200, 90]
    with pytest.raises(ValueError, match="twice"):
        run(mode, lambda: tf.switch_case(0, [(1, lambda: 1), (1, lambda: 2)]))


@BOTH
@pytest.mark.parametrize("kind", [list, tuple])
def test_while_loop_keeps_the_structure(mode, kind):
    def fn(n):
        out = tf.while_loop(lambda i, s: i < n, lambda i, s: [i + 1, {"a": s["a"] * 2, "b": (s["b"][0] + i,)}],
                            kind([tf.constant(0), {"a": tf.constant(1.0), "b": (tf.constant(0),)}]))
        assert type(out) is kind
        return out
    i, s = run(mode, fn, tf.constant(4))
    assert (int(i), float(s["a"]), int(s["b"][0])) == (4, 16.0, 6)


@BOTH
def test_while_loop_by_name(mode):
    def fn(n):
        return tf.while_loop(lambda i, total: i < n, lambda i, total: {"i": i + 1, "total": total + i},
                             {"i": tf.constant(0), "total": tf.constant(0)})
    assert int(run(mode, fn, tf.constant(4))["total"]) == 6


@BOTH
def test_while_loop_of_one_variable_without_a_list(mode):
    assert int(run(mode, lambda n: tf.while_loop(lambda i: i < n, lambda i: i + 2, [tf.constant(0)])[0],
                   tf.constant(5))) == 6


@BOTH
@pytest.mark.parametrize("limit", [0, 2, 9])
def test_maximum_iterations(mode, limit):
    def fn(n):
        return tf.while_loop(lambda i: i < n, lambda i: [i + 1], [0], maximum_iterations=limit)[0]
    assert int(run(mode, fn, tf.constant(5))) == min(limit, 5)


@BOTH
def test_invariants_of_nested_variables(mode):
    def fn(n):
        _, (v, w) = tf.while_loop(
            lambda i, s: i < n, lambda i, s: (i + 1, (tf.concat([s[0], s[0]], 0), tf.concat([s[1], s[1]], 1))),
            (tf.constant(0), (tf.ones([1]), tf.ones([2, 1]))),
            shape_invariants=(None, (tf.TensorShape([None]), tf.TensorSpec([2, None]))))
        return v, w
    v, w = run(mode, fn, tf.constant(3))
    assert (v.shape, w.shape) == ((8,), (2, 8))


def test_counted_loops_say_how_many_rounds():
    def fn(v):
        s = 0.0
        for x in v:
            s += x
        for i in tf.range(10, 0, -3):
            s += tf.cast(i, tf.float32)
        return s, tf.foldl(lambda a, x: a + x, v)
    graph = tf.function(fn).get_concrete_function(tf.TensorSpec([None])).graph
    trips = [str(node.attrs["trips"]) for node in graph.nodes if node.op.name == "while"]
    size = str(graph.inputs[0].dims[0])
    assert trips == [size, "4", size]


def test_values_that_a_loop_only_reads_are_not_carried():
    def fn(n, w):
        s = tf.zeros([3])
        for _ in tf.range(n):
            s = s + w * 2.0
        return s
    graph = tf.function(fn).get_concrete_function(tf.constant(3), tf.ones([3])).graph
    loop, = [node for node in graph.nodes if node.op.name == "while"]
    assert loop.attrs["carried"] == 2  # the number and the sum
    assert len(loop.inputs) > 2


def test_variables_are_carried_only_where_they_change():
    read, written = tf.Variable(2.0), tf.Variable(0.0)

    def fn(n):
        for _ in tf.range(n):
            written.assign_add(read)
        return written.read_value()
    traced = tf.function(fn, fallback=False)
    assert float(traced(tf.constant(3))) == 6.0
    assert float(written) == 6.0
    loop, = [node for node in traced.get_concrete_function(tf.constant(3)).graph.nodes if node.op.name == "while"]
    assert loop.attrs["carried"] == 2
    read.assign(10.0)
    assert float(traced(tf.constant(2))) == 26.0


def test_variables_of_a_failed_run_keep_their_values():
    v = tf.Variable(1.0)

    @tf.function(fallback=False)
    def fn(n):
        for i in tf.range(n):
            v.assign_add(1.0)
            tf.debugging.assert_less(i, 2)
        return v.read_value()
    with pytest.raises(tf.errors.InvalidArgumentError):
        fn(tf.constant(5))
    assert float(v) == 1.0
    assert float(fn(tf.constant(2))) == 3.0


def test_random_draws_in_loops_are_those_of_eager_execution():
    def fn(n):
        s = tf.zeros([2])
        for _ in tf.range(n):
            s = s + tf.random.normal([2])
        return s
    tf.random.set_seed(7)
    want = fn(tf.constant(3)).numpy()
    traced = tf.function(fn, fallback=False)
    tf.random.set_seed(7)
    first = traced(tf.constant(3)).numpy()
    second = traced(tf.constant(3)).numpy()
    assert first.dtype == want.dtype
    assert not np.array_equal(first, second)


@BOTH
def test_map_fn_of_structures(mode):
    def fn(a, b):
        return tf.map_fn(lambda ab: {"sum": ab[0] + ab[1], "row": tf.stack([ab[0], ab[1]])}, (a, b),
                         fn_output_signature={"sum": tf.float32, "row": tf.TensorSpec([2], tf.float32)})
    out = run(mode, fn, tf.constant([1.0, 2.0, 3.0]), tf.constant([10.0, 20.0, 30.0]))
    np.testing.assert_array_equal(out["sum"], [11, 22, 33])
    np.testing.assert_array_equal(out["row"], [[1, 10], [2, 20], [3, 30]])


def test_staged_maps_of_no_slices():
    traced = tf.function(lambda v: (tf.map_fn(lambda t: tf.stack([t, t]), v), tf.foldl(lambda a, t: a + t, v, 5.0)),
                         fallback=False, input_signature=[tf.TensorSpec([None], tf.float32)])
    mapped, folded = traced(tf.zeros([0]))
    assert mapped.shape == (0, 2)
    assert float(folded) == 5.0
    assert [t.numpy().tolist() for t in traced(tf.constant([1.0]))] == [[[1, 1]], 6]


def test_staged_maps_of_varying_shapes_are_an_error():
    traced = tf.function(lambda v: tf.map_fn(lambda t: tf.boolean_mask(v, v > t), v), fallback=False)
    assert traced(tf.ones([3])).shape == [3, 0]
    with pytest.raises(tf.errors.InvalidArgumentError, match="shape"):
        traced(tf.constant([1.0, 2.0, 3.0]))


def test_scan_over_pairs_agrees():
    def fn(v):
        return tf.scan(lambda a, x: (a[0] + x, a[1] * x), v, initializer=(tf.constant(0.0), tf.constant(1.0)))
    v = tf.constant([1.0, 2.0, 3.0, 4.0])
    for want, got in zip(fn(v), tf.function(fn, fallback=False)(v), strict=True):
        np.testing.assert_array_equal(want, got)


@BOTH
@pytest.mark.parametrize("i", [0, 2, -1, -3])
def test_indices_that_are_tensors(mode, i):
    x = np.arange(24, dtype=np.float32).reshape(3, 4, 2)

    def fn(x, i):
        return x[i], x[:, i], x[..., i % 2], x[i, 1:, 0], x[i, tf.newaxis, ..., -1], x[i:], x[:i], x[::2, i]
    got = run(mode, fn, tf.constant(x), tf.constant(i))
    want = (x[i], x[:, i], x[..., i % 2], x[i, 1:, 0], x[i, None, ..., -1], x[i:], x[:i], x[::2, i])
    for a, b in zip(got, want, strict=True):
        np.testing.assert_array_equal(a, b, strict=True)


@BOTH
@pytest.mark.parametrize("bounds", [(0, 5), (-3, -1), (4, 1), (2, 100), (-100, 3)])
def test_slices_between_tensors(mode, bounds):
    x = np.arange(6, dtype=np.int32)

    def fn(x, a, b):
        return x[a:b], x[a:b:2], x[b:a:-1], x[a::-2]
    a, b = bounds
    got = run(mode, fn, tf.constant(x), tf.constant(a), tf.constant(b))
    for p, q in zip(got, (x[a:b], x[a:b:2], x[b:a:-1], x[a::-2]), strict=True):
        np.testing.assert_array_equal(p, q, strict=True)


@BOTH
@pytest.mark.parametrize("step", [1, 2, -1, -3])
def test_slices_with_a_step_that_is_a_tensor(mode, step):
    x = np.arange(7, dtype=np.int32)

    def fn(x, a, b, c):
        return x[a:b:c], x[::c], x[a::c], x[:b:c]
    for a, b in ((1, 5), (5, 1), (-20, 20), (20, -20)):
        got = run(mode, fn, tf.constant(x), tf.constant(a), tf.constant(b), tf.constant(step))
        for p, q in zip(got, (x[a:b:step], x[::step], x[a::step], x[:b:step]), strict=True):
            np.testing.assert_array_equal(p, q, strict=True)


def test_sizes_that_follow_of_a_choice_between_constants():
    @tf.function
    def f(x):
        first = tf.where(tf.logical_not(tf.shape(x)[0] < 3), 1, 0)
        seen.append((x[first:].shape.as_list(), tf.zeros(tf.where([True, False], [5, 6], [7, 8])).shape.as_list()))
        return x
    seen: list[tuple[list[int], list[int]]] = []
    f(tf.zeros([3, 4]))
    assert seen == [([2, 4], [5, 8])]


@BOTH
@pytest.mark.parametrize("i", [3, -4])
def test_index_out_of_bounds(mode, i):
    with pytest.raises(tf.errors.InvalidArgumentError):
        run(mode, lambda x, i: x[i], tf.ones([3]), tf.constant(i))
