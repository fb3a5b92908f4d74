"""Calls whose results TensorFlow gave once: `make_peer_reference.py` asks it, `test_peer_reference.py` compares.

A case is a function of the package, TensorFlow's or ours, and of arrays; what it takes as tensors are its arrays, so
that it can be traced.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

RNG = np.random.default_rng(5)


def floats(*shape: int, scale: float = 1.0) -> np.ndarray:
    return (scale * RNG.normal(size=shape)).astype(np.float32)


Case = tuple[Callable[..., Any], tuple[np.ndarray, ...]]
CASES: dict[str, Case] = {}


def case(name: str, call: Callable[..., Any], *arrays: Any) -> None:
    CASES[name] = call, tuple(np.asarray(a) for a in arrays)


def with_slopes(call: Callable[..., Any]) -> Callable[..., Any]:
    """A call with one result, and the gradients of its squares' sum by what it is given as floats."""
    def both(tf: Any, *given: Any) -> list[Any]:
        wanted = [x for x in given if x.dtype.is_floating]
        with tf.GradientTape() as tape:
            for x in wanted:
                tape.watch(x)
            y = call(tf, *given)
            total = tf.reduce_sum(y * y)
        return [y, *map(tf.convert_to_tensor, tape.gradient(total, wanted))]
    return both


# -- connectionist temporal classification ------------------------------------------------------------
LOGITS, LABELS = floats(6, 3, 4, scale=2), np.array([[1, 2, 2], [3, 0, 0], [1, 2, 0]], np.int32)
case("ctc_loss", with_slopes(lambda tf, x, y: tf.nn.ctc_loss(y, x, [3, 1, 2], [6, 4, 2])), LOGITS, LABELS)
case("ctc_loss last", with_slopes(lambda tf, x, y: tf.nn.ctc_loss(
    y, tf.transpose(x, [1, 0, 2]), [3, 1, 2], [6, 4, 6], logits_time_major=False, blank_index=-1)), LOGITS, LABELS % 3)
# without slopes: TensorFlow's leave out such labels, and are not those of the loss
case("ctc_loss with labels that are the blank", lambda tf, x, y: tf.nn.ctc_loss(y, x, [3, 3], [6, 4]),
     LOGITS[:, :2], np.array([[1, 0, 2], [0, 0, 1]], np.int32))
case("ctc_unique_labels", lambda tf, y: tf.nn.ctc_unique_labels(y), np.array([[3, 4, 4, 3], [1, 2, 3, 1]], np.int64))
case("collapse_repeated", lambda tf, y: tf.nn.collapse_repeated(y, [5, 3]),
     np.array([[1, 1, 2, 2, 1], [3, 3, 3, 0, 0]]))

def parts(decoded: Any) -> list[Any]:
    """Of sparse paths and their scores."""
    paths, scores = decoded
    return [*(p for s in paths for p in (s.indices, s.values, s.dense_shape)), scores]


ROWS = np.array([[1, 2, 3], [1, 0, 0], [0, 0, 0]], np.int32), np.array([[1, 3, 3], [0, 0, 0], [0, 0, 0]], np.int32)
case("ctc_loss sparse", lambda tf, x, y: tf.nn.ctc_loss(tf.sparse.from_dense(y), x, None, [6, 4, 2], blank_index=0),
     LOGITS, LABELS)
case("ctc_greedy_decoder", lambda tf, x: [*parts(tf.nn.ctc_greedy_decoder(x, [6, 4, 2])), *parts(
    tf.nn.ctc_greedy_decoder(x, [6, 4, 2], merge_repeated=False, blank_index=0))], LOGITS)
case("ctc_beam_search_decoder", lambda tf, x: parts(tf.nn.ctc_beam_search_decoder(x, [6, 4, 2], 4, 2)), LOGITS)
for normalize in (True, False):
    case(f"edit_distance {normalize}", lambda tf, a, b, normalize=normalize: tf.edit_distance(
        tf.sparse.from_dense(a), tf.sparse.from_dense(b), normalize), *ROWS)

# -- sampled losses -----------------------------------------------------------------------------------
DRAWN = (np.array([2, 0, 5], np.int64), np.array([[0.5, 0.4], [0.1, 0.2]], np.float32),
         np.array([0.5, 0.6, 0.3], np.float32))
