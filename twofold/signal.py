"""tf.signal: Fourier transforms (`_ops/signal_fft.py`), and what is made of them.

Frames, windows, cosine transforms and the mel scale are in `_ops/signal_frames.py`, which is loaded when one of them
is first asked for.
"""

from __future__ import annotations

from typing import Any

from twofold._front.namespace import publish
from twofold._ops import signal_fft as _signal_fft
from twofold._ops.signal_fft import *  # noqa: F403

_FRAMES = ["dct", "frame", "hamming_window", "hann_window", "idct", "inverse_mdct", "inverse_stft",
           "inverse_stft_window_fn", "kaiser_bessel_derived_window", "kaiser_window", "linear_to_mel_weight_matrix",
           "mdct", "mfccs_from_log_mel_spectrograms", "overlap_and_add", "stft", "vorbis_window"]
__all__ = [*_signal_fft.__all__, *_FRAMES]


def __getattr__(name: str) -> Any:
    if name in _FRAMES:
        from ._ops import signal_frames as _signal_frames
        return getattr(_signal_frames, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


publish(__name__)
