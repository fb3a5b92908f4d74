"""Small data sets to learn with (`tf.keras.datasets`), downloaded once and kept in `~/.keras/datasets`.

Each is a module with `load_data`, which gives NumPy arrays `(x_train, y_train), (x_test, y_test)`. `_sources.py` has
the addresses and checksums, `_plain.py` reads the formats that could hold any object without making others than lists,
dicts, numbers, strings and arrays.
"""

from __future__ import annotations

from twofold._front.namespace import publish

from . import boston_housing, california_housing, cifar10, cifar100, fashion_mnist, imdb, mnist, reuters

__all__ = ["boston_housing", "california_housing", "cifar10", "cifar100", "fashion_mnist", "imdb", "mnist", "reuters"]

publish(__name__)
