"""Conversion: what is converted, how often, and what stays as it is."""

from __future__ import annotations

import functools
import gc
import importlib
import itertools
import linecache
import os
import subprocess
import sys
import textwrap
import time
import uuid
import weakref
import zipfile

import numpy as np
import pytest

import twofold as tf
from twofold.tracer import autograph


def absolute(x):
    if x < 0:
        x = -x
    return x


def test_importing_twofold_does_not_import_the_converter():
    code = "import sys, twofold; assert not [m for m in sys.modules if m.split('.')[0] == 'malt'], 1"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_eager_use_and_unconverted_functions_do_not_import_it_either():
    code = ("import sys, twofold as tf\n"
            "tf.cond(tf.constant(True), lambda: tf.constant(1), lambda: tf.constant(2))\n"
            "tf.function(lambda x: x + 1, autograph=False)(tf.constant(1))\n"
            "assert not [m for m in sys.modules if m.split('.')[0] == 'malt'], 1")
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_functions_without_control_flow_do_not_import_it_either():
    """Nor what only gradients of branches and loops need."""
    code = ("import sys, linecache, twofold as tf\n"
            "source = 'def inner(x):\\n    return x * x\\ndef outer(x, *, y=2.0):\\n    with tf.GradientTape() as t:\\n"
            "        t.watch(x)\\n        z = inner(x) + y\\n    return t.gradient(z, x)\\n'\n"
            "linecache.cache['<plain>'] = (len(source), None, source.splitlines(True), '<plain>')\n"
            "exec(compile(source, '<plain>', 'exec'))\n"
            "assert tf.function(outer)(tf.constant(3.0)) == 6.0\n"
            "unneeded = {'malt', 'logging', 'twofold.ir.autodiff', 'twofold.ir.graph_parse'}\n"
            "assert not unneeded & sys.modules.keys(), unneeded & sys.modules.keys()")
    environment = {**os.environ, "TWOFOLD_CACHE": "0"}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, timeout=120)


def test_functions_without_control_flow_call_what_they_call():
    """Of every kind of call, with what is converted inside of it, and with Python's own errors."""
    def called(x, *args, scale=1.0, **more):
        if x > 0.0:
            x = x * scale
        return x + len(args) + sum(more.values())

    class Scope:
        def __enter__(self):
            return 5.0

        def __exit__(self, *error):
            pass

    def plain(x: tf.Tensor, items=(1.0, 2.0), *, options=None) -> undefined:  # noqa: F821
        """What it does."""
        first: "of no type" = called(x, *items, 3.0, scale=2.0, **(options))  # noqa: F722
        with Scope() as five, Scope():
            table = {"a": first, **dict.fromkeys("b", five)}
        table["a"] += called(-x)
        return f"{len(table)}", [*items][0], table["a"], table["b"]
    traced = tf.function(plain, fallback=False)
    text, one, a, five = traced(tf.constant(4.0), options={"more": 10.0})
    assert (text, one, a.numpy(), five) == ("2", 1.0, 17.0, 5.0)
    converted = tf.autograph.to_graph(plain)
    assert converted.__doc__ == "What it does." and converted.__annotations__ == plain.__annotations__
    twice = {"scale": 2.0}
    with pytest.raises(TypeError, match="scale"):
        tf.autograph.to_graph(lambda x: called(x, scale=1.0, **twice))(1.0)


def test_a_variable_around_a_function_without_control_flow_may_have_no_value():
    def outer(x):
        if x.shape[0] > 5:
            y = x

        def inner():
            return y + 1.0
        return inner()
    with pytest.raises((UnboundLocalError, NameError), match="y"):
        tf.function(outer, fallback=False)(tf.constant([1.0]))


LAID_OUT = {
    "comments": """def fn(x):
    x = x + 1.0
# at the margin
    if x > 0.0:
# again
        x = x * 2.0

    return x
""", "strings": """def fn(x):
    text = '''
at the margin
'''
    if x > 0.0:
        x = x * 2.0
    return x + 2.0 * text.count("margin")
""", "brackets": """def fn(x):
    if x > 0.0:
        x = (
x + 1.0
) * 2.0
    return x
""", "lines": """def fn(x):
    if x > 0.0:
        x = 2.0 * \\
x + \\
2.0
    return x
""", "decorators": """@same(
    1,
)
@same(2)
def fn(
    x,
):
    if x > 0.0:
        x = x * 2.0 + 2.0
    return x
""", "one line": """def fn(x): return x * 2.0 + 2.0
""", "in a block": """if True:
    def fn(x):
        if x > 0.0:
            x = x * 2.0 + 2.0
        return x
    more = 1
""", "at the end": """def fn(x):
    if x > 0.0:
        x = x * 2.0 + 2.0
    return x"""}


