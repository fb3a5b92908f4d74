"""Raw ops of TensorFlow by theme: rows that stand for one call, and functions for those that take more than that."""
