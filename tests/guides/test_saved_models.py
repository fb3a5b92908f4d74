"""What the guide to saved models shows: modules and models out and in, signatures, training on what was loaded."""

from __future__ import annotations

from pathlib import Path

import pytest
from guides.page import Page


@pytest.fixture
def guide(page: Page, folder: Path) -> Page:
    page.run("""
import os
import tensorflow as tf

class Scaled(tf.Module):
  def __init__(self):
    super(Scaled, self).__init__()
    self.v = tf.Variable(1.)

  @tf.function
  def __call__(self, x):
    return x * self.v

  @tf.function(input_signature=[tf.TensorSpec([], tf.float32)])
  def mutate(self, new_v):
    self.v.assign(new_v)

module = Scaled()
""")
    return page


def test_a_module_without_signatures_is_trained_further(guide: Page) -> None:
    guide.shows("""
tf.saved_model.save(module, "untraced")
try:
  tf.saved_model.load("untraced")(tf.constant(3.))
except ValueError as e:
  print(str(e).split(" for")[0])
module(tf.constant(0.))
tf.saved_model.save(module, "module")
imported = tf.saved_model.load("module")
print(imported(tf.constant(3.)).numpy(), len(imported.signatures))
imported.mutate(tf.constant(2.))
print(imported(tf.constant(3.)).numpy())

optimizer = tf.keras.optimizers.SGD(0.05)
for _ in range(10):
  with tf.GradientTape() as tape:
    loss = (10. - imported(tf.constant(2.))) ** 2
  variables = tape.watched_variables()
  optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
print(f"loss={loss:.2f} v={imported.v.numpy():.2f}")
""", """
Found zero restored functions
3.0 0
6.0
loss=0.00 v=4.98
""")


def test_signatures(guide: Page) -> None:
    guide.shows("""
call = module.__call__.get_concrete_function(tf.TensorSpec(None, tf.float32))
tf.saved_model.save(module, "one", signatures=call)
one = tf.saved_model.load("one")
print(list(one.signatures), one.signatures["serving_default"](tf.constant([3.])))
several = {"serving_default": call,
           "array_input": module.__call__.get_concrete_function(tf.TensorSpec([None], tf.float32))}
tf.saved_model.save(module, "several", signatures=several)
print(list(tf.saved_model.load("several").signatures.keys()))

class Named(tf.Module):
  @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
  def __call__(self, x):
    return {"twice": x + x}

named = Named()
tf.saved_model.save(named, "named", signatures={"serving_default": named.__call__.get_concrete_function()})
tf.saved_model.load("named").signatures["serving_default"].structured_outputs
""", """
['serving_default'] {'output_0': <tf.Tensor: shape=(1,), dtype=float32, numpy=array([3.], dtype=float32)>}
['serving_default', 'array_input']
{'twice': TensorSpec(shape=(None,), dtype=tf.float32, name='twice')}
""")


def test_a_model(guide: Page) -> None:
    guide.shows("""
inputs = tf.keras.Input((4, 4, 1))
features = tf.keras.layers.GlobalAveragePooling2D()(tf.keras.layers.Conv2D(2, 3)(inputs))
model = tf.keras.Model(inputs, tf.keras.layers.Dense(3, activation="softmax", name="predictions")(features))
x = tf.ones([2, 4, 4, 1])
path = os.path.join(os.getcwd(), "model/1/")
tf.saved_model.save(model, path)
loaded = tf.saved_model.load(path)
print(list(loaded.signatures.keys()), model.output_names)
infer = loaded.signatures["serving_default"]
print(infer.structured_outputs)
print(bool(tf.reduce_all(infer(tf.constant(x))["output_0"] == model(x))))
print(len(loaded.trainable_variables), len(loaded.variables))
""", """
['serving_default'] ['predictions']
{'output_0': TensorSpec(shape=(None, 3), dtype=tf.float32, name='output_0')}
True
4 4
""")
