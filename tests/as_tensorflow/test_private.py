"""The private modules that libraries import, in a process of their own; TensorFlow gives the same."""

from __future__ import annotations

import subprocess
import sys

_PROGRAM = '''
import functools, inspect
import twofold.as_tensorflow
import tensorflow as tf, tensorflow.compat.v2 as tf2, tf_keras
from tensorflow.compat.v2.keras import layers
from tensorflow.python.framework import ops, tensor_shape, tensor_util, type_spec, type_spec_registry
from tensorflow.python.ops import array_ops, control_flow_case, nn_ops, resource_variable_ops
from tensorflow.python.ops.parallel_for import control_flow_ops
from tensorflow.python.util import deprecation, nest, object_identity, tf_inspect, variable_utils
from tf_keras import optimizers

assert tf2 is tf and layers is tf_keras.layers is tf.keras.layers and optimizers is tf_keras.optimizers

# The base of optimizers, which takes its name first.
class Natural(tf_keras.optimizers.Optimizer):
    def __init__(self, gamma, name="natural"):
        super().__init__(name)
        self._learning_rate = self._build_learning_rate(gamma)
    def update_step(self, gradient, variable, learning_rate):
        variable.assign_sub(learning_rate * gradient)
moved = tf.Variable(3.0)
natural = Natural(0.5)
natural.apply_gradients([(tf.constant(2.0), moved)])
assert (natural.name, moved.numpy(), float(natural.learning_rate)) == ("natural", 2.0, 0.5)
assert optimizers.Adam is tf.keras.optimizers.Adam and isinstance(optimizers.Adam(), optimizers.Optimizer)
assert not isinstance(optimizers.Adam(), Natural) and isinstance(natural, tf.keras.optimizers.Optimizer)

def raised(call, kind):
    try:
        call()
    except kind:
        return True
    return False

# Structures as far as another one goes.
deep, shallow = {"a": [1, (2, 3)], "b": 4}, {"a": [0, 0], "b": 0}
assert nest.flatten_up_to(shallow, deep) == [1, (2, 3), 4]
assert nest.map_structure_up_to(shallow, lambda x, y: (x, y), deep, shallow) == {
    "a": [(1, 0), ((2, 3), 0)], "b": (4, 0)}
assert nest.map_structure_with_tuple_paths(lambda path, x: path, deep) == {
    "a": [("a", 0), (("a", 1, 0), ("a", 1, 1))], "b": ("b",)}
assert list(nest.yield_flat_paths(deep)) == [("a", 0), ("a", 1, 0), ("a", 1, 1), ("b",)]
assert nest.flatten_with_joined_string_paths(deep)[1] == ("a/1/0", 2)
assert nest.get_traverse_shallow_structure(lambda s: not isinstance(s, tuple), deep) == {"a": [True, False], "b": True}
assert raised(lambda: nest.assert_shallow_structure([0, 0], [1]), ValueError)
assert raised(lambda: nest.assert_shallow_structure([0, 0], (1, 2)), TypeError)

# Signatures and old arguments.
partial = functools.partial(lambda a, b, c=3, *, d=4: None, 1, c=5)
assert tf_inspect.getfullargspec(partial)[:4] == (["b", "c"], None, None, (5,))
assert tf_inspect.getfullargspec(tf.reduce_sum).args == ["input_tensor", "axis", "keepdims", "name"]
import warnings
@deprecation.deprecated_args("2020-01-01", "no more", "old")
def f(new, old=None):
    return new
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    assert f(1) == 1 and not told and f(1, old=2) == 1 and len(told) == 1
    with deprecation.silence():
        assert f(1, old=2) == 1 and len(told) == 1

# Specs of values of one's own.
class Pair(tf.__internal__.CompositeTensor):
    def __init__(self, x, scale):
        self.x, self.scale = x, scale
    @property
    def _type_spec(self):
        return PairSpec(tf.TensorSpec(self.x.shape, self.x.dtype), self.scale)
@type_spec_registry.register("tests.PairSpec")
class PairSpec(type_spec.BatchableTypeSpec):
    value_type = property(lambda self: Pair)
    def __init__(self, x, scale):
        self.x, self.scale = x, scale
    def _serialize(self): return self.x, self.scale
    _component_specs = property(lambda self: {"x": self.x})
    def _to_components(self, value): return {"x": value.x}
    def _from_components(self, components): return Pair(components["x"], self.scale)
    def _batch(self, size): return PairSpec(tf.TensorSpec([size, *self.x.shape], self.x.dtype), self.scale)
    def _unbatch(self): return PairSpec(tf.TensorSpec(self.x.shape[1:], self.x.dtype), self.scale)
double = tf.function(lambda pair: Pair(pair.x * pair.scale, pair.scale))
assert double(Pair(tf.constant([1.0, 2.0]), 2)).x.numpy().tolist() == [2.0, 4.0]
assert type_spec_registry.lookup("tests.PairSpec") is PairSpec
variable = tf.Variable([1.0, 2.0])
spec = type_spec.type_spec_from_value(variable)
assert isinstance(spec, resource_variable_ops.VariableSpec) and spec.is_compatible_with(variable)
assert tf.is_tensor(variable_utils.convert_variables_to_tensors([variable])[0])
assert variable.ref() == object_identity.Reference(variable)
assert type(variable).__name__ == "ResourceVariable" and type(variable) is resource_variable_ops.ResourceVariable
import pickle
assert pickle.loads(pickle.dumps(variable)).numpy().tolist() == [1.0, 2.0]
tf.function(lambda x: x).get_concrete_function(variable.value()).add_to_graph()

# Control flow, shapes and gradients.
assert control_flow_case._case_helper(tf.cond, [(tf.constant(False), lambda: 1), (tf.constant(True), lambda: 2)],
                                      lambda: 3, False, "case") == 2
assert control_flow_ops.pfor(lambda i: i * i, 4).numpy().tolist() == [0, 1, 4, 9]
assert tensor_util.constant_value_as_shape(tf.constant([2, -1])).as_list() == [2, None]
assert tensor_shape.as_shape([2, None]).as_list() == [2, None]
x = tf.constant(2.0)
with tf.GradientTape() as tape:
    tape.watch(x)
    y = array_ops.prevent_gradient(x, message="never")
assert y.numpy() == 2.0 and raised(lambda: tape.gradient(y, x), LookupError)
assert nn_ops.Convolution([1, 4, 1], [2, 1, 1], "VALID")(tf.ones([1, 4, 1]), tf.ones([2, 1, 1])).shape == (1, 3, 1)

# What was decorated.
own = lambda x: (x, lambda upstream: upstream)
assert tf.custom_gradient(own).__original_wrapped__ is own

# A function that is decorated before it is called.
g = tf.function(lambda x: x + 1)
g._decorate(lambda inner: lambda x: inner(x) * 10)
assert g(tf.constant(1)).numpy() == 20 and raised(lambda: g._decorate(lambda inner: inner), ValueError)
'''


def test_private_modules(tmp_path):
    ran = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, timeout=300, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
