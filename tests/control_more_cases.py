"""Small functions with control flow in calls, builtins, tensor arrays, tapes and variables; see `control_cases.py`."""

from __future__ import annotations

import functools
import math

import numpy as np
from control_cases import CASES, V, W, case, f32, i32

import twofold as tf

__all__ = ["CASES"]


# -- conditional expressions and logic ---------------------------------------------------------------
@case((f32(2.0),), (f32(-2.0),))
def ternary(x):
    return x if x > 0 else -x


@case((f32(2.0),), (f32(-2.0),), (f32(20.0),))
def nested_ternary(x):
    return 1.0 if x > 10 else (x if x > 0 else -x)


@case((f32(2.0), f32(3.0)), (f32(-2.0), f32(3.0)), (f32(2.0), f32(-3.0)))
def both(x, y):
    return x * 2 if x > 0 and y > 0 else y


@case((f32(2.0), f32(3.0)), (f32(-2.0), f32(-3.0)), (f32(2.0), f32(-3.0)))
def either(x, y):
    if x > 0 or y > 0:
        return x
    return y


@case((f32(2.0),), (f32(-2.0),))
def negated(x):
    if not x > 0:
        return x
    return -x


@case((f32(2.0),), (f32(-2.0),), (f32(20.0),))
def chained(x):
    if 0 < x < 10:
        x = x + 100
    return x


@case((i32(2),), (i32(3),))
def equality(n):
    if n == 2:
        n = n * 10
    if n != 3:
        n = n + 1
    return n


@case((f32(2.0),), (f32(-2.0),))
def logic_with_python(x):
    on = True
    if on and x > 0:
        return x + 1
    if x > -1 or not on:
        return x
    return x * 7


@case((f32(0.0), f32(2.0)), (f32(4.0), f32(2.0)))
def and_is_lazy(x, y):
    n = tf.constant(0)
    while n < 3 and x > y:
        n += 1
        x = x - 1
    return n, x


# -- functions -----------------------------------------------------------------------------------------
def helper(x):
    if x > 0:
        return x + 10
    return x - 10


def helper_loop(x, n):
    for _ in tf.range(n):
        x = x * 2.0
    return x


@case((f32(2.0),), (f32(-2.0),))
def calls_helper(x):
    return helper(x) * 2


@case((f32(2.0), i32(3)), (f32(-2.0), i32(0)))
def calls_in_branch(x, n):
    if x > 0:
        x = helper(x)
    else:
        x = helper_loop(x, n=n)
    return x


@case((f32(2.0),), (f32(-2.0),))
def inner_function(x):
    def absolute(t):
        if t > 0:
            return t
        return -t
    return absolute(x) + absolute(x - 1)


@case((f32(2.0),), (f32(-2.0),))
def inner_lambda(x):
    pick = lambda t: t if t > 0 else t * 100  # noqa: E731
    return pick(x)


@case((f32(2.0),), (f32(-2.0),))
def closure_changes(x):
    total = x

    def add(t):
        nonlocal total
        if t > 0:
            total = total + t
    add(x)
    add(x + 1)
    return total


@case((f32(2.0),), (f32(-2.0),))
def partial_call(x):
    return functools.partial(helper_loop, n=tf.constant(2))(x)


class Scale:
    factor = 3.0

    def __init__(self, offset):
        self.offset = offset

    def apply(self, x):
        if x > 0:
            return x * self.factor
        return x + self.offset

    def __call__(self, x):
        return self.apply(x) if x > 1 else x

    @staticmethod
    def halve(x):
        while x > 1:
            x = x / 2.0
        return x

    @classmethod
    def twice(cls, x):
        return x * cls.factor if x > 0 else x

    @property
    def size(self):
        return 5


class Bigger(Scale):
    def apply(self, x):
        y = super().apply(x)
        if y > 5:
            y = y + 1000
        return y


@case((f32(2.0),), (f32(-2.0),), (f32(0.5),))
def methods(x):
    s = Scale(7.0)
    return s.apply(x), s(x), s.halve(x), s.twice(x), x * s.size


@case((f32(2.0),), (f32(-2.0),))
def super_call(x):
    return Bigger(7.0).apply(x)


@case((f32(2.0),), (f32(-2.0),))
def attribute_in_branch(x):
    s = Scale(tf.constant(0.0))
    if x > 0:
        s.offset = x
    return s.apply(-x) + s.offset


