"""Guarded functions: results, errors as users see them, documentation, and that nothing leaks."""

from __future__ import annotations

import contextlib
import copy
import functools
import gc
import inspect
import os
import pickle
import pydoc
import subprocess
import sys
import traceback

import pytest

from twofold.runtime import native, signatures, tiers

needs_native = pytest.mark.skipif(not native.available(), reason="native entries are off")


def inner(value):
    if value == "bad":
        raise ValueError("a bad value")
    return value


def public(x, y=2, *rest, scale=1.5, name=None, **options):
    """Does something.

    At length.
    """
    inner(x)
    return x, y, rest, scale, name, options


guarded = native.guard(public)


def frames(error):
    return [entry.name for entry in traceback.extract_tb(error.__traceback__)]


@pytest.mark.parametrize(("args", "options"), [
    ((1,), {}), ((1, 3), {}), ((1, 3, 4, 5), {"scale": 2}), ((), {"x": 1}), ((1,), {"z": 9, "name": "n"}),
])
def test_results_are_those_of_the_function(args, options):
    assert guarded(*args, **options) == public(*args, **options)


@pytest.mark.parametrize(("args", "options"), [((), {}), ((1,), {"x": 2})])
def test_wrong_arguments_raise_the_functions_own_error(args, options):
    with pytest.raises(TypeError) as expected:
        public(*args, **options)
    with pytest.raises(TypeError) as got:
        guarded(*args, **options)
    assert str(got.value) == str(expected.value)


@needs_native
def test_the_traceback_ends_where_the_user_called():
    with pytest.raises(ValueError, match="a bad value") as caught:
        native.guard(raises)("bad")
    assert frames(caught.value) == ["test_the_traceback_ends_where_the_user_called"]
    assert traceback.extract_tb(caught.value.__twofold_traceback__)[-1].name == "raises"


def raises(value):
    raise ValueError("a bad value")


@needs_native
def test_frames_of_a_users_callback_stay():
    def apply(fn, value):
        return fn(value)

    def callback(value):
        return inner(value)

    with pytest.raises(ValueError, match="a bad value") as caught:
        native.guard(apply)(callback, "bad")
    assert frames(caught.value)[1:] == ["callback", "inner"]


@needs_native
def test_library_frames_below_the_public_function_vanish():
    def calls_the_standard_library(text):
        import json
        return json.loads(text)

    with pytest.raises(ValueError, match="Expecting") as caught:
        native.guard(calls_the_standard_library)("{")
    assert len(frames(caught.value)) == 1
    complete = traceback.extract_tb(caught.value.__twofold_traceback__)
    assert complete[0].name == "calls_the_standard_library"
    assert complete[-1].filename.endswith("decoder.py")


@needs_native
def test_nested_guards_keep_the_complete_traceback():
    deep = native.guard(raises)

    def shallow(value):
        return deep(value)

    with pytest.raises(ValueError, match="a bad value") as caught:
        native.guard(shallow)("bad")
    assert len(frames(caught.value)) == 1
    assert [e.name for e in traceback.extract_tb(caught.value.__twofold_traceback__)] == ["shallow", "raises"]


def test_causes_survive():
    def chained(value):
        try:
            inner(value)
        except ValueError as error:
            raise RuntimeError("chained") from error

    with pytest.raises(RuntimeError, match="chained") as caught:
        native.guard(chained)("bad")
    assert isinstance(caught.value.__cause__, ValueError)


class Slotted(Exception):
    def __setattr__(self, name, value):
        raise AttributeError(name)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, StopIteration, GeneratorExit, SystemExit, Slotted])
def test_any_exception_comes_through(kind):
    def raising():
        raise kind

    with pytest.raises(kind):
        native.guard(raising)()


@pytest.mark.parametrize("setting", ["full", ""])
def test_full_tracebacks_on_request(setting):
    program = ("import traceback\nfrom twofold.runtime import native\n"
               "def fn():\n    raise ValueError\n"
               "try:\n    native.guard(fn)()\nexcept ValueError as e:\n"
               "    print([f.name for f in traceback.extract_tb(e.__traceback__)])")
    done = subprocess.run([sys.executable, "-c", program], env=os.environ | {"TWOFOLD_TRACEBACK": setting}, text=True,
                          capture_output=True, check=True)
    full = "['<module>', 'fn']" if native.available() else "['<module>', 'call', 'fn']"
    assert done.stdout.strip() == (full if setting == "full" or not native.available() else "['<module>']")


def test_name_doc_and_signature():
    assert guarded.__name__ == guarded.__qualname__ == "public"
    assert guarded.__doc__ == public.__doc__
    assert guarded.__module__ == __name__
    assert inspect.signature(guarded) == inspect.signature(public)
    text = pydoc.plain(pydoc.render_doc(guarded))
    assert "public(x, y=2, *rest, scale=1.5, name=None, **options)" in text
    assert "method of" not in text
    assert "At length." in text
    assert native.unguarded(guarded) is public
    assert native.unguarded(len) is len


