"""Whatever users call of the library tells who it is: no public function, method or setter is without a guard."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fuzz.bad_targets import modules

import twofold as tf
from twofold._front import api as _api
from twofold._front import namespace as _namespace
from twofold.ir.errors import is_ours


def classes() -> Iterator[tuple[str, type]]:
    """The public classes, by the names that users type."""
    for path, module in modules().items():
        for name in module.__all__:
            value = getattr(module, name, None)
            if inspect.isclass(value) and not issubclass(value, BaseException):
                yield f"{path}.{name}", value


# What Python calls by itself, or what takes anything: nothing that users give can be wrong there but for attributes,
# whose errors are AttributeErrors, and values that conversions ask for, which name the tensor.
UNTOLD = {"__array__", "__bool__", "__buffer__", "__deepcopy__", "__delattr__", "__dlpack__", "__eq__", "__exit__",
          "__float__", "__format__", "__getattr__", "__index__", "__init_subclass__", "__int__", "__iter__", "__len__",
          "__get__", "__ne__", "__setattr__", "__setstate__", "__subclasshook__", "__tf_tensor__",
          "__tf_tracing_type__",
          "__with_trace_token__"}


def bare(cls: type) -> list[str]:
    """The methods and setters of a class, with those of our own classes above it, whose errors would not tell."""
    result = []
    for base in cls.__mro__:
        for name, value in vars(base).items() if base.__module__.startswith("twofold") else ():
            plain = value.fset if isinstance(value, property) else getattr(value, "__func__", value)
            if not inspect.isfunction(plain) or not is_ours(plain.__code__.co_filename):
                continue
            if name.startswith("_") and (not name.endswith("__") or name in UNTOLD):
                continue
            takes = len(inspect.signature(plain).parameters) > (not isinstance(value, staticmethod))
            abstract = getattr(value, "__isabstractmethod__", False)
            if not abstract and not hasattr(plain, "__tells__") and (takes or name == "__enter__"):
                result.append(f"{base.__qualname__}.{name}")
    return result


def test_public_methods_tell() -> None:
    assert {name: bare(cls) for name, cls in classes() if bare(cls)} == {}


def test_public_functions_tell() -> None:
    plain = [f"{path}.{name}" for path, module in modules().items() for name in module.__all__
             if inspect.isfunction(getattr(module, name, None)) and not hasattr(getattr(module, name), "__unguarded__")]
    assert plain == []


class Planted:
    """A class as a public module has it."""

    level = 1

    def method(self, x: Any) -> Any:
        return x.upper()

    @classmethod
    def made(cls, x: Any) -> Any:
        return x.upper()

    @staticmethod
    def helped(x: Any) -> Any:
        return x.upper()

    @property
    def prop(self) -> int:
        return 1

    @prop.setter
    def prop(self, value: Any) -> None:
        value.upper()

    def __getitem__(self, key: Any) -> Any:
        return [1][key]

    def __setitem__(self, key: Any, value: Any) -> None:
        [1][key] = value

    def __delitem__(self, key: Any) -> None:
        del [1][key]

    def __contains__(self, key: Any) -> bool:
        return key in {1: 2}

    def bare(self) -> str:
        return "taken nothing"


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> type:
    """A copy of `Planted` that is published as one of the library's, with its source file."""
    source = inspect.getsource(Planted)
    names: dict[str, Any] = {"Any": Any, "__name__": "twofold.planted"}
    exec(compile(source, tf.nest.__file__, "exec"), names)
    _namespace.open_classes(names)
    return names["Planted"]


