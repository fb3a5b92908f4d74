"""Long short-term memory over images: an LSTM whose products are convolutions (Shi et al. 2015)."""

from __future__ import annotations

from typing import Any

import twofold as tf

from ._declared import InputSpec, Shape, data_format_of, numbers, padding_of, window_sizes
from .lstm import LSTMCell
from .recurrent import OfCell

__all__ = ["ConvLSTM1D", "ConvLSTM2D", "ConvLSTM3D"]


class ConvLSTMCell(LSTMCell):
    """One step of a `ConvLSTM2D`, or of its like over 1 or 3 axes.

    Args:
        rank: over how many axes.
        filters: the channels of the states and the output.
        kernel_size, strides, padding, data_format, dilation_rate: of the convolution of the inputs; that of the state
            keeps its size.
        kwargs: those of `LSTMCell`.
    Weights: kernel [window.., channels, 4 filters], recurrent_kernel [window.., filters, 4 filters], bias [4 filters].
    """

    _arguments = ("filters", "kernel_size", "strides", "padding", "data_format", "dilation_rate",
                  *[name for name in LSTMCell._arguments if name != "units"])

    def __init__(self, rank: int, filters: int, kernel_size: Any, strides: Any = 1, padding: str = "valid",
                 data_format: str | None = None, dilation_rate: Any = 1, **kwargs: Any):
        super().__init__(filters, implementation=1, **kwargs)
        self.rank, self.filters = rank, self.units
        self.kernel_size = numbers(kernel_size, rank, "kernel_size")
        self.strides, self.dilation_rate = numbers(strides, rank, "strides"), numbers(dilation_rate, rank,
                                                                                      "dilation_rate")
        self.padding, self.data_format = padding_of(padding), data_format_of(data_format)
        if max(self.strides) > 1 and max(self.dilation_rate) > 1:
            raise ValueError("Specifying `strides > 1` is not compatible with `dilation_rate > 1`. Received: "
                             f"strides={self.strides} and dilation_rate={self.dilation_rate}")
        self.implementation = 1  # each gate has a dropout mask of its own

    @property
    def _first(self) -> bool:
        return self.data_format == "channels_first"

    def output_shape_for(self, shape: Shape) -> Shape:
        """The shape of a state for the inputs of a step, without the batch.

        Args:
            shape: [places.., channels], or channels first.
        """
        spatial = shape[1:] if self._first else shape[:-1]
        places = window_sizes(spatial, self.kernel_size, self.strides, self.padding, self.dilation_rate)
        return (self.filters, *places) if self._first else (*places, self.filters)

    def build(self, input_shape: Any) -> None:
        """Make kernel, recurrent kernel and bias."""
        shape = tuple(input_shape)[1:]
        if None in shape:
            raise ValueError("ConvLSTM layers need inputs of known size: of channels, and along the axes that they go "
                             f"over. Received: input_shape={tuple(input_shape)}")
        channels = shape[0] if self._first else shape[-1]
        self.kernel = self._weight("kernel", (*self.kernel_size, channels, 4 * self.filters))
        self.recurrent_kernel = self._weight("recurrent_kernel", (*self.kernel_size, self.filters, 4 * self.filters),
                                             "recurrent")
        self.bias = self._make_bias() if self.use_bias else None
        state = self.output_shape_for(shape)
        self.state_size, self.output_size = [state, state], state
        self.built = True

    def _convolved(self, x: Any, kernel: Any, strides: Any, padding: str, dilations: Any) -> Any:
        spatial = "W" if self.rank == 1 else "DHW"[3 - self.rank:]
        layout = f"NC{spatial}" if self._first else f"N{spatial}C"
        return tf.nn.convolution(x, kernel, strides, padding.upper(), layout, dilations)

    def _of_gates(self, kernel: Any) -> Any:
        return tf.split(kernel, 4, axis=-1)

    def _channel_axis(self, x: Any) -> int:
        return len(x.shape) - self.rank - 1 if self._first else len(x.shape) - 1

    def project(self, inputs: Any, mask: Any) -> Any:
        """The convolution of inputs [batch, ..] or [steps, batch, ..], with its bias: all steps as one batch."""
        several = len(inputs.shape) == self.rank + 3

        def convolved(x: Any, kernel: Any) -> Any:
            flat = tf.reshape(x, (-1, *x.shape[2:])) if several else x
            product = self._convolved(flat, kernel, self.strides, self.padding, self.dilation_rate)
            return tf.reshape(product, (-1, tf.shape(x)[1], *product.shape[1:])) if several else product

        axis = self._channel_axis(inputs)
        if isinstance(mask, list):
            product = tf.concat([convolved(inputs * m, part) for m, part in zip(
                mask, self._of_gates(self.kernel), strict=True)], axis)
        else:
            product = convolved(inputs if mask is None else inputs * mask, self.kernel)
        if self.bias is None:
            return product
        return product + (tf.reshape(self.bias, (-1, *(1,) * self.rank)) if self._first else self.bias)

    def _recurrent(self, h: Any, mask: Any) -> Any:
        """The convolution of the state."""
        if not isinstance(mask, list):
            return self._convolved(h if mask is None else h * mask, self.recurrent_kernel, 1, "same", 1)
        return tf.concat([self._convolved(h * m, part, 1, "same", 1) for m, part in zip(
            mask, self._of_gates(self.recurrent_kernel), strict=True)], self._channel_axis(h))

    def whole_scan(self, projected: Any, states: list[Any], mask: Any) -> tuple[Any, list[Any]] | None:
        """None: the loop over steps is the general one."""
        return None


