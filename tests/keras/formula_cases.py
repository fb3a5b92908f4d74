"""What losses, metrics, optimizers and schedules are compared on: names, settings and inputs.

`make_formula_reference.py` runs these cases in Keras, and `test_formulas.py` in twofold. Both see the same numbers, for
inputs are waves rounded to three digits.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np


def wave(seed: int, *shape: int) -> np.ndarray:
    """Numbers between -2 and 2, of three digits."""
    n = int(np.prod(shape, dtype=int))
    return np.round(2 * np.sin(1.37 * np.arange(n) + 0.71 * seed), 3).astype(np.float32).reshape(shape)


def parts(seed: int, *shape: int) -> np.ndarray:
    """Numbers between 0 and 1."""
    return np.round(0.5 + 0.245 * wave(seed, *shape), 3).astype(np.float32)


def ints(seed: int, below: int, *shape: int) -> np.ndarray:
    """Integers from 0 to below `below`."""
    return (np.abs(wave(seed, *shape)) * 1000).astype(np.int64) % below


def one_hot(classes: np.ndarray, depth: int) -> np.ndarray:
    return np.eye(depth, dtype=np.float32)[classes]


def units(seed: int, *shape: int) -> np.ndarray:
    """Vectors of length 1."""
    x = wave(seed, *shape).astype(np.float64)
    return np.round(x / np.linalg.norm(x, axis=-1, keepdims=True), 4).astype(np.float32)


#: inputs by name: (y_true, y_pred), of batch n
KINDS = {
    "real": lambda n: (wave(n, 4, 3), wave(n + 5, 4, 3)),
    "sequence": lambda n: (wave(n, 2, 3, 4), wave(n + 5, 2, 3, 4)),
    "column": lambda n: (wave(n, 5, 1), wave(n + 5, 5)),
    "parts": lambda n: (parts(n, 4, 3), parts(n + 7, 4, 3)),
    "binary": lambda n: (ints(n, 2, 4, 3).astype(np.float32), parts(n + 3, 4, 3)),
    "binary_logits": lambda n: (ints(n, 2, 4, 3).astype(np.float32), 3 * wave(n + 3, 4, 3)),
    "signs": lambda n: (2.0 * ints(n, 2, 4, 3).astype(np.float32) - 1, wave(n + 3, 4, 3)),
    "one_hot": lambda n: (one_hot(ints(n, 5, 4), 5), parts(n + 2, 4, 5)),
    "one_hot_logits": lambda n: (one_hot(ints(n, 5, 4), 5), wave(n + 2, 4, 5)),
    "classes": lambda n: (ints(n, 5, 4), parts(n + 2, 4, 5)),
    "class_logits": lambda n: (ints(n, 5, 4), wave(n + 2, 4, 5)),
    "class_sequence": lambda n: (ints(n, 5, 2, 3), wave(n + 2, 2, 3, 5)),
    "labels": lambda n: (ints(n, 3, 6), ints(n + 1, 3, 6)),
    "yes": lambda n: (ints(n, 2, 8), parts(n + 4, 8)),
    "yes_labels": lambda n: (ints(n, 2, 6, 3), parts(n + 4, 6, 3)),
    "yes_logits": lambda n: (ints(n, 2, 8), wave(n + 4, 8)),
    "image": lambda n: (ints(n, 2, 2, 4, 4, 1).astype(np.float32), parts(n + 3, 2, 4, 4, 1)),
    "ctc": lambda n: (np.array([[1, 2, 2], [3, 0, 0], [1, 4, 1]]), 2 * wave(n, 3, 7, 5)),
    "vectors": lambda n: (ints(n, 3, 6), units(n + 1, 6, 4)),
    "ranked": lambda n: (ints(n, 5, 4), np.argsort(-wave(n + 2, 4, 5)).astype(np.int64)),
}


#: name, settings, kind of input, and which weights: a number for each sample ("s"), each value ("v"), or none
LOSSES: list[tuple[str, dict[str, Any], str, str]] = [
    *[(name, {}, kind, weights) for name, kind in [
        ("MeanSquaredError", "real"), ("MeanAbsoluteError", "real"), ("MeanAbsolutePercentageError", "real"),
        ("MeanSquaredLogarithmicError", "real"), ("CosineSimilarity", "real"), ("Huber", "real"),
        ("LogCosh", "real"), ("Hinge", "signs"), ("SquaredHinge", "binary"), ("CategoricalHinge", "one_hot"),
        ("KLDivergence", "parts"), ("Poisson", "parts"), ("BinaryCrossentropy", "binary"),
        ("BinaryFocalCrossentropy", "binary"), ("CategoricalCrossentropy", "one_hot"),
        ("CategoricalFocalCrossentropy", "one_hot"), ("SparseCategoricalCrossentropy", "classes"),
        ("CategoricalGeneralizedCrossEntropy", "classes"), ("CTC", "ctc"), ("Circle", "vectors"),
        ("Dice", "image"), ("Tversky", "image")] for weights in ("", "s") if not (weights and kind == "image")],
    ("MeanSquaredError", {}, "column", ""),
    *[("MeanSquaredError", {"reduction": r}, "sequence", w)
      for r in ("sum", "none", "mean", "mean_with_sample_weight") for w in ("", "s", "v")],
    ("Huber", {"delta": 0.5}, "sequence", "v"),
    ("CosineSimilarity", {"axis": 1}, "sequence", ""),
    ("Hinge", {}, "binary", ""),
    ("BinaryCrossentropy", {"from_logits": True, "label_smoothing": 0.1}, "binary_logits", "s"),
    ("BinaryFocalCrossentropy", {"from_logits": True, "apply_class_balancing": True, "gamma": 3.0}, "binary_logits",
     ""),
    ("CategoricalCrossentropy", {"from_logits": True, "label_smoothing": 0.2}, "one_hot_logits", "s"),
    ("CategoricalFocalCrossentropy", {"from_logits": True, "alpha": 0.5}, "one_hot_logits", ""),
    ("SparseCategoricalCrossentropy", {"from_logits": True}, "class_logits", ""),
    ("SparseCategoricalCrossentropy", {"from_logits": True, "ignore_class": 3}, "class_sequence", ""),
    ("SparseCategoricalCrossentropy", {"from_logits": True, "ignore_class": 3}, "class_sequence", "s"),
    ("CategoricalGeneralizedCrossEntropy", {"q": 0.3}, "classes", ""),
    ("Circle", {"gamma": 16.0, "margin": 0.25, "remove_diagonal": False}, "vectors", ""),
    ("Dice", {"axis": (1, 2, 3)}, "image", "s"),
    ("Tversky", {"alpha": 0.3, "beta": 0.7, "axis": (1, 2, 3)}, "image", ""),
]

METRICS: list[tuple[str, dict[str, Any], str, str]] = [
    *[(name, {}, kind, weights) for name, kind in [
        ("MeanSquaredError", "real"), ("RootMeanSquaredError", "real"), ("MeanAbsoluteError", "real"),
        ("MeanAbsolutePercentageError", "real"), ("MeanSquaredLogarithmicError", "real"), ("LogCoshError", "real"),
        ("CosineSimilarity", "real"), ("PearsonCorrelation", "real"), ("ConcordanceCorrelation", "real"),
        ("KLDivergence", "parts"), ("Poisson", "parts"), ("Hinge", "signs"), ("SquaredHinge", "binary"),
        ("CategoricalHinge", "one_hot"), ("BinaryCrossentropy", "binary"), ("CategoricalCrossentropy", "one_hot"),
        ("SparseCategoricalCrossentropy", "classes"), ("Accuracy", "labels"), ("BinaryAccuracy", "binary"),
        ("CategoricalAccuracy", "one_hot"), ("SparseCategoricalAccuracy", "classes"),
        ("TruePositives", "yes"), ("FalsePositives", "yes"), ("TrueNegatives", "yes"), ("FalseNegatives", "yes"),
        ("Precision", "yes"), ("Recall", "yes"), ("AUC", "yes"), ("R2Score", "real"), ("F1Score", "one_hot"),
        ("BinaryIoU", "yes")] for weights in ("", "s")],
    ("MeanSquaredError", {}, "sequence", "v"),
    ("SparseCategoricalCrossentropy", {"from_logits": True, "ignore_class": 2}, "class_sequence", "s"),
    ("BinaryCrossentropy", {"from_logits": True, "label_smoothing": 0.1}, "binary_logits", ""),
    ("CategoricalCrossentropy", {"from_logits": True, "label_smoothing": 0.1}, "one_hot_logits", ""),
    ("SparseCategoricalAccuracy", {}, "class_sequence", "v"),
    ("TopKCategoricalAccuracy", {"k": 2}, "one_hot", ""),
    ("SparseTopKCategoricalAccuracy", {"k": 2}, "classes", "s"),
    ("SparseTopKCategoricalAccuracy", {"k": 2}, "class_sequence", ""),
    ("SparseTopKCategoricalAccuracy", {"k": 3, "from_sorted_ids": True}, "ranked", ""),
    ("BinaryAccuracy", {"threshold": 0.3}, "binary", "v"),
    ("TruePositives", {"thresholds": [0.2, 0.5, 0.9]}, "yes_labels", "s"),
    ("FalseNegatives", {"thresholds": [0.0, 0.5, 1.0]}, "yes_labels", "v"),
    ("Precision", {"thresholds": [0.1, 0.6]}, "yes", ""),
    ("Precision", {"top_k": 2}, "one_hot", ""),
    ("Recall", {"top_k": 2, "class_id": 1}, "one_hot", "s"),
    ("Recall", {"class_id": 2}, "yes_labels", ""),
    *[("AUC", {"num_thresholds": 20, "curve": curve, "summation_method": method}, "yes_labels", "s")
      for curve in ("ROC", "PR", "PRGAIN") for method in ("interpolation", "minoring", "majoring")],
    ("AUC", {"thresholds": [0.1, 0.35, 0.8]}, "yes", ""),
    ("AUC", {"from_logits": True}, "yes_logits", ""),
    ("AUC", {"multi_label": True, "num_thresholds": 30}, "yes_labels", "s"),
    ("AUC", {"multi_label": True, "num_labels": 3, "label_weights": [1.0, 2.0, 0.5], "curve": "PR"}, "yes_labels", ""),
    ("AUC", {"multi_label": True, "thresholds": [0.2, 0.5, 0.6]}, "yes_labels", ""),
    ("AUC", {"label_weights": [1.0, 2.0, 0.5]}, "yes_labels", ""),
    ("SensitivityAtSpecificity", {"specificity": 0.4}, "yes", ""),
    ("SpecificityAtSensitivity", {"sensitivity": 0.4}, "yes_labels", "s"),
    ("PrecisionAtRecall", {"recall": 0.4}, "yes", ""),
    ("RecallAtPrecision", {"precision": 0.6}, "yes", "s"),
    ("RecallAtPrecision", {"precision": 0.5, "class_id": 1, "num_thresholds": 50}, "yes_labels", ""),
    *[("F1Score", {"average": average, "threshold": 0.5}, "yes_labels", "s") for average in ("micro", "macro")],
    ("FBetaScore", {"average": "weighted", "beta": 2.0}, "one_hot", ""),
    ("R2Score", {"class_aggregation": None}, "real", "s"),
    ("R2Score", {"class_aggregation": "variance_weighted_average", "num_regressors": 2}, "real", ""),
    ("IoU", {"num_classes": 3, "target_class_ids": [0, 2]}, "labels", ""),
    ("IoU", {"num_classes": 3, "target_class_ids": [1], "dtype": "float32"}, "labels", "s"),
    ("MeanIoU", {"num_classes": 3, "ignore_class": 1}, "labels", ""),
    ("OneHotIoU", {"num_classes": 5, "target_class_ids": [0, 3]}, "one_hot", ""),
    ("OneHotMeanIoU", {"num_classes": 5}, "one_hot", ""),
]

#: shapes of the variables that optimizers move, and how many steps
SHAPES = [(2, 3), (), (4,), (2, 1, 2)]
STEPS = 6

_PLAIN = [("SGD", {}), ("SGD", {"momentum": 0.9}), ("SGD", {"momentum": 0.9, "nesterov": True}),
          ("Adam", {}), ("Adam", {"amsgrad": True, "beta_1": 0.8, "epsilon": 1e-4}), ("AdamW", {}), ("Adamax", {}),
          ("Nadam", {}), ("RMSprop", {}), ("RMSprop", {"centered": True, "momentum": 0.5}), ("Adagrad", {}),
          ("Adadelta", {}), ("Ftrl", {}), ("Lion", {}), ("Lamb", {}), ("Adafactor", {}), ("Muon", {}),
          ("Adafactor", {"beta_2_decay": -0.5, "clip_threshold": 0.5, "weight_decay": 0.1}),
          ("Muon", {"ns_steps": 3, "nesterov": False, "rms_rate": None, "adam_lr_ratio": 0.5, "weight_decay": None}),
          ("Ftrl", {"l1_regularization_strength": 0.1, "l2_regularization_strength": 0.2, "beta": 0.3,
                    "l2_shrinkage_regularization_strength": 0.1, "learning_rate_power": -0.4})]
_SHARED = [{"clipnorm": 0.5}, {"clipvalue": 0.3}, {"global_clipnorm": 0.7}, {"weight_decay": 0.1},
           {"use_ema": True, "ema_momentum": 0.7}, {"use_ema": True, "ema_momentum": 0.7, "ema_overwrite_frequency": 2},
           {"loss_scale_factor": 4.0}, {"gradient_accumulation_steps": 2},
           {"gradient_accumulation_steps": 3, "use_ema": True, "clipnorm": 0.5, "weight_decay": 0.05}]

OPTIMIZERS: list[tuple[str, dict[str, Any]]] = [
    *[(name, {"learning_rate": 0.1, **settings}) for name, settings in _PLAIN],
    *[(name, {"learning_rate": 0.05, **settings}) for name in ("Adam", "SGD") for settings in _SHARED],
    ("RMSprop", {"learning_rate": 0.1, "momentum": 0.9, "use_ema": True, "gradient_accumulation_steps": 2}),
]

#: name and settings; steps at which they are asked
SCHEDULES: list[tuple[str, dict[str, Any]]] = [
    ("ExponentialDecay", {"initial_learning_rate": 0.1, "decay_steps": 10, "decay_rate": 0.5}),
    ("ExponentialDecay", {"initial_learning_rate": 0.1, "decay_steps": 10, "decay_rate": 0.5, "staircase": True}),
    ("InverseTimeDecay", {"initial_learning_rate": 0.1, "decay_steps": 10, "decay_rate": 0.5}),
    ("InverseTimeDecay", {"initial_learning_rate": 0.1, "decay_steps": 10, "decay_rate": 0.5, "staircase": True}),
    ("PolynomialDecay", {"initial_learning_rate": 0.1, "decay_steps": 20, "end_learning_rate": 0.01, "power": 0.5}),
    ("PolynomialDecay", {"initial_learning_rate": 0.1, "decay_steps": 20, "power": 2.0, "cycle": True}),
    ("PiecewiseConstantDecay", {"boundaries": [5, 10, 20], "values": [0.1, 0.05, 0.02, 0.001]}),
    ("CosineDecay", {"initial_learning_rate": 0.1, "decay_steps": 20, "alpha": 0.1}),
    ("CosineDecay", {"initial_learning_rate": 0.01, "decay_steps": 20, "warmup_target": 0.1, "warmup_steps": 8}),
    ("CosineDecayRestarts", {"initial_learning_rate": 0.1, "first_decay_steps": 6, "t_mul": 2.0, "m_mul": 0.9}),
    ("CosineDecayRestarts", {"initial_learning_rate": 0.1, "first_decay_steps": 6, "t_mul": 1.0, "alpha": 0.2}),
]
SCHEDULE_STEPS = [0, 1, 4, 5, 6, 7, 10, 13, 20, 21, 41, 55]


def key(name: str, settings: dict[str, Any], *rest: str) -> str:
    """The name of a case."""
    told = ",".join(f"{k}={v}" for k, v in settings.items())
    return " ".join(part for part in (f"{name}({told})", *rest) if part)


def weights_for(kind: str, weights: str, n: int) -> np.ndarray | None:
    """Weights for batch n of a kind: for each sample, or for each value that a loss gives."""
    if not weights:
        return None
    _, y_pred = KINDS[kind](n)
    shape = y_pred.shape[:2]
    if weights == "s":
        shape = (shape[0], 1) if kind.endswith("sequence") else shape[:1]
    return np.round(1 + 0.45 * wave(n + 9, *shape), 3).astype(np.float32)


def gradients(step: int) -> Iterator[np.ndarray]:
    """The gradients of a step, one for each variable."""
    return (wave(7 * step + i, *shape) for i, shape in enumerate(SHAPES))
