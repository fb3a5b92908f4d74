"""The loops of the usual recurrent cells, with gradients written by hand.

Each takes the inputs already multiplied with the kernel (one product for all steps), so that a step has one product, of
the state with the recurrent kernel. The gradient runs one loop back over the steps, which gives the gradients of the
pre-activations; that of the recurrent kernel is then one product over all steps. Derived by the chain rule from the
cells' equations; the sums are over fewer and larger products than those of a gradient step by step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import twofold as tf

__all__ = ["gru_scan", "lstm_gates", "lstm_memory", "lstm_output", "lstm_scan", "simple_scan"]


# -- the equations of an LSTM (Hochreiter & Schmidhuber 1997) -----------------------------------------
def lstm_gates(parts: Sequence[Any], gate: Any = tf.sigmoid, activation: Any = tf.tanh) -> tuple[Any, Any, Any, Any]:
    """The gates and the candidate (i, f, g, o) from the four parts of a step's pre-activation."""
    i, f, g, o = parts
    return gate(i), gate(f), activation(g), gate(o)


def lstm_memory(i: Any, f: Any, g: Any, c: Any) -> Any:
    """The new memory: what the forget gate keeps of the old, and what the input gate takes of the candidate."""
    return f * c + i * g


def lstm_output(o: Any, c: Any, activation: Any = tf.tanh) -> Any:
    """The output, and new state, from the new memory."""
    return o * activation(c)


def _count(x: Any) -> Any:
    return x.shape[0] if x.shape[0] is not None else tf.shape(x)[0]


def _array(like: Any, count: Any, width: int | None = None) -> tf.TensorArray:
    """An array for `count` matrices like one, or of another width."""
    shape = like.shape if width is None else tf.TensorShape([like.shape[0], width])
    return tf.TensorArray(like.dtype, size=count, element_shape=shape)


def _read(x: Any) -> tf.TensorArray:
    return tf.TensorArray(x.dtype, size=_count(x), element_shape=x.shape[1:]).unstack(x)


def _choose(mask: Any, t: Any, new: Sequence[Any], old: Sequence[Any]) -> list[Any]:
    """New values where the mask of a step lets them through."""
    if mask is None:
        return list(new)
    through = mask.read(t)[:, tf.newaxis]
    return [tf.where(through, n, o) for n, o in zip(new, old, strict=True)]


