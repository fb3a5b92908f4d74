"""Gated recurrent units: the cell, and the layer of it."""

from __future__ import annotations

from typing import Any

import twofold as tf

from ._recurrence_cells import gru_scan
from .recurrent import OfCell, UsualCell, is_function

__all__ = ["GRU", "GRUCell"]


class GRUCell(UsualCell):
    """One step of a `GRU` (Cho et al. 2014).

    With (u, r, n) the three parts of `inputs @ kernel`, and of `h @ recurrent_kernel`, each with its bias: u and r are
    the sigmoids of the sums, n is `tanh(n1 + r * n2)`, and h `u * h + (1 - u) * n`.

    Args:
        units: the size of the state and the output.
        activation, recurrent_activation: functions or their names: in place of tanh and of sigmoid.
        use_bias: whether there is a bias.
        kernel_initializer, recurrent_initializer, bias_initializer, kernel_regularizer, recurrent_regularizer,
        bias_regularizer, kernel_constraint, recurrent_constraint, bias_constraint: for the weights.
        dropout, recurrent_dropout: the rates at which inputs and state are dropped in training.
        reset_after: whether r multiplies the product with the recurrent kernel, else the state before it.
        seed: an integer, for the same choices in every run.
        kwargs: those of `Layer`.
    Weights: kernel [inputs, 3 units], recurrent_kernel [units, 3 units], bias [2, 3 units], or [3 units] where r
    multiplies the state.

    >>> import twofold as tf
    >>> cell = tf.keras.layers.GRUCell(4)
    >>> output, states = cell(tf.zeros([2, 3]), [tf.zeros([2, 4])])
    >>> output.shape
    TensorShape([2, 4])
    """

    _gates = 3
    _arguments = (*UsualCell._arguments, "reset_after")

    def __init__(self, units: int, activation: Any = "tanh", recurrent_activation: Any = "sigmoid",
                 use_bias: bool = True, kernel_initializer: Any = "glorot_uniform",
                 recurrent_initializer: Any = "orthogonal", bias_initializer: Any = "zeros",
                 kernel_regularizer: Any = None, recurrent_regularizer: Any = None, bias_regularizer: Any = None,
                 kernel_constraint: Any = None, recurrent_constraint: Any = None, bias_constraint: Any = None,
                 dropout: float = 0.0, recurrent_dropout: float = 0.0, reset_after: bool = True, seed: Any = None,
                 **kwargs: Any):
        implementation = kwargs.pop("implementation", 2)
        super().__init__(**kwargs)
        self.reset_after = reset_after
        self._set_up(units, use_bias, dropout, recurrent_dropout, seed, implementation, activation=activation,
                     recurrent_activation=recurrent_activation, kernel_initializer=kernel_initializer,
                     recurrent_initializer=recurrent_initializer, bias_initializer=bias_initializer,
                     kernel_regularizer=kernel_regularizer, recurrent_regularizer=recurrent_regularizer,
                     bias_regularizer=bias_regularizer, kernel_constraint=kernel_constraint,
                     recurrent_constraint=recurrent_constraint, bias_constraint=bias_constraint)

    def _make_bias(self) -> Any:
        return self._weight("bias", (2, 3 * self.units) if self.reset_after else (3 * self.units,))

    def _input_bias(self) -> Any:
        return self.bias[0] if self.use_bias and self.reset_after else self.bias

    def _recurrent_bias(self) -> Any:
        return self.bias[1] if self.use_bias and self.reset_after else None

    def advance(self, projected: Any, states: list[Any], mask: Any) -> tuple[Any, list[Any]]:
        """The rest of a step: from the projected inputs and the states, with the dropout mask of these."""
        h, gate, units = states[0], self.recurrent_activation, self.units
        x_u, x_r, x_n = tf.split(projected, 3, axis=-1)
        if self.reset_after:
            product, bias = self._recurrent(h, mask), self._recurrent_bias()
            h_u, h_r, h_n = tf.split(product if bias is None else product + bias, 3, axis=-1)
            u, r = gate(x_u + h_u), gate(x_r + h_r)
            n = self.activation(x_n + r * h_n)
        else:
            kernel = tf.convert_to_tensor(self.recurrent_kernel)
            masks = mask if isinstance(mask, list) else [mask] * 3
            h_u, h_r, h_n = (h if m is None else h * m for m in masks)
            u = gate(x_u + tf.matmul(h_u, kernel[:, :units]))
            r = gate(x_r + tf.matmul(h_r, kernel[:, units:2 * units]))
            n = self.activation(x_n + tf.matmul(r * h_n, kernel[:, 2 * units:]))
        h = u * h + (1 - u) * n
        return h, [h]

    def whole_scan(self, projected: Any, states: list[Any], mask: Any) -> tuple[Any, list[Any]] | None:
        """All states over the steps and the last, by a loop made for this cell; None if there is none."""
        usual = is_function(self.activation, "tanh") and is_function(self.recurrent_activation, "sigmoid")
        if not (usual and self.reset_after):
            return None
        bias = self._recurrent_bias()
        if bias is None:
            bias = tf.zeros((3 * self.units,), projected.dtype)
        history, last = gru_scan(projected, tf.convert_to_tensor(self.recurrent_kernel), bias, states[0], mask)
        return history, [last]


