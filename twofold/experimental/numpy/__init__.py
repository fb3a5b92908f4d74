"""`tf.experimental.numpy`: NumPy's functions on tensors, and tensors that behave as NumPy's arrays.

Values are tensors, arrays, numbers and lists; what comes out are tensors. Dtypes meet as `_rules.py` tells: as NumPy's
by default. The functions run in `tf.function` and under tapes as all others do.

>>> import twofold as tf
>>> tf.experimental.numpy.add([1, 2], 0.5)
<tf.Tensor: shape=(2,), dtype=float64, numpy=array([1.5, 2.5])>
"""

from __future__ import annotations

from twofold._front.namespace import publish

from . import _arrays, _creation, _elementwise, _enabling, _pairs, _picking, _products, _reductions, _types, random

__all__: list[str] = ["random"]
for _module in (_arrays, _creation, _elementwise, _enabling, _pairs, _picking, _products, _reductions, _types):
    for _name in _module.__all__:
        globals()[_name] = getattr(_module, _name)
        __all__.append(_name)
__all__.sort()

publish(__name__)
