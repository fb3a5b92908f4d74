"""Ops of `ai.onnx.ml`, as far as the common models of scikit-learn need them: linear models, scalers, trees.

Coefficients of linear models are attributes in the file; `import_weights.py` makes inputs of them, so that they become
variables as weights do.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import twofold as tf

from .import_table import Call, op
from .import_trees import Forest, forest_of
from .import_values import Value

__all__: list[str] = []

_ML = "ai.onnx.ml"


def _floats(x: Any) -> Any:
    return x if x.dtype.is_floating else tf.cast(x, tf.float32)


# -- what scores become -------------------------------------------------------------------------------
def _transformed(call: Call, scores: Any) -> Any:
    how = call.attr("post_transform", "NONE")
    if how == "NONE":
        return scores
    if how == "LOGISTIC":
        return tf.sigmoid(scores)
    if how == "SOFTMAX":
        return tf.nn.softmax(scores)
    if how == "SOFTMAX_ZERO":
        most = tf.reduce_max(scores, axis=1, keepdims=True)
        parts = tf.where(tf.abs(scores) > 1e-7, tf.exp(scores - most), scores * tf.exp(-most))
        total = tf.reduce_sum(parts, axis=1, keepdims=True)
        return tf.where(tf.equal(total, 0), tf.fill(parts.dims, tf.constant(0.5, parts.dtype)), parts / total)
    if how == "PROBIT":
        return math.sqrt(2.0) * tf.math.erfinv(scores * 2 - 1)
    raise call.fail(f"there is no post_transform {how!r}")


def _labels(call: Call) -> np.ndarray | None:
    for name, kind in (("classlabels_int64s", np.int64), ("classlabels_ints", np.int64),
                       ("classlabels_strings", object)):
        given = call.attr(name)
        if given:
            return np.array(given, kind)
    return None


def _labelled(call: Call, scores: Any, threshold: float) -> Any:
    """The label of each row's best score; of one score, the label or 0."""
    names = _labels(call)
    if scores.dims[1] == 1:
        above = scores[:, 0] >= threshold
        label = 1 if names is None or names.dtype == object else int(names[0])
        return tf.where(above, tf.constant(label, tf.int64), tf.constant(0, tf.int64))
    best = tf.argmax(scores, axis=1)
    return best if names is None else tf.gather(tf.constant(names), best)


# -- linear models ------------------------------------------------------------------------------------
@op("LinearRegressor", domain=_ML)
def _linear_regressor(call: Call, x: Any, coefficients: Any, intercepts: Any = None) -> Any:
    x = _floats(x)
    matrix = tf.reshape(tf.cast(coefficients, x.dtype), (call.attr("targets", 1), -1))
    y = tf.matmul(x, matrix, transpose_b=True)
    return _transformed(call, y if intercepts is None else y + tf.cast(intercepts, x.dtype))


@op("LinearClassifier", domain=_ML)
def _linear_classifier(call: Call, x: Any, coefficients: Any, intercepts: Any = None) -> Any:
    x = _floats(x)
    scores = tf.matmul(x, tf.reshape(tf.cast(coefficients, x.dtype), (-1, x.dims[1])), transpose_b=True)
    scores = scores if intercepts is None else scores + tf.cast(intercepts, x.dtype)
    names = _labels(call)
    if scores.dims[1] == 1 and names is not None and len(names) == 2:
        scores = tf.concat([-scores, scores], axis=1)
    scores = _transformed(call, scores)
    return _labelled(call, scores, 0.0 if call.attr("post_transform", "NONE") == "NONE" else 0.5), scores


# -- scalers and their like ---------------------------------------------------------------------------
@op("Scaler", domain=_ML)
def _scaler(call: Call, x: Any) -> Any:
    x = _floats(x)
    return (x - tf.constant(call.need("offset"), x.dtype)) * tf.constant(call.need("scale"), x.dtype)


@op("Normalizer", domain=_ML)
def _normalizer(call: Call, x: Any) -> Any:
    x = _floats(x)
    sizes = {"MAX": lambda: tf.reduce_max(tf.abs(x), axis=1, keepdims=True),
             "L1": lambda: tf.reduce_sum(tf.abs(x), axis=1, keepdims=True),
             "L2": lambda: tf.sqrt(tf.reduce_sum(x * x, axis=1, keepdims=True))}
    norm = call.attr("norm", "MAX")
    if norm not in sizes:
        raise call.fail(f"there is no norm {norm!r}")
    return x / tf.maximum(sizes[norm](), tf.constant(1e-30, x.dtype))


@op("Binarizer", domain=_ML)
def _binarizer(call: Call, x: Any) -> Any:
    return tf.cast(x > tf.constant(call.attr("threshold", 0.0), x.dtype), x.dtype)


