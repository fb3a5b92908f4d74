"""What the guide on `tf.function` shows: tracing, signatures, concrete functions, side effects, variables, limits."""

from __future__ import annotations

import numpy as np
import pytest
from guides.page import Page

import twofold as tf


@pytest.fixture
def guide(page: Page) -> Page:
    page.run("import tensorflow as tf")
    return page


TWICE = """
@tf.function
def twice(a):
  print("Tracing with", a)
  return a + a
"""


def test_a_function_is_like_an_op(guide: Page) -> None:
    guide.run("""
@tf.function
def plus(a, b):
  return a + b
""")
    guide.shows("plus(tf.ones([2, 2]), tf.ones([2, 2]))", """
<tf.Tensor: shape=(2, 2), dtype=float32, numpy=
array([[2., 2.],
       [2., 2.]], dtype=float32)>
""")
    guide.shows("""
weight = tf.Variable(1.0)
with tf.GradientTape() as tape:
  total = plus(weight, 1.0)
tape.gradient(total, weight)
""", "<tf.Tensor: shape=(), dtype=float32, numpy=1.0>")
    guide.shows("""
@tf.function
def layer(x, w, b):
  return plus(x @ w, b)

layer(tf.ones([3, 2]), tf.ones([2, 2]), tf.ones([2]))
""", """
<tf.Tensor: shape=(3, 2), dtype=float32, numpy=
array([[3., 3.],
       [3., 3.],
       [3., 3.]], dtype=float32)>
""")


def test_other_types_are_traced_again(guide: Page) -> None:
    guide.run(TWICE)
    guide.shows("print(twice(tf.constant(1)))", """
Tracing with Tensor("a:0", shape=(), dtype=int32)
tf.Tensor(2, shape=(), dtype=int32)
""")
    guide.shows("print(twice(tf.constant(1.5)))", """
Tracing with Tensor("a:0", shape=(), dtype=float32)
tf.Tensor(3.0, shape=(), dtype=float32)
""")
    guide.shows("print(twice(tf.constant([1 + 2j])))", """
Tracing with Tensor("a:0", shape=(1,), dtype=complex128)
tf.Tensor([2.+4.j], shape=(1,), dtype=complex128)
""")
    guide.shows("print(twice(tf.constant(2.5)))", "tf.Tensor(5.0, shape=(), dtype=float32)")
    assert guide["twice"].experimental_get_tracing_count() == 3


def test_signatures_of_the_traces(guide: Page) -> None:
    guide.run(TWICE + "twice(tf.constant(1)); twice(tf.constant([1.0, 2.0]))")
    guide.shows("print(twice.pretty_printed_concrete_signatures())", """
Input Parameters:
  a (POSITIONAL_OR_KEYWORD): TensorSpec(shape=(), dtype=tf.int32, name=None)
Output Type:
  TensorSpec(shape=(), dtype=tf.int32, name=None)
Captures:
  None

Input Parameters:
  a (POSITIONAL_OR_KEYWORD): TensorSpec(shape=(2,), dtype=tf.float32, name=None)
Output Type:
  TensorSpec(shape=(2,), dtype=tf.float32, name=None)
Captures:
  None
""")


COLLATZ = """
@tf.function(input_signature=(tf.TensorSpec(shape=[None], dtype=tf.int32),))
def collatz(x):
  print("Tracing with", x)
  return tf.where(x % 2 == 0, x // 2, 3 * x + 1)
"""


def test_input_signature(guide: Page) -> None:
    guide.run(COLLATZ)
    guide.shows("print(collatz(tf.constant([1, 2])))", """
Tracing with Tensor("x:0", shape=(None,), dtype=int32)
tf.Tensor([4 1], shape=(2,), dtype=int32)
""")
    guide.shows("print(collatz(tf.constant([7, 8, 9, 10])))", "tf.Tensor([22  4 28  5], shape=(4,), dtype=int32)")


@pytest.mark.parametrize("argument, spec", [("[[1, 2], [3, 4]]", "shape=(2, 2), dtype=tf.int32"),
                                            ("[1.0, 2.0]", "shape=(2,), dtype=tf.float32")])