for name in ("nce_loss", "sampled_softmax_loss"):
    for hits in (True, False):
        case(f"{name} {hits}", with_slopes(lambda tf, w, b, x, name=name, hits=hits: getattr(tf.nn, name)(
            w, b, np.array([[1, 2], [3, 4]]), x, 3, 6, num_true=2, remove_accidental_hits=hits,
            sampled_values=tuple(tf.constant(v) for v in DRAWN))), floats(6, 4), floats(6), floats(2, 4))
case("compute_accidental_hits", lambda tf, t, s: tf.nn.compute_accidental_hits(t, s, 2),
     np.array([[1, 2], [3, 1], [0, 5]]), np.array([1, 7, 2, 1]))
case("all_candidate_sampler", lambda tf, t: tf.nn.all_candidate_sampler(t, 1, 4, True), np.array([[1], [3]]))

# -- windows ------------------------------------------------------------------------------------------
PLANE, SHAPES = floats(2, 6, 7, 3), floats(2, 3, 3)
for padding in ("SAME", "VALID"):
    for name in ("dilation2d", "erosion2d"):
        case(f"{name} {padding}", with_slopes(lambda tf, x, f, name=name, padding=padding: getattr(tf.nn, name)(
            x, f, [1, 2, 1, 1], padding, "NHWC", [1, 1, 2, 1])), PLANE, SHAPES)
    case(f"extract_volume_patches {padding}", lambda tf, x, padding=padding: tf.extract_volume_patches(
        x, [1, 2, 3, 2, 1], [1, 2, 1, 1, 1], padding), floats(1, 4, 5, 3, 2))
case("depthwise_conv2d_backprop", lambda tf, x, f, ct: [
    tf.nn.depthwise_conv2d_backprop_input([2, 6, 7, 3], f, ct, [1, 2, 2, 1], "SAME"),
    tf.nn.depthwise_conv2d_backprop_filter(x, [2, 3, 3, 1], ct, [1, 2, 2, 1], "SAME")],
     PLANE, SHAPES[..., None], floats(2, 3, 4, 3))
case("conv", lambda tf, x, f: [
    tf.conv(x, f, [1, 2, 1, 1], "SAME"),
    tf.conv(x[..., None], f[..., None], [1] * 5, "VALID")], PLANE, floats(2, 3, 3, 1))
case("atrous_conv2d_transpose", with_slopes(lambda tf, x, f: tf.nn.atrous_conv2d_transpose(
    x, f, [2, 7, 8, 2], 2, "SAME")), floats(2, 7, 8, 3), floats(2, 3, 2, 3))
for decreasing in (True, False):
    case(f"isotonic_regression {decreasing}", with_slopes(lambda tf, x, decreasing=decreasing:
         tf.nn.isotonic_regression(x, decreasing)[0]), floats(3, 8))
case("isotonic segments", lambda tf, x: [tf.nn.isotonic_regression(x), tf.nn.isotonic_regression([1, 3, 2])],
     floats(3, 8))
case("approx_top_k", lambda tf, x: tf.approx_top_k(x, 3), floats(2, 7))

# -- images -------------------------------------------------------------------------------------------
BOXES = np.sort(RNG.uniform(0, 1, (2, 9, 2, 2)), axis=2).reshape(2, 9, 4).astype(np.float32)
SCORES = RNG.permutation(18).reshape(2, 9).astype(np.float32) / 18
IMAGES = RNG.uniform(0, 1, (2, 7, 6, 3)).astype(np.float32)
LARGE = RNG.uniform(0, 1, (2, 45, 46, 2)).astype(np.float32)
for sigma in (0.0, 0.3):
    case(f"non_max_suppression_with_scores {sigma}", lambda tf, b, s, sigma=sigma:
         tf.image.non_max_suppression_with_scores(b[0], s[0], 6, 0.3, 0.1, soft_nms_sigma=sigma), BOXES, SCORES)
case("non_max_suppression_overlaps", lambda tf, o, s: tf.image.non_max_suppression_overlaps(o, s[1], 5, 0.6, 0.1),
     RNG.uniform(0, 1, (9, 9)).astype(np.float32), SCORES)
case("non_max_suppression_padded", lambda tf, b, s: [
    *tf.image.non_max_suppression_padded(b, s, 8, 0.3, pad_to_max_output_size=True),
    *tf.image.non_max_suppression_padded(b[0], s[0], 8, 0.3)], BOXES, SCORES)
