"""What errors say once they have left a public function: its name, the user's line, and nothing raw."""

from __future__ import annotations

import traceback
from collections.abc import Callable

import numpy as np
import pytest

import twofold as tf
from twofold.runtime import native

LOOPED: list = []
LOOPED.append(LOOPED)

# A call, the class of what it raises, the name in its text.
INSIDE = {
    "attribute": (lambda: native.guard(by("attribute"))(3), tf.errors.DTypeError, TypeError),
    "type": (lambda: native.guard(by("type"))(3), tf.errors.DTypeError, TypeError),
    "value": (lambda: native.guard(by("value"))(3), tf.errors.InvalidArgumentError, ValueError),
    "index": (lambda: native.guard(by("index"))(3), tf.errors.InvalidArgumentError, ValueError),
    "key": (lambda: native.guard(by("key"))(3), tf.errors.InvalidArgumentError, ValueError),
    "zero": (lambda: native.guard(by("zero"))(3), tf.errors.InvalidArgumentError, ValueError),
    "overflow": (lambda: native.guard(by("overflow"))(3), tf.errors.InvalidArgumentError, ValueError),
}


def by(kind: str):
    """A public function of the library that fails in a statement: compiled as if its file was the library's."""
    body = {"attribute": "x.upper()", "type": "len(x)", "value": "int('a')", "index": "[][x]", "key": "{}[x]",
            "zero": "x / 0", "overflow": "float(10 ** 400)"}[kind]
    names: dict = {}
    exec(compile(f"def fails(x):\n    return {body}\n", tf.nest.__file__, "exec"), names)
    return names["fails"]


@pytest.mark.parametrize("kind", list(INSIDE))
def test_what_a_statement_raises_becomes_an_error_that_tells(kind: str) -> None:
    call, cls, also = INSIDE[kind]
    with pytest.raises(cls) as caught:
        call()
    error = caught.value
    assert isinstance(error, also)
    first, *rest = str(error).splitlines()
    assert first.startswith("fails: cannot work with what it was given")
    assert rest[0].split() == ["x", ":", "int", "3"]
    assert "At test_leaving.py:" in rest[-1]
    assert error.__cause__ is not None and not isinstance(error.__cause__, tf.errors.OpError)
    if native.available():
        assert traceback.extract_tb(error.__traceback__)[-1].filename == __file__


def test_memory_that_is_not_there() -> None:
    with pytest.raises(tf.errors.ResourceExhaustedError, match="not enough memory"):
        native.guard(_from_ours("np.zeros(1 << 50)"))()


def _from_ours(body: str):
    names: dict = {"np": np}
    exec(compile(f"def fails():\n    return {body}\n", tf.nest.__file__, "exec"), names)
    return names["fails"]


COMPOSITES = {
    "clip_by_norm": (lambda: tf.clip_by_norm([1.0, 2.0], [1.0, 2.0, 3.0]), "clip_by_norm, in multiply: "),
    "assign_add": (lambda: tf.Variable([1.0, 2.0]).assign_add([1.0, 2.0, 3.0]), "Variable.assign_add"),
    "zeros": (lambda: tf.zeros(["a"]), "zeros: "),
    "add": (lambda: tf.constant([1.0]) + tf.constant([1, 2]), "add: "),
}


@pytest.mark.parametrize("name", list(COMPOSITES))
@pytest.mark.parametrize("mode", ["eager", "traced"])
def test_errors_name_what_the_user_called(name: str, mode: str) -> None:
    call, told = COMPOSITES[name]
    with pytest.raises((tf.errors.OpError, TypeError)) as caught:
        (call if mode == "eager" else tf.function(call))()
    assert str(caught.value).startswith(told)
    assert str(caught.value).count("At test_leaving.py:") == 1


@pytest.mark.parametrize("fn", [tf.truediv, tf.divide, tf.math.mod, tf.math.floormod, tf.add, tf.maximum, tf.less,
                                tf.bitwise.bitwise_and, tf.math.atan2])
def test_errors_name_the_function_and_not_its_op(fn: Callable[..., object]) -> None:
    for args in ((tf.string, 1), ("a", 1), (tf.ones([2]), tf.ones([3])), (object(), 2)):
        with pytest.raises((TypeError, ValueError, tf.errors.InvalidArgumentError), match=rf"^{fn.__name__}\b"):
            fn(*args)


def test_a_users_own_error_stays_as_it_is() -> None:
    def fails(x):
        return [][1]
    for call in (lambda: tf.map_fn(fails, tf.ones([3])), lambda: tf.function(fails)(tf.ones([3]))):
        with pytest.raises(IndexError) as caught:
            call()
        assert type(caught.value) is IndexError
        assert str(caught.value) == "list index out of range"


def test_a_call_that_does_not_fit_the_signature_is_pythons_own_error() -> None:
    with pytest.raises(TypeError) as caught:
        tf.pad()
    assert type(caught.value) is TypeError


def test_a_list_that_contains_itself() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="constant: .*contains itself"):
        tf.constant(LOOPED)


@pytest.mark.skipif(not native.available(), reason="without native entries the full stack may be met inside of ctypes")
def test_the_users_own_recursion_stays_one() -> None:
    def deeper(x):
        return deeper(tf.add(x, 1.0))
    with pytest.raises(RecursionError):
        deeper(tf.constant(1.0))


def test_functions_that_take_functions_are_named() -> None:
    """The words of TensorFlow about compiled functions tell of the function that is called, not of others."""
    with pytest.raises(TypeError, match="^To be compatible with tf.function.*compilation of object_of"):
        tf.function(object_of)(tf.ones([2]))
    with pytest.raises(TypeError, match="^verify: To be compatible with tf.function"):
        tf.verify(object_of, tf.ones([2]))


def object_of(x: object) -> object:
    return object
