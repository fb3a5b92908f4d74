"""`tf.types`: classes to derive from and to test for."""

from __future__ import annotations

from twofold._front.namespace import publish

from . import experimental

__all__ = ["experimental"]

publish(__name__)