def test_input_signature_refuses_others(guide: Page, argument: str, spec: str) -> None:
    guide.run(COLLATZ)
    with pytest.raises(TypeError) as caught:
        guide.run(f"collatz(tf.constant({argument}))")
    assert str(caught.value).startswith(
        f"Binding inputs to tf.function failed due to `Can not cast TensorSpec({spec}, name=None) to "
        "TensorSpec(shape=(None,), dtype=tf.int32, name=None)`. Received args: (")


def test_sizes_that_vary_share_a_trace(guide: Page) -> None:
    guide.run("""
@tf.function(reduce_retracing=True)
def same(x):
  print("Tracing with", x)
  return x
""")
    guide.shows("same(tf.constant([1, 2, 3])); same(tf.constant([1, 2, 3, 4])); print(same(tf.range(5)))", """
Tracing with Tensor("x:0", shape=(3,), dtype=int32)
Tracing with Tensor("x:0", shape=(None,), dtype=int32)
tf.Tensor([0 1 2 3 4], shape=(5,), dtype=int32)
""")


def test_python_arguments_are_traced_again_and_tensors_are_not(guide: Page) -> None:
    guide.run("""
def one_step():
  pass

@tf.function
def train(steps):
  print("Tracing with", steps)
  tf.print("Executing with", steps)
  for _ in tf.range(steps):
    one_step()
""")
    guide.shows("train(steps=10)", "Tracing with 10\nExecuting with 10")
    guide.shows("train(steps=20)", "Tracing with 20\nExecuting with 20")
    guide.shows("train(steps=10)", "Executing with 10")
    guide.shows("train(steps=tf.constant(10))", """
Tracing with Tensor("steps:0", shape=(), dtype=int32)
Executing with 10
""")
    guide.shows("train(steps=tf.constant(20))", "Executing with 20")


def test_functions_share_no_traces(guide: Page) -> None:
    guide.shows("""
def f():
  print('Tracing!')
  tf.print('Executing')

first, second = tf.function(f), tf.function(f)
first()
second()
first()
""", "Tracing!\nExecuting\nTracing!\nExecuting\nExecuting")


def test_objects_are_told_apart_unless_they_say_what_they_are(guide: Page) -> None:
    guide.run("""
class Fruit:
  pass

class Apple(Fruit):
  flavor = tf.constant([1, 2])

class Mango(Fruit):
  flavor = tf.constant([3, 4])

@tf.function
def mixed(a, b):
  return a.flavor + b.flavor
""")
    guide.shows("mixed(Apple(), Mango())",
                "<tf.Tensor: shape=(2,), dtype=int32, numpy=array([4, 6], dtype=int32)>")
    guide.run("mixed(Apple(), Mango())")
    assert guide["mixed"].experimental_get_tracing_count() == 2  # the first objects are gone
    guide.run("""
class KindOfFruit(tf.types.experimental.TraceType):
  def __init__(self, fruit):
    self.kind, self.fruit = type(fruit), fruit

  def is_subtype_of(self, other):
    return type(other) is KindOfFruit and self.kind is other.kind

  def most_specific_common_supertype(self, others):
    return self if all(self == other for other in others) else None

  def placeholder_value(self, placeholder_context=None):
    return self.fruit

  def __eq__(self, other):
    return type(other) is KindOfFruit and self.kind == other.kind

  def __hash__(self):
    return hash(self.kind)

for kind in Apple, Mango:
  kind.__tf_tracing_type__ = lambda self, context: KindOfFruit(self)
""")
    for pair, taste in (("Apple(), Mango()", [4, 6]), ("Apple(), Mango()", [4, 6]), ("Mango(), Mango()", [6, 8])):
        guide.run(f"tasted = mixed({pair})")
        assert guide["tasted"].numpy().tolist() == taste
    assert guide["mixed"].experimental_get_tracing_count() == 4


CUBE = TWICE + """
doubled = twice.get_concrete_function(tf.constant(1.0))
"""


