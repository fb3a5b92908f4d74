"""Contractions by name: `einsum` and `tensordot`. Re-exported by `twofold/linalg.py`.

An equation is worked off two operands at a time: what only one of them has and nobody needs is summed, what both have
and nobody needs is the inner axis of a matrix product, what both have and somebody needs is its batch. With three
operands and more, the pair with the smallest product goes first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from twofold._front.api import ints, listed, public, tensor
from twofold._front.precision import precision_arg
from twofold.ir import dims as dm
from twofold.ir import matrices, ops
from twofold.ir.errors import InvalidArgumentError, op_error
from twofold.ir.types import Attrs

__all__ = ["einsum", "tensordot"]

Label = str | int  # a letter; or for the axes under an ellipsis -1, -2, .. from the right
Operand = tuple[Any, tuple[Label, ...]]


def _fail(equation: str, problem: str, operands: Sequence[Any] = ()) -> NoReturn:
    pairs = [("equation", equation), *[(f"inputs[{i}]", t) for i, t in enumerate(operands)]]
    raise op_error(InvalidArgumentError, "einsum", problem, pairs)


def _labels(equation: str, term: str, rank: int | None, operands: Sequence[Any]) -> tuple[Label, ...]:
    """The labels of a term; `rank` None stands for the output, whose ellipsis is `...` itself."""
    before, ellipsis, after = term.partition("...")
    if not all(c.isalpha() for c in before + after):
        _fail(equation, f"term {term!r} may hold letters and one ellipsis.", operands)
    if rank is None:
        return (*before, *((0,) if ellipsis else ()), *after)
    hidden = rank - len(before) - len(after)
    if hidden < 0 or (hidden and not ellipsis):
        _fail(equation, f"term {term!r} does not fit an operand of rank {rank}.", operands)
    return (*before, *range(-hidden, 0), *after)


def _parse(equation: str, operands: Sequence[Any]) -> tuple[list[tuple[Label, ...]], tuple[Label, ...]]:
    """The labels of every operand and of the output."""
    left, arrow, right = "".join(equation.split()).partition("->")
    terms = left.split(",")
    if len(terms) != len(operands):
        _fail(equation, f"the equation has {len(terms)} terms for {len(operands)} operands.", operands)
    inputs = [_labels(equation, t, len(x.dims), operands) for t, x in zip(terms, operands, strict=True)]
    hidden = tuple(range(min((n for term in inputs for n in term if isinstance(n, int)), default=0), 0))
    counts = Counter(n for term in inputs for n in term if isinstance(n, str))
    if not arrow:
        return inputs, (*hidden, *sorted(n for n, count in counts.items() if count == 1))
    output: list[Label] = []
    for n in _labels(equation, right, None, operands):
        if isinstance(n, str) and n not in counts:
            _fail(equation, f"output label {n!r} is in no operand.", operands)
        output.extend(hidden if n == 0 else (n,))
    return inputs, tuple(output)


def _check_sizes(equation: str, operands: Sequence[Any], inputs: Sequence[tuple[Label, ...]]) -> None:
    sizes: dict[Label, Any] = {}
    for x, labels in zip(operands, inputs, strict=True):
        for n, size in zip(labels, x.dims, strict=True):
            if isinstance(n, str) and not dm.require_eq(sizes.setdefault(n, size), size):
                _fail(equation, f"label {n!r} stands for sizes {sizes[n]} and {size}.", operands)


def _without(x: Any, labels: tuple[Label, ...], unwanted: Iterable[Label]) -> Operand:
    """`x` summed over the `unwanted` labels."""
    gone = set(unwanted)
    axes = tuple(i for i, n in enumerate(labels) if n in gone)
    return (ops.reduce_sum(x, axis=axes), tuple(n for n in labels if n not in gone)) if axes else (x, labels)


def _arranged(x: Any, labels: tuple[Label, ...], wanted: Sequence[Label]) -> Any:
    """`x` with its axes in the order `wanted`."""
    perm = tuple(labels.index(n) for n in wanted)
    return x if perm == tuple(range(len(perm))) else ops.transpose(x, perm=perm)


def _diagonals(x: Any, labels: tuple[Label, ...]) -> Operand:
    """`x` with every repeated label taken once, along the diagonal."""
    while len(set(labels)) < len(labels):
        twice = next(n for n, count in Counter(labels).items() if count > 1)
        i, j = [k for k, n in enumerate(labels) if n == twice][:2]
        rest = tuple(k for k in range(len(labels)) if k not in (i, j))
        x = matrices.diag_part(ops.transpose(x, perm=(*rest, i, j)))
        labels = (*[labels[k] for k in rest], twice)
    return x, labels


def _pair(a: Operand, b: Operand, keep: set[Label], how: Attrs) -> Operand:
    """The product of two operands, summed over what `keep` does not hold; `how` has the precision, where it is said."""
    (x, xs), (y, ys) = (_without(*p, set(p[1]) - set(q[1]) - keep) for p, q in ((a, b), (b, a)))
    batch = [n for n in xs if n in ys and n in keep]
    inner = [n for n in xs if n in ys and n not in keep]
    free_x, free_y = [n for n in xs if n not in ys], [n for n in ys if n not in xs]
    labels = (*batch, *free_x, *free_y)
    sizes_x, sizes_y = dict(zip(xs, x.dims, strict=True)), dict(zip(ys, y.dims, strict=True))
    x, y = _arranged(x, xs, [*batch, *free_x, *inner]), _arranged(y, ys, [*batch, *inner, *free_y])
    batch_x, batch_y = [sizes_x[n] for n in batch], [sizes_y[n] for n in batch]
    rows, columns = [sizes_x[n] for n in free_x], [sizes_y[n] for n in free_y]
    if not inner:
        x = ops.reshape(x, shape=(*batch_x, *rows, *[1] * len(columns)))
        return ops.multiply(x, ops.reshape(y, shape=(*batch_y, *[1] * len(rows), *columns))), labels
    depth = dm.broadcast_shapes(tuple(sizes_x[n] for n in inner), tuple(sizes_y[n] for n in inner))
    x = ops.broadcast_to(x, shape=(*batch_x, *rows, *depth))
    y = ops.broadcast_to(y, shape=(*batch_y, *depth, *columns))
    product = ops.matmul(ops.reshape(x, shape=(*batch_x, dm.numel(rows), dm.numel(depth))),
                         ops.reshape(y, shape=(*batch_y, dm.numel(depth), dm.numel(columns))), **how)
    return ops.reshape(product, shape=(*product.dims[:-2], *rows, *columns)), labels


def _next_pair(held: Sequence[Operand], output: tuple[Label, ...]) -> tuple[int, int]:
    """The two operands whose product is smallest. The order decides roundings, so unknown sizes do not change it."""
    if len(held) == 2:
        return 0, 1

    def size_of_product(i: int, j: int) -> dm.DimLike:
        needed = set(output).union(*(labels for k, (_, labels) in enumerate(held) if k not in (i, j)))
        sizes = {n: d for k in (i, j) for n, d in zip(held[k][1], held[k][0].dims, strict=True)}
        return dm.numel(d for n, d in sizes.items() if n in needed)
    best = 0, 1
    for pair in ((i, j) for j in range(len(held)) for i in range(j)):
        if not dm.require(size_of_product(*best), "<=", size_of_product(*pair)):
            best = pair
    return best


def _laid_out(x: Any, labels: tuple[Label, ...], output: tuple[Label, ...]) -> Any:
    """`x` in the output's order; a label that the output repeats is spread along the diagonal."""
    once = tuple(dict.fromkeys(output))
    x = _arranged(x, labels, once)
    done = list(once)
    for n, count in Counter(output).items():
        for _ in range(count - 1):
            i = done.index(n)
            order = (*[k for k in range(len(done)) if k != i], i)
            x = matrices.diag(ops.transpose(x, perm=order))
            done = [done[k] for k in order] + [n]
    remaining = list(range(len(done)))
    perm = []
    for n in output:
        perm.append(next(k for k in remaining if done[k] == n))
        remaining.remove(perm[-1])
    return x if perm == sorted(perm) else ops.transpose(x, perm=tuple(perm))