@op("Imputer", domain=_ML)
def _imputer(call: Call, x: Any) -> Any:
    floats = call.attr("imputed_value_floats")
    values = tf.constant(floats or call.need("imputed_value_int64s"), x.dtype)
    replaced = call.attr("replaced_value_float", 0.0) if floats else call.attr("replaced_value_int64", 0)
    missing = tf.math.is_nan(x) if floats and math.isnan(replaced) else tf.equal(x, tf.constant(replaced, x.dtype))
    return tf.where(missing, values, x)


@op("FeatureVectorizer", domain=_ML)
def _feature_vectorizer(call: Call, *values: Any) -> Any:
    return tf.concat([_floats(v if len(v.dims) > 1 else v[:, None]) for v in values], axis=1)


@op("ArrayFeatureExtractor", domain=_ML)
def _array_feature_extractor(call: Call, x: Any, places: Any) -> Any:
    taken = tf.gather(x, tf.reshape(places, (-1,)), axis=-1)
    return taken[None] if len(x.dims) == 1 else taken


@op("OneHotEncoder", domain=_ML)
def _one_hot_encoder(call: Call, x: Any) -> Any:
    known = call.need("cats_int64s")
    return tf.cast(tf.equal(tf.cast(x, tf.int64)[..., None], tf.constant(known, tf.int64)), tf.float32)


@op("LabelEncoder", domain=_ML)
def _label_encoder(call: Call, x: Any) -> Any:
    """Numbers for numbers; what is no key gets the default."""
    keys, values = (_pairs(call, side) for side in ("keys", "values"))
    defaults = {"f": ("default_float", -0.0), "i": ("default_int64", -1)}
    default: Any = call.attr("default_tensor")
    default = call.attr(*defaults[values.dtype.kind]) if default is None else default.reshape(-1)[0]
    same = tf.equal(x[..., None], tf.constant(keys, x.dtype))
    encoded = tf.gather(tf.constant(values), tf.argmax(tf.cast(same, tf.int32), axis=-1))
    return tf.where(tf.reduce_any(same, axis=-1), encoded, tf.constant(default, encoded.dtype))


def _pairs(call: Call, side: str) -> np.ndarray:
    for name, kind in (("floats", np.float32), ("int64s", np.int64)):
        given = call.attr(f"{side}_{name}")
        if given is not None:
            return np.array(given, kind)
    tensor = call.attr(f"{side}_tensor")
    if tensor is None or tensor.dtype.kind not in "if":
        raise call.fail("only numbers are encoded as numbers")
    return np.asarray(tensor)


@op("ZipMap", domain=_ML, layout=True)
def _zip_map(call: Call, x: Value) -> Value:
    """The tensor of scores itself: there are no maps here."""
    return x


# -- trees --------------------------------------------------------------------------------------------
def _sums(call: Call, forest: Forest, x: Any, columns: int) -> Any:
    """The aggregate of what leaves say, of each row for each target."""
    leaves = forest.leaves(_floats(x))
    said = tf.gather(tf.constant(forest.weights), leaves)  # [rows, trees, targets]
    how = call.attr("aggregate_function", "SUM")
    if how in ("SUM", "AVERAGE"):
        total = tf.reduce_sum(said, axis=1)
        total = total / forest.trees if how == "AVERAGE" else total
    else:
        total = {"MIN": tf.reduce_min, "MAX": tf.reduce_max}[how](said, axis=1)
    base = call.attr("base_values", call.attr("base_values_as_tensor"))
    if base is None or not len(base):
        return total
    given = np.asarray(base, forest.weights.dtype)
    return total + tf.constant(given if len(given) == columns else np.resize(given, columns))


@op("TreeEnsembleRegressor", domain=_ML)
def _tree_regressor(call: Call, x: Any) -> Any:
    targets = call.attr("n_targets", 1)
    forest = forest_of(call, "target", targets)
    return _transformed(call, _sums(call, forest, x, targets))


@op("TreeEnsembleClassifier", domain=_ML)
def _tree_classifier(call: Call, x: Any) -> Any:
    names: Any = _labels(call)
    ids = call.need("class_ids")
    count = max(len(names) if names is not None else 0, max(ids, default=0) + 1)
    binary = len({*ids}) == 1 and count <= 2
    scores = _sums(call, forest_of(call, "class", count), x, count)
    if binary:
        own = scores[:, ids[0]]
        plain = call.attr("post_transform", "NONE") in ("NONE", "PROBIT")
        scores = tf.stack([1 - own if plain else -own, own], axis=1)
    scores = _transformed(call, scores)
    best = tf.argmax(scores, axis=1)
    return best if names is None or len(names) < 2 else tf.gather(tf.constant(names), best), scores
