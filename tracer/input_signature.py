"""Declared arguments: `tf.function(input_signature=...)`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twofold.eager import convert
from twofold.ir import nest
from twofold.ir.spec import TensorSpec

from .signature import CallArguments, Parameters
from .traced import named

__all__ = ["InputSignature"]


class InputSignature:
    """The specs that a function's arguments must fit; every argument that has one is a tensor.

    Args:
        given: a sequence of specs or structures of them, one for each positional argument.
        parameters: of the function.
    Raises:
        TypeError: it holds something that is no spec, or more than the function takes.
    """

    def __init__(self, given: Any, parameters: Parameters) -> None:
        if not isinstance(given, (list, tuple)):
            raise TypeError(f"input_signature must be either a tuple or a list, got {type(given)}.")
        self._parameters = parameters
        self.given = tuple(given)
        for leaf in nest.flatten(list(given)):
            if not isinstance(leaf, TensorSpec):
                raise TypeError("input_signature must be a possibly nested sequence of TensorSpec objects, got "
                                f"{leaf!r}.")
        specs = nest.flatten(list(self.given))
        self.known = all(s.dims is not None for s in specs)
        self._specs = list(named(specs)) if self.known else specs

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> CallArguments:
        """The call with these arguments, converted to what is declared.

        Raises:
            TypeError: they do not fit.
        """
        args, kwargs = self._parameters.canonical(args, kwargs)
        if len(args) < len(self.given):
            raise TypeError(f"Binding inputs to tf.function failed: {len(self.given)} arguments are declared in "
                            f"input_signature; got {len(args)}.")
        converted = []
        for value, declared in zip(args, self.given, strict=False):
            try:
                converted.append(_fit(value, declared))
            except (TypeError, ValueError) as e:
                raise TypeError(f"Binding inputs to tf.function failed due to `{e}`. Received args: {args} and kwargs: "
                                f"{kwargs} for signature: {self.text()}.") from None
        return CallArguments((*converted, *args[len(self.given):]), kwargs)

    def specs(self, leaves: Sequence[Any]) -> list[Any] | None:
        """What to trace for a call with these tensors; None where only the tensors say."""
        if not self.known:
            return None
        rest = [TensorSpec.from_tensor(x) for x in leaves[len(self._specs):]]
        return [*self._specs, *rest]

    def text(self) -> str:
        """The declaration as errors show it."""
        names = [] if self._parameters.signature is None else list(self._parameters.signature.parameters)
        names += [f"args_{i}" for i in range(len(names), len(self.given))]
        return f"({', '.join(f'{n}: {s!r}' for n, s in zip(names, self.given, strict=False))})"


def _fit(value: Any, declared: Any) -> Any:
    """An argument in the form that was declared, with tensors in it.

    Raises:
        TypeError, ValueError: it does not fit.
    """
    if isinstance(declared, TensorSpec):
        tensor = value if isinstance(value, TensorSpec) else convert.as_tensor(value, hint=declared.dtype)
        if tensor.dtype is not declared.dtype or not declared.shape.is_compatible_with(tensor.shape):
            raise TypeError(f"Can not cast {TensorSpec(tensor.shape, tensor.dtype)!r} to {declared!r}")
        return tensor
    have = nest.children(value) if nest.is_nested(value) else []
    if not have or nest.keys_of(value) != nest.keys_of(declared):
        raise TypeError(f"Can not cast {value!r} to {declared!r}")
    return nest.rebuilt(value, [_fit(v, d) for v, d in zip(have, nest.children(declared), strict=True)])
