"""The signature line that CPython reads a builtin's `__text_signature__` from.

`inspect` parses it as Python source whose defaults must be literals. A default that has no literal shows as its name
where that is a valid argument too (a dtype), and otherwise as `...`.
"""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable
from types import FunctionType

__all__ = ["text_signature", "documented"]

_READS_SINGLES = sys.version_info >= (3, 12)  # 3.11 drops the comma of `(1,)`; a list is the nearest it can show


def documented(fn: Callable[..., object], name: str, doc: str | None) -> str:
    """The C-level docstring of a builtin `name` that stands for `fn`: the signature line, then `doc`."""
    try:
        head = f"{name}{text_signature(fn)}\n--\n\n"
    except (ValueError, TypeError):  # a callable without a signature
        head = ""
    return head + (doc or "").replace("\0", "")


def text_signature(fn: Callable[..., object]) -> str:
    """The parameters of `fn` as a builtin declares them.

    Raises:
        ValueError, TypeError: `fn` has no signature.

    >>> text_signature(lambda x, *, axis=None: x)
    '($module, x, *, axis=None)'
    """
    if type(fn) is FunctionType and not fn.__dict__:
        return _of_code(fn)
    parts = ["$module"]
    previous = None
    for parameter in inspect.signature(fn).parameters.values():
        kind = parameter.kind
        if previous is parameter.POSITIONAL_ONLY and kind is not previous:
            parts.append("/")
        if kind is parameter.KEYWORD_ONLY and previous not in (kind, parameter.VAR_POSITIONAL):
            parts.append("*")
        parts.append(_parameter(parameter))
        previous = kind
    if previous is inspect.Parameter.POSITIONAL_ONLY:
        parts.append("/")
    return f"({', '.join(parts)})"


def _of_code(fn: FunctionType) -> str:
    """The same from the code object: some twenty times as quick, which counts for a library of a thousand functions."""
    code = fn.__code__
    names, stop = code.co_varnames, code.co_argcount
    defaults, first = fn.__defaults__ or (), stop - len(fn.__defaults__ or ())
    parts = ["$module"]
    for index in range(stop):
        parts.append(names[index] if index < first else f"{names[index]}={literal(defaults[index - first])}")
        if index + 1 == code.co_posonlyargcount:
            parts.append("/")
    keywords = names[stop:stop + code.co_kwonlyargcount]
    stop += len(keywords)
    if code.co_flags & inspect.CO_VARARGS:
        parts.append(f"*{names[stop]}")
        stop += 1
    elif keywords:
        parts.append("*")
    optional = fn.__kwdefaults__ or {}
    parts += [f"{name}={literal(optional[name])}" if name in optional else name for name in keywords]
    if code.co_flags & inspect.CO_VARKEYWORDS:
        parts.append(f"**{names[stop]}")
    return f"({', '.join(parts)})"


def _parameter(parameter: inspect.Parameter) -> str:
    stars = "*" * ((parameter.kind is parameter.VAR_POSITIONAL) + 2 * (parameter.kind is parameter.VAR_KEYWORD))
    default = "" if parameter.default is parameter.empty else f"={literal(parameter.default)}"
    return f"{stars}{parameter.name}{default}"


def literal(value: object) -> str:
    """Source text that evaluates to `value`, its name, or `...`."""
    if value is None or type(value) in (bool, int, str, bytes):
        return repr(value)
    if type(value) is float and not math.isnan(value):
        return repr(value) if math.isfinite(value) else f"{'-' if value < 0 else ''}1e999"
    if type(value) is tuple or type(value) is list:
        items = [literal(item) for item in value]
        if "..." not in items:
            if type(value) is tuple and (len(items) != 1 or _READS_SINGLES):
                return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
            return f"[{', '.join(items)}]"
    name = getattr(value, "name", None)
    return repr(name) if type(name) is str and _stands_for(name, value) else "..."


def _stands_for(name: str, value: object) -> bool:
    try:
        return bool(value == name)
    except Exception:  # noqa: BLE001 (a foreign object's comparison may raise anything)
        return False
