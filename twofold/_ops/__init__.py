"""The functions of tensors that the public modules collect, composed of ops.

Owns what TensorFlow's functions compute. Leaves arguments, conversion and control flow to `_front`, and declarations
to the engine. `tf.math`, `tf.nn`, `tf.linalg` and their like say which names are whose.
"""
