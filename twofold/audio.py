"""`tf.audio`: sound in WAV files."""

from __future__ import annotations

from ._formats.wav import decode_wav, encode_wav
from ._front.namespace import publish

__all__ = ["decode_wav", "encode_wav"]


publish(__name__)
