"""Datasets as values, for the modules below `tf.data.Dataset`.

Elements may hold datasets, as windows do, and steps may be given some. `dataset.py` provides the class.
"""

from __future__ import annotations

from typing import Any

from twofold._front.registry import Registry

__all__ = ["DatasetValue", "dataset_class", "dataset_from", "is_dataset", "provide"]

_parts = Registry()
provide = _parts.provide


class DatasetValue:
    """The base of `tf.data.Dataset`, by which datasets are told from other values."""

    _node: Any


def dataset_class() -> Any:
    """`tf.data.Dataset`."""
    return _parts.ask("Dataset")


def dataset_from(node: Any) -> Any:
    """A dataset whose last step is `node`."""
    return _parts.ask("Dataset")(node)


def is_dataset(value: Any) -> bool:
    """Whether `value` is a dataset."""
    return isinstance(value, DatasetValue)
