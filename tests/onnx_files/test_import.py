"""`tf.import_onnx`: results beside onnxruntime's, weights as variables, open sizes, saving, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper
from onnx_files import models

import twofold as tf
from twofold.runtime import packed, tiers

HEAD = '<ir_version: 8, opset_import: ["" : 17, "own" : 1]>\n'


def parsed(text: str) -> bytes:
    """The file of a model in ONNX's own text form."""
    return onnx.parser.parse_model(HEAD + text).SerializeToString()


def by_runtime(file: bytes, given: dict[str, np.ndarray]) -> list[np.ndarray]:
    """What onnxruntime makes of a model."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"]).run(None, given)


def images(*shape: int) -> np.ndarray:
    """Random floats."""
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


# -- whole models -------------------------------------------------------------------------------------
RESNET = models.resnet(8, (1, 1), 32, 5)
BERT = models.bert(1, 16, 2, 50)
LSTM = models.lstm(2, 6, 8, 3)


def words(batch: int, length: int) -> dict[str, np.ndarray]:
    """Sentences of which the last words are masked."""
    mask = np.ones((batch, length), np.int64)
    mask[:, -2:] = 0
    return {"words": np.random.default_rng(length).integers(0, 50, (batch, length)), "mask": mask}


@pytest.mark.parametrize(("file", "calls"), [
    (RESNET, [{"image": images(2, 3, 32, 32)}, {"image": images(1, 3, 32, 32)}]),
    (BERT, [words(2, 7), words(1, 12), words(3, 5)]),
    (LSTM, [{"x": images(5, 3, 6)}, {"x": images(9, 1, 6)}]),
], ids=["resnet", "bert", "lstm"])
def test_models_give_what_onnxruntime_gives_for_all_sizes(file, calls, tmp_path):
    model = tf.import_onnx(file)
    for given in calls:
        mine = model(**given)
        np.testing.assert_allclose(mine.numpy(), by_runtime(file, given)[0], rtol=1e-4, atol=1e-5)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(model(**given) ** 2)
    assert all(g is not None for g in tape.gradient(loss, model.trainable_variables))
    tf.saved_model.save(model, tmp_path / "saved")
    loaded = tf.saved_model.load(tmp_path / "saved")
    np.testing.assert_array_equal(loaded(*given.values()).numpy(), mine.numpy())
    assert {v.name for v in loaded.variables} == {v.name for v in model.variables}


def test_a_model_is_trained_as_any_module():
    model = tf.import_onnx(RESNET)
    x, labels = images(8, 3, 32, 32), np.arange(8) % 5
    assert all("BatchNormalization" not in v.name for v in model.variables)
    frozen = [v for v in model.variables if not v.trainable]
    assert len(frozen) == 2 * 6  # a mean and a variance for each normalisation

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, model(x)))
        for variable, by in zip(model.trainable_variables, tape.gradient(loss, model.trainable_variables), strict=True):
            variable.assign_sub(0.05 * by)
        return loss
    losses = [float(step()) for _ in range(6)]
    assert losses[-1] < 0.7 * losses[0]


def test_weights_that_are_packed_once_change_no_bit_and_may_be_assigned(monkeypatch):
    monkeypatch.setenv("TWOFOLD_TIERS", "0")
    monkeypatch.setattr(packed, "_BUDGET", 1)
    monkeypatch.setattr(packed, "_FEWEST", 1)
    file, x = models.resnet(64, (1, 1), 16, 3), images(1, 3, 16, 16)
    model, other = tf.import_onnx(file), tf.import_onnx(file)
    before = model(x).numpy()
    for _ in range(12):
        assert model(x).numpy().tobytes() == before.tobytes()
        tiers.wait()
    (program,) = [trace.runner.program.whole for family in model._calls._families.values() for trace in family.traces]
    assert program._kept is not None
    for m in (model, other):
        for v in m.trainable_variables:
            v.assign(v * 0.5)
    after = model(x).numpy()
    assert not np.array_equal(after, before) and after.tobytes() == other(x).numpy().tobytes()


def test_gradients_are_those_of_differences():
    model = tf.import_onnx(models.lstm(1, 3, 4, 2))
    x = tf.constant(images(4, 2, 3))
    variable = model.trainable_variables[0]
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(model(x) ** 2)
    by = tape.gradient(loss, variable).numpy()
    place = np.unravel_index(np.abs(by).argmax(), by.shape)
    there = variable.numpy()
    ends = []
    for shift in (-1e-2, 1e-2):
        moved = there.copy()
        moved[place] += shift
        variable.assign(moved)
        ends.append(float(tf.reduce_sum(tf.cast(model(x), tf.float64) ** 2)))
    np.testing.assert_allclose((ends[1] - ends[0]) / 2e-2, by[place], rtol=5e-2)


def test_a_model_becomes_a_native_library(tmp_path):
    model = tf.import_onnx(parsed("g (float[n, 4] x) => (float[n, 4] y) { y = Relu (x) }"))
    library = tf.export.native(model, tmp_path / "model.o")
    assert library.functions == ("model_predict",)


# -- arguments ----------------------------------------------------------------------------------------
TWO = parsed("g (float[n, 2] x, float[2] second.1) => (float[n, 2] y, float[n, 2] z) {"
             " y = Add (x, second.1) z = Mul (x, second.1) }".replace("second.1", "second"))


def test_arguments_by_position_and_by_name():
    model = tf.import_onnx(TWO)
    x, by = [[1.0, 2.0]], [3.0, 5.0]
    assert [s.name for s in model.inputs] == ["x", "second"]
    assert [s.shape.as_list() for s in model.inputs + model.outputs] == [[None, 2], [2], [None, 2], [None, 2]]
    for y, z in (model(x, by), model(x, second=by), model(second=by, x=x)):
        assert (y.numpy().tolist(), z.numpy().tolist()) == ([[4.0, 7.0]], [[3.0, 10.0]])


@pytest.mark.parametrize(("args", "kwargs", "told"), [
    ((), {"x": [[1.0, 2.0]]}, "'second'. are missing"),
    (([[1.0, 2.0]], [1.0, 2.0], 3.0), {}, "got 3 arguments"),
    (([[1.0, 2.0]], [1.0, 2.0]), {"x": 1.0}, "by name"),
    (([[1.0, 2.0]],), {"third": 1.0}, "third"),
])
def test_wrong_arguments_are_refused(args, kwargs, told):
    with pytest.raises(TypeError, match=told):
        tf.import_onnx(TWO)(*args, **kwargs)


@pytest.mark.parametrize("x", [np.ones((1, 3)), np.ones(2), tf.ones([1, 2], tf.float64)], ids=["size", "rank", "dtype"])
def test_arrays_that_do_not_fit_the_file_are_refused(x):
    told = r"input 'x' of the model is float32\(None, 2\); got float"
    with pytest.raises(tf.errors.InvalidArgumentError, match=told):
        tf.import_onnx(TWO)(x, [1.0, 2.0])


def test_inputs_that_decide_shapes_are_taken_by_value():
    model = tf.import_onnx(parsed("g (float[n, m] x, int64[r] shape) => (float[a, b] y) { y = Reshape (x, shape) }"))
    x = images(2, 6)
    for shape in ([3, 4], [-1, 2], [2, 6]):
        assert model(x, np.array(shape)).numpy().tolist() == x.reshape(shape).tolist()

    @tf.function
    def traced(x, shape):
        return model(x, shape)
    with pytest.raises(TypeError, match="decides shapes"):
        traced(tf.constant(x), tf.constant([3, 4], tf.int64))


def test_nodes_that_must_know_sizes_get_a_trace_for_each():
    file = parsed('g (float[n, 1, h, w] x) => (float[n, 1, a, b] y) { s = Constant <value = float[4] {1.0, 1.0, 2.0, '
                  '1.5}> () y = Resize <mode = "linear"> (x, , s) }')
    model = tf.import_onnx(file)
    for shape in ((1, 1, 4, 6), (2, 1, 5, 3), (1, 1, 2, 2)):
        x = images(*shape)
        np.testing.assert_allclose(model(x).numpy(), by_runtime(file, {"x": x})[0], rtol=1e-5, atol=1e-6)


def test_values_may_decide_sizes():
    file = parsed("""g (float[n] x) => (float[k] y, int64[k] i) { top = ReduceMax <keepdims = 0> (x)
      number = Cast <to = 7> (top) one = Constant <value = int64[1] {0}> () k = Unsqueeze (number, one)
      y, i = TopK (x, k) }""")
    model = tf.import_onnx(file)
    for x, places in (([3.0, 1.0, 2.0, 0.0], [0, 2, 1]), ([1.0, 2.0, 0.0, 0.0], [1, 0])):
        y, i = model(x)
        assert (y.numpy().tolist(), i.numpy().tolist()) == ([x[p] for p in places], places)


def test_a_model_whose_values_decide_axes_runs_op_by_op():
    file = parsed("g (float[n, n] x) => (float[n, n] y) { top = ReduceMax <keepdims = 0> (x) "
                  "axis = Cast <to = 7> (top) y = CumSum (x, axis) }")
    model = tf.import_onnx(file)
    with pytest.warns(RuntimeWarning, match="runs eagerly, because it cannot be traced: axis"):
        assert model([[1.0, 1.0], [0.0, 0.0]]).numpy().tolist() == [[1.0, 2.0], [0.0, 0.0]]
    assert model([[0.0, 0.0], [0.0, 0.0]]).numpy().tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_shapes_that_a_model_computes_stay_open():
    model = tf.import_onnx(parsed("""g (float[n, c, h, w] x) => (float[n, k] y) {
      s = Shape (x) zero = Constant <value = int64 {0}> () one = Constant <value = int64[1] {0}> ()
      n = Gather (s, zero) row = Unsqueeze (n, one) rest = Constant <value = int64[1] {-1}> ()
      to = Concat <axis = 0> (row, rest) y = Reshape (x, to) }"""))
    assert model.signatures["predict"].get_concrete_function().structured_outputs.shape.as_list() == [None, None]
    for shape in ((2, 3, 4, 5), (1, 2, 2, 2)):
        assert model(images(*shape)).shape == (shape[0], np.prod(shape[1:]))


# -- weights ------------------------------------------------------------------------------------------
def test_filters_are_kept_as_convolutions_use_them():
    file = models.resnet(4, (1,), 16, 3)
    weights = {w.name: tuple(w.dims) for w in onnx.ModelProto.FromString(file).graph.initializer}
    kept = {v.name.removesuffix(":0"): tuple(v.shape) for v in tf.import_onnx(file).variables}
    assert kept.keys() == weights.keys()
    first = next(n for n, shape in weights.items() if len(shape) == 4)
    assert kept[first] == (*weights[first][2:], weights[first][1], weights[first][0])


def test_scalars_and_integers_stay_constants():
    b = models.Builder()
    y = b.add("Add", b.add("Mul", "x", b.constant(np.float32(2))), b.weight((3,), 1.0))
    z = b.add("Gather", y, b.constant(np.array([2, -1], np.int64)), axis=1)
    model = tf.import_onnx(b.model([("x", 1, ["n", 3])], [(z, 1, ["n", 2])]))
    assert [tuple(v.shape) for v in model.variables] == [(3,)]


def test_sparse_weights():
    values, places = helper.make_tensor("s", 1, [2], [5.0, 7.0]), helper.make_tensor("", 7, [2], [1, 5])
    graph = helper.make_graph([helper.make_node("Add", ["x", "s"], ["y"])], "g",
                              [helper.make_tensor_value_info("x", 1, [2, 3])],
                              [helper.make_tensor_value_info("y", 1, [2, 3])],
                              sparse_initializer=[helper.make_sparse_tensor(values, places, [2, 3])])
    model = tf.import_onnx(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString())
    assert model(np.zeros((2, 3))).numpy().tolist() == [[0, 5, 0], [0, 0, 7]]


# -- control flow and functions -----------------------------------------------------------------------
def test_loops_run_as_often_as_an_input_says():
    file = parsed("""g (int64 n, float[2] x) => (float[2] y, float[k, 2] all) {
      yes = Constant <value = bool {1}> ()
      y, all = Loop (n, yes, x) <body = b (int64 i, bool c, float[2] now) => (bool c2, float[2] after, float[2] out) {
        c2 = Identity (c) after = Add (now, x) out = Mul (after, now) }> }""")
    model = tf.import_onnx(file)
    x = np.array([1, 2], np.float32)
    for n in (0, 1, 5, 12):
        given = {"n": np.array(n), "x": x}
        for mine, other in zip(model(**given), by_runtime(file, given), strict=True):
            np.testing.assert_array_equal(mine.numpy(), other)


def test_a_branch_sees_the_values_around_it():
    file = parsed("""g (bool which, float[n] x) => (float[n] y) { twice = Add (x, x)
      y = If (which) <then_branch = a () => (float[n] t) { t = Neg (twice) },
                      else_branch = b () => (float[n] e) { e = Mul (twice, x) }> }""")
    model = tf.import_onnx(file)
    assert model(True, [1.0, 2.0]).numpy().tolist() == [-2.0, -4.0]
    assert model(False, [1.0, 2.0]).numpy().tolist() == [2.0, 8.0]


def test_ops_on_text_are_saved(tmp_path):
    """Python computes them, by functions of the library that saved models name."""
    file = onnx.parser.parse_model(HEAD.replace("17", "20") + """
    words (string[n] x, string[n] y) => (string[a] left, string[n, parts] apart, int64[n] counts, bool[n] known) {
        joined = StringConcat (x, y)
        left = StringNormalizer <stopwords = ["A-B"], case_change_action = "UPPER"> (joined)
        apart, counts = StringSplit <delimiter = "-", maxsplit = 1> (joined)
        known = RegexFullMatch <pattern = "[a-z]-.*"> (joined)
    }""").SerializeToString()
    x, y = np.array(["a-", "\xe4-b", ""], object), np.array(["b", "-c", "z"], object)
    model = tf.import_onnx(file)
    tf.saved_model.save(model, tmp_path / "saved")
    for run in (model, tf.saved_model.load(tmp_path / "saved")):
        left, apart, counts, known = [t.numpy().tolist() for t in run(x, y)]
        assert [text.decode() for text in left] == ["\xc4-B-C", "Z"]
        assert [[t.decode() for t in row] for row in apart] == [["a", "b"], ["\xe4", "b-c"], ["z", ""]]
        assert (counts, known) == ([2, 2, 1], [True, False, False])


def test_functions_of_a_model_and_their_attributes():
    text = """g (float[n, 2] x) => (float[n, 2] y) { a = own.scaled <by = 3.0> (x) y = own.scaled <by = 0.5> (a) }
    <domain: "own", opset_import: ["" : 17]>
    scaled <by> (a) => (b) { c = Constant <value_float: float = @by> () b = Mul (a, c) }"""
    assert tf.import_onnx(parsed(text))([[2.0, 4.0]]).numpy().tolist() == [[3.0, 6.0]]


def test_nodes_in_any_order_are_sorted():
    model = onnx.ModelProto.FromString(parsed("g (float[2] x) => (float[2] y) { a = Neg (x) b = Abs (a) y = Exp (b) }"))
    nodes = list(model.graph.node)[::-1]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    y = tf.import_onnx(model.SerializeToString())([1.0, -2.0])
    np.testing.assert_allclose(y.numpy(), np.exp([1, 2]), rtol=1e-6)


# -- files of other libraries -------------------------------------------------------------------------
DATA = Path(__file__).parent / "data"
EXAMPLES = {"net": images(3, 3, 24, 24), "encoder": np.arange(21).reshape(3, 7) % 20, "recurrent": images(3, 6, 4),
            "upsampling": images(3, 2, 8, 8)}


@pytest.mark.parametrize("path", sorted(DATA.glob("torch_*.onnx")), ids=lambda p: p.stem)
def test_models_of_pytorch(path):
    model, x = tf.import_onnx(path), EXAMPLES[path.stem.split("_")[1]]
    for given in (x, x[:1]):
        np.testing.assert_allclose(model(given).numpy(), by_runtime(path.read_bytes(), {"x": given})[0], rtol=1e-4,
                                   atol=1e-5)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(model(x) ** 2)
    assert all(g is not None for g in tape.gradient(loss, model.trainable_variables))


@pytest.mark.parametrize("path", sorted(DATA.glob("sklearn_*.onnx")), ids=lambda p: p.stem)
def test_models_of_scikit_learn(path):
    model, x = tf.import_onnx(path), images(40, 4)
    mine = model(x)
    mine = mine if isinstance(mine, tuple) else (mine,)
    for have, want in zip(mine, by_runtime(path.read_bytes(), {"X": x}), strict=True):
        if want.dtype == object:
            assert [text.decode() for text in have.numpy()] == want.tolist()
        else:
            np.testing.assert_allclose(have.numpy(), want, rtol=1e-4, atol=1e-5)
            assert have.dtype == want.dtype
    linear = path.stem in ("sklearn_linear", "sklearn_logistic", "sklearn_two_classes")
    assert bool(model.trainable_variables) == linear


# -- files --------------------------------------------------------------------------------------------
def with_external(folder: Path, location: str, length: int = 8) -> Path:
    """A model whose weight lies in a file."""
    weight = helper.make_tensor("w", 1, [2], [0.0, 0.0])
    weight.ClearField("float_data")
    weight.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", "4"), ("length", str(length))):
        weight.external_data.add(key=key, value=value)
    graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "g",
                              [helper.make_tensor_value_info("x", 1, [2])],
                              [helper.make_tensor_value_info("y", 1, [2])], [weight])
    path = folder / "model.onnx"
    path.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString())
    return path


def test_tensors_in_files_beside_the_model(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "w.bin").write_bytes(np.array([9, 1, 2], np.float32).tobytes())
    path = with_external(tmp_path, "data/w.bin")
    assert tf.import_onnx(path)([1.0, 1.0]).numpy().tolist() == [2.0, 3.0]
    with pytest.raises(tf.errors.DataLossError, match="give the path of the model"):
        tf.import_onnx(path.read_bytes())
    (tmp_path / "data" / "w.bin").write_bytes(bytes(11))
    with pytest.raises(tf.errors.DataLossError, match="ends at 11 bytes; 12 are expected"):
        tf.import_onnx(path)


@pytest.mark.parametrize(("location", "told"), [
    ("../w.bin", "not inside"), ("/etc/passwd", "not inside"), ("", "not inside"), ("link", "not inside"),
    ("missing.bin", "no such file"), ("fifo", "no regular file")])
def test_files_outside_of_the_folder_are_not_read(location, told, tmp_path):
    import os
    folder = tmp_path / "folder"
    folder.mkdir()
    (tmp_path / "w.bin").write_bytes(bytes(64))
    (folder / "link").symlink_to(tmp_path / "w.bin")
    os.mkfifo(folder / "fifo")
    with pytest.raises((tf.errors.DataLossError, tf.errors.NotFoundError), match=told):
        tf.import_onnx(with_external(folder, location))


def test_what_is_no_model_is_refused(tmp_path):
    for data in (b"", b"text", bytes(1000), RESNET[:-7]):
        with pytest.raises(tf.errors.DataLossError, match="ONNX model is damaged"):
            tf.import_onnx(data)
    with pytest.raises(tf.errors.NotFoundError):
        tf.import_onnx(tmp_path / "none.onnx")
    with pytest.raises(TypeError, match="path of a file or its bytes; got int"):
        tf.import_onnx(3)


def test_all_ops_that_are_not_supported_are_named():
    with pytest.raises(tf.errors.UnimplementedError, match=r"ai.onnx::Nope \(version 17\), own::Other \(version 1\)"):
        tf.import_onnx(parsed("g (float[2] x) => (float[2] y) { a = Nope (x) b = own.Other (a) y = Nope (b) }"))


def changed(file: bytes, change: Any) -> bytes:
    """A file after a change of its message."""
    model = onnx.ModelProto.FromString(file)
    change(model)
    return model.SerializeToString()


ONE = parsed("g (float[2] x) => (float[2] y) { a = Neg (x) y = Abs (a) }")


@pytest.mark.parametrize(("change", "error", "told"), [
    (lambda m: m.graph.node[0].input.__setitem__(0, "y"), "DataLossError", "depend on themselves"),
    (lambda m: m.graph.node[0].input.__setitem__(0, "gone"), "DataLossError", "nothing makes .'gone'."),
    (lambda m: m.graph.node[0].output.__setitem__(0, "y"), "DataLossError", "'y' is made twice"),
    (lambda m: setattr(m.graph.output[0], "name", "other"), "DataLossError", "nothing makes its outputs"),
    (lambda m: setattr(m.opset_import[0], "version", 9999), "FailedPreconditionError", "ops of version 9999"),
    (lambda m: m.graph.node[0].ClearField("input"), "InvalidArgumentError", "Neg"),
    (lambda m: setattr(m.graph.node[0], "op_type", "Concat"), "InvalidArgumentError", "Concat: axis 1 of a tensor"),
    (lambda m: setattr(m.graph.input[0].type.tensor_type, "elem_type", 17), "DataLossError", "float8e4m3fn"),
    (lambda m: m.graph.initializer.append(helper.make_tensor("w", 1, [3], [1.0, 2.0, 3.0])), "", ""),
    (lambda m: m.graph.initializer.add(name="w", data_type=1, dims=[1 << 40], raw_data=b"1234"), "DataLossError",
     "has 4 bytes"),
    (lambda m: m.graph.initializer.add(name="w", data_type=1, dims=[-1]), "DataLossError", "has shape"),
])
def test_graphs_that_make_no_sense_are_refused(change, error, told):
    file = changed(ONE, change)
    if not error:
        tf.import_onnx(file)
        return
    with pytest.raises(getattr(tf.errors, error), match=told):
        tf.import_onnx(file)


@pytest.mark.parametrize("body", [
    "s = Constant <value = int64[2] {1099511627776, 4}> () y = ConstantOfShape (s)",
    "s = Constant <value = int64[2] {1048576, 1048576}> () one = Constant <value = float[1] {1}> () "
    "a = Expand (one, s) y = Neg (a)",
    "s = Constant <value = int64[2] {4194304, 4194304}> () a = Identity (s) b = ConstantOfShape (a) c = Abs (b) "
    "y = Neg (c)",
])
def test_importing_makes_no_large_constants(body):
    import resource
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    tf.import_onnx(parsed(f"g (float[2] x) => (float[n, m] y) {{ {body} }}"))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000


def test_functions_that_call_each_other_end():
    """Each function calls the one before twice: twenty of them would be a million nodes."""
    calls = '\n'.join(f'<domain: "own", opset_import: ["" : 17, "own" : 1]> f{i} (a) => (b) '
                      f'{{ c = own.f{i - 1} (a) b = own.f{i - 1} (c) }}' for i in range(1, 21))
    base = '<domain: "own", opset_import: ["" : 17]> f0 (a) => (b) { b = Neg (a) }'
    with pytest.raises(tf.errors.InvalidArgumentError, match="become more than"):
        tf.import_onnx(parsed(f"g (float[2] x) => (float[2] y) {{ y = own.f20 (x) }}\n{base}\n{calls}"))
    with pytest.raises(tf.errors.InvalidArgumentError, match="own::f"):
        tf.import_onnx(parsed('g (float[2] x) => (float[2] y) { y = own.f (x) }\n<domain: "own", opset_import: '
                              '["" : 17, "own" : 1]> f (a) => (b) { b = own.f (a) }'))


def test_loops_within_loops_end():
    """Eight rounds of eight rounds of ..., each of which is laid out."""
    body = "z = Neg (x)"
    for depth in range(12):
        body = (f"m{depth} = Constant <value = int64 {{8}}> () c{depth} = Constant <value = bool {{1}}> () "
                f"r{depth} = Loop (m{depth}, c{depth}, x) <body = b{depth} (int64 i{depth}, bool p{depth}, "
                f"float[2] q{depth}) => (bool p{depth}, float[2] q{depth}) {{ {body} }}>")
    with pytest.raises(tf.errors.InvalidArgumentError, match="inner graphs become more than"):
        tf.import_onnx(parsed(f"g (float[2] x) => (float[2] y) {{ {body} y = Neg (x) }}"))


def test_a_stride_beyond_the_end_takes_one_place():
    """Mutations of a file gave it, and the compiled convolution went out of its memory."""
    b = models.Builder()
    y = b.add("Conv", "x", b.weight((2, 1, 3, 3)), strides=[1 << 62, 1], kernel_shape=[3, 3])
    file = b.model([("x", 1, [1, 1, 8, 8])], [(y, 1, [1, 2, 1, 6])])
    assert tf.import_onnx(file)(images(1, 1, 8, 8)).shape == (1, 2, 1, 6)
