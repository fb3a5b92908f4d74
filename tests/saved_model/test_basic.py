"""Saving and loading a `tf.Module`: attributes, functions, signatures, and errors of TensorFlow's kinds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import twofold as tf


class Model(tf.Module):
    """Variables in attributes and containers, and functions of several forms."""

    def __init__(self):
        super().__init__()
        self.w = tf.Variable([2.0, 1.0], name="w")
        self.layers = [tf.Variable(1.0), tf.Module(name="inner")]
        self.named = {"a": tf.Variable(3.0, trainable=False)}
        self.pair = (tf.Variable(4.0), 5)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, name="foo")])
    def scaled(self, x):
        return self.w[0] * x

    @tf.function
    def general(self, x, y=2, *, flag=True):
        return {"a": x * y if flag else x, "b": [x, (x + 1.0, None)]}

    @tf.function
    def __call__(self, x):
        return x + self.pair[0]


@pytest.fixture
def loaded(tmp_path):
    model = Model()
    x = tf.constant([1.0, 2.0])
    model.general(x)
    model.general(x, 3)
    model(tf.constant(1.0))
    tf.saved_model.save(model, tmp_path / "model")
    return tf.saved_model.load(tmp_path / "model")


def test_attributes(loaded):
    assert loaded.w.name == "w:0" and loaded.w.numpy().tolist() == [2.0, 1.0]
    assert loaded.layers[0].numpy() == 1.0 and loaded.layers[1].name == "inner"
    assert loaded.named["a"].numpy() == 3.0 and not loaded.named["a"].trainable
    assert loaded.pair[0].numpy() == 4.0 and loaded.pair[1] is None
    assert [v.numpy().tolist() for v in loaded.trainable_variables] == [1.0, 4.0, [2.0, 1.0]]
    assert len(loaded.variables) == 4 and loaded.name == "model"


def test_functions(loaded):
    x = tf.constant([1.0, 2.0])
    assert loaded.scaled([1.0, 2.0, 3.0]).numpy().tolist() == [2.0, 4.0, 6.0]
    assert loaded(2).numpy() == 6.0
    actual = loaded.general(x, y=3)
    assert actual["a"].numpy().tolist() == [3.0, 6.0]
    assert actual["b"][1][0].numpy().tolist() == [2.0, 3.0] and actual["b"][1][1] is None
    assert loaded.general([1.0, 2.0])["a"].numpy().tolist() == [2.0, 4.0]


def test_calls_that_fit_no_trace(loaded):
    with pytest.raises(ValueError, match=r"Could not find matching concrete function(.|\n)*Option 2"):
        loaded.general(tf.constant([1.0, 2.0, 3.0]))
    with pytest.raises(ValueError, match="Could not find matching concrete function"):
        loaded.general(tf.constant([1.0, 2.0]), flag=False)
    with pytest.raises(TypeError, match="missing a required argument"):
        loaded.general()
    with pytest.raises(TypeError, match="Can not cast"):
        loaded.scaled(tf.constant([1, 2]))


def test_the_default_signature(loaded):
    serve = loaded.signatures["serving_default"]
    assert serve.structured_input_signature == ((), {"foo": tf.TensorSpec([None], name="foo")})
    assert serve(foo=tf.constant([1.0]))["output_0"].numpy().tolist() == [2.0]
    assert serve(tf.constant([1.0]))["output_0"].numpy().tolist() == [2.0]
    with pytest.raises(TypeError, match="unexpected keyword arguments: x"):
        serve(x=tf.constant([1.0]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="expected to be a float32"):
        serve(foo=tf.constant([1]))


def test_gradients(loaded):
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(loaded.scaled(x) ** 3)
        by_w = tape.gradient(y, loaded.w)
        first = by_w[0]
    assert np.allclose(by_w.numpy(), [3 * 4 * (1 + 8), 0.0])
    assert np.allclose(outer.gradient(first, x).numpy(), 3 * 4 * 3 * np.array([1.0, 4.0]))


def test_a_saved_loaded_model_is_the_same_bytes(loaded, tmp_path):
    tf.saved_model.save(loaded, tmp_path / "again")
    one, two = [{p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
                for folder in (tmp_path / "model", tmp_path / "again")]
    assert one == two and len(one) == 7


def test_functions_of_any_rank(tmp_path):
    model = tf.Module()

    @tf.function(input_signature=[tf.TensorSpec(None, name="t")])
    def doubled(x):
        return x * 2.0

    @tf.function(input_signature=[tf.TensorSpec(None)])
    def first_row(x):
        return x[0, :]
    model.doubled, model.first_row = doubled, first_row
    tf.saved_model.save(model, tmp_path, signatures=doubled)
    loaded = tf.saved_model.load(tmp_path)
    for rank in range(6):
        x = tf.ones([2] * rank)
        assert loaded.doubled(x).shape == x.shape
        assert loaded.signatures["serving_default"](t=x)["output_0"].numpy().sum() == 2 * 2 ** rank
    assert loaded.first_row([[1.0, 2.0]]).numpy().tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="Could not find matching concrete function"):
        loaded.first_row(tf.ones([2]))
    with pytest.raises(ValueError, match="not made for tensors of shapes"):
        loaded.signatures["serving_default"](t=tf.ones([1] * 6))


def test_relations_between_sizes_stay(tmp_path):
    model = tf.Module()
    model.add = tf.function(lambda x, y: x + y, input_signature=[tf.TensorSpec([None]), tf.TensorSpec([None])])
    tf.saved_model.save(model, tmp_path)
    loaded = tf.saved_model.load(tmp_path)
    assert loaded.add([1.0, 2.0], [3.0, 4.0]).numpy().tolist() == [4.0, 6.0]
    with pytest.raises(ValueError, match=r"Sizes: x: f32\[d0_0\], y: f32\[d1_0\], where d0_0 == d1_0"):
        loaded.add([1.0, 2.0], [3.0, 4.0, 5.0])


def test_no_model(tmp_path):
    for error in (OSError, tf.errors.NotFoundError):
        with pytest.raises(error, match="SavedModel file does not exist at: "):
            tf.saved_model.load(tmp_path / "nothing")
    assert not tf.saved_model.contains_saved_model(tmp_path)
    tf.saved_model.save(tf.Module(), tmp_path)
    assert tf.saved_model.contains_saved_model(tmp_path) and tf.saved_model.contains_saved_model(str(tmp_path))


def test_assets(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "words \u00e4.txt").write_text("one")
    (tmp_path / "words \u00e4.txt").write_text("two")
    model = tf.Module()
    model.first = tf.saved_model.Asset(tmp_path / "a" / "words \u00e4.txt")
    model.second = tf.saved_model.Asset(str(tmp_path / "words \u00e4.txt"))
    model.paths = tf.function(lambda: [model.first.asset_path, model.second.asset_path], input_signature=[])
    tf.saved_model.save(model, tmp_path / "model")
    (tmp_path / "words \u00e4.txt").unlink()
    (tmp_path / "model").rename(tmp_path / "moved")
    loaded = tf.saved_model.load(tmp_path / "moved")
    assert [Path(p.numpy().decode()).read_text() for p in loaded.paths()] == ["one", "two"]
    assert loaded.second.asset_path.numpy() == loaded.paths()[1].numpy()
    assert sorted(p.name for p in tmp_path.glob("moved/data-*/assets/*")) == ["words \u00e4.txt", "words \u00e4_1.txt"]
    model.second = tf.saved_model.Asset(str(tmp_path / "gone"))
    with pytest.raises(tf.errors.NotFoundError, match="root.second is no file"):
        tf.saved_model.save(model, tmp_path / "model")


def test_calls_of_python_are_refused_with_the_line(tmp_path):
    model = tf.Module()

    @tf.function(input_signature=[tf.TensorSpec([])])
    def asks(x):
        return tf.py_function(lambda t: t * 2.0, [x], tf.TensorSpec([]))  # here
    model.asks = asks
    with pytest.raises(tf.errors.UnimplementedError, match=r"At test_basic.py:\d+ in asks\(\): .*# here"):
        tf.saved_model.save(model, tmp_path)
    model.asks = tf.function(lambda x: tf.print(x, output_stream=f"file://{tmp_path}/log"), input_signature=[
        tf.TensorSpec([])])
    with pytest.raises(tf.errors.UnimplementedError, match="no standard stream"):
        tf.saved_model.save(model, tmp_path)
    assert not tf.saved_model.contains_saved_model(tmp_path)


def test_functions_that_run_eagerly_are_refused(tmp_path):
    model = tf.Module()
    model.f = tf.function(lambda x: x * x.numpy())
    with pytest.warns(RuntimeWarning, match="runs eagerly"):
        model.f(tf.constant(2.0))
    with pytest.raises(tf.errors.UnimplementedError, match="cannot be saved: it runs eagerly"):
        tf.saved_model.save(model, tmp_path)


def test_variables_must_be_tracked(tmp_path):
    hidden = tf.Variable(1.0)
    model = tf.Module()
    model.f = tf.function(lambda x: x * hidden, input_signature=[tf.TensorSpec([])])
    with pytest.raises(AssertionError, match="references an 'untracked' resource"):
        tf.saved_model.save(model, tmp_path)
    model.hidden = [hidden]
    tf.saved_model.save(model, tmp_path)
    assert tf.saved_model.load(tmp_path).f(3.0).numpy() == 3.0


def test_what_can_be_saved(tmp_path):
    with pytest.raises(ValueError, match="Expected an object of type `Trackable`"):
        tf.saved_model.save(3, tmp_path)
    model = tf.Module()
    model.f = tf.function(lambda x: x)
    with pytest.raises(ValueError, match="Expected a TensorFlow function for which to generate a signature"):
        tf.saved_model.save(model, tmp_path, signatures=model.f)
    with pytest.raises(ValueError, match="non-string key 1 in the output"):
        tf.saved_model.save(model, tmp_path, signatures=tf.function(lambda: {1: tf.constant(1)}, input_signature=[]))
    model.odd = {3: tf.Variable(1.0), "a": tf.Variable(2.0)}
    with pytest.raises(tf.errors.InvalidArgumentError, match="root.odd .* under the key 3"):
        tf.saved_model.save(model, tmp_path)

    @tf.function
    def within():
        tf.saved_model.save(tf.Module(), tmp_path)
    with pytest.raises(AssertionError, match="not supported inside a traced"):
        within()


@pytest.mark.parametrize("given", [range(3), "a" * 100000, [1, 2], tf.ones([20, 20]), {"f": len}, [[[[[[1.0]]]]]]])
def test_what_is_no_signature_is_shown_with_the_argument(given, tmp_path) -> None:
    with pytest.raises(ValueError, match="(?s)^save: signatures: .*but got .*\n  At ") as raised:
        tf.saved_model.save(tf.Module(), tmp_path, signatures=given)
    assert len(str(raised.value)) < 600


def test_a_builtin_without_a_signature_is_no_signature(tmp_path) -> None:
    module = tf.Module()
    module.least = tf.function(min)  # `inspect.signature` knows nothing of it
    with pytest.raises(ValueError, match="Expected a TensorFlow function for which to generate a signature"):
        tf.saved_model.save(module, str(tmp_path), signatures=module.least)


def test_signatures(tmp_path):
    model = tf.Module()
    model.v = tf.Variable([1.0, 2.0])

    @tf.function
    def fn(point, scale, offset=3):
        return {"sum": point["x"] + point["y"] * scale, "both": (model.v, [offset * scale])}
    spec = {"x": tf.TensorSpec([None]), "y": tf.TensorSpec([None])}
    concrete = fn.get_concrete_function(spec, tf.TensorSpec([], name="by"))
    tf.saved_model.save(model, tmp_path, signatures={"nested": concrete, "plain": tf.function(
        lambda a, b: (a, b), input_signature=[tf.TensorSpec([], tf.int32), tf.TensorSpec([], tf.string)])})
    loaded = tf.saved_model.load(tmp_path, tags=["serve"], options=tf.saved_model.LoadOptions())
    assert list(loaded.signatures) == ["nested", "plain"]
    x = tf.constant([1.0, 2.0])
    actual = loaded.signatures["nested"](point=x, point_1=x, by=tf.constant(2.0))
    assert actual["sum"].numpy().tolist() == [3.0, 6.0]
    assert actual["both"][0].numpy().tolist() == [1.0, 2.0] and actual["both"][1][0].numpy() == 6.0
    plain = loaded.signatures["plain"]
    assert {k: v.numpy() for k, v in plain(b=tf.constant("t"), a=tf.constant(1)).items()} == {
        "output_0": 1, "output_1": b"t"}
    with pytest.raises(TypeError, match="takes 0 positional arguments, got 2"):
        plain(1, "t")
    with pytest.raises(TypeError, match="missing required arguments: b"):
        plain(a=1)
    tf.saved_model.save(loaded, tmp_path / "again")
    again = tf.saved_model.load(tmp_path / "again").signatures["nested"]
    assert again(point=x, point_1=x, by=1.0)["sum"].numpy().tolist() == [2.0, 4.0]


@pytest.mark.parametrize("specs, names", [  # the names that TensorFlow gives
    ([[(), ()], ()], ["x", "x_1", "y"]), ([{"b": (), "a": [(), ()]}, ()], ["x", "x_1", "x_2", "y"]),
    ([["p", "p"], "x"], ["p", "p_1", "x"]), ([["x_1", ()], ()], ["x_1", "x", "y"]), ([[()], ()], ["x", "y"])])
def test_each_tensor_of_a_structure_has_a_name(specs, names, tmp_path):
    model = tf.Module()
    model.f = tf.function(lambda x, y: tf.stack(tf.nest.flatten([x, y])),
                          input_signature=[_specs(s) for s in specs])
    tf.saved_model.save(model, tmp_path)
    serve = tf.saved_model.load(tmp_path).signatures["serving_default"]
    assert list(serve.structured_input_signature[1]) == names
    given = {name: tf.constant(float(n)) for n, name in enumerate(names)}
    assert serve(**given)["output_0"].numpy().tolist() == list(range(len(names)))


def _specs(named):
    if isinstance(named, dict):
        return {k: _specs(v) for k, v in named.items()}
    return [_specs(v) for v in named] if isinstance(named, list) else tf.TensorSpec([], name=named or None)


def test_aliases_of_functions(tmp_path):
    model = tf.Module()
    model.double = tf.function(lambda x: x * 2.0, input_signature=[tf.TensorSpec([None])])
    options = tf.saved_model.SaveOptions(function_aliases={"twice": model.double})
    tf.saved_model.save(model, tmp_path, options=options)
    assert not hasattr(tf.saved_model.load(tmp_path), "function_aliases")
    loaded = tf.saved_model.load(tmp_path, options=tf.saved_model.LoadOptions(experimental_load_function_aliases=True))
    assert loaded.function_aliases["twice"]([1.0, 2.0]).numpy().tolist() == [2.0, 4.0]
    tf.saved_model.save(loaded, tmp_path / "again")  # no child of the object
    assert not hasattr(tf.saved_model.load(tmp_path / "again"), "function_aliases")
    stray = tf.saved_model.SaveOptions(function_aliases={"stray": tf.function(lambda x: x)})
    with pytest.raises(ValueError, match="no tf.function of what is saved"):
        tf.saved_model.save(model, tmp_path, options=stray)


def test_variables_as_arguments(tmp_path):
    model = tf.Module()
    model.a, model.b = tf.Variable(1.0), tf.Variable(2.0)
    model.add = tf.function(lambda v, x: v.assign_add(x))
    model.add(model.a, tf.constant(1.0))
    model.add(model.b, tf.constant(1.0))
    tf.saved_model.save(model, tmp_path)
    loaded = tf.saved_model.load(tmp_path)
    loaded.add(loaded.b, tf.constant(5.0))
    assert (loaded.a.numpy(), loaded.b.numpy()) == (2.0, 8.0)


def test_shared_and_circular_objects(tmp_path):
    model, inner = tf.Module(), tf.Module(name="inner")
    inner.v, inner.parent = tf.Variable(1.0), model
    model.one, model.two, model.all = inner, inner, [inner, inner.v]
    tf.saved_model.save(model, tmp_path)
    loaded = tf.saved_model.load(tmp_path)
    assert loaded.one is loaded.two is loaded.all[0] and loaded.one.parent is loaded
    assert loaded.all[1] is loaded.one.v and len(loaded.variables) == 1


def test_concrete_functions_and_functions_in_containers(tmp_path):
    model = tf.Module()
    model.concrete = tf.function(lambda x: x + 1.0).get_concrete_function(tf.TensorSpec([None]))
    model.several = {"a": [tf.function(lambda x: x * 2.0, input_signature=[tf.TensorSpec([])]), None]}
    tf.saved_model.save(model, tmp_path)
    loaded = tf.saved_model.load(tmp_path)
    assert loaded.concrete([1.0, 2.0]).numpy().tolist() == [2.0, 3.0]
    assert loaded.several["a"][0](3.0).numpy() == 6.0 and loaded.several["a"][1] is None


def test_a_gradient_that_fails_says_so_after_loading(tmp_path):
    @tf.custom_gradient
    def odd(x):
        def gradient(ct):
            raise ValueError("no gradient today")
        return x * 2.0, gradient
    model = tf.Module()
    model.f = tf.function(odd, input_signature=[tf.TensorSpec([])])
    tf.saved_model.save(model, tmp_path)
    loaded, x = tf.saved_model.load(tmp_path), tf.constant(1.0)
    assert loaded.f(x).numpy() == 2.0
    with pytest.raises(tf.errors.UnimplementedError, match="ValueError: no gradient today"), tf.GradientTape() as tape:
        tape.watch(x)
        tape.gradient(loaded.f(x), x)


def test_a_function_without_arguments_needs_no_declaration(tmp_path):
    class Module(tf.Module):
        def __init__(self):
            super().__init__()
            self.v = tf.Variable(2.0)

        @tf.function
        def read(self):
            return self.v * 3.0

        @tf.function
        def scaled(self, x):
            return self.v * x
    module = Module()
    tf.saved_model.save(module, tmp_path / "m", signatures=module.read)
    actual = tf.saved_model.load(tmp_path / "m").signatures["serving_default"]()
    assert {name: float(value) for name, value in actual.items()} == {"output_0": 6.0}
    module.scaled(tf.constant(1.0))
    with pytest.raises(ValueError, match="with an input signature or concrete functions"):
        tf.saved_model.save(module, tmp_path / "n", signatures=module.scaled)
    concrete = module.scaled.get_concrete_function(tf.TensorSpec([], tf.float32))
    tf.saved_model.save(module, tmp_path / "n", signatures=concrete)
    assert float(tf.saved_model.load(tmp_path / "n").signatures["serving_default"](tf.constant(3.0))["output_0"]) == 6.0


def test_concrete_functions_of_unknown_rank(tmp_path):
    """Without an input signature, as an attribute, as a signature, and beside other arguments."""
    module = tf.Module()
    module.v = tf.Variable(2.0)
    module.f = tf.function(lambda x, more=None, by=1.0: x * module.v * by if more is None else x + more)
    concrete = module.f.get_concrete_function(tf.TensorSpec(None))
    module.c = module.f.get_concrete_function(tf.TensorSpec(None), more=tf.TensorSpec([], tf.float32), by=3.0)
    tf.saved_model.save(module, tmp_path, signatures=concrete)
    loaded = tf.saved_model.load(tmp_path)
    for shape in ([], [3], [2, 2], [1, 2, 1]):
        x = tf.ones(shape)
        np.testing.assert_array_equal(loaded.f(x), np.full(shape, 2.0, np.float32))
        np.testing.assert_array_equal(loaded.c(x, more=tf.constant(4.0), by=3.0), np.full(shape, 5.0, np.float32))
        result, = loaded.signatures["serving_default"](x=x).values()
        np.testing.assert_array_equal(result, np.full(shape, 2.0, np.float32))
    tf.saved_model.save(loaded, tmp_path / "again")
    assert tf.saved_model.load(tmp_path / "again").f(tf.ones([2])).numpy().tolist() == [2.0, 2.0]
