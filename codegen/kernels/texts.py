"""Loops over texts: their hashes, and the classes of the objects that they are.

A text is an object, whose bytes are read where they lie: pointers to the address 0 lead to all memory. Numbers of eight
bytes are made of single bytes, since texts lie anywhere; LLVM makes one load of them. The hashes are TensorFlow's:
FarmHash's 64-bit fingerprint, SipHash-2-4 with a key, MurmurHash64A.
"""

from __future__ import annotations

from collections.abc import Callable

from twofold.ir import dtypes as dt
from twofold.ir.scalar import Scalar

from ..loop import Cell, Kernel, LoopBuilder, Pointer

__all__ = ["Text", "TextObjects", "classes", "farm", "murmur", "sip"]

_K0, _K1, _K2 = 0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F
_MURMUR = 0xC6A4A7935BD1E995


class TextObjects:
    """The texts that a kernel takes: objects of one class, each with its length and its bytes at fixed places.

    args: addresses of the objects' addresses, and twice that of memory, 0; the class, as a word of each object has it;
    the words from an object's start to its class and to its length, and the bytes to its text.

    Args:
        builder: of the kernel.
    """

    def __init__(self, builder: LoopBuilder) -> None:
        self._builder = builder
        self.objects = builder.pointer("objects", dt.int64)
        self._bytes, self._words = builder.pointer("bytes", dt.uint8), builder.pointer("words", dt.int64)
        self._class, self._to_class, self._to_size, self._to_text = (builder.integer() for _ in range(4))

    def text(self, n: Scalar) -> Text:
        """The text of an object by number. One of another class ends the kernel with a status, and is read as no text.
        """
        b, there = self._builder, self._builder.load(self.objects, n)
        is_text = b.eq(b.load(self._words, b.shr(there, 3) + self._to_class), self._class)
        b.check(is_text, "class")
        return self.at(there, is_text)

    def fetch(self, there: Scalar) -> None:
        """Asks for the object at an address."""
        self._builder.prefetch(self._bytes, there)

    def at(self, there: Scalar, is_text: Scalar | None = None) -> Text:
        """The text of an object at an address."""
        b = self._builder
        size = b.load(self._words, b.shr(there, 3) + self._to_size)
        return Text(b, self._bytes, there + self._to_text, size if is_text is None else b.select(is_text, size, 0))


class Text:
    """A text in a kernel: its length, and words of its bytes.

    Args:
        builder: of the kernel.
        memory: bytes from the address 0 on.
        start, size: address and length of the text.
    """

    def __init__(self, builder: LoopBuilder, memory: Pointer, start: Scalar, size: Scalar) -> None:
        self.builder, self.memory, self.start, self.size = builder, memory, start, size

    def byte(self, at: Scalar | int) -> Scalar:
        """A byte, as uint64."""
        return self.builder.cast(self.builder.load(self.memory, self.start + at), dt.uint64)

    def word(self, at: Scalar | int, size: int = 8) -> Scalar:
        """A number of `size` bytes, the first one lowest."""
        b = self.builder
        total = self.byte(at)
        for n in range(1, size):
            total = b.or_(total, b.shl(self.byte(at + n), b.const(8 * n, dt.uint64)))
        return total

    def short(self) -> Scalar:
        """A number of all bytes of a text of at most 8, another one for each text of its length."""
        b, made = self.builder, self.builder.local(self.builder.const(0, dt.uint64))
        with b.if_(b.ge(self.size, 4)):
            made.set(b.or_(self.word(0, 4), b.shl(self.word(self.size - 4, 4), _u64(b, 32))))
        with b.else_(), b.if_(b.gt(self.size, 0)):
            first, middle, last = self.byte(0), self.byte(b.shr(self.size, 1)), self.byte(self.size - 1)
            made.set(b.or_(first, b.or_(b.shl(middle, _u64(b, 8)), b.shl(last, _u64(b, 16)))))
        return made.get()

    def rest(self, at: Scalar, most: int = 7) -> Scalar:
        """The number of the bytes from `at` to the end, at most `most`."""
        b = self.builder
        total = b.local(b.const(0, dt.uint64))
        for n in range(most):
            with b.if_(b.lt(at + n, self.size)):
                total.set(b.or_(total.get(), b.shl(self.byte(at + n), b.const(8 * n, dt.uint64))))
        return total.get()


def classes() -> Kernel:
    """Reads nothing but the classes of objects, and ends with a status where one is another.

    args: those of `TextObjects`.
    """
    b = LoopBuilder("text classes")
    texts = TextObjects(b)
    with b.for_(b.start, b.stop) as n:
        texts.text(n)
    return b.finish()