class _ConvLSTM(OfCell):
    """A `ConvLSTMCell` over the steps of sequences of images."""

    _cell_arguments = ConvLSTMCell._arguments
    _rank: int

    def __init__(self, filters: int, kernel_size: Any, strides: Any = 1, padding: str = "valid",
                 data_format: str | None = None, dilation_rate: Any = 1, activation: Any = "tanh",
                 recurrent_activation: Any = "sigmoid", use_bias: bool = True,
                 kernel_initializer: Any = "glorot_uniform", recurrent_initializer: Any = "orthogonal",
                 bias_initializer: Any = "zeros", unit_forget_bias: bool = True, kernel_regularizer: Any = None,
                 recurrent_regularizer: Any = None, bias_regularizer: Any = None, activity_regularizer: Any = None,
                 kernel_constraint: Any = None, recurrent_constraint: Any = None, bias_constraint: Any = None,
                 dropout: float = 0.0, recurrent_dropout: float = 0.0, seed: Any = None,
                 return_sequences: bool = False, return_state: bool = False, go_backwards: bool = False,
                 stateful: bool = False, **kwargs: Any):
        cell = ConvLSTMCell(
            self._rank, filters, kernel_size, strides, padding, data_format, dilation_rate, activation=activation,
            recurrent_activation=recurrent_activation, use_bias=use_bias, kernel_initializer=kernel_initializer,
            recurrent_initializer=recurrent_initializer, bias_initializer=bias_initializer,
            unit_forget_bias=unit_forget_bias, kernel_regularizer=kernel_regularizer,
            recurrent_regularizer=recurrent_regularizer, bias_regularizer=bias_regularizer,
            kernel_constraint=kernel_constraint, recurrent_constraint=recurrent_constraint,
            bias_constraint=bias_constraint, dropout=dropout, recurrent_dropout=recurrent_dropout, seed=seed,
            name="conv_lstm_cell", dtype=kwargs.get("dtype"), trainable=kwargs.get("trainable", True))
        self._made(cell, {"return_sequences": return_sequences, "return_state": return_state,
                          "go_backwards": go_backwards, "stateful": stateful,
                          "activity_regularizer": activity_regularizer, **kwargs})
        self.input_spec = InputSpec(ndim=self._rank + 3)

    def compute_output_shape(self, sequences_shape: Any, initial_state_shape: Any = None) -> Any:
        """The shape of the outputs for sequences of a shape. `initial_state_shape` has no effect."""
        batch, steps = sequences_shape[0], sequences_shape[1]
        size = self.cell.output_shape_for(tuple(sequences_shape)[2:])
        output = (batch, steps, *size) if self.return_sequences else (batch, *size)
        return (output, (batch, *size), (batch, *size)) if self.return_state else output


class ConvLSTM1D(_ConvLSTM):
    """`ConvLSTM2D` over one axis.

    Args: see `ConvLSTM2D`.
    Inputs: [batch, steps, places, channels], or [batch, steps, channels, places].

    >>> import twofold as tf
    >>> tf.keras.layers.ConvLSTM1D(4, 3)(tf.zeros([2, 5, 8, 3])).shape
    TensorShape([2, 6, 4])
    """

    _rank = 1


class ConvLSTM2D(_ConvLSTM):
    """Long short-term memory over sequences of images: the products of an `LSTM` are convolutions (Shi et al. 2015).

    Args:
        filters: the channels of the states and the output.
        kernel_size, strides, padding, data_format, dilation_rate: of the convolution of the inputs, as for `Conv2D`.
        activation, recurrent_activation, use_bias, kernel_initializer, recurrent_initializer, bias_initializer,
        unit_forget_bias, kernel_regularizer, recurrent_regularizer, bias_regularizer, activity_regularizer,
        kernel_constraint, recurrent_constraint, bias_constraint, dropout, recurrent_dropout, seed, return_sequences,
        return_state, go_backwards, stateful: as for `LSTM`.
        kwargs: those of `Layer`, and `unroll`.
    Inputs: [batch, steps, height, width, channels], or [batch, steps, channels, height, width]; see `RNN`.
    Outputs: [batch, height, width, filters] or such for each step, and the states h and c if they are wanted.
    Weights: kernel [window.., channels, 4 filters], recurrent_kernel [window.., filters, 4 filters], bias [4 filters].
    Raises:
        ValueError: the sizes of the images are not known, or strides meet dilations.

    >>> import twofold as tf
    >>> layer = tf.keras.layers.ConvLSTM2D(4, 3, padding="same", return_sequences=True)
    >>> layer(tf.zeros([2, 5, 8, 6, 3])).shape
    TensorShape([2, 5, 8, 6, 4])
    """

    _rank = 2


class ConvLSTM3D(_ConvLSTM):
    """`ConvLSTM2D` over three axes.

    Args: see `ConvLSTM2D`.
    Inputs: [batch, steps, depth, height, width, channels], or channels after the steps.

    >>> import twofold as tf
    >>> tf.keras.layers.ConvLSTM3D(2, 3)(tf.zeros([1, 2, 4, 4, 4, 1])).shape
    TensorShape([1, 2, 2, 2, 2])
    """

    _rank = 3
