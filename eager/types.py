"""The names of types that signatures of eager execution share. It owns no behaviour.

What every mode shares, such as specs and attributes, is named in `ir/types.py`. A user's Python value, which may be
anything, is an `object`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

from twofold.ir.dtypes import DType
from twofold.ir.types import AnyTensor

from .tensor import Tensor

__all__ = ["AnyVariable", "Args", "Key", "Kwargs", "Nest", "Readable", "Saved", "Vjp"]


class AnyVariable(Protocol):
    """A variable, as recorders and conversion see it; its class is made above them."""

    _value: Tensor
    _order: int
    _trainable: bool

    @property
    def dims(self) -> tuple[int, ...]: ...

    @property
    def dtype(self) -> DType: ...

    @property
    def name(self) -> str: ...

    @property
    def trainable(self) -> bool: ...

    def _read_tensor(self) -> Tensor: ...

    def _current(self) -> Tensor: ...

    def _kept_tensor(self) -> Tensor: ...

    def _kept(self) -> Tensor: ...


Readable: TypeAlias = Tensor | AnyVariable
# A tensor or variable, or tuples, lists, dicts and their like of these; a result has the structure of an argument.
Nest: TypeAlias = Any
Key: TypeAlias = Any  # what stands in square brackets: a part or a tuple of parts, as `indexing.py` says
Saved: TypeAlias = Any  # of an operand or result: the tensor, or its `TensorSpec` where no rule reads the value

Args: TypeAlias = tuple[object, ...]  # of a call by a user
Kwargs: TypeAlias = dict[str, object]

# A gradient rule of its own: `vjp(cts)` gives a cotangent for each input from those of the outputs; for further forms
# see `record.record_custom`.
Vjp: TypeAlias = Callable[..., Sequence[AnyTensor | None]]
