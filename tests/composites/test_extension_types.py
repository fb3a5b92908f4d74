"""Values that are made of tensors: extension types of users in functions, control flow, tapes, files and datasets."""

import pickle
import typing

import numpy as np
import pytest

import twofold as tf


class Masked(tf.experimental.ExtensionType):
    __name__ = "tests.Masked"

    values: tf.Tensor
    mask: tf.Tensor
    label: str = "a"

    def __validate__(self):
        self.values.shape.assert_is_compatible_with(self.mask.shape)


class Nested(tf.experimental.ExtensionType):
    first: Masked
    rest: tuple[tf.Tensor, ...]
    named: typing.Mapping[str, tf.Tensor]
    count: int | None = None


SPEC = Masked.Spec(tf.TensorSpec([None]), tf.TensorSpec([None], tf.bool), "a")


def masked(*values, label="a"):
    return Masked([float(v) for v in values], [v > 1 for v in values], label)


def test_tf_nest_takes_a_composite_value_for_a_leaf_unless_asked():
    value = masked(1, 2)
    structure = {"x": [value, 3]}
    assert tf.nest.flatten(structure) == [value, 3] and not tf.nest.is_nested(value)
    flat = tf.nest.flatten(structure, expand_composites=True)
    assert [x.dtype for x in flat[:2]] == [tf.float32, tf.bool] and flat[2] == 3
    packed = tf.nest.pack_sequence_as(structure, [tf.ones([3]), tf.constant([True] * 3), 4], expand_composites=True)
    assert packed["x"][0].values.shape == [3] and packed["x"][0].label == "a" and packed["x"][1] == 4
    doubled = tf.nest.map_structure(lambda x: tf.concat([x, x], 0), value, expand_composites=True)
    assert doubled.mask.numpy().tolist() == [False, True, False, True]
    assert tf.nest.map_structure(lambda x: x.label, structure["x"][:1]) == ["a"]
    with pytest.raises(ValueError, match="differ"):
        tf.nest.assert_same_structure(value, masked(1, 2, label="b"), expand_composites=True)


def test_a_function_has_one_trace_for_all_sizes_and_one_for_each_other_field():
    traces = []

    @tf.function
    def doubled(value):
        traces.append(value.label)
        return {"again": value}, Masked(value.values * 2.0, value.mask, value.label)

    for size in (2, 3, 4, 5):
        again, result = doubled(masked(*range(size)))
        assert again["again"].values.numpy().tolist() == list(range(size))
        assert result.values.numpy().tolist() == [2 * x for x in range(size)] and result.label == "a"
    assert doubled(masked(1, label="b"))[1].label == "b"
    assert traces == ["a", "a", "b"]
    concrete = doubled.get_concrete_function(SPEC)
    assert concrete.structured_outputs[1] == SPEC and "Masked.Spec(" in repr(concrete.function_type)
    assert concrete(masked(7, 8, 9))[1].values.numpy().tolist() == [14, 16, 18]
    with pytest.raises(TypeError):
        concrete(masked(1, label="b"))


def test_input_signatures_name_specs():
    @tf.function(input_signature=[SPEC])
    def total(value):
        return tf.reduce_sum(value.values)

    assert float(total(masked(1, 2))) == 3.0 and total.experimental_get_tracing_count() == 1
    with pytest.raises(TypeError, match="Binding inputs"):
        total(tf.ones([2]))
    with pytest.raises(TypeError, match="Binding inputs"):
        total(masked(1, label="b"))


@pytest.mark.parametrize("decorate", [lambda f: f, tf.function], ids=["eager", "compiled"])
def test_branches_and_loops_pass_them_on(decorate):
    @decorate
    def run(value, threshold):
        if tf.reduce_sum(value.values) > threshold:
            value = Masked(value.values + 1.0, value.mask)
        for _ in tf.range(3):
            value = Masked(value.values * 2.0, tf.logical_not(value.mask))
        value = tf.cond(threshold > 0.0, lambda: value, lambda: Masked(value.values - 1.0, value.mask))
        return tf.while_loop(lambda n, v: n < 2, lambda n, v: (n + 1, Masked(v.values + 0.5, v.mask)), [0, value])[1]

    result = run(masked(1, 2), tf.constant(1.0))
    assert result.values.numpy().tolist() == [17.0, 25.0] and result.mask.numpy().tolist() == [True, False]
    assert run(masked(1, 2), tf.constant(-1.0)).values.numpy().tolist() == [16.0, 24.0]


