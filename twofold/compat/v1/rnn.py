"""Recurrent networks of cells: over lists of steps, which are built one by one, and over tensors, in a loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import twofold as tf
from twofold._front.api import listed, public

from .variables import variable_scope

__all__ = ["bidirectional_dynamic_rnn", "dynamic_rnn", "static_bidirectional_rnn", "static_rnn"]


def _begin(cell: Any, first: Any, state: Any, dtype: Any) -> Any:
    """The state to begin with."""
    if state is not None:
        return state
    if dtype is None:
        raise ValueError("If there is no initial_state, you must give a dtype.")
    return cell.zero_state(tf.shape(first)[0], dtype)


def _kept(alive: Any, new: Any, old: Any) -> Any:
    """`new` where a sequence goes on, else `old`."""
    return tf.nest.map_structure(lambda n, o: tf.where(alive[:, tf.newaxis], n, o), new, old)


@public
def static_rnn(cell: Any, inputs: Sequence[Any], initial_state: Any = None, dtype: Any = None,
               sequence_length: Any = None, scope: Any = None) -> tuple[list[Any], Any]:
    """The outputs of a cell for a list of inputs, and its last state.

    Args:
        cell: the cell.
        inputs: a list of tensors [batch, size].
        initial_state: by default zeros.
        dtype: of the state, where there is no initial one.
        sequence_length: integers [batch]; after its end a sequence gives zeros, and keeps its state.
        scope: the scope of the cell's variables; "rnn" by default.
    Raises:
        ValueError: there are no inputs, or neither a state nor a dtype.
    """
    if not inputs:
        raise ValueError("inputs must not be empty")
    lengths = None if sequence_length is None else tf.cast(sequence_length, tf.int32)
    outputs = []
    with variable_scope(scope or "rnn"):
        state = _begin(cell, inputs[0], initial_state, dtype)
        for step, x in enumerate(listed(inputs, "inputs")):
            output, new = cell(x, state)
            if lengths is not None:
                output, new = _kept(step < lengths, (output, new), (tf.zeros_like(output), state))
            state = new
            outputs.append(output)
    return outputs, state


@public
def dynamic_rnn(cell: Any, inputs: Any, sequence_length: Any = None, initial_state: Any = None, dtype: Any = None,
                parallel_iterations: Any = None, swap_memory: bool = False, time_major: bool = False,
                scope: Any = None) -> tuple[Any, Any]:
    """The outputs of a cell for all steps of a tensor, in a loop, and its last state.

    Args:
        cell: the cell.
        inputs: [batch, steps, size], or [steps, batch, size].
        sequence_length: integers [batch]; after its end a sequence gives zeros, and keeps its state.
        initial_state: by default zeros.
        dtype: of the state, where there is no initial one.
        time_major: whether steps come first, in the outputs, too.
        scope: the scope of the cell's variables; "rnn" by default.
        parallel_iterations, swap_memory: accepted, without effect.
    Returns:
        The outputs, [batch, steps, output_size], and the last state.
    Raises:
        ValueError: there is neither a state nor a dtype.

    >>> import twofold as tf
    >>> cell = tf.compat.v1.nn.rnn_cell.GRUCell(4)
    >>> outputs, state = tf.compat.v1.nn.dynamic_rnn(cell, tf.ones([2, 5, 3]), dtype=tf.float32)
    >>> outputs.shape, state.shape
    (TensorShape([2, 5, 4]), TensorShape([2, 4]))
    """
    steps_first = tf.convert_to_tensor(inputs)
    if not time_major:
        steps_first = tf.transpose(steps_first, [1, 0, 2])
    lengths = None if sequence_length is None else tf.cast(sequence_length, tf.int32)
    with variable_scope(scope or "rnn"):
        start = _begin(cell, steps_first[0], initial_state, dtype)
        cell(steps_first[0], start)  # the weights are made here, and not inside of the loop
        outputs, last = _loop(cell, steps_first, start, lengths)
    return outputs if time_major else tf.transpose(outputs, [1, 0, 2]), last


def _loop(cell: Any, inputs: Any, start: Any, lengths: Any) -> tuple[Any, Any]:
    count = tf.shape(inputs)[0]
    made = tf.TensorArray(inputs.dtype, size=count, element_shape=[inputs.shape[1], cell.output_size])

    def step(number: Any, state: Any, outputs: Any) -> Any:
        output, new = cell(inputs[number], state)
        if lengths is not None:
            output, new = _kept(number < lengths, (output, new), (tf.zeros_like(output), state))
        return number + 1, new, outputs.write(number, output)
    _, last, outputs = tf.while_loop(lambda number, state, outputs: number < count, step,
                                     (tf.constant(0), start, made))
    return outputs.stack(), last


def _reversed(x: Any, lengths: Any, axis: int) -> Any:
    """`x` [batch, steps, ..] or [steps, batch, ..] backwards; with lengths, each sequence for itself."""
    if lengths is None:
        return tf.reverse(x, [axis])
    return tf.reverse_sequence(x, lengths, seq_axis=axis, batch_axis=1 - axis)


@public
def bidirectional_dynamic_rnn(cell_fw: Any, cell_bw: Any, inputs: Any, sequence_length: Any = None,
                              initial_state_fw: Any = None, initial_state_bw: Any = None, dtype: Any = None,
                              parallel_iterations: Any = None, swap_memory: bool = False, time_major: bool = False,
                              scope: Any = None) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """`dynamic_rnn` forwards and backwards.

    Args:
        cell_fw, cell_bw: the cells of the two directions.
        initial_state_fw, initial_state_bw: their states to begin with.
        inputs, sequence_length, dtype, time_major, parallel_iterations, swap_memory, scope: as for `dynamic_rnn`.
        parallel_iterations, swap_memory: have no effect.
    Returns:
        The outputs of both, and the last states of both.
    """
    axis = 0 if time_major else 1
    with variable_scope(scope or "bidirectional_rnn"):
        forward, state = dynamic_rnn(cell_fw, inputs, sequence_length, initial_state_fw, dtype,
                                     time_major=time_major, scope="fw")
        turned = _reversed(inputs, sequence_length, axis)
        backward, other = dynamic_rnn(cell_bw, turned, sequence_length, initial_state_bw, dtype,
                                      time_major=time_major, scope="bw")
    return (forward, _reversed(backward, sequence_length, axis)), (state, other)


@public
def static_bidirectional_rnn(cell_fw: Any, cell_bw: Any, inputs: Sequence[Any], initial_state_fw: Any = None,
                             initial_state_bw: Any = None, dtype: Any = None, sequence_length: Any = None,
                             scope: Any = None) -> tuple[list[Any], Any, Any]:
    """`static_rnn` forwards and backwards.

    Args:
        cell_fw, cell_bw: the cells of the two directions.
        initial_state_fw, initial_state_bw: their states to begin with.
        inputs, dtype, scope: as for `static_rnn`.
        sequence_length: integers [batch].
    Returns:
        A list with the outputs of both side by side, and the last state of each.
    """
    with variable_scope(scope or "bidirectional_rnn"):
        forward, state = static_rnn(cell_fw, inputs, initial_state_fw, dtype, sequence_length, "fw")
        turned = tf.unstack(_reversed(tf.stack(listed(inputs, "inputs")), sequence_length, 0), num=len(inputs))
        backward, other = static_rnn(cell_bw, turned, initial_state_bw, dtype, sequence_length, "bw")
        back = tf.unstack(_reversed(tf.stack(backward), sequence_length, 0), num=len(inputs))
    return [tf.concat([f, b], 1) for f, b in zip(forward, back, strict=True)], state, other
