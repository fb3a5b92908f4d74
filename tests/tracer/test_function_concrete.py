"""Concrete functions: what they are called with, and what they say of themselves."""

from __future__ import annotations

import numpy as np
import pytest

import twofold as tf


@tf.function
def power(a, b):
    return a ** b


def test_printed_signatures() -> None:
    f = tf.function(lambda a: a + a)
    text = ("Input Parameters:\n  a (POSITIONAL_OR_KEYWORD): TensorSpec(shape=(), dtype=tf.float32, name=None)\n"
            "Output Type:\n  TensorSpec(shape=(), dtype=tf.float32, name=None)\nCaptures:\n  None")
    concrete = f.get_concrete_function(tf.TensorSpec([], tf.float32))
    assert concrete.pretty_printed_signature() == text and str(concrete) == f"ConcreteFunction {text}"
    f(tf.constant(1))
    both = f.pretty_printed_concrete_signatures()
    assert both == text + "\n\n" + text.replace("float32", "int32")


def test_structures_in_printed_signatures() -> None:
    w = tf.Variable([1.0, 2.0], name="w")

    @tf.function
    def g(x, n=3, *, d):
        return {"z": x * n, "l": [d["k"], None], "t": (w, 1)}
    concrete = g.get_concrete_function(tf.TensorSpec([None]), d={"k": np.ones(2)})
    assert concrete.pretty_printed_signature() == """Input Parameters:
  x (POSITIONAL_OR_KEYWORD): TensorSpec(shape=(None,), dtype=tf.float32, name=None)
  n (POSITIONAL_OR_KEYWORD): Literal[3]
  d (KEYWORD_ONLY): Dict[['k', TensorSpec(shape=(2,), dtype=tf.float64, name=None)]]
Output Type:
  Dict[['z', TensorSpec(shape=(None,), dtype=tf.float32, name=None)], """ """['l', List[TensorSpec(shape=(2,), """ \
        """dtype=tf.float64, name=None), Literal[None]]], ['t', Tuple[TensorSpec(shape=(2,), dtype=tf.float32, """ \
        """name=None), TensorSpec(shape=(), dtype=tf.int32, name=None)]]]
Captures:
  w:0: TensorSpec(shape=(2,), dtype=tf.float32, name=None)"""
    args, kwargs = concrete.structured_input_signature
    assert args == (tf.TensorSpec([None]), 3) and kwargs == {"d": {"k": tf.TensorSpec([2], tf.float64)}}
    assert concrete.variables == (w,) and concrete.trainable_variables == (w,) and concrete.captured_inputs == [w]
    assert [s.shape.rank for s in concrete.inputs] == [1, 1, 1] and len(concrete.outputs) == 4
    assert concrete.name.startswith("__inference_g_") and concrete.graph.name == "g"


def test_calls() -> None:
    square = power.get_concrete_function(tf.TensorSpec([None], tf.float32), b=2)
    x = tf.constant([1.0, 3.0])
    for got in (square(x), square(a=x), square(x, b=2), square(x, 2), square([1.0, 3.0])):
        assert got.numpy().tolist() == [1, 9]
    assert square(tf.ones([5])).shape == (5,)
    with pytest.raises(TypeError, match=r"ConcreteFunction power\(a, b=2\) was constructed with int value 2 in b, but "
                                        "was called with int value 3"):
        square(x, b=3)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"as input #0\(zero-based\) was expected to be a float32 "
                                                             "tensor but is a int32 tensor"):
        square(tf.constant([1]))
    with pytest.raises(TypeError, match="Can not cast"):
        square(tf.ones([2, 2]))
    with pytest.raises(TypeError, match="missing required arguments: a"):
        square()
    with pytest.raises(TypeError, match="got unexpected keyword arguments: c"):
        square(x, c=1)


def test_an_argument_of_any_rank() -> None:
    square = power.get_concrete_function(a=tf.TensorSpec(None, tf.float32), b=2)
    assert square(tf.constant(10.0)).numpy() == 100 and square(tf.constant([[3.0]])).numpy().tolist() == [[9]]
    assert "a (POSITIONAL_OR_KEYWORD): TensorSpec(shape=<unknown>, dtype=tf.float32, name=None)" in str(square)
    with pytest.raises(TypeError, match="was constructed with int value 2 in b"):
        square(tf.constant(10.0), b=3)