def test_concrete_functions(guide: Page) -> None:
    assert guide.run(CUBE) == 'Tracing with Tensor("a:0", shape=(), dtype=float32)\n'
    guide.shows("print(doubled(tf.constant(2.0)))", "tf.Tensor(4.0, shape=(), dtype=float32)")
    guide.shows("print(doubled(a=tf.constant(3.0)))", "tf.Tensor(6.0, shape=(), dtype=float32)")
    guide.shows("print(twice.get_concrete_function(tf.TensorSpec(shape=[], dtype=tf.float32))(tf.constant(4.0)))",
                "tf.Tensor(8.0, shape=(), dtype=float32)")
    guide.shows("print(doubled)", """
ConcreteFunction Input Parameters:
  a (POSITIONAL_OR_KEYWORD): TensorSpec(shape=(), dtype=tf.float32, name=None)
Output Type:
  TensorSpec(shape=(), dtype=tf.float32, name=None)
Captures:
  None
""")
    guide.shows("""
print(doubled.structured_input_signature)
print(doubled.structured_outputs)
""", """
((TensorSpec(shape=(), dtype=tf.float32, name=None),), {})
TensorSpec(shape=(), dtype=tf.float32, name=None)
""")


def test_concrete_functions_refuse_other_types(guide: Page) -> None:
    guide.run(CUBE)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"as input #0\(zero-based\) was expected to be a float32 "
                                                             "tensor but is a int32 tensor"):
        guide.run("doubled(tf.constant(1))")


def test_python_arguments_of_concrete_functions_are_fixed(guide: Page) -> None:
    guide.shows("""
@tf.function
def power(a, b):
  return a ** b

square = power.get_concrete_function(a=tf.TensorSpec(None, tf.float32), b=2)
print(square)
""", """
ConcreteFunction Input Parameters:
  a (POSITIONAL_OR_KEYWORD): TensorSpec(shape=<unknown>, dtype=tf.float32, name=None)
  b (POSITIONAL_OR_KEYWORD): Literal[2]
Output Type:
  TensorSpec(shape=<unknown>, dtype=tf.float32, name=None)
Captures:
  None
""")
    guide.run("assert square(tf.constant(10.0)) == 100")
    with pytest.raises(TypeError, match=r"ConcreteFunction power\(a, b=2\) was constructed with int value 2 in b, but "
                                        "was called with int value 3"):
        guide.run("square(tf.constant(10.0), b=3)")


def test_the_graph_of_a_concrete_function(guide: Page) -> None:
    guide.run(CUBE)
    guide.shows("""
for node in doubled.graph.as_graph_def().node:
  print(f'{node.input} -> {node.name}')
""", """
[] -> a
['a', 'a'] -> add
['add'] -> Identity
""")


def test_python_data_makes_graphs_grow(guide: Page) -> None:
    guide.run("""
@tf.function
def total(pairs):
  loss = tf.constant(0)
  for x, y in pairs:
    loss += tf.abs(y - x)
  return loss

def nodes(*args):
  return len(total.get_concrete_function(*args).graph.as_graph_def().node)
""")
    guide.run("few, more, most = [nodes([(1, n)] * n) for n in (3, 6, 9)]")
    assert guide["few"] < guide["more"] < guide["most"]
    assert guide["most"] - guide["more"] == guide["more"] - guide["few"]
    guide.run("""
@tf.function
def total(pairs):
  loss = tf.constant(0)
  for pair in pairs:
    loss += tf.abs(pair[1] - pair[0])
  return loss

few, more = nodes(tf.ones([3, 2], tf.int32)), nodes(tf.ones([9, 2], tf.int32))
""")
    assert guide["few"] == guide["more"]


def test_a_loop_on_a_tensor(guide: Page) -> None:
    guide.run("""
@tf.function
def shrink(x):
  while tf.reduce_sum(x) > 1:
    tf.print(x)
    x = x / 2
  return x
""")
    guide.shows("shrink(tf.constant([2.0, 0.5]))", """
[2 0.5]
[1 0.25]
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([0.5  , 0.125], dtype=float32)>
""")
    code = guide.run("print(tf.autograph.to_code(shrink.python_function))")
    assert "ag__.while_stmt(loop_test, loop_body, get_state, set_state, ('x',), {})" in code


