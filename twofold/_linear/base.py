"""`LinearOperator`: a matrix, or a batch of matrices, that is known by what it is made of; and its spec.

A class of operators gives its shape and its product with a dense matrix (`_shape`, `_matmul`); everything else has a
default here, which goes by way of the dense matrix, and which a class replaces where its structure knows a shorter
way. A method with an underscore computes; the public one of the same name checks the operands before.

What an operator was made of is in `parameters`. Tensors and operators among these are its components, so that
functions, loops and tapes take and give operators; the rest is part of the spec.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

import twofold as tf
from twofold._front.api import public_class, told
from twofold.ir.type_spec import CompositeTensor, TypeSpec, register
from twofold.module import Module

from .slicing import axes_of, sliced

__all__ = ["HINTS", "LinearOperator", "LinearOperatorSpec", "broadcast_shapes", "column", "conjugated",
           "matrix_operand", "operand", "require_hint", "turned"]

HINTS = ("is_non_singular", "is_self_adjoint", "is_positive_definite", "is_square")


# -- operands and shapes ------------------------------------------------------------------------------------------
def operand(value: Any, name: str, dtypes: str = "floating") -> Any:
    """What an operator is made of: a variable as it is, anything else as a tensor.

    Raises:
        TypeError: its dtype is not among `dtypes`: "floating" ones, complex ones included, or "integer" ones.
    """
    if not isinstance(value, tf.Variable):
        value = tf.convert_to_tensor(value, name=name)
    dtype = value.dtype
    if not (dtype.is_integer if dtypes == "integer" else dtype.is_floating or dtype.is_complex):
        raise TypeError(f"Argument `{name}` must have {dtypes} dtype. Received: {dtype.name}.")
    return value


def matrix_operand(value: Any, name: str, rank: int = 2) -> Any:
    """An operand of at least `rank` axes.

    Raises:
        ValueError: it has fewer.
        TypeError: its dtype is neither floating nor complex.
    """
    value = operand(value, name)
    if value.shape.rank is not None and value.shape.rank < rank:
        raise ValueError(f"Argument `{name}` must have at least {rank} dimension{'s' if rank > 1 else ''}. Received "
                         f"shape: {value.shape}.")
    return value


def require_hint(given: bool | None, always: bool, sentence: str) -> bool:
    """The hint that always holds for a class.

    Raises:
        ValueError: the user said the contrary; `sentence` says what holds.
    """
    if given is not None and given is not always:
        raise ValueError(sentence)
    return always


def conjugated(x: Any) -> Any:
    """The complex conjugate; a real tensor as it is."""
    return tf.math.conj(x) if x.dtype.is_complex else tf.convert_to_tensor(x)


def turned(x: Any, adjoint: bool) -> Any:
    """A matrix, or its adjoint."""
    return tf.linalg.adjoint(x) if adjoint else x


def column(x: Any) -> Any:
    """A tensor with an axis of size 1 behind."""
    return tf.expand_dims(x, -1)


def broadcast_shapes(shapes: Sequence[Any]) -> Any:
    """The static shape to which several broadcast."""
    common = tf.TensorShape([])
    for shape in shapes:
        common = tf.broadcast_static_shape(common, shape)
    return common


# -- the spec -----------------------------------------------------------------------------------------------------
def _is_component(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return bool(value) and all(_is_component(v) for v in value)
    return isinstance(value, (LinearOperator, TypeSpec, tf.Variable)) or tf.is_tensor(value)


def _spec(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_spec(v) for v in value]
    return value._type_spec if isinstance(value, LinearOperator) else tf.TensorSpec(value.shape, value.dtype)


def _component(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_component(v) for v in value]
    return value if isinstance(value, LinearOperator) else tf.convert_to_tensor(value)


@register("tf.linalg.LinearOperatorSpec")
class LinearOperatorSpec(TypeSpec):
    """The spec of linear operators of one class.

    Args:
        kind: the class, by its name in `tf.linalg` or itself.
        plain: the arguments of its constructor that are no tensors.
        components: specs of the others.
    """

    __slots__ = ("_components", "_kind", "_plain")

    def __init__(self, kind: Any, plain: Any, components: Any) -> None:
        self._kind, self._plain, self._components = kind, dict(plain), dict(components)

    @property
    def value_type(self) -> type:
        """The class of the operators."""
        return getattr(tf.linalg, self._kind) if isinstance(self._kind, str) else self._kind

    def _serialize(self) -> tuple[Any, ...]:
        return self._kind, self._plain, self._components

    @property
    def _component_specs(self) -> Any:
        return self._components

    def _to_components(self, value: Any) -> Any:
        return {name: _component(value.parameters[name]) for name in self._components}

    def _from_components(self, components: Any) -> Any:
        return self.value_type(**self._plain, **components)

    def _with_component_specs(self, components: Any) -> Any:
        return LinearOperatorSpec(self._kind, self._plain, components)


# -- the operator -------------------------------------------------------------------------------------------------
class LinearOperator(Module, CompositeTensor):
    """A matrix, or a batch of matrices `[..., m, n]`, that acts without being written out.

    A class of one's own gives `_shape` (a `tf.TensorShape`) and `_matmul`, calls this constructor with the arguments of
    its own as `parameters`, and replaces `_solve`, `_determinant`, `_diag_part` and others where it knows a shorter way
    than by the dense matrix.

    Hints are promises: None says that nothing is known. Methods choose by them, and do not test them; the `assert_...`
    methods do.

    Args:
        dtype: of the elements.
        graph_parents: has no effect.
        is_non_singular: whether the matrix has an inverse.
        is_self_adjoint: whether it equals its adjoint.
        is_positive_definite: whether `x^H A x` has a positive real part for all x but 0.
        is_square: whether it has as many rows as columns.
        name: of the operator; by default the class's.
        parameters: the arguments with which the class makes this operator again.
    Raises:
        ValueError: hints contradict one another.

    >>> import twofold as tf
    >>> class Twice(tf.linalg.LinearOperator):
    ...     def __init__(self, size, name="Twice"):
    ...         super().__init__(tf.float32, is_square=True, name=name, parameters=dict(size=size))
    ...     def _shape(self):
    ...         return tf.TensorShape([self.parameters["size"]] * 2)
    ...     def _matmul(self, x, adjoint=False, adjoint_arg=False):
    ...         return 2.0 * (tf.linalg.adjoint(x) if adjoint_arg else x)
    >>> Twice(2).solvevec(tf.constant([2.0, 4.0])).numpy().tolist()
    [1.0, 2.0]
    """

    def __init__(self, dtype: Any, graph_parents: Any = None, is_non_singular: bool | None = None,
                 is_self_adjoint: bool | None = None, is_positive_definite: bool | None = None,
                 is_square: bool | None = None, name: str | None = None, parameters: Any = None) -> None:
        for hint, value in zip(HINTS, (is_non_singular, is_self_adjoint, is_positive_definite, is_square), strict=True):
            if value is not None and not isinstance(value, (bool, np.bool_)):
                raise TypeError(f"Argument `{hint}` must be True, False or None. Received: {value!r}.")
        if is_positive_definite:
            is_non_singular = require_hint(is_non_singular, True, "A positive definite matrix is always non-singular.")
        if is_non_singular:
            is_square = require_hint(is_square, True, "A non-singular matrix is always square.")
        if is_self_adjoint:
            is_square = require_hint(is_square, True, "A self-adjoint matrix is always square.")
        super().__init__(name=name or type(self).__name__)
        self._dtype, self._parameters, self._said_square = tf.as_dtype(dtype), dict(parameters or {}), is_square
        self._is_non_singular, self._is_self_adjoint = is_non_singular, is_self_adjoint
        self._is_positive_definite = is_positive_definite

    #: how many axes of its own, behind those of a batch, each parameter has that is a tensor; 0 for operators
    _matrix_axes: ClassVar[Mapping[str, Any] | None] = None

    @property
    def _experimental_parameter_ndims_to_matrix_ndims(self) -> Mapping[str, Any]:
        return axes_of(self, self._matrix_axes)

    def __getitem__(self, slices: Any) -> Any:
        """The operator of a part of the batch: indices are those of a tensor of the batch's shape."""
        return sliced(self, slices)

    # -- what is known of it --------------------------------------------------------------------------------------
    @property
    def parameters(self) -> dict[str, Any]:
        """The arguments that the operator was made with."""
        return dict(self._parameters)

    @property
    def graph_parents(self) -> list[Any]:
        """Nothing: there is no record of what an operator depends on."""
        return []

    @property
    def dtype(self) -> Any:
        """The dtype of the elements."""
        return self._dtype

    @property
    def is_non_singular(self) -> bool | None:
        """Whether the matrix has an inverse; None where nothing is known."""
        return self._is_non_singular

    @property
    def is_self_adjoint(self) -> bool | None:
        """Whether the matrix equals its adjoint; None where nothing is known."""
        return self._is_self_adjoint

    @property
    def is_positive_definite(self) -> bool | None:
        """Whether the matrix is positive definite; None where nothing is known."""
        return self._is_positive_definite

    @property
    def is_square(self) -> bool | None:
        """Whether the matrix has as many rows as columns; None where nothing is known.

        Raises:
            ValueError: the user said that it is not, and it is.
        """
        rows, columns = self.range_dimension, self.domain_dimension
        seen = None if rows is None or columns is None else rows == columns
        if self._said_square is False and seen:
            raise ValueError("User set is_square hint to False, but the operator was square.")
        return seen if self._said_square is None else self._said_square

    @property
    def shape(self) -> Any:
        """The static shape: batch, rows, columns."""
        return self._shape()

    @property
    def batch_shape(self) -> Any:
        """The static shape of the batch."""
        return self.shape[:-2]

    @property
    def tensor_rank(self) -> int | None:
        """The number of axes, those of the batch and two."""
        return self.shape.rank

    @property
    def domain_dimension(self) -> int | None:
        """The number of columns: the length of the vectors that the operator takes."""
        return None if self.shape.rank is None else self.shape[-1]

    @property
    def range_dimension(self) -> int | None:
        """The number of rows: the length of the vectors that it gives."""
        return None if self.shape.rank is None else self.shape[-2]

    def shape_tensor(self, name: str = "shape_tensor") -> Any:
        """The shape as an int32 vector, known or not.

        Args:
            name: has no effect.
        """
        return tf.constant(self.shape.as_list(), tf.int32) if self.shape.is_fully_defined() else self._shape_tensor()

    def batch_shape_tensor(self, name: str = "batch_shape_tensor") -> Any:
        """The shape of the batch as an int32 vector.

        Args:
            name: has no effect.
        """
        batch = self.batch_shape
        return tf.constant(batch.as_list(), tf.int32) if batch.is_fully_defined() else self.shape_tensor()[:-2]

    def tensor_rank_tensor(self, name: str = "tensor_rank_tensor") -> Any:
        """The number of axes as an int32 scalar.

        Args:
            name: has no effect.
        """
        return tf.size(self.shape_tensor()) if self.tensor_rank is None else tf.constant(self.tensor_rank, tf.int32)

    def domain_dimension_tensor(self, name: str = "domain_dimension_tensor") -> Any:
        """The number of columns as an int32 scalar.

        Args:
            name: has no effect.
        """
        size = self.domain_dimension
        return self.shape_tensor()[-1] if size is None else tf.constant(size, tf.int32)

    def range_dimension_tensor(self, name: str = "range_dimension_tensor") -> Any:
        """The number of rows as an int32 scalar.

        Args:
            name: has no effect.
        """
        size = self.range_dimension
        return self.shape_tensor()[-2] if size is None else tf.constant(size, tf.int32)

    # -- what it is tested for ------------------------------------------------------------------------------------
    def assert_non_singular(self, name: str = "assert_non_singular") -> Any:
        """Raises where the matrix has no inverse, as far as its dtype can tell.

        Args:
            name: has no effect.
        Raises:
            tf.errors.InvalidArgumentError: it has none.
        """
        return self._assert_non_singular()

    def assert_positive_definite(self, name: str = "assert_positive_definite") -> Any:
        """Raises where the matrix is not positive definite.

        Args:
            name: has no effect.
        Raises:
            tf.errors.InvalidArgumentError: it is not.
        """
        return self._assert_positive_definite()

    def assert_self_adjoint(self, name: str = "assert_self_adjoint") -> Any:
        """Raises where the matrix differs from its adjoint.

        Args:
            name: has no effect.
        Raises:
            tf.errors.InvalidArgumentError: it does.
        """
        return self._assert_self_adjoint()

    # -- products and equations -----------------------------------------------------------------------------------
    def matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False, name: str = "matmul") -> Any:
        """The product of the matrix and another.

        Args:
            x: tensor `[..., n, k]` of the operator's dtype, or an operator; batches broadcast.
            adjoint: multiply by the adjoint of the operator.
            adjoint_arg: multiply the adjoint of `x`.
            name: has no effect.
        Returns:
            Tensor `[..., m, k]`; an operator, if `x` is one.
        Raises:
            ValueError: sizes do not fit.
            TypeError: dtypes differ.

        >>> import twofold as tf
        >>> tf.linalg.LinearOperatorDiag([1.0, 2.0]).matmul([[1.0], [1.0]]).numpy().tolist()
        [[1.0], [2.0]]
        """
        if isinstance(x, LinearOperator):
            left, right = (self.adjoint() if adjoint else self), (x.adjoint() if adjoint_arg else x)
            _require_sizes(left.domain_dimension, right.range_dimension)
            return left._linop_matmul(right)
        x = turned(self._given(x, 2), adjoint_arg)
        _require_sizes(self.range_dimension if adjoint else self.domain_dimension, x.shape[-2])
        return self._matmul(x, adjoint=adjoint)

    @told
    def __matmul__(self, other: Any) -> Any:
        return self.matmul(other)

    def matvec(self, x: Any, adjoint: bool = False, name: str = "matvec") -> Any:
        """The product of the matrix and a vector.

        Args:
            x: tensor `[..., n]` of the operator's dtype.
            adjoint: multiply by the adjoint of the operator.
            name: has no effect.
        Returns:
            Tensor `[..., m]`.
        Raises:
            ValueError: sizes do not fit.
            TypeError: dtypes differ.
        """
        x = self._given(x, 1)
        _require_sizes(self.range_dimension if adjoint else self.domain_dimension, x.shape[-1])
        return self._matvec(x, adjoint=adjoint)

    def solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False, name: str = "solve") -> Any:
        """The X with A X = rhs.

        Args:
            rhs: tensor `[..., m, k]` of the operator's dtype, or an operator; batches broadcast.
            adjoint: solve with the adjoint of the operator.
            adjoint_arg: for the adjoint of `rhs`.
            name: has no effect.
        Returns:
            Tensor `[..., n, k]`; an operator, if `rhs` is one.
        Raises:
            NotImplementedError: the operator is said to be singular, or is not square.
            ValueError: sizes do not fit.
            TypeError: dtypes differ.

        >>> import twofold as tf
        >>> tf.linalg.LinearOperatorDiag([1.0, 2.0]).solve([[1.0], [1.0]]).numpy().tolist()
        [[1.0], [0.5]]
        """
        self._require_solvable()
        if isinstance(rhs, LinearOperator):
            left, right = (self.adjoint() if adjoint else self), (rhs.adjoint() if adjoint_arg else rhs)
            _require_sizes(left.range_dimension, right.range_dimension)
            return left._linop_solve(right)
        rhs = turned(self._given(rhs, 2), adjoint_arg)
        _require_sizes(self.range_dimension, rhs.shape[-2])
        return self._solve(rhs, adjoint=adjoint)

    def solvevec(self, rhs: Any, adjoint: bool = False, name: str = "solve") -> Any:
        """The x with A x = rhs for a vector.

        Args:
            rhs: tensor `[..., m]` of the operator's dtype.
            adjoint: solve with the adjoint of the operator.
            name: has no effect.
        Returns:
            Tensor `[..., n]`.
        Raises:
            NotImplementedError: the operator is said to be singular, or is not square.
            ValueError: sizes do not fit.
            TypeError: dtypes differ.
        """
        self._require_solvable()
        rhs = self._given(rhs, 1)
        _require_sizes(self.range_dimension, rhs.shape[-1])
        return self._solvevec(rhs, adjoint=adjoint)

    # -- other operators ------------------------------------------------------------------------------------------
    def adjoint(self, name: str = "adjoint") -> LinearOperator:
        """The operator of the adjoint matrix.

        Args:
            name: has no effect.
        """
        return self if self.is_self_adjoint else self._linop_adjoint()

    @property
    def H(self) -> LinearOperator:
        """The operator of the adjoint matrix."""
        return self.adjoint()

    def inverse(self, name: str = "inverse") -> LinearOperator:
        """The operator of the inverse matrix.

        Args:
            name: has no effect.
        Raises:
            ValueError: the operator is said to be singular, or is not square.
        """
        if self.is_square is False:
            raise ValueError("Cannot take the Inverse: This operator represents a non square matrix.")
        if self.is_non_singular is False:
            raise ValueError("Cannot take the Inverse: This operator represents a singular matrix.")
        return self._linop_inverse()

    def cholesky(self, name: str = "cholesky") -> LinearOperator:
        """The operator L, lower triangular, with L L^H = A.

        Args:
            name: has no effect.
        Raises:
            ValueError: the operator is not said to be self-adjoint and positive definite.
        """
        if not self._can_use_cholesky():
            raise ValueError("Cannot take the Cholesky decomposition: Not a positive definite self adjoint matrix.")
        return self._linop_cholesky()

    # -- numbers of it --------------------------------------------------------------------------------------------
    def to_dense(self, name: str = "to_dense") -> Any:
        """The matrix as a tensor.

        Args:
            name: has no effect.
        """
        return self._to_dense()

    def diag_part(self, name: str = "diag_part") -> Any:
        """The main diagonal: a tensor `[..., min(m, n)]`.

        Args:
            name: has no effect.
        """
        return self._diag_part()

    def trace(self, name: str = "trace") -> Any:
        """The sum of the main diagonal.

        Args:
            name: has no effect.
        """
        return self._trace()

    def determinant(self, name: str = "det") -> Any:
        """The determinant.

        Args:
            name: has no effect.
        Raises:
            NotImplementedError: the operator is not square.
        """
        self._require_square("Determinant")
        return self._determinant()

    def log_abs_determinant(self, name: str = "log_abs_det") -> Any:
        """The logarithm of the determinant's absolute value.

        Args:
            name: has no effect.
        Raises:
            NotImplementedError: the operator is not square.
        """
        self._require_square("Determinant")
        return self._log_abs_determinant()

    def eigvals(self, name: str = "eigvals") -> Any:
        """The eigenvalues of a self-adjoint operator.

        Args:
            name: has no effect.
        Raises:
            NotImplementedError: the operator is not said to be self-adjoint.
        """
        if not self.is_self_adjoint:
            raise NotImplementedError("Only self-adjoint matrices are supported.")
        return self._eigvals()

    def cond(self, name: str = "cond") -> Any:
        """The condition number: the greatest singular value by the least.

        Args:
            name: has no effect.
        """
        return self._cond()

    def add_to_tensor(self, x: Any, name: str = "add_to_tensor") -> Any:
        """The matrix plus a tensor of its shape.

        Args:
            x: the tensor; it broadcasts.
            name: has no effect.
        Raises:
            TypeError: dtypes differ.
        """
        return self._add_to_tensor(self._given(x, 2))

    # -- checks ---------------------------------------------------------------------------------------------------
    def _given(self, x: Any, rank: int) -> Any:
        """An operand as a tensor of the operator's dtype."""
        x = tf.convert_to_tensor(x)
        if x.dtype is not self.dtype:
            raise TypeError(f"Expected argument to have dtype {self.dtype.name}. Found: {x.dtype.name} in a tensor of "
                            f"shape {x.shape}.")
        if x.shape.rank is not None and x.shape.rank < rank:
            raise ValueError(f"Shape {x.shape} must have rank at least {rank}")
        return x

    def _require_solvable(self) -> None:
        if self.is_non_singular is False:
            raise NotImplementedError("Exact solve not implemented for an operator that is expected to be singular.")
        if self.is_square is False:
            raise NotImplementedError("Exact solve not implemented for an operator that is expected to not be square.")

    def _require_square(self, what: str) -> None:
        if self.is_square is False:
            raise NotImplementedError(f"{what} not implemented for an operator that is expected to not be square.")

    def _can_use_cholesky(self) -> bool:
        return bool(self.is_self_adjoint and self.is_positive_definite)

    # -- how it is computed: by the dense matrix, unless a class knows better -------------------------------------
    @abstractmethod
    def _shape(self) -> Any:
        """The static shape."""

    def _shape_tensor(self) -> Any:
        return tf.shape(self._to_dense())

    @abstractmethod
    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        """The product of the matrix, or of its adjoint, and a dense one; `adjoint_arg` is false here."""

    def _matvec(self, x: Any, adjoint: bool = False) -> Any:
        return tf.squeeze(self._matmul(column(x), adjoint=adjoint), axis=-1)

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        rhs = turned(rhs, adjoint_arg)
        if self._can_use_cholesky():
            return tf.linalg.cholesky_solve(tf.linalg.cholesky(self._to_dense()), rhs)
        return tf.linalg.solve(self._to_dense(), rhs, adjoint=adjoint)

    def _solvevec(self, rhs: Any, adjoint: bool = False) -> Any:
        return tf.squeeze(self._solve(column(rhs), adjoint=adjoint), axis=-1)

    def _to_dense(self) -> Any:
        batch = self.batch_shape.as_list() if self.batch_shape.is_fully_defined() else self.batch_shape_tensor()
        size = self.domain_dimension
        return self._matmul(tf.eye(self.domain_dimension_tensor() if size is None else size, batch_shape=batch,
                                   dtype=self.dtype))

    def _diag_part(self) -> Any:
        return tf.linalg.diag_part(self._to_dense())

    def _trace(self) -> Any:
        return tf.reduce_sum(self._diag_part(), axis=-1)

    def _determinant(self) -> Any:
        if self._can_use_cholesky():
            return tf.exp(self._log_abs_determinant())
        return tf.linalg.det(self._to_dense())

    def _log_abs_determinant(self) -> Any:
        if self._can_use_cholesky():
            factor = tf.linalg.diag_part(tf.linalg.cholesky(self._to_dense()))
            return 2 * tf.reduce_sum(tf.math.log(factor), axis=-1)
        logarithm = tf.linalg.slogdet(self._to_dense())[1]
        return tf.cast(logarithm, self.dtype)

    def _eigvals(self) -> Any:
        return tf.linalg.eigvalsh(self._to_dense())

    def _cond(self) -> Any:
        values = tf.linalg.svd(self._to_dense(), compute_uv=False)
        return tf.reduce_max(values, axis=-1) / tf.reduce_min(values, axis=-1)

    def _add_to_tensor(self, x: Any) -> Any:
        return self._to_dense() + x

    def _assert_non_singular(self) -> Any:
        worst = 1.0 / np.finfo(self.dtype.real_dtype.as_numpy_dtype).eps
        return tf.debugging.assert_less(tf.math.real(self._cond()), tf.constant(worst, self.dtype.real_dtype),
                                        message="Singular matrix up to precision epsilon.")

    def _assert_positive_definite(self) -> Any:
        dense = self._to_dense()
        values = tf.linalg.eigvalsh((dense + tf.linalg.adjoint(dense)) / 2)
        return tf.debugging.assert_positive(tf.math.real(values), message="The matrix is not positive definite.")

    def _assert_self_adjoint(self) -> Any:
        dense = self._to_dense()
        return tf.debugging.assert_equal(dense, tf.linalg.adjoint(dense),
                                         message="Matrix was not equal to its adjoint.")

    # -- what operators made of it are ----------------------------------------------------------------------------
    def _linop_adjoint(self) -> LinearOperator:
        return tf.linalg.LinearOperatorAdjoint(self)

    def _linop_inverse(self) -> LinearOperator:
        return tf.linalg.LinearOperatorInversion(self)

    def _linop_cholesky(self) -> LinearOperator:
        return tf.linalg.LinearOperatorLowerTriangular(tf.linalg.cholesky(self._to_dense()), is_non_singular=True)

    def _linop_matmul(self, right: LinearOperator) -> LinearOperator:
        return right._linop_matmul_by(self)

    def _linop_matmul_by(self, left: LinearOperator) -> LinearOperator:
        """The product of `left`, which knows nothing of this class, and this operator."""
        return tf.linalg.LinearOperatorComposition([left, self])

    def _linop_solve(self, right: LinearOperator) -> LinearOperator:
        return self.inverse().matmul(right)

    # -- as a value that is made of tensors -----------------------------------------------------------------------
    @property
    def _type_spec(self) -> LinearOperatorSpec:
        components = {name: v for name, v in self._parameters.items() if _is_component(v)}
        plain = {name: v for name, v in self._parameters.items() if name not in components}
        ours = type(self).__module__.startswith("twofold.")
        return LinearOperatorSpec(type(self).__name__ if ours else type(self), plain,
                                  {name: _spec(v) for name, v in components.items()})

    def __repr__(self) -> str:
        return f"<tf.linalg.{type(self).__name__} {self.name!r} shape={self.shape} dtype={self.dtype.name}>"


def _require_sizes(one: int | None, other: int | None) -> None:
    if one is not None and other is not None and one != other:
        raise ValueError(f"Dimensions {one} and {other} are not compatible")


public_class(LinearOperator)
