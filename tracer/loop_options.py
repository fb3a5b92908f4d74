"""`tf.autograph.experimental.set_loop_options`: a directive that conversion reads and removes."""

from __future__ import annotations

from collections.abc import Iterable

from twofold.runtime import native

from .types import PythonValue

__all__ = ["set_loop_options"]


@native.guard  # here, so that what conversion looks for is what the public name stands for
def set_loop_options(parallel_iterations: PythonValue = None, swap_memory: PythonValue = None,
                     maximum_iterations: PythonValue = None,
                     shape_invariants: Iterable[tuple[PythonValue, PythonValue]] | None = None) -> None:
    """Assumptions about the loop that this call begins; they have an effect only where the loop is staged.

    Args:
        parallel_iterations, swap_memory: have no effect.
        maximum_iterations: how many rounds there may be at most.
        shape_invariants: `(tensor, shape)` pairs: the shapes that the variable which begins as that tensor may have.
    Raises:
        ValueError: in a function that is converted it is not the first statement of a loop's body.

    >>> import twofold as tf
    >>> @tf.function
    ... def doubled(n):
    ...     v = tf.constant([1.0])
    ...     for _ in tf.range(n):
    ...         tf.autograph.experimental.set_loop_options(shape_invariants=[(v, tf.TensorShape([None]))])
    ...         v = tf.concat([v, v], 0)
    ...     return v
    >>> doubled(tf.constant(2)).numpy().tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
