"""The name `tensorflow` for twofold: importing this module lets programs that say `import tensorflow` run on it.

>>> import twofold.as_tensorflow
>>> import tensorflow as tf
>>> from tensorflow.keras import layers
>>> tf.reduce_sum(tf.ones([2, 3]))
<tf.Tensor: shape=(), dtype=float32, numpy=6.0>

It comes before the first import of what needs TensorFlow. `twofold run program.py` does the same for a program and
for the processes that it starts, without a change of the program.

`naming.py` finds the modules, `internal.py` is `tf.__internal__`, `private.py` has the private modules that libraries
import. docs/tensorflow.md says what programs meet.
"""

from __future__ import annotations

from .naming import install
from .version import VERSION

__all__ = ["VERSION", "install"]

install()
