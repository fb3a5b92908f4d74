"""Elements on a GPU: copied there ahead, while what uses those before is at work.

The copies are the last that happens to elements (`Node.start_last`): whatever step follows reads elements on the host,
and gets them from there.
"""

from __future__ import annotations

from typing import Any

from twofold._front import iteration as engine

from ._node import Node
from ._parallel import mapped_in_parallel, prefetched
from ._stream import Run, Stream
from ._structure import Item
from ._value import is_dataset

__all__ = ["OnDevice"]


class OnDevice(Node):
    """The elements, on a device.

    Attributes:
        device: its name.
    """

    name = "OnDevice"

    def __init__(self, source: Node, device: str) -> None:
        self.source, self.form, self.device = source, source.form, device

    def cardinality(self) -> int:
        return self.source.cardinality()

    def start(self, run: Run) -> Stream:
        return self.source.start(run)

    def start_last(self, run: Run, room: int = 1) -> Stream:
        """See `Node.start_last`; `room` is how many elements are copied ahead at most."""
        sender = engine.sender_to(self.device)
        source = self.source.start(run)
        return source if sender is None else _Sent(prefetched(source, room), sender, room)


class _Sent(Stream):
    """The items of a stream, on a GPU."""

    def __init__(self, source: Stream, sender: Any, room: int) -> None:
        self.sender = sender
        self.input = mapped_in_parallel(source, sender.send, 1, True, room=room)

    def next(self) -> Item | None:
        flight = self.input.next()
        return None if flight is None else flight.arrive()

    def save(self) -> Any:
        state = self.input.save()
        return state | {"items": [tuple(map(_on_host, flight.arrive())) for flight in state["items"]]}

    def load(self, state: Any) -> None:
        self.input.load(state | {"items": [self.sender.send(item) for item in state["items"]]})


def _on_host(leaf: Any) -> Any:
    return leaf if is_dataset(leaf) else engine.on_host(leaf)