def test_fizzbuzz_traces_each_branch_once(guide: Page) -> None:
    guide.run("""
@tf.function
def fizzbuzz(n):
  for i in tf.range(1, n + 1):
    print('Tracing the loop')
    if i % 6 == 0:
      print('Tracing fizzbuzz')
      tf.print('fizzbuzz')
    elif i % 2 == 0:
      print('Tracing fizz')
      tf.print('fizz')
    elif i % 3 == 0:
      print('Tracing buzz')
      tf.print('buzz')
    else:
      print('Tracing the rest')
      tf.print(i)
""")
    guide.shows("fizzbuzz(tf.constant(4))", """
Tracing the loop
Tracing fizzbuzz
Tracing fizz
Tracing buzz
Tracing the rest
1
fizz
buzz
fizz
""")
    guide.shows("fizzbuzz(tf.constant(6))", "1\nfizz\nbuzz\nfizz\n5\nfizzbuzz")


def test_a_loop_accumulates_in_a_tensor_array(guide: Page) -> None:
    guide.run("""
@tf.function
def recur(step, data, state):
  data = tf.transpose(data, [1, 0, 2])
  length = data.shape[0]
  states = tf.TensorArray(tf.float32, size=length)
  for i in tf.range(length):
    state = step(data[i], state)
    states = states.write(i, state)
  return tf.transpose(states.stack(), [1, 0, 2])

data = tf.random.uniform([2, 3, 4])
states = recur(lambda x, s: x + s, data, tf.zeros([2, 4]))
""")
    np.testing.assert_array_equal(guide["states"], np.cumsum(guide["data"].numpy(), axis=1, dtype=np.float32))


def test_side_effects_of_python_happen_when_traced(guide: Page) -> None:
    guide.run("""
@tf.function
def f(x):
  print("Traced with", x)
  tf.print("Executed with", x)
""")
    guide.shows("f(1); f(1); f(2)", "Traced with 1\nExecuted with 1\nExecuted with 1\nTraced with 2\nExecuted with 2")
    guide.run("""
seen = []

@tf.function
def note(x):
  seen.append(x)

note(1); note(1); note(1)
""")
    assert guide["seen"] == [1]


@pytest.mark.parametrize("lifted, printed", [(False, "1\n2\n3\n"), (True, "1\n1\n1\n")])
def test_python_state_decides_while_tracing(guide: Page, lifted: bool, printed: str) -> None:
    guide.run(f"""
import contextlib

class Counter:
  def __init__(self):
    self.variable = tf.Variable(0)
    self.calls = 0

  @tf.function
  def __call__(self):
    if self.calls == 0:
      with {"tf.init_scope()" if lifted else "contextlib.nullcontext()"}:
        self.calls += 1
        self.variable.assign_add(1)
    return self.variable
""")
    guide.shows("""
counter = Counter()
for _ in range(3):
  print(counter().numpy())
""", printed)


def test_iterators_advance_when_traced(guide: Page) -> None:
    guide.shows("""
@tf.function
def consume(iterator):
  tf.print("Value:", next(iterator))

iterator = iter([1, 2, 3])
consume(iterator)
consume(iterator)
consume(iterator)
""", "Value: 1\nValue: 1\nValue: 1")


def test_py_function_runs_every_time(guide: Page) -> None:
    guide.run("""
seen = []

def note(x):
  seen.append(float(x))
  return x * 2

@tf.function
def doubled(x):
  return 1 + tf.py_function(note, [x], tf.TensorSpec([], tf.float32))

results = [float(doubled(tf.constant(x))) for x in (1.0, 2.0, 3.0)]
""")
    assert guide["seen"] == [1.0, 2.0, 3.0]
    assert guide["results"] == [3.0, 5.0, 7.0]
    assert guide["doubled"].experimental_get_tracing_count() == 1


