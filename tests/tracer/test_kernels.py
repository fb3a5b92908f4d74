"""Kernels as they are told of: one count and one list for `explain`, the page and the command line, with reasons."""

from __future__ import annotations

import inspect
import io
import json
import re
from typing import Any

import numpy as np
import pytest

import twofold as tf
from twofold.cli import main
from twofold.ir import graph as g
from twofold.tracer import kernels
from twofold.tracer.page import whole


def looping(x: tf.Tensor, n: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    y = x
    for _ in tf.range(n):
        h = tf.tanh(tf.matmul(y, x))
        z = tf.reduce_sum(h, 0)
        y = y + tf.exp(h) * z
        for _ in tf.range(2):
            y = y * 0.5 + tf.matmul(y, y)
    return tf.reduce_max(y), tf.sort(tf.transpose(y) + 1.0)


def line(part: str) -> str:
    """Where a line of `looping` stands, as it is told."""
    lines, first = inspect.getsourcelines(looping)
    [at] = [n for n, text in enumerate(lines) if part in text]
    return f"test_kernels.py:{first + at}"


SPECS = [tf.TensorSpec([300, 300]), tf.TensorSpec([], tf.int32)]


def explained(fn: Any, *args: Any) -> Any:
    return tf.function(fn).explain(*args, file=io.StringIO())


def test_explain_and_the_page_and_the_command_line_tell_of_the_same_kernels(tmp_path: Any,
                                                                           capsys: pytest.CaptureFixture[str]) -> None:
    told = explained(looping, *SPECS)
    graph = tf.function(looping).get_concrete_function(*SPECS).graph
    _, listed, _ = whole.compiled_kernels(graph)
    assert len(listed) == len(told.kernels) > 5
    assert f"native kernels: {len(listed)} " in str(told)
    assert [note.code for note in told.kernels] == [kernel.code for kernel in listed]
    [data] = re.findall(r'<script id="graph" type="application/json">(.*?)</script>', whole.page_of(graph), re.DOTALL)
    assert dict(json.loads(data)["views"][0]["facts"])["kernels"] == str(len(listed))
    module = tf.Module()
    module.f = tf.function(looping, input_signature=SPECS)
    tf.saved_model.save(module, str(tmp_path / "m"), signatures=module.f)
    capsys.readouterr()
    assert main(["inspect", "--json", str(tmp_path / "m")]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert {f["memory"]["kernels"] for f in shown["functions"]} == {len(listed)}


def test_kernels_of_loops_are_marked_and_have_reasons() -> None:
    notes = explained(looping, *SPECS).kernels
    by_op = {name: note for note in notes for name, where in note.ops}
    outer, inner = line("for _ in tf.range(n)"), line("for _ in tf.range(2)")
    assert by_op["tanh"].loops == (outer,)
    assert by_op["reduce_max"].loops == ()
    assert {note.loops for note in notes if any(where == line("y * 0.5") for _, where in note.ops)} == {(outer, inner)}
    assert "leaves reduce_sum in memory: a reduction ends before its result is used" in by_op["tanh"].because
    assert any("matmul gives its result as a whole" in text for text in by_op["matmul"].because)
    assert f"in every round of the loop at {outer}, in that at {inner}" in str(explained(looping, *SPECS))


@pytest.mark.parametrize(("fn", "why"), [
    (lambda x: tf.exp(x)[:, :50] + 1.0, "the next loops over [40,50], this over [40,60]"),
    (lambda x: tf.transpose(tf.exp(x)) + tf.ones([60, 40]), "the next loops over [60,40], this over [40,60]"),
    (lambda x: tf.exp(x) / tf.reduce_sum(tf.exp(x), 0), "a reduction ends before its result is used"),
    (lambda x: tf.matmul(tf.exp(x), x, transpose_b=True), "matmul reads whole operands"),
    (lambda x: tf.exp(tf.matmul(x, x, transpose_b=True)), "matmul gives its result as a whole"),
    (lambda x: tf.exp(x) + tf.matmul(tf.matmul(tf.sin(x), x, transpose_b=True), x),
     "the next also reads what matmul gives, which is made later"),
])
def test_reasons_are_those_of_the_decision(fn: Any, why: str) -> None:
    notes = explained(fn, tf.TensorSpec([40, 60])).kernels
    assert len(notes) > 1
    assert any(why in text for note in notes for text in note.because), [note.because for note in notes]


def test_what_is_one_kernel_has_no_reasons() -> None:
    [note] = explained(lambda x: tf.exp(x) * tf.sin(x + 1.0) - x, tf.TensorSpec([40, 60])).kernels
    assert note.because == note.loops == ()


def test_seconds_of_lines_share_out_what_kernels_take() -> None:
    graph = tf.function(looping).get_concrete_function(*SPECS).graph
    compiled, native, _ = whole.compiled_kernels(graph)
    for kernel in native:
        kernel.seconds = float(len([node for node in kernel.nodes if node.loc is not None]))
    [sort] = [node for node in compiled.nodes if node.op.name == "sort"]
    lines = kernels.seconds_by_line(native, {sort: 3.5})
    nodes = [node for kernel in native for node in kernel.nodes if node.loc is not None]
    count: dict[g.Location, float] = {}
    for node in nodes:
        count[node.loc] = count.get(node.loc, 0.0) + 1.0
    count[sort.loc] = count.get(sort.loc, 0.0) + 3.5
    assert dict(lines) == count
    assert [seconds for _, seconds in lines] == sorted(count.values(), reverse=True)


def test_a_measured_page_tells_the_time_of_lines() -> None:
    graph = tf.function(looping).get_concrete_function(*SPECS).graph
    x = np.random.default_rng(0).random((300, 300), np.float32) / 300
    page = whole.page_of(graph, [x, np.array(2, np.int32)])
    [data] = re.findall(r'<script id="graph" type="application/json">(.*?)</script>', page, re.DOTALL)
    facts = dict(json.loads(data)["views"][0]["facts"])
    assert re.fullmatch(r"[\d.]+ \w+, \d+%", facts[f"time of {line('tf.matmul(y, x)')}"])
