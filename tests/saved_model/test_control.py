"""Functions with branches and loops, and their gradients to the second order, as graphs that were text meanwhile."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import control_cases
import control_more_cases
import numpy as np
import pytest
from placements import assert_bits, derived, numbers, placements

import twofold as tf
from twofold.errors import OpError, UnimplementedError
from twofold.saved_model.graphs import Sources, graph_to_text, text_to_graph
from twofold.tracer.restored import restore_function, restore_trace


def reloaded(fn: Any) -> Any:
    """A traced function whose graphs went through text."""
    def again(t: Any) -> Any:
        graph = text_to_graph(graph_to_text(t.graph, Sources()), 1, "<model>")
        assert len(graph.guards) == len(t.graph.guards)  # an honest graph has told all it relies on
        whole = again(t.whole()) if t.spared else None
        return restore_trace(t.name, graph, t.captures, t.form, t.arguments, t.result, t.updates, whole=whole)
    traces = [again(t) for family in fn._families.values() for t in list(family.traces)]
    return restore_function(fn._name, None, fn.function_spec, fn.input_signature, traces)


def outcome(fn: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """The bits of all results, or the error."""
    try:
        actual = fn(*[tf.constant(a) if isinstance(a, np.ndarray) else a for a in args])
    except (OpError, ValueError, TypeError, IndexError, RuntimeError) as error:
        return type(error)
    return [None if leaf is None else (np.asarray(leaf).dtype, np.asarray(leaf).shape, np.asarray(leaf).tobytes())
            for leaf in tf.nest.flatten(actual)]


CASES = [*control_cases.CASES, *control_more_cases.CASES]


@pytest.mark.parametrize(("fn", "calls"), [pytest.param(*case, id=case[0].__name__) for case in CASES[::8]])
def test_control_flow(fn, calls):
    traced = tf.function(fn)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # some run eagerly, and are not saved
        expected = [outcome(traced, args) for args in calls]
        if any(family.eager for family in traced._families.values()):
            return
    try:
        again = reloaded(traced)
    except UnimplementedError:
        return  # a call of Python
    for args, wanted in zip(calls, expected, strict=True):
        if isinstance(wanted, list):
            assert outcome(again, args) == wanted


def counted(x):
    y = x
    for i in tf.range(3):
        for _ in tf.range(i + 1):
            y = tf.sin(y) * x
            if tf.reduce_sum(y) > 0.3:
                y = y * 1.1
    return y


def growing(x):
    y = x[:, None]
    for _ in tf.range(3):
        tf.autograph.experimental.set_loop_options(shape_invariants=[(y, tf.TensorShape([None, None]))])
        y = tf.concat([y, tf.tanh(y[:, :1])], 1)
    return tf.reduce_sum(y, 1)


def test_assumptions_on_sizes_of_loops_are_kept():
    """What the gradient of a gradient relies on inside of a loop is assumed where the sizes have their new names."""
    spec = [tf.TensorSpec([3])]
    whole = tf.function(derived(tf.function(derived(growing, 1)), 1), input_signature=spec)
    graph = whole.get_concrete_function().graph
    text = graph_to_text(graph, Sources())
    assert "assume" in text
    assert graph_to_text(text_to_graph(text, 1, "<model>"), Sources()).count("assume") == text.count("assume")


@pytest.mark.parametrize("sizes", [[3], [None]], ids=["known", "unknown"])
@pytest.mark.parametrize("fn", [counted, growing])
def test_gradients_inside(fn, sizes):
    """Tapes in a traced function, over ops, over another traced function, and over that one's tape."""
    x = tf.constant([0.3, 0.9, 0.2])
    spec = [tf.TensorSpec(sizes)]
    wholes = [derived(fn, 1), derived(tf.function(fn), 1)]
    if sizes == [3]:
        wholes += [derived(fn, 2), derived(tf.function(derived(fn, 1)), 1)]
    for whole in wholes:
        traced = tf.function(whole, input_signature=spec)
        expected = outcome(traced, (x,))
        again = reloaded(traced)
        assert isinstance(expected, list) and outcome(again, (x,)) == expected
        if sizes == [None] or whole is not wholes[0]:
            continue
        wanted = derived(traced)(x)
        for loaded in (again, reloaded(traced)):  # saved before a tape met the function, and after
            assert_bits(derived(loaded)(x), wanted)


def rounds(x):
    y = x
    for _ in tf.range(3):
        y = tf.sin(y) * x + tf.cos(y)
    return tf.reduce_sum(y * x) + tf.reduce_sum(tf.exp(x) * x)


def loaded_again(model: tf.Module, folder: Any, signatures: Any = None) -> Any:
    tf.saved_model.save(model, folder, signatures)
    return tf.saved_model.load(folder)


@pytest.mark.parametrize("met", [False, True], ids=["no tape met it", "a tape met it"])
@pytest.mark.parametrize("sizes", [None, [300], [None]], ids=["not declared", "known", "unknown"])
def test_second_derivatives_of_saved_gradients(sizes, met, tmp_path):
    """Functions, concrete functions and signatures that take the gradient of a loop: plain calls, tapes around them,
    and both in other functions, of what was loaded and of what was saved from that."""
    x = numbers()
    plain, wanted = derived(rounds)(x), derived(rounds, 2)(x)
    model = tf.Module()
    model.gradient = tf.function(derived(rounds), input_signature=sizes and [tf.TensorSpec(sizes)])
    model.concrete = tf.function(derived(rounds)).get_concrete_function(x)
    model.gradient(x)
    if met:
        derived(model.gradient)(x)
    first = loaded_again(model, tmp_path / "first", model.concrete)
    second = loaded_again(first, tmp_path / "second")
    for each in (first, second):
        assert len(each.gradient._list_all_concrete_functions()) == 2
        serve = each.signatures["serving_default"]
        for f in (each.gradient, each.concrete, lambda x, serve=serve: serve(x)["output_0"]):
            assert_bits(f(x), plain)
            for g in (derived(f), *placements(lambda x, f=f: f(x), 1)):
                assert_bits(g(x), wanted)
            assert_bits(f(x), plain)
    files = [sorted(path.read_bytes() for path in (tmp_path / name).rglob("*.txt")) for name in ("first", "second")]
    assert files[0] == files[1] and len(files[0]) == 4


def test_plain_calls_of_saved_gradients_keep_no_more(tmp_path):
    """They run the graph that they ran before, also after a tape has met the function."""
    x = numbers()
    gradient = tf.function(derived(rounds))
    gradient(x)
    model = tf.Module()
    model.gradient = gradient
    loaded = loaded_again(model, tmp_path)
    derived(loaded.gradient)(x)
    for f in (gradient, loaded.gradient):
        derived(f)(x)
        spared, whole = [f.get_concrete_function(x)._traced, f.get_concrete_function(x)._traced.whole()]
        assert spared.spared and not whole.spared
        assert len(str(spared.graph)) < len(str(whole.graph))
