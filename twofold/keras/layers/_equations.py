"""The shapes of an einsum of inputs with a kernel, from its equation: what `EinsumDense` and attention build by."""

from __future__ import annotations

from typing import Any

__all__ = ["dense_shapes"]

_ELLIPSIS = "..."


def dense_shapes(equation: str, bias_axes: str | None, input_shape: tuple[Any, ...],
                 partial: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...] | None, tuple[Any, ...]]:
    """The shapes of kernel, bias and outputs.

    Args:
        equation: "inputs,kernel->outputs", where inputs and outputs may both begin, or both end, with an ellipsis.
        bias_axes: the letters of the outputs that the bias has; None for no bias.
        input_shape: of the inputs, batch included.
        partial: the sizes of the outputs without the batch and what the ellipsis stands for; None where the inputs
            decide.
    Raises:
        ValueError: the equation has another form, or sizes contradict.
    """
    inputs, kernel, outputs, leading = _parsed(equation)
    elided = len(input_shape) - len(inputs)
    if elided < 0 or (elided and leading is None):
        raise ValueError(f"The equation {equation!r} does not fit inputs of shape {input_shape}.")
    skipped = elided if leading else 0
    known = dict(zip(inputs, input_shape[skipped:], strict=False))
    # what stands before the letters of the outputs is the batch: elided, or the first letter
    lettered = outputs if skipped else outputs[1:]
    if len(partial) != len(lettered):
        raise ValueError(f"output_shape must have {len(lettered)} sizes for the equation {equation!r}; got {partial}.")
    sizes = dict(known) if skipped else {outputs[0]: input_shape[0], **known}
    for letter, size in zip(lettered, partial, strict=True):
        have = sizes.get(letter)
        if None not in (size, have) and size != have:
            raise ValueError(f"Input shape {input_shape} and output shape {partial} do not match at {letter!r} of the "
                             f"equation {equation!r}.")
        if have is None and (size is not None or letter in known):
            sizes[letter] = size
    missing = [letter for letter in kernel + outputs if letter not in sizes]
    if missing:
        raise ValueError(f"Dimension {missing[0]!r} of the equation {equation!r} has a size in neither the inputs "
                         f"{input_shape} nor the output shape {partial}.")
    rest = input_shape[:elided] if leading else input_shape[len(inputs):]
    shown = tuple(sizes[letter] for letter in outputs)
    full = (*rest, *shown) if leading else (*shown, *rest)
    bias = None if bias_axes is None else _bias(equation, bias_axes, outputs, sizes, 0 if leading else elided)
    return tuple(sizes[letter] for letter in kernel), bias, full


def _parsed(equation: str) -> tuple[str, str, str, bool | None]:
    """The letters of inputs, kernel and outputs, and whether an ellipsis leads (True), trails (False) or is not."""
    left, arrow, outputs = equation.replace(" ", "").partition("->")
    inputs, comma, kernel = left.partition(",")
    letters = inputs.replace(_ELLIPSIS, ""), kernel, outputs.replace(_ELLIPSIS, "")
    leading = trailing = False
    if _ELLIPSIS in inputs:
        leading = inputs.startswith(_ELLIPSIS) and outputs.startswith(_ELLIPSIS)
        trailing = inputs.endswith(_ELLIPSIS) and outputs.endswith(_ELLIPSIS)
    fits = (leading or trailing) == (_ELLIPSIS in inputs) == (_ELLIPSIS in outputs)
    if not (arrow and comma and fits and all(part.isalpha() for part in letters)):
        raise ValueError(f"Invalid einsum equation {equation!r}. Equations must be in the form [X],[Y]->[Z], "
                         "...[X],[Y]->...[Z], or [X]...,[Y]->[Z]....")
    return *letters, True if leading else False if trailing else None


def _bias(equation: str, axes: str, outputs: str, sizes: dict[str, Any], behind: int) -> tuple[Any, ...]:
    wrong = [axis for axis in axes if axis not in outputs]
    if wrong:
        raise ValueError(f"Bias dimension {wrong[0]!r} was requested, but is not part of the outputs of {equation!r}.")
    first = min(outputs.index(axis) for axis in axes)
    return (*(sizes[letter] if letter in axes else 1 for letter in outputs[first:]), *(1,) * behind)
