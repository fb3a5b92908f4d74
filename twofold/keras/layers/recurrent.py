"""`RNN`, which runs a cell over the steps of sequences, and what cells share.

The loops are `_recurrence.py`'s and `_recurrence_cells.py`'s; the usual cells are in `simple_rnn.py`, `lstm.py` and
`gru.py`.
"""

from __future__ import annotations

import inspect
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import twofold as tf
from twofold._front import replica
from twofold._front.api import listed

from .. import activations, random
from ..configs import config_of
from ..serialization import deserialize_keras_object, serialize_keras_object
from ..shapes import InputShape
from ._declared import DeclaredLayer, InputSpec, Layer, Shape, as_floats, build_within, positive
from ._recurrence import Scan, masked_outputs, recur, steps_first

__all__ = ["RNN", "StackedRNNCells"]


def _listed(states: Any) -> list[Any]:
    return list(states) if isinstance(states, (list, tuple)) else [states]


def _state_sizes(cell: Any) -> list[Any]:
    return _listed(cell.state_size)


def _output_size(cell: Any) -> Any:
    size = getattr(cell, "output_size", None)
    return _state_sizes(cell)[0] if size is None else size


def _zeros(size: Any, batch: Any, dtype: Any) -> Any:
    """Zeros for a state: one size, a shape, or a list of sizes for several."""
    if isinstance(size, list):
        return [_zeros(one, batch, dtype) for one in size]
    return tf.zeros((batch, *(size if isinstance(size, (tuple, tf.TensorShape)) else (size,))), dtype)


def first_states(cell: Any, batch: Any, dtype: Any) -> list[Any]:
    """The states that a cell begins with."""
    own = getattr(cell, "get_initial_state", None)
    if own is not None:
        return _listed(own(batch_size=batch))
    return [_zeros(size, batch, dtype) for size in _state_sizes(cell)]


def _takes(cell: Any, name: str) -> bool:
    try:
        return name in inspect.signature(cell.call).parameters
    except (TypeError, ValueError):
        return False


def is_function(activation: Any, name: str) -> bool:
    """Whether an activation is the known one of a name."""
    return activation in (getattr(activations, name), getattr(tf.nn, name))


