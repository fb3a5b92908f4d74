"""Writes `data/peer.npz`: what TensorFlow gives for the calls of `peer_cases.py`.

Run it with a Python that has TensorFlow: `python tests/front/make_peer_reference.py`. The tests read what it wrote and
need it not.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import tensorflow as tf
from peer_cases import CASES

HERE = Path(__file__).resolve().parent


def main() -> None:
    """Ask TensorFlow, and write."""
    stored = {}
    for name, (call, arrays) in CASES.items():
        for number, result in enumerate(tf.nest.flatten(call(tf, *map(tf.constant, arrays)))):
            stored[f"{name}/{number}"] = np.asarray(result)
    np.savez_compressed(HERE / "data" / "peer.npz", **stored)


if __name__ == "__main__":
    main()
