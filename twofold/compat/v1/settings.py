"""Messages with which TensorFlow 1's sessions are configured: anything can be set in them, and nothing comes of it."""

from __future__ import annotations

from typing import Any

__all__ = ["ConfigProto", "GPUOptions", "GraphOptions", "OptimizerOptions", "RunMetadata", "RunOptions"]


class _Settings:
    """Settings of any name; those that are not set are settings themselves."""

    def __init__(self, **settings: Any):
        vars(self).update(settings)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        made = _Settings()
        setattr(self, name, made)
        return made


class OptimizerOptions(_Settings):
    """How graphs were optimised; accepted, without effect."""

    DEFAULT, OFF, ON_1, ON_2 = 0, 0, 1, 2
    L0, L1 = -1, 0


class GraphOptions(_Settings):
    """How graphs were prepared; accepted, without effect."""


class GPUOptions(_Settings):
    """How memory of GPUs was taken; accepted, without effect."""


class ConfigProto(_Settings):
    """How a session was configured; accepted, without effect.

    >>> import twofold as tf
    >>> config = tf.compat.v1.ConfigProto(allow_soft_placement=True)
    >>> config.gpu_options.allow_growth = True
    >>> config.allow_soft_placement, config.gpu_options.allow_growth
    (True, True)
    """


class RunOptions(_Settings):
    """How a run was traced; accepted, without effect."""

    NO_TRACE, SOFTWARE_TRACE, HARDWARE_TRACE, FULL_TRACE = 0, 1, 2, 3


class RunMetadata(_Settings):
    """What was told of a run; nothing is."""
