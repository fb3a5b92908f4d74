"""Dtype policies: in which dtype a layer keeps its weights, and in which it computes.

`tf.keras.mixed_precision` builds on this; loss scaling is the optimizers'.
"""

from __future__ import annotations

from typing import Any

import twofold as tf
from twofold._front.api import public
from twofold._front.namespace import publish

from ._settings import floatx
from .configs import config_of

__all__ = ["DTypePolicy", "FloatDTypePolicy", "deserialize", "dtype_policy", "get", "serialize", "set_dtype_policy"]

_MIXED = {"mixed_float16": "float16", "mixed_bfloat16": "bfloat16"}


class DTypePolicy:
    """The dtypes of a layer's weights and of its computation.

    Args:
        name: a dtype's name, for both; or "mixed_bfloat16" or "mixed_float16": weights are float32, the computation
            has the 16-bit dtype. By default the name of the global policy.
    Raises:
        TypeError: the name is not a string.
        ValueError: the name is neither.

    >>> import twofold as tf
    >>> policy = tf.keras.DTypePolicy("mixed_bfloat16")
    >>> policy.compute_dtype, policy.variable_dtype
    ('bfloat16', 'float32')
    """

    def __init__(self, name: str | None = None):
        name = dtype_policy().name if name is None else name
        if not isinstance(name, str):
            raise TypeError(f"'name' must be a string, such as 'mixed_bfloat16'. Received: name={name!r} "
                            f"(of type {type(name)})")
        self._name = name
        if name in _MIXED:
            self._compute_dtype, self._variable_dtype = _MIXED[name], "float32"
        else:
            try:
                self._compute_dtype = self._variable_dtype = tf.as_dtype(name).name
            except TypeError:
                raise ValueError(f"Cannot convert '{name}' to a mixed precision DTypePolicy. Valid policies include "
                                 "'mixed_float16', 'mixed_bfloat16', and the name of any float dtype such as "
                                 "'float32'.") from None

    @property
    def name(self) -> str:
        """The name of the policy."""
        return self._name

    @property
    def compute_dtype(self) -> str:
        """The name of the dtype in which layers compute."""
        return self._compute_dtype

    @property
    def variable_dtype(self) -> str:
        """The name of the dtype of weights."""
        return self._variable_dtype

    @property
    def quantization_mode(self) -> None:
        """None: there are no quantised policies."""
        return None

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal policy."""
        return {"name": self._name}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> DTypePolicy:
        """A policy made from what `get_config` gave."""
        return cls(**config_of(config))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DTypePolicy) and other._name == self._name

    def __hash__(self) -> int:
        return hash(self._name)

    def __repr__(self) -> str:
        return f'<DTypePolicy "{self._name}">'


_known: dict[str, DTypePolicy] = {}
_global: list[DTypePolicy] = []


FloatDTypePolicy = DTypePolicy  # an older name


@public
def dtype_policy() -> DTypePolicy:
    """The policy of layers that are given no dtype.

    >>> import twofold as tf
    >>> tf.keras.config.dtype_policy()
    <DTypePolicy "float32">
    """
    if _global:
        return _global[0]
    return get(floatx())


@public
def set_dtype_policy(policy: Any) -> None:
    """Make `policy` (a policy or its name) the one of layers that are given no dtype; None for the default again."""
    policies = [] if policy is None else [get(policy)]
    _global[:] = policies


@public
def get(identifier: Any) -> DTypePolicy:
    """The policy that `identifier` stands for: a policy, its name, a dtype, a config, or None for the global one.

    Raises:
        ValueError: it stands for no policy.

    >>> import twofold as tf
    >>> tf.keras.dtype_policies.get(tf.float64)
    <DTypePolicy "float64">
    """
    if identifier is None:
        return dtype_policy()
    if isinstance(identifier, DTypePolicy):
        return identifier
    if isinstance(identifier, dict):
        return deserialize(identifier)
    try:
        name = identifier if isinstance(identifier, str) else tf.as_dtype(identifier).name
    except TypeError:
        raise ValueError(f"Expected a dtype, a policy or the name of one; got {identifier!r}.") from None
    named = _known.get(name)
    if named is None:
        named = _known[name] = DTypePolicy(name)
    return named


@public
def serialize(policy: DTypePolicy) -> dict[str, Any]:
    """A policy as plain values."""
    return {"module": "keras", "class_name": "DTypePolicy", "config": policy.get_config(), "registered_name": None}


@public
def deserialize(config: dict[str, Any]) -> DTypePolicy:
    """The policy that `serialize` wrote.

    Raises:
        ValueError: it describes none that is known here.
    """
    name = config.get("class_name")
    if name not in ("DTypePolicy", "Policy", "FloatDTypePolicy") or "name" not in config.get("config", {}):
        raise ValueError(f"Unknown dtype policy: {config!r}. Expected a DTypePolicy with a name.")
    return get(config["config"]["name"])


publish(__name__)
