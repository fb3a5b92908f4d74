"""Public names have docstrings, and the examples in all docstrings print what they say."""

from __future__ import annotations

import doctest
import inspect
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from house.public import load, missing, public_names, undocumented
from house.tree import module_name, shipped_modules

import twofold

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def examples(module: ModuleType) -> list[doctest.DocTest]:
    """The doctests of what `module` defines: functions, classes, and objects such as ops that carry a docstring."""
    names = {"tf": twofold, "np": np}
    cases = doctest.DocTestFinder().find(module, extraglobs=names)
    parser = doctest.DocTestParser()
    for name, value in vars(module).items():
        if inspect.isroutine(value) or inspect.isclass(value) or isinstance(value, ModuleType):
            continue
        text = getattr(value, "__doc__", None)
        if getattr(value, "__module__", None) != module.__name__ or not text or text == type(value).__doc__:
            continue
        cases.append(parser.get_doctest(text, {**vars(module), **names}, f"{module.__name__}.{name}", None, 0))
    return [test for test in cases if test.examples]


def failures(test: doctest.DocTest) -> str:
    """What went wrong in `test`, as doctest tells it; empty when its examples print what they say."""
    told: list[str] = []
    doctest.DocTestRunner(optionflags=FLAGS, verbose=False).run(test, out=told.append)
    return "".join(told)


@pytest.mark.parametrize("name", [module_name(path) for path in shipped_modules()])
def test_docstring_examples(name):
    told = "".join(failures(test) for test in examples(load(name)))
    if told:
        pytest.fail(told, pytrace=False)


def test_public_docstring_examples():
    """Names made at run time (aliases, wrapped ops) stand in no module's source: they are found from `tf`."""
    tested = {test.docstring for path in shipped_modules() for test in examples(load(module_name(path)))}
    parser, names, told = doctest.DocTestParser(), {"tf": twofold, "np": np}, ""
    for name, value in public_names(twofold):
        text = getattr(value, "__doc__", None)
        if isinstance(text, str) and text not in tested:
            told += failures(parser.get_doctest(text, dict(names), name, None, 0))
    if told:
        pytest.fail(told, pytrace=False)


def test_every_public_name_has_a_docstring():
    assert undocumented(twofold) == []


def test_every_promised_name_exists():
    assert missing(twofold) == []


PLANTED = '''
class Thing:
    """A class."""

    def told(self):
        """A method."""

    def untold(self):
        pass

    @property
    def hidden(self):
        return 1

def wrong():
    """An example.

    >>> 1 + 1
    3
    """
'''


def planted_module() -> ModuleType:
    """A small public module with one fault of each kind."""
    module, inner = ModuleType("planted"), ModuleType("planted.inner")
    exec(PLANTED, vars(module))
    exec("__all__ = ['bare']\ndef bare(): pass", vars(inner))
    sample = SimpleNamespace(__doc__=">>> 2 + 2\n5\n", __module__="planted")
    vars(module).update(inner=inner, sample=sample, __all__=["Thing", "wrong", "inner", "gone"])
    return module


def test_missing_docstrings_are_seen():
    assert undocumented(planted_module()) == ["tf.Thing.hidden", "tf.Thing.untold", "tf.inner.bare"]
    assert missing(planted_module()) == ["tf.gone"]


def test_wrong_examples_are_seen():
    told = [failures(test) for test in examples(planted_module())]
    assert len(told) == 2
    assert all("Expected" in text for text in told)
