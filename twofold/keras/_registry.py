"""The registry through which files of `tf.keras` use definitions of files above them: these provide, those ask.

The operators of a `KerasTensor` are functions of `tf.keras.ops`, whose files stand on `KerasTensor`; reading a config
makes layers and models, whose files stand on reading. This module imports nothing of Keras, and `tf.keras` itself says
where each part comes from. The parts:

- ``module``: the public module of `tf.keras` of a path such as `("optimizers", "schedules")`.
- ``operations``: the functions of `tf.keras.ops` by name.
- ``operation_class``: the layer class of one of them, by the module and the class that configs name.
- ``older_backend``: the functions that `tf.keras.backend` had before `tf.keras.ops`, by name.
- ``TFOpLambda``, ``Functional``: classes that are not public and that configs name.
"""

from __future__ import annotations

from twofold._front.registry import Registry

__all__ = ["ask", "expect", "provide"]

_parts = Registry()
ask, expect, provide = _parts.ask, _parts.expect, _parts.provide
