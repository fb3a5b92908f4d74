"""Versions of the set of ops that saved graphs are made of, and what reads older ones.

Graphs are written in the ops of the newest version, with every attribute spelt out, so that a changed default changes
no saved model. When an op loses its name, an operand, an attribute or its meaning, the version goes up by one and
`READERS` gets an entry for the version before: a function that brings the text of a graph to the next version. A graph
goes through the entries of all versions from its own on. Ops that are added need none. Nor do attributes with a
default, which are named in `LATER`: where they are at it they are not written, and older versions of the package, which
do not know them, read the graph.

`tests/saved_model/data/op_set_N.json` keeps the signatures of version N's ops; a test compares them with the
registry, so that no change of an op goes by without a decision.
"""

from __future__ import annotations

from collections.abc import Callable

from twofold.ir.precision import EXACT
from twofold.ir.types import Attr

__all__ = ["CURRENT", "LATER", "READERS", "to_current"]

CURRENT = 1

#: attributes that ops have got since graphs of CURRENT are written, and the value that a graph without them means
LATER: dict[str, Attr] = {"precision": EXACT}

#: version -> what brings the text of a graph of that version to the next one
READERS: dict[int, Callable[[str], str]] = {}


def to_current(text: str, version: int) -> str:
    """The text of a graph in the ops of the newest version.

    Args:
        text: of the graph.
        version: of the ops that it is made of, at most CURRENT.
    """
    for number in range(version, CURRENT):
        text = READERS[number](text)
    return text
