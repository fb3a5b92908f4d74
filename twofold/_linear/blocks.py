"""Operators made of several others: Kronecker products, blocks along the diagonal, and below it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any, ClassVar

import twofold as tf
from twofold._front.api import public_class

from .base import LinearOperator, broadcast_shapes, column, require_hint, turned
from .combined import all_hint, operators_of

__all__ = ["LinearOperatorBlockDiag", "LinearOperatorBlockLowerTriangular", "LinearOperatorKronecker"]


def _total(sizes: Sequence[int | None], by: Callable[[int, int], int], start: int) -> int | None:
    known = [size for size in sizes if size is not None]
    return reduce(by, known, start) if len(known) == len(sizes) else None


def _batch_tensor(operators: Sequence[LinearOperator]) -> Any:
    return reduce(tf.broadcast_dynamic_shape, [op.batch_shape_tensor() for op in operators])


def _rows_of(op: LinearOperator, adjoint: bool) -> Any:
    """How many rows the operand of a product has: a Python integer where it is known."""
    known = op.range_dimension if adjoint else op.domain_dimension
    if known is not None:
        return known
    return op.range_dimension_tensor() if adjoint else op.domain_dimension_tensor()


def _lead(x: Any) -> Any:
    return tf.shape(x)[:-2]


def _reshaped(x: Any, *sizes: Any) -> Any:
    """A tensor whose last two axes are cut anew."""
    if x.shape[:-2].is_fully_defined() and all(isinstance(size, int) for size in sizes):
        return tf.reshape(x, [*x.shape[:-2].as_list(), *sizes])
    return tf.reshape(x, tf.concat([_lead(x), tf.stack([tf.cast(s, tf.int32) for s in sizes])], 0))


class LinearOperatorKronecker(LinearOperator):
    """The Kronecker product of operators, which is never written out: each acts on an axis of its own.

    Args:
        operators: list of operators of one dtype.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square: hints, as for `tf.linalg.LinearOperator`; by
            default they hold where they hold for all factors.
        name: of the operator; by default made of theirs.
    Raises:
        ValueError: there are none, or hints contradict one another.
        TypeError: one is no operator, or dtypes differ.

    >>> import twofold as tf
    >>> scale, same = tf.linalg.LinearOperatorDiag([1.0, 10.0]), tf.linalg.LinearOperatorIdentity(2)
    >>> tf.linalg.LinearOperatorKronecker([scale, same]).matvec([1.0, 2.0, 3.0, 4.0]).numpy().tolist()
    [1.0, 2.0, 30.0, 40.0]
    """

    _matrix_axes: ClassVar[Mapping[str, Any] | None] = {"operators": 0}

    def __init__(self, operators: Any, is_non_singular: bool | None = None, is_self_adjoint: bool | None = None,
                 is_positive_definite: bool | None = None, is_square: bool | None = None, name: str | None = None
                 ) -> None:
        self._operators = operators_of(operators)
        parameters = {"operators": list(self._operators), "is_non_singular": is_non_singular,
                      "is_self_adjoint": is_self_adjoint, "is_positive_definite": is_positive_definite,
                      "is_square": is_square, "name": name}
        if is_non_singular is None:
            is_non_singular = all_hint(self._operators, "is_non_singular")
        if is_self_adjoint is None:
            is_self_adjoint = all_hint(self._operators, "is_self_adjoint")
        if is_positive_definite is None and is_self_adjoint:
            is_positive_definite = all_hint(self._operators, "is_positive_definite")
        super().__init__(self._operators[0].dtype, None, is_non_singular, is_self_adjoint, is_positive_definite,
                         is_square, name or "_x_".join(op.name for op in self._operators), parameters)

    @property
    def operators(self) -> list[LinearOperator]:
        """The factors, from left to right."""
        return list(self._operators)

    def _shape(self) -> Any:
        def size(sizes: list[int | None]) -> int | None:
            return _total(sizes, lambda a, b: a * b, 1)
        batch = broadcast_shapes([op.batch_shape for op in self._operators])
        return batch.concatenate([size([op.range_dimension for op in self._operators]),
                                  size([op.domain_dimension for op in self._operators])])

    def _shape_tensor(self) -> Any:
        rows = reduce(tf.multiply, [op.range_dimension_tensor() for op in self._operators])
        columns = reduce(tf.multiply, [op.domain_dimension_tensor() for op in self._operators])
        return tf.concat([_batch_tensor(self._operators), tf.stack([rows, columns])], 0)

    def _along_axes(self, x: Any, adjoint: bool, apply: Callable[[LinearOperator, Any], Any]) -> Any:
        """Each factor applied to its part of the rows of `x`: the axis at hand comes first, and goes behind the others.

        The columns lie behind the rows from the beginning, so that they are in front when all factors have had a turn.
        """
        columns = tf.shape(x)[-1] if x.shape[-1] is None else x.shape[-1]
        for op in self._operators:
            x = tf.linalg.matrix_transpose(apply(op, _reshaped(x, _rows_of(op, adjoint), -1)))
        return tf.linalg.matrix_transpose(_reshaped(x, columns, -1))

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return self._along_axes(x, adjoint, lambda op, part: op.matmul(part, adjoint=adjoint))

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        if not all(op.is_square for op in self._operators):
            return super()._solve(rhs, adjoint=adjoint)
        return self._along_axes(rhs, not adjoint, lambda op, part: op.solve(part, adjoint=adjoint))

    def _outer(self, values: Sequence[Any]) -> Any:
        """All products of an element of each vector, in the order of the rows."""
        def times(a: Any, b: Any) -> Any:
            product = column(a) * tf.expand_dims(b, -2)
            return tf.reshape(product, tf.concat([_lead(product), [-1]], 0))
        return reduce(times, values)

    def _diag_part(self) -> Any:
        if not all(op.is_square for op in self._operators):
            return super()._diag_part()
        return self._outer([op.diag_part() for op in self._operators])

    def _eigvals(self) -> Any:
        if not all(op.is_self_adjoint for op in self._operators):
            return super()._eigvals()
        return self._outer([op.eigvals() for op in self._operators])

    def _trace(self) -> Any:
        if not all(op.is_square for op in self._operators):
            return super()._trace()
        return reduce(tf.multiply, [op.trace() for op in self._operators])

    def _times_each(self, op: LinearOperator) -> Any:
        """How often the determinant of a factor counts: once for each row of the product of the others."""
        return tf.cast(self.domain_dimension_tensor() // op.domain_dimension_tensor(), self.dtype)

    def _determinant(self) -> Any:
        if not all(op.is_square for op in self._operators):
            return super()._determinant()
        return reduce(tf.multiply, [op.determinant() ** self._times_each(op) for op in self._operators])

    def _log_abs_determinant(self) -> Any:
        if not all(op.is_square for op in self._operators):
            return super()._log_abs_determinant()
        return reduce(tf.add, [op.log_abs_determinant() * self._times_each(op) for op in self._operators])

    def _cond(self) -> Any:
        return reduce(tf.multiply, [op.cond() for op in self._operators])

    def _linop_adjoint(self) -> LinearOperator:
        return LinearOperatorKronecker([op.adjoint() for op in self._operators], self.is_non_singular,
                                       self.is_self_adjoint, self.is_positive_definite)

    def _linop_inverse(self) -> LinearOperator:
        if not all(op.is_square and op.is_non_singular is not False for op in self._operators):
            return super()._linop_inverse()
        return LinearOperatorKronecker([op.inverse() for op in self._operators], True, self.is_self_adjoint,
                                       self.is_positive_definite)

    def _linop_cholesky(self) -> LinearOperator:
        if not all(op._can_use_cholesky() for op in self._operators):
            return super()._linop_cholesky()
        return LinearOperatorKronecker([op.cholesky() for op in self._operators], True)


def _split(x: Any, sizes: Sequence[Any]) -> list[Any]:
    """The blocks of rows of these sizes."""
    parts, start = [], 0
    for size in sizes:
        parts.append(x[..., start:start + size, :])
        start = start + size
    return parts


def _stacked(parts: Sequence[Any], axis: int = -2) -> Any:
    """Blocks of rows, one above the other, with their batches broadcast."""
    batch = reduce(tf.broadcast_dynamic_shape, [tf.shape(p)[:axis] for p in parts])
    static = broadcast_shapes([p.shape[:axis] for p in parts])
    if not (static.is_fully_defined() and all(p.shape[:axis] == static for p in parts)):
        parts = [tf.broadcast_to(p, tf.concat([batch, tf.shape(p)[axis:]], 0)) for p in parts]
    return tf.concat(parts, axis)


class _Blocks(LinearOperator):
    """What operators of blocks have in common: operands may be lists of blocks, and results are lists then."""

    def matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False, name: str = "matmul") -> Any:
        """The product of the matrix and another, or a list of blocks of it.

        Args:
            x: tensor `[..., n, k]` of the operator's dtype, a list of such for the blocks, or an operator.
            adjoint: multiply by the adjoint of the operator.
            adjoint_arg: multiply the adjoint of `x`, or of each in the list.
            name: has no effect.
        Returns:
            Tensor `[..., m, k]`, a list of such, or an operator.
        Raises:
            ValueError: sizes do not fit.
            TypeError: dtypes differ.
        """
        if self._are_blocks(x):
            return self._product([turned(self._given(part, 2), adjoint_arg) for part in x], adjoint)
        return super().matmul(x, adjoint, adjoint_arg)

    def matvec(self, x: Any, adjoint: bool = False, name: str = "matvec") -> Any:
        """The product of the matrix and a vector, or a list of blocks of it.

        Args:
            x: tensor `[..., n]` of the operator's dtype, or a list of such for the blocks.
            adjoint: multiply by the adjoint of the operator.
            name: has no effect.
        Returns:
            Tensor `[..., m]`, or a list of such.
        Raises:
            ValueError: sizes do not fit.
            TypeError: dtypes differ.
        """
        if self._are_blocks(x):
            return [part[..., 0] for part in self._product([column(self._given(part, 1)) for part in x], adjoint)]
        return super().matvec(x, adjoint)

    def solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False, name: str = "solve") -> Any:
        """The X with A X = rhs, for a matrix or a list of blocks of it.

        Args:
            rhs: tensor `[..., m, k]` of the operator's dtype, a list of such for the blocks, or an operator.
            adjoint: solve with the adjoint of the operator.
            adjoint_arg: for the adjoint of `rhs`, or of each in the list.
            name: has no effect.
        Returns:
            Tensor `[..., n, k]`, a list of such, or an operator.
        Raises:
            NotImplementedError: the operator is said to be singular, or is not square.
            ValueError: sizes do not fit.
            TypeError: dtypes differ.
        """
        if self._are_blocks(rhs):
            self._require_solvable()
            return self._solution([turned(self._given(part, 2), adjoint_arg) for part in rhs], adjoint)
        return super().solve(rhs, adjoint, adjoint_arg)

    def solvevec(self, rhs: Any, adjoint: bool = False, name: str = "solve") -> Any:
        """The x with A x = rhs, for a vector or a list of blocks of it.

        Args:
            rhs: tensor `[..., m]` of the operator's dtype, or a list of such for the blocks.
            adjoint: solve with the adjoint of the operator.
            name: has no effect.
        Returns:
            Tensor `[..., n]`, or a list of such.
        Raises:
            NotImplementedError: the operator is said to be singular, or is not square.
            ValueError: sizes do not fit.
            TypeError: dtypes differ.
        """
        if self._are_blocks(rhs):
            self._require_solvable()
            return [part[..., 0] for part in self._solution([column(self._given(part, 1)) for part in rhs], adjoint)]
        return super().solvevec(rhs, adjoint)

    def _are_blocks(self, x: Any) -> bool:
        """Whether an operand is a list of a tensor for each block: of numbers alone it is a matrix or a vector."""
        return isinstance(x, (list, tuple)) and len(x) == self._count() and all(
            hasattr(part, "shape") and len(part.shape) for part in x)

    @abstractmethod
    def _count(self) -> int:
        """How many blocks there are along the diagonal."""

    @abstractmethod
    def _product(self, parts: list[Any], adjoint: bool) -> list[Any]:
        """The blocks of the product with blocks of rows."""

    @abstractmethod
    def _solution(self, parts: list[Any], adjoint: bool) -> list[Any]:
        """The blocks of the solution for blocks of rows."""

    @abstractmethod
    def _diagonal(self) -> list[LinearOperator]:
        """The blocks along the diagonal."""

    def _squares(self) -> bool:
        return all(op.is_square for op in self._diagonal())

    def _sizes(self, adjoint: bool) -> list[Any]:
        return [_rows_of(op, adjoint) for op in self._diagonal()]

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return _stacked(self._product(_split(x, self._sizes(adjoint)), adjoint))

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        if not self._squares():
            return super()._solve(rhs, adjoint=adjoint)
        return _stacked(self._solution(_split(rhs, self._sizes(not adjoint)), adjoint))

    def _diag_part(self) -> Any:
        if not self._squares():
            return super()._diag_part()
        return _stacked([tf.broadcast_to(d, tf.concat([self.batch_shape_tensor(), tf.shape(d)[-1:]], 0))
                         for d in [op.diag_part() for op in self._diagonal()]], -1)

    def _to_batch(self, x: Any) -> Any:
        return tf.broadcast_to(x, self.batch_shape_tensor())

    def _trace(self) -> Any:
        if not self._squares():
            return super()._trace()
        return self._to_batch(reduce(tf.add, [op.trace() for op in self._diagonal()]))

    def _determinant(self) -> Any:
        if not self._squares():
            return super()._determinant()
        return self._to_batch(reduce(tf.multiply, [op.determinant() for op in self._diagonal()]))

    def _log_abs_determinant(self) -> Any:
        if not self._squares():
            return super()._log_abs_determinant()
        return self._to_batch(reduce(tf.add, [op.log_abs_determinant() for op in self._diagonal()]))

    def _assert_non_singular(self) -> Any:
        if not self._squares():
            return super()._assert_non_singular()
        return [op.assert_non_singular() for op in self._diagonal()]


class LinearOperatorBlockDiag(_Blocks):
    """Operators along the diagonal, zeros beside them.

    Operands of products and equations may also be lists, of a tensor for each block; results are lists then.

    Args:
        operators: list of operators of one dtype.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square: hints, as for `tf.linalg.LinearOperator`; by
            default they hold where they hold for all blocks.
        name: of the operator; by default made of theirs.
    Raises:
        ValueError: there are none, or hints contradict one another.
        TypeError: one is no operator, or dtypes differ.

    >>> import twofold as tf
    >>> scale, swap = tf.linalg.LinearOperatorDiag([2.0]), tf.linalg.LinearOperatorFullMatrix([[0.0, 1.0], [1.0, 0.0]])
    >>> tf.linalg.LinearOperatorBlockDiag([scale, swap]).matvec([1.0, 2.0, 3.0]).numpy().tolist()
    [2.0, 3.0, 2.0]
    """

    _matrix_axes: ClassVar[Mapping[str, Any] | None] = {"operators": 0}

    def __init__(self, operators: Any, is_non_singular: bool | None = None, is_self_adjoint: bool | None = None,
                 is_positive_definite: bool | None = None, is_square: bool | None = True, name: str | None = None
                 ) -> None:
        self._operators = operators_of(operators)
        parameters = {"operators": list(self._operators), "is_non_singular": is_non_singular,
                      "is_self_adjoint": is_self_adjoint, "is_positive_definite": is_positive_definite,
                      "is_square": is_square, "name": name}
        if is_non_singular is None:
            is_non_singular = all_hint(self._operators, "is_non_singular")
        if is_self_adjoint is None:
            is_self_adjoint = all_hint(self._operators, "is_self_adjoint")
        if is_positive_definite is None:
            is_positive_definite = all_hint(self._operators, "is_positive_definite")
        super().__init__(self._operators[0].dtype, None, is_non_singular, is_self_adjoint, is_positive_definite,
                         is_square, name or "_ds_".join(op.name for op in self._operators), parameters)

    @property
    def operators(self) -> list[LinearOperator]:
        """The blocks, from the upper left to the lower right."""
        return list(self._operators)

    def _shape(self) -> Any:
        def size(sizes: list[int | None]) -> int | None:
            return _total(sizes, lambda a, b: a + b, 0)
        batch = broadcast_shapes([op.batch_shape for op in self._operators])
        return batch.concatenate([size([op.range_dimension for op in self._operators]),
                                  size([op.domain_dimension for op in self._operators])])

    def _shape_tensor(self) -> Any:
        rows = reduce(tf.add, [op.range_dimension_tensor() for op in self._operators])
        columns = reduce(tf.add, [op.domain_dimension_tensor() for op in self._operators])
        return tf.concat([_batch_tensor(self._operators), tf.stack([rows, columns])], 0)

    def _count(self) -> int:
        return len(self._operators)

    def _diagonal(self) -> list[LinearOperator]:
        return self._operators

    def _product(self, parts: list[Any], adjoint: bool) -> list[Any]:
        return [op.matmul(part, adjoint=adjoint) for op, part in zip(self._operators, parts, strict=True)]

    def _solution(self, parts: list[Any], adjoint: bool) -> list[Any]:
        return [op.solve(part, adjoint=adjoint) for op, part in zip(self._operators, parts, strict=True)]

    def _eigvals(self) -> Any:
        if not all(op.is_self_adjoint for op in self._operators):
            return super()._eigvals()
        return _stacked([op.eigvals() for op in self._operators], -1)

    def _assert_positive_definite(self) -> Any:
        if not self._squares():
            return super()._assert_positive_definite()
        return [op.assert_positive_definite() for op in self._operators]

    def _assert_self_adjoint(self) -> Any:
        if not self._squares():
            return super()._assert_self_adjoint()
        return [op.assert_self_adjoint() for op in self._operators]

    def _of_each(self, operators: list[LinearOperator], non_singular: bool | None) -> LinearOperator:
        return LinearOperatorBlockDiag(operators, non_singular, self.is_self_adjoint, self.is_positive_definite,
                                       self.is_square)

    def _linop_adjoint(self) -> LinearOperator:
        return self._of_each([op.adjoint() for op in self._operators], self.is_non_singular)

    def _linop_inverse(self) -> LinearOperator:
        if not all(op.is_square and op.is_non_singular is not False for op in self._operators):
            return super()._linop_inverse()
        return self._of_each([op.inverse() for op in self._operators], True)

    def _linop_cholesky(self) -> LinearOperator:
        if not all(op._can_use_cholesky() for op in self._operators):
            return super()._linop_cholesky()
        return LinearOperatorBlockDiag([op.cholesky() for op in self._operators], True)


class LinearOperatorBlockLowerTriangular(_Blocks):
    """Operators along the diagonal and below it, zeros above. Equations are solved block by block.

    Operands of products and equations may also be lists, of a tensor for each block; results are lists then.

    Args:
        operators: list of rows, the first of one operator, the second of two, and so on; those at the ends are square.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square: hints, as for `tf.linalg.LinearOperator`; it
            is non-singular by default, if all at the ends are.
        name: of the operator.
    Raises:
        ValueError: rows have other lengths, sizes do not fit, or hints contradict one another.
        TypeError: one is no operator, or dtypes differ.

    >>> import twofold as tf
    >>> one, two = tf.linalg.LinearOperatorFullMatrix([[1.0]]), tf.linalg.LinearOperatorFullMatrix([[2.0]])
    >>> tf.linalg.LinearOperatorBlockLowerTriangular([[two], [one, two]]).to_dense().numpy().tolist()
    [[2.0, 0.0], [1.0, 2.0]]
    """

    _matrix_axes: ClassVar[Mapping[str, Any] | None] = {"operators": 0}

    def __init__(self, operators: Any, is_non_singular: bool | None = None, is_self_adjoint: bool | None = None,
                 is_positive_definite: bool | None = None, is_square: bool | None = None,
                 name: str | None = "LinearOperatorBlockLowerTriangular") -> None:
        self._operators = [operators_of(row) for row in operators]
        every = operators_of([op for row in self._operators for op in row])
        for number, row in enumerate(self._operators, 1):
            if len(row) != number:
                raise ValueError(f"The `i`-th row must have `i` blocks. Row {number} has {len(row)}.")
        self._require_fit()
        parameters = {"operators": [list(row) for row in self._operators], "is_non_singular": is_non_singular,
                      "is_self_adjoint": is_self_adjoint, "is_positive_definite": is_positive_definite,
                      "is_square": is_square, "name": name}
        if is_non_singular is None:
            is_non_singular = all_hint(self._diagonal(), "is_non_singular")
        super().__init__(every[0].dtype, None, is_non_singular, is_self_adjoint, is_positive_definite,
                         require_hint(is_square, True, "Only square block lower triangular operators supported."), name,
                         parameters)

    def _require_fit(self) -> None:
        """Raises where a block has other sizes than those at the ends of its row and of its column."""
        ends = self._diagonal()
        for i, row in enumerate(self._operators):
            for j, op in enumerate(row):
                for one, other in ((op.range_dimension, ends[i].range_dimension),
                                   (op.domain_dimension, ends[j].range_dimension)):
                    if one is not None and other is not None and one != other:
                        raise ValueError(f"Dimensions {one} and {other} are not compatible (block {j} of row {i}).")

    @property
    def operators(self) -> list[list[LinearOperator]]:
        """The blocks, row by row."""
        return [list(row) for row in self._operators]

    def _count(self) -> int:
        return len(self._operators)

    def _diagonal(self) -> list[LinearOperator]:
        return [row[-1] for row in self._operators]

    def _shape(self) -> Any:
        size = _total([op.range_dimension for op in self._diagonal()], lambda a, b: a + b, 0)
        batch = broadcast_shapes([op.batch_shape for row in self._operators for op in row])
        return batch.concatenate([size, size])

    def _shape_tensor(self) -> Any:
        size = reduce(tf.add, [op.range_dimension_tensor() for op in self._diagonal()])
        batch = _batch_tensor([op for row in self._operators for op in row])
        return tf.concat([batch, tf.stack([size, size])], 0)

    def _product(self, parts: list[Any], adjoint: bool) -> list[Any]:
        count = len(parts)
        if adjoint:
            return [reduce(tf.add, [self._operators[i][j].matmul(parts[i], adjoint=True) for i in range(j, count)])
                    for j in range(count)]
        return [reduce(tf.add, [op.matmul(part) for op, part in zip(row, parts, strict=False)])
                for row in self._operators]

    def _solution(self, parts: list[Any], adjoint: bool) -> list[Any]:
        solved: dict[int, Any] = {}
        order = range(len(parts))
        for i in reversed(order) if adjoint else order:
            rest = parts[i]
            for j, known in solved.items():
                block = self._operators[j][i] if adjoint else self._operators[i][j]
                rest = rest - block.matmul(known, adjoint=adjoint)
            solved[i] = self._operators[i][i].solve(rest, adjoint=adjoint)
        return [solved[i] for i in order]


for _cls in (LinearOperatorKronecker, _Blocks, LinearOperatorBlockDiag, LinearOperatorBlockLowerTriangular):
    public_class(_cls)
