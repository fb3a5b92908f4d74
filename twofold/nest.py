"""`tf.nest`: nested structures of tensors and other leaves."""

from twofold._namespace import publish
from twofold.ir.nest import assert_same_structure, flatten, is_nested, map_structure
from twofold.ir.nest import pack as pack_sequence_as

__all__ = ["assert_same_structure", "flatten", "is_nested", "map_structure", "pack_sequence_as"]

publish(__name__)
