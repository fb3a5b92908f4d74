"""Operators made of one tensor: a full matrix, a diagonal, a lower triangle, a reflection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import twofold as tf
from twofold._front.api import public_class

from .base import LinearOperator, column, conjugated, matrix_operand, require_hint

__all__ = ["LinearOperatorDiag", "LinearOperatorFullMatrix", "LinearOperatorHouseholder",
           "LinearOperatorLowerTriangular"]


class LinearOperatorFullMatrix(LinearOperator):
    """The operator of a matrix that is written out.

    Args:
        matrix: floating or complex tensor `[..., m, n]`.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square: hints, as for `tf.linalg.LinearOperator`.
        name: of the operator.
    Raises:
        ValueError: `matrix` has less than two axes; hints contradict one another.
        TypeError: its dtype is neither floating nor complex.

    >>> import twofold as tf
    >>> operator = tf.linalg.LinearOperatorFullMatrix([[1.0, 2.0], [3.0, 4.0]])
    >>> operator.matvec([1.0, 1.0]).numpy().tolist()
    [3.0, 7.0]
    """

    _matrix_axes: ClassVar[Mapping[str, Any] | None] = {"matrix": 2}

    def __init__(self, matrix: Any, is_non_singular: bool | None = None, is_self_adjoint: bool | None = None,
                 is_positive_definite: bool | None = None, is_square: bool | None = None,
                 name: str | None = "LinearOperatorFullMatrix") -> None:
        self._matrix = matrix_operand(matrix, "matrix")
        super().__init__(self._matrix.dtype, None, is_non_singular, is_self_adjoint, is_positive_definite, is_square,
                         name, {"matrix": self._matrix, "is_non_singular": is_non_singular,
                                "is_self_adjoint": is_self_adjoint, "is_positive_definite": is_positive_definite,
                                "is_square": is_square, "name": name})

    @property
    def matrix(self) -> Any:
        """The matrix."""
        return self._matrix

    def _shape(self) -> Any:
        return self._matrix.shape

    def _shape_tensor(self) -> Any:
        return tf.shape(self._matrix)

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return tf.matmul(self._matrix, x, adjoint_a=adjoint, adjoint_b=adjoint_arg)

    def _to_dense(self) -> Any:
        return tf.convert_to_tensor(self._matrix)


class LinearOperatorDiag(LinearOperator):
    """The operator of a square matrix that is 0 beside its diagonal.

    Args:
        diag: floating or complex tensor `[..., n]`.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square: hints, as for `tf.linalg.LinearOperator`.
        name: of the operator.
    Raises:
        ValueError: `diag` is a scalar; hints contradict one another, or say that a real diagonal is not self-adjoint.
        TypeError: its dtype is neither floating nor complex.

    >>> import twofold as tf
    >>> operator = tf.linalg.LinearOperatorDiag([1.0, -2.0])
    >>> operator.determinant().numpy().item(), operator.inverse().to_dense().numpy().tolist()
    (-2.0, [[1.0, 0.0], [0.0, -0.5]])
    """

    _matrix_axes: ClassVar[Mapping[str, Any] | None] = {"diag": 1}

    def __init__(self, diag: Any, is_non_singular: bool | None = None, is_self_adjoint: bool | None = None,
                 is_positive_definite: bool | None = None, is_square: bool | None = None,
                 name: str | None = "LinearOperatorDiag") -> None:
        self._diag = matrix_operand(diag, "diag", 1)
        parameters = {"diag": self._diag, "is_non_singular": is_non_singular, "is_self_adjoint": is_self_adjoint,
                      "is_positive_definite": is_positive_definite, "is_square": is_square, "name": name}
        if not self._diag.dtype.is_complex:
            is_self_adjoint = require_hint(is_self_adjoint, True, "A real diagonal operator is always self adjoint.")
        is_square = require_hint(is_square, True, "Only square diagonal operators currently supported.")
        super().__init__(self._diag.dtype, None, is_non_singular, is_self_adjoint, is_positive_definite, is_square,
                         name, parameters)

    @property
    def diag(self) -> Any:
        """The diagonal."""
        return self._diag

    def _shape(self) -> Any:
        return self._diag.shape.concatenate(self._diag.shape[-1:])

    def _shape_tensor(self) -> Any:
        sizes = tf.shape(self._diag)
        return tf.concat([sizes, sizes[-1:]], 0)

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return column(conjugated(self._diag) if adjoint else self._diag) * x

    def _matvec(self, x: Any, adjoint: bool = False) -> Any:
        return (conjugated(self._diag) if adjoint else self._diag) * x

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return rhs / column(conjugated(self._diag) if adjoint else self._diag)

    def _to_dense(self) -> Any:
        return tf.linalg.diag(self._diag)

    def _diag_part(self) -> Any:
        return tf.convert_to_tensor(self._diag)

    def _determinant(self) -> Any:
        return tf.reduce_prod(self._diag, axis=-1)

    def _log_abs_determinant(self) -> Any:
        return tf.cast(tf.reduce_sum(tf.math.log(tf.abs(self._diag)), axis=-1), self.dtype)

    def _eigvals(self) -> Any:
        return tf.convert_to_tensor(self._diag)

    def _cond(self) -> Any:
        sizes = tf.abs(self._diag)
        return tf.cast(tf.reduce_max(sizes, axis=-1) / tf.reduce_min(sizes, axis=-1), self.dtype)

    def _assert_non_singular(self) -> Any:
        return tf.debugging.assert_positive(tf.abs(self._diag),
                                            message="Singular operator:  Diagonal contained zero values.")

    def _assert_positive_definite(self) -> Any:
        return tf.debugging.assert_positive(tf.math.real(self._diag), message="The diagonal had entries that are not "
                                            "positive, thus the operator was not positive definite.")

    def _assert_self_adjoint(self) -> Any:
        imaginary = tf.math.imag(self._diag)
        return tf.debugging.assert_equal(imaginary, tf.zeros_like(imaginary), message="The diagonal had an imaginary "
                                         "part that is not 0, thus the operator was not self-adjoint.")

    def _linop_adjoint(self) -> LinearOperator:
        return LinearOperatorDiag(conjugated(self._diag), self.is_non_singular, self.is_self_adjoint,
                                  self.is_positive_definite)

    def _linop_inverse(self) -> LinearOperator:
        return LinearOperatorDiag(1 / tf.convert_to_tensor(self._diag), True, self.is_self_adjoint,
                                  self.is_positive_definite)

    def _linop_cholesky(self) -> LinearOperator:
        return LinearOperatorDiag(tf.sqrt(self._diag), True, True, True)

    def _linop_matmul(self, right: LinearOperator) -> LinearOperator:
        if isinstance(right, LinearOperatorDiag):
            positive = all(op.is_positive_definite and not op.dtype.is_complex for op in (self, right))
            return LinearOperatorDiag(self._diag * right.diag, self.is_non_singular and right.is_non_singular or None,
                                      is_positive_definite=positive or None)
        if isinstance(right, LinearOperatorLowerTriangular):
            return LinearOperatorLowerTriangular(column(self._diag) * right.tril,
                                                 self.is_non_singular and right.is_non_singular or None)
        return super()._linop_matmul(right)


class LinearOperatorLowerTriangular(LinearOperator):
    """The operator of a lower triangular square matrix.

    Args:
        tril: floating or complex tensor `[..., n, n]`, of which the upper triangle is not read.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square: hints, as for `tf.linalg.LinearOperator`.
        name: of the operator.
    Raises:
        ValueError: `tril` has less than two axes; hints contradict one another.
        TypeError: its dtype is neither floating nor complex.

    >>> import twofold as tf
    >>> operator = tf.linalg.LinearOperatorLowerTriangular([[2.0, 9.0], [1.0, 4.0]])
    >>> operator.to_dense().numpy().tolist(), operator.solvevec([2.0, 5.0]).numpy().tolist()
    ([[2.0, 0.0], [1.0, 4.0]], [1.0, 1.0])
    """

    _matrix_axes: ClassVar[Mapping[str, Any] | None] = {"tril": 2}

    def __init__(self, tril: Any, is_non_singular: bool | None = None, is_self_adjoint: bool | None = None,
                 is_positive_definite: bool | None = None, is_square: bool | None = None,
                 name: str | None = "LinearOperatorLowerTriangular") -> None:
        self._tril = matrix_operand(tril, "tril")
        parameters = {"tril": self._tril, "is_non_singular": is_non_singular, "is_self_adjoint": is_self_adjoint,
                      "is_positive_definite": is_positive_definite, "is_square": is_square, "name": name}
        is_square = require_hint(is_square, True, "Only square lower triangular operators supported at this time.")
        super().__init__(self._tril.dtype, None, is_non_singular, is_self_adjoint, is_positive_definite, is_square,
                         name, parameters)

    @property
    def tril(self) -> Any:
        """The matrix that was given."""
        return self._tril

    def _shape(self) -> Any:
        return self._tril.shape

    def _shape_tensor(self) -> Any:
        return tf.shape(self._tril)

    def _to_dense(self) -> Any:
        return tf.linalg.band_part(self._tril, -1, 0)

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return tf.matmul(self._to_dense(), x, adjoint_a=adjoint, adjoint_b=adjoint_arg)

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return tf.linalg.triangular_solve(self._tril, rhs, lower=True, adjoint=adjoint)

    def _diag_part(self) -> Any:
        return tf.linalg.diag_part(self._tril)

    def _determinant(self) -> Any:
        return tf.reduce_prod(self._diag_part(), axis=-1)

    def _log_abs_determinant(self) -> Any:
        return tf.cast(tf.reduce_sum(tf.math.log(tf.abs(self._diag_part())), axis=-1), self.dtype)

    def _eigvals(self) -> Any:
        return self._diag_part()

    def _assert_non_singular(self) -> Any:
        return tf.debugging.assert_positive(tf.abs(self._diag_part()),
                                            message="Singular operator:  Diagonal contained zero values.")

    def _linop_inverse(self) -> LinearOperator:
        size = tf.eye(self.domain_dimension_tensor(), dtype=self.dtype)
        return LinearOperatorLowerTriangular(self._solve(size), True)

    def _linop_matmul(self, right: LinearOperator) -> LinearOperator:
        known = self.is_non_singular and right.is_non_singular or None
        if isinstance(right, LinearOperatorDiag):
            return LinearOperatorLowerTriangular(self._tril * tf.expand_dims(right.diag, -2), known)
        if isinstance(right, LinearOperatorLowerTriangular):
            return LinearOperatorLowerTriangular(tf.matmul(self._to_dense(), right._to_dense()), known)
        return super()._linop_matmul(right)


class LinearOperatorHouseholder(LinearOperator):
    """The reflection at the plane through 0 to which a vector is perpendicular: I - 2 v v^H, for v of length 1.

    Args:
        reflection_axis: floating or complex tensor `[..., n]`, of any length but 0.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square: hints, as for `tf.linalg.LinearOperator`.
        name: of the operator.
    Raises:
        ValueError: `reflection_axis` is a scalar; hints say other than what holds for reflections.
        TypeError: its dtype is neither floating nor complex.

    >>> import twofold as tf
    >>> tf.linalg.LinearOperatorHouseholder([0.0, 3.0]).matvec([1.0, 2.0]).numpy().tolist()
    [1.0, -2.0]
    """

    _matrix_axes: ClassVar[Mapping[str, Any] | None] = {"reflection_axis": 1}

    def __init__(self, reflection_axis: Any, is_non_singular: bool | None = None, is_self_adjoint: bool | None = None,
                 is_positive_definite: bool | None = None, is_square: bool | None = None,
                 name: str | None = "LinearOperatorHouseholder") -> None:
        self._axis = matrix_operand(reflection_axis, "reflection_axis", 1)
        parameters = {"reflection_axis": self._axis, "is_non_singular": is_non_singular,
                      "is_self_adjoint": is_self_adjoint, "is_positive_definite": is_positive_definite,
                      "is_square": is_square, "name": name}
        super().__init__(
            self._axis.dtype, None,
            require_hint(is_non_singular, True, "A Householder operator is always non-singular."),
            require_hint(is_self_adjoint, True, "A Householder operator is always self adjoint."),
            require_hint(is_positive_definite, False, "A Householder operator is always non-positive definite."),
            require_hint(is_square, True, "A Householder operator is always square."), name, parameters)

    @property
    def reflection_axis(self) -> Any:
        """The vector, as it was given."""
        return self._axis

    def _shape(self) -> Any:
        return self._axis.shape.concatenate(self._axis.shape[-1:])

    def _shape_tensor(self) -> Any:
        sizes = tf.shape(self._axis)
        return tf.concat([sizes, sizes[-1:]], 0)

    def _unit(self) -> Any:
        return tf.convert_to_tensor(self._axis) / tf.cast(
            tf.linalg.norm(self._axis, axis=-1, keepdims=True), self.dtype)

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        unit = column(self._unit())
        return x - 2 * unit * tf.matmul(unit, x, adjoint_a=True)

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return self._matmul(rhs)

    def _to_dense(self) -> Any:
        unit = column(self._unit())
        product = tf.matmul(unit, unit, adjoint_b=True)
        return tf.eye(self.domain_dimension_tensor(), dtype=self.dtype) - 2 * product

    def _diag_part(self) -> Any:
        unit = self._unit()
        return 1 - 2 * unit * conjugated(unit)

    def _batch_of(self, value: float) -> Any:
        return tf.fill(self.batch_shape_tensor(), tf.constant(value, self.dtype))

    def _trace(self) -> Any:
        return self._batch_of(1.0) * tf.cast(self.domain_dimension_tensor() - 2, self.dtype)

    def _determinant(self) -> Any:
        return self._batch_of(-1.0)

    def _log_abs_determinant(self) -> Any:
        return self._batch_of(0.0)

    def _cond(self) -> Any:
        return self._batch_of(1.0)

    def _eigvals(self) -> Any:
        ones = tf.ones(self.shape_tensor()[:-1], self.dtype)
        return tf.concat([-ones[..., :1], ones[..., 1:]], -1)

    def _linop_inverse(self) -> LinearOperator:
        return self


for _cls in (LinearOperatorFullMatrix, LinearOperatorDiag, LinearOperatorLowerTriangular, LinearOperatorHouseholder):
    public_class(_cls)