@pytest.mark.parametrize("layout", LAID_OUT)
def test_where_the_source_of_a_function_ends(layout):
    source = LAID_OUT[layout] + ("" if layout == "at the end" else "after = 1\n")
    file = f"<{layout} {uuid.uuid4()}>"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    space = {"same": lambda _: lambda fn: fn}
    exec(compile(source, file, "exec"), space)
    code = tf.autograph.to_code(space["fn"])
    assert "after" not in code and "more" not in code and ("if_stmt" in code) == (layout != "one line")
    assert tf.function(space["fn"], fallback=False)(tf.constant(1.0)).numpy() == 4.0


_BRANCH = """
import twofold as tf
def absolute(x):
    if x < 0:
        x = -x
    return x
"""


def test_conversion_takes_what_it_needs_of_malt_and_leaves_it_whole(tmp_path):
    code = _BRANCH + """
import sys
print(tf.function(absolute)(tf.constant(-2.0)).numpy(), "malt.impl" in sys.modules)
import malt
print(malt.pyct.anno is sys.modules["malt.pyct.anno"], hasattr(malt, "nothing of this name"))
print(malt.to_graph(absolute)(-3), malt.impl.api is sys.modules["malt.impl.api"])
"""
    (tmp_path / "program.py").write_text(code)
    environment = {**os.environ, "TWOFOLD_CACHE": "0"}
    done = subprocess.run([sys.executable, tmp_path / "program.py"], env=environment, check=True, timeout=120,
                          capture_output=True, text=True)
    assert done.stdout.splitlines() == ["2.0 False", "True False", "3 True"]


def test_sources_in_archives(tmp_path, monkeypatch):
    with zipfile.ZipFile(tmp_path / "packed.zip", "w") as archive:
        archive.writestr("packed_branches.py", _BRANCH)
    monkeypatch.syspath_prepend(str(tmp_path / "packed.zip"))
    packed = importlib.import_module("packed_branches")
    assert tf.function(packed.absolute)(tf.constant(-2.0)).numpy() == 2.0
    assert "if_stmt" in autograph.to_code(packed.absolute)


def test_one_code_object_is_converted_once():
    def made(k):
        def inner(x):
            return x if x > k else -x
        return inner
    first, second = autograph.convert(made(1)), autograph.convert(made(5))
    assert first.__code__ is second.__code__
    assert first(3) == 3
    assert second(3) == -3


def test_conversions_go_with_their_functions():
    space = {}
    exec("def temporary(x):\n    return x\n", space)
    gc.collect()  # what tests before this one left
    before = len(autograph._factories)
    autograph.convert(space["temporary"])
    assert len(autograph._factories) == before + 1
    space.clear()
    gc.collect()
    assert len(autograph._factories) == before


def test_functions_are_not_kept_alive():
    def made():
        def inner(x):
            return x if x > 0 else -x
        return inner
    fn = made()
    traced = tf.function(fn)
    traced(tf.constant(1.0))
    gone = weakref.ref(fn), weakref.ref(traced)
    del fn, traced
    gc.collect()
    assert [ref() for ref in gone] == [None, None]


def test_signature_defaults_closure_and_globals_are_those_of_the_function():
    factor = [2]

    def fn(x, k=3, *, flag=True, **more):
        """Doc."""
        return x * k * factor[0] if flag else absolute(x)
    converted = autograph.convert(fn)
    assert (converted.__name__, converted.__qualname__, converted.__doc__) == (fn.__name__, fn.__qualname__, "Doc.")
    assert (converted.__defaults__, converted.__kwdefaults__) == ((3,), {"flag": True})
    assert converted(1) == 6
    factor[0] = 5
    assert converted(1, 1) == 5
    assert converted(-4, flag=False) == 4


