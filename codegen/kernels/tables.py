"""Loops over hash tables: which row belongs to a key.

A table is an array of slots, a power of 2 of them and at least twice as many as there are keys; each is two words, the
*mark* of a key and the number of its *row*, negative where the slot is free. A key stands in the first free slot from
that on which its mark names (open addressing, linear probing); removing one moves those back that then stand too far
behind (Knuth, The Art of Computer Programming, volume 3, section 6.4, algorithm R), so that no slot is ever a grave.
The keys of rows lie in an array of their own: numbers, a few for each key, or the addresses of texts (`texts.py`). The
mark of a single number is that number, those of other keys are hashes.
"""

from __future__ import annotations

import abc

from twofold.ir import dtypes as dt
from twofold.ir.dtypes import DType
from twofold.ir.scalar import Scalar

from ..loop import Kernel, LoopBuilder, Pointer
from .texts import TextObjects

__all__ = ["GROUP", "Keys", "Numbers", "Strings", "find", "insert", "moved", "remove"]

_FACTOR = 0x9E3779B97F4A7C15  # odd, with bits in no pattern: multiples of what lies close together lie far apart
GROUP = 4  # slots that a mark names together: a cache line of them
_BLOCK = 256  # keys whose rows are found before values are read
_AHEAD = 32  # keys whose slots are asked for before they are looked at


class Keys(abc.ABC):
    """What kernels do with keys of a kind. args: those of the keys given, then the address of those of rows.

    Args:
        builder: of the kernel.
        certain: whether keys with one mark are equal.
    """

    rows: Pointer

    def __init__(self, builder: LoopBuilder, certain: bool = False) -> None:
        self.builder, self.certain = builder, certain

    @abc.abstractmethod
    def mark(self, n: Scalar) -> Scalar:
        """The mark of a given key by number, int64."""

    @abc.abstractmethod
    def equal(self, n: Scalar, row: Scalar) -> Scalar:
        """Whether a given key is that of a row that has its mark."""

    @abc.abstractmethod
    def keep(self, n: Scalar, row: Scalar) -> None:
        """Makes a given key that of a row."""


    @abc.abstractmethod
    def fetch(self, n: Scalar) -> None:
        """Asks for a given key where that does not lie beside the one before."""

    @abc.abstractmethod
    def fetch_row(self, row: Scalar) -> None:
        """Asks for what is known of the key of a row."""

    @abc.abstractmethod
    def fetch_key(self, row: Scalar) -> None:
        """Asks for the key of a row, once what is known of it was asked for."""


class Numbers(Keys):
    """Keys of numbers.

    Args:
        builder: of the kernel.
        dtype: of the numbers.
        single: whether a key is one number; else an argument behind the others says how many.
    """

    def __init__(self, builder: LoopBuilder, dtype: DType, single: bool) -> None:
        super().__init__(builder, single)
        self._given, self.rows = builder.pointer("given", dtype), builder.pointer("keys", dtype)
        self._width = None if single else builder.integer()

    def mark(self, n: Scalar) -> Scalar:
        b = self.builder
        if self._width is None:
            return b.cast(b.load(self._given, n), dt.int64)
        made = b.local(b.const(0, dt.uint64))
        with b.for_(0, self._width) as i:
            part = b.cast(b.cast(b.load(self._given, n * self._width + i), dt.int64), dt.uint64)
            made.set(_scattered(b, b.xor(made.get(), part)) + 1)
        return b.cast(made.get(), dt.int64)

    def equal(self, n: Scalar, row: Scalar) -> Scalar:
        b = self.builder
        if self._width is None:
            return b.const(True, dt.bool_)
        same = b.local(b.const(True, dt.bool_))
        with b.for_(0, self._width) as i:
            one, other = b.load(self._given, n * self._width + i), b.load(self.rows, row * self._width + i)
            same.set(b.and_(same.get(), b.eq(one, other)))
        return same.get()

    def fetch(self, n: Scalar) -> None:
        pass  # they lie beside one another

    def fetch_row(self, row: Scalar) -> None:
        pass

    def fetch_key(self, row: Scalar) -> None:
        if self._width is not None:
            self.builder.prefetch(self.rows, row * self._width)

    def keep(self, n: Scalar, row: Scalar) -> None:
        b = self.builder
        if self._width is None:
            b.store(self.rows, row, b.load(self._given, n))
        else:
            with b.for_(0, self._width) as i:
                b.store(self.rows, row * self._width + i, b.load(self._given, n * self._width + i))


