"""Characters of strings: `tf.strings.unicode_*`."""

from __future__ import annotations

from typing import Any

import numpy as np

from twofold._formats.unicode import Policy, checked_encoding, decoded, encoded
from twofold._front import iteration as engine
from twofold._front.api import one_int, public, tensor
from twofold._front.hosted import hosted
from twofold._front.texts import each_text, objects, same_shape, text_parts
from twofold.ir import dtypes as dt
from twofold.ir.spec import TensorSpec

__all__ = ["unicode_decode", "unicode_decode_with_offsets", "unicode_encode", "unicode_script", "unicode_split",
           "unicode_split_with_offsets", "unicode_transcode"]

_NONE = 65533  # U+FFFD, which stands for what is no character


def _policy(errors: Any, replacement: Any, control: Any, what: str) -> Policy:
    return Policy(errors, one_int(replacement, "replacement_char"), bool(control), what).checked()


@public
@hosted
def unicode_decode(input: Any, input_encoding: str, errors: str = "replace", replacement_char: int = _NONE,
                   replace_control_characters: bool = False, name: str | None = None) -> Any:
    """The code points of strings, int32: a vector for a single string, else a ragged tensor with a row for each.

    Args:
        input: strings.
        input_encoding: such as "UTF-8".
        errors: what becomes of bytes that are no characters: "replace", "ignore" or "strict".
        replacement_char: the code point in their place.
        replace_control_characters: whether those up to 0x1F are replaced, or left out, too.
        name: accepted, without effect.
    Raises:
        InvalidArgumentError: there is no such encoding; or, with "strict", a byte is no character.

    >>> import twofold as tf
    >>> tf.strings.unicode_decode("hé", "UTF-8").numpy().tolist()
    [104, 233]
    """
    policy = _policy(errors, replacement_char, replace_control_characters, "UnicodeDecode")
    return text_parts(lambda t: decoded(t, input_encoding, policy)[:1], input, "UnicodeDecode", (dt.int32,))[0]


@public
@hosted
def unicode_decode_with_offsets(input: Any, input_encoding: str, errors: str = "replace",
                                replacement_char: int = _NONE, replace_control_characters: bool = False,
                                name: str | None = None) -> Any:
    """The code points of strings, int32, and the byte at which each begins, int64.

    Args:
        input, input_encoding, errors, replacement_char, replace_control_characters: see `unicode_decode`.
        name: accepted, without effect.

    >>> import twofold as tf
    >>> codes, starts = tf.strings.unicode_decode_with_offsets("éa", "UTF-8")
    >>> codes.numpy().tolist(), starts.numpy().tolist()
    ([233, 97], [0, 2])
    """
    policy = _policy(errors, replacement_char, replace_control_characters, "UnicodeDecodeWithOffsets")
    return text_parts(lambda t: decoded(t, input_encoding, policy), input, "UnicodeDecodeWithOffsets",
                      (dt.int32, dt.int64))


@public
@hosted
def unicode_split(input: Any, input_encoding: str, errors: str = "replace", replacement_char: int = _NONE,
                  name: str | None = None) -> Any:
    """The characters of strings, each as a string of the same encoding: a vector for a single string, else a ragged
    tensor with a row for each.

    Args:
        input: strings.
        input_encoding: "UTF-8", "UTF-16-BE" or "UTF-32-BE".
        errors, replacement_char: see `unicode_decode`.
        name: accepted, without effect.
    Raises:
        InvalidArgumentError: there is no such encoding; or, with "strict", a byte is no character.

    >>> import twofold as tf
    >>> [part.decode() for part in tf.strings.unicode_split("hé", "UTF-8").numpy()]
    ['h', 'é']
    """
    return _split(input, input_encoding, errors, replacement_char, "UnicodeSplit", 1)[0]


@public
@hosted
def unicode_split_with_offsets(input: Any, input_encoding: str, errors: str = "replace", replacement_char: int = _NONE,
                               name: str | None = None) -> Any:
    """The characters of strings, each as a string, and the byte at which each begins, int64.

    Args:
        input, input_encoding, errors, replacement_char: see `unicode_split`.
        name: accepted, without effect.

    >>> import twofold as tf
    >>> tf.strings.unicode_split_with_offsets("éa", "UTF-8")[1].numpy().tolist()
    [0, 2]
    """
    return _split(input, input_encoding, errors, replacement_char, "UnicodeSplitWithOffsets", 2)