def test_a_closure_sees_later_values():
    value = 1

    def fn(x):
        return x + value
    converted = autograph.convert(fn)
    value = 10
    assert converted(1) == 11


@pytest.mark.parametrize("fn", [np.sum, functools.reduce, tf.add, tf.reduce_sum, len, dict, time.sleep, str.upper])
def test_library_functions_stay_as_they_are(fn):
    assert autograph.callee(fn) is fn


def test_functions_without_source_run_as_they_are():
    space = {"tf": tf}
    exec("def plain(x):\n    return x + 1\ndef branches(x):\n    return x if x > 0 else -x\n", space)
    assert autograph.convert(space["plain"]) is space["plain"]
    assert int(tf.function(space["plain"], fallback=False)(tf.constant(1))) == 2
    with pytest.raises(TypeError, match="has no value while tf.function traces"):
        tf.function(space["branches"], fallback=False)(tf.constant(1))


def test_generators_run_as_they_are():
    def items(x):
        for i in range(3):
            yield x * i

    def fn(x):
        total = tf.constant(0)
        for item in items(x):
            total = total + item
        return total
    assert int(tf.function(fn, fallback=False)(tf.constant(2))) == 6


def test_do_not_convert():
    @tf.autograph.experimental.do_not_convert
    def plain(x):
        return x if x > 0 else -x

    def fn(x):
        return plain(x)
    assert plain(-3) == 3
    with pytest.raises(TypeError, match="has no value while tf.function traces"):
        tf.function(fn, fallback=False)(tf.constant(1))


def test_autograph_off():
    with pytest.raises(TypeError, match="has no value while tf.function traces"):
        tf.function(absolute, autograph=False, fallback=False)(tf.constant(1))


def test_lambdas_on_one_line_are_told_apart():
    first, second = (lambda x: x if x > 0 else -x), (lambda x: x if x > 0 else x * 100)
    assert int(tf.function(first, fallback=False)(tf.constant(-2))) == 2
    assert int(tf.function(second, fallback=False)(tf.constant(-2))) == -200


def test_lambda_over_several_lines():
    fn = tf.function(lambda x: (
        x + 1 if x > 0
        else x - 1), fallback=False)
    assert int(fn(tf.constant(1))) == 2
    assert int(fn(tf.constant(-1))) == -2


def test_wrapped_functions_use_their_own_source():
    def doubling(fn):
        @functools.wraps(fn)
        def wrapper(x):
            if x > 100:
                return x
            return fn(x) * 2
        return wrapper

    @doubling
    def halved(x):
        if x > 0:
            return x / 2.0
        return x
    fn = tf.function(halved, fallback=False)
    assert [float(fn(tf.constant(v))) for v in (3.0, -3.0, 200.0)] == [3.0, -6.0, 200.0]


class Counter:
    __hidden = 3.0

    def __init__(self):
        self.__count = tf.Variable(0.0)

    @tf.function(fallback=False)
    def add(self, x):
        if x > 0:
            self.__count.assign_add(x * self.__hidden)
        return self.__count.read_value()


def test_mangled_names():
    counter = Counter()
    assert [float(counter.add(tf.constant(v))) for v in (1.0, -1.0, 2.0)] == [3.0, 3.0, 9.0]


def test_python_side_effects_happen_once_for_each_branch_and_body(capsys):
    def fn(n):
        print("tracing")
        i = 0
        while i < n:
            print("body")
            if i > 1:
                print("then")
            else:
                print("else")
            i += 1
        return i
    traced = tf.function(fn, fallback=False)
    assert int(traced(tf.constant(5))) == 5
    assert int(traced(tf.constant(2))) == 2
    assert capsys.readouterr().out.split() == ["tracing", "body", "then", "else"]


def test_only_the_taken_branch_runs():
    seen = []

    def note(value):
        seen.append(int(value))
        return value

    def fn(x):
        if x > 0:
            y = tf.py_function(note, [x], tf.TensorSpec([], tf.int32))
        else:
            y = x
        return y
    traced = tf.function(fn, fallback=False)
    traced(tf.constant(-1))
    assert seen == []
    traced(tf.constant(4))
    assert seen == [4]


