"""Objects of the library as pickles, as copies, and in other processes."""

from __future__ import annotations

import copy
import importlib
import inspect
import pickle
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from house.tree import module_name, shipped_modules

import twofold as tf
from twofold.ir.errors import ChoiceNeeded, CompositeOperand, OpError, SymbolicOperand

# The ways to copy, and whether what a copy holds is its own, too.
WAYS: dict[str, Callable[[Any], Any]] = {
    **{f"pickle {n}": lambda x, n=n: pickle.loads(pickle.dumps(x, n)) for n in (2, 4, pickle.HIGHEST_PROTOCOL)},
    "deepcopy": copy.deepcopy}
ways = pytest.mark.parametrize("way", WAYS)


def exceptions() -> list[type[BaseException]]:
    """All classes of exceptions that the package defines."""
    actual = set()
    for path in shipped_modules():
        name = module_name(path)
        if name.endswith("__main__") or name.startswith("twofold.as_tensorflow"):  # which takes a name of the process
            continue
        for value in vars(importlib.import_module(name)).values():
            if inspect.isclass(value) and issubclass(value, BaseException) and value.__module__.startswith("twofold"):
                actual.add(value)
    return sorted(actual, key=lambda c: (c.__module__, c.__name__))


def test_each_exception_is_what_it_was() -> None:
    classes = exceptions()
    assert len(classes) > 35
    from twofold._formats.node_errors import NodeError
    from twofold.ir.dims import BroadcastError
    from twofold.onnx_files.export_writer import NoMeaning
    from twofold.runtime.calls import NodeFailure
    from twofold.runtime.cuda_launch import RowError
    from twofold.serve.refusals import Refusal
    for cls in classes:
        error: Any
        if cls is BroadcastError:
            error = BroadcastError(1, (2, 3), ((1, 2), (1, 3)))
        elif cls is NodeFailure:
            error = NodeFailure("gather", None, "an index")
        elif cls is RowError:
            made = pickle.loads(pickle.dumps(RowError(3, tf.errors.InternalError(None, "matmul", "it is refused"))))
            assert type(made) is RowError and made.row == 3 and type(made.error) is tf.errors.InternalError
            assert str(made) == str(made.error) and "it is refused" in str(made)
            continue
        elif cls is ChoiceNeeded:
            made = pickle.loads(pickle.dumps(ChoiceNeeded(tf.constant(1), None, "axis")))
            assert type(made) is SymbolicOperand and "axis must be known" in str(made)
            continue
        elif cls is CompositeOperand:
            made = pickle.loads(pickle.dumps(CompositeOperand("a value")))
            assert type(made) is SymbolicOperand and "cannot be an operand here" in str(made)
            continue
        elif cls is NodeError:
            made = pickle.loads(pickle.dumps(cls("a node", ValueError("what is wrong"))))
            assert type(made) is cls and str(made) == "a node: what is wrong"
            continue
        elif cls is NoMeaning:
            error = NoMeaning("what is missing", "what can be done")
        elif cls is Refusal:
            error = Refusal(429, "too much", {"Retry-After": "1"})
        elif issubclass(cls, OpError):
            error = cls(None, "matmul", "what is wrong")
        else:
            error = cls("what is wrong")
        error.more = [1]
        for name, way in WAYS.items():
            made = way(error)
            assert type(made) is cls and str(made) == str(error) and vars(made) == vars(error), (cls, name)
            assert made.args == error.args


def raised(work: Callable[[], Any]) -> Any:
    with pytest.raises(Exception) as caught:
        work()
    return caught.value


