"""Reading `saved_model.pb`: the graphs of a file, and the one among them that has certain tags."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from twofold._formats.reading import opened, reads
from twofold.ir.errors import NotFoundError

from .graphs import Body, Library, Source, body_of, library_of
from .messages import Message
from .tensors import Room

__all__ = ["FILE", "MetaGraph", "read_meta_graph"]

FILE = "saved_model.pb"
_SERVE = "serve"
_MOST = 1 << 31  # bytes of a protocol buffer


@dataclass(eq=False, slots=True)
class MetaGraph:
    """What a file holds.

    Attributes:
        path: of the folder.
        message: the `MetaGraphDef`.
        library: its functions.
        graph: the nodes of its own graph, as bytes.
        room: what may be made of it.
    """

    path: str
    message: Message
    library: Library
    graph: list[Any]
    room: Room

    def body(self, outputs: Sequence[Source]) -> Body:
        """The graph of the file itself."""
        return body_of(self.graph, outputs, self.room)

    def assets(self) -> list[str]:
        """The paths of the files that belong to it.

        Raises:
            ValueError: a name leads out of the folder.
        """
        names = [entry.text(2) for entry in self.message.messages(6)]
        if any(os.path.isabs(n) or ".." in n.replace("\\", "/").split("/") or not n or "\0" in n for n in names):
            raise ValueError("the name of an asset leads out of the folder")
        return [os.path.join(self.path, "assets", name) for name in names]


def read_meta_graph(folder: str, tags: Any = None) -> MetaGraph:
    """The graph of a folder that has these tags.

    Args:
        folder: that holds `saved_model.pb`.
        tags: a text, or several; None for the only graph, or the one that is served.
    Raises:
        NotFoundError: there is no file, or no such graph. DataLossError: the file is damaged.
    """
    path = os.path.join(folder, FILE)
    with opened(path) as file, reads(path):
        data = file.read(_MOST)
    with reads(path):
        room = Room(len(data))
        graphs = [Message(part) for part in Message(memoryview(data)).all(2)]
        chosen = _tagged(graphs, tags, path)
        definition = chosen.message(2)
        return MetaGraph(folder, chosen, library_of(definition.message(2), room), definition.all(1), room)


def _tagged(graphs: list[Message], tags: Any, path: str) -> Message:
    known = [frozenset(graph.message(1).texts(4)) for graph in graphs]
    if tags is None:
        wanted = known[0] if len(graphs) == 1 else frozenset({_SERVE})
    else:
        wanted = frozenset([tags] if isinstance(tags, str) else tags)
    if wanted not in known:
        shown = ", ".join([str(sorted(tags_)) for tags_ in known])
        raise NotFoundError(None, None, f"{path} has no graph with the tags {sorted(wanted)}; there are: {shown}")
    return graphs[known.index(wanted)]
