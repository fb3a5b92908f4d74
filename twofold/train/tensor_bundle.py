"""Reading TensorFlow's own checkpoints: `PREFIX.index` and `PREFIX.data-00000-of-00001`.

The index is a sorted table as LevelDB writes it (blocks of entries with shared key prefixes, a footer with a magic
number; https://github.com/google/leveldb/blob/main/doc/table_format.md), whose values are the protocol buffers of
tensorflow/core/protobuf/tensor_bundle.proto; the objects come from trackable_object_graph.proto. Both are read here
from their wire format, with every size and checksum tested before it is used. Nothing is ever written in this form.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import twofold as tf
from twofold._formats.crc32c import crc32c, masked
from twofold._formats.wire import fields, varint

from .objects import Node

__all__ = ["Bundle"]

_MAGIC = 0xDB4775248B80FB57
_FOOTER = 48
_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"


@dataclass(frozen=True, slots=True)
class _Entry:
    """Where a tensor lies, or which parts it is stored as: pairs of starts and lengths, -1 for all there is."""

    number: int  # of the dtype, as DataType counts them
    dtype: tf.DType | None  # None for one that is not known here, as variants are
    shape: tuple[int, ...]
    shard: int
    offset: int
    size: int
    crc: int
    slices: tuple[tuple[tuple[int, int], ...], ...]


class Bundle:
    """A checkpoint that TensorFlow wrote.

    Args:
        prefix: the path without `.index`.
    Raises:
        NotFoundError: a file is missing.
        DataLossError: a file is damaged.
        UnimplementedError: the table is compressed, or of the other byte order.
    """

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self._entries: dict[str, _Entry] = {}
        self._parts: dict[bytes, _Entry] = {}  # of tensors that are stored in slices
        self._shards = 1
        path = Path(prefix + ".index")
        try:
            for key, value in _table(path):
                if not key:
                    self._header(value)
                elif key[0] == 0:
                    self._parts[key] = _entry(value)
                else:
                    self._entries[key.decode()] = _entry(value)
        except (ValueError, IndexError, KeyError, TypeError, struct.error, OverflowError) as e:
            raise tf.errors.DataLossError(f"{path} is damaged: {e}") from None

    def _header(self, data: bytes) -> None:
        header = dict(fields(data))
        self._shards = int(header.get(1, 1))
        if header.get(2, 0) != 0:
            raise tf.errors.UnimplementedError(f"{self.prefix}: written on a machine of the other byte order")

    def keys(self) -> list[str]:
        """The names of the tensors; the description of the objects, and dtypes that are not known, are left out."""
        return [key for key, entry in self._entries.items() if key != _GRAPH and entry.dtype is not None]

    def __contains__(self, key: str) -> bool:
        return key in self._entries and self._entries[key].dtype is not None

    def about(self, key: str) -> tuple[tf.DType, tuple[int, ...]]:
        """Dtype and shape of a tensor."""
        entry = self._entries[key]
        assert entry.dtype is not None
        return entry.dtype, entry.shape

    def tensor(self, key: str) -> np.ndarray:
        """A tensor's value.

        Raises:
            KeyError: there is none of that name.
            DataLossError: the file is shorter than the index says, or the data's checksum does not match.
            UnimplementedError: it is of a dtype that is not known here, as the state of an iterator is.
        """
        state = f"{key}_STATE"  # which the objects leave out of the keys of iterators
        entry = self._entries[state if key not in self._entries and state in self._entries else key]
        if entry.dtype is None:
            raise tf.errors.UnimplementedError(f"{self.prefix}: {key!r} is of a dtype of TensorFlow's that is not "
                                               f"known here (number {entry.number})")
        return self._joined(key, entry) if entry.slices else self._stored(key, entry)

    def _joined(self, key: str, entry: _Entry) -> np.ndarray:
        """A tensor of its slices, which must cover it, and each other nowhere."""
        damaged = tf.errors.DataLossError(f"{self.prefix}.index is damaged: the slices of {key!r}")
        places, parts = [], []
        for extents in entry.slices:
            part = self._parts.get(_slice_key(key, extents))
            if part is None or len(extents) != len(entry.shape) or part.dtype != entry.dtype or part.slices:
                raise damaged
            place = tuple(slice(start, extent if length == -1 else start + length)
                          for (start, length), extent in zip(extents, entry.shape, strict=True))
            if part.shape != tuple(p.stop - p.start for p in place) \
                    or any(p.start < 0 or p.stop > extent for p, extent in zip(place, entry.shape, strict=True)):
                raise damaged
            places.append(place)
            parts.append(part)
        if sum(math.prod(part.shape) for part in parts) != math.prod(entry.shape):
            raise damaged
        arrays = [self._stored(key, part) for part in parts]
        made, filled = np.empty(entry.shape, arrays[0].dtype), np.zeros(entry.shape, np.bool_)
        for place, array in zip(places, arrays, strict=True):
            made[place], filled[place] = array, True
        if not filled.all():
            raise damaged
        return made

    def _stored(self, key: str, entry: _Entry) -> np.ndarray:
        """The array of an entry that is stored in one piece."""
        assert entry.dtype is not None
        path = Path(f"{self.prefix}.data-{entry.shard:05d}-of-{self._shards:05d}")
        if not path.is_file():
            raise tf.errors.NotFoundError(f"{path}: no such file")
        with path.open("rb") as file:
            file.seek(entry.offset)
            data = file.read(entry.size) if entry.size <= path.stat().st_size else b""
        if len(data) != entry.size:
            raise tf.errors.DataLossError(f"{path} is damaged: it ends before {key!r} does")
        count = math.prod(entry.shape)
        if entry.dtype == tf.string:
            return _strings(path, key, data, entry, count)
        if masked(crc32c(data)) != entry.crc:
            raise tf.errors.DataLossError(f"{path} is damaged: the checksum of {key!r} does not match its data")
        if len(data) != count * entry.dtype.size:
            raise tf.errors.DataLossError(f"{path} is damaged: {key!r} has {len(data)} bytes for {entry.shape}")
        return np.frombuffer(data, entry.dtype.as_numpy_dtype).reshape(entry.shape)

    def nodes(self) -> list[Node] | None:
        """The objects, the root first; None in a checkpoint of names alone.

        Raises:
            DataLossError: their description is damaged.
        """
        if _GRAPH not in self._entries:
            return None
        try:
            nodes = [_node(data) for number, data in fields(bytes(self.tensor(_GRAPH)[()])) if number == 1]
        except (ValueError, IndexError, TypeError, struct.error, UnicodeDecodeError) as e:
            raise tf.errors.DataLossError(f"{self.prefix}.index is damaged: objects: {e}") from None
        for node in nodes:
            numbers = [*node.children.values(), *[n for of, _, at in node.slots for n in (of, at)]]
            if not all(0 <= number < len(nodes) for number in numbers):
                raise tf.errors.DataLossError(f"{self.prefix}.index is damaged: a child that is not there")
        _as_keras_3_numbers(nodes)
        for node in nodes:
            self._name_tables(node)
        return nodes

    def _name_tables(self, node: Node) -> None:
        """Name the two tensors of a table, of which an object's description has what both begin with."""
        for name, key in list(node.values.items()):
            if key not in self._entries and f"{key}-keys" in self._entries:
                del node.values[name]
                node.values.update({f"{name}-{part}": f"{key}-{part}" for part in ("keys", "values")})


