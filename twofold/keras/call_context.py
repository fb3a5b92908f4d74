"""The state of a call that layers within it share: the training flag, the outermost layer, and masks.

A mask goes with a tensor from the layer that makes it to the next layer that takes one; it is held here, beside the
tensor and as long as it lives.
"""

from __future__ import annotations

import contextvars
import weakref
from typing import Any

import twofold as tf
from twofold._front.api import public

__all__ = ["CallContext", "current", "entered", "get_mask", "learning_phase", "left", "masks", "set_learning_phase",
           "set_mask"]


class CallContext:
    """One call of a layer that others may be called in.

    Attributes:
        layer: the layer called first.
        training: the flag for layers that are given none.
        saving: whether the call is traced for a saved model.
    """

    __slots__ = ("layer", "training", "saving")

    def __init__(self, layer: Any, training: Any, saving: bool = False):
        self.layer, self.training, self.saving = layer, training, saving


_current: contextvars.ContextVar[CallContext | None] = contextvars.ContextVar("keras_call", default=None)
current = _current.get
entered = _current.set
left = _current.reset

_phase: list[Any] = [None]


@public
def learning_phase() -> Any:
    """The training flag where neither the call nor a layer around it says one; None when nobody has set it."""
    return _phase[0]


@public
def set_learning_phase(value: Any) -> None:
    """Set the training flag for calls that say none: 1 or True for training, 0 or False for inference, None to unset.

    Raises:
        ValueError: it is another value.
    """
    if value not in (0, 1, None):
        raise ValueError(f"Expected learning phase to be 0 or 1; got {value!r}.")
    _phase[0] = None if value is None else bool(value)


masks: dict[int, tuple[Any, Any]] = {}  # by the identity of a tensor: a weak reference to it, and its mask


def set_mask(tensor: Any, mask: Any) -> None:
    """Let `mask` go with `tensor`; None takes a mask away."""
    key = id(tensor)
    if mask is None:
        masks.pop(key, None)
        return
    masks[key] = weakref.ref(tensor, lambda _: masks.pop(key, None)), mask


def get_mask(tensor: Any) -> Any:
    """The mask that goes with a tensor, or None."""
    if not masks:
        return None
    entry = masks.get(id(tensor))
    return entry[1] if entry is not None and entry[0]() is tensor else None


# the name under which Keras's guides read the mask of a layer's output
tf.Tensor._keras_mask = property(get_mask, set_mask)  # type: ignore[attr-defined]
