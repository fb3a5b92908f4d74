"""`tf.verify` finds what differs, and where; `fn.explain` and `TWOFOLD_LOG` tell what happened."""

from __future__ import annotations

import io
import os
import subprocess
import sys

import pytest

import twofold as tf
from twofold.codegen import llvm_ops
from twofold.ir import dtypes as dt
from twofold.ir.passes import pipeline


def line_of(fn, words):
    """file:line of the line of a function that holds `words`."""
    import inspect
    lines, first = inspect.getsourcelines(fn)
    return f"test_verify.py:{first + next(i for i, line in enumerate(lines) if words in line)}"


def program(x):
    y = tf.tanh(x) * 2.0
    z = tf.reduce_sum(y - x, axis=0)
    return z / 3.0


class TestVerify:
    @pytest.mark.parametrize("form", [lambda f: f, tf.function, lambda f: tf.function(f).get_concrete_function(
        tf.TensorSpec([None, 2]))])
    def test_equal(self, form):
        report = tf.verify(form(program), tf.constant([[1.0, 2.0], [-3.0, 0.5]]))
        assert report and report.op is None and report.line is None
        assert report.compared >= 6

    def test_variables_keep_their_values_and_effects_happen_once(self, capsys):
        v = tf.Variable([1.0, 2.0])

        @tf.function
        def step(x, times):
            for _ in tf.range(times):
                v.assign_add(x)
            tf.print("once", output_stream=sys.stdout)
            return v * 2 + tf.random.normal([2])
        assert tf.verify(step, tf.constant([1.0, 1.0]), times=tf.constant(3))
        assert v.numpy().tolist() == [1.0, 2.0]
        assert capsys.readouterr().out == "once\n"

    def test_a_wrong_instruction_is_found_with_its_line(self, monkeypatch):
        """Code generation in which a subtraction adds: the first op that differs is the one in the second line."""
        def program(x):
            y = x * 29 + 1
            z = tf.reduce_sum(y - x, axis=0)
            return z * 3
        x = tf.constant([[1, 2], [-3, 5], [7, 11]], tf.int16)
        program(x)  # eager kernels are there, and right
        emit = llvm_ops.emit

        def wrong(builder, op, *args, **kwargs):
            return emit(builder, "add" if op == "sub" and args[1] is dt.int16 else op, *args, **kwargs)
        monkeypatch.setattr(llvm_ops, "emit", wrong)
        monkeypatch.setenv("TWOFOLD_CACHE", "0")
        report = tf.verify(program, x)
        assert not report
        assert (report.op, report.line) == ("subtract", line_of(program, "y - x"))
        told = str(report)
        assert told.startswith("subtract: compiled and eager results differ.\n")
        assert "eager np.int16(29), compiled np.int16(31)" in told
        assert "At test_verify.py" in told and "y - x" in told

    def test_a_wrong_pass_is_found(self, monkeypatch):
        """A pass that forgets an op: what ops give one by one is right, and what they give together is not."""
        def forgets(graph):
            for node in graph.nodes:
                node.inputs = [v.node.inputs[0] if v.node is not None and v.node.op.name == "tanh" else v
                               for v in node.inputs]
            return False
        monkeypatch.setattr(pipeline, "PIPELINE", (forgets, *pipeline.PIPELINE))
        monkeypatch.setenv("TWOFOLD_CACHE", "0")
        report = tf.verify(lambda x: tf.tanh(x) * 7.375 + 1.0, tf.constant([5.0, 11.0]))
        assert not report and report.op == "add"
        assert "passes or fusion" in report.text

    def test_what_runs_eagerly_is_no_compiled_function(self):
        @tf.function
        def falls(x):
            return tf.constant(x.numpy())
        with pytest.warns(RuntimeWarning, match="runs eagerly"), pytest.raises(ValueError, match="falls runs eagerly"):
            tf.verify(falls, tf.constant([1.0]))


