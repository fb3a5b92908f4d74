"""The rows that random programs are made of: templates of calls, with what their operands may be.

A template names operands `{a}`, `{b}`, `{c}` and attributes `{axis}`, `{axes}`, `{perm}`, `{keep}`, `{int}`, `{size}`,
`{float}`, `{dtype}`, `{shape}`. Kinds say what operands may be: `f` floating, `c` complex, `n` any number, `r` real,
`i` integer, `b` bool, `*` anything; `=` the dtype of the first operand, `j` int32 or int64. Whether shapes fit is
found by trying. A new op is a new row, or a case in `tests/ops`, which joins by itself.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Row", "FAMILIES"]


class Row(NamedTuple):
    """A call: its template, and the kinds of its operands."""

    text: str
    kinds: str


def _rows(kinds: str, *texts: str) -> list[Row]:
    return [Row(text, kinds) for text in texts]


def _calls(kinds: str, names: str, rest: str = "") -> list[Row]:
    operands = ", ".join(f"{{{letter}}}" for letter in "abc"[:len(kinds)])
    return [Row(f"tf.{name}({operands}{rest})", kinds) for name in names.split()]


FAMILIES: dict[str, list[Row]] = {
    "unary": [
        *_calls("f", "tanh exp sin cos sqrt math.log sigmoid nn.relu nn.gelu math.softplus square math.rsqrt math.erf "
                     "floor math.ceil round math.log1p math.expm1 math.reciprocal atan nn.elu nn.selu math.lgamma "
                     "math.is_nan math.is_finite nn.swish asinh tan math.digamma math.sign"),
        *_calls("n", "negative abs identity square"),
        *_calls("c", "math.real math.imag math.conj math.angle exp sqrt"),
        *_rows("b", "~{a}"), *_rows("i", "tf.bitwise.invert({a})"),
        *_rows("n", "{a} * {a}", "{a} + 1", "{a} - 2", "3 * {a}"), *_rows("f", "{a} / 2.0", "1.0 / {a}", "{a} ** 2.0",
                                                                          "{a} ** {float}", "{a} * {float}"),
        *_rows("r", "tf.clip_by_value({a}, 0, 2)"),
    ],
    "binary": [
        *_rows("n=", "{a} + {b}", "{a} - {b}", "{a} * {b}"), *_rows("f=", "{a} / {b}", "{a} ** {b}"),
        *_rows("r=", "{a} < {b}", "{a} >= {b}", "tf.maximum({a}, {b})", "tf.minimum({a}, {b})", "{a} // {b}",
               "{a} % {b}", "tf.math.divide_no_nan({a}, {b})", "tf.math.squared_difference({a}, {b})"),
        *_rows("*=", "tf.equal({a}, {b})", "tf.not_equal({a}, {b})"), *_rows("f=", "tf.atan2({a}, {b})"),
        *_rows("bb", "{a} & {b}", "{a} | {b}", "tf.math.logical_xor({a}, {b})"),
        *_rows("i=", "tf.bitwise.bitwise_and({a}, {b})", "tf.bitwise.bitwise_xor({a}, {b})"),
        *_rows("f=", "tf.complex({a}, {b})"),
    ],
    "select": [
        *_rows("b*", "tf.where({a}, {b}, tf.zeros_like({b}))"),
        *_rows("f=", "tf.where({a} > {b}, {a}, {b} * 2)", "tf.where({a} < 0, tf.exp({a}), {b})"),
        *_rows("n=b", "tf.where({c}, {a}, {b})"),
    ],
    "cast": [
        *_rows("*", "tf.cast({a}, {dtype})"), *_rows("r", "tf.saturate_cast({a}, {dtype})"),
        *_rows("f", "tf.cast({a}, tf.float32)", "tf.cast({a}, tf.float64)", "tf.stop_gradient({a})"),
    ],
    "reduce": [
        *_rows("n", "tf.reduce_sum({a}, axis={axis}, keepdims={keep})", "tf.reduce_sum({a})",
               "tf.reduce_sum({a}, axis={axes})", "tf.reduce_prod({a}, axis={axis})"),
        *_rows("f", "tf.reduce_mean({a}, axis={axis}, keepdims={keep})", "tf.reduce_mean({a})",
               "tf.reduce_logsumexp({a}, axis={axis})", "tf.math.reduce_std({a}, axis={axis})",
               "tf.math.reduce_variance({a}, axis={axes}, keepdims={keep})", "tf.nn.moments({a}, axes=[{axis}])[1]",
               "tf.norm({a}, axis={axis})"),
        *_rows("r", "tf.reduce_max({a}, axis={axis}, keepdims={keep})", "tf.reduce_min({a}, axis={axes})",
               "tf.argmax({a}, axis={axis})", "tf.argmin({a}, axis={axis})"),
        *_rows("b", "tf.reduce_any({a}, axis={axis})", "tf.reduce_all({a})", "tf.math.count_nonzero({a})"),
    ],
    "view": [
        *_rows("*", "tf.transpose({a})", "tf.transpose({a}, {perm})", "tf.reshape({a}, [-1])",
               "tf.expand_dims({a}, {axis})", "{a}[::-1]", "{a}[1:]", "{a}[..., :-1]", "{a}[..., ::2]", "{a}[0]",
               "tf.reverse({a}, [{axis}])", "tf.squeeze({a})", "{a}[..., None]", "tf.reshape({a}, tf.shape({a})[::-1])",
               "{a}[..., -1]", "tf.broadcast_to({a}, tf.concat([[2], tf.shape({a})], 0))",
               "tf.reshape({a}, [-1, tf.shape({a})[-1]])", "tf.split({a}, 2, axis={axis})[1]",
               "tf.unstack({a}, axis=0)[-1]", "tf.slice({a}, tf.zeros_like(tf.shape({a})), tf.shape({a}))"),
    ],
    "move": [
        *_rows("*=", "tf.concat([{a}, {b}], axis={axis})", "tf.stack([{a}, {b}], axis={axis})"),
        *_rows("*", "tf.tile({a}, tf.ones_like(tf.shape({a})) * 2)", "tf.roll({a}, {int}, axis={axis})",
               "tf.repeat({a}, 2, axis={axis})", "tf.gather({a}, [0, 0], axis={axis})", "tf.zeros_like({a})",
               "tf.pad({a}, [[1, 2]] * {rank})", "tf.gather({a}, tf.range(tf.shape({a})[0])[::-1])",
               "tf.pad({a}, [[1, 1]] * {rank}, mode='REFLECT')", "tf.ones_like({a})"),
        *_rows("*j", "tf.gather({a}, tf.abs({b}) % 2)", "tf.gather({a}, {b})", "tf.gather_nd({a}, {b}[..., None])"),
        *_rows("j", "tf.one_hot({a}, 3)", "tf.sequence_mask(tf.abs({a}), 4)", "tf.range(tf.size({a}))"),
    ],
    "structured": [
        *_rows("f=", "tf.matmul({a}, {b})", "tf.matmul({a}, {b}, transpose_b=True)", "tf.tensordot({a}, {b}, 1)",
               "tf.matmul({a}, {b}, transpose_a=True)", "tf.linalg.matvec({a}, {b})",
               "tf.einsum('ij,kj->ik', {a}, {b})"),
        *_rows("f", "tf.nn.softmax({a}, axis={axis})", "tf.nn.log_softmax({a})", "tf.linalg.diag({a})",
               "tf.matmul({a}, {a}, transpose_b=True)", "tf.linalg.trace({a})",
               "tf.nn.l2_normalize({a}, axis={axis})"),
        *_rows("n", "tf.cumsum({a}, axis={axis}, reverse={keep})",
               "tf.math.cumprod({a}, axis={axis}, exclusive={keep})"),
        # What is computed here and read in several orders.
        *_rows("n", "{a} + tf.transpose({a})", "{a} * {a}[::-1]", "{a} - tf.roll({a}, 1, {axis})",
               "{a} * 2 + tf.transpose({a} * 2)", "({a} + 1)[::-1] * ({a} + 1)",
               "{a} * 2 - tf.transpose({a} * 2, {perm})", "tf.cumsum({a} * 2, axis={axis}) + {a} * 2",
               "tf.reduce_sum({a} * 2, axis={axis}, keepdims=True) - {a} * 2",
               "tf.concat([{a} * 2, ({a} * 2)[::-1]], axis={axis}) * 3", "tf.reverse({a} * 2, [{axis}]) + {a} * 2",
               "{a} * 2 - tf.gather({a} * 2, tf.shape({a})[0] // 2)",
               "{a} * tf.gather({a}, tf.size({a}) - tf.size({a}))"),
        *_rows("f", "tf.nn.softmax({a} * 2) + tf.transpose({a} * 2)",
               "tf.exp({a}) - tf.reduce_max(tf.exp({a}), {axis})",
               "tf.where({a} > 0, {a} * 2, tf.transpose({a} * 2))",
               "tf.matmul({a} * 2, {a} * 2) + tf.transpose({a} * 2)",
               "tf.tanh({a}) * tf.reshape(tf.tanh({a}), tf.shape({a})[::-1])",
               "tf.reduce_sum(tf.exp({a}) * tf.transpose(tf.exp({a})), axis={axis})"),
        *_rows("r", "tf.sort({a}, axis={axis})", "tf.argsort({a}, axis={axis}, stable=True)",
               "tf.math.top_k({a}, 1).values"),
        *_rows("fj", "tf.math.unsorted_segment_sum({a}, tf.abs({b}), 3)", "tf.math.segment_sum({a}, tf.sort({b}))",
               "tf.tensor_scatter_nd_add({a}, [[0]], {a}[:1])",
               "tf.nn.sparse_softmax_cross_entropy_with_logits({b}, {a})"),
        *_rows("f=", "tf.nn.softmax_cross_entropy_with_logits(labels={a}, logits={b})",
               "tf.nn.sigmoid_cross_entropy_with_logits(labels={a}, logits={b})"),
        *_rows("f", "tf.nn.bias_add({a}, tf.reduce_sum({a}, axis=tf.range({rank} - 1)))"),
    ],
    "dynamic": [
        *_rows("*b", "tf.boolean_mask({a}, {b})"), *_rows("r", "tf.boolean_mask({a}, {a} > 0)",
                                                         "tf.unique(tf.reshape({a}, [-1]))[0]"),
        *_rows("b", "tf.where({a})"), *_rows("r", "tf.where({a} > 1)"),
    ],
    "random": [
        # draws of ops are others in functions, as in TensorFlow: only that they happen can be compared
        *_rows("*", "tf.cast(tf.random.normal(tf.shape({a})) < 9, tf.float32)",
               "tf.cast(tf.random.uniform([4], 3, 4, dtype=tf.int32, seed={int}), tf.float64)",
               "tf.random.stateless_uniform(tf.shape({a}), [{int}, 1], 1, 5, dtype=tf.float64)",
               "tf.random.stateless_uniform([4], [1, {int}], maxval=7, dtype=tf.int32)",
               "tf.random.stateless_normal(tf.shape({a}), [{int}, 2])",
               "tf.random.stateless_truncated_normal([3], [{int}, 3])", "tf.random.stateless_shuffle({a}, [{int}, 4])"),
        *_rows("f", "tf.keras.random.dropout({a}, 0.5, seed=5)"),
    ],
    "functions": [
        *_rows("f", "tf.function(lambda t: tf.tanh(t) * 2)({a})", "tf.recompute_grad(lambda t: tf.sin(t) * t)({a})",
               "tf.custom_gradient(lambda t: (t * 2, lambda d: d * 3))({a})",
               "tf.function(lambda t: tf.reduce_sum(t, -1))({a})",
               "tf.function(lambda t: tf.cond(tf.reduce_sum(t) > 0, lambda: t * 2, lambda: t + 1))({a})"),
        *_rows("f=", "tf.function(lambda s, t: tf.exp(s) - t)({a}, {b})",
               "tf.custom_gradient(lambda s, t: (s * t, lambda d: (d * t, tf.zeros_like(t))))({a}, {b})"),
    ],
    "python": [
        *_rows("f", "tf.py_function(lambda t: t + 1, [{a}], tf.TensorSpec({a}.shape, {a}.dtype))",
               "tf.numpy_function(np.copy, [{a}], tf.TensorSpec({a}.shape, {a}.dtype))"),
        *_rows("*", "tf.map_fn(lambda t: t, {a})"), *_rows("f", "tf.map_fn(lambda t: t * 2, {a})",
                                                          "tf.vectorized_map(tf.reduce_sum, {a})",
                                                          "tf.scan(lambda s, t: s + t, {a})",
                                                          "tf.foldl(lambda s, t: s + t, {a})"),
        *_rows("f", "tf.cond(tf.reduce_sum({a}) > 0, lambda: {a} * 2, lambda: {a} - 1)",
               "tf.while_loop(lambda i, t: i < 3, lambda i, t: (i + 1, t * 0.5), (0, {a}))[1]",
               "tf.switch_case({int} % 3, [lambda: {a}, lambda: {a} * 2, lambda: -{a}])"),
    ],
}
