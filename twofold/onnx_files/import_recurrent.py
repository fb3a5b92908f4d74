"""ONNX's recurrent ops: each is a loop over steps, forward, backward or both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import twofold as tf

from .import_elementwise import activation
from .import_table import Call, op
from .import_values import Turned, Value, tensor_of

__all__: list[str] = []

#: from the projected inputs of a step and the states to the next states
Step = Callable[[Any, Sequence[Any]], list[Any]]


def _activations(call: Call, names: Sequence[str], direction: int) -> list[Callable[[Any], Any]]:
    """The activations of a direction; alphas and betas go to those that take them, in order."""
    count = len(names)
    given = call.attr("activations") or [*names] * 2
    takes = {"affine": 2, "leakyrelu": 1, "thresholdedrelu": 1, "scaledtanh": 2, "hardsigmoid": 2, "elu": 1}
    alphas, betas = iter(call.attr("activation_alpha") or ()), iter(call.attr("activation_beta") or ())
    made = []
    for name in given:
        need = takes.get(name.lower(), 0)
        alpha = next(alphas, None) if need > 0 else None
        beta = next(betas, None) if need > 1 else None
        made.append(activation(name, alpha, beta))
    if len(made) < count * (direction + 1):
        raise call.fail(f"{len(made)} activations; {count * (direction + 1)} are expected")
    clip = call.attr("clip")
    chosen = made[count * direction:count * (direction + 1)]
    return [_clipped(fn, clip) for fn in chosen] if clip else chosen


def _clipped(fn: Callable[[Any], Any], limit: float) -> Callable[[Any], Any]:
    return lambda x: fn(tf.clip_by_value(x, -limit, limit))


def _project(x: Any, w: Any, bias: Any) -> Any:
    """What inputs give to gates, for all steps in one product: [steps, batch, gates]."""
    steps, batch, size = x.dims
    rows = tf.matmul(tf.reshape(x, (steps * batch, size)), w)
    return tf.reshape(rows if bias is None else rows + bias, (steps, batch, w.dims[1]))


def _over_steps(projected: Any, step: Step, states: Sequence[Any], lengths: Any) -> tuple[Any, list[Any]]:
    """All first states of a loop over steps, and the last states. Examples keep their states after their ends."""
    count = tf.shape(projected)[0]
    inputs = tf.TensorArray(projected.dtype, size=count, element_shape=projected.shape[1:]).unstack(projected)
    kept = tf.TensorArray(projected.dtype, size=count, element_shape=states[0].shape)

    def body(t: Any, now: Any, kept: Any) -> Any:
        after = step(inputs.read(t), now)
        shown = after[0]
        if lengths is not None:
            runs = tf.expand_dims(tf.cast(t, lengths.dtype) < lengths, 1)
            after = [tf.where(runs, new, old) for new, old in zip(after, now, strict=True)]
            shown = tf.where(runs, shown, tf.zeros_like(shown))
        return t + 1, after, kept.write(t, shown)

    _, last, kept = tf.while_loop(lambda t, *_: t < count, body, (tf.constant(0), list(states), kept))
    return kept.stack(), list(last)


def _last_two(node: Any, rank: int) -> tuple[int, ...] | None:
    """Weights are kept with gates last, as products take them."""
    return (0, 2, 1) if rank == 3 else None


def _gates_last(w: Value) -> Any:
    return w.kept if isinstance(w, Turned) else tf.transpose(tensor_of(w), (0, 2, 1))


def _run(call: Call, x: Any, w: Any, lengths: Any, first: Sequence[Any],
         make: Callable[[int], tuple[Any, Step]]) -> tuple[Any, ...]:
    """The outputs of a recurrent op.

    Args:
        w: weights with gates last.
        first: the first states, [directions, batch, hidden], or None for zeros; and the hidden size as last entry.
        make: from the number of a direction to the bias of projected inputs, and the step.
    """
    *given, hidden = first
    by_batch = bool(call.attr("layout", 0))
    x = tf.transpose(x, (1, 0, 2)) if by_batch else x
    given = [tf.transpose(s, (1, 0, 2)) if by_batch and s is not None else s for s in given]
    direction = call.attr("direction", "forward")
    if direction not in ("forward", "reverse", "bidirectional") or w.dims[0] != 1 + (direction == "bidirectional"):
        raise call.fail(f"direction {direction!r} for weights of {w.dims[0]} directions")
    shown, ends = [], []
    for d in range(w.dims[0]):
        back = d == 1 or direction == "reverse"
        states = [tf.zeros((x.dims[1], hidden), x.dtype) if s is None else s[d] for s in given]
        bias, step = make(d)
        y, last = _over_steps(_project(_reversed(x, lengths) if back else x, w[d], bias), step, states, lengths)
        shown.append(_reversed(y, lengths) if back else y)
        ends.append(last)
    y = tf.stack(shown, axis=1)
    finals = [tf.stack(parts) for parts in zip(*ends, strict=True)]
    if by_batch:
        return tf.transpose(y, (2, 0, 1, 3)), *[tf.transpose(f, (1, 0, 2)) for f in finals]
    return y, *finals


def _reversed(x: Any, lengths: Any) -> Any:
    """The steps of each example from its end on."""
    if lengths is None:
        return tf.reverse(x, [0])
    return tf.reverse_sequence(x, lengths, seq_axis=0, batch_axis=1)


def _halves(bias: Any, d: int) -> tuple[Any, Any]:
    """The biases of a direction: those of inputs and those of states."""
    if bias is None:
        return None, None
    half = bias.dims[1] // 2
    return bias[d, :half], bias[d, half:]


def _operands(x: Value, w: Value, r: Value, rest: Sequence[Value], count: int) -> list[Any]:
    """Tensors of all operands, weights with gates last, and None for those that are left out."""
    more = [*rest, *[None] * (count - len(rest))]
    return [tensor_of(x), _gates_last(w), _gates_last(r), *[tensor_of(v) for v in more]]


@op("RNN", layout=True, turned={1: _last_two, 2: _last_two})
def _rnn(call: Call, x: Value, w: Value, r: Value, *rest: Value) -> Any:
    x, w, r, bias, lengths, h = _operands(x, w, r, rest, 3)

    def make(d: int) -> tuple[Any, Step]:
        (f,) = _activations(call, ["Tanh"], d)
        of_inputs, of_states = _halves(bias, d)
        matrix = r[d]

        def step(given: Any, states: Sequence[Any]) -> list[Any]:
            return [f(given + tf.matmul(states[0], matrix))]
        return None if bias is None else of_inputs + of_states, step
    return _run(call, x, w, lengths, [h, r.dims[1]], make)


@op("GRU", layout=True, turned={1: _last_two, 2: _last_two})
def _gru(call: Call, x: Value, w: Value, r: Value, *rest: Value) -> Any:
    x, w, r, bias, lengths, h = _operands(x, w, r, rest, 3)
    size, after = r.dims[1], bool(call.attr("linear_before_reset", 0))

    def make(d: int) -> tuple[Any, Step]:
        f, g = _activations(call, ["Sigmoid", "Tanh"], d)
        of_inputs, of_states = _halves(bias, d)
        both, own = r[d, :, :2 * size], r[d, :, 2 * size:]
        late = None if bias is None else of_states[2 * size:]
        early = None
        if bias is not None:
            rest = tf.zeros_like(late) if after else late
            early = of_inputs + tf.concat([of_states[:2 * size], rest], 0)

        def step(given: Any, states: Sequence[Any]) -> list[Any]:
            before = states[0]
            gates = f(given[:, :2 * size] + tf.matmul(before, both))
            z, reset = gates[:, :size], gates[:, size:]
            if after:
                inner = tf.matmul(before, own)
                inner = reset * (inner if late is None else inner + late)
            else:
                inner = tf.matmul(reset * before, own)
            new = g(given[:, 2 * size:] + inner)
            return [(1 - z) * new + z * before]
        return early, step
    return _run(call, x, w, lengths, [h, size], make)


@op("LSTM", layout=True, turned={1: _last_two, 2: _last_two})
def _lstm(call: Call, x: Value, w: Value, r: Value, *rest: Value) -> Any:
    x, w, r, bias, lengths, h, c, peepholes = _operands(x, w, r, rest, 5)
    size, coupled = r.dims[1], bool(call.attr("input_forget", 0))

    def make(d: int) -> tuple[Any, Step]:
        f, g, last = _activations(call, ["Sigmoid", "Tanh", "Tanh"], d)
        of_inputs, of_states = _halves(bias, d)
        matrix = r[d]
        peep = None if peepholes is None else [peepholes[d, i * size:(i + 1) * size] for i in range(3)]

        def step(given: Any, states: Sequence[Any]) -> list[Any]:
            gates = given + tf.matmul(states[0], matrix)
            i, o, forget, new = (gates[:, k * size:(k + 1) * size] for k in range(4))
            cell = states[1]
            i = f(i if peep is None else i + peep[0] * cell)
            forget = 1 - i if coupled else f(forget if peep is None else forget + peep[2] * cell)
            cell = forget * cell + i * g(new)
            o = f(o if peep is None else o + peep[1] * cell)
            return [o * last(cell), cell]
        return None if bias is None else of_inputs + of_states, step
    return _run(call, x, w, lengths, [h, c, size], make)


