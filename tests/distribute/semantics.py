"""What replicas on two logical CPUs compute, written for `tf`: this library, and TensorFlow, which says what is right.

    python tests/distribute/semantics.py

in an environment with TensorFlow writes `semantics.json`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

__all__ = ["WAYS", "results"]

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "semantics.json")
WAYS = ["op by op", "one function", "traced together"]
AGGREGATIONS = ["NONE", "SUM", "MEAN", "ONLY_FIRST_REPLICA"]
SCATTERS = ["scatter_add", "scatter_sub", "scatter_mul", "scatter_div", "scatter_max", "scatter_min", "scatter_update"]


def shown(tf: Any, value: Any) -> Any:
    """A result as JSON holds it: values of replicas as a list behind the name of their kind."""
    kinds = tf.types.experimental.distributed
    if isinstance(value, tf.distribute.DistributedValues):
        kind = "PerReplica" if isinstance(value, kinds.PerReplica) else (
            "Mirrored" if isinstance(value, kinds.Mirrored) else "on read")
        return [kind + " variable" * isinstance(value, tf.Variable), *[shown(tf, v) for v in value.values]]
    if isinstance(value, (list, tuple)):
        return [shown(tf, v) for v in value]
    if isinstance(value, dict):
        return {key: shown(tf, v) for key, v in value.items()}
    if isinstance(value, tf.IndexedSlices):
        return ["slices", shown(tf, value.values), shown(tf, value.indices)]
    if isinstance(value, tf.RaggedTensor):
        return value.to_list()
    return np.asarray(value.numpy()).tolist() if isinstance(value, (tf.Tensor, tf.Variable)) else value


class Program:
    """The calls, by names.

    Args:
        tf: the library.
        way: how functions run in replicas, one of `WAYS`.
    """

    def __init__(self, tf: Any, way: str) -> None:
        self.tf, self.way = tf, way
        self.strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
        self.context: Callable[[], Any] = tf.distribute.get_replica_context
        self.x = self.parts(lambda n: tf.constant([n + 1.0, n * 10.0]))

    def parts(self, make: Callable[[int], Any]) -> Any:
        """A value for each replica."""
        return self.strategy.experimental_distribute_values_from_function(
            lambda about: make(about.replica_id_in_sync_group))

    def number(self) -> Any:
        """1.0 or 2.0, in the first replica or the second."""
        return self.tf.cast(self.context().replica_id_in_sync_group, self.tf.float32) + 1.0

    def run(self, fn: Callable[..., Any], *args: Any) -> Any:
        """What replicas give."""
        tf = self.tf
        fn = tf.autograph.experimental.do_not_convert(fn)
        if self.way == "traced together":
            return tf.function(lambda *args: self.strategy.run(fn, args))(*args)
        return self.strategy.run(fn if self.way == "op by op" else tf.function(fn), args)

    def done(self, fn: Callable[..., Any], *args: Any) -> None:
        """Has replicas do something."""
        self.run(lambda *args: [fn(*args), None][1], *args)

    def variable(self, value: Any = 10.0, aggregation: str = "NONE", synchronization: str = "AUTO") -> Any:
        """A variable of the strategy's scope."""
        tf = self.tf
        with self.strategy.scope():
            return tf.Variable(value, aggregation=tf.VariableAggregation[aggregation],
                               synchronization=tf.VariableSynchronization[synchronization])

    def calls(self) -> Iterator[tuple[str, Callable[[], Any]]]:
        """All of them."""
        yield from self.reductions()
        yield from self.merges()
        for aggregation in AGGREGATIONS:
            for synchronization in ("AUTO", "ON_READ"):
                for name, call in self.variables(aggregation, synchronization):
                    yield f"{aggregation} {synchronization} {name}", call
        for aggregation in AGGREGATIONS:
            for method in SCATTERS:
                yield f"{aggregation} {method}", lambda a=aggregation, m=method: self.scattered(a, m)

    def reductions(self) -> Iterator[tuple[str, Callable[[], Any]]]:
        """Sums, means and joins."""
        tf, context, strategy, number = self.tf, self.context, self.strategy, self.number
        shared, ints = tf.constant(3.0), self.parts(lambda n: tf.constant([n + 1, n * 10]))

        def slices(rows: int, dtype: Any = tf.float32) -> Any:
            return tf.IndexedSlices(tf.cast(tf.ones([rows, 2]) * number(), dtype), tf.range(rows), tf.constant([4, 2]))

        def slope() -> Any:
            with tf.GradientTape() as tape:
                v = number() * 2.0
                tape.watch(v)
                y = context().all_reduce("SUM", v * v) * number()
            return tape.gradient(y, v)
        yield "sum", lambda: self.run(lambda: context().all_reduce("SUM", [number(), {"a": number() * 2.0}]))
        yield "sum of one tensor of all", lambda: self.run(lambda: context().all_reduce("SUM", shared))
        yield "mean", lambda: self.run(lambda x: context().all_reduce("MEAN", x), self.x)
        yield "mean of integers", lambda: self.run(lambda x: context().all_reduce("MEAN", x), ints)
        yield "slices", lambda: self.run(lambda: context().all_reduce("SUM", slices(2)))
        yield "mean of slices", lambda: self.run(lambda: context().all_reduce("MEAN", [slices(1), number()]))
        yield "mean of slices of integers", lambda: self.run(lambda: context().all_reduce("MEAN", slices(1, tf.int32)))
        yield "join", lambda: self.run(lambda x: context().all_gather(x, 0), self.x)
        yield "gradient", lambda: self.run(slope)
        if self.way != "op by op":
            return
        for kind in ("SUM", "MEAN"):
            for axis in (None, 0):
                yield f"reduce {kind} {axis}", lambda k=kind, a=axis: [strategy.reduce(k, v, a) for v in (self.x, ints)]
            yield f"reduce {kind} of one value", lambda k=kind: strategy.reduce(k, shared, None)
            yield f"reduce {kind} of slices", lambda k=kind: strategy.reduce(k, strategy.run(lambda: slices(2)), None)
        for name, to in {"device": "CPU:0", "value": self.x, "variable": self.variable()}.items():
            yield f"reduce to {name}", lambda to=to: strategy.extended.reduce_to("SUM", self.x, to)
        yield "batch reduce to", lambda: strategy.extended.batch_reduce_to("MEAN", [(self.x, self.x)] * 2)
        yield "mirrored values", lambda: strategy.extended.reduce_to("SUM", self.x, self.x) * 2.0 + 1.0
        yield "gather", lambda: [strategy.gather(v, 0) for v in (self.x, tf.constant([1.0]))]
        yield "outside of replicas", lambda: self.x + 1.0
        yield "local results", lambda: strategy.experimental_local_results((self.x, {"a": 1}))

    def merges(self) -> Iterator[tuple[str, Callable[[], Any]]]:
        """Calls for all replicas from within them, and what they give."""
        tf, context, number = self.tf, self.context, self.number
        here = tf.distribute.in_cross_replica_context

        def merged(fn: Callable[..., Any], *args: Callable[[], Any]) -> Any:
            return self.run(lambda: context().merge_call(fn, [arg() for arg in args]))
        yield "merge and reduce", lambda: merged(lambda s, x: s.reduce("SUM", x, None), number)
        yield "merge and reduce to", lambda: merged(lambda s, x: s.extended.reduce_to("SUM", x, x), number)
        yield "merge and give back", lambda: merged(lambda s, x, y: [x, y], number, lambda: 2)
        yield "merge and look", lambda: merged(lambda s: [here(), context() is None])
        yield "structures", lambda: self.run(lambda: {"a": [number(), (1.0, None)]})
        yield "operands", lambda: self.run(lambda x: x + 1.0, self.x)

        decider = self.variable()

        def conditional(x: Any) -> Any:
            return tf.cond(decider + x[0] > 0.0, lambda: context().merge_call(lambda s: tf.constant(1.0)), lambda: 0.0)
        yield "merge in a branch", lambda: self.run(conditional, self.x)

        def step(layer: Any) -> Any:
            if not hasattr(layer, "w"):
                layer.w = tf.Variable(number(), aggregation=tf.VariableAggregation.SUM)
            layer.w.assign_add(number())
            return layer.w.read_value()
        if self.way == "op by op":
            yield "made in replicas", lambda: (lambda layer: [self.run(lambda: step(layer)), layer.w])(tf.Module())

    def variables(self, aggregation: str, synchronization: str) -> Iterator[tuple[str, Callable[[], Any]]]:
        """What assignments in and outside of replicas make of a variable, one after another."""
        tf, number, strategy = self.tf, self.number, self.strategy
        v, other = self.variable(10.0, aggregation, synchronization), self.variable()

        def read() -> Any:
            return v.values, self.run(lambda: v.read_value()), self.run(lambda: v + 0.5)

        def merged() -> Any:
            self.context().merge_call(lambda s, x: s.extended.update(v, lambda c, b: c.assign_add(b), args=(x,)),
                                      (number(),))
        yield "attributes", lambda: [v.aggregation.name, v.synchronization.name, v.name, v.trainable, v.shape.as_list(),
                                     [copy.name for copy in v.values], strategy.extended.variable_created_in_scope(v)]
        yield "assign", lambda: [self.done(lambda: v.assign(number())), read()]
        yield "add", lambda: [self.done(lambda: v.assign_add(number() * 3.0)), read()]
        yield "sub", lambda: [self.done(lambda: v.assign_sub(number())), read()]
        yield "read outside", lambda: [v.read_value(), v + 1.0, v.value()]
        yield "update", lambda: [self.done(merged), v.values]
        yield "update in replicas", lambda: [self.done(lambda: strategy.extended.update(
            v, lambda c, b: c.assign_sub(b), args=(number(),))), v.values]
        yield "update by a number", lambda: [strategy.extended.update(v, lambda c, b: c.assign(other * b), args=(2.0,)),
                                             v.values][1]
        yield "update and read", lambda: strategy.extended.update(other, lambda c, b: c + v + b, args=(self.x,))
        yield "update without a group", lambda: strategy.extended.update(other, lambda c: c * 2.0, group=False)
        yield "local results", lambda: strategy.experimental_local_results(v)
        yield "mean", lambda: tf.identity(strategy.reduce("MEAN", v, None))
        if synchronization == "AUTO":
            yield "assign outside", lambda: [v.assign(4.0), v.assign_add(1.0), v.values][2]
            yield "assign parts outside", lambda: [v.assign(self.parts(lambda n: n + 1.0)), v.values][1]
            yield "gradient", lambda: self.run(lambda: self.gradient(v))

    def gradient(self, v: Any) -> Any:
        """That of a replica."""
        with self.tf.GradientTape() as tape:
            y = v * v * self.number()
        return tape.gradient(y, v)

    def scattered(self, aggregation: str, method: str) -> Any:
        """A variable after a change of a row."""
        tf = self.tf
        v = self.variable([10.0, 1.5, 30.0], aggregation)
        self.done(lambda: getattr(v, method)(tf.IndexedSlices(tf.ones([1]) * self.number() * 2.0, tf.constant([1]))))
        return v.values


def results(tf: Any, way: str) -> dict[str, Any]:
    """What each call gives: "!" where it is an error."""
    told = {}
    for name, call in Program(tf, way).calls():
        try:
            told[name] = shown(tf, call())
        except Exception:  # noqa: BLE001 - any error is one
            told[name] = "!"
    return told


if __name__ == "__main__":
    import tensorflow

    cpu, = tensorflow.config.list_physical_devices("CPU")
    tensorflow.config.set_logical_device_configuration(cpu, [tensorflow.config.LogicalDeviceConfiguration()] * 2)
    if sys.argv[1:]:
        print(json.dumps({name: json.dumps(value) for name, value in results(tensorflow, sys.argv[1]).items()}))
    else:  # in a process for each way: TensorFlow's collectives of one strategy disturb those of another
        given = {way: json.loads(subprocess.check_output([sys.executable, __file__, way])) for way in WAYS}
        with open(PATH, "w") as file:
            json.dump(given, file, indent=0)
