"""Computations in TensorFlow 1's names that TensorFlow has done and twofold does: both call what is here.

`python tests/compat/v1_cases.py FILE`, where TensorFlow 2.21 and tf_keras are installed and TF_USE_LEGACY_KERAS=1 is
set, writes what TensorFlow gives; the tests compare with `data/v1.npz`, which was written so.
"""

import sys

import numpy as np

START = np.array([[0.5, -1.0, 2.0], [1.5, 0.25, -0.75]], np.float32)
STEPS = 4

OPTIMIZERS = {
    "sgd": lambda train: train.GradientDescentOptimizer(0.1),
    "momentum": lambda train: train.MomentumOptimizer(0.05, 0.9),
    "nesterov": lambda train: train.MomentumOptimizer(0.05, 0.9, use_nesterov=True),
    "adam": lambda train: train.AdamOptimizer(0.02, beta1=0.8, epsilon=1e-3),
    "adagrad": lambda train: train.AdagradOptimizer(0.3, initial_accumulator_value=0.2),
    "adadelta": lambda train: train.AdadeltaOptimizer(1.0, rho=0.9, epsilon=1e-3),
    "rmsprop": lambda train: train.RMSPropOptimizer(0.05, decay=0.8, momentum=0.5),
    "centered": lambda train: train.RMSPropOptimizer(0.05, decay=0.8, momentum=0.5, epsilon=1e-3, centered=True),
    "ftrl": lambda train: train.FtrlOptimizer(0.4),
    "ftrl_l1": lambda train: train.FtrlOptimizer(0.4, learning_rate_power=-0.6, initial_accumulator_value=0.2,
                                                 l1_regularization_strength=0.3, l2_regularization_strength=0.1),
    "ftrl_shrinkage": lambda train: train.FtrlOptimizer(0.4, l2_shrinkage_regularization_strength=0.1,
                                                        l1_regularization_strength=0.01),
    "proximal": lambda train: train.ProximalGradientDescentOptimizer(0.1, l1_regularization_strength=0.3,
                                                                     l2_regularization_strength=0.2),
    "proximal_adagrad": lambda train: train.ProximalAdagradOptimizer(0.3, l1_regularization_strength=0.3,
                                                                     l2_regularization_strength=0.2),
}


def optimised(v1, name):
    """The variable after each of some steps, the variables that the optimizer keeps, and their names."""
    with v1.Graph().as_default(), v1.Session() as session:
        w = v1.get_variable("w", initializer=START)
        loss = v1.reduce_sum(w * w * w * 0.1 + v1.sin(3.0 * w))
        optimizer = OPTIMIZERS[name](v1.train)
        step = optimizer.minimize(loss)
        session.run(v1.global_variables_initializer())
        values = []
        for _ in range(STEPS):
            session.run(step)
            values.append(session.run(w))
        kept = sorted(optimizer.variables(), key=lambda v: v.name)
        return np.stack(values), [session.run(v) for v in kept], [v.name for v in kept]


LABELS = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]], np.float32)
PREDICTIONS = np.array([[0.7, 0.2, 0.6], [0.1, 0.5, 0.9]], np.float32)
WEIGHTS = np.array([[0.5], [2.0]], np.float32)

LOSSES = {
    "absolute": lambda losses, **k: losses.absolute_difference(LABELS, PREDICTIONS, **k),
    "squared": lambda losses, **k: losses.mean_squared_error(LABELS, PREDICTIONS, **k),
    "huber": lambda losses, **k: losses.huber_loss(LABELS, PREDICTIONS, delta=0.4, **k),
    "log": lambda losses, **k: losses.log_loss(LABELS, PREDICTIONS, **k),
    "hinge": lambda losses, **k: losses.hinge_loss(LABELS, PREDICTIONS, **k),
    "cosine": lambda losses, **k: losses.cosine_distance(LABELS, PREDICTIONS, axis=1, **k),
    "softmax": lambda losses, **k: losses.softmax_cross_entropy(LABELS, PREDICTIONS, label_smoothing=0.1, **k),
    "sigmoid": lambda losses, **k: losses.sigmoid_cross_entropy(LABELS, PREDICTIONS, label_smoothing=0.1, **k),
    "sparse": lambda losses, **k: losses.sparse_softmax_cross_entropy(np.array([[0], [2]]), PREDICTIONS, **k),
}
REDUCTIONS = ("weighted_sum", "weighted_mean", "weighted_sum_over_batch_size", "weighted_sum_by_nonzero_weights")


def loss_values(v1, name):
    """A loss without weights, and with weights for each way to reduce it."""
    weights = WEIGHTS[:, 0] if name in ("softmax", "sparse") else WEIGHTS
    with v1.Graph().as_default(), v1.Session() as session:
        actual = [LOSSES[name](v1.losses), *[LOSSES[name](v1.losses, weights=weights, reduction=r) for r in REDUCTIONS]]
        return np.array(session.run(actual))