def test_numpy_needs_values(guide: Page) -> None:
    """The guide's graph keeps the values of NumPy's results, or fails; here the function runs eagerly, and says so."""
    guide.run("""
import numpy as np

@tf.function
def shifted(x, y):
  return x - np.mean(y)
""")
    guide.shows("print(shifted(tf.constant([1., 3.]), (1., 5.)))", "tf.Tensor([-2.  0.], shape=(2,), dtype=float32)")
    with pytest.warns(RuntimeWarning, match="(?s)'shifted' runs eagerly.*in shifted.*: return x - np.mean"):
        guide.run("result = shifted(tf.constant([1., 3.]), tf.constant([2., 4.]))")
    assert guide["result"].numpy().tolist() == [-2.0, 0.0]


def test_tensors_that_leak(guide: Page) -> None:
    guide.run("""
leaked = None

@tf.function
def leaky(a):
  global leaked
  leaked = a + 1
  return leaked
""")
    guide.shows("print(leaky(tf.constant(1)).numpy())", "2")
    with pytest.raises(AttributeError, match="numpy"):
        guide.run("leaked.numpy()")
    with pytest.raises(TypeError, match="<tf.Tensor 'add:0' shape=\\(\\) dtype=int32> belongs to a function"):
        guide.run("""
@tf.function
def uses_leaked(b):
  return b + leaked

uses_leaked(tf.constant(2))
""")


def test_recursion(guide: Page) -> None:
    guide.run("""
@tf.function
def descend(n):
  if n > 0:
    print('tracing')
    return descend(n - 1)
  else:
    return 1
""")
    guide.shows("print(descend(3))", "tracing\ntracing\ntracing\ntf.Tensor(1, shape=(), dtype=int32)")
    with pytest.raises(RecursionError, match="descend"):
        guide.run("descend(tf.constant(3))")


def test_globals_are_read_when_traced(guide: Page) -> None:
    guide.run("""
@tf.function
def closed_over():
  return 1 + amount

@tf.function
def given(amount):
  return 1 + amount

amount = 1
""")
    guide.shows("print(int(closed_over()), int(given(amount)))", "2 2")
    guide.shows("amount = 100; print(int(closed_over()), int(given(amount)))", "2 101")
    guide.shows("""
@tf.function
def variable():
  return 1 + amount

amount = tf.Variable(1)
print("Variable:", variable())
""", "Variable: tf.Tensor(2, shape=(), dtype=int32)")
    guide.shows("""
amount.assign(100)
print("Variable:", variable())
""", "Variable: tf.Tensor(101, shape=(), dtype=int32)")


def test_attributes_of_arguments_are_read_when_traced(guide: Page) -> None:
    guide.run("""
class Model:
  def __init__(self, number):
    self.bias, self.weight = number(0.), number(2.)

def evaluate(model, x):
  return model.weight * x + model.bias

compiled = tf.function(evaluate)
plain = Model(float)
x = tf.constant(10.)
""")
    guide.shows("print(compiled(plain, x))", "tf.Tensor(20.0, shape=(), dtype=float32)")
    guide.shows("plain.bias += 5.0; print(compiled(plain, x))", "tf.Tensor(20.0, shape=(), dtype=float32)")
    guide.shows("print(tf.function(evaluate).get_concrete_function(plain, x)(x))",
                "tf.Tensor(25.0, shape=(), dtype=float32)")
    guide.shows("better = Model(tf.Variable); print(compiled(better, x))", "tf.Tensor(20.0, shape=(), dtype=float32)")
    guide.run("better.bias.assign_add(5.0)")
    guide.shows("print(compiled(better, x))", "tf.Tensor(25.0, shape=(), dtype=float32)")
    assert guide["compiled"].experimental_get_tracing_count() == 2


ONCE = "tf.function only supports singleton tf.Variables created on the first call"


