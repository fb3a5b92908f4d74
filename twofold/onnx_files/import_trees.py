"""Forests of decision trees as arrays: all rows go down all trees at once, a level in each round."""

from __future__ import annotations

from typing import Any

import numpy as np

import twofold as tf

from .import_table import Call

__all__ = ["Forest", "forest_of"]

_MODES = {"BRANCH_LEQ": tf.less_equal, "BRANCH_LT": tf.less, "BRANCH_GTE": tf.greater_equal,
          "BRANCH_GT": tf.greater, "BRANCH_EQ": tf.equal, "BRANCH_NEQ": tf.not_equal}

_LARGE = 1 << 26  # what leaves say, for all targets


class Forest:
    """The nodes of all trees, one after another.

    Attributes:
        roots: where each tree begins.
        feature, value, mode: by node the feature that it looks at, what it compares it with, and how.
        true, false: where it goes on if that holds, and if not; a leaf leads to itself.
        missing: whether NaN goes where what holds goes.
        weights: by node what it says, for each target.
        depth: how many rounds the longest way takes.
    """

    __slots__ = ("roots", "feature", "value", "mode", "true", "false", "missing", "weights", "depth")

    roots: np.ndarray
    feature: np.ndarray
    value: np.ndarray
    mode: np.ndarray
    true: np.ndarray
    false: np.ndarray
    missing: np.ndarray
    weights: np.ndarray
    depth: int

    @property
    def trees(self) -> int:
        """How many there are."""
        return len(self.roots)

    def leaves(self, x: Any) -> Any:
        """The leaf of each tree that each row ends in: [rows, trees]."""
        tables = [tf.constant(t) for t in (self.feature, self.value.astype(x.dtype.np), self.true, self.false)]
        start = tf.broadcast_to(tf.constant(self.roots), (x.dims[0], self.trees))

        def down(i: Any, at: Any) -> Any:
            feature, value, true, false = (tf.gather(t, at) for t in tables)
            given = tf.gather(x, feature, axis=1, batch_dims=1)
            return i + 1, tf.where(self._holds(given, value, at), true, false)

        return tf.while_loop(lambda i, at: i < self.depth, down, (tf.constant(0), start))[1]

    def _holds(self, given: Any, value: Any, at: Any) -> Any:
        kinds = sorted({*self.mode.tolist()} - {"LEAF"}) or ["BRANCH_LEQ"]
        holds = _MODES[kinds[0]](given, value)
        for kind in kinds[1:]:
            holds = tf.where(tf.gather(tf.constant(self.mode == kind), at), _MODES[kind](given, value), holds)
        if self.missing.any():
            holds = tf.logical_or(holds, tf.logical_and(tf.math.is_nan(given), tf.gather(tf.constant(self.missing),
                                                                                         at)))
        return holds


def forest_of(call: Call, of: str, targets: int) -> Forest:
    """The forest that the attributes of a node describe.

    Args:
        of: "target" or "class": whose weights leaves have.
        targets: how many there are.
    Raises:
        ValueError: the attributes do not fit together, or a tree is none.
    """
    trees, ids = call.need("nodes_treeids"), call.need("nodes_nodeids")
    count = len(trees)
    made = Forest()
    made.feature = np.array(call.need("nodes_featureids"), np.int64)
    values = call.attr("nodes_values", call.attr("nodes_values_as_tensor"))
    weights = call.attr(f"{of}_weights", call.attr(f"{of}_weights_as_tensor"))
    if values is None or weights is None:
        raise call.fail("its nodes have no values or weights")
    kind = np.float64 if isinstance(values, np.ndarray) and values.dtype == np.float64 else np.float32
    made.value, made.mode = np.array(values, kind), np.array(call.need("nodes_modes"))
    missing = call.attr("nodes_missing_value_tracks_true") or [0] * count
    made.missing = np.array(missing, np.int64) != 0
    places = {key: i for i, key in enumerate(zip(trees, ids, strict=True))}
    lists = (made.feature, made.value, made.mode, made.missing, call.need("nodes_truenodeids"),
             call.need("nodes_falsenodeids"))
    if not count or {len(places), *map(len, lists)} != {count} or count * targets > _LARGE:
        raise call.fail("its lists of nodes have different lengths, or name a node twice")
    _connect(call, made, trees, places)
    _say(call, made, of, targets, places, weights)
    return made


def _connect(call: Call, made: Forest, trees: list[int], places: dict[tuple[int, int], int]) -> None:
    leaf = made.mode == "LEAF"
    unknown = {*made.mode.tolist()} - {*_MODES, "LEAF"}
    if unknown:
        raise call.fail(f"there are no modes {sorted(unknown)}")
    own = np.arange(len(trees))
    sides = []
    for name in ("nodes_truenodeids", "nodes_falsenodeids"):
        to = [i if end else places.get((tree, node), -1)
              for i, (tree, node, end) in enumerate(zip(trees, call.need(name), leaf.tolist(), strict=True))]
        sides.append(np.array(to, np.int64))
    made.true, made.false = sides
    if min(made.true.min(), made.false.min(), made.feature.min()) < 0:
        raise call.fail("a node leads to one that is not there")
    made.feature = np.where(leaf, 0, made.feature)
    inner = np.concatenate([made.true[~leaf], made.false[~leaf]])
    is_child = np.isin(own, inner)
    if len(np.unique(inner)) != len(inner) or is_child.sum() + len({*trees}) != len(trees):
        raise call.fail("its nodes are no trees")
    made.roots = own[~is_child].astype(np.int64)
    made.depth = _depth(call, made, leaf)


def _depth(call: Call, made: Forest, leaf: np.ndarray) -> int:
    """How many rounds lead from the roots to the last leaf."""
    level, rounds = made.roots, 0
    while len(level := level[~leaf[level]]):
        level = np.concatenate([made.true[level], made.false[level]])
        rounds += 1
        if rounds > len(leaf):
            raise call.fail("its nodes are no trees")
    return rounds


def _say(call: Call, made: Forest, of: str, targets: int, places: dict[tuple[int, int], int], weights: Any) -> None:
    rows = [places.get(key, -1) for key in zip(call.need(f"{of}_treeids"), call.need(f"{of}_nodeids"), strict=True)]
    columns = call.need(f"{of}_ids")
    if len(rows) != len(columns) or len(rows) != len(weights) or min([*rows, *columns], default=0) < 0 \
            or max(columns, default=0) >= targets:
        raise call.fail(f"the weights of its leaves do not fit its nodes or its {targets} targets")
    made.weights = np.zeros((len(made.mode), targets), made.value.dtype)
    np.add.at(made.weights, (np.array(rows, np.int64), np.array(columns, np.int64)), np.asarray(weights))
