"""`tf.strings`: functions of text, element by element.

Strings are bytes; "UTF8_CHAR" counts characters instead. The functions are computed by Python each time that they are
reached, in compiled functions, too. What TensorFlow gives as ragged tensors is here for single strings alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import twofold as tf
from twofold import errors
from twofold._front import iteration as engine
from twofold._front.namespace import publish
from twofold.ir.spec import TensorSpec

from ._formats.regex import Pattern, compiled, rewriting
from ._front.api import listed, public
from ._front.hosted import hosted
from ._front.texts import each_text, objects, same_shape, text_parts, texts
from ._ops.array_shape import one_axis
from ._ops.string_hashes import to_hash_bucket, to_hash_bucket_fast, to_hash_bucket_strong
from ._ops.string_joining import ngrams, unsorted_segment_join
from ._ops.string_unicode import (
    unicode_decode,
    unicode_decode_with_offsets,
    unicode_encode,
    unicode_script,
    unicode_split,
    unicode_split_with_offsets,
    unicode_transcode,
)

__all__ = ["as_string", "bytes_split", "format", "join", "length", "lower", "ngrams", "reduce_join", "regex_full_match",
           "regex_replace", "split", "strip", "substr", "to_hash_bucket", "to_hash_bucket_fast",
           "to_hash_bucket_strong", "to_number", "unicode_decode", "unicode_decode_with_offsets", "unicode_encode",
           "unicode_script", "unicode_split", "unicode_split_with_offsets", "unicode_transcode",
           "unsorted_segment_join", "upper"]


def _unit(unit: str) -> bool:
    if unit not in ("BYTE", "UTF8_CHAR"):
        raise ValueError(f"unit must be 'BYTE' or 'UTF8_CHAR'; got {unit!r}")
    return unit == "UTF8_CHAR"


def _characters(text: bytes) -> str:
    return text.decode("utf-8", "surrogateescape")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


@public
@hosted
def length(input: Any, unit: str = "BYTE", name: str | None = None) -> Any:
    """How long strings are: int32, of their shape.

    Args:
        input: strings.
        unit: "BYTE" or "UTF8_CHAR".
        name: accepted, without effect.

    >>> import twofold as tf
    >>> tf.strings.length(["a", "été"], unit="UTF8_CHAR").numpy().tolist()
    [1, 3]
    """
    return each_text((lambda t: len(_characters(t))) if _unit(unit) else len, input, "StringLength", tf.int32)


def _cased(change: str, encoding: str) -> Callable[[bytes], bytes]:
    if encoding not in ("", "utf-8"):
        raise ValueError(f"encoding must be '' (for ASCII letters) or 'utf-8'; got {encoding!r}")
    if encoding:
        return lambda t: _bytes(getattr(_characters(t), change)())
    return lambda t: getattr(t, change)()


@public
@hosted
def lower(input: Any, encoding: str = "", name: str | None = None) -> Any:
    """Strings in lower case.

    Args:
        input: strings.
        encoding: "" changes ASCII letters alone, "utf-8" all.
        name: accepted, without effect.

    >>> import twofold as tf
    >>> tf.strings.lower("Abc").numpy()
    b'abc'
    """
    return each_text(_cased("lower", encoding), input, "StringLower")


@public
@hosted
def upper(input: Any, encoding: str = "", name: str | None = None) -> Any:
    """Strings in upper case; see `lower`. `name` has no effect."""
    return each_text(_cased("upper", encoding), input, "StringUpper")


@public
@hosted
def strip(input: Any, name: str | None = None) -> Any:
    """Strings without the white space around them.

    `name` has no effect.

    >>> import twofold as tf
    >>> tf.strings.strip([" a ", "b\\n"]).numpy().tolist()
    [b'a', b'b']
    """
    return each_text(lambda t: t.strip(), input, "StringStrip")


def _text(value: Any, what: str, argument: str) -> bytes:
    """An argument that is one string, known when the function is called.

    Raises:
        InvalidArgumentError: it is something else.
    """
    known = tf.get_static_value(value) if tf.is_tensor(value) else value
    if isinstance(known, (np.ndarray, np.generic)) and known.shape == ():
        known = known.item()
    if not isinstance(known, (str, bytes)):
        given = value if not tf.is_tensor(value) else f"{value.dtype.name}{value.shape}"
        raise tf.errors.InvalidArgumentError(None, what,
                                             f"{what}: {argument} must be a string, a scalar; got {given!r}")
    return known.encode() if isinstance(known, str) else known


def _scalar(value: Any, what: str, argument: str) -> Any:
    """An argument that is a string scalar, as a tensor.

    Raises:
        InvalidArgumentError: it is something else.
    """
    try:
        given = tf.convert_to_tensor(value)
    except (TypeError, ValueError):
        given = None
    if given is None or given.dtype != tf.string or given.shape.rank not in (0, None):
        told = repr(value) if given is None else f"{given.dtype.name}{given.shape}"
        raise tf.errors.InvalidArgumentError(None, what, f"{what}: {argument} must be a string, a scalar; got {told}")
    return given


def _known_pattern(pattern: Any) -> int | None:
    """How many groups a pattern has that is known already, whose faults are told now."""
    known = tf.get_static_value(pattern)
    return None if known is None else compiled(np.asarray(known, object).item()).groups


@public
@hosted
def regex_replace(input: Any, pattern: Any, rewrite: Any, replace_global: bool = True, name: str | None = None) -> Any:
    """Strings in which what matches a pattern is replaced.

    Args:
        input: strings.
        pattern: a regular expression, a string scalar.
        rewrite: what comes in its place, a string scalar; \\1 to \\9 are groups of the pattern, \\0 is all of it.
        replace_global: whether all matches are replaced, or the first alone.
        name: accepted, without effect.
    Raises:
        InvalidArgumentError: the pattern is none, or has no such group. UnimplementedError: it could take very long.

    >>> import twofold as tf
    >>> tf.strings.regex_replace("ab12", "[0-9]", "#").numpy()
    b'ab##'
    """
    what = "RegexReplace"
    given, expression, new = texts(input, what), _scalar(pattern, what, "pattern"), _scalar(rewrite, what, "rewrite")
    groups, known = _known_pattern(expression), tf.get_static_value(new)
    if groups is not None and known is not None:
        rewriting(np.asarray(known, object).item(), groups)

    def replace(*tensors: Any) -> list[Any]:
        array, text, template = [engine.array_of(t) for t in tensors]
        matcher = compiled(text.item())
        parts = rewriting(template.item(), matcher.groups)
        values = [_replaced(t, matcher, parts, replace_global) for t in array.ravel().tolist()]
        return [engine.tensor_of(objects(array.shape, values))]
    return engine.host_call(replace, what, [given, expression, new], [same_shape(given, tf.string)])[0]


def _replaced(text: bytes, pattern: Pattern, parts: list[bytes | int], everywhere: bool) -> bytes:
    pieces, at = [], 0
    for match in pattern.matches(text):
        pieces.append(text[at:match.start()])
        pieces += [part if isinstance(part, bytes) else match.group(part) or b"" for part in parts]
        at = match.end()
        if not everywhere:
            break
    return b"".join([*pieces, text[at:]])


@public
@hosted
def regex_full_match(input: Any, pattern: Any, name: str | None = None) -> Any:
    """Whether strings as a whole match a pattern.

    Args:
        input: strings.
        pattern: a regular expression, a string scalar.
        name: accepted, without effect.
    Raises:
        InvalidArgumentError: the pattern is none. UnimplementedError: it could take very long.

    >>> import twofold as tf
    >>> tf.strings.regex_full_match(["a1", "b"], "[a-z][0-9]").numpy().tolist()
    [True, False]
    """
    what = "RegexFullMatch"
    given, expression = texts(input, what), _scalar(pattern, what, "pattern")
    _known_pattern(expression)

    def matching(*tensors: Any) -> list[Any]:
        array, text = [engine.array_of(t) for t in tensors]
        matcher = compiled(text.item())
        matches = [matcher.full_match(t) for t in array.ravel().tolist()]
        return [engine.tensor_of(np.array(matches, np.bool_).reshape(array.shape))]
    return engine.host_call(matching, what, [given, expression], [same_shape(given, tf.bool)])[0]


@public
@hosted
def substr(input: Any, pos: Any, len: Any, unit: str = "BYTE", name: str | None = None) -> Any:
    """Parts of strings.

    Args:
        input: strings.
        pos: where they begin, counted from the end where negative; one integer, or one for each.
        len: how long they are at most.
        unit: "BYTE" or "UTF8_CHAR".
        name: accepted, without effect.
    Raises:
        InvalidArgumentError: one begins outside of its string.

    >>> import twofold as tf
    >>> tf.strings.substr(["hello", "world"], 1, 3).numpy().tolist()
    [b'ell', b'orl']
    """
    characters, given = _unit(unit), texts(input, "Substr")
    places, sizes = tf.cast(pos, tf.int64), tf.cast(len, tf.int64)

    def part(text: bytes, at: int, size: int) -> bytes:
        elements: Any = _characters(text) if characters else text
        whole = elements.__len__()
        if not -whole <= at <= whole:
            raise tf.errors.InvalidArgumentError(None, "Substr", f"pos {at} out of range for string {text!r}")
        begin = at + whole if at < 0 else at
        taken = elements[begin:begin + max(size, 0)]
        return _bytes(taken) if characters else taken

    def cut(*tensors: Any) -> list[Any]:
        arrays = np.broadcast_arrays(*[engine.array_of(t) for t in tensors])
        return [engine.tensor_of(objects(arrays[0].shape, [
            part(t, int(p), int(n)) for t, p, n in zip(*[a.ravel().tolist() for a in arrays], strict=True)]))]
    shape = tf.broadcast_static_shape(tf.broadcast_static_shape(given.shape, places.shape), sizes.shape)
    return engine.host_call(cut, "Substr", [given, places, sizes], [TensorSpec(shape, tf.string)])[0]


# -- together and apart --------------------------------------------------------------------------------
@public
@hosted
def join(inputs: Sequence[Any], separator: str = "", name: str | None = None) -> Any:
    """Strings one behind another, element by element.

    Args:
        inputs: string tensors of one shape, or scalars.
        separator: what is between them.
        name: accepted, without effect.

    >>> import twofold as tf
    >>> tf.strings.join([["a", "b"], "c"], separator="-").numpy().tolist()
    [b'a-c', b'b-c']
    """
    given = [texts(x, "StringJoin") for x in listed(inputs, "inputs")]
    between = _text(separator, "StringJoin", "separator")
    if not given:
        raise tf.errors.InvalidArgumentError(None, "StringJoin", "StringJoin: inputs must hold at least one tensor")
    shape = given[0].shape
    for x in given[1:]:
        shape = tf.broadcast_static_shape(shape, x.shape)

    def join_rows(*tensors: Any) -> list[Any]:
        arrays = np.broadcast_arrays(*[engine.array_of(t) for t in tensors])
        rows = zip(*[a.ravel().tolist() for a in arrays], strict=True)
        return [engine.tensor_of(objects(arrays[0].shape, [between.join(row) for row in rows]))]
    return engine.host_call(join_rows, "StringJoin", given, [TensorSpec(shape, tf.string)])[0]


@public
@hosted
def reduce_join(inputs: Any, axis: int | Sequence[int] | None = None, keepdims: bool = False, separator: str = "",
                name: str | None = None) -> Any:
    """Strings one behind another along an axis.

    Args:
        inputs: strings.
        axis: which, or several: along the first one strings are joined first. All, the last first, where it is None.
        keepdims: whether the axes stay, with size 1.
        separator: what is between them.
        name: accepted, without effect.

    >>> import twofold as tf
    >>> tf.strings.reduce_join([["a", "b"], ["c", "d"]], axis=1).numpy().tolist()
    [b'ab', b'cd']
    >>> tf.strings.reduce_join([["a", "b"], ["c", "d"]], axis=[0, 1]).numpy()
    b'acbd'
    """
    given, between = texts(inputs, "ReduceJoin"), _text(separator, "ReduceJoin", "separator")
    rank = given.shape.rank
    which = list(range(rank))[::-1] if axis is None else [
        one_axis(a, rank) for a in (axis if isinstance(axis, list | tuple) else [axis])]
    if len(set(which)) < len(which):
        raise errors.InvalidArgumentError(None, "ReduceJoin", f"Duplicate reduction dimension in {axis}")
    kept = [i for i in range(rank) if i not in which]

    def join_axes(tensor: Any) -> list[Any]:
        array = engine.array_of(tensor)
        sizes = [array.shape[i] for i in kept]
        rows = array.transpose(kept + which[::-1]).reshape(
            math.prod(sizes), math.prod(array.shape[i] for i in which))
        joined = objects(sizes, [between.join(row) for row in rows.tolist()])
        return [engine.tensor_of(np.expand_dims(joined, sorted(which)) if keepdims else joined)]
    shape = [1 if i in which else d for i, d in enumerate(given.shape.as_list()) if keepdims or i in kept]
    return engine.host_call(join_axes, "ReduceJoin", [given], [TensorSpec(shape, tf.string)])[0]


@public
@hosted
def split(input: Any, sep: Any = None, maxsplit: int = -1, name: str | None = None) -> Any:
    """The parts of strings: a vector for a single string, else a ragged tensor with a row for each.

    Args:
        input: strings.
        sep: what is between them; None for white space, of which any amount counts as one.
        maxsplit: how often it is split at most; -1 for always.
        name: accepted, without effect.

    >>> import twofold as tf
    >>> tf.strings.split("a b  c").numpy().tolist()
    [b'a', b'b', b'c']
    >>> tf.strings.split(["a b", "c"]).to_list()
    [[b'a', b'b'], [b'c']]
    """
    between = None if sep is None else _text(sep, "StringSplit", "sep") or None
    return text_parts(lambda t: (t.split(between, maxsplit),), input, "StringSplit")[0]


@public
@hosted
def bytes_split(input: Any, name: str | None = None) -> Any:
    """The bytes of strings, each as a string: a vector for a single string, else a ragged tensor.

    `name` has no effect.

    >>> import twofold as tf
    >>> tf.strings.bytes_split("ab").numpy().tolist()
    [b'a', b'b']
    """
    return text_parts(lambda t: ([t[i:i + 1] for i in range(len(t))],), input, "StringBytesSplit")[0]


# -- numbers -------------------------------------------------------------------------------------------
@public
@hosted
def to_number(input: Any, out_type: Any = tf.float32, name: str | None = None) -> Any:
    """The numbers that strings say.

    Args:
        input: strings.
        out_type: tf.float32, tf.float64, tf.int32 or tf.int64.
        name: accepted, without effect.
    Raises:
        InvalidArgumentError: a string says no number.

    >>> import twofold as tf
    >>> tf.strings.to_number(["1.5", " -2"]).numpy().tolist()
    [1.5, -2.0]
    """
    dtype = tf.as_dtype(out_type)
    read: Any = int if dtype.is_integer else float

    def number(text: bytes) -> Any:
        try:
            if b"_" in text:
                raise ValueError(text)
            return read(text)
        except ValueError:
            raise tf.errors.InvalidArgumentError(
                None, "StringToNumber", f"StringToNumberOp could not correctly convert string: {text!r}") from None
    return each_text(number, input, "StringToNumber", dtype)


@public
@hosted
def as_string(input: Any, precision: int = -1, scientific: bool = False, shortest: bool = False, width: int = -1,
              fill: str = "", name: str | None = None) -> Any:
    """Numbers as strings.

    Args:
        input: a tensor of numbers, bools or strings.
        precision: digits after the point; six by default. For floats alone.
        scientific: whether there is an exponent.
        shortest: whether it is chosen by the number what is shorter.
        width: of the string at least, with `fill` before the number.
        fill: " ", "0", "+" or "-", the latter for numbers at the left.
        name: accepted, without effect.
    Raises:
        ValueError: settings do not go together.

    >>> import twofold as tf
    >>> tf.strings.as_string([1, 22]).numpy().tolist(), tf.strings.as_string(3.14159, precision=2).numpy()
    ([b'1', b'22'], b'3.14')
    """
    given = tf.convert_to_tensor(input)
    if given.dtype == tf.string:
        return given
    if scientific and shortest:
        raise ValueError("Cannot select both scientific and shortest notation")
    if not given.dtype.is_floating and (precision >= 0 or scientific or shortest):
        raise ValueError("precision, scientific and shortest are for floats")
    if len(fill) > 1:
        raise ValueError(f"Fill string must be one or fewer characters: {fill!r}")
    kind = ("e" if scientific else "g" if shortest else "f") if given.dtype.is_floating else "d"
    form = "%" + fill + (str(width) if width >= 0 else "") + (f".{precision}" if precision >= 0 else "") + kind

    def text(value: Any) -> bytes:
        return (str(value).lower() if isinstance(value, bool) else form % value).encode()

    def write_numbers(tensor: Any) -> list[Any]:
        array = engine.array_of(tensor)
        return [engine.tensor_of(objects(array.shape, [text(v) for v in array.ravel().tolist()]))]
    return engine.host_call(write_numbers, "AsString", [given], [same_shape(given, tf.string)])[0]


@public
@hosted
def format(template: str, inputs: Any, placeholder: str = "{}", summarize: int = 3, name: str | None = None) -> Any:
    """A text with tensors in it, as `tf.print` shows them.

    Args:
        template: the text, with a placeholder for each tensor.
        inputs: a tensor or a list of tensors.
        placeholder: what stands for them.
        summarize: how many entries of an axis are shown at each end.
        name: accepted, without effect.
    Returns:
        A string scalar.
    Raises:
        ValueError: there are more placeholders than tensors, or fewer.

    >>> import twofold as tf
    >>> tf.strings.format("x is {}", tf.constant([1, 2])).numpy()
    b'x is [1 2]'
    """
    from twofold.eager import summary
    given = [tf.convert_to_tensor(x) for x in (inputs if isinstance(inputs, (list, tuple)) else [inputs])]
    pieces = template.split(placeholder)
    if len(pieces) != len(given) + 1:
        raise ValueError(f"{len(pieces) - 1} placeholder(s) in template does not match {len(given)} tensor(s) provided "
                         "as input")

    def fill_template(*tensors: Any) -> list[Any]:
        return [engine.tensor_of(objects([], [summary.filled(pieces, tensors, summarize).encode()]))]
    return engine.host_call(fill_template, "StringFormat", given, [TensorSpec([], tf.string)])[0]


publish(__name__)
