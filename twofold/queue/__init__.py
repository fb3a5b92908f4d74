"""`tf.queue`: queues of tensors, through which threads hand one another elements.

Elements lie in host memory (`_elements.py`), and Python puts and takes them, also while a compiled function runs.
"""

from __future__ import annotations

from twofold._front.namespace import publish

from ._queues import FIFOQueue, PaddingFIFOQueue, PriorityQueue, QueueBase, RandomShuffleQueue

__all__ = ["FIFOQueue", "PaddingFIFOQueue", "PriorityQueue", "QueueBase", "RandomShuffleQueue"]


publish(__name__)
