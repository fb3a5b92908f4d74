"""No test asserts a time, a ratio of times or a rate: such figures belong to `benchmarks/`, where a person judges them.

A test that compares what a clock says fails where a machine is slow or busy. Found here, by the syntax tree, are
assertions that read a clock or a value that came of one. A clock may bound how long a test waits for something, as long
as what it waits for is what is asserted.
"""

from __future__ import annotations

import ast
import re
import textwrap

import pytest
from house.tree import ROOT, files_under, label

_CLOCKS = {"time", "perf_counter", "monotonic", "process_time", "thread_time", "clock_gettime"}
_CLOCKS |= {f"{name}_ns" for name in _CLOCKS}
_MODULES = {"time": _CLOCKS, "timeit": {"timeit", "repeat", "default_timer"}, "datetime": {"now", "utcnow", "today"}}
_CALLED = re.compile(rf"({'|'.join(sorted(set().union(*_MODULES.values())))})[\s)]*\(")  # as text: any clock's call
_WAITS = {"select", "wait", "wait_for", "join", "get", "acquire", "communicate"}  # these take how long to wait at most
_TESTS = [path for path in files_under(ROOT / "tests") if path.suffix == ".py" and path.name != "test_clocks.py"]


class _Names(ast.NodeVisitor):
    """Which names of one function (or of a module, outside of its functions) hold what came of a clock."""

    def __init__(self, timed: set[str]) -> None:
        self.timed = set(timed)

    def reads(self, node: ast.AST | None) -> bool:
        """Whether an expression calls a clock or reads such a name."""
        if node is None or isinstance(node, ast.Call) and _called(node.func) in _WAITS:
            return False
        if _is_clock(node) or isinstance(node, ast.Name) and node.id in self.timed:
            return True
        return any(map(self.reads, ast.iter_child_nodes(node)))

    def take(self, target: ast.expr, value: ast.expr) -> None:
        """Notes an assignment."""
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            for one, other in zip(target.elts, value.elts, strict=True):
                self.take(one, other)
        elif self.reads(value):
            stored = (part.id for part in ast.walk(target) if isinstance(part, ast.Name))
            self.timed.update(stored)

    def visit_Assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            self.take(target, node.value)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.take(node.target, node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.take(node.target, node.value)

    visit_NamedExpr = visit_AugAssign

    def visit_For(self, node: ast.For) -> None:
        self.take(node.target, node.iter)
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        self.take(node.target, node.iter)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self.generic_visit(node)
        if any(isinstance(part, (ast.Return, ast.Yield)) and self.reads(part.value) for part in ast.walk(node)):
            self.timed.add(node.name)

    def visit_Call(self, node: ast.Call) -> None:
        self.generic_visit(node)
        function = node.func
        if isinstance(function, ast.Attribute) and function.attr in ("append", "add", "extend", "put") and \
                isinstance(function.value, ast.Name) and any(map(self.reads, node.args)):
            self.timed.add(function.value.id)


def _is_clock(node: ast.AST) -> bool:
    """Whether a node is the call of a clock: `time.monotonic()`, `perf_counter()`."""
    if not isinstance(node, ast.Call):
        return False
    function = node.func
    if isinstance(function, ast.Attribute):
        owner = function.value.attr if isinstance(function.value, ast.Attribute) else getattr(function.value, "id", "")
        return function.attr in _MODULES.get(owner, ())
    return isinstance(function, ast.Name) and function.id in (_CLOCKS | _MODULES["timeit"]) - {"time", "repeat"}


def _settled(scope: ast.AST, timed: set[str]) -> _Names:
    """The names of a scope, once nothing more follows from what is known."""
    names = _Names(timed)
    while True:
        before = len(names.timed)
        names.visit(scope)
        if len(names.timed) == before:
            return names


def _asserts(node: ast.AST, names: _Names) -> bool:
    """Whether a statement fails a test by what a clock said."""
    if isinstance(node, ast.Assert):
        return names.reads(node.test)
    if isinstance(node, ast.If) and names.reads(node.test):
        return any(isinstance(part, (ast.Call, ast.Raise)) and _fails(part) for line in node.body
                   for part in ast.walk(line))
    return isinstance(node, ast.Call) and "assert" in _called(node.func) and any(map(names.reads, node.args))


def _called(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _fails(node: ast.Call | ast.Raise) -> bool:
    """Whether this is `pytest.fail(...)` or `raise AssertionError`."""
    if isinstance(node, ast.Call):
        return ast.unparse(node.func) in ("pytest.fail", "self.fail")
    return node.exc is not None and ast.unparse(node.exc).startswith("AssertionError")


def timed_assertions(source: str) -> list[int]:
    """The lines of assertions about times in a test's source, also in programs that stand in it as strings."""
    if not _CALLED.search(source):
        return []
    tree = ast.parse(source)
    functions = [node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))]
    rest = ast.Module([node for node in tree.body if node not in functions], [])
    everywhere = _settled(rest, set()).timed
    for function in functions:  # what gives times away is called elsewhere, too
        if isinstance(function, ast.FunctionDef) and function.name in _settled(function, everywhere).timed:
            everywhere.add(function.name)
    lines = set()
    for scope in (rest, *functions):
        names = _settled(scope, everywhere)
        lines |= {node.lineno for node in ast.walk(scope) if _asserts(node, names)}  # type: ignore[attr-defined]
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "time" in node.value:
            try:
                inner = timed_assertions(textwrap.dedent(node.value))
            except SyntaxError:
                continue
            lines |= {node.lineno + line - 1 for line in inner}
    return sorted(lines)


@pytest.mark.parametrize("path", _TESTS, ids=label)
def test_no_time_is_asserted(path):
    assert timed_assertions(path.read_text()) == []


@pytest.mark.parametrize("source", [
    "def test():\n    start = time.perf_counter()\n    work()\n    assert time.perf_counter() - start < 1",
    "def test():\n    times = []\n    for i in range(8):\n        start = time.time()\n        work()\n"
    "        times.append(time.time() - start)\n    assert min(times) < 0.03",
    "def seconds(f):\n    start = process_time()\n    f()\n    return process_time() - start\n"
    "def test():\n    a, b = seconds(f), seconds(g)\n    assert a < 0.75 * b",
    "def test():\n    spent = timeit.timeit(work)\n    rate = 100 / spent\n    if rate < 5:\n        pytest.fail()",
    "def test():\n    took = {}\n    took['a'] = time.monotonic()\n    np.testing.assert_array_less(took['a'], 3)",
    "SCRIPT = '''\nimport time\nstart = time.time()\nassert time.time() < start + 1\n'''",
    "def test():\n    a, b = [datetime.datetime.now() for _ in range(2)]\n    assert b - a < limit",
])
def test_times_are_seen(source):
    assert len(timed_assertions(source)) == 1


@pytest.mark.parametrize("source", [
    "def test():\n    end = time.monotonic() + 5\n    while not done() and time.monotonic() < end:\n"
    "        time.sleep(0.01)\n    assert done()",
    "def test():\n    count, end = 0, time.time() + 1.5\n    while time.time() < end:\n        count = work()\n"
    "    assert count",
    "def wait():\n    if time.monotonic() > end:\n        raise TimeoutError('nothing came')",
])
def test_waiting_is_allowed(source):
    assert timed_assertions(source) == []
