"""`tf.keras.ops`: Keras 3's functions of tensors, with its arguments, defaults and rules for dtypes.

They take tensors, variables, arrays and numbers, in and out of a `tf.function`, and give tensors. Dtypes meet as
`keras/promotion.py` tells: integers and floats in a float, and Python numbers give way to tensors. Called with a
KerasTensor a function becomes a layer of the functional model, which is saved as Keras 3 saves it
(`keras/keras_ops.py`).

The modules below have the functions: `_elementwise.py` and `_pairs.py` those of one and two tensors element by element,
`_reductions.py`, `_arrays.py`, `_picking.py`, `_creation.py`, `_order.py` and `_products.py` the others with NumPy's
names; `core.py`, `math.py`, `nn.py` (with `_activations.py` and `_windows.py`), `linalg.py`, `image.py` and
`_rearrange.py` those that Keras has beside them. All are thin: kernels, gradients and shape rules are those of `tf`.

>>> import twofold as tf
>>> tf.keras.ops.add(tf.constant([1, 2]), 0.5).numpy().tolist()
[1.5, 2.5]
"""

from __future__ import annotations

from twofold._front.namespace import publish

from .. import _registry
from . import _composites, _rearrange, core, image, linalg, math, nn, numpy

__all__: list[str] = ["image", "linalg", "nn", "numpy"]
for _module in (_rearrange, core, linalg, math, nn, numpy):
    for _name in _module.__all__:
        if _name not in __all__:
            globals()[_name] = getattr(_module, _name)
            __all__.append(_name)
__all__.sort()
_registry.provide("operations", {_name: globals()[_name] for _name in __all__})
_composites.register(_registry.ask("operations"))

publish(__name__)
