"""`tf.lookup`: tables of keys and values, for eager code, compiled functions and pipelines.

What a table holds lies in host memory (`_contents.py`), and kernels look keys up (`_index.py`): Python calls them, also
while a compiled function runs.
"""

from __future__ import annotations

from twofold._front.namespace import publish

from . import experimental
from ._initializers import KeyValueTensorInitializer, TextFileIndex, TextFileInitializer
from ._tables import StaticHashTable, StaticVocabularyTable

__all__ = ["KeyValueTensorInitializer", "StaticHashTable", "StaticVocabularyTable", "TextFileIndex",
           "TextFileInitializer", "experimental"]


publish(__name__)