@pytest.mark.parametrize("entity", [print, len, np.add, dict, functools.partial(max, 1)], ids=repr)
def test_only_functions_of_python_have_converted_code(entity):
    for show in (tf.autograph.to_code, tf.autograph.to_graph):
        with pytest.raises(ValueError, match="only functions written in Python can be converted"):
            show(entity)


def test_to_code_shows_operators_and_is_python():
    code = tf.autograph.to_code(absolute)
    assert "ag__.if_stmt" in code
    compile(code, "code", "exec")
    assert tf.autograph.to_code(tf.function(absolute)) == code


def test_to_graph_of_what_cannot_be_converted():
    space = {}
    exec("def plain(x):\n    return x\n", space)
    with pytest.raises(ValueError, match="source"):
        tf.autograph.to_graph(space["plain"])


def test_loop_options():
    def limited(n):
        i = 0
        while i < n:
            tf.autograph.experimental.set_loop_options(maximum_iterations=2)
            i += 1
        return i

    def grown(n):
        v = tf.constant([1.0])
        for _ in tf.range(n):
            tf.autograph.experimental.set_loop_options(shape_invariants=[(v, tf.TensorShape([None]))])
            v = tf.concat([v, v + 1.0], 0)
        return v
    assert int(tf.function(limited, fallback=False)(tf.constant(5))) == 2
    assert tf.function(grown, fallback=False)(tf.constant(2)).numpy().tolist() == [1, 2, 2, 3]


BLOCKS = {
    "if": "if x > 0.0:\n STATEMENT", "known": "if True:\n STATEMENT", "with": "with tf.name_scope('n'):\n STATEMENT",
    "try": "try:\n STATEMENT\nfinally:\n y = y + 1.0", "finally": "try:\n y = y + 1.0\nfinally:\n STATEMENT",
    "except": "try:\n y = y + 1.0\nexcept ValueError:\n STATEMENT", "match": "match 1:\n case 1:\n  STATEMENT",
    "function": "def inner():\n STATEMENT\ninner()", "loop": "for _ in range(2):\n STATEMENT",
    "staged loop": "for _ in tf.range(2):\n STATEMENT", "nested": "if x > 0.0:\n if x > 1.0:\n  STATEMENT"}
DIRECTIVE = "tf.autograph.experimental.set_loop_options(parallel_iterations=5)"
STATEMENTS = {"text": "'text'", "dots": "...", "pass": "pass", "declared": "w: int", "global": "global names",
              "name": "x"}


def program(body, folder, before=""):
    """A function of a loop that begins with `body`, in a file of its own."""
    file = folder / "program.py"
    inside = textwrap.indent(body, "        ")
    file.write_text(f"def fn(x):\n    y = x\n{before}    for _ in tf.range(3):\n{inside}\n        y = y * 2.0\n"
                    "    return y\n")
    space = {"tf": tf}
    exec(compile(file.read_text(), str(file), "exec"), space)
    return space["fn"]


@pytest.mark.parametrize("block, statement", [*itertools.product(BLOCKS, STATEMENTS.values()),
                                              *itertools.product(("loop", "staged loop"), [DIRECTIVE])])
def test_blocks_of_one_statement_that_does_nothing(block, statement, tmp_path):
    fn, x = program(BLOCKS[block].replace("STATEMENT", statement), tmp_path), tf.constant(1.5)
    assert tf.function(fn, fallback=False)(x).numpy() == fn(x).numpy()


@pytest.mark.parametrize("block", [*[block for block in BLOCKS if "loop" not in block], "late", "twice", "before"])
def test_loop_options_that_do_not_begin_a_loop(block, tmp_path):
    """They have no effect there, and without the error the function could not be staged, without telling why."""
    late = {"late": f"y = y + 1.0\n{DIRECTIVE}", "twice": f"{DIRECTIVE}\n{DIRECTIVE}", "before": "pass"}
    body = late.get(block) or BLOCKS[block].replace("STATEMENT", DIRECTIVE)
    fn = program(body, tmp_path, f"    {DIRECTIVE}\n" if block == "before" else "")
    with pytest.raises(ValueError, match=r"set_loop_options must be the first statement(.|\n)*At program.py:\d+ in "
                                         r"fn\(\): tf.autograph.experimental.set_loop_options"):
        tf.function(fn)(tf.constant(1.5))


