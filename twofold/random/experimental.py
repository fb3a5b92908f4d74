"""`tf.random.experimental`: generators under their older names, and seeds and orders without state."""

from __future__ import annotations

from twofold._front.namespace import publish
from twofold._ops.random_generator import (
    Algorithm,
    Generator,
    create_rng_state,
    get_global_generator,
    set_global_generator,
)
from twofold._ops.random_stateless import fold_in as stateless_fold_in
from twofold._ops.random_stateless import index_shuffle, stateless_shuffle
from twofold._ops.random_stateless import split as stateless_split

__all__ = ["Algorithm", "Generator", "create_rng_state", "get_global_generator", "index_shuffle",
           "set_global_generator", "stateless_fold_in", "stateless_shuffle", "stateless_split"]

publish(__name__)
