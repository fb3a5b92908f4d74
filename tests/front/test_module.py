"""`tf.Module` and `tf.name_scope`: what is found, in which order, under which names; and the graph of objects."""

import collections

import pytest

import twofold as tf
from twofold import tracking


class Dense(tf.Module):
    def __init__(self, inputs, outputs, name=None):
        super().__init__(name=name)
        with self.name_scope:
            self.w = tf.Variable(tf.ones([inputs, outputs]), name="w")
            self.b = tf.Variable(tf.zeros([outputs]), name="b", trainable=False)


class Stack(tf.Module):
    def __init__(self):
        super().__init__()
        self.z = tf.Variable(1.0)
        self.layers = [Dense(1, 2), {"x": Dense(2, 3, name="inner")}]
        self.again = self.layers[0]


class LazyHTTPModule(tf.Module):
    @tf.Module.with_name_scope
    def __call__(self, x):
        if not hasattr(self, "v"):
            self.v = tf.Variable(2.0, name="v")
        return x * self.v


def test_variables_are_found_once_own_ones_first():
    m = Stack()
    assert [v.name for v in m.variables] == ["Variable:0", "dense/b:0", "dense/w:0", "inner/b:0", "inner/w:0"]
    assert [v.name for v in m.trainable_variables] == ["Variable:0", "dense/w:0", "inner/w:0"]
    assert [v.name for v in m.non_trainable_variables] == ["dense/b:0", "inner/b:0"]
    assert m.submodules == (m.layers[0], m.layers[1]["x"])


def test_names():
    assert LazyHTTPModule().name == "lazy_http_module"
    assert LazyHTTPModule(name="a").name == "a"
    with pytest.raises(ValueError, match="not a valid module name"):
        tf.Module(name="a b")
    assert tf.Module(name="lambda").name == "lambda"


def test_a_methods_scope_and_scopes_within_scopes():
    with tf.name_scope("outer") as scope:
        m = LazyHTTPModule()
    assert scope == "outer/"
    assert float(m(3.0)) == 6.0
    assert m.v.name == "outer/lazy_http_module/v:0"
    with tf.name_scope("a"), tf.name_scope("b"):
        assert tf.Variable(0).name == "a/b/Variable:0"
        with tf.name_scope("c/"):
            assert tf.Variable(0, name="v").name == "c/v:0"
        with tf.name_scope(""):
            assert tf.Variable(0, name="v").name == "v:0"
    assert tf.Variable(0, name="v").name == "v:0"
    for bad in (3, None):
        with pytest.raises(ValueError, match="must be a string"):
            tf.name_scope(bad)


def test_scopes_of_graphs_have_names_of_letters():
    for name in ("_legacy", "a b", "-a", "ä", "a:0", "\\a"):
        with tf.name_scope(name) as scope:
            assert scope == f"{name}/" and tf.Variable(0, name="v").name == f"{name}/v:0"

        @tf.function(fallback=False)
        def scoped(within, name=name):
            with tf.name_scope("within" if within else "") as around, tf.name_scope(name) as scope:
                assert scope == f"{around}{name}/"
                return tf.constant(1.0)
        with pytest.raises(ValueError, match="root scope name"):
            scoped(False)
        if name in ("_legacy", "-a", "\\a"):
            scoped(True)
        else:
            with pytest.raises(ValueError, match="valid scope name"):
                scoped(True)


def test_flatten_with_paths_stops_where_told():
    m = Stack()
    paths = [path for path, _ in m._flatten(predicate=lambda x: isinstance(x, tf.Variable), with_path=True)]
    assert paths == [("z",), ("again", "b"), ("again", "w"), ("layers", 1, "x", "b"), ("layers", 1, "x", "w")]
    own = list(m._flatten(recursive=False, predicate=lambda x: isinstance(x, tf.Variable)))
    assert own == [m.z]


def test_a_module_may_hold_itself():
    m = Stack()
    m.me = m
    assert len(m.variables) == 5
    assert m not in m.submodules


def test_the_graph_of_objects_has_each_once_by_its_shortest_path():
    m = Stack()
    pair = collections.namedtuple("pair", "left right")
    m.pair = pair(tf.Variable(0.0), 3)
    m.plain = [1, 2]
    actual = {"/".join(path): value for path, value in tracking.walk(m)}
    assert actual["again"] is m.layers[0]
    assert actual["pair/left"] is m.pair.left
    assert "layers/0" not in actual
    assert "plain" not in actual
    assert len({id(value) for value in actual.values()}) == len(actual)


def test_a_value_that_waits_for_a_child_is_given_when_the_child_comes():
    m = tf.Module()
    given = []
    m._waiting_for_children = {"v": given.append}
    m.v = 3
    assert given == []
    m.v = tf.Variable(1.0)
    m.v = tf.Variable(2.0)
    assert [float(v) for v in given] == [1.0]
