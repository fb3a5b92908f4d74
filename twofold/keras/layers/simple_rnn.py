"""The simple recurrent cell, and the layer of it."""

from __future__ import annotations

from typing import Any

import twofold as tf

from ._recurrence_cells import simple_scan
from .recurrent import OfCell, UsualCell, is_function

__all__ = ["SimpleRNN", "SimpleRNNCell"]


class SimpleRNNCell(UsualCell):
    """One step of a `SimpleRNN`: `activation(inputs @ kernel + state @ recurrent_kernel + bias)`.

    Args:
        units: the size of the state and the output.
        activation: a function or its name.
        use_bias: whether there is a bias.
        kernel_initializer, recurrent_initializer, bias_initializer, kernel_regularizer, recurrent_regularizer,
        bias_regularizer, kernel_constraint, recurrent_constraint, bias_constraint: for the weights.
        dropout, recurrent_dropout: the rates at which inputs and state are dropped in training.
        seed: an integer, for the same choices in every run.
        kwargs: those of `Layer`.
    Weights: kernel [inputs, units], recurrent_kernel [units, units], bias [units].

    >>> import twofold as tf
    >>> cell = tf.keras.layers.SimpleRNNCell(4)
    >>> output, states = cell(tf.zeros([2, 3]), [tf.zeros([2, 4])])
    >>> output.shape, len(states)
    (TensorShape([2, 4]), 1)
    """

    _arguments = tuple(name for name in UsualCell._arguments if name != "recurrent_activation")

    def __init__(self, units: int, activation: Any = "tanh", use_bias: bool = True,
                 kernel_initializer: Any = "glorot_uniform", recurrent_initializer: Any = "orthogonal",
                 bias_initializer: Any = "zeros", kernel_regularizer: Any = None, recurrent_regularizer: Any = None,
                 bias_regularizer: Any = None, kernel_constraint: Any = None, recurrent_constraint: Any = None,
                 bias_constraint: Any = None, dropout: float = 0.0, recurrent_dropout: float = 0.0, seed: Any = None,
                 **kwargs: Any):
        super().__init__(**kwargs)
        self._set_up(units, use_bias, dropout, recurrent_dropout, seed, 2, activation=activation,
                     kernel_initializer=kernel_initializer, recurrent_initializer=recurrent_initializer,
                     bias_initializer=bias_initializer, kernel_regularizer=kernel_regularizer,
                     recurrent_regularizer=recurrent_regularizer, bias_regularizer=bias_regularizer,
                     kernel_constraint=kernel_constraint, recurrent_constraint=recurrent_constraint,
                     bias_constraint=bias_constraint)

    def advance(self, projected: Any, states: list[Any], mask: Any) -> tuple[Any, list[Any]]:
        """The rest of a step: from the projected inputs and the states, with the dropout mask of these."""
        output = self.activation(projected + self._recurrent(states[0], mask))
        return output, [output]

    def whole_scan(self, projected: Any, states: list[Any], mask: Any) -> tuple[Any, list[Any]] | None:
        """All states over the steps and the last, by a loop made for this cell; None if there is none."""
        if not is_function(self.activation, "tanh"):
            return None
        history, last = simple_scan(projected, tf.convert_to_tensor(self.recurrent_kernel), states[0], mask)
        return history, [last]


class SimpleRNN(OfCell):
    """A recurrent layer whose output goes into the next step.

    Args:
        units, activation, use_bias, kernel_initializer, recurrent_initializer, bias_initializer, kernel_regularizer,
        recurrent_regularizer, bias_regularizer, kernel_constraint, recurrent_constraint, bias_constraint, dropout,
        recurrent_dropout, seed: those of `SimpleRNNCell`.
        activity_regularizer: see `tf.keras.regularizers`.
        return_sequences, return_state, go_backwards, stateful, unroll: those of `RNN`.
        kwargs: those of `Layer`.
    Inputs: [batch, steps, features]; see `RNN`.
    Weights: kernel [inputs, units], recurrent_kernel [units, units], bias [units].

    >>> import twofold as tf
    >>> tf.keras.layers.SimpleRNN(4, return_sequences=True)(tf.zeros([2, 5, 3])).shape
    TensorShape([2, 5, 4])
    """

    _cell_arguments = SimpleRNNCell._arguments

    def __init__(self, units: int, activation: Any = "tanh", use_bias: bool = True,
                 kernel_initializer: Any = "glorot_uniform", recurrent_initializer: Any = "orthogonal",
                 bias_initializer: Any = "zeros", kernel_regularizer: Any = None, recurrent_regularizer: Any = None,
                 bias_regularizer: Any = None, activity_regularizer: Any = None, kernel_constraint: Any = None,
                 recurrent_constraint: Any = None, bias_constraint: Any = None, dropout: float = 0.0,
                 recurrent_dropout: float = 0.0, return_sequences: bool = False, return_state: bool = False,
                 go_backwards: bool = False, stateful: bool = False, unroll: bool = False, seed: Any = None,
                 **kwargs: Any):
        kwargs.pop("implementation", None)
        cell = SimpleRNNCell(units, activation, use_bias, kernel_initializer, recurrent_initializer, bias_initializer,
                             kernel_regularizer, recurrent_regularizer, bias_regularizer, kernel_constraint,
                             recurrent_constraint, bias_constraint, dropout, recurrent_dropout, seed,
                             name="simple_rnn_cell", dtype=kwargs.get("dtype"), trainable=kwargs.get("trainable", True))
        self._made(cell, {"return_sequences": return_sequences, "return_state": return_state,
                          "go_backwards": go_backwards, "stateful": stateful, "unroll": unroll,
                          "activity_regularizer": activity_regularizer, **kwargs})