class Strings(Keys):
    """Keys of texts. The keys of rows are addresses of objects.

    Args:
        builder: of the kernel.
        single: whether a key is one text; else an argument behind the others says how many.
    """

    def __init__(self, builder: LoopBuilder, single: bool) -> None:
        super().__init__(builder)
        self._texts, self.rows = TextObjects(builder), builder.pointer("keys", dt.int64)
        self._width: Scalar | int = 1 if single else builder.integer()

    def mark(self, n: Scalar) -> Scalar:
        b, made = self.builder, self.builder.local(self.builder.const(0, dt.uint64))
        with b.for_(0, self._width) as i:
            text = self._texts.text(n * self._width + i)
            made.set(b.xor(made.get(), b.cast(text.size, dt.uint64)))
            with b.if_(b.le(text.size, 8)):
                made.set(_scattered(b, b.xor(made.get(), text.short())))
            with b.else_():
                with b.for_(0, text.size - 8, 8) as at:
                    made.set(_scattered(b, b.xor(made.get(), text.word(at))))
                made.set(_scattered(b, b.xor(made.get(), text.word(text.size - 8))))
        return b.cast(made.get(), dt.int64)

    def equal(self, n: Scalar, row: Scalar) -> Scalar:
        b, same = self.builder, self.builder.local(self.builder.const(True, dt.bool_))
        with b.for_(0, self._width) as i:
            one = self._texts.text(n * self._width + i)
            other = self._texts.at(b.load(self.rows, row * self._width + i))
            same.set(b.and_(same.get(), b.eq(one.size, other.size)))
            with b.if_(b.and_(same.get(), b.le(one.size, 8))):
                same.set(b.eq(one.short(), other.short()))
            with b.if_(b.and_(same.get(), b.gt(one.size, 8))):
                with b.for_(0, one.size - 8, 8) as at:
                    same.set(b.eq(one.word(at), other.word(at)))
                    b.break_(b.not_(same.get()))
                same.set(b.and_(same.get(), b.eq(one.word(one.size - 8), other.word(other.size - 8))))
        return same.get()

    def keep(self, n: Scalar, row: Scalar) -> None:
        b = self.builder
        with b.for_(0, self._width) as i:
            b.store(self.rows, row * self._width + i, b.load(self._texts.objects, n * self._width + i))

    def fetch(self, n: Scalar) -> None:
        self._texts.fetch(self.builder.load(self._texts.objects, n * self._width))

    def fetch_row(self, row: Scalar) -> None:
        self.builder.prefetch(self.rows, row * self._width)

    def fetch_key(self, row: Scalar) -> None:
        self._texts.fetch(self.builder.load(self.rows, row * self._width))


def _scattered(b: LoopBuilder, value: Scalar) -> Scalar:
    """A uint64 number whose high bits depend on all bits of another."""
    return b.xor(value, b.shr(value, b.const(32, dt.uint64))) * b.const(_FACTOR, dt.uint64)