def _split_ct(mask: Any, t: Any, cts: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Cotangents of a step's states, parted into those of the new states and those that masks hand to the old."""
    zeros = [tf.zeros_like(ct) for ct in cts]
    if mask is None:
        return list(cts), zeros
    through = mask.read(t)[:, tf.newaxis]
    return ([tf.where(through, ct, z) for ct, z in zip(cts, zeros, strict=True)],
            [tf.where(through, z, ct) for ct, z in zip(cts, zeros, strict=True)])


def _over_steps(a: Any, b: Any) -> Any:
    """The product of a's transpose and b, summed over steps and batch."""
    return tf.matmul(tf.reshape(a, (-1, a.shape[-1])), tf.reshape(b, (-1, b.shape[-1])), transpose_a=True)


def lstm_scan(z: Any, recurrent: Any, h: Any, c: Any, mask: Any = None) -> tuple[Any, Any, Any]:
    """The loop of an LSTM with sigmoid gates and tanh.

    Args:
        z: the inputs times the kernel, and the bias: [steps, batch, 4 units], in the order i, f, c, o.
        recurrent: the recurrent kernel [units, 4 units].
        h, c: the states [batch, units].
        mask: bool [steps, batch], or None.
    Returns:
        All h [steps, batch, units], and the last h and c.
    """
    masks = None if mask is None else _read(mask)

    @tf.custom_gradient
    def scan(z: Any, recurrent: Any, h0: Any, c0: Any) -> Any:
        count, units = _count(z), h0.shape[-1]
        inputs = _read(z)

        def body(t: Any, h: Any, c: Any, *kept: Any) -> Any:
            parts = zip(tf.split(inputs.read(t), 4, axis=1), tf.split(tf.matmul(h, recurrent), 4, axis=1), strict=True)
            i, f, g, o = lstm_gates([x + y for x, y in parts])  # one kernel: what is split is read, not computed
            after = lstm_memory(i, f, g, c)
            y = tf.tanh(after)
            new = _choose(masks, t, (o * y, after), (h, c))
            values = (new[0], h, c, y, tf.concat([i, f, g, o], 1))
            return t + 1, *new, *[array.write(t, value) for array, value in zip(kept, values, strict=True)]

        arrays = [*[_array(h0, count) for _ in range(4)], _array(h0, count, 4 * units)]
        _, h, c, *arrays = tf.while_loop(lambda t, *_: t < count, body, (tf.constant(0), h0, c0, *arrays))
        history, olds, *saved = [array.stack() for array in arrays]

        def grad(d_history: Any, d_h: Any, d_c: Any) -> Any:
            old, tanh, gates, ct = (_read(x) for x in (*saved, d_history))

            def back(t: Any, d_h: Any, d_c: Any, d_z: Any) -> Any:
                (d_h, d_c), (old_h, old_c) = _split_ct(masks, t, (d_h + ct.read(t), d_c))
                i, f, g, o = tf.split(gates.read(t), 4, axis=1)
                y = tanh.read(t)
                d_c = d_c + d_h * o * (1 - y * y)
                d = tf.concat([d_c * g * i * (1 - i), d_c * old.read(t) * f * (1 - f), d_c * i * (1 - g * g),
                               d_h * y * o * (1 - o)], 1)
                before = tf.matmul(d, recurrent, transpose_b=True)
                if masks is None:
                    return t - 1, before, d_c * f, d_z.write(t, d)
                return t - 1, before + old_h, d_c * f + old_c, d_z.write(t, d)

            start = (tf.constant(0) + count - 1, d_h, d_c, _array(h0, count, 4 * units))
            _, d_h, d_c, d_z = tf.while_loop(lambda t, *_: t >= 0, back, start)
            d_z = d_z.stack()
            return d_z, _over_steps(olds, d_z), d_h, d_c

        return (history, h, c), grad

    return scan(z, recurrent, h, c)


def gru_scan(z: Any, recurrent: Any, bias: Any, h: Any, mask: Any = None) -> tuple[Any, Any]:
    """The loop of a GRU that resets after the product, with sigmoid gates and tanh.

    Args:
        z: the inputs times the kernel, and their bias: [steps, batch, 3 units], in the order z, r, h.
        recurrent: the recurrent kernel [units, 3 units].
        bias: that of the recurrent product, [3 units]; zeros for none.
        h: the state [batch, units].
        mask: bool [steps, batch], or None.
    Returns:
        All h [steps, batch, units], and the last.
    """
    masks = None if mask is None else _read(mask)

    @tf.custom_gradient
    def scan(z: Any, recurrent: Any, bias: Any, h0: Any) -> Any:
        count, units = _count(z), h0.shape[-1]
        inputs = _read(z)

        def body(t: Any, h: Any, hs: Any, olds: Any, saved: Any) -> Any:
            x_u, x_r, x_n = tf.split(inputs.read(t), 3, axis=1)
            products = zip(tf.split(tf.matmul(h, recurrent), 3, axis=1), tf.split(bias, 3), strict=True)
            h_u, h_r, h_n = [product + part for product, part in products]
            u, r = tf.sigmoid(x_u + h_u), tf.sigmoid(x_r + h_r)
            n = tf.tanh(x_n + r * h_n)
            [new] = _choose(masks, t, (u * h + (1 - u) * n,), (h,))
            return t + 1, new, hs.write(t, new), olds.write(t, h), saved.write(t, tf.concat([u, r, n, h_n], 1))

        start = (tf.constant(0), h0, _array(h0, count), _array(h0, count), _array(h0, count, 4 * units))
        _, h, hs, olds, saved = tf.while_loop(lambda t, *_: t < count, body, start)
        history, olds, saved = hs.stack(), olds.stack(), saved.stack()

        def grad(d_history: Any, d_h: Any) -> Any:
            gates, old, ct = _read(saved), _read(olds), _read(d_history)

            def back(t: Any, d_h: Any, d_z: Any, d_p: Any) -> Any:
                [d_h], [kept] = _split_ct(masks, t, (d_h + ct.read(t),))
                u, r, n, h_n = tf.split(gates.read(t), 4, axis=1)
                d_n = d_h * (1 - u) * (1 - n * n)
                d_u = d_h * (old.read(t) - n) * u * (1 - u)
                d_r = d_n * h_n * r * (1 - r)
                product = tf.concat([d_u, d_r, d_n * r], 1)
                before = d_h * u + tf.matmul(product, recurrent, transpose_b=True)
                before = before if masks is None else before + kept
                return t - 1, before, d_z.write(t, tf.concat([d_u, d_r, d_n], 1)), d_p.write(t, product)

            start = (tf.constant(0) + count - 1, d_h, _array(h0, count, 3 * units), _array(h0, count, 3 * units))
            _, d_h, d_z, d_p = tf.while_loop(lambda t, *_: t >= 0, back, start)
            d_z, d_p = d_z.stack(), d_p.stack()
            return d_z, _over_steps(olds, d_p), tf.reduce_sum(d_p, axis=(0, 1)), d_h

        return (history, h), grad

    return scan(z, recurrent, bias, h)


def simple_scan(z: Any, recurrent: Any, h: Any, mask: Any = None) -> tuple[Any, Any]:
    """The loop of a simple cell with tanh.

    Args:
        z: the inputs times the kernel, and the bias: [steps, batch, units].
        recurrent: the recurrent kernel [units, units].
        h: the state [batch, units].
        mask: bool [steps, batch], or None.
    Returns:
        All h [steps, batch, units], and the last.
    """
    masks = None if mask is None else _read(mask)

    @tf.custom_gradient
    def scan(z: Any, recurrent: Any, h0: Any) -> Any:
        count = _count(z)
        inputs = _read(z)

        def body(t: Any, h: Any, *kept: Any) -> Any:
            new = tf.tanh(inputs.read(t) + tf.matmul(h, recurrent))
            [after] = _choose(masks, t, (new,), (h,))
            values = (after, h, new)
            return t + 1, after, *[array.write(t, value) for array, value in zip(kept, values, strict=True)]

        arrays = [_array(h0, count) for _ in range(3)]
        _, h, *arrays = tf.while_loop(lambda t, *_: t < count, body, (tf.constant(0), h0, *arrays))
        history, olds, news = [array.stack() for array in arrays]

        def grad(d_history: Any, d_h: Any) -> Any:
            new, ct = _read(news), _read(d_history)

            def back(t: Any, d_h: Any, d_z: Any) -> Any:
                [d_h], [kept] = _split_ct(masks, t, (d_h + ct.read(t),))
                y = new.read(t)
                d = d_h * (1 - y * y)
                before = tf.matmul(d, recurrent, transpose_b=True)
                return t - 1, before if masks is None else before + kept, d_z.write(t, d)

            start = (tf.constant(0) + count - 1, d_h, _array(h0, count))
            _, d_h, d_z = tf.while_loop(lambda t, *_: t >= 0, back, start)
            d_z = d_z.stack()
            return d_z, _over_steps(olds, d_z), d_h

        return (history, h), grad

    return scan(z, recurrent, h)