class UsualCell(DeclaredLayer):
    """What SimpleRNNCell, LSTMCell and GRUCell share: weights and dropout, and a step in two parts.

    The first is a product with the inputs (`project`), which can be done for all steps at once; `advance` is the rest.
    """

    _gates = 1
    _arguments: tuple[str, ...] = (
        "units", "activation", "recurrent_activation", "use_bias", "kernel_initializer", "recurrent_initializer",
        "bias_initializer", "kernel_regularizer", "recurrent_regularizer", "bias_regularizer", "kernel_constraint",
        "recurrent_constraint", "bias_constraint", "dropout", "recurrent_dropout", "seed")

    recurrent_initializer: Any
    recurrent_activation: Any
    bias: Any
    _dropout_mask: Any = None
    _recurrent_mask: Any = None

    def _set_up(self, units: int, use_bias: bool, dropout: float, recurrent_dropout: float, seed: Any,
                implementation: int, **options: Any) -> None:
        self.units, self.use_bias = positive(units, "units"), use_bias
        self.dropout = min(1.0, max(0.0, dropout))
        self.recurrent_dropout = min(1.0, max(0.0, recurrent_dropout))
        self.implementation = 1 if self.recurrent_dropout else implementation
        self.seed = seed
        self.seed_generator = random.SeedGenerator(seed)
        self.state_size: Any = self.units
        self.output_size: Any = self.units
        self._take(**options)

    def build(self, input_shape: Any) -> None:
        """Make kernel, recurrent kernel and bias."""
        width = self._gates * self.units
        self.kernel = self._weight("kernel", (input_shape[-1], width))
        self.recurrent_kernel = self._weight("recurrent_kernel", (self.units, width), "recurrent")
        self.bias = self._make_bias() if self.use_bias else None
        self.built = True

    def _make_bias(self) -> Any:
        return self._weight("bias", (self._gates * self.units,))

    # -- dropout: one choice for all steps ----------------------------------------------------------
    def _mask(self, like: Any, rate: float) -> Any:
        """A dropout mask, or one for each gate where these take different inputs."""
        ones = tf.ones(tf.shape(like), like.dtype)
        count = self._gates if self.implementation == 1 and self._gates > 1 else 1
        masks = [random.dropout(ones, rate, seed=self.seed_generator) for _ in range(count)]
        return masks if self.implementation == 1 and self._gates > 1 else masks[0]

    def get_dropout_mask(self, step_input: Any) -> Any:
        """The mask for the inputs of a step, until `reset_dropout_mask`; None without dropout."""
        if self._dropout_mask is None and self.dropout > 0:
            self.__dict__["_dropout_mask"] = self._mask(step_input, self.dropout)
        return self._dropout_mask

    def get_recurrent_dropout_mask(self, step_input: Any) -> Any:
        """The mask for the state, until `reset_recurrent_dropout_mask`; None without dropout."""
        if self._recurrent_mask is None and self.recurrent_dropout > 0:
            self.__dict__["_recurrent_mask"] = self._mask(step_input, self.recurrent_dropout)
        return self._recurrent_mask

    def reset_dropout_mask(self) -> None:
        """Let the next sequence have a mask of its own."""
        self.__dict__["_dropout_mask"] = None

    def reset_recurrent_dropout_mask(self) -> None:
        """Let the next sequence have a mask of its own."""
        self.__dict__["_recurrent_mask"] = None

    # -- a step -----------------------------------------------------------------------------------
    def call(self, inputs: Any, states: Any, training: Any = False) -> Any:
        """One step.

        Args:
            inputs: [batch, features].
            states: a tensor [batch, units], or a list of them.
            training: whether dropout applies.
        Returns:
            The output [batch, units], and the next states.
        """
        single = not isinstance(states, (list, tuple))
        mask = self.get_dropout_mask(inputs) if training else None
        recurrent = self.get_recurrent_dropout_mask(_listed(states)[0]) if training else None
        output, after = self.advance(self.project(inputs, mask), _listed(states), recurrent)
        return output, after[0] if single else after

    def project(self, inputs: Any, mask: Any) -> Any:
        """The product of inputs [.., batch, features] with the kernel, and the bias of it."""
        bias = self._input_bias()
        inputs = as_floats(inputs, self.compute_dtype)
        if isinstance(mask, list):
            parts = tf.split(self.kernel, self._gates, axis=1)
            product = tf.concat([tf.matmul(inputs * m, part) for m, part in zip(mask, parts, strict=True)], -1)
        else:
            product = tf.matmul(inputs if mask is None else inputs * mask, self.kernel)
        return product if bias is None else product + bias

    def _input_bias(self) -> Any:
        return self.bias

    @abstractmethod
    def advance(self, projected: Any, states: list[Any], mask: Any) -> tuple[Any, list[Any]]:
        """The rest of a step: from the projected inputs and the states, with the dropout mask of these."""
        raise NotImplementedError(f"{type(self).__name__} does not say how a step advances.")

    def _recurrent(self, h: Any, mask: Any) -> Any:
        """The product of the state with the recurrent kernel."""
        if not isinstance(mask, list):
            return tf.matmul(h if mask is None else h * mask, self.recurrent_kernel)
        parts = tf.split(self.recurrent_kernel, self._gates, axis=1)
        return tf.concat([tf.matmul(h * m, part) for m, part in zip(mask, parts, strict=True)], -1)

    def whole_scan(self, projected: Any, states: list[Any], mask: Any) -> tuple[Any, list[Any]] | None:
        """All states over the steps and the last, by a loop made for this cell; None if there is none."""
        return None

    def get_initial_state(self, batch_size: Any = None) -> list[Any]:
        """Zeros for a batch."""
        return [_zeros(size, batch_size, self.compute_dtype) for size in _state_sizes(self)]

    def _is_usual(self) -> bool:
        """Whether a step is what this class says: no subclass has another `call`."""
        return type(self).call is UsualCell.call


