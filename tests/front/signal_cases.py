"""Calls of `tf.signal` that TensorFlow has made and twofold makes: both run what is here.

`python tests/front/signal_cases.py FILE`, where TensorFlow 2.21 is installed, writes what TensorFlow gives; the tests
compare with `data/signal.npz`, which was written so.
"""

import sys

import numpy as np

RNG = np.random.RandomState(0)
X = RNG.randn(2, 37).astype(np.float32)
PIECES = RNG.randn(2, 5, 8).astype(np.float32)
CASES = {
    **{f"{name}_{n}": lambda tf, name=name, n=n: getattr(tf.signal, name)(n)
       for name in ("hann_window", "hamming_window", "kaiser_window", "vorbis_window") for n in (1, 8, 9)},
    "hann_symmetric": lambda tf: tf.signal.hann_window(8, periodic=False),
    "derived": lambda tf: tf.signal.kaiser_bessel_derived_window(8, beta=4.0),
    "frame": lambda tf: tf.signal.frame(X, 8, 3), "frame_padded": lambda tf: tf.signal.frame(X, 8, 3, True, 7.0),
    "frame_axis": lambda tf: tf.signal.frame(X, 2, 1, axis=0), "frame_short": lambda tf: tf.signal.frame(X, 40, 1),
    "overlap": lambda tf: tf.signal.overlap_and_add(PIECES, 3),
    "overlap_apart": lambda tf: tf.signal.overlap_and_add(PIECES, 10),
    "stft": lambda tf: tf.signal.stft(X, 12, 5), "stft_padded": lambda tf: tf.signal.stft(X, 12, 5, 20, pad_end=True),
    "stft_plain": lambda tf: tf.signal.stft(X, 8, 8, window_fn=None),
    "inverse": lambda tf: tf.signal.inverse_stft(tf.signal.stft(X, 12, 5), 12, 5),
    "inverse_window": lambda tf: tf.signal.inverse_stft_window_fn(5)(12, dtype=tf.float32),
    **{f"dct_{kind}": lambda tf, kind=kind: tf.signal.dct(X, kind) for kind in (1, 2, 3, 4)},
    **{f"dct_{kind}_ortho": lambda tf, kind=kind: tf.signal.dct(X, kind, norm="ortho") for kind in (2, 3, 4)},
    **{f"idct_{kind}": lambda tf, kind=kind: tf.signal.idct(X, kind) for kind in (1, 2, 3, 4)},
    "dct_cut": lambda tf: tf.signal.dct(X, n=10), "dct_filled": lambda tf: tf.signal.dct(X, n=50, norm="ortho"),
    "mel": lambda tf: tf.signal.linear_to_mel_weight_matrix(),
    "mel_16k": lambda tf: tf.signal.linear_to_mel_weight_matrix(40, 257, 16000, 20.0, 7600.0),
    "mfcc": lambda tf: tf.signal.mfccs_from_log_mel_spectrograms(X),
}

if __name__ == "__main__":
    import tensorflow

    np.savez_compressed(sys.argv[1], **{name: np.asarray(case(tensorflow)) for name, case in CASES.items()})
