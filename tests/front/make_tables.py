"""Writes `data/tables/`, a checkpoint of tables: run where TensorFlow 2.21 is installed."""

from __future__ import annotations

from pathlib import Path

import tensorflow as tf

table = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)
table.insert(tf.constant(["a", "b"]), tf.constant([1, 2], tf.int64))
dense = tf.lookup.experimental.DenseHashTable(tf.string, tf.int64, -1, "", "$", initial_num_buckets=4)
dense.insert(tf.constant(["c", "d"]), tf.constant([3, 4], tf.int64))
dense.remove(tf.constant(["d"]))
tf.train.Checkpoint(table=table, dense=dense).save(str(Path(__file__).parent / "data" / "tables" / "c"))