def _hashing(name: str, words: int, hashed: Callable[[LoopBuilder, Text, list[Scalar], Cell], None]) -> Kernel:
    """A kernel that hashes texts.

    args: the address of the hashes (uint64); the arguments of `TextObjects`; how many buckets there are, 0 for hashes
    themselves; and the words that `hashed` takes.

    Args:
        hashed: puts the hash of a text into a cell.
    """
    b = LoopBuilder(name)
    out, texts = b.pointer("out", dt.uint64), TextObjects(b)
    buckets = b.cast(b.integer(), dt.uint64)
    given = [b.cast(b.integer(), dt.uint64) for _ in range(words)]
    with b.for_(b.start, b.stop) as n:
        made = b.local(b.const(0, dt.uint64))
        hashed(b, texts.text(n), given, made)
        b.store(out, n, made.get())
        with b.if_(b.ne(buckets, 0)):
            b.store(out, n, b.irem(made.get(), buckets))
    return b.finish()


def _u64(b: LoopBuilder, value: int) -> Scalar:
    return b.const(value & (1 << 64) - 1, dt.uint64)


def _right(b: LoopBuilder, value: Scalar, by: int) -> Scalar:
    """Rotated to the right."""
    return b.or_(b.shr(value, _u64(b, by)), b.shl(value, _u64(b, 64 - by)))


def _mixed(b: LoopBuilder, value: Scalar) -> Scalar:
    """A number with its high bits in its low ones, too."""
    return b.xor(value, b.shr(value, _u64(b, 47)))


# -- FarmHash -----------------------------------------------------------------------------------------
def farm() -> Kernel:
    """The 64-bit fingerprint of FarmHash (Pike & Alakuijala 2014), `Fingerprint64`; see `_hashing`."""
    def hashed(b: LoopBuilder, text: Text, given: list[Scalar], made: Cell) -> None:
        size = text.size
        factor = b.cast(size * 2, dt.uint64) + _u64(b, _K2)
        with b.if_(b.le(size, 16)):
            _farm_short(b, text, factor, made)
        with b.else_(), b.if_(b.le(size, 32)):
            made.set(_farm_32(b, text, factor))
        with b.if_(b.and_(b.gt(size, 32), b.le(size, 64))):
            made.set(_farm_64(b, text, factor))
        with b.if_(b.gt(size, 64)):
            made.set(_farm_long(b, text))
    return _hashing("farm hash", 0, hashed)


def _joined(b: LoopBuilder, u: Scalar, v: Scalar, factor: Scalar) -> Scalar:
    """Two numbers as one."""
    first = _mixed(b, b.xor(u, v) * factor)
    return _mixed(b, b.xor(v, first) * factor) * factor


def _farm_short(b: LoopBuilder, text: Text, factor: Scalar, made: Cell) -> None:
    size = text.size
    with b.if_(b.ge(size, 8)):
        first, last = text.word(0) + _u64(b, _K2), text.word(size - 8)
        made.set(_joined(b, _right(b, last, 37) * factor + first, (_right(b, first, 25) + last) * factor, factor))
    with b.else_(), b.if_(b.ge(size, 4)):
        length = b.cast(size, dt.uint64)
        made.set(_joined(b, length + b.shl(text.word(0, 4), _u64(b, 3)), text.word(size - 4, 4), factor))
    with b.if_(b.lt(size, 4)):
        made.set(_u64(b, _K2))
        with b.if_(b.gt(size, 0)):
            y = text.byte(0) + b.shl(text.byte(b.shr(size, 1)), _u64(b, 8))
            z = b.cast(size, dt.uint64) + b.shl(text.byte(size - 1), _u64(b, 2))
            made.set(_mixed(b, b.xor(y * _u64(b, _K2), z * _u64(b, _K0))) * _u64(b, _K2))


def _farm_32(b: LoopBuilder, text: Text, factor: Scalar) -> Scalar:
    first, second, third, fourth = _ends(b, text, _K1, factor)
    return _joined(b, _right(b, first + second, 43) + _right(b, third, 30) + fourth,
                   first + _right(b, second + _u64(b, _K2), 18) + third, factor)


def _ends(b: LoopBuilder, text: Text, of_first: int, factor: Scalar) -> tuple[Scalar, Scalar, Scalar, Scalar]:
    """The first two words of a text, and the last two, the last one first."""
    return (text.word(0) * _u64(b, of_first), text.word(8), text.word(text.size - 8) * factor,
            text.word(text.size - 16) * _u64(b, _K2))


def _farm_64(b: LoopBuilder, text: Text, factor: Scalar) -> Scalar:
    first, second, third, fourth = _ends(b, text, _K2, factor)
    y = _right(b, first + second, 43) + _right(b, third, 30) + fourth
    z = _joined(b, y, first + _right(b, second + _u64(b, _K2), 18) + third, factor)
    e, f = text.word(16) * factor, text.word(24)
    g, h = (y + text.word(text.size - 32)) * factor, (z + text.word(text.size - 24)) * factor
    return _joined(b, _right(b, e + f, 43) + _right(b, g, 30) + h, e + _right(b, f + first, 18) + g, factor)