@case((f32(2.0),), (f32(-2.0),))
def dict_in_branch(x):
    d = {"a": x}
    if x > 0:
        d["a"] = x * 5
    return d["a"]


def defaults(x, k=2, *rest, scale=10.0, **more):
    if x > k:
        x = x * scale
    for r in rest:
        x = x + r
    return x + more.get("extra", 0.0)


@case((f32(2.0),), (f32(-2.0),))
def call_forms(x):
    return defaults(x), defaults(x, 1), defaults(x, -5, x, x, scale=2.0, extra=1.0), defaults(*[x, 3], scale=1.0)


def recursive(x, depth):
    if depth == 0:
        return x
    if x > 0:
        x = x - 1
    return recursive(x, depth - 1)


@case((f32(2.0),), (f32(-2.0),))
def recursion(x):
    return recursive(x, 4)


@case((f32(2.0),), (f32(-2.0),))
def comprehension(x):
    return tf.stack([helper(x * i) for i in [1.0, 2.0, 3.0]])


@case((f32(2.0),), (f32(-2.0),))
def python_library(x):
    return x * math.sqrt(4.0) + np.float32(1.0)


@case((f32(2.0),), (f32(-2.0),))
def with_statement(x):
    with tf.device("cpu"):
        if x > 0:
            x = x + 1
    return x


@case((f32(2.0),), (f32(-2.0),))
def try_statement(x):
    try:
        if x > 0:
            x = x + 1
    finally:
        x = x * 2
    return x


@case((f32(2.0),))
def mapped(x):
    return sum(map(helper, [x, -x, x * 2]))


# -- builtins ------------------------------------------------------------------------------------------
@case((V,), (W,))
def length(v):
    s = 0.0
    for i in range(len(v)):
        s += v[i]
    return s, len(v) * 2


@case((f32(2.7),), (f32(-2.7),))
def to_int_and_float(x):
    return int(x), float(int(x)) + 0.5


@case((f32(2.0), f32(3.0)), (f32(3.0), f32(2.0)))
def max_and_min(x, y):
    return max(x, y), min(x, y), abs(y - x * 10)


@case((V,), (W,))
def any_and_all(v):
    if any(v > 0) and not all(v > 0):
        return v
    return -v


@case((V,), (W,))
def sum_of(v):
    return sum(v)


@case((f32(2.0),), (f32(-2.0),))
def assert_passes(x):
    assert x > -10, "too small"
    return x + 1


@case((f32(2.0),), (f32(-20.0),))
def assert_may_fail(x):
    tf.debugging.assert_greater(x, -10.0)
    return x + 1


@case((f32(2.0),), (f32(-2.0),))
def list_of_python(x):
    items = []
    for i in range(3):
        items.append(x * i)
    last = items.pop()
    return tf.stack(items), last


@case((f32(2.0),), (f32(-2.0),))
def walrus(x):
    if (y := x * 2) > 0:
        return y
    return y - 1


@case((f32(2.0),), (f32(-2.0),))
def augmented(x):
    y = x
    if x > 0:
        y += 1
        y *= 2
        y **= 2
    else:
        y -= 1
        y /= 2
    return y


@case((f32(2.0),), (f32(-2.0),))
def delete(x):
    t = x * 2
    if x > 0:
        x = x + t
    del t
    return x


# -- functions of control flow ---------------------------------------------------------------------------
@case((f32(2.0),), (f32(-2.0),))
def cond_function(x):
    return tf.cond(x > 0, lambda: x * 2, lambda: x - 1)


@case((f32(2.0),), (f32(-2.0),))
def cond_structure(x):
    return tf.cond(x > 0, lambda: {"a": x, "b": [x, 1]}, lambda: {"a": x - 1, "b": [-x, 1]})


@case((f32(2.0),), (f32(-2.0),), (f32(20.0),))
def case_function(x):
    return tf.case([(x > 10, lambda: x), (x > 0, lambda: x * 2)], default=lambda: x - 1)


@case((i32(0),), (i32(2),), (i32(7),), (i32(-1),))
def switch(n):
    return tf.switch_case(n, [lambda: n + 1, lambda: n + 2, lambda: n + 3])