def pairwise(v1):
    """The loss of pairs, with and without weights, and the sum of all losses."""
    with v1.Graph().as_default(), v1.Session() as session:
        actual = [v1.losses.mean_pairwise_squared_error(LABELS, PREDICTIONS),
                 v1.losses.mean_pairwise_squared_error(LABELS, PREDICTIONS, weights=WEIGHTS)]
        return np.array(session.run([*actual, v1.losses.get_total_loss()]))


RATES = {
    "exponential": lambda train, step: train.exponential_decay(0.5, step, 4, 0.3),
    "stairs": lambda train, step: train.exponential_decay(0.5, step, 4, 0.3, staircase=True),
    "natural": lambda train, step: train.natural_exp_decay(0.5, step, 4, 0.3, staircase=True),
    "inverse": lambda train, step: train.inverse_time_decay(0.5, step, 4, 0.3),
    "polynomial": lambda train, step: train.polynomial_decay(0.5, step, 4, 0.1, power=2.0, cycle=True),
    "cosine": lambda train, step: train.cosine_decay(0.5, step, 6, alpha=0.1),
    "restarts": lambda train, step: train.cosine_decay_restarts(0.5, step, 3, t_mul=1.5, m_mul=0.5, alpha=0.1),
    "linear_cosine": lambda train, step: train.linear_cosine_decay(0.5, step, 6, num_periods=1.5, alpha=0.1, beta=0.01),
    "pieces": lambda train, step: train.piecewise_constant(step, [2, 5], [0.5, 0.2, 0.1]),
}


def rates(v1, name):
    """A rate at steps 0 to 9."""
    with v1.Graph().as_default(), v1.Session() as session:
        step = v1.placeholder(v1.int32, [])
        rate = RATES[name](v1.train, step)
        return np.array([session.run(rate, {step: n}) for n in range(10)])


def averages(v1):
    """Moving averages over some steps: of a variable, plain and with a count of updates, and of a tensor, both ways."""
    with v1.Graph().as_default(), v1.Session() as session:
        w = v1.get_variable("w", initializer=START)
        count = v1.get_variable("count", initializer=1, trainable=False)
        made = [v1.train.ExponentialMovingAverage(0.9), v1.train.ExponentialMovingAverage(0.9, count, name="counted"),
                v1.train.ExponentialMovingAverage(0.9, name="of_tensor"),
                v1.train.ExponentialMovingAverage(0.9, zero_debias=True, name="corrected")]
        averaged = [w, w, w * 2.0, w * 2.0]
        apply = [each.apply([x]) for each, x in zip(made, averaged, strict=True)]
        move = [w.assign(w * 0.5 + 1.0), count.assign_add(1)]
        session.run(v1.global_variables_initializer())
        values = []
        for _ in range(STEPS):
            session.run(move)
            session.run(apply)
            values.append(session.run([each.average(x) for each, x in zip(made, averaged, strict=True)]))
        return np.array(values)


def normalised(v1, rank):
    """Batch normalisation in training: outputs and moving averages after two steps, and the outputs of inference."""
    x = np.random.RandomState(0).randn(*(6, 3, 2, 4)[4 - rank:]).astype(np.float32) * 2 + 1
    with v1.Graph().as_default(), v1.Session() as session:
        inputs, training = v1.placeholder(v1.float32, [None, *x.shape[1:]]), v1.placeholder(v1.bool, [])
        out = v1.layers.batch_normalization(inputs, momentum=0.7, training=training)
        updates = v1.get_collection(v1.GraphKeys.UPDATE_OPS)
        session.run(v1.global_variables_initializer())
        actual = [session.run([out, *updates], {inputs: x * k, training: True})[0] for k in (1.0, 2.0)]
        actual.append(session.run(out, {inputs: x, training: False}))
        moving = [session.run(v) for v in v1.global_variables() if "moving" in v.name]
        return np.stack(actual), np.stack(moving)


def _filled(v1, seed=0):
    """Give all variables of the graph numbers, by their order of names."""
    rng = np.random.RandomState(seed)
    return [v.assign(rng.randn(*v.shape.as_list()).astype(np.float32) * 0.5)
            for v in sorted(v1.global_variables(), key=lambda v: v.name)]


