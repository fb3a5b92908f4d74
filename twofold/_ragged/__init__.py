"""Ragged tensors: values with rows of different lengths, what public functions do with them, and `tf.ragged`.

`row_partition.py` says how a tensor is cut into rows, `ragged_tensor.py` what a ragged tensor is; the others are
functions on ragged tensors, made of functions on the dense tensors that these consist of. They are loaded together,
when a ragged tensor is first asked for.
"""
