"""`tf.experimental.dtensor`: there are no distributed tensors here; each name says so, and what to use."""

from __future__ import annotations

from twofold._front.namespace import publish

__all__: list[str] = []

publish(__name__)
