"""Long short-term memory: the cell, and the layer of it."""

from __future__ import annotations

from typing import Any

import twofold as tf

from .. import initializers
from ._recurrence_cells import lstm_gates, lstm_memory, lstm_output, lstm_scan
from .recurrent import OfCell, UsualCell, is_function

__all__ = ["LSTM", "LSTMCell"]


class LSTMCell(UsualCell):
    """One step of an `LSTM` (Hochreiter & Schmidhuber 1997).

    With (i, f, g, o) the four parts of `inputs @ kernel + h @ recurrent_kernel + bias`: c is `sigmoid(f) * c +
    sigmoid(i) * tanh(g)`, and h `sigmoid(o) * tanh(c)`.

    Args:
        units: the size of the states and the output.
        activation, recurrent_activation: functions or their names: in place of tanh and of sigmoid.
        use_bias: whether there is a bias.
        kernel_initializer, recurrent_initializer, bias_initializer, kernel_regularizer, recurrent_regularizer,
        bias_regularizer, kernel_constraint, recurrent_constraint, bias_constraint: for the weights.
        unit_forget_bias: whether the bias of f begins at 1.
        dropout, recurrent_dropout: the rates at which inputs and state are dropped in training.
        seed: an integer, for the same choices in every run.
        kwargs: those of `Layer`.
    Weights: kernel [inputs, 4 units], recurrent_kernel [units, 4 units], bias [4 units].

    >>> import twofold as tf
    >>> cell = tf.keras.layers.LSTMCell(4)
    >>> output, (h, c) = cell(tf.zeros([2, 3]), [tf.zeros([2, 4]), tf.zeros([2, 4])])
    >>> output.shape
    TensorShape([2, 4])
    """

    _gates = 4
    _arguments = (*UsualCell._arguments, "unit_forget_bias")

    def __init__(self, units: int, activation: Any = "tanh", recurrent_activation: Any = "sigmoid",
                 use_bias: bool = True, kernel_initializer: Any = "glorot_uniform",
                 recurrent_initializer: Any = "orthogonal", bias_initializer: Any = "zeros",
                 unit_forget_bias: bool = True, kernel_regularizer: Any = None, recurrent_regularizer: Any = None,
                 bias_regularizer: Any = None, kernel_constraint: Any = None, recurrent_constraint: Any = None,
                 bias_constraint: Any = None, dropout: float = 0.0, recurrent_dropout: float = 0.0, seed: Any = None,
                 **kwargs: Any):
        implementation = kwargs.pop("implementation", 2)
        super().__init__(**kwargs)
        self.unit_forget_bias = unit_forget_bias
        self._set_up(units, use_bias, dropout, recurrent_dropout, seed, implementation, activation=activation,
                     recurrent_activation=recurrent_activation, kernel_initializer=kernel_initializer,
                     recurrent_initializer=recurrent_initializer, bias_initializer=bias_initializer,
                     kernel_regularizer=kernel_regularizer, recurrent_regularizer=recurrent_regularizer,
                     bias_regularizer=bias_regularizer, kernel_constraint=kernel_constraint,
                     recurrent_constraint=recurrent_constraint, bias_constraint=bias_constraint)
        self.state_size = [self.units, self.units]

    def _make_bias(self) -> Any:
        if not self.unit_forget_bias:
            return super()._make_bias()
        return self.add_weight(name="bias", shape=(4 * self.units,), initializer=self._first_bias,
                               regularizer=self.bias_regularizer, constraint=self.bias_constraint)

    def _first_bias(self, shape: Any, dtype: Any = None) -> Any:
        units = self.units
        parts = [self.bias_initializer((units,), dtype=dtype), initializers.Ones()((units,), dtype=dtype),
                 self.bias_initializer((2 * units,), dtype=dtype)]
        return tf.concat(parts, 0)

    def advance(self, projected: Any, states: list[Any], mask: Any) -> tuple[Any, list[Any]]:
        """The rest of a step: from the projected inputs and the states, with the dropout mask of these."""
        h, c = states
        parts = tf.split(projected + self._recurrent(h, mask), 4, axis=self._channel_axis(h))
        i, f, g, o = lstm_gates(parts, self.recurrent_activation, self.activation)
        c = lstm_memory(i, f, g, c)
        h = lstm_output(o, c, self.activation)
        return h, [h, c]

    def _channel_axis(self, x: Any) -> int:
        """The axis of the units in a state or a pre-activation."""
        return -1

    def whole_scan(self, projected: Any, states: list[Any], mask: Any) -> tuple[Any, list[Any]] | None:
        """All states over the steps and the last, by a loop made for this cell; None if there is none."""
        if not (is_function(self.activation, "tanh") and is_function(self.recurrent_activation, "sigmoid")):
            return None
        h, c = states
        history, h, c = lstm_scan(projected, tf.convert_to_tensor(self.recurrent_kernel), h, c, mask)
        return history, [h, c]