class StackedRNNCells(Layer):
    """Several cells as one: each takes the output of the one before.

    Args:
        cells: the cells.
        kwargs: those of `Layer`.

    >>> import twofold as tf
    >>> cells = [tf.keras.layers.LSTMCell(4), tf.keras.layers.GRUCell(3)]
    >>> tf.keras.layers.RNN(tf.keras.layers.StackedRNNCells(cells))(tf.zeros([2, 5, 1])).shape
    TensorShape([2, 3])
    """

    def __init__(self, cells: Sequence[Any], **kwargs: Any):
        super().__init__(**kwargs)
        self.cells = listed(cells, "cells")
        for cell in self.cells:
            _require_cell(cell)

    @property
    def state_size(self) -> list[Any]:
        """The sizes of the states of each cell."""
        return [cell.state_size for cell in self.cells]

    @property
    def output_size(self) -> Any:
        """The size of the last cell's output."""
        return _output_size(self.cells[-1])

    def get_initial_state(self, batch_size: Any = None) -> list[Any]:
        """The states that the cells begin with, a list for each."""
        initial = []
        for cell in self.cells:
            states = first_states(cell, batch_size, self.compute_dtype)
            initial.append(states if isinstance(cell.state_size, (list, tuple)) or len(states) > 1 else states[0])
        return initial

    def build(self, input_shape: Any) -> None:
        """Build the cells."""
        for cell in self.cells:
            build_within(cell, self, input_shape)
            input_shape = (input_shape[0], _output_size(cell))
        self.built = True

    def call(self, inputs: Any, states: Any, training: Any = False) -> Any:
        """One step of all cells: the last output, and the next states of each."""
        after = []
        for cell, own in zip(self.cells, states, strict=True):
            flags = {"training": training} if _takes(cell, "training") else {}
            run = cell if callable(cell) else cell.call
            inputs, new = run(inputs, _listed(own), **flags)
            new = _listed(new)
            after.append(new if isinstance(own, (list, tuple)) else new[0])
        return inputs, after

    def get_config(self) -> dict[str, Any]:
        """The arguments that make equal cells, as plain values."""
        return {**super().get_config(), "cells": [serialize_keras_object(cell) for cell in self.cells]}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> StackedRNNCells:
        """Cells made from what `get_config` gave."""
        config = config_of(config)
        cells = [deserialize_keras_object(cell, custom_objects=custom_objects) for cell in config.pop("cells")]
        return cls(cells, **config)


def _require_cell(cell: Any) -> None:
    for name in ("call", "state_size"):
        if not hasattr(cell, name):
            raise ValueError(f"A recurrent cell must have `{name}`. Received: cell={cell}")


def _require_steps(shapes: list[Any]) -> None:
    for shape in shapes:
        if isinstance(shape, (InputShape, tf.TensorShape)) and len(shape) < 3:
            raise ValueError(f"The shape of sequences must be [batch, steps, features], with as many axes or more; got "
                             f"{tuple(shape)}.")