class GRU(OfCell):
    """Gated recurrent units (Cho et al. 2014).

    Args:
        units, activation, recurrent_activation, use_bias, kernel_initializer, recurrent_initializer,
        bias_initializer, kernel_regularizer, recurrent_regularizer, bias_regularizer, kernel_constraint,
        recurrent_constraint, bias_constraint, dropout, recurrent_dropout, seed, reset_after: those of `GRUCell`.
        activity_regularizer: see `tf.keras.regularizers`.
        return_sequences, return_state, go_backwards, stateful, unroll: those of `RNN`.
        use_cudnn: accepted, without effect.
        kwargs: those of `Layer`.
    Inputs: [batch, steps, features]; see `RNN`.
    Weights: kernel [inputs, 3 units], recurrent_kernel [units, 3 units], bias [2, 3 units] (see `GRUCell`).

    >>> import twofold as tf
    >>> tf.keras.layers.GRU(4, return_sequences=True)(tf.zeros([2, 5, 3])).shape
    TensorShape([2, 5, 4])
    """

    _cell_arguments = GRUCell._arguments

    def __init__(self, units: int, activation: Any = "tanh", recurrent_activation: Any = "sigmoid",
                 use_bias: bool = True, kernel_initializer: Any = "glorot_uniform",
                 recurrent_initializer: Any = "orthogonal", bias_initializer: Any = "zeros",
                 kernel_regularizer: Any = None, recurrent_regularizer: Any = None, bias_regularizer: Any = None,
                 activity_regularizer: Any = None, kernel_constraint: Any = None, recurrent_constraint: Any = None,
                 bias_constraint: Any = None, dropout: float = 0.0, recurrent_dropout: float = 0.0, seed: Any = None,
                 return_sequences: bool = False, return_state: bool = False, go_backwards: bool = False,
                 stateful: bool = False, unroll: bool = False, reset_after: bool = True, use_cudnn: Any = "auto",
                 **kwargs: Any):
        cell = GRUCell(units, activation, recurrent_activation, use_bias, kernel_initializer, recurrent_initializer,
                       bias_initializer, kernel_regularizer, recurrent_regularizer, bias_regularizer,
                       kernel_constraint, recurrent_constraint, bias_constraint, dropout, recurrent_dropout,
                       reset_after, seed, name="gru_cell", dtype=kwargs.get("dtype"),
                       trainable=kwargs.get("trainable", True), implementation=kwargs.pop("implementation", 2))
        self._made(cell, {"return_sequences": return_sequences, "return_state": return_state,
                          "go_backwards": go_backwards, "stateful": stateful, "unroll": unroll,
                          "activity_regularizer": activity_regularizer, **kwargs})
        self.use_cudnn = use_cudnn