@pytest.mark.parametrize("which", [0, 2, 9])
@pytest.mark.parametrize("value", [0.5, 5.0])
def test_exceptions_that_are_named(which, value):
    def named(x):
        for i in range(3):
            try:
                if which == i:
                    raise ValueError("once")
                x = x + 1.0
            except ValueError as error:
                x = x * len(error.args) if x > 2.0 else -x * 10.0
        return x

    assert tf.function(named, fallback=False)(tf.constant(value)).numpy() == named(value)


def test_verbosity_adds_and_removes_topics(monkeypatch):
    monkeypatch.setenv("TWOFOLD_LOG", "cache, retrace")
    tf.autograph.set_verbosity(3)
    assert os.environ["TWOFOLD_LOG"] == "cache,retrace,fallback"
    tf.autograph.set_verbosity(0)
    assert os.environ["TWOFOLD_LOG"] == "cache"


def test_functions_that_have_a_docstring_alone():
    def nothing(x):
        """Does nothing."""

    def dots(x):
        ...

    def calls(x):
        def hook(value):
            """Does nothing."""
        hook(x)
        return x + 1.0
    for fn in (nothing, dots):
        assert tf.function(fn, fallback=False)(tf.constant(1.0)) is None
    assert tf.function(calls, fallback=False)(tf.constant(1.0)).numpy() == 2.0
    assert tf.autograph.to_graph(nothing).__doc__ == "Does nothing."


def test_known_conditions_leave_no_branches():
    def fn(x):
        k = tf.constant(3)
        if k > 100:
            x = x + 1
        for i in range(2):
            if i == 0:
                x = x * 2
        return x
    graph = tf.function(fn).get_concrete_function(tf.constant(1.0)).graph
    assert [n.op.name for n in graph.walk() if n.op.name in ("while",)] == []
    assert float(tf.function(fn)(tf.constant(1.0))) == 2.0


def test_a_function_is_rewritten_once(monkeypatch):
    """Not again for what else has its code, nor for code that does the same and stands in the same place."""
    from twofold.tracer import autograph_source
    rewritten = []
    tree_of = autograph_source.tree_of

    def counted(fn):
        rewritten.append(fn.__name__)
        return tree_of(fn)
    monkeypatch.setattr(autograph_source, "tree_of", counted)
    source = "".join(f"def f{i}(x, n):\n    for _ in range(n):\n        if x > {i}:\n            x = x - 1\n"
                     f"        else:\n            x = x + 1\n    return x\n" for i in range(8))
    file = f"<eight {uuid.uuid4()}>"  # not in the cache folder yet
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    for _ in range(2):
        space = {}
        exec(compile(source, file, "exec"), space)
        for i in range(8):
            fn = space[f"f{i}"]
            copy = type(fn)(fn.__code__, {}, "copy")
            for given in (fn, fn, copy):
                assert autograph.convert(given) is not given
    assert rewritten == [f"f{i}" for i in range(8)]


def test_installed_code_is_converted_where_it_makes_a_function_of_itself(tmp_path, monkeypatch):
    """A package that was written for TensorFlow counts on it; what it only calls runs as it is."""
    tmp_path.joinpath("some_package.py").write_text(
        "import twofold as tf\n"
        "def larger(x):\n"
        "    return x if x > 0 else -x\n"
        "@tf.function(fallback=False)\n"
        "def total(numbers):\n"
        "    made = tf.constant(0, tf.int64)\n"
        "    for number in numbers:\n"
        "        if number > 1:\n"
        "            made += number\n"
        "    return made\n"
        "class Doubling:\n"
        "    @tf.function(fallback=False)\n"
        "    def call(self, x):\n"
        "        while x < 100:\n"
        "            x *= 2\n"
        "        return x\n")
    monkeypatch.setattr(autograph, "_installed", lambda: (f"{tmp_path}{os.sep}",))
    monkeypatch.syspath_prepend(tmp_path)
    package = importlib.import_module("some_package")
    assert package.total(tf.data.Dataset.range(5)).numpy() == 9
    assert package.Doubling().call(tf.constant(3)).numpy() == 192
    with pytest.raises(TypeError, match="Python was asked whether it is true"):
        tf.function(lambda x: package.larger(x), fallback=False)(tf.constant(1))
