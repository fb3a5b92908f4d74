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

from twofold._front.api import refusable
from twofold._front.together import making

__all__ = ["unbuilt_if_refused", "shared_by_now"]


class _Snapshot:
    """The attributes of a layer, and what the lists and dicts among them hold."""

    def __init__(self, layer: Any) -> None:
        self.own = vars(layer)
        self.attributes = dict(self.own)
        self.contents = [(value, copy.copy(value)) for value in self.own.values() if type(value) in (list, dict)]

    def restore(self) -> None:
        self.own.clear()
        self.own.update(self.attributes)
        for value, content in self.contents:
            value.clear()
            value.extend(content) if type(value) is list else value.update(content)


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
        except Exception:
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