def _split(input: Any, encoding: str, errors: Any, replacement: Any, what: str, count: int) -> tuple[Any, ...]:
    policy = _policy(errors, replacement, False, what)
    checked_encoding(encoding, what)

    def split(text: bytes) -> tuple[list[Any], ...]:
        codes, starts = decoded(text, encoding, policy)
        return ([encoded([code], encoding, policy) for code in codes], starts)[:count]
    return text_parts(split, input, what, (dt.string, dt.int64)[:count])


@public
@hosted
def unicode_encode(input: Any, output_encoding: str, errors: str = "replace", replacement_char: int = _NONE,
                   name: str | None = None) -> Any:
    """Strings of code points.

    Args:
        input: int32 [.., characters].
        output_encoding: "UTF-8", "UTF-16-BE" or "UTF-32-BE".
        errors: what becomes of numbers that are no code points: "replace", "ignore" or "strict".
        replacement_char: the code point in their place.
        name: accepted, without effect.
    Returns:
        Strings [..].
    Raises:
        ValueError: the input is a scalar. InvalidArgumentError: there is no such encoding; or, with "strict", a number
            is no code point.

    >>> import twofold as tf
    >>> tf.strings.unicode_encode([104, 105], "UTF-8").numpy()
    b'hi'
    """
    policy = _policy(errors, replacement_char, False, "UnicodeEncode")
    checked_encoding(output_encoding, "UnicodeEncode")
    given = tensor(input, dt.int32)
    if given.shape.rank == 0:
        raise ValueError("input_tensor's rank must be at least 1.")

    def encode_rows(codes: Any) -> list[Any]:
        array = engine.array_of(codes)
        rows = array.reshape(int(np.prod(array.shape[:-1])), array.shape[-1]).tolist()
        return [engine.tensor_of(objects(array.shape[:-1], [encoded(row, output_encoding, policy) for row in rows]))]
    return engine.host_call(encode_rows, "UnicodeEncode", [given], [TensorSpec(given.shape[:-1], dt.string)])[0]


@hosted
def encode_ragged_rows(values: Any, splits: Any, encoding: str, policy: Any) -> Any:
    """The strings of rows of code points.

    Args:
        values: code points, int32.
        splits: where rows begin and end in them.
        encoding, policy: a list of the arguments of `Policy`.
    """
    how = Policy(*policy)

    def encode_rows(codes: Any, limits: Any) -> list[Any]:
        flat, ends = engine.array_of(codes).tolist(), engine.array_of(limits).tolist()
        rows = [encoded(flat[start:end], encoding, how) for start, end in zip(ends, ends[1:], strict=False)]
        return [engine.tensor_of(objects([len(rows)], rows))]
    return engine.host_call(encode_rows, "UnicodeEncode", [values, splits], [TensorSpec([None], dt.string)])[0]


@public
@hosted
def unicode_transcode(input: Any, input_encoding: str, output_encoding: str, errors: str = "replace",
                      replacement_char: int = _NONE, replace_control_characters: bool = False,
                      name: str | None = None) -> Any:
    """Strings in another encoding.

    Args:
        input: strings.
        input_encoding: such as "UTF-8" or "latin1".
        output_encoding: "UTF-8", "UTF-16-BE" or "UTF-32-BE".
        errors, replacement_char, replace_control_characters: see `unicode_decode`.
        name: accepted, without effect.
    Raises:
        InvalidArgumentError: there is no such encoding; or, with "strict", a byte is no character.

    >>> import twofold as tf
    >>> tf.strings.unicode_transcode(["é"], "UTF-8", "UTF-16-BE").numpy().tolist()
    [b'\\x00\\xe9']
    """
    policy = _policy(errors, replacement_char, replace_control_characters, "UnicodeTranscode")
    checked_encoding(output_encoding, "UnicodeTranscode")
    return each_text(lambda t: encoded(decoded(t, input_encoding, policy)[0], output_encoding,
                                  policy._replace(control=False)), input, "UnicodeTranscode")


@public
@hosted
def unicode_script(input: Any, name: str | None = None) -> Any:
    """The scripts that characters are written in, by ICU's numbers: 25 for Latin, 14 for Greek, 17 for Han.

    Args:
        input: code points, int32.
        name: accepted, without effect.
    Returns:
        int32 of the same shape; -1 for what is no code point.

    >>> import twofold as tf
    >>> tf.strings.unicode_script([ord("a"), ord("α"), ord("!"), -5]).numpy().tolist()
    [25, 14, 0, -1]
    """
    given = tensor(input, dt.int32)

    def find_scripts(codes: Any) -> list[Any]:
        from twofold._formats.unicode_scripts import scripts
        return [engine.tensor_of(scripts(engine.array_of(codes)))]
    return engine.host_call(find_scripts, "UnicodeScript", [given], [same_shape(given, dt.int32)])[0]