@public
def einsum(equation: str, *inputs: Any, **kwargs: Any) -> Any:
    """Products of tensors summed over named axes, after Einstein.

    Each operand's axes get letters; letters that the output does not have are summed. Without `->` the output has, in
    alphabetical order, the letters that occur once. `...` stands for axes without letters, which broadcast. A letter
    that an operand repeats takes its diagonal; one that the output repeats puts it there.

    Args:
        equation: such as "ij,jk->ik".
        *inputs: numeric tensors of one dtype, as many as the equation has terms.
        **kwargs: `precision`, as for `tf.matmul`; `name` and `optimize`, which have no effect: the order of the
            products is found from the sizes.
    Returns:
        Tensor of the same dtype.
    Raises:
        tf.errors.InvalidArgumentError: the equation makes no sense, or does not fit the shapes; dtypes differ.
        TypeError: an unknown keyword.

    >>> import twofold as tf
    >>> a = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    >>> tf.einsum("ij,jk->ik", a, a).numpy().tolist()
    [[7.0, 10.0], [15.0, 22.0]]
    >>> tf.einsum("ii", a).numpy().item()
    5.0
    """
    unknown = set(kwargs) - {"name", "optimize", "precision"}
    if unknown:
        raise TypeError(f"einsum: unexpected keyword arguments {sorted(unknown)}.")
    how = precision_arg("einsum", kwargs.get("precision"))
    if not inputs:
        _fail(equation, "there are no operands.")
    hint = next((x.dtype for x in inputs if hasattr(x, "dims")), None)
    operands = [tensor(x, hint=hint) for x in inputs]
    terms, output = _parse(equation, operands)
    _check_sizes(equation, operands, terms)
    held = [_diagonals(x, labels) for x, labels in zip(operands, terms, strict=True)]
    while len(held) > 1:
        i, j = _next_pair(held, output)
        b, a = held.pop(j), held.pop(i)
        needed = set(output).union(*(labels for _, labels in held))
        held.append(_pair(a, b, needed, how))
    x, labels = _without(*held[0], set(held[0][1]) - set(output))
    return _laid_out(x, labels, output)


