"""The functions of `tf.keras.ops` that have NumPy's names, as a module of their own."""

from __future__ import annotations

from twofold._front.namespace import publish

from . import _arrays, _creation, _elementwise, _order, _pairs, _picking, _products, _reductions, core, linalg

__all__: list[str] = []
for _module in (_arrays, _creation, _elementwise, _order, _pairs, _picking, _products, _reductions):
    for _name in _module.__all__:
        globals()[_name] = getattr(_module, _name)
        __all__.append(_name)
for _name, _module in (("slogdet", linalg), ("vectorize", core)):
    globals()[_name] = getattr(_module, _name)
    __all__.append(_name)
__all__.sort()

publish(__name__)
