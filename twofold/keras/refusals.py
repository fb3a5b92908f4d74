"""A first call that is refused leaves a layer as it was: nothing of it is built, and what was drawn is given back.

Building makes weights and draws their first values. Where the call that had to build is refused after all, a layer that
stayed built would be one for inputs that it never took.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import twofold as tf
from twofold._front.api import refusable
from twofold._front.together import making
from twofold.tracking import Trackable

from .layer_state import within

__all__ = ["unbuilt_if_refused", "shared_by_now"]


class _Snapshot:
    """What a layer is made of: its own attributes, those that hold variables or layers, and what is in those.

    What else the user's methods have set is theirs: they may look at it after an error.
    """

    def __init__(self, layer: Any) -> None:
        self.own = vars(layer)
        self.attributes = dict(self.own)
        self.contents = {name: copy.copy(value) for name, value in self.own.items() if type(value) in (list, dict)}

    def restore(self) -> None:
        before, own = self.attributes, self.own
        for name in [*before, *[name for name in own if name not in before]]:
            if not (_is_own(name) or _holds_state(own.get(name)) or _holds_state(before.get(name))):
                continue
            if name in self.contents:
                value = before[name]
                value.clear()
                value.extend(self.contents[name]) if type(value) is list else value.update(self.contents[name])
            if name in before:
                own[name] = before[name]
            else:
                del own[name]


def _is_own(name: str) -> bool:
    return name.startswith("_") or name in ("built", "input_spec", "activity_regularizer", "supports_masking")


def _holds_state(value: Any) -> bool:
    return isinstance(value, (tf.Variable, Trackable)) or next(within(value), None) is not None


@contextmanager
def unbuilt_if_refused(*layers: Any) -> Iterator[None]:
    """A block that builds layers: where it raises, they and the layers within are what they were.

    A layer that another thread has called meanwhile stays as it is: see `shared_by_now`.
    """
    everything = {id(x): x for layer in layers for x in layer._flatten_layers()}
    before = [_Snapshot(layer) for layer in everything.values()]
    first = [layer for layer in layers if "_building_thread" not in vars(layer)]  # others are in such a block already
    for layer in first:
        vars(layer)["_building_thread"] = threading.get_ident()
    with refusable():
        try:
            yield
        except BaseException:  # also where the user interrupts it: what is half built is of no use
            with making:
                if all("_building_thread" in vars(layer) for layer in layers):
                    for snapshot in before:
                        snapshot.restore()
            raise
        finally:
            for layer in first:
                vars(layer).pop("_building_thread", None)


def shared_by_now(layer: Any) -> None:
    """Note that a thread calls a layer which is built: where another has built it, that one must leave it so."""
    own = vars(layer)
    if own.get("_building_thread", threading.get_ident()) != threading.get_ident():
        del own["_building_thread"]
