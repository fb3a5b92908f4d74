"""The operations of traced tensors, whose types and names are TensorFlow's, and attributes of a program's own."""

import numpy as np

import twofold as tf


def test_operations_have_tensorflows_types_and_lead_to_their_operands():
    told = []

    @tf.function
    def f(x, w):
        product = tf.matmul(x, w)
        told.extend([x.op.type, product.op.type, (product + 1.0).op.type, tf.reduce_sum(x).op.type,
                     tf.nn.softmax(product).op.type, tf.sigmoid(x).op.type, tf.matmul(x[None], w[None]).op.type])
        assert x.op.inputs == [] and x.op.outputs[0] is x
        assert [tuple(t.shape) for t in product.op.inputs] == [(2, 3), (3, 4)]
        assert product.op.name == product.name.rpartition(":")[0]
        assert [t.name for t in product.op.values()] == [product.name] and product.op.graph is product.graph
        return tf.nn.softmax(product).op.inputs[0]

    x, w = tf.ones([2, 3]), tf.ones([3, 4])
    assert f(x, w).numpy().tolist() == np.full((2, 4), 3.0).tolist()
    assert told == ["Placeholder", "MatMul", "AddV2", "Sum", "Softmax", "Sigmoid", "BatchMatMulV2"]


def test_gradients_go_through_operands_of_operations():
    @tf.function
    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            logits = tf.nn.softmax(x * x).op.inputs[0]
            y = tf.reduce_sum(logits)
        return tape.gradient(y, x)

    assert f(tf.constant([1.0, 2.0])).numpy().tolist() == [2.0, 4.0]


def test_tensors_take_attributes():
    def f(x):
        y = x * 2.0
        y.origin = x
        return y.origin + y

    x = tf.constant([1.0, 2.0])
    assert f(x).numpy().tolist() == tf.function(f)(x).numpy().tolist() == [3.0, 6.0]
