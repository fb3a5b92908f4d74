"""Regular expressions of `tf.strings`, and arguments of `tf.strings` that must be strings."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import twofold as tf
from twofold._formats import regex as _regex

strings = tf.strings
Invalid = tf.errors.InvalidArgumentError

# What TensorFlow must not be given as one string, and what is no string.
WRONG: list[Any] = [1, 1.5, None, ["x", "y"], np.array(["x", "y"]), np.array([b"x"], object), object(), b"x".__class__,
                    {"a": "b"}]


@pytest.mark.parametrize("given", [*WRONG, "tensor of two", "tensor of numbers"], ids=lambda g: type(g).__name__)
def test_arguments_that_are_no_single_string(given: Any) -> None:
    if isinstance(given, str):
        given = tf.constant(["x", "y"] if given == "tensor of two" else 3)
    for call in (lambda: strings.regex_replace("abc", "abc", given), lambda: strings.regex_replace("abc", given, "x"),
                 lambda: strings.regex_full_match("abc", given), lambda: strings.join(["a", "b"], separator=given),
                 lambda: strings.reduce_join(["a", "b"], separator=given)):
        with pytest.raises(Invalid, match="must be a string, a scalar"):
            call()
        with pytest.raises(Invalid, match="must be a string, a scalar"):
            tf.function(call)()
    if given is not None:
        with pytest.raises(Invalid, match="must be a string, a scalar"):
            strings.split("a b", given)


@pytest.mark.parametrize("call", [
    strings.length, strings.lower, strings.upper, strings.strip, strings.bytes_split, strings.split,
    strings.to_number, lambda x: strings.regex_replace(x, "a", "b"), lambda x: strings.regex_full_match(x, "a"),
    lambda x: strings.substr(x, 0, 1), lambda x: strings.join([x, "a"]), strings.reduce_join,
    lambda x: strings.unicode_decode(x, "UTF-8"), lambda x: strings.unicode_split(x, "UTF-8"),
])
def test_inputs_that_are_no_strings(call: Any) -> None:
    for given in (1, 2.5, [1, 2], tf.constant([True])):
        with pytest.raises(Invalid, match="expected strings"):
            call(given)


def test_strings_of_any_kind_are_taken() -> None:
    for text in ("b", b"b", np.str_("b"), np.bytes_(b"b"), np.array("b"), np.array(b"b", object), tf.constant("b")):
        assert strings.regex_replace("abc", text, text).numpy() == b"abc"
        assert strings.join(["a", "c"], separator=text).numpy() == b"abc"
        assert strings.split("abc", text).numpy().tolist() == [b"a", b"c"]


def test_patterns_and_rewrites_that_a_function_is_given() -> None:
    @tf.function
    def f(x: Any, pattern: Any, rewrite: Any) -> Any:
        return strings.regex_replace(x, pattern, rewrite), strings.regex_full_match(x, pattern)
    for pattern, rewrite in (("[ab]", "-"), ("b+", "<\\0>")):
        replaced, matches = f(tf.constant(["ab", "bb"]), tf.constant(pattern), tf.constant(rewrite))
        expected = [re.sub(pattern, rewrite.replace("\\0", "\\g<0>"), x).encode() for x in ("ab", "bb")]
        assert replaced.numpy().tolist() == expected
        assert matches.numpy().tolist() == [re.fullmatch(pattern, x) is not None for x in ("ab", "bb")]
    with pytest.raises(Invalid, match="Invalid pattern"):
        f(tf.constant(["a"]), tf.constant("("), tf.constant("x"))


# What TensorFlow 2.21 gives.
@pytest.mark.parametrize(("text", "pattern", "rewrite", "every", "expected"), [
    ("ab12", "[0-9]", "#", True, b"ab##"), ("ab12", "[0-9]", "#", False, b"ab#2"),
    ("John Smith", r"(\w+) (\w+)", r"\2 \1", True, b"Smith John"), ("ab", "b", r"\\", True, b"a\\"),
    ("axb", "x*", "-", True, b"-a-b-"), ("abc", "", "-", True, b"-a-b-c-"), ("ab", "(c)?b", r"[\1]", True, b"a[]"),
    ("a\nb", "a.b", "x", True, b"a\nb"), ("", "a*", "x", True, b"x"),
])
def test_what_replaces_a_match(text: str, pattern: str, rewrite: str, every: bool, expected: bytes) -> None:
    assert strings.regex_replace(text, pattern, rewrite, replace_global=every).numpy() == expected


@pytest.mark.parametrize(("pattern", "rewrite"), [("(", ""), ("a", "\\1"), ("(a)", "\\2"), ("a", "\\n"), ("a", "x\\"),
                                                  (r"(a)\1", ""), ("(?=a)", ""), ("(?<!a)b", ""), ("a++", "")])
def test_what_is_no_pattern_or_rewrite(pattern: str, rewrite: str) -> None:
    with pytest.raises(Invalid, match="Invalid"):
        strings.regex_replace("aa", pattern, rewrite)
    with pytest.raises(Invalid, match="Invalid"):
        tf.function(lambda x: strings.regex_replace(x, pattern, rewrite))(tf.constant("aa"))


SLOW = ["(a+)+b", "(a|a)*b", "(a|aa)+$b", "(a*)*b", "([a-z]+)*1", "(x+x+)+y", "(.*)*(.*)*[^a]", "a*a*a*a*a*a*a*a*b"]


@pytest.mark.parametrize("pattern", SLOW)
def test_patterns_that_python_would_take_very_long_for(pattern: str) -> None:
    text = "a" * 20_000
    if importlib.util.find_spec("re2") is None:
        with pytest.raises(tf.errors.UnimplementedError, match=r"pip install twofold\[re2\]"):
            strings.regex_full_match(text, pattern)
        with pytest.raises(tf.errors.UnimplementedError, match=r"pip install twofold\[re2\]"):
            strings.regex_replace(text, pattern, "")
    else:
        assert not bool(strings.regex_full_match(text, pattern))
        assert strings.regex_replace(text, pattern, "").numpy() == text.encode()


USUAL = [r"[^\w\s]", "<br />", r"[!\"#$%&'()*+,-./:;<=>?@\[\]^_`{|}~]", r"\s+", r"https?://\S+", "(?i)hello",
         r"\d{4}-\d{2}-\d{2}", r"[a-z]+", r"(a|b)c", r"^\s+|\s+$", r"[^A-Za-z0-9 ]+", "([.,!?¿])", r"[^ a-z.?!,¿]",
         r".*\.jpg", r"(\w+)@(\w+)\.com"]


@pytest.mark.parametrize("pattern", USUAL)
def test_patterns_of_programs_need_nothing_else(pattern: str) -> None:
    text = "Hello, world: a b1.jpg <br /> 2020-01-02 me@it.com! " * 4
    assert strings.regex_replace(text, pattern, "_").numpy() == re.sub(pattern.encode(), b"_", text.encode())
    assert bool(strings.regex_full_match(text, pattern)) == (re.fullmatch(pattern.encode(), text.encode()) is not None)


def test_re2_stands_in_where_it_is_installed() -> None:
    """With a module of its name: what it is asked for."""
    script = """
import re, sys, types
fake = types.ModuleType("re2")
class Options:
    class Encoding: LATIN1 = 2
fake.Options, fake.error = Options, re.error
asked = []
fake.compile = lambda text, options: (asked.append((text, options.encoding)), re.compile(b"(?:a+)b"))[1]
sys.modules["re2"] = fake
import twofold as tf
print(bool(tf.strings.regex_full_match("aaab", "(a+)+b")), asked)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "True [(b'(a+)+b', 2)]\n"


def test_the_shape_of_a_pattern_decides() -> None:
    assert [_regex.compiled(p.encode())._degree for p in ("abc", "a+", "a+b", "a*b*c", "(a+)+", "(a|b)*", "(?:ab)*c",
                                                          "a{2,4}b", "(a{3}b)*")] == [0, 0, 1, 2, None, 0, 1, 0, 0]
