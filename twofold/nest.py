"""`tf.nest`: nested structures of tensors and other leaves."""

from twofold._front.api import public
from twofold._front.namespace import publish
from twofold.ir import nest as _nest

assert_same_structure = public(_nest.assert_same_structure)
flatten = public(_nest.flatten)
is_nested = public(_nest.is_nested)
map_structure = public(_nest.map_structure)
pack_sequence_as = public(_nest.pack)

__all__ = ["assert_same_structure", "flatten", "is_nested", "map_structure", "pack_sequence_as"]

publish(__name__)