class LSTM(OfCell):
    """Long short-term memory (Hochreiter & Schmidhuber 1997).

    Args:
        units, activation, recurrent_activation, use_bias, kernel_initializer, recurrent_initializer,
        bias_initializer, unit_forget_bias, kernel_regularizer, recurrent_regularizer, bias_regularizer,
        kernel_constraint, recurrent_constraint, bias_constraint, dropout, recurrent_dropout, seed: those of `LSTMCell`.
        activity_regularizer: see `tf.keras.regularizers`.
        return_sequences, return_state, go_backwards, stateful, unroll: those of `RNN`.
        use_cudnn: accepted, without effect.
        kwargs: those of `Layer`.
    Inputs: [batch, steps, features]; see `RNN`. The states are h and c.
    Weights: kernel [inputs, 4 units], recurrent_kernel [units, 4 units], bias [4 units].

    >>> import twofold as tf
    >>> output, h, c = tf.keras.layers.LSTM(4, return_state=True)(tf.zeros([2, 5, 3]))
    >>> output.shape, c.shape
    (TensorShape([2, 4]), TensorShape([2, 4]))
    """

    _cell_arguments = LSTMCell._arguments

    def __init__(self, units: int, activation: Any = "tanh", recurrent_activation: Any = "sigmoid",
                 use_bias: bool = True, kernel_initializer: Any = "glorot_uniform",
                 recurrent_initializer: Any = "orthogonal", bias_initializer: Any = "zeros",
                 unit_forget_bias: bool = True, kernel_regularizer: Any = None, recurrent_regularizer: Any = None,
                 bias_regularizer: Any = None, activity_regularizer: Any = None, kernel_constraint: Any = None,
                 recurrent_constraint: Any = None, bias_constraint: Any = None, dropout: float = 0.0,
                 recurrent_dropout: float = 0.0, seed: Any = None, return_sequences: bool = False,
                 return_state: bool = False, go_backwards: bool = False, stateful: bool = False, unroll: bool = False,
                 use_cudnn: Any = "auto", **kwargs: Any):
        cell = LSTMCell(units, activation, recurrent_activation, use_bias, kernel_initializer, recurrent_initializer,
                        bias_initializer, unit_forget_bias, kernel_regularizer, recurrent_regularizer, bias_regularizer,
                        kernel_constraint, recurrent_constraint, bias_constraint, dropout, recurrent_dropout, seed,
                        name="lstm_cell", dtype=kwargs.get("dtype"), trainable=kwargs.get("trainable", True),
                        implementation=kwargs.pop("implementation", 2))
        self._made(cell, {"return_sequences": return_sequences, "return_state": return_state,
                          "go_backwards": go_backwards, "stateful": stateful, "unroll": unroll,
                          "activity_regularizer": activity_regularizer, **kwargs})
        self.use_cudnn = use_cudnn
