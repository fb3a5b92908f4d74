"""Updates outside of a `tf.function`, compiled into one program once there have been a few.

Op by op an update takes a dozen ops for each variable, and as many passes over its memory; compiled it takes one pass
over all of them, with the same bits. Compiling takes longer than a few updates do, so the first ones run op by op. Only
the package's own formulas are compiled: a user's `update_step` may do in Python what a trace would do once.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import twofold as tf
from twofold._front import replica

__all__ = ["EagerUpdate"]

_PATIENCE = 10  # updates that run op by op before one is compiled
_MOST = 8  # programs of one optimizer; with more settings or sets of variables than that, updates run op by op
_PLAIN = frozenset({int, float, bool, type(None)})
_OWN = __name__.rpartition(".")[0]


class EagerUpdate:
    """The compiled updates of one optimizer."""

    def __init__(self, optimizer: Any):
        self._optimizer: Callable[[], Any] = weakref.ref(optimizer)
        self._possible = type(optimizer).__module__.startswith(_OWN)
        self._seen = 0
        self._programs: dict[Any, tuple[Any, Callable[..., None]]] = {}

    def __call__(self, grads: Sequence[Any], variables: Sequence[tf.Variable]) -> bool:
        """Do the whole update and count it, if it is one to be compiled; whether it was done."""
        if not self._possible or not tf.executing_eagerly() or tf.config.functions_run_eagerly():
            return False
        if self._seen < _PATIENCE:
            self._seen += 1
            return False
        optimizer = self._optimizer()
        program = self._program(optimizer, variables)
        if program is None:
            return False
        with tf.init_scope():  # tapes are not interested
            if _is_own(optimizer._learning_rate):
                program(*grads)
            else:
                program(*grads, tf.convert_to_tensor(optimizer.learning_rate))
        return True

    def _program(self, optimizer: Any, variables: Sequence[tf.Variable]) -> Callable[..., None] | None:
        """The program for these variables and the settings of now, if there can be one more."""
        settings = tuple(value for value in vars(optimizer).values() if type(value) in _PLAIN)
        key = (settings, replica.here.get().number, id(optimizer._learning_rate), *map(id, variables))
        program = self._programs.get(key)
        if program is None:
            if len(self._programs) >= _MOST:
                return None
            # what the key has by its id is kept, so that nothing else gets this id
            program = (optimizer._learning_rate, _compiled(optimizer, list(variables)))
            self._programs[key] = program
        return program[1]


def _compiled(optimizer: Any, variables: list[tf.Variable]) -> Callable[..., None]:
    reference: Callable[[], Any] = weakref.ref(optimizer)  # the program is the optimizer's, and should not keep it

    @tf.function(autograph=False)
    def update(*given: Any) -> None:
        """Take gradients, and behind them the learning rate where a function of the user's has given it."""
        optimizer, n = reference(), len(variables)
        optimizer._apply(given[:n], variables, given[n] if len(given) > n else optimizer.learning_rate)
        optimizer._iterations.assign_add(1)

    return update


def _is_own(rate: Any) -> bool:
    """Whether a learning rate is a variable, or a schedule of the package: no Python of the user's."""
    return isinstance(rate, tf.Variable) or type(rate).__module__.startswith(_OWN)
