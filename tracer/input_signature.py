"""Declared arguments: `tf.function(input_signature=...)`."""

from __future__ import annotations

from collections.abc import Sequence

from twofold.eager import convert
from twofold.ir import nest
from twofold.ir.spec import TensorSpec

from .signature import CallArguments, CallLeaf, Parameters
from .traced import named
from .types import Args, Kwargs, PythonValue, Structure

__all__ = ["InputSignature"]


class InputSignature:
    """The specs that a function's arguments must fit; every argument that has one is a tensor.

    Args:
        declared: a sequence of specs or structures of them, one for each positional argument.
        parameters: of the function.
    Attributes:
        declared: the same as a tuple.
        ranked: whether every spec has a rank.
    Raises:
        TypeError: it holds something that is no spec, or has none for an argument that calls must give.
    """

    def __init__(self, declared: Sequence[Structure], parameters: Parameters) -> None:
        if not isinstance(declared, (list, tuple)):
            raise TypeError(f"input_signature must be either a tuple or a list, got {type(declared)}.")
        self._parameters = parameters
        self.declared = tuple(declared)
        for leaf in nest.flatten(list(declared)):
            if not isinstance(leaf, TensorSpec):
                raise TypeError("input_signature must be a possibly nested sequence of TensorSpec objects, got "
                                f"{leaf!r}.")
        missing = _without_spec(parameters, len(self.declared))
        if missing is not None:
            raise TypeError(f"input_signature missing type constraint for {missing}")
        specs = nest.flatten(list(self.declared))
        self.ranked = all(s.dims is not None for s in specs)
        self._specs = list(named(specs)) if self.ranked else specs

    def call(self, args: Args, kwargs: Kwargs) -> CallArguments:
        """The call with these arguments, converted to the declared ones.

        Raises:
            TypeError: they do not fit.
        """
        args, kwargs = self._parameters.canonical(args, kwargs)
        if len(args) < len(self.declared):
            raise TypeError(f"Binding inputs to tf.function failed: {len(self.declared)} arguments are declared in "
                            f"input_signature; got {len(args)}.")
        converted = []
        for value, declared in zip(args, self.declared, strict=False):
            try:
                converted.append(_fit(value, declared))
            except (TypeError, ValueError) as e:
                raise TypeError(f"Binding inputs to tf.function failed due to `{e}`. Received args: {args} and kwargs: "
                                f"{kwargs} for signature: {self.text()}.") from None
        return CallArguments((*converted, *args[len(self.declared):]), kwargs)

    def specs(self, leaves: Sequence[CallLeaf]) -> list[TensorSpec] | None:
        """The specs to trace for a call with these tensors; None where they depend on the tensors."""
        if not self.ranked:
            return None
        rest = [TensorSpec.from_tensor(x) for x in leaves[len(self._specs):]]
        return [*self._specs, *rest]

    def text(self) -> str:
        """The declaration as errors show it."""
        names = [] if self._parameters.signature is None else list(self._parameters.signature.parameters)
        names += [f"args_{i}" for i in range(len(names), len(self.declared))]
        return f"({', '.join(f'{n}: {s!r}' for n, s in zip(names, self.declared, strict=False))})"


def _without_spec(parameters: Parameters, count: int) -> str | None:
    """The first argument that calls must give and the first `count` specs are not for; None if there is none."""
    if parameters.signature is None:
        return None
    asked = [p for p in parameters.signature.parameters.values() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if asked and asked[0].name == "self":  # of a method, which is bound to its object later
        del asked[0]
    return next((p.name for n, p in enumerate(asked) if p.default is p.empty and (
        n >= count or p.kind is p.KEYWORD_ONLY)), None)


def _fit(value: PythonValue, declared: Structure) -> PythonValue:
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
    parts = [_fit(v, d) for v, d in zip(have, nest.children(declared), strict=True)]
    return nest.rebuilt(declared if nest.is_composite(value) else value, parts)