def _farm_long(b: LoopBuilder, text: Text) -> Scalar:
    size, all_ones = text.size, (1 << 64) - 1
    second = 81 * _K1 + 113 & all_ones
    third = second * _K2 + 113 & all_ones
    third = (third ^ third >> 47) * _K2
    begin = [text.word(0) + _u64(b, 81 * _K2), *(_u64(b, n) for n in (second, third, 0, 0, 0, 0))]
    state = [b.local(value) for value in begin]  # x, y, z, v0, v1, w0, w1
    last = size - 1
    with b.for_(0, b.shl(b.shr(last, 6), 6), 64) as at:
        for cell, value in zip(state, _farm_round(b, text, at, [c.get() for c in state], _u64(b, _K1), 1), strict=True):
            cell.set(value)
    x, y, z, v0, v1, w0, w1 = (cell.get() for cell in state)
    factor = b.shl(b.and_(z, _u64(b, 0xFF)), _u64(b, 1)) + _u64(b, _K1)
    w0 = w0 + b.cast(b.and_(last, 63), dt.uint64)
    v0 = v0 + w0
    w0 = w0 + v0
    x, y, z, v0, v1, w0, w1 = _farm_round(b, text, size - 64, [x, y, z, v0, v1, w0, w1], factor, 9)
    return _joined(b, _joined(b, v0, w0, factor) + _mixed(b, y) * _u64(b, _K0) + z, _joined(b, v1, w1, factor) + x,
                   factor)


def _farm_round(b: LoopBuilder, text: Text, at: Scalar, state: list[Scalar], factor: Scalar,
                times: int) -> list[Scalar]:
    """64 bytes more."""
    x, y, z, v0, v1, w0, w1 = state
    x = _right(b, x + y + v0 + text.word(at + 8), 37) * factor
    y = _right(b, y + v1 + text.word(at + 48), 42) * factor
    x = b.xor(x, w1 * _u64(b, times))
    y = y + v0 * _u64(b, times) + text.word(at + 40)
    z = _right(b, z + w0, 33) * factor
    v0, v1 = _weak(b, text, at, v1 * factor, x + w0)
    w0, w1 = _weak(b, text, at + 32, z + w1, y + text.word(at + 16))
    return [z, y, x, v0, v1, w0, w1]


def _weak(b: LoopBuilder, text: Text, at: Scalar, first: Scalar, second: Scalar) -> tuple[Scalar, Scalar]:
    """32 bytes and two numbers as two numbers."""
    words = [text.word(at + 8 * n) for n in range(4)]
    first = first + words[0]
    second = _right(b, second + first + words[3], 21)
    total = first + words[1] + words[2]
    return total + words[3], second + _right(b, total, 44) + first


# -- SipHash ------------------------------------------------------------------------------------------
def sip() -> Kernel:
    """SipHash-2-4 (Aumasson & Bernstein 2012); see `_hashing`. The words are the two of the key."""
    def hashed(b: LoopBuilder, text: Text, key: list[Scalar], made: Cell) -> None:
        state = [b.local(b.xor(part, _u64(b, text))) for part, text in zip(
            (key[0], key[1], key[0], key[1]),
            (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573), strict=True)]
        whole = b.shl(b.shr(text.size, 3), 3)

        def take(word: Scalar) -> None:
            state[3].set(b.xor(state[3].get(), word))
            _sip_rounds(b, state, 2)
            state[0].set(b.xor(state[0].get(), word))
        with b.for_(0, whole, 8) as at:
            take(text.word(at))
        take(b.or_(text.rest(whole), b.shl(b.cast(text.size, dt.uint64), _u64(b, 56))))
        state[2].set(b.xor(state[2].get(), _u64(b, 0xFF)))
        _sip_rounds(b, state, 4)
        made.set(b.xor(b.xor(state[0].get(), state[1].get()), b.xor(state[2].get(), state[3].get())))
    return _hashing("sip hash", 2, hashed)


def _sip_rounds(b: LoopBuilder, state: list[Cell], rounds: int) -> None:
    v0, v1, v2, v3 = (cell.get() for cell in state)
    for _ in range(rounds):
        v0, v2 = v0 + v1, v2 + v3
        v1, v3 = b.xor(_right(b, v1, 51), v0), b.xor(_right(b, v3, 48), v2)
        v0 = _right(b, v0, 32)
        v2, v0 = v2 + v1, v0 + v3
        v1, v3 = b.xor(_right(b, v1, 47), v2), b.xor(_right(b, v3, 43), v0)
        v2 = _right(b, v2, 32)
    for cell, value in zip(state, (v0, v1, v2, v3), strict=True):
        cell.set(value)


# -- MurmurHash ---------------------------------------------------------------------------------------
def murmur() -> Kernel:
    """MurmurHash64A (Appleby 2008); see `_hashing`. The word is its seed."""
    def hashed(b: LoopBuilder, text: Text, given: list[Scalar], made: Cell) -> None:
        factor = _u64(b, _MURMUR)
        made.set(b.xor(given[0], b.cast(text.size, dt.uint64) * factor))
        whole = b.shl(b.shr(text.size, 3), 3)
        with b.for_(0, whole, 8) as at:
            made.set(b.xor(made.get(), _mixed(b, text.word(at) * factor) * factor) * factor)
        with b.if_(b.lt(whole, text.size)):
            made.set(b.xor(made.get(), text.rest(whole)) * factor)
        made.set(_mixed(b, _mixed(b, made.get()) * factor))
    return _hashing("murmur hash", 1, hashed)
