"""Operators whose elements follow a pattern: few diagonals, a permutation, equal elements along each diagonal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

import twofold as tf
from twofold._front.api import public_class

from .base import LinearOperator, broadcast_shapes, conjugated, matrix_operand, operand, require_hint

__all__ = ["LinearOperatorPermutation", "LinearOperatorToeplitz", "LinearOperatorTridiag"]


class LinearOperatorPermutation(LinearOperator):
    """The operator that puts the elements of vectors into another order: `matvec(x)[i]` is `x[perm[i]]`.

    Args:
        perm: int32 or int64 tensor `[..., n]`; each holds all of 0 to n - 1.
        dtype: of the elements.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square: hints, as for `tf.linalg.LinearOperator`.
        name: of the operator.
    Raises:
        ValueError: `perm`, where it is known, is no permutation; hints say other than what holds for permutations.
        TypeError: its dtype is no integer.

    >>> import twofold as tf
    >>> tf.linalg.LinearOperatorPermutation([1, 2, 0]).matvec([10.0, 20.0, 30.0]).numpy().tolist()
    [20.0, 30.0, 10.0]
    """

    _matrix_axes: ClassVar[Mapping[str, Any] | None] = {"perm": 1}

    def __init__(self, perm: Any, dtype: Any = tf.float32, is_non_singular: bool | None = None,
                 is_self_adjoint: bool | None = None, is_positive_definite: bool | None = None,
                 is_square: bool | None = None, name: str | None = "LinearOperatorPermutation") -> None:
        self._perm = operand(perm, "perm", "integer")
        if self._perm.shape.rank == 0:
            raise ValueError("Argument `perm` must have at least 1 dimension. Received a scalar.")
        known = tf.get_static_value(self._perm)
        if known is not None and not (np.sort(known, axis=-1) == np.arange(known.shape[-1])).all():
            raise ValueError("Argument `perm` must be a vector of unique integers from 0 to n - 1.")
        parameters = {"perm": self._perm, "dtype": tf.as_dtype(dtype), "is_non_singular": is_non_singular,
                      "is_self_adjoint": is_self_adjoint, "is_positive_definite": is_positive_definite,
                      "is_square": is_square, "name": name}
        super().__init__(
            dtype, None, require_hint(is_non_singular, True, "A Permutation operator is always non-singular."),
            is_self_adjoint, is_positive_definite,
            require_hint(is_square, True, "A Permutation operator is always square."), name, parameters)

    @property
    def perm(self) -> Any:
        """The permutation."""
        return self._perm

    def _shape(self) -> Any:
        return self._perm.shape.concatenate(self._perm.shape[-1:])

    def _shape_tensor(self) -> Any:
        sizes = tf.shape(self._perm)
        return tf.concat([sizes, sizes[-1:]], 0)

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        order = tf.argsort(self._perm, axis=-1) if adjoint else self._perm
        if order.shape.rank == 1:
            return tf.gather(x, order, axis=-2)
        batch = tf.broadcast_dynamic_shape(tf.shape(x)[:-2], tf.shape(order)[:-1])
        x = tf.broadcast_to(x, tf.concat([batch, tf.shape(x)[-2:]], 0))
        order = tf.broadcast_to(order, tf.concat([batch, tf.shape(order)[-1:]], 0))
        return tf.gather(x, order, axis=-2, batch_dims=order.shape.rank - 1)

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return self._matmul(rhs, adjoint=not adjoint)

    def _to_dense(self) -> Any:
        return tf.one_hot(self._perm, self.domain_dimension_tensor(), dtype=self.dtype)

    def _batch_of(self, value: float) -> Any:
        return tf.fill(self.batch_shape_tensor(), tf.constant(value, self.dtype))

    def _log_abs_determinant(self) -> Any:
        return self._batch_of(0.0)

    def _cond(self) -> Any:
        return self._batch_of(1.0)

    def _linop_inverse(self) -> LinearOperator:
        return self.adjoint()

    def _linop_adjoint(self) -> LinearOperator:
        return LinearOperatorPermutation(tf.argsort(self._perm, axis=-1), self.dtype, True, self.is_self_adjoint,
                                         self.is_positive_definite)


class LinearOperatorToeplitz(LinearOperator):
    """The operator of a square matrix with equal elements along each diagonal. Products are made by FFTs.

    Args:
        col: floating or complex tensor `[..., n]`, the first column.
        row: of the same dtype, the first row; its first element is not read.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square: hints, as for `tf.linalg.LinearOperator`.
        name: of the operator.
    Raises:
        ValueError: an argument is a scalar, or sizes differ; hints contradict one another.
        TypeError: dtypes differ.

    >>> import twofold as tf
    >>> tf.linalg.LinearOperatorToeplitz([1.0, 2.0, 3.0], [1.0, 4.0, 5.0]).to_dense().numpy().tolist()
    [[1.0, 4.0, 5.0], [2.0, 1.0, 4.0], [3.0, 2.0, 1.0]]
    """

    _matrix_axes: ClassVar[Mapping[str, Any] | None] = {"col": 1, "row": 1}

    def __init__(self, col: Any, row: Any, is_non_singular: bool | None = None, is_self_adjoint: bool | None = None,
                 is_positive_definite: bool | None = None, is_square: bool | None = None,
                 name: str | None = "LinearOperatorToeplitz") -> None:
        self._col, self._row = matrix_operand(col, "col", 1), matrix_operand(row, "row", 1)
        if self._col.dtype is not self._row.dtype:
            raise TypeError(f"Expected `col` and `row` to have the same dtype. Found: {self._col.dtype.name} and "
                            f"{self._row.dtype.name}.")
        one, other = self._col.shape[-1], self._row.shape[-1]
        if one is not None and other is not None and one != other:
            raise ValueError(f"Expected square matrix, got `col` of {one} and `row` of {other} elements.")
        parameters = {"col": self._col, "row": self._row, "is_non_singular": is_non_singular,
                      "is_self_adjoint": is_self_adjoint, "is_positive_definite": is_positive_definite,
                      "is_square": is_square, "name": name}
        super().__init__(
            self._col.dtype, None, is_non_singular, is_self_adjoint, is_positive_definite,
            require_hint(is_square, True, "Only square Toeplitz operators currently supported."), name, parameters)

    @property
    def col(self) -> Any:
        """The first column."""
        return self._col

    @property
    def row(self) -> Any:
        """The first row."""
        return self._row

    def _shape(self) -> Any:
        size = self._col.shape[-1]
        size = self._row.shape[-1] if size is None else size
        return broadcast_shapes([self._col.shape[:-1], self._row.shape[:-1]]).concatenate([size, size])

    def _shape_tensor(self) -> Any:
        batch = tf.broadcast_dynamic_shape(tf.shape(self._col)[:-1], tf.shape(self._row)[:-1])
        size = tf.shape(self._col)[-1:]
        return tf.concat([batch, size, size], 0)

    def _around(self) -> Any:
        """The column, and behind it the row in reverse, without the element that both have: a circle of 2 n - 1."""
        batch = self.batch_shape_tensor()
        size = tf.shape(self._col)[-1:]
        both = [tf.broadcast_to(x, tf.concat([batch, size], 0)) for x in (self._col, self._row)]
        return tf.concat([both[0], tf.reverse(both[1][..., 1:], [-1])], -1)

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        wide = self.dtype if self.dtype.is_complex else tf.complex128 if self.dtype is tf.float64 else tf.complex64
        circle = tf.expand_dims(tf.signal.fft(tf.cast(self._around(), wide)), -2)
        rows = tf.cast(tf.linalg.matrix_transpose(x), wide)
        size = tf.shape(rows)[-1]
        rows = tf.concat([rows, tf.zeros_like(rows)[..., 1:]], -1)
        product = tf.signal.ifft((tf.math.conj(circle) if adjoint else circle) * tf.signal.fft(rows))[..., :size]
        return tf.linalg.matrix_transpose(product if self.dtype.is_complex else tf.cast(
            tf.math.real(product), self.dtype))

    def _to_dense(self) -> Any:
        size = tf.shape(self._col)[-1]
        ramp = tf.range(size)
        return tf.gather(self._around(), (tf.expand_dims(ramp, -1) - ramp) % (2 * size - 1), axis=-1)

    def _diag_part(self) -> Any:
        first = tf.broadcast_to(self._col[..., :1], tf.concat([self.batch_shape_tensor(), [1]], 0))
        return first * tf.ones([self.domain_dimension_tensor()], self.dtype)

    def _linop_adjoint(self) -> LinearOperator:
        row, col = tf.convert_to_tensor(self._row), tf.convert_to_tensor(self._col)
        corner = self._diag_part()[..., :1]
        first = tf.broadcast_to(row, tf.concat([self.batch_shape_tensor(), tf.shape(row)[-1:]], 0))
        return LinearOperatorToeplitz(conjugated(tf.concat([corner, first[..., 1:]], -1)), conjugated(col),
                                      self.is_non_singular, self.is_self_adjoint, self.is_positive_definite)


class LinearOperatorTridiag(LinearOperator):
    """The operator of a square matrix with three diagonals.

    Args:
        diagonals: floating or complex. By `diagonals_format`, a tensor `[..., 3, n]` of the diagonals above the main
            one, on it, and below it, of which the last element of the first, and the first of the last, are not read;
            a list of three tensors `[..., n]`, likewise; or a matrix `[..., n, n]`, of which nothing else is read.
        diagonals_format: "compact", "sequence" or "matrix".
        is_non_singular, is_self_adjoint, is_positive_definite, is_square: hints, as for `tf.linalg.LinearOperator`.
        name: of the operator.
    Raises:
        ValueError: another format; shapes do not fit; hints contradict one another.
        TypeError: the dtype is neither floating nor complex.

    >>> import twofold as tf
    >>> diagonals = [[1.0, 1.0, 0.0], [2.0, 2.0, 2.0], [0.0, 3.0, 3.0]]
    >>> tf.linalg.LinearOperatorTridiag(diagonals).to_dense().numpy().tolist()
    [[2.0, 1.0, 0.0], [3.0, 2.0, 1.0], [0.0, 3.0, 2.0]]
    """

    def __init__(self, diagonals: Any, diagonals_format: str = "compact", is_non_singular: bool | None = None,
                 is_self_adjoint: bool | None = None, is_positive_definite: bool | None = None,
                 is_square: bool | None = None, name: str | None = "LinearOperatorTridiag") -> None:
        if diagonals_format not in ("compact", "sequence", "matrix"):
            raise ValueError("Argument `diagonals_format` must be one of compact, matrix or sequence. Received: "
                             f"{diagonals_format!r}.")
        if diagonals_format == "sequence":
            if len(diagonals) != 3:
                raise ValueError(f"Expected list of length 3. Found: {len(diagonals)}.")
            self._diagonals: Any = [matrix_operand(d, "diagonals", 1) for d in diagonals]
        else:
            self._diagonals = matrix_operand(diagonals, "diagonals")
            if diagonals_format == "compact" and self._diagonals.shape[-2] not in (3, None):
                raise ValueError(f"Expected 3 diagonals got {self._diagonals.shape[-2]}")
        self._format = diagonals_format
        parameters = {"diagonals": self._diagonals, "diagonals_format": diagonals_format,
                      "is_non_singular": is_non_singular, "is_self_adjoint": is_self_adjoint,
                      "is_positive_definite": is_positive_definite, "is_square": is_square, "name": name}
        first = self._diagonals[1] if diagonals_format == "sequence" else self._diagonals
        super().__init__(
            first.dtype, None, is_non_singular, is_self_adjoint, is_positive_definite,
            require_hint(is_square, True, "Only square tridiagonal operators currently supported."), name, parameters)

    @property
    def _experimental_parameter_ndims_to_matrix_ndims(self) -> Mapping[str, Any]:
        return {"diagonals": 1 if self._format == "sequence" else 2}

    @property
    def diagonals(self) -> Any:
        """The diagonals, as they were given."""
        return self._diagonals

    @property
    def diagonals_format(self) -> str:
        """How they were given."""
        return self._format

    def _compact(self) -> Any:
        """The diagonals as a tensor `[..., 3, n]`."""
        if self._format == "sequence":
            shape = broadcast_shapes([d.shape for d in self._diagonals])
            if shape.is_fully_defined():
                return tf.stack([tf.broadcast_to(d, shape) for d in self._diagonals], -2)
            return tf.stack([tf.convert_to_tensor(d) for d in self._diagonals], -2)
        if self._format == "matrix":
            return tf.linalg.diag_part(self._diagonals, k=(-1, 1), align="LEFT_RIGHT")
        return tf.convert_to_tensor(self._diagonals)

    def _shape(self) -> Any:
        if self._format == "matrix":
            return self._diagonals.shape
        if self._format == "sequence":
            shape = broadcast_shapes([d.shape for d in self._diagonals])
            return shape.concatenate(shape[-1:])
        shape = self._diagonals.shape
        return shape if shape.rank is None else shape[:-2].concatenate([shape[-1], shape[-1]])

    def _turned(self) -> Any:
        """The diagonals of the adjoint."""
        above, main, below = tf.unstack(self._compact(), 3, axis=-2)
        return conjugated(tf.stack([tf.roll(below, -1, -1), main, tf.roll(above, 1, -1)], -2))

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        above, main, below = tf.unstack(self._turned() if adjoint else self._compact(), 3, axis=-2)
        after = tf.concat([x[..., 1:, :], tf.zeros_like(x)[..., :1, :]], -2)
        before = tf.concat([tf.zeros_like(x)[..., :1, :], x[..., :-1, :]], -2)
        return (tf.expand_dims(above, -1) * after + tf.expand_dims(main, -1) * x
                + tf.expand_dims(below, -1) * before)

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        diagonals = self._turned() if adjoint else self._compact()
        batch = tf.broadcast_dynamic_shape(tf.shape(diagonals)[:-2], tf.shape(rhs)[:-2])
        diagonals, rhs = (tf.broadcast_to(x, tf.concat([batch, tf.shape(x)[-2:]], 0)) for x in (diagonals, rhs))
        return tf.linalg.tridiagonal_solve(diagonals, rhs)

    def _to_dense(self) -> Any:
        return tf.linalg.diag(self._compact(), k=(-1, 1), align="LEFT_RIGHT")

    def _diag_part(self) -> Any:
        return self._compact()[..., 1, :]

    def _linop_adjoint(self) -> LinearOperator:
        return LinearOperatorTridiag(self._turned(), "compact", self.is_non_singular, self.is_self_adjoint,
                                     self.is_positive_definite)


for _cls in (LinearOperatorPermutation, LinearOperatorToeplitz, LinearOperatorTridiag):
    public_class(_cls)