class TestExplain:
    def explained(self, fn, *args, **kwargs):
        out = io.StringIO()
        report = fn.explain(*args, file=out, **kwargs)
        assert out.getvalue() == f"{report}\n"
        return report

    def test_what_is_told(self):
        v = tf.Variable(1.0)

        @tf.function
        def step(x, scale=2):
            y = tf.nn.softmax(tf.matmul(x, x, transpose_b=True)) * float(scale)
            tf.print(tf.shape(y))
            v.assign_add(tf.reduce_sum(y))
            return tf.exp(tf.tanh(y)), tf.identity(y) * 1.0
        report = self.explained(step, tf.ones([2, 3]))
        assert v.numpy() == 1.0 and step.experimental_get_tracing_count() == 1
        assert report.signature.startswith("step(x: TensorSpec(shape=(2, 3), dtype=tf.float32, name=None), scale: ")
        assert report.reason == "it is the first trace"
        assert "tanh" in report.before and "%" in report.after and report.fallback is None
        assert [note.name for note in report.passes][:2] == [step.__name__ for step in pipeline.PIPELINE[:2]]
        ops = [name for kernel in report.kernels for name, _ in kernel.ops]
        assert {"matmul", "softmax", "tanh", "exp", "reduce_sum"} <= set(ops)
        lines = [line for kernel in report.kernels for name, line in kernel.ops if name == "tanh"]
        assert lines and lines[0].endswith(line_of(step.python_function, "tf.tanh").partition(":")[2])
        assert [name for name, _ in report.host] == ["print"]
        assert set(report.seconds) == {"passes", "lowering", "optimising", "code"}
        assert any("reads whole operands" in why for kernel in report.kernels for why in kernel.because)

    def test_why_it_was_traced_again(self):
        fn = tf.function(lambda x, n: x * n)
        fn(tf.ones([2]), 1)
        report = self.explained(fn, tf.ones([2]), 2)
        assert report.reason == "what differs from the trace before: n = 2"
        assert self.explained(fn, tf.ones([2]), 1).reason == "it is the first trace"
        report = self.explained(fn, tf.TensorSpec([None], tf.float64), 3)
        assert "shape=(None,), dtype=tf.float64" in report.signature
        assert fn.experimental_get_tracing_count() == 3

    def test_what_is_printed_without_a_file(self, capsys):
        @tf.function
        def double(x):
            return x + x
        report = double.explain(tf.ones([2]))
        told = capsys.readouterr().out
        assert told == f"{report}\n"
        for part in ("traced because", "passes", "native kernels", "calls of Python", "add"):
            assert part in told

    def test_why_it_runs_eagerly(self):
        @tf.function
        def falls(x):
            return tf.constant(x.numpy())
        with pytest.warns(RuntimeWarning, match="runs eagerly"):
            report = self.explained(falls, tf.ones([2]))
        assert "falls runs eagerly, because it cannot be traced" in str(report)
        assert "x.numpy()" in report.fallback and "test_verify.py" in report.fallback and report.kernels == []


LOGGED = """
import warnings
import twofold as tf
warnings.simplefilter("ignore")
f = tf.function(lambda x, n: x * n)
f(tf.ones([2]), 1), f(tf.ones([2]), 2)
tf.function(lambda x: x.numpy())(tf.ones([2]))
"""


@pytest.mark.parametrize("topics", ["retrace", "fallback", "retrace,fallback,cache", ""])
def test_log(topics, tmp_path):
    """Each topic prints its lines to stderr, and no other does."""
    path = tmp_path / "logged.py"
    path.write_text(LOGGED)
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, cwd=tmp_path, env={
        **os.environ, "TWOFOLD_LOG": topics, "TWOFOLD_CACHE_DIR": str(tmp_path / "cache")})
    assert done.returncode == 0, done.stderr
    told = done.stderr
    assert ("twofold retrace: <lambda>: first trace" in told) is ("retrace" in topics)
    assert ("what differs from the last: n = 2" in told) is ("retrace" in topics)
    assert ("twofold fallback: " in told) is ("fallback" in topics)
    assert ("twofold cache: " in told) is ("cache" in topics)
    assert topics or told == ""
