"""`tf.compat.v1.nn.rnn_cell`: cells of recurrent networks, with TensorFlow 1's weights.

The weights of a cell are made with `get_variable` when it is first called, under the names that TensorFlow 1 gives
them: a matrix "kernel" for inputs and state side by side, and "bias". The gates of an LSTM lie side by side in the
order input, new, forget, output; those of a GRU are reset, update.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import twofold as tf
from twofold._front.api import listed, public, public_class
from twofold._front.namespace import publish
from twofold.keras.layers._recurrence_cells import lstm_memory, lstm_output

from .variables import get_variable, variable_scope

__all__ = ["BasicLSTMCell", "BasicRNNCell", "DeviceWrapper", "DropoutWrapper", "GRUCell", "LSTMCell", "LSTMStateTuple",
           "MultiRNNCell", "RNNCell", "ResidualWrapper"]


class LSTMStateTuple(NamedTuple):
    """The state of an LSTM: `c`, the memory, and `h`, the output."""

    c: Any
    h: Any

    @property
    def dtype(self) -> Any:
        """The dtype of both."""
        return self.c.dtype


@public_class
class RNNCell:
    """The base of cells: `cell(inputs, state)` gives an output and the next state.

    Another one overrides `state_size`, `output_size` and `call`.

    Attributes:
        state_size: the size of the state, or a structure of sizes.
        output_size: the size of the output.
    """

    _default = "rnn_cell"

    def __init__(self, name: str | None = None, reuse: Any = None, dtype: Any = None):
        self.name, self._reuse, self._dtype = name or self._default, reuse, dtype
        self._weights: dict[str, Any] = {}

    @property
    @abstractmethod
    def state_size(self) -> Any:
        """The size of the state, or a structure of sizes."""
        raise NotImplementedError(f"{type(self).__name__} has no state_size")

    @property
    @abstractmethod
    def output_size(self) -> Any:
        """The size of the output."""
        raise NotImplementedError(f"{type(self).__name__} has no output_size")

    @property
    def variables(self) -> list[Any]:
        """The weights, once they are made."""
        return list(self._weights.values())

    weights = trainable_weights = trainable_variables = variables

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> tuple[Any, Any]:
        """The output and the next state.

        Args:
            inputs: [batch, size].
            state: a tensor [batch, state_size], or a structure of such.
            scope: the name of the scope of the weights; by default the cell's name.
        """
        if self._weights:
            return self.call(inputs, state)
        with variable_scope(scope or self.name, reuse=self._reuse):
            return self.call(inputs, state)

    @abstractmethod
    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """The computation of a cell; see `__call__`."""
        raise NotImplementedError(f"{type(self).__name__} has no call")

    def weight(self, name: str, shape: Sequence[int], dtype: Any, initializer: Any = None) -> Any:
        """A weight of this cell, made when it is first asked for.

        Args:
            name: its name, in the scope of the cell.
            shape, dtype: its own.
            initializer: what it starts from.
        """
        if name not in self._weights:
            self._weights[name] = get_variable(name, shape, dtype, initializer)
        return self._weights[name]

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """A state of zeros.

        Args:
            batch_size: a number or a scalar tensor.
            dtype: of the state.
        """
        sizes = self.state_size
        flat = [tf.zeros(tf.stack([tf.cast(batch_size, tf.int32), size]), dtype) for size in tf.nest.flatten(sizes)]
        return tf.nest.pack_sequence_as(sizes, flat)

    get_initial_state = zero_state

    def _linear(self, inputs: Any, state: Any, size: int, names: str = "", bias: Any = None) -> Any:
        """`[inputs, state] @ kernel + bias`."""
        kernel = self.weight(f"{names}kernel", [int(inputs.shape[-1]) + int(state.shape[-1]), size], inputs.dtype)
        start = tf.keras.initializers.Constant(bias) if bias is not None else tf.keras.initializers.Zeros()
        return tf.nn.bias_add(tf.matmul(tf.concat([inputs, state], 1), kernel),
                              self.weight(f"{names}bias", [size], inputs.dtype, start))


@public_class
class BasicRNNCell(RNNCell):
    """The plainest cell: `output = state = activation([inputs, state] @ kernel + bias)`.

    Args:
        num_units: the size of the state.
        activation: tanh by default.
        reuse: whether weights are found rather than made.
        name: of the scope of the weights.
        ignored: further arguments have no effect.

    >>> import twofold as tf
    >>> cell = tf.compat.v1.nn.rnn_cell.BasicRNNCell(4)
    >>> output, state = cell(tf.ones([2, 3]), cell.zero_state(2, tf.float32))
    >>> output.shape
    TensorShape([2, 4])
    """

    _default = "basic_rnn_cell"

    def __init__(self, num_units: int, activation: Any = None, reuse: Any = None, name: str | None = None,
                 dtype: Any = None, **ignored: Any):
        super().__init__(name, reuse, dtype)
        self._size, self._activation = int(num_units), tf.keras.activations.get(activation or "tanh")

    @property
    def state_size(self) -> int:
        """The size of the state."""
        return self._size

    output_size = state_size

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """The output, which is the next state, too."""
        output = self._activation(self._linear(inputs, state, self._size))
        return output, output


@public_class
class GRUCell(RNNCell):
    """A gated recurrent unit (Cho et al. 2014), with the reset gate before the product.

    Args:
        num_units: the size of the state.
        activation: of new states; tanh by default.
        reuse: whether weights are found rather than made.
        kernel_initializer, bias_initializer: accepted, without effect on biases of gates, which start from 1.
        name: of the scope of the weights.
        ignored: further arguments have no effect.
    """

    _default = "gru_cell"

    def __init__(self, num_units: int, activation: Any = None, reuse: Any = None, kernel_initializer: Any = None,
                 bias_initializer: Any = None, name: str | None = None, dtype: Any = None, **ignored: Any):
        super().__init__(name, reuse, dtype)
        self._size, self._activation = int(num_units), tf.keras.activations.get(activation or "tanh")

    @property
    def state_size(self) -> int:
        """The size of the state."""
        return self._size

    output_size = state_size

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """The output, which is the next state, too."""
        gates = tf.sigmoid(self._linear(inputs, state, 2 * self._size, "gates/", 1.0))
        reset, update = tf.split(gates, 2, axis=1)
        new = self._activation(self._linear(inputs, reset * state, self._size, "candidate/"))
        output = update * state + (1.0 - update) * new
        return output, output


@public_class
class LSTMCell(RNNCell):
    """A long short-term memory (Hochreiter & Schmidhuber 1997).

    Args:
        num_units: the size of the memory.
        use_peepholes: whether gates see the memory.
        cell_clip: the memory is kept in [-cell_clip, cell_clip].
        initializer: of the matrices.
        num_proj: the size that outputs are projected to.
        proj_clip: projected outputs are kept in [-proj_clip, proj_clip].
        forget_bias: is added to the forget gate.
        state_is_tuple: whether the state is an `LSTMStateTuple` rather than both parts side by side.
        activation: tanh by default.
        reuse: whether weights are found rather than made.
        name: of the scope of the weights.
        num_unit_shards, num_proj_shards, ignored: accepted, without effect, as are further arguments.

    >>> import twofold as tf
    >>> cell = tf.compat.v1.nn.rnn_cell.LSTMCell(4)
    >>> output, state = cell(tf.ones([2, 3]), cell.zero_state(2, tf.float32))
    >>> output.shape, state.c.shape
    (TensorShape([2, 4]), TensorShape([2, 4]))
    """

    _default = "lstm_cell"

    def __init__(self, num_units: int, use_peepholes: bool = False, cell_clip: float | None = None,
                 initializer: Any = None, num_proj: int | None = None, proj_clip: float | None = None,
                 num_unit_shards: Any = None, num_proj_shards: Any = None, forget_bias: float = 1.0,
                 state_is_tuple: bool = True, activation: Any = None, reuse: Any = None, name: str | None = None,
                 dtype: Any = None, **ignored: Any):
        super().__init__(name, reuse, dtype)
        self._size, self._projected = int(num_units), num_proj
        self._peepholes, self._clip, self._proj_clip = use_peepholes, cell_clip, proj_clip
        self._initializer, self._forget = initializer, forget_bias
        self._tuple, self._activation = state_is_tuple, tf.keras.activations.get(activation or "tanh")

    @property
    def output_size(self) -> int:
        """The size of the output."""
        return self._projected or self._size

    @property
    def state_size(self) -> Any:
        """The sizes of both parts of the state."""
        return LSTMStateTuple(self._size, self.output_size) if self._tuple else self._size + self.output_size

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """The output and the next state."""
        c, h = state if self._tuple else tf.split(state, [self._size, self.output_size], axis=1)
        kernel = self.weight("kernel", [int(inputs.shape[-1]) + self.output_size, 4 * self._size], inputs.dtype,
                             self._initializer)
        bias = self.weight("bias", [4 * self._size], inputs.dtype, tf.keras.initializers.Zeros())
        enter, new, forget, leave = tf.split(tf.nn.bias_add(tf.matmul(tf.concat([inputs, h], 1), kernel), bias), 4, 1)
        if self._peepholes:
            enter, forget = enter + self._peep("i", inputs.dtype) * c, forget + self._peep("f", inputs.dtype) * c
        enter, forget, new = tf.sigmoid(enter), tf.sigmoid(forget + self._forget), self._activation(new)
        c = lstm_memory(enter, forget, new, c)
        if self._clip is not None:
            c = tf.clip_by_value(c, -self._clip, self._clip)
        if self._peepholes:
            leave = leave + self._peep("o", inputs.dtype) * c
        h = lstm_output(tf.sigmoid(leave), c, self._activation)
        if self._projected is not None:
            matrix = self.weight("projection/kernel", [self._size, self._projected], inputs.dtype, self._initializer)
            h = tf.matmul(h, matrix)
            if self._proj_clip is not None:
                h = tf.clip_by_value(h, -self._proj_clip, self._proj_clip)
        return h, LSTMStateTuple(c, h) if self._tuple else tf.concat([c, h], 1)

    def _peep(self, gate: str, dtype: Any) -> Any:
        return self.weight(f"w_{gate}_diag", [self._size], dtype, self._initializer)


@public_class
class BasicLSTMCell(LSTMCell):
    """An LSTM without peepholes, clipping and projection.

    Args:
        num_units: the size of the state.
        forget_bias: is added to the forget gate.
        state_is_tuple: whether the state is an `LSTMStateTuple`.
        activation: tanh by default.
        reuse: whether weights are found rather than made.
        name: of the scope of the weights.
        ignored: further arguments have no effect.
    """

    _default = "basic_lstm_cell"

    def __init__(self, num_units: int, forget_bias: float = 1.0, state_is_tuple: bool = True, activation: Any = None,
                 reuse: Any = None, name: str | None = None, dtype: Any = None, **ignored: Any):
        super().__init__(num_units, forget_bias=forget_bias, state_is_tuple=state_is_tuple, activation=activation,
                         reuse=reuse, name=name, dtype=dtype)


@public_class
class MultiRNNCell(RNNCell):
    """Cells one on another: the output of one is the input of the next.

    Args:
        cells: the cells, the lowest first.
        state_is_tuple: whether the state is a tuple of theirs.
    Raises:
        ValueError: there are no cells, or the state is no tuple.
    """

    _default = "multi_rnn_cell"

    def __init__(self, cells: Sequence[Any], state_is_tuple: bool = True):
        if not cells:
            raise ValueError("Must specify at least one cell for MultiRNNCell.")
        if not state_is_tuple:
            raise ValueError("MultiRNNCell: states are tuples here")
        super().__init__()
        self._cells = listed(cells, "cells")

    @property
    def state_size(self) -> tuple[Any, ...]:
        """The states' sizes."""
        return tuple([cell.state_size for cell in self._cells])

    @property
    def output_size(self) -> Any:
        """The size of the last output."""
        return self._cells[-1].output_size

    @property
    def variables(self) -> list[Any]:
        """The weights of all, once they are made."""
        return [v for cell in self._cells for v in cell.variables]

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """The last output, and all next states."""
        states = []
        for n, (cell, own) in enumerate(zip(self._cells, state, strict=True)):
            with variable_scope(f"cell_{n}"):
                inputs, new = cell(inputs, own)
            states.append(new)
        return inputs, tuple(states)


