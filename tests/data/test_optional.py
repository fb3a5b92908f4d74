"""`tf.experimental.Optional` as a value that functions, branches and loops take."""

import numpy as np
import pytest

import twofold as tf

Optional = tf.experimental.Optional


def test_functions_take_and_give_optionals():
    @tf.function
    def twice(optional):
        return Optional.from_value({"y": optional.get_value() * 2})

    given = twice(Optional.from_value(tf.constant([1.0, 2.0])))
    assert bool(given.has_value()) and given.get_value()["y"].numpy().tolist() == [2.0, 4.0]
    assert given.element_spec == {"y": tf.TensorSpec([2])}
    with pytest.raises(tf.errors.InvalidArgumentError, match="does not have a value"):
        twice(Optional.empty(tf.TensorSpec([2])))
    assert tf.OptionalSpec.from_value(given) == tf.OptionalSpec({"y": tf.TensorSpec([2])})


@tf.function
def sums(iterator, steps):
    """The sums of the last of so many elements, as a loop of Keras computes its outputs: what is in the optional only
    the body knows."""
    outputs = Optional.empty(None)
    known = {}

    def body(step, outputs, element):
        def some():
            made = Optional.from_value({"sum": tf.reduce_sum(element.get_value())})
            known["spec"] = made.element_spec
            return made

        def none():
            outputs._element_spec = known["spec"]
            return outputs

        outputs = tf.cond(element.has_value(), some, none)
        return step + 1, outputs, tf.cond(step + 1 < steps, lambda: iterator.get_next_as_optional(), lambda: element)

    _, outputs, _ = tf.while_loop(lambda step, outputs, element: tf.logical_and(step < steps, element.has_value()),
                                  body, [tf.constant(0), outputs, iterator.get_next_as_optional()])
    return outputs


def test_loops_carry_optionals_whose_value_the_body_gives():
    iterator = iter(tf.data.Dataset.from_tensor_slices(np.arange(5.0, dtype=np.float32)).batch(2))
    first, rest, none = [sums(iterator, tf.constant(2)) for _ in range(3)]
    assert first.get_value()["sum"].numpy() == 2.0 + 3.0
    assert rest.get_value()["sum"].numpy() == 4.0
    assert not none.has_value()