# -- the table -----------------------------------------------------------------------------------------
def _table(path: Path) -> Iterator[tuple[bytes, bytes]]:
    if not path.is_file():
        raise tf.errors.NotFoundError(f"{path}: no such file")
    data = path.read_bytes()
    if len(data) < _FOOTER or struct.unpack_from("<Q", data, len(data) - 8)[0] != _MAGIC:
        raise tf.errors.DataLossError(f"{path} is no index of a TensorFlow checkpoint, or is cut off")
    at = len(data) - _FOOTER
    _, at = varint(data, at)
    _, at = varint(data, at)
    offset, at = varint(data, at)
    size, at = varint(data, at)
    for _, handle in _block(path, data, offset, size):
        begin, end = varint(handle, 0)
        length, _ = varint(handle, end)
        yield from _block(path, data, begin, length)


def _block(path: Path, data: bytes, offset: int, size: int) -> Iterator[tuple[bytes, bytes]]:
    """The keys and values of a block: each key begins with some bytes of the one before."""
    if offset + size + 5 > len(data):
        raise ValueError("a block ends after the file")
    if struct.unpack_from("<I", data, offset + size + 1)[0] != masked(crc32c(data[offset:offset + size + 1])):
        raise ValueError("the checksum of a block does not match")
    if data[offset + size] != 0:
        raise tf.errors.UnimplementedError(f"{path}: its blocks are compressed")
    block = data[offset:offset + size]
    restarts = struct.unpack_from("<I", block, size - 4)[0]
    end, at, key = size - 4 - 4 * restarts, 0, b""
    if end < 0:
        raise ValueError("a block has more restarts than room")
    while at < end:
        shared, at = varint(block, at)
        own, at = varint(block, at)
        length, at = varint(block, at)
        if shared > len(key) or at + own + length > end:
            raise ValueError("an entry ends after its block")
        key = key[:shared] + block[at:at + own]
        yield key, block[at + own:at + own + length]
        at += own + length


