"""Plain values from files that hold Python objects: lists, dicts, numbers, strings and arrays, and nothing else.

Some of the published data sets are in the format of Python's object serialisation: the batches of CIFAR, and the lists
of words of IMDB and Reuters, which are arrays of objects in `.npz` files. That format is a program for a small stack
machine, which can name any function and have it called. Here it is read by `pickle.Unpickler` under two restrictions.
Its instructions are looked through first: only those that plain values need are let pass, and none may ask for more
memory than the file has bytes, which the machine itself would grant. And the names that arrays and byte strings need
stand for what is done here; any other name is an error, before anything of it is imported. The instructions are those
that Python's `pickletools` documents.
"""

from __future__ import annotations

import io
import pickle
import re
import zipfile
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
    array = loads(data[file.tell():])
    if not isinstance(array, np.ndarray):
        raise ValueError("The file has no array where one is expected.")
    return array


def loads(data: bytes) -> Any:
    """The value that serialised bytes hold.

    Raises:
        ValueError: they are damaged, or would need more than lists, dicts, numbers, strings and arrays.
    """
    _look_through(data)
    try:
        return _plain(_Unpickler(io.BytesIO(data), encoding="bytes").load(), {})
    except ValueError:
        raise
    except Exception as error:  # noqa: BLE001 (whatever the machine says of wrong instructions)
        raise ValueError(f"The file is damaged: {error}") from None


class _Unpickler(pickle.Unpickler):
    """The stack machine, which calls nothing but the functions of this module."""

    def find_class(self, module: str, name: str) -> _Name:
        """The object of a name.

        Raises:
            ValueError: it is not among those that are known here.
        """
        return _Name(module, name)


class _Name:
    """A function or class that a file names, of those that are known here."""

    __slots__ = ("what",)

    def __init__(self, module: str, name: str):
        if (module, name) not in _KNOWN:
            raise ValueError(f"The file names {module}.{name}, which no data set needs: it is damaged, or not what it "
                             "seems. Nothing of it was run.")
        self.what = name

    def __call__(self, *arguments: Any) -> Any:
        if self.what == "_reconstruct":
            return _Array()
        if self.what == "dtype":
            return _Dtype(arguments[0])
        if self.what == "encode":
            return str(arguments[0]).encode("latin-1")
        raise ValueError(f"The file calls {self.what}.")

    def __setstate__(self, state: Any) -> None:
        raise ValueError("The file sets attributes of something that is no array.")


_KNOWN = {("numpy", "ndarray"), ("numpy", "dtype"), ("numpy.core.multiarray", "_reconstruct"),
          ("numpy._core.multiarray", "_reconstruct"), ("_codecs", "encode")}


class _Dtype:
    """An element type that is being described."""

    def __init__(self, code: Any):
        self.code = _text(code)
        if not re.fullmatch(r"[|<>=]?(?:[biufcSU]\d+|O8?|b1)", self.code):
            raise ValueError(f"The file has an array of the element type {self.code!r}.")

    def __setstate__(self, state: Any) -> None:
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

    def __setstate__(self, state: Any) -> None:
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


# -- the instructions -------------------------------------------------------------------------------
# Those of fixed length and bounded effect, most of which come in runs: small integers are nearly all that there is in
# lists of words.
_FIXED = re.compile(rb"(?:[(01N\x88\x89\]aelt)\x85\x86\x87}dsu\x94\x93Rb]|[K\x80qh].|M..|[Jj].{4}|[G\x95].{8})+",
                    re.DOTALL)
# What has its own length before it: how many bytes say that.
_SIZED = {b"\x8a": 1, b"U": 1, b"C": 1, b"\x8c": 1, b"T": 4, b"B": 4, b"X": 4, b"\x8e": 8, b"\x8d": 8}
_LINES = {b"I": 1, b"L": 1, b"F": 1, b"g": 1, b"p": 1, b"c": 2}  # what goes to the end of a line, and how many lines
_PLACES = {b"r": 4}  # where in the machine's memory a value goes, which is made as large as the largest says


def _look_through(data: bytes) -> None:
    """See that a program has plain values' instructions alone, whole, and asks for no more memory than it has bytes.

    Raises:
        ValueError: it does not.
    """
    at = 0
    while (code := data[at : at + 1]) != b".":
        fixed = _FIXED.match(data, at)
        if fixed is not None:
            at = fixed.end()
            continue
        start, at = at, at + 1
        if code in _SIZED:
            width = _SIZED[code]
            at += width + int.from_bytes(data[at : at + width], "little")
        elif code in _LINES:
            for _ in range(_LINES[code]):
                at = data.find(b"\n", at) + 1 or len(data) + 1
        elif code in _PLACES:
            at += _PLACES[code]
        elif code:
            raise ValueError(f"The file has the instruction {code[0]:#04x} at byte {start}, which plain values do not "
                             "need, or which is cut off.")
        if at >= len(data):
            raise ValueError(f"The file ends within a value, at byte {start}.")
        _check_place(code, data[start + 1 : at], len(data))


def _check_place(code: bytes, operand: bytes, most: int) -> None:
    """See that the place in the machine's memory that an instruction names is one that the program can need."""
    if code == b"r" and int.from_bytes(operand, "little") >= most or code == b"p" and not (
            operand[:-1].isdigit() and len(operand) < 20 and int(operand) < most):
        raise ValueError("The file is damaged: it has a value remembered at a place that it cannot need.")


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
    if isinstance(value, (_Dtype, _Name)):
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
