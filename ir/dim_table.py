"""Dimensions as a table of plain values, for files that hold many of them.

The text of a dimension (`ir/dim_text.py`) is for people, and stands for itself. Where hundreds of long expressions
share their parts, as the places of a program's buffers do, a table with each part once is written and read in a
fraction of the time. Rows are lists that JSON can hold; each refers to earlier rows by their numbers:

    ["sym", name]   ["div", a, b]   ["pos", a]   ["sum", [factor, atom, ...], ...]

`a` and `b` are references: an integer is itself, a string the number of a "sum".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from .dim_expr import Atom, Dim, DimLike, from_terms, symbol, terms_of

__all__ = ["Writer", "Reader"]


# A word for its kind, then numbers of rows, references, or lists of numbers: what JSON holds
Row: TypeAlias = list[Any]


class Writer:
    """Collects the rows of a table.

    >>> from twofold.ir import dims
    >>> n, table = dims.symbol("n"), Writer()
    >>> table.reference(3), table.reference(2 * n + 1), table.rows
    (3, '1', [['sym', 'n'], ['sum', [2, 0], [1]]])
    """

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self._numbers: dict[DimLike | Atom, int] = {}

    def reference(self, d: DimLike) -> int | str:
        """The reference to a dimension; rows are added where it is new."""
        if not terms_of(d) or type(d) is int:
            return int(d)  # type: ignore[arg-type]
        number = self._numbers.get(d)
        if number is None:
            row: Row = ["sum", *[[factor, *map(self._atom, mono)] for mono, factor in terms_of(d)]]
            number = self._numbers[d] = self._added(row)
        return str(number)

    def _atom(self, atom: Atom) -> int:
        number = self._numbers.get(atom)
        if number is None:
            row: Row = ["sym", atom.name] if atom.kind == "sym" else [atom.kind, self.reference(atom.a)]
            if atom.kind == "div":
                row.append(self.reference(atom.b))
            number = self._numbers[atom] = self._added(row)
        return number

    def _added(self, row: Row) -> int:
        self.rows.append(row)
        return len(self.rows) - 1


class Reader:
    """The dimensions of a table.

    >>> str(Reader([["sym", "n"], ["sum", [2, 0], [1]]]).dim("1"))
    '2*n + 1'
    """

    def __init__(self, rows: Sequence[Row]) -> None:
        """Raises:
            ValueError, KeyError, TypeError, IndexError: these are not rows that a `Writer` makes.
        """
        self._parts: dict[int, DimLike | Atom] = {}
        for number, (kind, *rest) in enumerate(rows):
            self._parts[number] = self._read(kind, rest)

    def dim(self, reference: int | str) -> DimLike:
        """The dimension that a reference stands for.

        Raises:
            ValueError, KeyError, TypeError: it stands for none.
        """
        dim = self._parts[int(reference)] if isinstance(reference, str) else reference
        if type(dim) is not int and not isinstance(dim, Dim):
            raise TypeError(f"{reference!r} is no dimension")
        return dim

    def _read(self, kind: str, rest: Row) -> DimLike | Atom:
        if kind == "sum":
            return from_terms((tuple([self._atom(a) for a in atoms]), int(factor)) for factor, *atoms in rest)
        if kind == "sym":
            return terms_of(symbol(str(*rest)))[0][0][0]
        if kind == "div":
            a, b = map(self.dim, rest)
            return Atom("div", a=a, b=b)
        if kind != "pos":
            raise ValueError(f"{kind!r} is no row")
        (a,) = map(self.dim, rest)
        return Atom("pos", a=a)

    def _atom(self, number: int) -> Atom:
        atom = self._parts[number]
        if not isinstance(atom, Atom):
            raise TypeError(f"row {number} is no atom")
        return atom
