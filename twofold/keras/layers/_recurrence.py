"""A step over the slices of a sequence: what recurrent layers do, as one loop.

In a compiled function the loop is a native one. Masked steps leave the states as they are, and repeat the output
before (or give 0). The loops of the known cells, with gradients of their own, are in `_recurrence_cells.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import twofold as tf

__all__ = ["Scan", "masked_outputs", "steps_first", "recur"]

#: from a slice of the inputs and the states to an output and the next states
Step = Callable[[Any, Any], tuple[Any, Any]]


class Scan:
    """The results of a loop: the last output, all outputs with the steps first (or None), and the last states."""

    __slots__ = ("last", "outputs", "states")

    def __init__(self, last: Any, outputs: Any, states: Any):
        self.last, self.outputs, self.states = last, outputs, states


def steps_first(x: Any) -> Any:
    """`x` with the axes of batch and steps exchanged."""
    return tf.transpose(x, (1, 0, *range(2, len(x.shape))))


def recur(step: Step, inputs: Any, states: Any, mask: Any = None, zero_masked: bool = False, keep: bool = True,
          unroll: bool = False) -> Scan:
    """Run a step over the inputs.

    Args:
        step: see `Step`.
        inputs: tensors [steps, batch, ..], or a structure of them.
        states: a structure of tensors.
        mask: bool [steps, batch], or None.
        zero_masked: whether outputs are 0 at masked steps, not those before.
        keep: whether all outputs are wanted.
        unroll: whether the steps are traced one by one, without a loop; their number must be known.
    """
    if unroll:
        return _unrolled(step, inputs, states, mask, zero_masked)
    flat = tf.nest.flatten(inputs)
    count = flat[0].shape[0] if flat[0].shape[0] is not None else tf.shape(flat[0])[0]
    arrays = [tf.TensorArray(x.dtype, size=count, element_shape=x.shape[1:]).unstack(x) for x in flat]
    masks = None if mask is None else tf.TensorArray(tf.bool, size=count, element_shape=mask.shape[1:]).unstack(mask)
    first = _first_output(step, inputs, states)
    kept = [tf.TensorArray(x.dtype, size=count, element_shape=x.shape) for x in tf.nest.flatten(first)] if keep else []

    def body(t: Any, before: Any, states: Any, kept: Any) -> Any:
        slices = tf.nest.pack_sequence_as(inputs, [array.read(t) for array in arrays])
        output, after = _masked(step, slices, states, before, None if masks is None else masks.read(t), zero_masked)
        written = [array.write(t, x) for array, x in zip(kept, tf.nest.flatten(output), strict=True)] if keep else []
        return t + 1, output, after, written

    start = (tf.constant(0), tf.nest.map_structure(tf.zeros_like, first), states, kept)
    _, last, states, kept = tf.while_loop(lambda t, *_: t < count, body, start)
    outputs = tf.nest.pack_sequence_as(first, [array.stack() for array in kept]) if keep else None
    return Scan(last, outputs, states)


def _first_output(step: Step, inputs: Any, states: Any) -> Any:
    """An output, for its shape and dtype: nothing is left of it in compiled code."""
    return step(tf.nest.map_structure(lambda x: x[0], inputs), states)[0]


def _masked(step: Step, slices: Any, states: Any, before: Any, mask: Any, zero: bool) -> tuple[Any, Any]:
    """One step, in which masked examples keep their states and the output `before`."""
    output, after = step(slices, states)
    after = tf.nest.pack_sequence_as(states, tf.nest.flatten(after))
    if mask is None:
        return output, after

    def chosen(new: Any, old: Any) -> Any:
        return tf.where(tf.reshape(mask, (-1, *(1,) * (len(new.shape) - 1))), new, old)

    instead = tf.nest.map_structure(tf.zeros_like, output) if zero else before
    return tf.nest.map_structure(chosen, output, instead), tf.nest.map_structure(chosen, after, states)


def _unrolled(step: Step, inputs: Any, states: Any, mask: Any, zero: bool) -> Scan:
    count = tf.nest.flatten(inputs)[0].shape[0]
    outputs: list[Any] = []
    for t in range(count):
        slices = tf.nest.map_structure(lambda x, t=t: x[t], inputs)
        before = outputs[-1] if outputs else None
        if before is None and mask is not None:
            before = tf.nest.map_structure(tf.zeros_like, step(slices, states)[0])
        output, states = _masked(step, slices, states, before, None if mask is None else mask[t], zero)
        outputs.append(output)
    stacked = tf.nest.map_structure(lambda *parts: tf.stack(parts), *outputs)
    return Scan(outputs[-1], stacked, states)


def masked_outputs(history: Any, mask: Any, zero_masked: bool) -> Any:
    """The outputs of a cell whose output is its state, from all its states, which masked steps have repeated.

    Args:
        history: the states after each step, [steps, batch, units].
        mask: bool [steps, batch], or None.
        zero_masked: whether outputs are 0 at masked steps; else they are 0 until the first that is not masked.
    """
    if mask is None:
        return history
    seen = mask if zero_masked else tf.cumsum(tf.cast(mask, tf.int32), axis=0) > 0
    return tf.where(seen[..., tf.newaxis], history, tf.zeros((), history.dtype))