class _Slots:
    """The slots of a table. args: their address, their number less 1, and by how much a hash is shifted to name one."""

    def __init__(self, builder: LoopBuilder, name: str = "slots") -> None:
        self.builder, self._slots = builder, builder.pointer(name, dt.int64)
        self.last, self._shift = builder.integer(), builder.integer()

    def home(self, mark: Scalar) -> Scalar:
        """The slot that a mark names."""
        b = self.builder
        return b.shl(b.cast(b.shr(_scattered(b, b.cast(mark, dt.uint64)), b.cast(self._shift, dt.uint64)), dt.int64), 2)

    def _word(self, at: Scalar) -> Scalar:
        """Where the mark of a slot lies; behind the marks of its group, the numbers of rows."""
        return at + self.builder.and_(at, -GROUP)

    def mark(self, at: Scalar) -> Scalar:
        return self.builder.load(self._slots, self._word(at))

    def row(self, at: Scalar) -> Scalar:
        return self.builder.load(self._slots, self._word(at) + GROUP) - 1

    def put(self, at: Scalar, mark: Scalar, row: Scalar) -> None:
        self.builder.store(self._slots, self._word(at), mark)
        self.builder.store(self._slots, self._word(at) + GROUP, row + 1)

    def free(self, at: Scalar) -> None:
        self.builder.store(self._slots, self._word(at) + GROUP, self.builder.const(0, dt.int64))

    def after(self, at: Scalar) -> Scalar:
        return self.builder.and_(at + 1, self.last)

    def fetch(self, mark: Scalar) -> None:
        """Asks for the slot that a mark names."""
        self.builder.prefetch(self._slots, self._word(self.home(mark)))

    def row_of(self, mark: Scalar) -> Scalar:
        """The first row with a mark, negative where there is none."""
        b, at = self.builder, self.builder.local(self.home(mark))
        with b.for_(0, self.last + 1):
            b.break_(b.or_(b.lt(self.row(at.get()), 0), b.eq(self.mark(at.get()), mark)))
            at.set(self.after(at.get()))
        return self.row(at.get())

    def row_together(self, mark: Scalar) -> Scalar:
        """The same. All slots of a group are looked at together, and no condition asks which of them tells: to guess
        that wrong takes a processor longer."""
        b = self.builder
        at, number, sought = b.local(self.home(mark)), b.local(b.const(0, dt.int64)), b.splat(mark, GROUP)
        none = b.splat(b.const(0, dt.int64), GROUP)
        with b.for_(0, self.last + 1, GROUP):
            word = self._word(at.get())
            numbers = b.load(self._slots, word + GROUP, GROUP)
            alike = b.select(b.eq(b.load(self._slots, word, GROUP), sought), numbers, none)
            for lanes in ((2, 3, 0, 1), (1, 0, 3, 2)):
                alike = b.or_(alike, b.shuffle(alike, alike, lanes))
            number.set(b.extract(alike, 0))
            is_free = b.shr(b.extract(numbers, GROUP - 1) - 1, 63)  # of the last, which is free if any is
            b.break_(b.ne(b.or_(number.get(), is_free), 0))
            at.set(b.and_(at.get() + GROUP, self.last))
        return number.get() - 1

    def of(self, keys: Keys, n: Scalar, mark: Scalar) -> Scalar:
        """The slot of a key, or the free one in which it would stand."""
        b = self.builder
        at = b.local(self.home(mark))
        with b.for_(0, self.last + 1):
            row, alike = self.row(at.get()), b.eq(self.mark(at.get()), mark)
            done = b.local(b.or_(b.lt(row, 0), alike))
            if not keys.certain:
                with b.if_(b.and_(b.ge(row, 0), alike)):
                    done.set(keys.equal(n, row))
            b.break_(done.get())
            at.set(self.after(at.get()))
        return at.get()


def _keys(b: LoopBuilder, dtype: DType, single: bool) -> Keys:
    return Strings(b, single) if dtype is dt.string else Numbers(b, dtype, single)


def _named(what: str, dtype: DType, single: bool) -> LoopBuilder:
    return LoopBuilder(f"table {what} {dtype.short}{'' if single else ' several'}")


def find(dtype: DType, single: bool, with_vectors: bool, unit: DType | None = None, one_unit: bool = True,
         one_missing: bool = True) -> Kernel:
    """The values of keys, or their rows.

    args: the address of the values that are found; those of the slots and the keys; and the addresses of the values of
    rows and of those that missing keys have, and how many units a value is.

    Args:
        dtype: of the keys.
        single: whether a key is one number, or a text.
        with_vectors: whether the kernel may have vectors.
        unit: in which values are copied. Without one, the rows are found (int64), -1 for missing keys, and there are no
            arguments behind those of the keys.
        one_unit: whether a value is one unit.
        one_missing: whether all missing keys have the same value.
    """
    what = "row" if unit is None else f"{unit.short}{'' if one_unit else ' values'}{'' if one_missing else ' or'}"
    b = _named(f"find {what}", dtype, single)
    out, slots, keys = b.pointer("out", unit or dt.int64), _Slots(b), _keys(b, dtype, single)
    marks, rows = b.scratch(dt.int64, _BLOCK), b.scratch(dt.int64, _BLOCK)
    if unit is not None:
        values, missing = b.pointer("values", unit), b.pointer("missing", unit)
        width = b.integer()
        count = 1 if one_unit else width
    with b.for_(b.start, b.stop, _BLOCK) as first:
        size = b.minimum(b.stop - first, _BLOCK)
        with b.for_(0, size) as i:
            keys.fetch(b.minimum(first + i + _AHEAD, b.stop - 1))
            mark = keys.mark(first + i)
            slots.fetch(mark)
            b.store(marks, i, mark)
        with b.for_(0, size) as i:
            mark = b.load(marks, i)
            row = slots.row_together(mark) if with_vectors else slots.row_of(mark)
            b.store(rows, i, row)
            keys.fetch_row(b.maximum(row, 0))
            if unit is not None:
                b.prefetch(values, b.maximum(row, 0) * count)
        if not keys.certain:
            _verify(b, slots, keys, first, size, marks, rows)
        if unit is None:
            with b.for_(0, size) as i:
                b.store(out, first + i, b.load(rows, i))
        else:
            with b.for_(0, size) as i:
                row, to = b.load(rows, i), first + i
                gone = b.shr(row, 63)  # 0, or all ones where the key is missing
                mask, there = b.cast(gone, unit), b.and_(row, b.not_(gone))
                with b.for_(0, count) as k:
                    value = b.load(values, there * count + k)
                    other = b.load(missing, k if one_missing else to * count + k)
                    b.store(out, to * count + k, b.xor(value, b.and_(b.xor(value, other), mask)))
    return b.finish()