def test_all_kinds_of_methods_are_opened(planted: Any) -> None:
    thing = planted()
    calls = {"Planted.method": lambda: thing.method(3), "made": lambda: planted.made(3),
             "helped": lambda: planted.helped(3), "Planted.prop": lambda: setattr(thing, "prop", 3)}
    for name, call in calls.items():
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            call()
        assert str(caught.value).startswith(f"{name}: cannot work with what it was given")
        assert "At test_tells.py:" in str(caught.value)
    for call in (lambda: thing["a"], lambda: thing.__setitem__("a", 1), lambda: thing.__delitem__("a"),
                 lambda: [] in thing):
        with pytest.raises(TypeError, match="(?s)^Planted: cannot work with what it was given.*At test_tells.py:"):
            call()
    with pytest.raises(IndexError, match="^Planted: "):  # by which loops know the end
        thing[3]
    assert list(thing) == [1]
    assert thing.bare() == "taken nothing" and not hasattr(planted.bare, "__tells__")
    before = vars(planted)["method"]
    _api.open_methods(planted)
    assert vars(planted)["method"] is before


def test_what_is_opened_is_read_as_it_was_written() -> None:
    dense = tf.keras.layers.Dense
    assert list(inspect.signature(dense).parameters)[:2] == ["units", "activation"]
    assert list(inspect.signature(dense(2).call).parameters)[0] == "inputs"
    assert "def call" in inspect.getsource(dense.call)
    assert dense.call.__qualname__ == "Dense.call"


def test_a_layers_short_way_sees_what_takes_the_place_of_its_call(monkeypatch: pytest.MonkeyPatch) -> None:
    layer, x = tf.keras.layers.Dense(2), tf.ones([1, 2])
    before = [layer(x) for _ in range(3)][-1]
    assert layer._fast is not None
    monkeypatch.setattr(tf.keras.layers.Dense, "call", lambda self, inputs: inputs + 5.0)
    assert layer(x).numpy().tolist() == [[6.0, 6.0]]
    monkeypatch.undo()
    assert layer(x).numpy().tolist() == before.numpy().tolist()
    layer.call = lambda inputs: inputs + 7.0
    assert [layer(x).numpy().tolist() for _ in range(3)] == [[[8.0, 8.0]]] * 3


ENDLESS = {
    "sizes": lambda: tf.zeros(itertools.count()), "shape": lambda: tf.TensorShape(itertools.count()),
    "layer": lambda: tf.keras.layers.Dense(2).build(range(2**40)),
    "norm": lambda: tf.keras.layers.SpectralNormalization(tf.keras.layers.Dense(2)).build(range(2**40)),
    "embedding": lambda: tf.keras.layers.ReversibleEmbedding(2, 2).build(range(2**40)),
    "patches": lambda: tf.image.extract_patches(tf.ones([1, 4, 4, 1]), range(2**40), [1] * 4, [1] * 4, "SAME"),
    "axes": lambda: tf.reduce_sum(tf.ones([2]), range(2**40)),
    "operands": lambda: tf.keras.ops.jvp(tf.sin, range(2**40), [1.0]),
    "updates": lambda: tf.compat.v1.Operation(tf.compat.v1.Graph(), itertools.count(), "name"),
}


def test_long_lists_of_examples_have_an_end() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="FloatList: value has more than"):
        tf.train.FloatList(value=range(2**40))


@pytest.mark.parametrize("name", list(ENDLESS))
def test_numbers_without_end_are_refused(name: str) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="more than 1048576 items"):
        ENDLESS[name]()


BLOCKS = {
    "device": lambda: tf.device("nowhere"), "horizon": lambda: tf.compat.forward_compatibility_horizon("a", 1, 1),
    "variable_scope": lambda: tf.compat.v1.variable_scope(None),
}


@pytest.mark.parametrize("name", list(BLOCKS))
def test_blocks_tell_when_they_are_entered(name: str) -> None:
    with pytest.raises((tf.errors.OpError, ValueError)) as caught, BLOCKS[name]():
        pass
    assert "At test_tells.py:" in str(caught.value)


def test_a_block_lets_the_users_own_errors_through_and_decorates() -> None:
    with pytest.raises(KeyError, match="mine"), tf.device("cpu:0"):
        raise KeyError("mine")

    @tf.device("cpu:0")
    def decorated(x: int) -> int:
        return x + 1
    assert [decorated(1), decorated(2)] == [2, 3]


