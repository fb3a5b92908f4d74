"""Writes `data/lookups.json`: what Keras 3 gives for `lookup_cases`, and TensorFlow's hashes.

Run it with a Python that has TensorFlow and Keras 3: `python tests/keras/make_lookup_reference.py`.
"""

from __future__ import annotations

import json
import pathlib

import keras
import numpy as np
import tensorflow as tf
from lookup_cases import BUCKETS, BYTES, CASES, KEY


def plain(value):
    if isinstance(value, list):
        return [plain(v) for v in value]
    return value.decode() if isinstance(value, bytes) else value


def main() -> None:
    actual = []
    for name, settings, data, given in CASES:
        layer = getattr(keras.layers, name)(**settings)
        if data is not None:
            layer.adapt(data if name == "TextVectorization" else np.array(data))
        output = layer(tf.constant(given))
        vocabulary = np.asarray(layer.get_vocabulary()).tolist() if name != "Hashing" else None
        actual.append({"output": plain(output.numpy().tolist()), "dtype": output.dtype.name, "vocabulary": vocabulary})
    hashes = {"fingerprint": [int(x) for x in tf.strings.to_hash_bucket_fast(BYTES, BUCKETS)],
              "keyed": [int(x) for x in tf.strings.to_hash_bucket_strong(BYTES, BUCKETS, list(KEY))]}
    lines = ",\n".join(json.dumps(entry) for entry in actual)
    text = f'{{"cases": [\n{lines}\n],\n"hashes": {json.dumps(hashes)}}}\n'
    (pathlib.Path(__file__).parent / "data" / "lookups.json").write_text(text)


if __name__ == "__main__":
    main()
