"""`tf.data`: input pipelines made of simple parts; see docs/data.md.

A dataset is a chain of nodes (`_node.py`), each a step. Iterating starts streams (`_stream.py`), which pass flat items
of NumPy arrays, or positions of rows, to one another; users see tensors. The rooms of the engine are reached through
`twofold/_front/iteration.py` alone.
"""

from __future__ import annotations

from twofold._front.namespace import publish

from . import experimental
from ._node import INFINITE as INFINITE_CARDINALITY
from ._node import UNKNOWN as UNKNOWN_CARDINALITY
from ._parallel import AUTOTUNE
from ._structure import DatasetSpec
from .dataset import Dataset
from .file_datasets import FixedLengthRecordDataset, TextLineDataset, TFRecordDataset
from .iterator import Iterator, IteratorSpec, NumpyIterator
from .options import Options, ThreadingOptions

__all__ = ["AUTOTUNE", "Dataset", "DatasetSpec", "FixedLengthRecordDataset", "INFINITE_CARDINALITY", "Iterator",
           "IteratorSpec", "NumpyIterator", "Options", "TFRecordDataset", "TextLineDataset", "ThreadingOptions",
           "UNKNOWN_CARDINALITY", "experimental"]


publish(__name__)