@pytest.mark.parametrize("decorate", [lambda f: f, tf.function], ids=["eager", "compiled"])
def test_gradients_have_the_form_of_the_source(decorate):
    @decorate
    def gradients(value, unused):
        with tf.GradientTape() as tape:
            tape.watch([value, unused])
            total = tf.reduce_sum(value.values ** 2)
        return tape.gradient(total, [value, {"y": unused}])

    of_value, rest = gradients(masked(1, 2), masked(3))
    assert isinstance(of_value, Masked) and of_value.values.numpy().tolist() == [2.0, 4.0]
    assert of_value.mask.numpy().tolist() == [False, True] and rest == {"y": None}


def test_values_within_values():
    value = Nested(masked(1, 2), (tf.constant(1.0), 2.0), {"k": [3]}, 7)
    assert [x.shape.rank for x in tf.nest.flatten(value, expand_composites=True)] == [1, 1, 0, 0, 1]
    result = tf.function(lambda v: Nested(v.first, v.rest[::-1], v.named, v.count))(value)
    assert result.rest[0].numpy() == 2.0 and result.count == 7 and result.named["k"].numpy().tolist() == [3]
    assert result._type_spec.first == masked(1, 2)._type_spec
    assert bool(value == value) and not bool(value == result)
    spec = value._type_spec
    assert pickle.loads(pickle.dumps(SPEC)) == SPEC and spec == value._type_spec and hash(SPEC) == hash(SPEC)
    assert SPEC.is_compatible_with(masked(1)) and not SPEC.is_compatible_with(masked(1, label="b"))
    wider = masked(1)._type_spec.most_specific_compatible_type(masked(1, 2)._type_spec)
    assert wider == SPEC and masked(1)._type_spec.is_subtype_of(SPEC)


def test_fields_are_checked_when_a_value_is_made_and_stay():
    with pytest.raises(TypeError, match="mask: expected a Tensor"):
        Masked([1.0], [None])
    with pytest.raises(TypeError, match="label: expected a value of type str"):
        Masked([1.0], [True], 3)
    with pytest.raises(ValueError, match="are incompatible"):
        Masked([1.0, 2.0], [True])
    with pytest.raises(TypeError, match="missing a required argument"):
        Masked([1.0])
    with pytest.raises(AttributeError, match="Cannot mutate"):
        masked(1).values = tf.ones([1])
    with pytest.raises(TypeError, match="fields do not change"):
        class Bad(tf.experimental.ExtensionType):
            items: list
    with pytest.raises(TypeError, match="reduce_sum: a Masked cannot be an operand here"):
        tf.reduce_sum(masked(1))


def test_public_functions_do_what_is_registered():
    @tf.experimental.dispatch_for_unary_elementwise_apis(Masked)
    def unary(api, x):
        return Masked(api(x.values), x.mask)

    @tf.experimental.dispatch_for_binary_elementwise_apis(Masked, Masked | tf.Tensor | float)
    def binary(api, x, y):
        return Masked(api(x.values, y.values if isinstance(y, Masked) else y), x.mask)

    @tf.experimental.dispatch_for_api(tf.concat, {"values": list[Masked]})
    def concat(values, axis, name="concat"):
        return Masked(tf.concat([v.values for v in values], axis), tf.concat([v.mask for v in values], axis))

    try:
        run = tf.function(lambda x: tf.concat([tf.add(tf.cast(tf.abs(x), tf.float64), tf.cast(x, tf.float64)),
                                               tf.cast(tf.multiply(x, 3.0), tf.float64)], 0))
        value = masked(-1, 2)
        assert run(value).values.numpy().tolist() == [0.0, 4.0, -3.0, 6.0]
        with pytest.raises(ValueError, match="already been registered"):
            tf.experimental.dispatch_for_unary_elementwise_apis(Masked)(unary)
        with pytest.raises(ValueError, match="does not match API's signature"):
            tf.experimental.dispatch_for_api(tf.concat, {"values": Masked})(lambda x: x)
        with pytest.raises(ValueError, match="unknown parameter"):
            tf.experimental.dispatch_for_api(tf.concat, {"other": Masked})
    finally:
        for target in (unary, binary, concat):
            tf.experimental.unregister_dispatch_for(target)
    with pytest.raises(TypeError, match="abs: a Masked"):
        tf.abs(value)


