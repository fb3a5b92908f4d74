"""Operators made of sizes: the identity, a multiple of it, and zeros."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

import twofold as tf
from twofold._front.api import public_class

from .base import LinearOperator, column, conjugated, operand, require_hint
from .matrices import LinearOperatorDiag

__all__ = ["LinearOperatorIdentity", "LinearOperatorScaledIdentity", "LinearOperatorZeros"]


def _size(value: Any, name: str) -> Any:
    """A number of rows: a Python integer where it is known, else a scalar tensor.

    Raises:
        TypeError: it is no integer.
        ValueError: it is negative, or no scalar.
    """
    tensor = tf.convert_to_tensor(value)
    if not tensor.dtype.is_integer:
        raise TypeError(f"Argument {name} must be integer type. Found: {tensor.dtype.name}")
    if tensor.shape.rank not in (0, None):
        raise ValueError(f"Argument {name} must be a 0-D Tensor. Found shape: {tensor.shape}")
    known = tf.get_static_value(tensor)
    if known is not None and known < 0:
        raise ValueError(f"Argument {name} must be non-negative. Found: {known}")
    return tensor if known is None else int(known)


def _batch(value: Any) -> Any:
    """The shape of a batch: a tuple where it is known, else a vector; None stays None."""
    if value is None:
        return None
    if isinstance(value, tf.TensorShape):
        value = value.as_list()
    tensor = tf.convert_to_tensor(np.asarray(value, np.int32) if isinstance(value, (list, tuple)) and not len(value)
                                  else value)
    if not tensor.dtype.is_integer:
        raise TypeError(f"Argument batch_shape must be integer type. Found: {tensor.dtype.name}")
    if tensor.shape.rank not in (1, None):
        raise ValueError(f"Argument batch_shape must be a 1-D Tensor. Found shape: {tensor.shape}")
    known = tf.get_static_value(tensor)
    if known is not None and (known < 0).any():
        raise ValueError(f"Argument batch_shape must be non-negative. Found: {known.tolist()}")
    return tensor if known is None else tuple(known.tolist())


def _static(size: Any) -> int | None:
    return size if isinstance(size, int) else None


def _static_batch(batch: Any) -> Any:
    if tf.is_tensor(batch):
        return tf.TensorShape([None] * batch.shape[0] if batch.shape.rank == 1 and batch.shape[0] is not None else None)
    return tf.TensorShape(batch or ())


def _sizes(batch: Any, *sizes: Any) -> Any:
    """A shape of a batch and sizes as an int32 vector."""
    lead = tf.cast(batch, tf.int32) if tf.is_tensor(batch) else tf.constant(batch or (), tf.int32)
    return tf.concat([lead, tf.stack([tf.cast(s, tf.int32) for s in sizes])], 0)


class LinearOperatorIdentity(LinearOperator):
    """The identity, or a batch of them.

    Args:
        num_rows: the number of rows, an integer.
        batch_shape: the shape of the batch; by default there is none.
        dtype: of the elements; by default float32.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square: hints, as for `tf.linalg.LinearOperator`.
        assert_proper_shapes: has no effect: shapes are always tested.
        name: of the operator.
    Raises:
        ValueError: a size is negative; hints say other than what holds for the identity.
        TypeError: a size is no integer.

    >>> import twofold as tf
    >>> tf.linalg.LinearOperatorIdentity(2).to_dense().numpy().tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """

    _matrix_axes: ClassVar[Mapping[str, Any] | None] = {}

    def __init__(self, num_rows: Any, batch_shape: Any = None, dtype: Any = None, is_non_singular: bool | None = True,
                 is_self_adjoint: bool | None = True, is_positive_definite: bool | None = True,
                 is_square: bool | None = True, assert_proper_shapes: bool = False,
                 name: str | None = "LinearOperatorIdentity") -> None:
        self._rows, self._batch = _size(num_rows, "num_rows"), _batch(batch_shape)
        parameters = {"num_rows": self._rows, "batch_shape": self._batch, "dtype": tf.as_dtype(dtype or tf.float32),
                      "assert_proper_shapes": assert_proper_shapes, "name": name}
        super().__init__(
            dtype or tf.float32, None,
            require_hint(is_non_singular, True, "An identity operator is always non-singular."),
            require_hint(is_self_adjoint, True, "An identity operator is always self adjoint."),
            require_hint(is_positive_definite, True, "An identity operator is always positive-definite."),
            require_hint(is_square, True, "An identity operator is always square."), name, parameters)

    def _shape(self) -> Any:
        return _static_batch(self._batch).concatenate([_static(self._rows)] * 2)

    def _shape_tensor(self) -> Any:
        return _sizes(self._batch, self._rows, self._rows)

    def _batched(self, x: Any) -> Any:
        """A tensor broadcast to the operator's batch."""
        if self._batch is None or self._batch == ():
            return x
        lead = tf.concat([self.batch_shape_tensor(), tf.constant([1, 1], tf.int32)], 0)
        return tf.broadcast_to(x, tf.broadcast_dynamic_shape(tf.shape(x), lead))

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return self._batched(x)

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return self._batched(rhs)

    def _to_dense(self) -> Any:
        return tf.eye(self._rows, batch_shape=self._batch, dtype=self.dtype)

    def _diag_part(self) -> Any:
        return tf.ones(self.shape_tensor()[:-1], self.dtype)

    def _batch_of(self, value: Any) -> Any:
        return tf.fill(self.batch_shape_tensor(), tf.cast(value, self.dtype))

    def _trace(self) -> Any:
        return self._batch_of(self.domain_dimension_tensor())

    def _determinant(self) -> Any:
        return self._batch_of(1.0)

    def _log_abs_determinant(self) -> Any:
        return self._batch_of(0.0)

    def _cond(self) -> Any:
        return self._batch_of(1.0)

    def _eigvals(self) -> Any:
        return self._diag_part()

    def _assert_non_singular(self) -> Any:
        return None

    def _assert_positive_definite(self) -> Any:
        return None

    def _assert_self_adjoint(self) -> Any:
        return None

    def _linop_inverse(self) -> LinearOperator:
        return self

    def _linop_cholesky(self) -> LinearOperator:
        return self

    def _linop_matmul(self, right: LinearOperator) -> LinearOperator:
        return right if self.batch_shape.rank == 0 else super()._linop_matmul(right)

    def _linop_matmul_by(self, left: LinearOperator) -> LinearOperator:
        return left if self.batch_shape.rank == 0 else super()._linop_matmul_by(left)