def test_variables_are_created_once(guide: Page) -> None:
    with pytest.raises(ValueError, match=ONCE):
        guide.run("""
@tf.function
def f(x):
  return tf.Variable(1.0) + x

f(1.0)
""")
    guide.shows("""
class Count:
  def __init__(self):
    self.count = None

  @tf.function
  def __call__(self):
    if self.count is None:
      self.count = tf.Variable(0)
    return self.count.assign_add(1)

count = Count()
print(count())
print(count())
""", "tf.Tensor(1, shape=(), dtype=int32)\ntf.Tensor(2, shape=(), dtype=int32)")


OPTIMIZER = """
class Momentum:
  def __init__(self, rate):
    self.rate, self.speed = rate, None

  def apply(self, gradient, variable):
    if self.speed is None:
      self.speed = tf.Variable(tf.zeros_like(variable))
    self.speed.assign(0.5 * self.speed + gradient)
    variable.assign_sub(self.rate * self.speed)

def train_step(w, x, y, optimizer):
  with tf.GradientTape() as tape:
    loss = tf.reduce_sum(tf.square(w * x - y))
  optimizer.apply(tape.gradient(loss, w), w)

w = tf.Variable(2.)
x = tf.constant([-1.])
y = tf.constant([2.])
"""


def test_optimizers_with_variables_of_their_own(guide: Page) -> None:
    guide.run(OPTIMIZER + "step = tf.function(train_step); step(w, x, y, Momentum(0.125))")
    assert guide["w"].numpy() == 1.0  # the gradient is 2 (w + 2)
    with pytest.raises(ValueError, match=ONCE):
        guide.run("step(w, x, y, Momentum(0.25))")
    guide.run("""
first = tf.function(train_step).get_concrete_function(w, x, y, Momentum(0.125))
second = tf.function(train_step).get_concrete_function(w, x, y, Momentum(0.25))
w.assign(2.)
first(w, x, y)
once = float(w)
second(w, x, y)
twice = float(w)
""")
    assert (guide["once"], guide["twice"]) == (1.0, -0.5)


def test_the_flat_function_within_and_its_nodes(guide: Page) -> None:
    guide.shows("""
@tf.function
def double(a):
  return a + a

strings = double.get_concrete_function(tf.constant("a"))
for node in strings.graph.as_graph_def().node:
  print(f"{node.input} -> {node.name}")
strings.inference_fn(tf.constant("b"))
""", """
[] -> a
['a', 'a'] -> add
['add'] -> Identity
<tf.Tensor: shape=(), dtype=string, numpy=b'bb'>
""")
    with pytest.raises(TypeError, match="takes 1 tensors and 0 captured ones; got 2"):
        guide.run("strings.inference_fn(tf.constant('b'), tf.constant('c'))")


def test_loops_over_datasets_of_generators_that_say_only_dtypes(guide: Page) -> None:
    guide.shows("""
@tf.function
def apart(dataset):
  total = tf.constant(0)
  for x, y in dataset:
    total += tf.reduce_sum(tf.abs(y - x))
  return total

def pairs(values):
  return tf.data.Dataset.from_generator(lambda: values, (tf.int32, tf.int32))

for data in pairs([(1, 3)] * 3), pairs([(1, 2)] * 10), pairs([([1, 2], [3, 3])] * 2):
  graph = apart.get_concrete_function(data).graph
  print(apart(data).numpy(), len(graph.as_graph_def().node) < 12)
print(apart.experimental_get_tracing_count())
""", """
6 True
10 True
6 True
2
""")


def test_an_optimizer_makes_its_variables_in_a_first_trace_only(guide: Page) -> None:
    guide.run("""
@tf.function
def step(w, optimizer):
  with tf.GradientTape() as tape:
    loss = tf.square(w)
  optimizer.apply_gradients(zip(tape.gradient(loss, [w]), [w]))

w = tf.Variable(2.)
first, second = tf.keras.optimizers.Adam(0.01), tf.keras.optimizers.Adam(0.001)
step(w, first)
""")
    with pytest.raises(ValueError, match="only supports singleton"):
        guide.run("step(w, second)")
    guide.run("""
second.build([w])
step(w, second)
""")