FAULTS: dict[str, Callable[[], Any]] = {
    "an op": lambda: tf.matmul(tf.ones([2, 3]), tf.ones([2, 3])),
    "a dtype": lambda: tf.constant([1]) + tf.constant([1.0]),
    "a check in a kernel": lambda: tf.gather(tf.ones([2]), tf.constant([5])),
    "a compiled function": lambda: tf.function(lambda x: tf.reshape(x, [7]))(tf.ones([2])),
    "a check in a compiled function": lambda: tf.function(lambda x, n: tf.gather(x, n))(tf.ones([2]), tf.constant(9)),
    "an assertion": lambda: tf.debugging.assert_equal(1, 2),
    "a plain error": lambda: tf.Variable(None),
    "a layer": lambda: tf.keras.layers.Dense("many"),
    "a file": lambda: tf.train.Checkpoint().restore("/none/at/all"),
    "a symbolic tensor": lambda: tf.function(lambda x: x.numpy(), fallback=False)(tf.constant(1.0)),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_errors_that_were_raised(fault: str) -> None:
    error = raised(FAULTS[fault])
    for way in WAYS.values():
        made = way(error)
        assert type(made) is type(error) and str(made) == str(error)
        assert getattr(made, "op", None) == getattr(error, "op", None)
    complete = getattr(error, "__twofold_traceback__", None)
    if complete is not None:
        assert traceback.extract_tb(complete)  # the original keeps its own
        assert not made.__twofold_traceback__


# -- values ---------------------------------------------------------------------------------------
@ways
def test_tensors(way: str) -> None:
    for x in (tf.constant([[1.0, 2.0]]), tf.constant(["a", "b"]), tf.ones([3], tf.bfloat16), tf.zeros([0, 2]),
              tf.zeros([5000]), tf.transpose(tf.reshape(tf.range(6), [2, 3]))):
        made = WAYS[way](x)
        assert made.dtype == x.dtype
        np.testing.assert_array_equal(made, x, strict=True)


@ways
def test_variables(way: str) -> None:
    v = tf.Variable([1.0, 2.0], name="v", trainable=False, shape=[None])
    v.more = "mine"
    made, same, other = WAYS[way]((v, [v], tf.Variable(tf.zeros([3000]))))
    assert same[0] is made and made is not v and type(made) is tf.Variable
    assert (made.name, made.trainable, made.shape.as_list(), made.more) == ("v:0", False, [None], "mine")
    made.assign([7.0])
    assert v.numpy().tolist() == [1.0, 2.0] and made.numpy().tolist() == [7.0]
    assert not other.numpy().any()
    with tf.name_scope("scope"):
        assert WAYS[way](v).name == "v:0"


def test_a_shallow_copy_of_a_variable_is_a_variable_of_its_own() -> None:
    v = tf.Variable([1.0], name="v")
    made = copy.copy(v)
    made.assign([2.0])
    assert v.numpy().tolist() == [1.0] and made.name == v.name


@ways
def test_gradients_of_copies(way: str) -> None:
    v = tf.Variable([3.0])
    made = WAYS[way](v)
    with tf.GradientTape() as tape:
        y = v * made * made
    assert [g.numpy().tolist() for g in tape.gradient(y, [v, made])] == [[9.0], [18.0]]


@ways
def test_generators_go_on_alike(way: str) -> None:
    generator = tf.random.Generator.from_seed(3)
    generator.normal([5])
    made = WAYS[way](generator)
    np.testing.assert_array_equal(made.normal([4]), generator.normal([4]))


class Net(tf.Module):
    """A module with a variable in each kind of place."""

    def __init__(self) -> None:
        super().__init__(name="net")
        self.w = tf.Variable([2.0], name="w")
        self.more = {"a": [tf.Variable(1.0)], "same": self.w}


@ways
def test_modules_keep_what_is_shared(way: str) -> None:
    made = WAYS[way](Net())
    assert made.more["same"] is made.w and len(made.variables) == 2 and made.name == "net"


# -- Keras ----------------------------------------------------------------------------------------
class Scale(tf.keras.layers.Layer):
    """A layer of the user's."""

    def build(self, shape: Any) -> None:
        self.scale = self.add_weight(name="scale", shape=(shape[-1],), initializer="ones")

    def call(self, x: Any) -> Any:
        return x * self.scale


class Subclassed(tf.keras.Model):
    """A model of the user's."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = tf.keras.layers.Dense(4), Scale()

    def call(self, x: Any) -> Any:
        return self.second(self.first(x))


def sequential() -> Any:
    layers = tf.keras.layers
    return tf.keras.Sequential([layers.Input((3,)), layers.Dense(4, "relu"), Scale(), layers.BatchNormalization(),
                                layers.Dropout(0.3, seed=1), layers.Dense(4)])


def functional() -> Any:
    x = tf.keras.Input((3,), name="x")
    shared = tf.keras.layers.Dense(3)
    return tf.keras.Model(x, {"y": tf.keras.layers.Add()([shared(x), shared(shared(x))])})


MODELS = {"sequential": sequential, "functional": functional, "subclassed": Subclassed}
X = np.random.default_rng(0).normal(size=(8, 3)).astype(np.float32)


@ways
@pytest.mark.parametrize("kind", MODELS)
def test_models_before_and_after_training(kind: str, way: str) -> None:
    """A copy gives the same results, and training it further gives what training the original would have given."""
    tf.keras.utils.set_random_seed(2)
    model = MODELS[kind]()
    fresh = WAYS[way](model)
    assert [w.shape for w in fresh.weights] == [w.shape for w in model.weights]
    y = {"y": X} if kind == "functional" else np.ones((8, 4), np.float32)
    model.compile("adam", "mse", metrics=["mae"])
    model.fit(X, y, epochs=2, verbose=0)
    made = WAYS[way](model)
    assert made.name == model.name and not {id(w) for w in made.weights} & {id(w) for w in model.weights}
    for a, b in zip(tf.nest.flatten(made(X)), tf.nest.flatten(model(X)), strict=True):
        np.testing.assert_array_equal(a, b)
    before = [w.numpy() for w in model.weights]
    made.fit(X, y, shuffle=False, verbose=0)
    for w, value in zip(model.weights, before, strict=True):
        np.testing.assert_array_equal(w, value)
    model.fit(X, y, shuffle=False, verbose=0)
    for a, b in zip(made.weights, model.weights, strict=True):
        np.testing.assert_array_equal(a, b)
    assert int(made.optimizer.iterations) == int(model.optimizer.iterations)


def parts() -> list[Any]:
    """One of each class of optimizer, loss, metric, initializer, regularizer, constraint and schedule."""
    keras, actual = tf.keras, []
    for space in (keras.optimizers, keras.losses, keras.metrics, keras.initializers, keras.regularizers,
                  keras.constraints, keras.optimizers.schedules):
        for name in space.__all__:
            cls = getattr(space, name)
            needed = inspect.isclass(cls) and [p for p in inspect.signature(cls).parameters.values()
                                               if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]
            if inspect.isclass(cls) and not needed and not inspect.isabstract(cls):
                try:
                    actual.append(cls())
                except (TypeError, ValueError, NotImplementedError):
                    continue  # a base class, or one with choices to make
    return actual


@ways
def test_parts_of_models(way: str) -> None:
    actual = parts()
    assert len(actual) > 90
    for part in actual:
        made = WAYS[way](part)
        assert type(made) is type(part)
        if "get_config" in vars(type(part)) and type(part) is not tf.keras.optimizers.schedules.LearningRateSchedule:
            assert str(made.get_config()) == str(part.get_config())


@ways
def test_deep_networks_with_shared_layers_and_results_in_the_middle(way: str) -> None:
    inputs = {"a": tf.keras.Input((3,), name="a"), "b": tf.keras.Input((3,), name="b")}
    shared = tf.keras.layers.Dense(3, use_bias=False, kernel_initializer="orthogonal")
    x = inputs["a"] + 2.0 * inputs["b"]
    for _ in range(400):  # deeper than Python's stack
        x = shared(x)
    model = tf.keras.Model(inputs, [x, tf.keras.layers.Concatenate(axis=-1)([x, x])])
    made = WAYS[way](model)
    for a, b in zip(made({"a": X, "b": X}), model({"a": X, "b": X}), strict=True):
        np.testing.assert_array_equal(a, b)
    assert str(made.get_config()) == str(model.get_config())
    inner = tf.keras.Model(model.layers[3].output, model.outputs[1])  # from the middle
    np.testing.assert_array_equal(WAYS[way](inner)(X), inner(X))


def test_a_shallow_copy_of_what_holds_state_has_a_state_of_its_own() -> None:
    """As in Keras."""
    layer, metric, optimizer = tf.keras.layers.Dense(2), tf.keras.metrics.Sum(), tf.keras.optimizers.SGD()
    layer.build((None, 3))
    copies = [copy.copy(x) for x in (layer, metric, optimizer)]
    layer.kernel.assign(tf.zeros([3, 2]))
    metric.update_state(3.0)
    optimizer.iterations.assign(5)
    assert copies[0].kernel.numpy().any() and float(copies[1].result()) == 0.0 and int(copies[2].iterations) == 0


@ways
def test_metrics_keep_their_state(way: str) -> None:
    metric = tf.keras.metrics.MeanAbsoluteError()
    metric.update_state([1.0, 2.0], [2.0, 5.0])
    made = WAYS[way](metric)
    metric.reset_state()
    assert float(made.result()) == 2.0


# -- processes ------------------------------------------------------------------------------------
POOL = """
import multiprocessing
import numpy as np
import twofold as tf

def doubled(v):
    v.assign(v * 2.0)
    return v

def predicted(model, x):
    return model(x)

def wrong(n):
    return tf.ones([n]) + tf.ones([n + 1, 3])

if __name__ == "__main__":
    layers, x = tf.keras.layers, np.ones([2, 3], np.float32)
    model = tf.keras.Sequential([layers.Input((3,)), layers.Dense(4, "relu"), layers.BatchNormalization()])
    v = tf.Variable(tf.fill([3000], 2.0), name="v")
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        made = pool.apply(doubled, (v,))
        assert np.array_equal(made, np.full(3000, 4.0)) and made.name == "v:0" and float(v[0]) == 2.0
        assert np.array_equal(pool.apply(predicted, (model, x)), model(x))
        try:
            pool.apply(wrong, (2,))
        except tf.errors.InvalidArgumentError as e:
            print(type(e).__name__, e.op, "in wrong()" in str(e))
"""


def test_a_pool_of_processes(tmp_path: Path) -> None:
    (tmp_path / "pool.py").write_text(POOL)
    done = subprocess.run([sys.executable, tmp_path / "pool.py"], capture_output=True, text=True, timeout=100)
    assert done.stdout == "ShapeError add True\n", done.stderr