class _Wrapper(RNNCell):
    """A cell around `cell`, with its sizes and its weights."""

    def __init__(self, cell: Any):
        super().__init__()
        self._cell = cell

    @property
    def state_size(self) -> Any:
        """The size of the cell's state."""
        return self._cell.state_size

    @property
    def output_size(self) -> Any:
        """The size of the cell's output."""
        return self._cell.output_size

    @property
    def variables(self) -> list[Any]:
        """The cell's weights."""
        variables: list[Any] = self._cell.variables
        return variables


@public_class
class DropoutWrapper(_Wrapper):
    """A cell whose inputs, outputs and states lose elements at random.

    Args:
        cell: the cell.
        input_keep_prob, output_keep_prob, state_keep_prob: the parts that stay, numbers or tensors.
        seed: of the draws.
        input_size, dtype, dropout_state_filter_visitor, ignored: accepted, without effect.
    """

    def __init__(self, cell: Any, input_keep_prob: Any = 1.0, output_keep_prob: Any = 1.0, state_keep_prob: Any = 1.0,
                 variational_recurrent: bool = False, input_size: Any = None, dtype: Any = None, seed: Any = None,
                 dropout_state_filter_visitor: Any = None, **ignored: Any):
        if variational_recurrent:
            raise ValueError("DropoutWrapper: variational_recurrent is not supported")
        super().__init__(cell)
        self._seed = seed
        self._keep = input_keep_prob, output_keep_prob, state_keep_prob

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> tuple[Any, Any]:
        """The output and the next state."""
        enter, leave, stay = self._keep
        output, new = self._cell(self._dropped(inputs, enter), state, scope) if scope is not None else \
            self._cell(self._dropped(inputs, enter), state)
        if isinstance(new, LSTMStateTuple):  # the memory itself loses nothing
            new = LSTMStateTuple(new.c, self._dropped(new.h, stay))
        else:
            new = tf.nest.map_structure(lambda t: self._dropped(t, stay), new)
        return self._dropped(output, leave), new

    def _dropped(self, x: Any, keep: Any) -> Any:
        if not tf.is_tensor(keep) and keep >= 1.0:
            return x
        return tf.nn.dropout(x, 1.0 - keep, seed=self._seed)


@public_class
class ResidualWrapper(_Wrapper):
    """A cell whose input is added to its output.

    Args:
        cell: the cell.
        residual_fn: what is made of input and output instead of their sum.
        ignored: further arguments have no effect.
    """

    def __init__(self, cell: Any, residual_fn: Any = None, **ignored: Any):
        super().__init__(cell)
        self._join = residual_fn

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> tuple[Any, Any]:
        """The output and the next state."""
        output, new = self._cell(inputs, state)
        return (self._join(inputs, output) if self._join else inputs + output), new


@public
def DeviceWrapper(cell: Any, device: Any = None, **ignored: Any) -> Any:
    """The cell itself: there is one device. `device` and `ignored` have no effect."""
    return cell


publish(__name__)