def test_another_name_and_doc():
    other = native.guard(public, "add", "Adds.")
    assert (other.__name__, other.__doc__) == ("add", "Adds.")
    assert list(inspect.signature(other).parameters)[:2] == ["x", "y"]
    assert (public.__name__, other(1)) == ("public", public(1))


def test_a_function_without_a_docstring():
    def bare(x):
        return x

    assert native.guard(bare).__doc__ in (None, "")
    assert str(inspect.signature(native.guard(bare))) == "(x)"


def test_copies_are_the_same_function():
    assert copy.deepcopy(guarded) is guarded


def test_pickles_by_name(monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "public", guarded)
    assert pickle.loads(pickle.dumps(guarded)) is guarded


SIGNATURES = [
    lambda: 0, lambda a: 0, lambda a, /: 0, lambda a, /, b: 0, lambda a, b=1, /, c=2: 0, lambda *, k: 0,
    lambda a, *, k=1, j: 0, lambda *args: 0, lambda *args, k: 0, lambda **kw: 0, lambda a, *args, k=None, **kw: 0,
    lambda a=-1, b=1.5, c="x'y", d=b"z", e=None, f=True: 0, lambda a=(), b=(1, 2), c=(1, (2, 3)), d=[1]: 0,
    lambda a=float("inf"), b=-float("inf"): 0, lambda a="two\n\nlines": 0, lambda a=1e-7: 0,
]


@needs_native
@pytest.mark.parametrize("fn", SIGNATURES, ids=lambda fn: str(inspect.signature(fn)))
def test_signatures_are_exact(fn):
    assert inspect.signature(native.guard(fn, "f")) == inspect.signature(fn)


@pytest.mark.parametrize("fn", SIGNATURES, ids=lambda fn: str(inspect.signature(fn)))
def test_both_ways_to_read_a_signature_agree(fn):
    wrapped = functools.wraps(fn)(lambda *a, **k: 0)
    assert signatures.text_signature(wrapped) == signatures.text_signature(fn)


def test_defaults_without_a_literal():
    import numpy as np

    def fn(a=object(), b=float("nan"), dtype=np.dtype("float32"), e=(object(),)):  # noqa: B008
        return a

    assert signatures.text_signature(fn) == "($module, a=..., b=..., dtype='float32', e=...)"
    assert len(inspect.signature(native.guard(fn)).parameters) == 4


@needs_native
def test_a_tuple_of_one_shows_as_what_the_interpreter_can_read():
    shown = inspect.signature(native.guard(lambda axes=(1,): 0, "f")).parameters["axes"].default
    assert shown == ((1,) if sys.version_info >= (3, 12) else [1])


def test_methods():
    class Point:
        def __init__(self, x):
            self.x = x

        def plus(self, other, *, times=1):
            """Adds."""
            return self.x + other * times

        plus = native.as_method(native.guard(plus))
        __add__ = plus

    assert Point(1).plus(2, times=3) == 7
    assert Point(1) + 4 == 5
    assert Point.plus(Point(1), 2) == 3
    assert Point(1).plus.__doc__ == "Adds."


@needs_native
def test_nothing_leaks():
    value, options = object(), {"name": object()}

    def fails(x, name=None):
        raise KeyError(x)

    good, bad = native.guard(inner), native.guard(fails)

    def run(times):
        for _ in range(times):
            good(value)
            with contextlib.suppress(KeyError):
                bad(value, **options)

    run(100)
    tiers.wait()  # what is made in the background makes objects of its own
    gc.collect()
    before = sys.getrefcount(value), sys.getrefcount(options["name"]), len(gc.get_objects())
    run(10_000)
    gc.collect()
    after = sys.getrefcount(value), sys.getrefcount(options["name"]), len(gc.get_objects())
    assert after[:2] == before[:2]
    assert after[2] - before[2] < 100  # fewer are there where what others have left went meanwhile


def test_recursion_is_caught():
    def forever():
        return again()

    again = native.guard(forever)
    with pytest.raises(RecursionError):
        again()


def test_symbolic_operands_are_handed_to_who_stands_in():
    from twofold.ir.errors import SymbolicOperand

    def wants_values(x, *, y=0):
        if x == "symbolic":
            raise SymbolicOperand("no value")
        return x + y

    fn = native.guard(wants_values)
    seen = []
    before = dict(native._handlers)
    try:
        native.stand_in(None)
        with pytest.raises(SymbolicOperand, match="no value"):
            fn("symbolic")
        native.stand_in(lambda function, args, kwargs, error: seen.append((args, kwargs)) or "stood in")
        assert fn("symbolic", y=3) == "stood in" and seen == [(("symbolic",), {"y": 3})]
        assert fn(1, y=2) == 3
        native.stand_in(lambda function, args, kwargs, error: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            fn("symbolic")
        with pytest.raises(TypeError, match="unsupported operand"):
            fn(None)
    finally:
        native._handlers.clear()
        native._handlers.update(before)
