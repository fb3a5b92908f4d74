"""Plain values from files that hold Python objects: lists, dicts, numbers, strings and arrays, and nothing else.

Some of the published data sets are in the format of Python's object serialisation: the batches of CIFAR, and the lists
of words of IMDB and Reuters, which are arrays of objects in `.npz` files. That format is a program for a small stack
machine, which can name any function and have it called. The reader here is such a machine without the calls: the names
that arrays and byte strings need stand for what is done here, and any other name is an error. The instructions are
those that Python's `pickletools` documents.
"""

from __future__ import annotations

import io
import re
import struct
import zipfile
from collections.abc import Callable
from os import PathLike
from typing import Any

import numpy as np

__all__ = ["load_npz", "loads"]


def load_npz(path: str | PathLike[str]) -> dict[str, np.ndarray]:
    """The arrays of a `.npz` file by name; arrays of objects hold plain values.

    Raises:
        ValueError: the file is damaged, or holds something else.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            return {name.removesuffix(".npy"): _load_npy(archive.read(name))
                    for name in archive.namelist() if name.endswith(".npy")}
    except zipfile.BadZipFile as error:
        raise ValueError(f"{path} is no .npz file: {error}") from None


def _load_npy(data: bytes) -> np.ndarray:
    file = io.BytesIO(data)
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    dtype = read(file)[2]
    if not dtype.hasobject:
        return np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)
    found = loads(data[file.tell():])
    if not isinstance(found, np.ndarray):
        raise ValueError("The file has no array where one is expected.")
    return found


def loads(data: bytes) -> Any:
    """The value that serialised bytes hold.

    Raises:
        ValueError: they are damaged, or would need more than lists, dicts, numbers, strings and arrays.
    """
    return _Reader(data).read()


class _Name:
    """A function or class that a file names, of those that are known here."""

    def __init__(self, module: str, name: str):
        if (module, name) not in _KNOWN:
            raise ValueError(f"The file names {module}.{name}, which no data set needs: it is damaged, or not what it "
                             "seems. Nothing of it was run.")
        self.what = name


_KNOWN = {("numpy", "ndarray"), ("numpy", "dtype"), ("numpy.core.multiarray", "_reconstruct"),
          ("numpy._core.multiarray", "_reconstruct"), ("_codecs", "encode")}


class _Dtype:
    """An element type that is being described."""

    def __init__(self, code: Any):
        self.code = _text(code)
        if not re.fullmatch(r"[|<>=]?(?:[biufcSU]\d+|O8?|b1)", self.code):
            raise ValueError(f"The file has an array of the element type {self.code!r}.")

    def set_state(self, state: Any) -> None:
        if not isinstance(state, tuple) or len(state) < 5 or any(part is not None for part in state[2:5]):
            raise ValueError("The file has an array of structures.")
        order = _text(state[1])
        if order in "<>":
            self.code = order + self.code.lstrip("|<>=")

    def dtype(self) -> np.dtype[Any]:
        return np.dtype(object) if "O" in self.code else np.dtype(self.code)


class _Array:
    """An array that is being made."""

    def __init__(self) -> None:
        self.value: np.ndarray | None = None

    def set_state(self, state: Any) -> None:
        if not isinstance(state, tuple) or len(state) != 5 or not isinstance(state[2], _Dtype):
            raise ValueError("The file has an array without shape, type and values.")
        _, shape, made, by_columns, values = state
        dtype = made.dtype()
        count = int(np.prod(shape, dtype=np.int64)) if shape else 1
        order = "F" if by_columns else "C"
        if dtype.hasobject:
            if not isinstance(values, list) or len(values) != count:
                raise ValueError("The file has an array of objects that is not full.")
            flat = np.empty(count, object)
            for n, value in enumerate(values):
                flat[n] = _plain(value, {})
        else:
            if isinstance(values, str):
                values = values.encode("latin-1")
            if not isinstance(values, bytes) or len(values) != count * dtype.itemsize:
                raise ValueError("The file has an array whose values do not fill its shape.")
            flat = np.frombuffer(values, dtype)
        self.value = flat.reshape(shape, order=order).copy(order)  # type: ignore[call-overload]


def _text(value: Any) -> str:
    return value.decode("ascii") if isinstance(value, bytes) else str(value)


_MARK = object()
_INTS = re.compile(rb"(?:K.|M..|J....)+", re.DOTALL)
_INT = re.compile(rb"K(.)|M(..)|J(....)", re.DOTALL)


class _Reader:
    """The stack machine."""

    def __init__(self, data: bytes):
        self.data, self.at = data, 0
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}

    def read(self) -> Any:
        try:
            while (code := self.data[self.at]) != 0x2E:
                if code in b"KMJ":
                    self._ints()
                    continue
                do = _DO.get(code)
                if do is None:
                    raise ValueError(f"The file has the instruction {code:#04x}, which plain values do not need.")
                self.at += 1
                do(self)
            return _plain(self.stack[-1], {})
        except (IndexError, KeyError, struct.error, TypeError, UnicodeDecodeError, RecursionError) as error:
            raise ValueError(f"The file is damaged at byte {self.at}: {error}") from None

    # -- reading operands
    def take(self, n: int) -> bytes:
        if n < 0 or self.at + n > len(self.data):
            raise ValueError(f"The file ends within a value, at byte {self.at}.")
        self.at += n
        return self.data[self.at - n : self.at]

    def number(self, form: str) -> int:
        return struct.unpack("<" + form, self.take(struct.calcsize("<" + form)))[0]

    def line(self) -> bytes:
        end = self.data.index(b"\n", self.at)
        found = self.data[self.at : end]
        self.at = end + 1
        return found

    def _ints(self) -> None:
        """A run of small integers: nearly all there is in lists of words."""
        run = _INTS.match(self.data, self.at)
        if run is None:
            raise ValueError(f"The file ends within a number, at byte {self.at}.")
        self.at = run.end()
        push = self.stack.append
        for byte, word, long in _INT.findall(run.group()):
            push(byte[0] if byte else word[0] | word[1] << 8 if word else int.from_bytes(long, "little", signed=True))

    # -- the stack
    def push(self, value: Any) -> None:
        self.stack.append(value)

    def pop(self) -> Any:
        return self.stack.pop()

    def since_mark(self) -> list[Any]:
        for n in range(len(self.stack) - 1, -1, -1):
            if self.stack[n] is _MARK:
                found = self.stack[n + 1 :]
                del self.stack[n:]
                return found
        raise ValueError("The file is damaged: a group has no beginning.")

    def remember(self, key: int) -> None:
        self.memo[key] = self.stack[-1]

    # -- what takes more than a line
    def extend(self, values: list[Any]) -> None:
        if type(self.stack[-1]) is not list:
            raise ValueError("The file adds to something that is no list.")
        self.stack[-1].extend(values)

    def update(self, values: list[Any]) -> None:
        if type(self.stack[-1]) is not dict:
            raise ValueError("The file adds to something that is no dict.")
        for n in range(0, len(values), 2):
            self.stack[-1][values[n]] = values[n + 1]

    def call(self) -> None:
        arguments, function = self.pop(), self.pop()
        if not isinstance(function, _Name) or not isinstance(arguments, tuple):
            raise ValueError("The file calls something that is no function.")
        if function.what == "_reconstruct":
            self.push(_Array())
        elif function.what == "dtype":
            self.push(_Dtype(arguments[0]))
        elif function.what == "encode":
            self.push(str(arguments[0]).encode("latin-1"))
        else:
            raise ValueError(f"The file calls {function.what}.")

    def build(self) -> None:
        state = self.pop()
        if not isinstance(self.stack[-1], (_Array, _Dtype)):
            raise ValueError("The file sets attributes of something that is no array.")
        self.stack[-1].set_state(state)

    def name(self, module: Any, name: Any) -> None:
        self.push(_Name(_text(module), _text(name)))

    def stack_name(self) -> None:
        name, module = self.pop(), self.pop()
        self.name(module, name)


_SIMPLE = frozenset({int, float, bool, str, bytes, type(None)})


def _plain(value: Any, done: dict[int, tuple[Any, Any]]) -> Any:
    """A value with the arrays that were made in it; lists and dicts are changed where they are.

    Args:
        value: what was read.
        done: values seen already by their ids, and what became of them; so that shared ones are done once.
    """
    if isinstance(value, _Array):
        if value.value is None:
            raise ValueError("The file has an array without values.")
        return value.value
    if isinstance(value, (_Dtype, _Name)) or value is _MARK:
        raise ValueError("The file has something that is no plain value.")
    if not isinstance(value, (list, tuple, dict)):
        return value
    if id(value) in done:
        return done[id(value)][1]
    done[id(value)] = (value, value)
    if _SIMPLE.issuperset(map(type, value.values() if isinstance(value, dict) else value)):
        return value
    if isinstance(value, tuple):
        done[id(value)] = (value, tuple(_plain(item, done) for item in value))
    elif isinstance(value, list):
        value[:] = [_plain(item, done) for item in value]
    else:
        value.update({key: _plain(item, done) for key, item in value.items()})
    return done[id(value)][1]


def _decimal(line: bytes) -> int | bool:
    return line == b"01" if line in (b"00", b"01") else int(line)


def _pairs(values: list[Any]) -> dict[Any, Any]:
    return dict(zip(values[::2], values[1::2], strict=True))


_DO: dict[int, Callable[[_Reader], Any]] = {code[0]: do for code, do in {
    b"\x80": lambda r: r.take(1),  # version of the format
    b"\x95": lambda r: r.take(8),  # size of a frame
    b"(": lambda r: r.push(_MARK),
    b"0": lambda r: r.pop(),
    b"1": lambda r: r.since_mark(),
    b"N": lambda r: r.push(None),
    b"\x88": lambda r: r.push(True),
    b"\x89": lambda r: r.push(False),
    b"I": lambda r: r.push(_decimal(r.line())),
    b"L": lambda r: r.push(int(r.line().rstrip(b"L"))),
    b"F": lambda r: r.push(float(r.line())),
    b"G": lambda r: r.push(struct.unpack(">d", r.take(8))[0]),
    b"\x8a": lambda r: r.push(int.from_bytes(r.take(r.number("B")), "little", signed=True)),
    b"T": lambda r: r.push(r.take(r.number("i"))),
    b"U": lambda r: r.push(r.take(r.number("B"))),
    b"B": lambda r: r.push(r.take(r.number("I"))),
    b"C": lambda r: r.push(r.take(r.number("B"))),
    b"\x8e": lambda r: r.push(r.take(r.number("Q"))),
    b"X": lambda r: r.push(r.take(r.number("I")).decode("utf-8")),
    b"\x8c": lambda r: r.push(r.take(r.number("B")).decode("utf-8")),
    b"\x8d": lambda r: r.push(r.take(r.number("Q")).decode("utf-8")),
    b"]": lambda r: r.push([]),
    b"a": lambda r: r.extend([r.pop()]),
    b"e": lambda r: r.extend(r.since_mark()),
    b"l": lambda r: r.push(r.since_mark()),
    b")": lambda r: r.push(()),
    b"t": lambda r: r.push(tuple(r.since_mark())),
    b"\x85": lambda r: r.push((r.pop(),)),
    b"\x86": lambda r: r.push((r.pop(), r.pop())[::-1]),
    b"\x87": lambda r: r.push((r.pop(), r.pop(), r.pop())[::-1]),
    b"}": lambda r: r.push({}),
    b"d": lambda r: r.push(_pairs(r.since_mark())),
    b"s": lambda r: r.update([r.pop(), r.pop()][::-1]),
    b"u": lambda r: r.update(r.since_mark()),
    b"p": lambda r: r.remember(int(r.line())),
    b"q": lambda r: r.remember(r.number("B")),
    b"r": lambda r: r.remember(r.number("I")),
    b"\x94": lambda r: r.remember(len(r.memo)),
    b"g": lambda r: r.push(r.memo[int(r.line())]),
    b"h": lambda r: r.push(r.memo[r.number("B")]),
    b"j": lambda r: r.push(r.memo[r.number("I")]),
    b"c": lambda r: r.name(r.line(), r.line()),
    b"\x93": lambda r: r.stack_name(),
    b"R": lambda r: r.call(),
    b"b": lambda r: r.build(),
}.items()}