def test_saved_models_have_them_for_arguments_and_results(tmp_path):
    module = tf.Module()
    module.run = tf.function(lambda v: Masked(v.values * 2.0, v.mask, v.label), input_signature=[SPEC])
    tf.saved_model.save(module, str(tmp_path))
    result = tf.saved_model.load(str(tmp_path)).run(masked(1, 2))
    assert isinstance(result, Masked) and result.values.numpy().tolist() == [2.0, 4.0]
    assert result.mask.numpy().tolist() == [False, True]


def test_specs_of_values():
    assert isinstance(tf.TensorSpec([]), tf.TypeSpec) and tf.type_spec_from_value(masked(1, 2)).label == "a"
    assert tf.type_spec_from_value(np.zeros([2])) == tf.TensorSpec([2], tf.float64)
    with pytest.raises(TypeError, match="Could not build a TypeSpec"):
        tf.type_spec_from_value(object())


def test_a_spec_of_a_users_own_class():
    from twofold.ir.type_spec import CompositeTensor

    class Range(CompositeTensor):
        def __init__(self, low, high):
            self.low, self.high = low, high

        @property
        def _type_spec(self):
            return RangeSpec(tf.TensorShape(self.low.shape))

    class RangeSpec(tf.TypeSpec):
        value_type = Range

        def __init__(self, shape):
            self.shape = tf.TensorShape(shape)

        def _serialize(self):
            return (self.shape,)

        @property
        def _component_specs(self):
            return {"low": tf.TensorSpec(self.shape), "high": tf.TensorSpec(self.shape)}

        def _to_components(self, value):
            return {"low": value.low, "high": value.high}

        def _from_components(self, components):
            return Range(components["low"], components["high"])

    swapped = tf.function(lambda r: Range(r.high, r.low))(Range(tf.constant([1.0]), tf.constant([2.0])))
    assert isinstance(swapped, Range) and swapped.low.numpy().tolist() == [2.0]


class Point(tf.experimental.BatchableExtensionType):
    x: tf.Tensor
    label: str


def test_datasets_hold_batch_and_take_them_apart():
    points = Point([[1], [2], [3]], "p")
    data = tf.data.Dataset.from_tensor_slices((points, [7, 8, 9]))
    assert data.element_spec == (Point.Spec(tf.TensorSpec([1], tf.int32), "p"), tf.TensorSpec([], tf.int32))
    batches = data.map(lambda p, n: (Point(p.x * 10, p.label), n)).batch(2)
    assert batches.element_spec[0] == Point.Spec(tf.TensorSpec([None, 1], tf.int32), "p")
    (first, n), (second, _) = list(batches)
    assert first.x.numpy().tolist() == [[10], [20]] and n.numpy().tolist() == [7, 8] and first.label == "p"
    assert second.x.numpy().tolist() == [[30]]
    assert [p.x.numpy().tolist() for p, _ in batches.unbatch()] == [[10], [20], [30]]
    assert [p.x.numpy().tolist() for p in tf.data.Dataset.from_tensors(points).repeat(2)] == [[[1], [2], [3]]] * 2
    generated = tf.data.Dataset.from_generator(lambda: iter([points]), output_signature=points._type_spec)
    assert next(iter(generated)).x.shape == [3, 1]

    @tf.function
    def total(dataset):
        sum_ = 0
        for point, n in dataset:
            sum_ += point.x[0, 0] * n[0]
        return sum_

    assert int(total(batches)) == 10 * 7 + 30 * 9
    with pytest.raises(TypeError, match="Masked values cannot be batched"):
        tf.data.Dataset.from_tensors(masked(1)).batch(2)


class Rows(tf.experimental.BatchableExtensionType):
    x: tf.RaggedTensor
    y: tf.Tensor


@pytest.mark.parametrize("signature", [None, [Rows.Spec(tf.RaggedTensorSpec([None, None, None], tf.int32),
                                                        tf.TensorSpec([None], tf.int32))]], ids=["unrolled", "loop"])
def test_map_fn_takes_and_gives_values_of_batchable_types(signature):
    def run(rows):
        kept = tf.map_fn(lambda row: Rows(row.x * row.y, row.y), rows)
        return kept, tf.map_fn(lambda row: tf.reduce_sum(row.x) + row.y, rows, fn_output_signature=tf.int32)

    value = Rows(tf.ragged.constant([[[1], []], [[2, 3]], []]), [4, 5, 6])
    for function in (run, tf.function(run, input_signature=signature)):
        kept, sums = function(value)
        assert kept.x.to_list() == [[[4], []], [[10, 15]], []] and kept.y.numpy().tolist() == [4, 5, 6]
        assert sums.numpy().tolist() == [5, 10, 6]
