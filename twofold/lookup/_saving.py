"""Tables in saved models: what is written of one, and the table that is made of it again."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._contents import Forbidden
from ._tables import StaticHashTable, Table
from .experimental import DenseHashTable, MutableHashTable

__all__ = ["described", "revived"]

_FORMS: dict[type, str] = {StaticHashTable: "static", MutableHashTable: "mutable", DenseHashTable: "dense"}


def described(table: Table) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What files say of a table, and its arrays by name."""
    contents = table._contents
    keys, values = contents.export()
    arrays = {"keys": keys, "values": values, "default": np.asarray(table._default)}
    if isinstance(contents, Forbidden):
        arrays.update(empty_key=contents.empty_key, deleted_key=contents.deleted_key)
    return {"form": _FORMS[type(table)], "name": table.name, "checkpoint": getattr(table, "_checkpoint", False),
            "key_dtype": contents.key_dtype.name, "value_dtype": contents.value_dtype.name}, arrays


def revived(form: str, name: str | None, checkpoint: bool, arrays: dict[str, np.ndarray]) -> Table:
    """The table that was written.

    Raises:
        InvalidArgumentError, FailedPreconditionError, ValueError: the arrays are those of no table.
    """
    keys, values, default = arrays["keys"], arrays["values"], arrays["default"]
    if form == "static":
        from ._initializers import KeyValueTensorInitializer
        return StaticHashTable(KeyValueTensorInitializer(keys, values), default, name)
    from twofold._front.iteration import dtype_of
    made: Any
    dtypes = dtype_of(keys), dtype_of(values)
    if form == "mutable":
        made = MutableHashTable(*dtypes, default, name or "", checkpoint)
    else:
        made = DenseHashTable(*dtypes, default, arrays["empty_key"], arrays["deleted_key"], None, name or "",
                              checkpoint)
    made._contents.insert(keys, values)
    return made
