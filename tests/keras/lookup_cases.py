"""What layers of vocabularies and hashes are compared on."""

from __future__ import annotations

from typing import Any

WORDS = [["cat", "dog", "cat"], ["cat", "dog", "ape"], ["zoo", "bee", "ape"]]
NUMBERS = [[5, 3, 5], [7, 5, 3]]
TEXTS = ["The cat sat.", "The dog, sat!", "A cat? a CAT", "Don't-stop x_y", "Ünï d'été"]

#: the layer, its settings, what it adapts to (None where it has a vocabulary, or needs none), and its input
CASES: list[tuple[str, dict[str, Any], Any, Any]] = [
    *[("StringLookup", settings, WORDS, given) for settings in (
        {}, {"mask_token": ""}, {"num_oov_indices": 2}, {"num_oov_indices": 3, "mask_token": ""}, {"max_tokens": 3},
        {"output_mode": "multi_hot"}, {"output_mode": "count"}, {"output_mode": "tf_idf"}, {"oov_token": "OOV"},
        {"output_mode": "tf_idf", "max_tokens": 4}, {"num_oov_indices": 4, "salt": [133, 137]},
        {"output_mode": "count", "max_tokens": 9, "pad_to_max_tokens": True}, {"num_oov_indices": 4, "salt": 5},
        {"output_mode": "multi_hot", "mask_token": ""}) for given in ([["dog", "fox", "cat"], ["", "ape", "cow"]],)],
    ("StringLookup", {"output_mode": "one_hot"}, WORDS, ["dog", "fox"]),
    ("StringLookup", {"output_mode": "one_hot"}, WORDS, [["dog"], ["fox"]]),
    ("StringLookup", {"output_mode": "count"}, WORDS, "dog"),
    ("StringLookup", {}, WORDS, "dog"),
    ("StringLookup", {"vocabulary": ["[UNK]", "a", "b"]}, None, ["b", "z"]),
    ("StringLookup", {"vocabulary": ["", "[UNK]", "a"], "mask_token": ""}, None, ["a", "", "q"]),
    ("StringLookup", {"vocabulary": ["a", "b"], "num_oov_indices": 0}, None, ["b", "a"]),
    ("StringLookup", {"vocabulary": ["a", "b"], "idf_weights": [0.5, 2.0], "output_mode": "tf_idf"}, None,
     [["a", "b", "b", "z"]]),
    ("StringLookup", {"vocabulary": ["a", "b"], "invert": True}, None, [0, 1, 2, 7]),
    ("StringLookup", {"vocabulary": ["a", "b"], "invert": True, "mask_token": ""}, None, [0, 1, 2, 3]),
    *[("IntegerLookup", settings, NUMBERS, [[5, 9, 3], [0, 7, -1]]) for settings in (
        {}, {"mask_token": 0}, {"num_oov_indices": 3}, {"num_oov_indices": 3, "oov_method": "farmhash"},
        {"output_mode": "multi_hot"}, {"output_mode": "count"}, {"output_mode": "tf_idf"}, {"max_tokens": 3})],
    ("IntegerLookup", {"vocabulary": [4, 9], "invert": True}, None, [0, 1, 2, 5]),
    *[("Hashing", settings, None, [["A"], ["B"], ["a long string of more than sixteen bytes"], [""]]) for settings in (
        {"num_bins": 3}, {"num_bins": 10, "mask_value": ""}, {"num_bins": 10, "salt": 133},
        {"num_bins": 10, "salt": [133, 137]}, {"num_bins": 5, "output_mode": "one_hot"},
        {"num_bins": 5, "output_mode": "multi_hot"})],
    ("Hashing", {"num_bins": 7}, None, [[1], [2], [-5], [12345678901]]),
    ("Hashing", {"num_bins": 7, "mask_value": 1}, None, [[1], [2]]),
    *[("TextVectorization", settings, TEXTS, ["the cat ran away", "dog ünï"]) for settings in (
        {}, {"output_sequence_length": 3}, {"output_sequence_length": 6}, {"max_tokens": 4}, {"standardize": None},
        {"standardize": "lower"}, {"standardize": "strip_punctuation"}, {"split": "character"}, {"split": None},
        {"ngrams": 2}, {"ngrams": (2,)}, {"ngrams": (1, 3)}, {"output_mode": "multi_hot"}, {"output_mode": "count"},
        {"output_mode": "tf_idf"}, {"output_mode": "tf_idf", "ngrams": 2},
        {"output_mode": "count", "max_tokens": 30, "pad_to_max_tokens": True})],
    ("TextVectorization", {"vocabulary": ["cat", "dog"]}, None, [["dog cat"], ["dog dog zoo"]]),
    ("TextVectorization", {"vocabulary": ["cat", "dog"], "output_mode": "tf_idf", "idf_weights": [0.5, 0.7]}, None,
     ["dog cat"]),
    ("TextVectorization", {"output_mode": "multi_hot"}, TEXTS, "the cat"),
    ("TextVectorization", {}, TEXTS, ["", ""]),
]

#: bytes of all lengths at which the hashes take another way
BYTES = [bytes((size * 7 + n * 13) % 251 for n in range(size)) for size in (
    0, 1, 3, 4, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 300)]
BUCKETS = 2**62
KEY = (133, 137)
