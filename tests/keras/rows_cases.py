"""Optimizers over a table of which rows are read, some of them several times in a step."""

from __future__ import annotations

import numpy as np

TABLE = np.arange(1, 16, dtype=np.float32).reshape(5, 3) / 8
STEPS = [[1, 1, 3], [0], [3, 1, 3, 3]]
PLAIN = ["SGD", "Adagrad", "Adam", "AdamW", "Adamax", "Nadam", "RMSprop", "Adadelta", "Ftrl", "Lion", "Lamb"]
CLIPPED = {"clipnorm": 0.5}, {"global_clipnorm": 0.5}, {"clipvalue": 0.3}
CASES = [*[(name, {}) for name in PLAIN], *[(name, given) for name in ("SGD", "Adam", "Adagrad") for given in CLIPPED],
         ("SGD", {"momentum": 0.9}), ("SGD", {"momentum": 0.9, "nesterov": True}), ("Adam", {"amsgrad": True}),
         ("Adam", {"weight_decay": 0.01}), ("RMSprop", {"centered": True}),
         ("RMSprop", {"momentum": 0.9}), ("Adam", {"gradient_accumulation_steps": 2})]