class LinearOperatorScaledIdentity(LinearOperator):
    """A number times the identity, or a batch of such.

    Args:
        num_rows: the number of rows, an integer.
        multiplier: floating or complex tensor of the batch's shape.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square: hints, as for `tf.linalg.LinearOperator`.
        assert_proper_shapes: has no effect: shapes are always tested.
        name: of the operator.
    Raises:
        ValueError: a size is negative; hints contradict one another.
        TypeError: `num_rows` is no integer, `multiplier` neither floating nor complex.

    >>> import twofold as tf
    >>> operator = tf.linalg.LinearOperatorScaledIdentity(2, 3.0)
    >>> operator.matvec([1.0, 2.0]).numpy().tolist(), operator.determinant().numpy().item()
    ([3.0, 6.0], 9.0)
    """

    _matrix_axes: ClassVar[Mapping[str, Any] | None] = {"multiplier": 0}

    def __init__(self, num_rows: Any, multiplier: Any, is_non_singular: bool | None = None,
                 is_self_adjoint: bool | None = None, is_positive_definite: bool | None = None,
                 is_square: bool | None = True, assert_proper_shapes: bool = False,
                 name: str | None = "LinearOperatorScaledIdentity") -> None:
        self._rows, self._multiplier = _size(num_rows, "num_rows"), operand(multiplier, "multiplier")
        parameters = {"num_rows": self._rows, "multiplier": self._multiplier, "is_non_singular": is_non_singular,
                      "is_self_adjoint": is_self_adjoint, "is_positive_definite": is_positive_definite,
                      "is_square": is_square, "assert_proper_shapes": assert_proper_shapes, "name": name}
        if not self._multiplier.dtype.is_complex:
            is_self_adjoint = require_hint(is_self_adjoint, True, "A real scaled identity is always self adjoint.")
        is_square = require_hint(is_square, True, "A scaled identity operator is always square.")
        super().__init__(self._multiplier.dtype, None, is_non_singular, is_self_adjoint, is_positive_definite,
                         is_square, name, parameters)

    @property
    def multiplier(self) -> Any:
        """The number, or a batch of numbers."""
        return self._multiplier

    def _shape(self) -> Any:
        return self._multiplier.shape.concatenate([_static(self._rows)] * 2)

    def _shape_tensor(self) -> Any:
        return _sizes(tf.shape(self._multiplier), self._rows, self._rows)

    def _factor(self, adjoint: bool) -> Any:
        return column(column(conjugated(self._multiplier) if adjoint else self._multiplier))

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return self._factor(adjoint) * x

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return rhs / self._factor(adjoint)

    def _to_dense(self) -> Any:
        return self._factor(False) * tf.eye(self._rows, dtype=self.dtype)

    def _diag_part(self) -> Any:
        return column(self._multiplier) * tf.ones([self._rows], self.dtype)

    def _trace(self) -> Any:
        return self._multiplier * tf.cast(self._rows, self.dtype)

    def _determinant(self) -> Any:
        return self._multiplier ** tf.cast(self._rows, self.dtype)

    def _log_abs_determinant(self) -> Any:
        sizes = tf.math.log(tf.abs(self._multiplier))
        return tf.cast(tf.cast(self._rows, sizes.dtype) * sizes, self.dtype)

    def _cond(self) -> Any:
        sizes = tf.abs(self._multiplier)
        return tf.cast(sizes / sizes, self.dtype)

    def _eigvals(self) -> Any:
        return self._diag_part()

    def _as_diagonal(self) -> LinearOperatorDiag:
        return LinearOperatorDiag(self._diag_part(), self.is_non_singular, self.is_self_adjoint,
                                  self.is_positive_definite)

    def _assert_non_singular(self) -> Any:
        return self._as_diagonal()._assert_non_singular()

    def _assert_positive_definite(self) -> Any:
        return self._as_diagonal()._assert_positive_definite()

    def _assert_self_adjoint(self) -> Any:
        return self._as_diagonal()._assert_self_adjoint()

    def _linop_adjoint(self) -> LinearOperator:
        return LinearOperatorScaledIdentity(self._rows, conjugated(self._multiplier), self.is_non_singular,
                                            self.is_self_adjoint, self.is_positive_definite)

    def _linop_inverse(self) -> LinearOperator:
        return LinearOperatorScaledIdentity(self._rows, 1 / tf.convert_to_tensor(self._multiplier), True,
                                            self.is_self_adjoint, self.is_positive_definite)

    def _linop_cholesky(self) -> LinearOperator:
        return LinearOperatorScaledIdentity(self._rows, tf.sqrt(self._multiplier), True, True, True)

    def _linop_matmul(self, right: LinearOperator) -> LinearOperator:
        known = self.is_non_singular and right.is_non_singular or None
        if isinstance(right, LinearOperatorScaledIdentity):
            return LinearOperatorScaledIdentity(self._rows, self._multiplier * right.multiplier, known)
        if isinstance(right, LinearOperatorDiag):
            return LinearOperatorDiag(column(self._multiplier) * right.diag, known)
        return super()._linop_matmul(right)

    def _linop_matmul_by(self, left: LinearOperator) -> LinearOperator:
        if isinstance(left, LinearOperatorDiag):
            return LinearOperatorDiag(left.diag * column(self._multiplier),
                                      left.is_non_singular and self.is_non_singular or None)
        return super()._linop_matmul_by(left)