for settings in ({}, {"pad_per_class": True, "score_threshold": 0.3}, {"clip_boxes": False}):
    case(f"combined_non_max_suppression {sorted(settings)}", lambda tf, b, s, settings=settings: tuple(
        tf.image.combined_non_max_suppression(1.2 * b[:, :, None], tf.stack([s, 1 - s - 0.01], 2), 3, 8,
                                              iou_threshold=0.2, **settings)), BOXES, SCORES)
case("draw_bounding_boxes", lambda tf, x, b: [
    tf.image.draw_bounding_boxes(x, b, [[1.0, 0.0, 0.5], [0.0, 1.0, 0.2]]), tf.image.draw_bounding_boxes(x, b, None),
    tf.image.draw_bounding_boxes(x[..., :1], b, None), tf.image.draw_bounding_boxes(x, 2.5 * b - 1, None)],
     IMAGES, BOXES[:, :3])
for centered, normalized, offsets in ((True, True, [[0.0, 0.0], [0.9, -0.4]]), (True, False, [[1.0, 2.0], [-5.0, 3.0]]),
                                      (False, False, [[1.0, 2.0], [-2.0, 4.0]])):
    case(f"extract_glimpse {centered} {normalized}", lambda tf, x, o, centered=centered, normalized=normalized:
         tf.image.extract_glimpse(x, [3, 4], o, centered, normalized, "zero"), IMAGES, np.array(offsets, np.float32))
case("ssim_multiscale", with_slopes(lambda tf, x, y: tf.image.ssim_multiscale(
    x, 0.7 * x + 0.3 * y, 1.0, (0.3, 0.4, 0.3), filter_size=5)), LARGE, LARGE[:, ::-1])

# -- signals ------------------------------------------------------------------------------------------
SIGNAL = floats(2, 32)
for norm in (None, "ortho"):
    case(f"mdct {norm}", with_slopes(lambda tf, x, norm=norm: tf.signal.mdct(x, 8, pad_end=True, norm=norm)), SIGNAL)
    case(f"inverse_mdct {norm}", lambda tf, x, norm=norm: tf.signal.inverse_mdct(x, norm=norm), floats(2, 3, 6))
case("mdct plain", lambda tf, x: tf.signal.mdct(x, 12, window_fn=None), SIGNAL)
case("inverse_mdct plain", lambda tf, x: tf.signal.inverse_mdct(x, window_fn=None), floats(3, 4))

# -- matrices of few diagonals ------------------------------------------------------------------------
BANDS, RIGHT = floats(2, 3, 4) + np.array([0, 0, 4], np.float32)[:, None], floats(2, 4, 2)
for lower in (True, False):
    for adjoint in (True, False):
        case(f"banded_triangular_solve {lower} {adjoint}", lambda tf, b, r, lower=lower, adjoint=adjoint:
             tf.linalg.banded_triangular_solve(b[:, ::-1] if lower else b, r, lower, adjoint), BANDS, RIGHT)
DIAGONALS = floats(3, 4) + np.array([0, 4, 0], np.float32)[:, None]
case("tridiagonal_matmul", with_slopes(lambda tf, d, r: tf.linalg.tridiagonal_matmul(d, r[0])), DIAGONALS, RIGHT)
case("tridiagonal sequence", lambda tf, d, r: tf.linalg.tridiagonal_solve(
    (d[0, :3], d[1], d[2, 1:]), r[0], diagonals_format="sequence"), DIAGONALS, RIGHT)
case("tridiagonal matrix", lambda tf, d, r: tf.linalg.tridiagonal_solve(
    d, r[0], diagonals_format="matrix", transpose_rhs=True), 3 * np.eye(2, dtype=np.float32) + 1, floats(1, 3, 2))
case("eigh_tridiagonal", lambda tf, d: [
    tf.linalg.eigh_tridiagonal(d[1], d[0, :3]), tf.linalg.eigh_tridiagonal(d[1], d[0, :3], select="i",
                                                                           select_range=[1, 2]),
    tf.linalg.eigh_tridiagonal(d[1], d[0, :3], select="v", select_range=[3.0, 4.5])], DIAGONALS)
case("lu", lambda tf, x: tf.linalg.lu(x), floats(2, 3, 3))
case("sqrtm", with_slopes(lambda tf, x: tf.linalg.sqrtm(x)), floats(2, 3, 3) + 4 * np.eye(3, dtype=np.float32))