class RNN(DeclaredLayer):
    """A cell, run over the steps of sequences.

    Args:
        cell: an object with `call(inputs, states) -> output, states` and `state_size`; or a list of such.
        return_sequences: whether the outputs of all steps are given, else of the last.
        return_state: whether the last states are given, too.
        go_backwards: whether steps are taken from the last; outputs are in the order in which they are made.
        stateful: whether a batch begins with the states that the one before ended with.
        unroll: whether compiled code has the steps one by one.
        zero_output_for_mask: whether outputs are 0 at masked steps, else those of the step before.
        kwargs: those of `Layer`.
    Inputs: [batch, steps, ..], optionally `initial_state` (a list of tensors) and `mask` [batch, steps].
    Outputs: [batch, steps, output] or [batch, output], followed by the states if they are wanted.
    Raises:
        ValueError: the cell is none, or the batch of a stateful layer is unknown or changes.

    >>> import twofold as tf
    >>> class Sum(tf.keras.layers.Layer):
    ...     state_size = 1
    ...     def call(self, inputs, states):
    ...         total = inputs + states[0]
    ...         return total, [total]
    >>> layer = tf.keras.layers.RNN(Sum(), return_sequences=True)
    >>> layer(tf.constant([[[1.0], [2.0], [3.0]]])).numpy().ravel().tolist()
    [1.0, 3.0, 6.0]
    """

    _arguments: tuple[str, ...] = ("return_sequences", "return_state", "go_backwards", "stateful", "unroll",
                                   "zero_output_for_mask")
    supports_masking = True
    states: Any = None

    def __init__(self, cell: Any, return_sequences: bool = False, return_state: bool = False,
                 go_backwards: bool = False, stateful: bool = False, unroll: bool = False,
                 zero_output_for_mask: bool = False, **kwargs: Any):
        if isinstance(cell, (list, tuple)):
            cell = StackedRNNCells(cell)
        _require_cell(cell)
        super().__init__(**kwargs)
        self.cell = cell
        self.return_sequences, self.return_state, self.go_backwards = return_sequences, return_state, go_backwards
        self.stateful, self.unroll, self.zero_output_for_mask = stateful, unroll, zero_output_for_mask
        self.state_size = _state_sizes(cell)

    def build(self, sequences_shape: Any, initial_state_shape: Any = None) -> None:
        """Build the cell, and make the states that stay between batches. `initial_state_shape` has no effect."""
        _require_steps([sequences_shape])
        build_within(self.cell, self, (sequences_shape[0], *sequences_shape[2:]))
        if self.stateful and self.states is None:
            if sequences_shape[0] is None:
                raise ValueError("When using `stateful=True` in a RNN, the batch size must be static. Found dynamic "
                                 f"batch size: sequence.shape={tuple(sequences_shape)}")
            self._make_states(sequences_shape[0])
        self.built = True

    def _make_states(self, batch: int) -> None:
        """States are no weights: files and checkpoints leave them out."""
        with tf.init_scope(), self._scoped():
            self.__dict__["states"] = tf.nest.map_structure(
                lambda x: tf.Variable(x, trainable=False, name="rnn_state"), self.get_initial_state(batch))

    def get_initial_state(self, batch_size: Any) -> list[Any]:
        """The states that the cell begins with, for a batch."""
        return first_states(self.cell, batch_size, self.compute_dtype)

    def reset_state(self) -> None:
        """Let the next batch of a stateful layer begin with zeros."""
        for state in tf.nest.flatten(self.states) if self.states is not None else ():
            state.assign(tf.zeros_like(state))

    def reset_states(self) -> None:
        """The older name of `reset_state`."""
        self.reset_state()

    def call(self, sequences: Any, initial_state: Any = None, mask: Any = None, training: Any = False) -> Any:
        """The outputs for sequences."""
        _require_steps([x.shape for x in tf.nest.flatten(sequences)])
        states = self._begin(sequences, initial_state)
        if isinstance(mask, (list, tuple)):
            mask = mask[0]
        inputs = tf.nest.map_structure(steps_first, sequences)
        mask = None if mask is None else tf.transpose(tf.cast(mask, tf.bool))
        if self.go_backwards:
            inputs = tf.nest.map_structure(lambda x: tf.reverse(x, [0]), inputs)
            mask = None if mask is None else tf.reverse(mask, [0])
        if self.unroll and tf.nest.flatten(inputs)[0].shape[0] is None:
            raise ValueError("Cannot unroll a RNN if the time dimension is undefined.")
        results = self._run_cell(inputs, states, mask, training)
        dtype = self.compute_dtype
        after = tf.nest.map_structure(lambda x: tf.cast(x, dtype), results.states)
        if self.stateful:
            with replica.assigning_alike():  # each replica has its own sequences
                for variable, value in zip(tf.nest.flatten(self.states), tf.nest.flatten(after), strict=True):
                    variable.assign(tf.cast(value, variable.dtype))
        wanted = tf.nest.map_structure(steps_first, results.outputs) if self.return_sequences else results.last
        output = tf.nest.map_structure(lambda x: tf.cast(x, dtype), wanted)
        return (output, *after) if self.return_state else output

    def _begin(self, sequences: Any, given: Any) -> list[Any]:
        """The states to begin with."""
        first = tf.nest.flatten(sequences)[0]
        batch = first.shape[0] if first.shape[0] is not None else tf.shape(first)[0]
        if self.stateful:
            kept = tf.nest.flatten(self.states)[0].shape[0]
            if first.shape[0] not in (None, kept):
                raise ValueError("If an RNN is stateful, the batch size of the input sequences must be the same as the "
                                 f"batch size of the initial state: {kept}. Received batch size: {first.shape[0]}")
        if given is None:
            given = self.states if self.stateful else self.get_initial_state(batch)
        given = _listed(given)
        if len(given) != len(self.state_size):
            raise ValueError(f"The cell has {len(self.state_size)} states; received initial_state of {len(given)}.")
        dtype = getattr(self.cell, "compute_dtype", self.compute_dtype)
        return tf.nest.map_structure(lambda x: tf.cast(x, dtype), given)

    def _run_cell(self, inputs: Any, states: list[Any], mask: Any, training: Any) -> Scan:
        cell = self.cell
        if not isinstance(cell, UsualCell) or not cell._is_usual():
            return self._generic(inputs, states, mask, training)
        dropout = cell._mask(inputs[0], cell.dropout) if training and cell.dropout else None
        recurrent = cell._mask(states[0], cell.recurrent_dropout) if training and cell.recurrent_dropout else None
        projected = cell.project(inputs, dropout)
        if recurrent is None and not self.unroll:
            whole = cell.whole_scan(projected, states, mask)
            if whole is not None:
                history, after = whole
                outputs = masked_outputs(history, mask, self.zero_output_for_mask)
                last = after[0] if mask is None else outputs[-1]
                return Scan(last, outputs, after)
        return recur(lambda x, held: cell.advance(x, held, recurrent), projected, states, mask,
                     self.zero_output_for_mask, self.return_sequences or self.unroll, self.unroll)

    def _generic(self, inputs: Any, states: list[Any], mask: Any, training: Any) -> Scan:
        cell = self.cell
        usual = [c for c in (cell.cells if isinstance(cell, StackedRNNCells) else [cell]) if isinstance(c, UsualCell)]
        flags = {"training": training} if _takes(cell, "training") else {}
        run = cell if callable(cell) else cell.call

        def step(x: Any, held: Any) -> tuple[Any, Any]:
            output, after = run(x, held, **flags)
            return output, _listed(after)

        try:
            if training and any(c.dropout or c.recurrent_dropout for c in usual):
                step(tf.nest.map_structure(lambda x: x[0], inputs), states)  # draws the masks, before the loop
            return recur(step, inputs, states, mask, self.zero_output_for_mask, self.return_sequences, self.unroll)
        finally:
            for one in usual:
                one.reset_dropout_mask()
                one.reset_recurrent_dropout_mask()

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """The mask of the outputs: that of the inputs, if all steps are given."""
        outputs_mask = tf.nest.flatten(mask)[0] if mask is not None and self.return_sequences else None
        return [outputs_mask, *(None for _ in self.state_size)] if self.return_state else outputs_mask

    def compute_output_shape(self, sequences_shape: Any, initial_state_shape: Any = None) -> Any:
        """The shape of the outputs for sequences of a shape. `initial_state_shape` has no effect."""
        batch, steps = sequences_shape[0], sequences_shape[1]
        size = _output_size(self.cell)
        size = tuple(size) if isinstance(size, (tuple, list, tf.TensorShape)) else (size,)
        output: Shape = (batch, steps, *size) if self.return_sequences else (batch, *size)
        if not self.return_state:
            return output
        return (output, *(_state_shape(batch, one) for one in self.state_size))

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal layer, as plain values."""
        return {**super().get_config(), "cell": serialize_keras_object(self.cell)}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Any:
        """A layer made from what `get_config` gave."""
        config = config_of(config)
        cell = deserialize_keras_object(config.pop("cell"), custom_objects=custom_objects)
        return cls(cell, **config)


def _state_shape(batch: Any, size: Any) -> Any:
    if isinstance(size, list):
        return [_state_shape(batch, one) for one in size]
    return (batch, *(size if isinstance(size, (tuple, tf.TensorShape)) else (size,)))


class OfCell(RNN):
    """What SimpleRNN, LSTM and GRU share: an RNN that makes its cell of its own arguments."""

    _cell_arguments: tuple[str, ...] = ()

    def _made(self, cell: UsualCell, options: dict[str, Any]) -> None:
        RNN.__init__(self, cell, **options)
        self.input_spec = InputSpec(ndim=3)

    def __getattr__(self, name: str) -> Any:
        if name in type(self)._cell_arguments and "cell" in self.__dict__:
            return getattr(self.__dict__["cell"], name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal layer, as plain values."""
        config = RNN.get_config(self)
        cell = config.pop("cell")["config"]
        config.update({name: cell[name] for name in self._cell_arguments})
        if self.activity_regularizer is None:
            config.setdefault("activity_regularizer", None)
        return config

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Any:
        """A layer made from what `get_config` gave."""
        return cls(**config_of(config))
