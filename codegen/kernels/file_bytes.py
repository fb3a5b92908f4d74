"""Loops over the bytes of files: checksums, and the filters of PNG. Each step waits for the one before, so one thread
takes the whole range.
"""

from __future__ import annotations

from twofold.ir import dtypes as dt
from twofold.ir.scalar import Scalar

from ..loop import Kernel, LoopBuilder

__all__ = ["crc32c", "unfilter"]


def crc32c() -> Kernel:
    """The remainder of CRC-32C, eight bytes a step.

    The eight tables hold what each byte leaves with none to seven bytes after it, so that the parts of a word do not
    wait for one another ("slicing by 8": Kounavis and Berry, A systematic approach to building high performance
    software-based CRC generators, 2005).

    args: addresses of the remainder, which is replaced, of the tables, of the bytes, and of the words among them; how
    many bytes lie before the words, and how many words there are. The range counts bytes.
    """
    b = LoopBuilder("crc32c")
    state, tables = b.pointer("state", dt.uint32), b.pointer("tables", dt.uint32)
    data, words = b.pointer("data", dt.uint8), b.pointer("words", dt.uint64)
    lead, count = b.integer(), b.integer()
    left = b.local(b.load(state, 0))

    def single(at: Scalar) -> None:
        place = b.and_(b.xor(left.get(), b.cast(b.load(data, at), dt.uint32)), 0xFF)
        left.set(b.xor(b.shr(left.get(), 8), b.load(tables, b.cast(place, dt.int64))))

    with b.for_(b.start, lead) as at:
        single(at)
    with b.for_(0, count) as n:
        word = b.xor(b.load(words, n), b.cast(left.get(), dt.uint64))
        remainders: list[Scalar] = []  # of the bytes so far
        for byte in range(8):
            part = b.cast(b.and_(b.shr(word, 8 * byte), 0xFF), dt.int64)
            entry = b.load(tables, part + 256 * (7 - byte))
            remainders.append(b.xor(remainders[-1], entry) if remainders else entry)
        left.set(remainders[-1])
    with b.for_(lead + count * 8, b.stop) as at:
        single(at)
    b.store(state, 0, left.get())
    return b.finish()


def unfilter(pixel: int) -> Kernel:
    """The rows of a PNG image without their filters, which are those of the W3C's recommendation (PNG, third edition,
    section 9). The range counts rows.

    args: addresses of the filtered rows, each behind the byte that tells its filter, and of the others, which lie below
    a row of zeros; the bytes of a row. Filters that do not exist change nothing.

    Args:
        pixel: its bytes, of which each row has a multiple; 1 where pixels share bytes.
    """
    b = LoopBuilder(f"png unfilter {pixel}")
    rows, out = b.pointer("rows", dt.uint8), b.pointer("out", dt.uint8)
    size = b.integer()
    with b.for_(b.start, b.stop) as y:
        first, above = y * (size + 1) + 1, y * size
        kind, here = b.load(rows, first - 1), above + size
        with b.if_(b.eq(kind, 0)), b.for_(0, size) as i:
            b.store(out, here + i, b.load(rows, first + i))
        with b.if_(b.eq(kind, 2)), b.for_(0, size) as i:
            b.store(out, here + i, b.load(rows, first + i) + b.load(out, above + i))
        for number, guess in ((1, _left), (3, _mean), (4, _nearest)):
            with b.if_(b.eq(kind, number)):
                # Of each byte of a pixel, those to the left and above the left one.
                near = [(b.local(0, dt.int32), b.local(0, dt.int32)) for _ in range(pixel)]
                with b.for_(0, size, pixel) as start:
                    for n, (left, corner) in enumerate(near):
                        i = start + n
                        up = b.cast(b.load(out, above + i), dt.int32)
                        value = b.load(rows, first + i) + b.cast(guess(b, left.get(), up, corner.get()), dt.uint8)
                        b.store(out, here + i, value)
                        left.set(b.cast(value, dt.int32))
                        corner.set(up)
    return b.finish()


def _left(b: LoopBuilder, left: Scalar, up: Scalar, corner: Scalar) -> Scalar:
    return left


def _mean(b: LoopBuilder, left: Scalar, up: Scalar, corner: Scalar) -> Scalar:
    return b.shr(left + up, 1)


def _nearest(b: LoopBuilder, left: Scalar, up: Scalar, corner: Scalar) -> Scalar:
    """Paeth's: of the left, the upper and the corner byte, in this order, the nearest to left + up - corner."""
    across, down = up - corner, left - corner
    by_left, by_up, by_corner = b.abs(across), b.abs(down), b.abs(across + down)
    other = b.select(b.le(by_up, by_corner), up, corner)
    return b.select(b.and_(b.le(by_left, by_up), b.le(by_left, by_corner)), left, other)
