"""`tf.keras.tree`, with what Keras gives for the same structures."""

import collections

import pytest

import twofold as tf

tree, Ordered = tf.keras.tree, collections.OrderedDict
Point = collections.namedtuple("Point", "a b")
ORDERED, DEQUE = Ordered([("b", 1), ("a", 2)]), collections.deque([1, 2])


@pytest.mark.parametrize("ours, keras", [
    (lambda: tree.flatten(ORDERED), [1, 2]), (lambda: tree.flatten({"b": 1, "a": [2, None]}), [2, None, 1]),
    (lambda: tree.flatten(DEQUE), [1, 2]), (lambda: tree.is_nested(DEQUE), True), (lambda: tree.flatten([]), []),
    (lambda: tree.flatten_with_path({"b": 1, "a": [2, Point(3, 4)]}),
     [(("a", 0), 2), (("a", 1, 0), 3), (("a", 1, 1), 4), (("b",), 1)]),
    (lambda: tree.flatten_with_path(ORDERED), [(("b",), 1), (("a",), 2)]),
    (lambda: tree.lists_to_tuples([1, [2, (3, [4])], {"a": [5]}, Point([1], 2)]),
     (1, (2, (3, (4,))), {"a": (5,)}, Point((1,), 2))),
    (lambda: tree.map_shape_structure(lambda s: ("S", s), {"a": (1, None), "b": [(2, 3), None]}),
     {"a": ("S", (1, None)), "b": [("S", (2, 3)), ("S", None)]}),
    (lambda: tree.map_structure(lambda a, b: (a, b), [None, 1], [None, 3], none_is_leaf=False), [None, (1, 3)]),
    (lambda: tree.map_structure_up_to([0, 0], lambda a, b: (a, b), [1, [2]], [3, 4]), [(1, 3), ([2], 4)]),
    (lambda: tree.pack_sequence_as([1, {"b": 2, "a": 3}], [1, 2, 3]), [1, {"b": 3, "a": 2}]),
    (lambda: list(tree.pack_sequence_as(ORDERED, [10, 20]).items()), [("b", 10), ("a", 20)]),
    (lambda: tree.pack_sequence_as(DEQUE, [5, 6]), collections.deque([5, 6])),
    (lambda: tree.traverse(lambda x: tree.MAP_TO_NONE if x == 2 else "t" if isinstance(x, tuple) else None,
                           [(1, 2), 2, [2, 3]]), ["t", None, [None, 3]]),
    (lambda: tree.traverse(lambda x: tree.MAP_TO_NONE if x == 2 else None, [(1, 2), 2], top_down=False),
     [(1, None), None]),
    (lambda: tree.assert_same_paths([1, {"a": 2}], (1, {"a": 3})), None),
    (lambda: tree.assert_same_structure({"a": 1}, Ordered(a=2)), None)])
def test_values(ours, keras):
    assert repr(ours()) == repr(keras)


@pytest.mark.parametrize("top_down, visits", [
    (True, [[(1, 2), {"a": 4}], (1, 2), 1, 2, {"a": 4}, 4]), (False, [1, 2, (1, 2), 4, {"a": 4}, [(1, 2), {"a": 4}]])])
def test_traverse_visits(top_down, visits):
    seen = []
    tree.traverse(seen.append, [(1, 2), {"a": 4}], top_down)
    assert seen == visits


@pytest.mark.parametrize("call", [
    lambda: tree.map_structure(print), lambda: tree.map_structure(print, [1], (1,)),
    lambda: tree.map_structure(print, [1], [1, 2]), lambda: tree.map_structure_up_to([0, 0], print, (1, 2)),
    lambda: tree.pack_sequence_as([1, 2], [5]), lambda: tree.pack_sequence_as(1, [5, 6]),
    lambda: tree.assert_same_paths([1], [1, 2]), lambda: tree.assert_same_structure([1], (1,)),
    lambda: tree.assert_same_structure([1], [(1,)]), lambda: tree.assert_same_structure({"b": 1, "a": 1}, {"a": 1}),
    lambda: tree.map_structure(print, [None], [2], none_is_leaf=False)])
def test_what_keras_refuses(call):
    with pytest.raises(ValueError):
        call()


def test_limits_of_training():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    x, y, steps = tf.ones([20, 2]), tf.ones([20, 1]), []
    counting = tf.keras.callbacks.LambdaCallback(on_epoch_begin=lambda epoch, logs: steps.append(0),
                                                 on_train_batch_end=lambda batch, logs: steps.append(batch))
    tf.keras.config.set_max_epochs(2)
    tf.keras.config.set_max_steps_per_epoch(2)
    try:
        with pytest.warns(UserWarning, match="Limiting"):
            model.fit(x, y, 4, epochs=5, verbose=0, callbacks=[counting])
        with pytest.warns(UserWarning, match="Limiting"):
            assert model.predict(x, 4, verbose=0).shape == (8, 1)
    finally:
        tf.keras.config.set_max_epochs(None)
        tf.keras.config.set_max_steps_per_epoch(None)
    assert steps == [0, 0, 1, 0, 0, 1]
    with pytest.raises(ValueError, match="at least 1"):
        tf.keras.config.set_max_epochs(0)


def test_tracebacks_show_all_frames_on_request():
    def frames():
        try:
            tf.reshape([1.0], [2])
        except tf.errors.InvalidArgumentError as error:
            count, traceback = 0, error.__traceback__
            while traceback is not None:
                count, traceback = count + 1, traceback.tb_next
            return count
    before = tf.debugging.is_traceback_filtering_enabled()
    try:
        tf.debugging.enable_traceback_filtering()
        assert frames() == 1
        tf.keras.config.disable_traceback_filtering()
        assert not tf.debugging.is_traceback_filtering_enabled() and frames() > 1
    finally:
        (tf.debugging.enable_traceback_filtering if before else tf.debugging.disable_traceback_filtering)()