@case((i32(0),), (i32(2),), (i32(7),))
def switch_default(n):
    return tf.switch_case(n, {0: lambda: n + 1, 2: lambda: n + 2}, default=lambda: n * 100)


@case((i32(5),), (i32(0),))
def while_function(n):
    return tf.while_loop(lambda i, s: i < n, lambda i, s: (i + 1, s + i), (tf.constant(0), tf.constant(0)))


@case((i32(5),), (i32(2),))
def while_limited(n):
    return tf.while_loop(lambda i: i < n, lambda i: [i + 1], [tf.constant(0)], maximum_iterations=3)


@case((i32(5),))
def while_invariants(n):
    _, v = tf.while_loop(lambda i, v: i < n, lambda i, v: (i + 1, tf.concat([v, [i]], 0)),
                         (tf.constant(0), tf.constant([7])),
                         shape_invariants=(tf.TensorShape([]), tf.TensorShape([None])))
    return v


@case((V,), (W,))
def mapping(v):
    return tf.map_fn(lambda t: t * t if t > 0 else t, v)


@case((V,), (W,))
def scanning(v):
    forward = tf.scan(lambda a, t: a * 0.5 + t, v)
    return forward, tf.scan(lambda a, t: a + t, v, initializer=tf.constant(1.0), reverse=True)


@case((V,), (W,))
def folding(v):
    return tf.foldl(lambda a, t: a * 0.5 + t, v), tf.foldr(lambda a, t: a * 0.5 - t, v, initializer=2.0)


@case((np.arange(6, dtype=np.float32).reshape(3, 2),))
def vectorized(m):
    return tf.vectorized_map(lambda row: tf.reduce_sum(row * row), m)


# -- tensor arrays -----------------------------------------------------------------------------------------
@case((i32(5),), (i32(1),))
def array_written(n):
    ta = tf.TensorArray(tf.int32, size=n)
    for i in tf.range(n):
        ta = ta.write(i, i * i)
    return ta.stack()


@case((i32(5),), (i32(0),))
def array_growing(n):
    ta = tf.TensorArray(tf.float32, size=0, dynamic_size=True, element_shape=[2])
    for i in tf.range(n):
        ta = ta.write(i, tf.fill([2], tf.cast(i, tf.float32)))
    return ta.stack(), ta.size()


@case((V,), (W,))
def array_unstacked(v):
    ta = tf.TensorArray(tf.float32, size=tf.shape(v)[0]).unstack(v)
    s = 0.0
    for i in tf.range(ta.size()):
        s += ta.read(i) * 2.0
    return s


@case((V,), (W,))
def array_of_positive(v):
    ta = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
    for x in v:
        if x > 0:
            ta = ta.write(ta.size(), x)
    return ta.stack()


