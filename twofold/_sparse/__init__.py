"""Sparse tensors: values at coordinates, and functions on them, which `tf.sparse` shows.

`sparse_tensor.py` says what a sparse tensor is; the others are functions on sparse tensors, made of functions on the
dense tensors that these consist of. They are loaded together, when a sparse tensor is first asked for.
"""