def recurrent(v1, kind):
    """Outputs and last state of a cell over sequences of several lengths, and the names of its variables."""
    cells = v1.nn.rnn_cell
    make = {
        "basic": lambda: cells.BasicRNNCell(4), "gru": lambda: cells.GRUCell(4), "lstm": lambda: cells.BasicLSTMCell(4),
        "full": lambda: cells.LSTMCell(4, use_peepholes=True, num_proj=3, cell_clip=0.8, proj_clip=0.7),
        "stack": lambda: cells.MultiRNNCell([cells.BasicLSTMCell(4), cells.ResidualWrapper(cells.GRUCell(4))]),
    }[kind]
    x = np.random.RandomState(1).randn(3, 5, 2).astype(np.float32)
    with v1.Graph().as_default(), v1.Session() as session:
        inputs = v1.placeholder(v1.float32, [None, 5, 2])
        outputs, state = v1.nn.dynamic_rnn(make(), inputs, sequence_length=[5, 2, 3], dtype=v1.float32)
        names = sorted(v.name for v in v1.global_variables())
        session.run(v1.global_variables_initializer())
        session.run(_filled(v1))
        actual = session.run([outputs, *_flat(state)], {inputs: x})
        return actual[0], np.concatenate([s.ravel() for s in actual[1:]]), names


def _flat(state):
    return [s for part in state for s in _flat(part)] if isinstance(state, tuple) else [state]


def convolved(v1):
    """A small network of layers, and the names of its variables."""
    x = np.random.RandomState(2).randn(2, 8, 8, 3).astype(np.float32)
    with v1.Graph().as_default(), v1.Session() as session:
        inputs = v1.placeholder(v1.float32, [None, 8, 8, 3])
        with v1.variable_scope("net"):
            h = v1.layers.conv2d(inputs, 4, 3, padding="same", activation=v1.nn.relu)
            h = v1.layers.separable_conv2d(h, 5, 3, name="sep")
            h = v1.layers.max_pooling2d(h, 2, 2)
            h = v1.layers.conv2d_transpose(h, 2, 3, strides=2)
            h = v1.layers.flatten(h)
            out = v1.layers.dense(h, 3)
        with v1.variable_scope("net", reuse=True):
            again = v1.layers.dense(h, 3)
        names = sorted(v.name for v in v1.global_variables())
        session.run(v1.global_variables_initializer())
        session.run(_filled(v1))
        first, second = session.run([out, again], {inputs: x})
        assert (first == second).all()
        return first, names


def metrics(v1):
    """Metrics after each of two batches, in the order in which they are made."""
    labels = np.array([[0, 1, 1, 0, 1], [1, 0, 0, 1, 1]])
    predictions = np.array([[0, 1, 0, 1, 1], [1, 1, 0, 0, 1]])
    weights = np.array([[1.0, 0.5, 2.0, 1.0, 0.0], [1.0, 1.0, 0.5, 3.0, 1.0]], np.float32)
    with v1.Graph().as_default(), v1.Session() as session:
        given, told, count = (v1.placeholder(kind, [None]) for kind in (v1.int64, v1.int64, v1.float32))
        pairs = [getattr(v1.metrics, name)(given, told, weights=count) for name in (
            "accuracy", "precision", "recall", "true_positives", "false_positives", "true_negatives",
            "false_negatives")]
        pairs += [getattr(v1.metrics, name)(v1.cast(given, v1.float32), v1.cast(told, v1.float32) * 0.5, weights=count)
                  for name in ("mean_squared_error", "root_mean_squared_error", "mean_absolute_error")]
        pairs += [v1.metrics.mean(count), v1.metrics.mean_iou(given, told, 2),
                  v1.metrics.mean_per_class_accuracy(given, told, 2), v1.metrics.percentage_below(count, 1.0)]
        session.run(v1.local_variables_initializer())
        values = []
        for row in range(2):
            feed = {given: labels[row], told: predictions[row], count: weights[row]}
            session.run([update for _, update in pairs], feed)
            values.append([float(np.mean(v)) for v in session.run([value for value, _ in pairs], feed)])
        return np.array(values)


def all_values(v1):
    """Everything, by name, for the file."""
    actual = {"averages": averages(v1), "pairwise": pairwise(v1), "metrics": metrics(v1)}
    for name in OPTIMIZERS:
        steps, kept, names = optimised(v1, name)
        actual[f"optimizer/{name}"], actual[f"optimizer/{name}/names"] = steps, np.array(names)
        for n, value in enumerate(kept):
            actual[f"optimizer/{name}/{n}"] = value
    actual.update({f"loss/{name}": loss_values(v1, name) for name in LOSSES})
    actual.update({f"rate/{name}": rates(v1, name) for name in RATES})
    for rank in (2, 4):
        actual[f"normalised/{rank}"], actual[f"moving/{rank}"] = normalised(v1, rank)
    for kind in ("basic", "gru", "lstm", "full", "stack"):
        outputs, state, names = recurrent(v1, kind)
        actual.update({f"rnn/{kind}": outputs, f"state/{kind}": state, f"rnn/{kind}/names": np.array(names)})
    actual["layers"], names = convolved(v1)
    actual["layers/names"] = np.array(names)
    return actual


if __name__ == "__main__":
    import tensorflow

    tensorflow.compat.v1.disable_v2_behavior()
    np.savez(sys.argv[1], **all_values(tensorflow.compat.v1))
