"""Functions right under `tf` that are raw ops of TensorFlow, or older names of functions that live in modules."""

from __future__ import annotations

from typing import Any

import twofold as tf
from twofold._front.api import public
from twofold._ops.linalg_factors import sqrtm as matrix_square_root

__all__ = ["matrix_square_root", "ragged_fill_empty_rows", "ragged_fill_empty_rows_grad", "random_index_shuffle",
           "realdiv"]


@public
def realdiv(x: Any, y: Any, name: str | None = None) -> Any:
    """Quotients of floats or complex numbers; `tf.divide` of two of one dtype.

    Args:
        x, y: of one dtype; they broadcast.
        name: accepted, without effect.
    Returns:
        Tensor of that dtype.

    >>> import twofold as tf
    >>> tf.realdiv(3.0, 2.0).numpy().item()
    1.5
    """
    return tf.raw_ops.RealDiv(x=x, y=y)


@public
def random_index_shuffle(index: Any, seed: Any, max_index: Any, rounds: int = 4, name: str | None = None) -> Any:
    """Where indices go in an order that a seed decides: `tf.random.experimental.index_shuffle` takes two words of it.

    Args:
        index: integers within `[0, max_index]`.
        seed: three words, of which the first is 498247692, as TensorFlow's public function puts it there.
        max_index: the largest index.
        rounds: 4.
        name: accepted, without effect.
    Returns:
        Tensor like `index`.
    Raises:
        InvalidArgumentError: the first word or the number of rounds is another.

    >>> import twofold as tf
    >>> tf.random_index_shuffle(tf.range(4), [498247692, 5, 9], 3).numpy().tolist()
    [2, 0, 1, 3]
    """
    return tf.raw_ops.RandomIndexShuffle(index=index, seed=seed, max_index=max_index, rounds=rounds)


@public
def ragged_fill_empty_rows(value_rowids: Any, values: Any, nrows: Any, default_value: Any,
                           name: str | None = None) -> Any:
    """Ragged rows with a value in each that had none.

    Args:
        value_rowids: the row of each value, int64, rising.
        values: a vector.
        nrows: how many rows there are, int64.
        default_value: what a row without values gets.
        name: accepted, without effect.
    Returns:
        (output_value_rowids, output_values, empty_row_indicator, reverse_index_map): rows and values with those that
        were put in, which rows had none, and where each value went.

    >>> import twofold as tf
    >>> made = tf.ragged_fill_empty_rows(tf.constant([0, 2], tf.int64), [1.0, 2.0], tf.constant(3, tf.int64), 9.0)
    >>> made.output_values.numpy().tolist(), made.empty_row_indicator.numpy().tolist()
    ([1.0, 9.0, 2.0], [False, True, False])
    """
    return tf.raw_ops.RaggedFillEmptyRows(value_rowids=value_rowids, values=values, nrows=nrows,
                                          default_value=default_value)


@public
def ragged_fill_empty_rows_grad(reverse_index_map: Any, grad_values: Any, name: str | None = None) -> Any:
    """The gradient of `tf.ragged_fill_empty_rows`.

    Args:
        reverse_index_map: where each value went.
        grad_values: the gradient for the values with those that were put in.
        name: accepted, without effect.
    Returns:
        (d_values, d_default_value): the gradients for the values, and for what rows without values got.

    >>> import twofold as tf
    >>> made = tf.ragged_fill_empty_rows_grad(tf.constant([0, 2], tf.int64), [1.0, 5.0, 2.0])
    >>> made.d_values.numpy().tolist(), made.d_default_value.numpy().item()
    ([1.0, 2.0], 5.0)
    """
    return tf.raw_ops.RaggedFillEmptyRowsGrad(reverse_index_map=reverse_index_map, grad_values=grad_values)