# -- with tapes and variables ---------------------------------------------------------------------------
@case((f32(2.0),), (f32(-2.0),))
def gradient_of_branch(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x if x > 0 else x * 3.0
    return tape.gradient(y, x)


@case((f32(2.0),), (f32(1.5),))
def gradient_of_loop(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x
        while y < 50:
            y = y * x
    return y, tape.gradient(y, x)


@case((V,), (W,))
def gradient_of_for(v):
    with tf.GradientTape() as tape:
        tape.watch(v)
        s = tf.constant(0.0)
        for x in v:
            if x > 0:
                s += x * x
            else:
                s += x
    return tape.gradient(s, v)


@case((f32(2.0),), (f32(-2.0),))
def tape_in_branch(x):
    if x > 0:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x * x * x
        g = tape.gradient(y, x)
    else:
        g = x
    return g


COUNTER = tf.Variable(1.0)
TOTAL = tf.Variable([0.0, 0.0])


@case((f32(2.0),), (f32(-2.0),))
def variable_in_branch(x):
    COUNTER.assign(1.0)
    if x > 0:
        COUNTER.assign_add(x)
    return COUNTER.read_value() * 2


@case((i32(3),), (i32(0),))
def variable_in_loop(n):
    TOTAL.assign([0.0, 1.0])
    for i in tf.range(n):
        TOTAL.assign_add([1.0, 2.0])
        if i == 1:
            TOTAL.assign(TOTAL * 10.0)
    return TOTAL + 0.0


@case((f32(3.0),), (f32(0.0),))
def variable_as_condition(x):
    COUNTER.assign(0.0)
    while x > COUNTER:
        COUNTER.assign_add(1.5)
    return COUNTER.read_value()


@case((f32(2.0),), (f32(-2.0),))
def assert_with_values(x):
    assert x > 0, f"bad value {x}"
    return x


@case((i32(5),), (i32(0),))
def walrus_in_while(n):
    while (m := n - 1) > 0:
        n = m
    return n, m


@case((i32(3),))
def item_defined_in_loop(n):
    actual = {}
    for i in tf.range(n):
        actual["last"] = i
    return actual


@case((i32(9),), (i32(1),))
def defined_in_some_rounds(n):
    best = tf.constant(-1)
    for i in tf.range(n):
        if i * i % 7 > best:
            best, where = i * i % 7, i
    return best, where


@case((V, i32(4)), (V, i32(2)))
def mask_defined_in_some_rounds(v, n):
    for i in tf.range(n):
        if i == 1:
            kept = tf.boolean_mask(v, v > 0)
    return kept


@case((i32(4),), (i32(1),))
def return_inside_with(n):
    s = 0
    for i in tf.range(n):
        with tf.device("cpu"):
            if i == 2:
                return s + 100
            s += i
    return s


@case((i32(4),), (i32(1),))
def break_inside_try(n):
    s = 0
    for i in tf.range(n):
        try:
            if i == 2:
                break
            s += i
        finally:
            s += 1000
    return s


@case((f32(2.0),), (f32(-2.0),))
def class_inside(x):
    class Inner:
        def apply(self, y):
            if y > 0:
                return y * 2
            return y
    return Inner().apply(x)


@case((i32(7),))
def nested_for_else(n):
    s = tf.constant(0)
    for i in tf.range(n):
        if i % 2 == 0:
            continue
        for j in tf.range(i):
            if j > 1:
                break
            s += j + i
        else:
            s += 100
    return s


@case((f32(2.0),))
def python_iterator(x):
    s = tf.constant(0.0)
    items = iter([1.0, 2.0, 3.0])
    while True:
        try:
            k = next(items)
        except StopIteration:
            break
        if x > k:
            s += k
    return s


@case((f32(2.0),), (f32(-2.0),))
def list_items_in_branch(x):
    items = [x, x]
    alias = items
    if x > 0:
        items[0] = x * 2
    else:
        items[1] = x * 3
    return items, alias


@case((i32(4),), (i32(0),))
def closure_changes_in_loop(n):
    total = tf.constant(0)

    def add(k):
        nonlocal total
        total = total + k
    for i in tf.range(n):
        add(i)
        if i > 1:
            add(100)
    return total


@case((i32(4),), (i32(-4),))
def closure_changes_through_another(n):
    total = tf.constant(0)

    def add(k):
        nonlocal total
        total = total + k

    def other(k):
        for i in range(3):
            if i > 0:
                add(k)
        return total
    return other(n) + total


# -- errors ------------------------------------------------------------------------------------------------
@case((f32(-2.0),))
def undefined_read(x):
    if x > 0:
        t = x * 2
    return t


@case((i32(0),))
def undefined_after_loop(n):
    for i in tf.range(n):
        last = i
    return last


@case((f32(2.0),))
def value_error_raised(x):
    if x.dtype == tf.float32:
        raise ValueError("no floats")
    return x


@case((V, i32(7)))
def index_out_of_range(v, n):
    s = 0.0
    for i in tf.range(n):
        s += tf.gather(v, i)
    return s


@case((f32(2.0),), (f32(-20.0),))
def tf_assert(x):
    tf.Assert(x > -10, [x])
    return x + 1


# -- None before a loop or branch that assigns ------------------------------------------------------


@case((i32(3),))
def none_before_for(n):
    s = None
    for i in tf.range(n):
        s = i * 2
    return s


@case((i32(3),), (i32(1),))
def none_before_while(n):
    s, t = None, None
    while n > 0:
        s = n * 2
        t = (s, n)
        n -= 1
    return s + t[1]


@case((f32(2.0),), (f32(-2.0),))
def none_before_if(x):
    y = None
    if x > 0:
        y = x
    else:
        y = -x
    return y


@case((f32(2.0),), (f32(-2.0),))
def none_before_if_in_for(x):
    y = None
    for i in tf.range(3):
        if x > 0:
            y = x * tf.cast(i, tf.float32)
        else:
            y = x
    return y