# -- protocol buffers ----------------------------------------------------------------------------------
def _entry(data: bytes) -> _Entry:
    known: dict[int, Any] = {1: 0, 2: b"", 3: 0, 4: 0, 5: 0, 6: 0}
    slices = []
    for number, value in fields(data):
        known[number] = value
        if number == 7:
            extents = [dict(fields(extent)) for n, extent in fields(value) if n == 1]
            slices.append(tuple((int(e.get(1, 0)), int(e.get(2, -1))) for e in extents))
    shape = tuple(int(dict(fields(dim)).get(1, 0)) for number, dim in fields(known[2]) if number == 2)
    dtype = int(known[1])
    return _Entry(dtype, _dtype(dtype), shape, known[3], known[4], known[5], known[6], tuple(slices))


def _dtype(number: int) -> tf.DType | None:
    try:
        return tf.as_dtype(number)
    except TypeError:
        return None


# The key of a slice is TensorFlow's "ordered code" of 0, the name, the rank and each extent, so that keys sort as what
# they stand for (tensorflow/core/lib/strings/ordered_code.h says how).
def _slice_key(name: str, extents: tuple[tuple[int, int], ...]) -> bytes:
    text = name.encode().replace(b"\x00", b"\x00\xff") + b"\x00\x01"
    rank = len(extents).to_bytes((len(extents).bit_length() + 7) // 8, "big")
    return b"\x00" + text + bytes([len(rank)]) + rank + b"".join(_ordered(n) for extent in extents for n in extent)


def _ordered(value: int) -> bytes:
    """A signed number, big-endian; as many first bits as it has bytes are ones, all turned where it is negative."""
    size = (value ^ value >> 63).bit_length() // 7 + 1
    header = ((1 << size) - 1) << 8 * size - size
    return (value % (1 << 8 * size) ^ header).to_bytes(size, "big")


def _strings(path: Path, key: str, data: bytes, entry: _Entry, count: int) -> np.ndarray:
    """Lengths as varints, the checksum of the lengths, then the bytes of all strings."""
    if count > len(data):
        raise tf.errors.DataLossError(f"{path} is damaged: {key!r} has no room for {count} strings")
    lengths, at = [], 0
    try:
        for _ in range(count):
            length, at = varint(data, at)
            lengths.append(length)
    except (IndexError, ValueError):
        raise tf.errors.DataLossError(f"{path} is damaged: the lengths of {key!r}") from None
    words = b"".join(struct.pack("<I" if n < 1 << 32 else "<Q", n) for n in lengths)
    crc = crc32c(words)
    stored = data[at:at + 4]
    if stored != struct.pack("<I", masked(crc)) or at + 4 + sum(lengths) != len(data) \
            or masked(crc32c(data[at:], crc)) != entry.crc:
        raise tf.errors.DataLossError(f"{path} is damaged: the checksum of {key!r} does not match its data")
    at += 4
    out = np.empty(count, object)
    for n, length in enumerate(lengths):
        out[n] = data[at:at + length]
        at += length
    return out.reshape(entry.shape)


def _node(data: bytes) -> Node:
    node = Node({}, {})
    for number, value in fields(data):
        parts = dict(fields(value)) if isinstance(value, bytes) else {}
        if number == 1:
            node.children[parts[2].decode()] = int(parts.get(1, 0))
        elif number == 2:
            node.values[parts[1].decode()] = parts[3].decode()
        elif number == 3:
            node.slots.append((int(parts.get(1, 0)), parts[2].decode(), int(parts.get(3, 0))))
    return node


def _as_keras_3_numbers(nodes: list[Node]) -> None:
    """Give the variables of optimizers the numbers of Keras 3, where the learning rate has one, too.

    Keras 2.11 to 2.15 list the count of steps, then the slots; Keras 3 has the learning rate between.
    """
    for node in nodes:
        rate, steps = node.children.get("_learning_rate"), node.children.get("_iterations")
        listed = nodes[node.children["_variables"]].children if "_variables" in node.children else {}
        if rate is None or steps is None or listed.get("0") != steps or rate in listed.values():
            continue
        moved = {str(int(name) + 1): at for name, at in listed.items() if name.isdecimal() and name != "0"}
        listed.clear()
        listed.update({"0": steps, "1": rate, **moved})
