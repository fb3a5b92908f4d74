"""The names of collections of graphs."""

from __future__ import annotations

__all__ = ["OF_VARIABLES", "GraphKeys"]


class GraphKeys:
    """Names of collections."""

    GLOBAL_VARIABLES = "variables"
    VARIABLES = "variables"
    LOCAL_VARIABLES = "local_variables"
    METRIC_VARIABLES = "metric_variables"
    MODEL_VARIABLES = "model_variables"
    TRAINABLE_VARIABLES = "trainable_variables"
    MOVING_AVERAGE_VARIABLES = "moving_average_variables"
    GLOBAL_STEP = "global_step"
    SUMMARIES = "summaries"
    LOSSES = "losses"
    REGULARIZATION_LOSSES = "regularization_losses"
    UPDATE_OPS = "update_ops"
    TRAIN_OP = "train_op"
    INIT_OP = "init_op"
    LOCAL_INIT_OP = "local_init_op"
    READY_OP = "ready_op"
    SUMMARY_OP = "summary_op"
    TABLE_INITIALIZERS = "table_initializer"
    SAVERS = "savers"
    WEIGHTS = "weights"
    BIASES = "biases"
    ACTIVATIONS = "activations"
    ASSET_FILEPATHS = "asset_filepaths"
    QUEUE_RUNNERS = "queue_runners"
    COND_CONTEXT = "cond_context"
    WHILE_CONTEXT = "while_context"


#: collections whose members follow from the variables of a graph
OF_VARIABLES = frozenset({GraphKeys.GLOBAL_VARIABLES, GraphKeys.LOCAL_VARIABLES, GraphKeys.TRAINABLE_VARIABLES})