class LinearOperatorZeros(LinearOperator):
    """The matrix of zeros, or a batch of them.

    Args:
        num_rows: the number of rows, an integer.
        num_columns: the number of columns; by default that of the rows.
        batch_shape: the shape of the batch; by default there is none.
        dtype: of the elements; by default float32.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square: hints, as for `tf.linalg.LinearOperator`;
            what is not square needs `is_square=False` and `is_self_adjoint=False`.
        assert_proper_shapes: has no effect: shapes are always tested.
        name: of the operator.
    Raises:
        ValueError: a size is negative; hints say other than what holds for zeros.
        TypeError: a size is no integer.

    >>> import twofold as tf
    >>> tf.linalg.LinearOperatorZeros(2).matvec([1.0, 2.0]).numpy().tolist()
    [0.0, 0.0]
    """

    _matrix_axes: ClassVar[Mapping[str, Any] | None] = {}

    def __init__(self, num_rows: Any, num_columns: Any = None, batch_shape: Any = None, dtype: Any = None,
                 is_non_singular: bool | None = False, is_self_adjoint: bool | None = True,
                 is_positive_definite: bool | None = False, is_square: bool | None = True,
                 assert_proper_shapes: bool = False, name: str | None = "LinearOperatorZeros") -> None:
        self._rows, self._batch = _size(num_rows, "num_rows"), _batch(batch_shape)
        self._columns = self._rows if num_columns is None else _size(num_columns, "num_columns")
        parameters = {"num_rows": self._rows, "num_columns": None if num_columns is None else self._columns,
                      "batch_shape": self._batch, "dtype": tf.as_dtype(dtype or tf.float32),
                      "is_self_adjoint": is_self_adjoint, "is_square": is_square,
                      "assert_proper_shapes": assert_proper_shapes, "name": name}
        rows, columns = _static(self._rows), _static(self._columns)
        if is_square and rows is not None and columns is not None and rows != columns:
            raise ValueError(f"LinearOperatorZeros initialized as is_square=True, but got num_rows({rows}) != "
                             f"num_columns({columns})")
        super().__init__(
            dtype or tf.float32, None, require_hint(is_non_singular, False, "A zero operator is always singular."),
            is_self_adjoint,
            require_hint(is_positive_definite, False, "A zero operator is always non-positive definite."), is_square,
            name, parameters)

    def _shape(self) -> Any:
        return _static_batch(self._batch).concatenate([_static(self._rows), _static(self._columns)])

    def _shape_tensor(self) -> Any:
        return _sizes(self._batch, self._rows, self._columns)

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        lead = tf.broadcast_dynamic_shape(tf.shape(x)[:-2], self.batch_shape_tensor())
        rows = self._columns if adjoint else self._rows
        return tf.zeros(_sizes(lead, rows, tf.shape(x)[-1]), self.dtype)

    def _to_dense(self) -> Any:
        return tf.zeros(self.shape_tensor(), self.dtype)

    def _diag_part(self) -> Any:
        return tf.zeros(_sizes(self._batch, tf.minimum(self._rows, self._columns)), self.dtype)

    def _determinant(self) -> Any:
        return tf.zeros(self.batch_shape_tensor(), self.dtype)

    def _trace(self) -> Any:
        return tf.zeros(self.batch_shape_tensor(), self.dtype)

    def _log_abs_determinant(self) -> Any:
        return tf.fill(self.batch_shape_tensor(), tf.cast(-np.inf, self.dtype))

    def _eigvals(self) -> Any:
        return self._diag_part()

    def _add_to_tensor(self, x: Any) -> Any:
        return x + self._to_dense()

    def _assert_non_singular(self) -> Any:
        raise tf.errors.InvalidArgumentError(None, None, "Zero operators are always non-invertible.")

    def _assert_positive_definite(self) -> Any:
        raise tf.errors.InvalidArgumentError(None, None, "Zero operators are always non-positive definite.")

    def _linop_adjoint(self) -> LinearOperator:
        return LinearOperatorZeros(self._columns, self._rows, self._batch, self.dtype, is_self_adjoint=False,
                                   is_square=self.is_square)


for _cls in (LinearOperatorIdentity, LinearOperatorScaledIdentity, LinearOperatorZeros):
    public_class(_cls)