def _contracted_axes(a: Any, b: Any, axes: Any) -> tuple[list[int], list[int]]:
    """The axes of `a` and those of `b` that are summed, as numbers from 0."""
    ranks = len(a.dims), len(b.dims)
    pairs = [("a", a), ("b", b), ("axes", axes)]
    if hasattr(axes, "dims"):
        flat = ints(axes, "axes", (0, min(ranks) + 1))
        axes = flat[0] if not axes.dims else [flat[:len(flat) // 2], flat[len(flat) // 2:]]
    if hasattr(axes, "__index__"):
        count = axes.__index__()
        if not 0 <= count <= min(ranks):
            raise op_error(InvalidArgumentError, "tensordot", f"axes must be from 0 to {min(ranks)}.", pairs)
        return list(range(ranks[0] - count, ranks[0])), list(range(count))
    if len(axes) != 2:
        raise op_error(InvalidArgumentError, "tensordot", "axes must be an integer or have length 2.", pairs)
    summed = [ints(side, "axes", (-rank, rank)) for rank, side in zip(ranks, listed(axes, "axes"), strict=True)]
    for rank, side in zip(ranks, summed, strict=True):
        if any(not -rank <= i < rank for i in side) or len({i % rank for i in side}) < len(side):
            raise op_error(InvalidArgumentError, "tensordot", f"axes {list(side)} do not fit rank {rank}.", pairs)
    if len(summed[0]) != len(summed[1]):
        raise op_error(InvalidArgumentError, "tensordot", "axes name different numbers of axes.", pairs)
    return [i % ranks[0] for i in summed[0]], [i % ranks[1] for i in summed[1]]


@public
def tensordot(a: Any, b: Any, axes: Any, name: str | None = None, *, precision: str | None = None) -> Any:
    """Products of `a` and `b` summed over the given axes of each.

    Args:
        a, b: numeric tensors of one dtype.
        axes: two lists of axes, of `a` and of `b`, that go together; or a number N for the last N of `a` and the first
            N of `b`; 0 gives the outer product.
        name: has no effect.
        precision: as for `tf.matmul`.
    Returns:
        Tensor with the other axes of `a`, then those of `b`.
    Raises:
        tf.errors.InvalidArgumentError: axes do not exist or have different sizes, or dtypes differ.

    >>> import twofold as tf
    >>> a = tf.constant([[1, 2], [3, 4]])
    >>> tf.tensordot(a, a, 1).numpy().tolist()
    [[7, 10], [15, 22]]
    """
    a = tensor(a, hint=getattr(b, "dtype", None) if hasattr(b, "dims") else None)
    b = tensor(b, hint=a.dtype)
    over_a, over_b = _contracted_axes(a, b, axes)
    for i, j in zip(over_a, over_b, strict=True):
        if not dm.require_eq(a.dims[i], b.dims[j]):
            raise op_error(InvalidArgumentError, "tensordot", f"axis {i} of a has size {a.dims[i]}, axis {j} of b "
                           f"{b.dims[j]}.", [("a", a), ("b", b), ("axes", axes)])
    free_a = [i for i in range(len(a.dims)) if i not in over_a]
    free_b = [j for j in range(len(b.dims)) if j not in over_b]
    rows, columns = [a.dims[i] for i in free_a], [b.dims[j] for j in free_b]
    depth = dm.numel(a.dims[i] for i in over_a)
    left = ops.reshape(ops.transpose(a, perm=(*free_a, *over_a)), shape=(dm.numel(rows), depth))
    right = ops.reshape(ops.transpose(b, perm=(*over_b, *free_b)), shape=(depth, dm.numel(columns)))
    return ops.reshape(ops.matmul(left, right, **precision_arg("tensordot", precision)), shape=(*rows, *columns))