def _verify(b: LoopBuilder, slots: _Slots, keys: Keys, first: Scalar, size: Scalar, marks: Pointer,
            rows: Pointer) -> None:
    """Looks again where a row has the mark of a key, but not the key."""
    with b.for_(0, size) as i:
        keys.fetch_key(b.maximum(b.load(rows, i), 0))
    with b.for_(0, size) as i:
        row, n = b.load(rows, i), first + i
        with b.if_(b.ge(row, 0)), b.if_(b.not_(keys.equal(n, row))):
            b.store(rows, i, slots.row(slots.of(keys, n, b.load(marks, i))))


def insert(dtype: DType, single: bool) -> Kernel:
    """A row for each key: its own, or the next one. It ends before the first key for which there is no room.

    args: addresses of the rows (int64) and of two numbers, how many keys have got one and how many rows there are; how
    many there is room for; those of the slots and the keys. One thread takes the whole range.
    """
    b = _named("insert", dtype, single)
    out, state, most = b.pointer("out", dt.int64), b.pointer("state", dt.int64), b.integer()
    slots, keys = _Slots(b), _keys(b, dtype, single)
    with b.for_(b.start + b.load(state, 0), b.stop) as n:
        if keys.certain:
            slots.fetch(keys.mark(b.minimum(n + _AHEAD, b.stop - 1)))
        mark = keys.mark(n)
        at = slots.of(keys, n, mark)
        row, count = b.local(slots.row(at)), b.load(state, 1)
        is_new = b.lt(row.get(), 0)
        b.break_(b.and_(is_new, b.ge(count, most)))
        with b.if_(is_new):
            row.set(count)
            slots.put(at, mark, count)
            keys.keep(n, count)
            b.store(state, 1, count + 1)
        b.store(out, n, row.get())
        b.store(state, 0, n + 1)
    return b.finish()


def remove(dtype: DType, single: bool) -> Kernel:
    """Forgets keys; gives the row that each had, -1 for those that were missing.

    args: the address of the rows (int64); those of the slots and the keys. One thread takes the whole range.
    """
    b = _named("remove", dtype, single)
    out = b.pointer("out", dt.int64)
    slots, keys = _Slots(b), _keys(b, dtype, single)
    with b.for_(b.start, b.stop) as n:
        at = slots.of(keys, n, keys.mark(n))
        row = slots.row(at)
        b.store(out, n, row)
        with b.if_(b.ge(row, 0)):
            hole, other = b.local(at), b.local(at)
            with b.for_(0, slots.last + 1):
                other.set(slots.after(other.get()))
                here = other.get()
                mark, its_row = slots.mark(here), slots.row(here)
                b.break_(b.lt(its_row, 0))
                behind = b.and_(here - slots.home(mark), slots.last)  # how far it stands behind the slot it names
                with b.if_(b.ge(behind, b.and_(here - hole.get(), slots.last))):
                    slots.put(hole.get(), mark, its_row)
                    hole.set(here)
            slots.free(hole.get())
    return b.finish()


def moved() -> Kernel:
    """Puts the keys of a table into another one that is empty.

    args: those of the slots of the other, and of its own; the address of the new number of each row. The range counts
    its own slots; one thread takes it.
    """
    b = LoopBuilder("table moved")
    slots, before, numbers = _Slots(b), _Slots(b, "before"), b.pointer("numbers", dt.int64)
    with b.for_(b.start, b.stop) as n:
        mark, row = before.mark(n), before.row(n)
        with b.if_(b.ge(row, 0)):
            at = b.local(slots.home(mark))
            with b.for_(0, slots.last + 1):
                b.break_(b.lt(slots.row(at.get()), 0))
                at.set(slots.after(at.get()))
            slots.put(at.get(), mark, b.load(numbers, row))
    return b.finish()
