"""A version of a model as the server uses it: functions that take and give arrays under names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from twofold.ir.dtypes import DType

__all__ = ["DEFAULT", "Function", "Servable", "TensorInfo"]

DEFAULT = "serving_default"
Arrays = Sequence[np.ndarray[Any, Any]]


@dataclass(frozen=True)
class TensorInfo:
    """An input or an output; unknown sizes are None, and `dims` is None where the rank is unknown, too."""

    name: str
    dtype: DType
    dims: tuple[int | None, ...] | None

    @property
    def text(self) -> str:
        """dtype and shape for messages."""
        if self.dims is None:
            return f"{self.dtype.name} of any shape"
        return f"{self.dtype.name}[{', '.join('?' if d is None else str(d) for d in self.dims)}]"


@dataclass(eq=False)
class Function:
    """A signature.

    Attributes:
        inputs, outputs: its tensors.
        run: gives arrays for arrays, in these orders; any number of threads may call it.
        joins: whether requests may be joined along axis 0: each row of each result is made of that row of the inputs.
    """

    inputs: list[TensorInfo]
    outputs: list[TensorInfo]
    run: Callable[[Arrays], list[np.ndarray[Any, Any]]]
    joins: bool


@dataclass(eq=False)
class Servable:
    """All signatures of a version, by name."""

    functions: Mapping[str, Function]
    kind: str

    def default(self) -> str | None:
        """The signature that is meant where a request names none: `serving_default`, or the only one there is."""
        if DEFAULT in self.functions or len(self.functions) != 1:
            return DEFAULT if DEFAULT in self.functions else None
        return next(iter(self.functions))
