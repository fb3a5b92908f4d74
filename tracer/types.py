"""Names of types that signatures in this room share: functions and values of the user's, calls, and tensors of traces.

Aliases alone: a class is its own name. Those of ops are `ir/types.py`'s.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from twofold.eager.tensor import Tensor
from twofold.eager.types import Args, Kwargs
from twofold.eager.variable import Variable
from twofold.ir.dims import DimLike
from twofold.runtime.native_layout import PythonFunction

__all__ = ["Args", "Backward", "CallForm", "Captured", "Cotangent", "InputSpec", "Kwargs", "Operands", "PythonFunction",
           "PythonValue", "Sizes", "Structure", "Values"]

#: any value of the user's program: a tensor, a variable, a number, a container of such, or any other object
PythonValue: TypeAlias = object

#: a nest of tensors, as a function takes or gives it: a tensor, or containers of tensors and Python values
Structure: TypeAlias = object

#: the values of several variables in their order, each of a kind of its own
Values: TypeAlias = list[Any]

#: the arguments of a call
CallForm: TypeAlias = tuple[Args, Kwargs]

#: the operands of an op as it is called with them: tensors, and what converts to them
Operands: TypeAlias = tuple[Any, ...]

#: the values of unknown sizes, by the names of their symbols
Sizes: TypeAlias = dict[str, DimLike]

#: the spec of an input of a trace: a `TensorSpec` whose rank is known, of which its type does not tell
InputSpec: TypeAlias = Any

#: a tensor or variable from outside that a trace reads
Captured: TypeAlias = Tensor | Variable

#: the gradient that comes back for a value; None where none does
Cotangent: TypeAlias = Tensor | None

#: the gradient of a function: from a cotangent for each result to one for each input
Backward: TypeAlias = Callable[[list[Cotangent]], list[Cotangent]]