def test_files_that_are_not_there_keep_the_systems_error() -> None:
    with pytest.raises(FileNotFoundError) as caught:
        tf.keras.layers.StringLookup().set_vocabulary("nowhere.txt")
    assert any("At test_tells.py:" in note for note in caught.value.__notes__)


def test_operators_are_named_by_their_ops() -> None:
    with pytest.raises(tf.errors.OpError, match="greater_equal: Incompatible shapes"):
        assert tf.ones([2]) >= tf.ones([3])
    with pytest.raises(TypeError, match="^less: Cannot convert"):
        assert tf.ones([2]) < np.datetime64("2020-01-01")


def test_shapes_that_are_joined_tell() -> None:
    for call in (lambda: tf.TensorShape([1]) + [-1], lambda: [-1] + tf.TensorShape([1])):
        with pytest.raises(ValueError, match="^TensorShape: A dimension must be"):
            call()


PLACES: dict[str, tuple[type[Exception], Any]] = {
    "TensorShape": (TypeError, lambda: tf.TensorShape([1])["a"]),
    "TensorShape end": (IndexError, lambda: tf.TensorShape([1])[3]),
    "TensorShape slice": (TypeError, lambda: tf.TensorShape([1])["a":]),
    "TensorShape unknown": (TypeError, lambda: tf.TensorShape(None)[:"a"]),
    "TensorShape search": (ValueError, lambda: 1 in tf.TensorShape(None)),
    "Sequential": (IndexError, lambda: tf.keras.Sequential([tf.keras.layers.Dense(1)])[3]),
    "Sequential index": (TypeError, lambda: tf.keras.Sequential([tf.keras.layers.Dense(1)])["a"]),
    "OptimizerMap": (TypeError, lambda: tf.keras.optimizers.OptimizerMap(tf.keras.optimizers.SGD())[[]]),
    "OptimizerMap pattern": (ValueError, lambda: tf.keras.optimizers.OptimizerMap(
        tf.keras.optimizers.SGD()).update({3: tf.keras.optimizers.SGD()})),
    "OptimizerMap variable": (TypeError, lambda: tf.keras.optimizers.OptimizerMap(tf.keras.optimizers.SGD())(3)),
    "TimeseriesGenerator": (TypeError, lambda: tf.keras.preprocessing.sequence.TimeseriesGenerator(
        [1, 2, 3], [1, 2, 3], 1)["a"]),
    "load": (OSError, lambda: tf.saved_model.load("nowhere", tags="same")),
    "verify": (TypeError, lambda: tf.verify("text")),
}


@pytest.mark.parametrize("name", list(PLACES))
def test_what_syntax_calls_tells(name: str) -> None:
    kind, call = PLACES[name]
    with pytest.raises(kind, match=rf"^{name.partition(' ')[0]}\b") as caught:
        call()
    assert "At test_tells.py:" in str(caught.value)


def test_an_optimizer_map_is_a_mapping() -> None:
    by_name = tf.keras.optimizers.OptimizerMap(tf.keras.optimizers.SGD())
    with pytest.raises(KeyError, match="OptimizerMap: there is no pattern"):
        del by_name["a"]
    by_name["a"] = tf.keras.optimizers.Adam()
    assert list(by_name) == ["a"] and type(by_name.pop("a")).__name__ == "Adam" and len(by_name) == 0


def test_the_line_is_the_users_where_another_library_lies_between(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="create_file_writer: filename_suffix") as caught:
        tf.summary.create_file_writer(str(tmp_path), filename_suffix=tf.constant(1.0))
    assert "At test_tells.py:" in str(caught.value)
    with pytest.raises(ValueError, match="set_verbosity: A level") as caught:
        tf.compat.v1.logging.set_verbosity("loud")
    assert "At test_tells.py:" in str(caught.value)