def test_tensors_stand_for_their_specs() -> None:
    f = tf.function(lambda x, y: x + y)
    concrete = f.get_concrete_function(tf.ones([2]), tf.ones([2]))
    f(tf.zeros([2]), tf.zeros([2]))
    assert f.experimental_get_tracing_count() == 1
    assert concrete(tf.ones([2]), tf.ones([2])).numpy().tolist() == [2, 2]
    declared = tf.function(lambda x: x * 2, [tf.TensorSpec([None])]).get_concrete_function()
    assert declared(tf.ones([3])).shape == (3,)


def test_sizes_that_violate_what_the_trace_assumed() -> None:
    f = tf.function(lambda x, y: x + y)
    concrete = f.get_concrete_function(tf.TensorSpec([None]), tf.TensorSpec([None]))
    for n, m in ((3, 3), (1, 4), (4, 1), (0, 1)):
        assert concrete(tf.ones([n]), tf.ones([m])).shape == np.broadcast_shapes((n,), (m,))


def test_concrete_functions_within_functions() -> None:
    concrete = power.get_concrete_function(tf.TensorSpec([None], tf.float32), b=3)
    f = tf.function(lambda x: concrete(x) + 1)
    assert f(tf.constant([2.0])).numpy().tolist() == [9] and f(tf.constant([1.0, 2.0])).numpy().tolist() == [2, 9]


def test_the_type_of_a_concrete_function():
    v = tf.Variable(2.0, name="scale")
    f = tf.function(lambda x, y=2, *, z: (x * v * y, {"a": [z, z]}))
    concrete = f.get_concrete_function(tf.TensorSpec([None, 2], tf.float32), z=tf.TensorSpec([3], tf.int32))
    spec = "TensorSpec(shape=(None, 2), dtype=tf.float32, name=None)"
    ints = "TensorSpec(shape=(3,), dtype=tf.int32, name=None)"
    text = f"(x: {spec}, y: Literal[2], *, z: {ints}) -> Tuple[{spec}, Dict[['a', List[{ints}, {ints}]]]]"
    kind = concrete.function_type
    assert str(kind) == concrete.pretty_printed_signature(verbose=False) == text
    assert repr(kind) == concrete.pretty_printed_signature()
    assert [(p.name, p.kind) for p in kind.parameters.values()] == [
        ("x", "POSITIONAL_OR_KEYWORD"), ("y", "POSITIONAL_OR_KEYWORD"), ("z", "KEYWORD_ONLY")]
    assert kind.parameters["y"].type_constraint == 2 and list(kind.captures) == ["scale:0"]
    assert [s.shape for s in kind.flat_inputs] == [[None, 2], [3]] and len(kind.flat_outputs) == 3
    assert concrete.output_shapes == (tf.TensorShape([None, 2]), {"a": [tf.TensorShape([3])] * 2})
    assert concrete.output_dtypes == (tf.float32, {"a": [tf.int32] * 2})
    x, z = tf.ones([1, 2]), tf.constant([1, 2, 3])
    inner = concrete.inference_fn
    assert inner.name == concrete.name.encode() and inner.definition.node
    for given in ((x, z), (x, z, v)):
        first, *others = inner.call_flat(*given)
        assert first.numpy().tolist() == [[4.0, 4.0]] and [o.numpy().tolist() for o in others] == [[1, 2, 3]] * 2
    with pytest.raises(TypeError, match="takes 2 tensors"):
        inner.call_flat(x)
    nothing = tf.function(lambda: None).get_concrete_function()
    assert nothing.pretty_printed_signature() == "Input Parameters:\nOutput Type:\n  Literal[None]\nCaptures:\n  None"
    assert nothing.output_shapes is None


def test_the_graph_of_a_concrete_function_lists_operations():
    graph = tf.function(lambda x: x * 2.0).get_concrete_function(tf.TensorSpec([2], tf.float32)).graph
    kinds = [op.type for op in graph.get_operations()]
    assert kinds[0] == "Placeholder" and kinds[-1] == "Identity" and "multiply" in kinds
    product = next(op for op in graph.get_operations() if op.type == "multiply")
    assert graph.get_operation_by_name(product.name).inputs == product.inputs and "x" in product.inputs
    with pytest.raises(KeyError, match="nothing"):
        graph.get_operation_by_name("nothing")
