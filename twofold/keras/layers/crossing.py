"""`HashedCrossing`: the hash of several values together, as TensorFlow computes it."""

from __future__ import annotations

from typing import Any

import twofold as tf
from twofold._front.api import listed
from twofold._ops.string_hashes import crossed_buckets

from ..composites import is_composite, result
from ..encoding import encoded
from ._declared import DeclaredLayer, Shape, positive

__all__ = ["HashedCrossing"]


class HashedCrossing(DeclaredLayer):
    """Combinations of words or integers as the numbers of buckets, by their hashes: TensorFlow's, so the same buckets.

    Args:
        num_bins: how many buckets there are.
        output_mode: "int" for numbers of buckets, or "one_hot".
        sparse: whether vectors are sparse tensors.
        kwargs: those of `Layer`.
    Inputs: a list of two or more tensors of strings or integers, of one shape: (), [batch] or [batch, 1]. Outputs:
        int64 of that shape, or floating vectors.
    Raises:
        ValueError: there are fewer inputs, of other shapes or dtypes.

    >>> import twofold as tf
    >>> layer = tf.keras.layers.HashedCrossing(5)
    >>> layer((tf.constant(["A", "B", "A", "B", "A"]), tf.constant([101, 101, 101, 102, 102]))).numpy().tolist()
    [1, 4, 1, 1, 3]
    """

    _arguments = ("num_bins", "output_mode", "sparse")

    def __init__(self, num_bins: int, output_mode: str = "int", sparse: bool = False, **kwargs: Any):
        if output_mode not in ("int", "one_hot"):
            raise ValueError("Invalid value for argument `output_mode`. Expected one of ('int', 'one_hot'). Received: "
                             f"output_mode={output_mode!r}")
        if kwargs.get("dtype") is None and output_mode == "int":
            kwargs["dtype"] = "int64"
        super().__init__(**kwargs)
        self.autocast = False
        self.num_bins, self.output_mode, self.sparse = positive(num_bins, "num_bins"), output_mode, bool(sparse)

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal layer; there is nothing in it to be trained."""
        return {name: value for name, value in super().get_config().items() if name != "trainable"}

    def call(self, inputs: Any) -> Any:
        """The outputs for `inputs`."""
        if not isinstance(inputs, (list, tuple)) or len(inputs) < 2:
            raise ValueError("`HashedCrossing` should be called on a list or tuple of at least two inputs. Received: "
                             f"inputs={inputs}")
        if any(map(is_composite, inputs)):
            raise ValueError("All `HashedCrossing` inputs should be dense tensors: tf.ragged.cross_hashed and "
                             f"tf.sparse.cross_hashed take others. Received: inputs={inputs}")
        given = [tf.convert_to_tensor(x) for x in inputs]
        self._check(given)
        joined = crossed_buckets(given, self.num_bins)
        if self.output_mode == "int":
            return joined if self.compute_dtype == "int64" else tf.cast(joined, self.compute_dtype)
        return encoded(joined, self.num_bins, "one_hot", self.compute_dtype, sparse=self.sparse)

    def _check(self, given: list[Any]) -> None:
        first = given[0].shape
        if len(first) > 2 or (len(first) == 2 and first[-1] != 1):
            raise ValueError("All `HashedCrossing` inputs should have shape `()`, `(batch_size)` or `(batch_size, 1)`. "
                             f"Received: inputs={given}")
        if not all(x.shape.is_compatible_with(first) for x in given[1:]):
            raise ValueError(f"All `HashedCrossing` inputs should have equal shape. Received: inputs={given}")
        if not all(x.dtype.is_integer or x.dtype == tf.string for x in given):
            raise ValueError("All `HashedCrossing` inputs should have an integer or string dtype. Received: "
                             f"inputs={given}")

    def compute_output_shape(self, input_shape: Any) -> Shape:
        """The shape of the outputs for inputs of shapes."""
        shape = tuple(input_shape[0])
        if self.output_mode == "int":
            return shape
        return (*shape, self.num_bins) if len(shape) < 2 or shape[-1] != 1 else (*shape[:-1], self.num_bins)

    def compute_output_spec(self, inputs: Any) -> Any:
        """The spec of the outputs."""
        shapes = [x.shape for x in listed(inputs, "inputs")]
        return result(self.compute_output_shape(shapes), self.compute_dtype, self.sparse and self.output_mode != "int")
