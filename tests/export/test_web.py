"""Pages with a function inside: the file, its script under Node.js, and what people see and do in a browser."""

from __future__ import annotations

import base64
import hashlib
import html.parser
import importlib.util
import json
import re
import shutil
import subprocess
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from cli import browser

import twofold as tf
from twofold.export.web import page_text

F32 = np.float32
HOSTILE = "</script><img src=x onerror=alert(1)>\"'&${title}\u2028"
needs_zig = pytest.mark.skipif(importlib.util.find_spec("ziglang") is None, reason="the package ziglang is not there")
needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="there is no Node.js")


class Parts(html.parser.HTMLParser):
    """The scripts and styles of a page, its policy, and the addresses that its elements name."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.texts: list[tuple[str, dict[str, Any], str]] = []
        self.policy, self.addresses, self.tags = "", [], set()
        self._open: tuple[str, dict[str, Any]] | None = None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        named = dict(attrs)
        self.tags.add(tag)
        self.addresses += [named[key] for key in ("src", "href", "action") if key in named]
        self._open = (tag, named) if tag in ("script", "style", "title", "h1") else None
        if named.get("http-equiv") == "Content-Security-Policy":
            self.policy = named["content"]

    def handle_data(self, data):
        if self._open is not None:
            self.texts.append((*self._open, data))

    def handle_endtag(self, tag):
        self._open = None


def script_of(page: str) -> str:
    [script] = [text for tag, named, text in Parts(page).texts if named.get("type") == "module"]
    return script


# -- the file ------------------------------------------------------------------------------------------
def test_page_holds_the_library_and_allows_nothing_else():
    code = bytes(range(256)) * 50
    page = page_text(HOSTILE, "const library = {};\n", code)
    parts = Parts(page)
    assert parts.addresses == [] and "img" not in parts.tags and "http:" not in page.replace("http://www.w3.org", "")
    titles = [text for tag, _, text in parts.texts if tag in ("title", "h1")]
    assert "".join(titles) == HOSTILE * 2
    [held] = [text for _, named, text in parts.texts if named.get("id") == "code"]
    assert zlib.decompress(base64.b64decode(held)) == code
    for tag, named, text in parts.texts:
        if tag == "style" or named.get("type") == "module":
            digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
            assert f"'sha256-{digest}'" in parts.policy
    assert parts.policy.startswith("default-src 'none'; ") and "unsafe-inline" not in parts.policy


@needs_zig
def test_what_is_written(tmp_path):
    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, "x")])
    def twice(x):
        return 2.0 * x

    @tf.function(input_signature=[tf.TensorSpec([], tf.float32, "x")])
    def by_python(x):
        return tf.py_function(abs, [x], tf.TensorSpec([], tf.float32))

    with pytest.raises(TypeError, match="title must be text"):
        tf.export.web(twice, tmp_path / "page", title=3)
    with pytest.raises(TypeError, match="folder must be a path"):
        tf.export.web(twice, 3)
    with pytest.raises(TypeError, match="tf.export.web takes a tf.function"):
        tf.export.web(3, tmp_path / "page")
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="is no folder"):
        tf.export.web(twice, tmp_path / "file")
    with pytest.raises(tf.errors.UnimplementedError, match="py_function"):
        tf.export.web(by_python, tmp_path / "page")
    assert not (tmp_path / "page").exists()
    made = tf.export.web(twice, tmp_path / "some" / "My page")
    assert made.path == tmp_path / "some" / "My page" / "index.html" and made.functions == ("twice",)
    others = {made.path.with_name(f"my_page.{ending}") for ending in ("wasm", "mjs", "d.mts")}
    assert set(made.path.parent.iterdir()) == {made.path, *others}
    assert {made.library, made.loader, made.types} == others
    page = made.path.read_text()
    [held] = re.findall(r'<script id="code"[^>]*>([^<]*)<', page)
    assert zlib.decompress(base64.b64decode(held)) == made.library.read_bytes()
    assert "<title>My page</title>" in page and script_of(page).startswith(made.loader.read_text())


# -- its script ----------------------------------------------------------------------------------------
SCRIPT = """
import fs from "node:fs";
import * as page from "./page.mjs";
const here = (name) => new URL(name, import.meta.url);
const given = JSON.parse(fs.readFileSync(here("given.json")));
const told = { errors: [] };
told.texts = given.texts.map(([text, member]) => {
  const tensor = page.parsed(text, member);
  const again = page.parsed(page.written(member, tensor), member);
  const bytes = (data) => Buffer.from(data.buffer).toString("base64");
  return { bytes: bytes(tensor.data), same: bytes(tensor.data) === bytes(again.data), shape: tensor.shape };
});
for (const [text, member] of given.wrong) {
  try {
    page.parsed(text, member);
    told.errors.push(null);
  } catch (error) {
    told.errors.push(error.message);
  }
}
const floats = given.floats.map(Number);
told.half = floats.map((x) => page.smallBits(x, [5, 10]));
told.brain = floats.map((x) => page.smallBits(x, [8, 7]));
told.values = told.half.map((bits) => String(page.smallValue(bits, [5, 10])));
told.images = given.images.map((member) => page.imageOf(member));
told.pictures = given.pictures.map(([member, times]) => {
  const image = page.imageOf(member), made = page.imageTensor(member, image, given.pixels, times,
    page.scales(member, image)[0]);
  return { data: Array.from(made.data, Number), shape: made.shape };
});
told.unpacked = Buffer.from(await page.unpacked(given.packed)).toString();
console.log(JSON.stringify(told));
"""
ARRAYS = {"float32": "Float32Array", "float64": "Float64Array", "float16": "Uint16Array", "complex64": "Float32Array",
          "int8": "Int8Array", "int64": "BigInt64Array", "uint8": "Uint8Array", "bool": "Uint8Array"}


def member(dtype: str, *shape: int | str) -> dict[str, Any]:
    return {"name": "x", "array": ARRAYS[dtype], "dtype": dtype, "rank": len(shape), "shape": shape,
            "each": 2 if dtype.startswith("complex") else 1}


TEXTS = [  # a text, the input that it is for, and the tensor that it means
    ("1.5, -2 nan\n-inf", member("float32", "n"), np.array([1.5, -2, np.nan, -np.inf], F32)),
    ("0.1 1e-3 .5 -0", member("float64", 4), np.array([0.1, 1e-3, 0.5, -0.0])),
    ("0.1 16777217 3.4028235e38 1e-45", member("float32", 4), np.array([0.1, 16777217, 3.4028235e38, 1e-45], F32)),
    ("1 2\n3 4\n\n5 6", member("float32", "n", 2), np.array([[1, 2], [3, 4], [5, 6]], F32)),
    ("1 2 3 4 5 6", member("float32", 2, 3), np.array([[1, 2, 3], [4, 5, 6]], F32)),
    ("[[1, 2], [3, 4]]", member("int8", "n", "m"), np.array([[1, 2], [3, 4]], np.int8)),
    ("[[[1 -2]\n [3 4]]]", member("float16", 1, "n", 2), np.array([[[1, -2], [3, 4]]], np.float16)),
    ("7", member("float32"), np.array(7, F32)),
    ("", member("float32", "n"), np.zeros([0], F32)),
    ("-9223372036854775808 9223372036854775807", member("int64", 2), np.array([-(2**63), 2**63 - 1])),
    ("true FALSE 1", member("bool", 3), np.array([1, 0, 1], np.uint8)),
    ("1+2i -3j i 4 1e-2-inf i".replace("inf i", "infi"), member("complex64", "n"),
     np.array([1 + 2j, -3j, 1j, 4, complex(0.01, -np.inf)], np.complex64)),
]
WRONG = [
    ("1, x", member("float32", "n"), '"x" is no number'), ("1e5", member("int8"), '"1e5" is no integer'),
    ("128", member("int8"), "out of the range of int8"), ("maybe", member("bool"), "neither true nor false"),
    ("1 2\n3", member("float32", "n", "m"), "equal lengths"),
    ("[[1], 2]", member("float32", "n", "m"), "equal lengths"),
    ("[1, 2", member("float32", "n"), "do not match"), ("1 2", member("float32"), "give one value"),
    ("[1]", member("float32", "n", 1), "give 2 dimensions; these are 1"),
    ("1 2", member("float32", "n", 1, 2), "in brackets, 3 deep"), ("1+i+2i", member("complex64"), "is no number"),
]
FLOATS = ["0", "-0", "1", "-2.5", "65504", "65519.99", "65520", "-1e9", "6e-8", "2.9e-8", "6.1e-5", "1.00048828125",
          "1.00146484375", "Infinity", "-Infinity", "NaN", "3.14159", "1e-40", "3.5e38"]
IMAGES = [(member("float32", 28, 28), (28, 28, 1)), (member("float32", "n", 28, 28), (28, 28, 1)),
          (member("uint8", 1, 8, 16, 3), (8, 16, 3)), (member("float32", 32, 32, 4), (32, 32, 4)),
          (member("float32", "n", 64), None), (member("float32", 7, 7), None), (member("bool", 28, 28), None),
          (member("float32", 2, 28, 28), None), (member("float32", 28, 28, 5), None),
          (member("complex64", 28, 28), None), (member("float32", "n", "h", "w", 3), (None, None, 3)),
          (member("uint8", "h", "w", 3), (None, None, 3)), (member("float32", 1, 32, "w", 1), (32, None, 1)),
          (member("float32", "n", "h", "w"), None), (member("float32", 2, "h", "w", 3), None),
          (member("float32", "n", 4, "w", 3), None), (member("float32", "n"), None),
          (member("float32", 1, 1, 28, 28, 1), None)]


@pytest.fixture(scope="module")
def told(tmp_path_factory) -> Any:
    """What the script of a page says of the cases above, and the pixels of its pictures."""
    folder = tmp_path_factory.mktemp("script")
    loader = "const library = {}, count = (shape) => shape.reduce((a, b) => a * b, 1);\n"
    (folder / "page.mjs").write_text(script_of(page_text("", loader, b"")))
    (folder / "run.mjs").write_text(SCRIPT)
    pixels = np.random.default_rng(3).integers(0, 256, (16, 24, 4), dtype=np.uint8)
    pixels[:2, :4] = 255
    pictures = [(member("float32", 8, 12), 2), (member("uint8", "n", 16, 24, 3), 1), (member("int64", 8, 12, 1), 2)]
    given = {"texts": [[text, m] for text, m, _ in TEXTS], "wrong": [[text, m] for text, m, _ in WRONG],
             "floats": FLOATS, "images": [m for m, _ in IMAGES], "pixels": pixels.reshape(-1).tolist(),
             "pictures": pictures, "packed": base64.b64encode(zlib.compress(b"some text " * 99, 9)).decode()}
    (folder / "given.json").write_text(json.dumps(given))
    done = subprocess.run(["node", folder / "run.mjs"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), pixels.astype(np.float64)


@needs_node
def test_texts_are_read_and_written(told):
    for (text, _, wanted), actual in zip(TEXTS, told[0]["texts"], strict=True):
        found = np.frombuffer(base64.b64decode(actual["bytes"]), wanted.dtype).reshape(actual["shape"])
        np.testing.assert_array_equal(found, wanted, err_msg=text)
        assert found.shape == wanted.shape and actual["same"], text
        if wanted.dtype.kind == "f":
            np.testing.assert_array_equal(np.signbit(found), np.signbit(wanted))


@needs_node
def test_texts_that_are_wrong_are_told(told):
    for (text, _, wanted), actual in zip(WRONG, told[0]["errors"], strict=True):
        assert wanted in (actual or ""), (text, actual)


@needs_node
def test_small_floats_are_rounded_as_numpy_does(told):
    wanted = np.array([float(x.replace("Infinity", "inf")) for x in FLOATS])
    with np.errstate(over="ignore"):
        half = wanted.astype(np.float16)
        brain = wanted.astype(F32).astype(tf.bfloat16.as_numpy_dtype)
    assert told[0]["half"] == half.view(np.uint16).tolist()
    assert told[0]["brain"] == brain.view(np.uint16).tolist()
    actual = [float(x.replace("Infinity", "inf")) for x in told[0]["values"]]
    np.testing.assert_array_equal(actual, half.astype(np.float64))


@needs_node
def test_images_are_known_and_made_of_pixels(told):
    actual = [image and (image["height"], image["width"], image["channels"]) for image in told[0]["images"]]
    assert actual == [wanted for _, wanted in IMAGES]
    seen = [(tuple(m["shape"]), image) for (m, _), image in zip(IMAGES, told[0]["images"], strict=True)]
    first = {shape: image["likely"] for shape, image in seen if image}
    assert first["n", "h", "w", 3] and first[28, 28] and not first["h", "w", 3]  # which may be a sequence as well
    pixels = told[1]
    gray = 0.299 * pixels[..., 0] + 0.587 * pixels[..., 1] + 0.114 * pixels[..., 2]
    blocks = gray.reshape(8, 2, 12, 2).mean(axis=(1, 3))
    ink, colors, whole = told[0]["pictures"]
    np.testing.assert_allclose(np.reshape(ink["data"], [8, 12]), 1 - blocks / 255, atol=1e-7)
    assert ink["data"][0] == 0.0 and ink["shape"] == [8, 12]  # white paper is nothing at all
    np.testing.assert_array_equal(np.reshape(colors["data"], colors["shape"]), pixels[None, ..., :3])
    assert np.abs(np.array(whole["data"]) - (255 - blocks).reshape(-1)).max() <= 0.5


@needs_node
def test_the_library_is_unpacked(told):
    assert told[0]["unpacked"] == "some text " * 99


# -- in a browser --------------------------------------------------------------------------------------
def functions() -> dict[str, Any]:
    total = tf.Variable([1.0, 2.0, 3.0], name="total")
    # Results that a browser would show otherwise if one bit of them were wrong.
    weights = tf.Variable(np.random.default_rng(1).standard_normal([3, 2]).astype(F32))

    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32, "rows"), tf.TensorSpec([], tf.bool, "negate"),
                                  tf.TensorSpec([], tf.int32, "index")])
    def score(rows, negate, index):
        tf.debugging.assert_less(index, 3, message="there are three columns")
        shares = tf.nn.softmax(rows[0] * tf.where(negate, -1.0, 1.0))
        return {"shares": shares, "column": rows[:, index], "product": rows @ weights, "large": rows > 1.0}

    @tf.function(input_signature=[tf.TensorSpec([3], tf.float32, "amount")])
    def add(amount):
        total.assign_add(amount)
        return tf.reduce_sum(total)

    @tf.function(input_signature=[tf.TensorSpec([None, 16, 16, 3], tf.float32, "photo")])
    def look(photo):
        return {"colors": tf.reduce_mean(photo, [0, 1, 2]), "gray": tf.reduce_mean(photo, -1), "row": photo[0, :, :, 0]}

    @tf.function(input_signature=[tf.TensorSpec([None, None, None, 3], tf.float32, "frame")])
    def measure(frame):
        return {"sizes": tf.shape(frame)[1:3], "colors": tf.reduce_mean(frame, [0, 1, 2])}
    return {"score": score, "add": add, "look": look, "measure": measure}


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> Iterator[browser.Page]:
    program = browser.find()
    if program is None:
        pytest.skip("no Chromium on this machine")
    made = tf.export.web(functions(), tmp_path_factory.mktemp("pages") / "some", title="Some functions")
    with browser.opened(program) as opened:
        opened.open(made.path)
        opened.until("document.querySelector('main').getAttribute('aria-busy') === 'false'")
        opened.settle()
        yield opened


def section(name: str, then: str) -> str:
    return f"document.querySelector('section[aria-label=\"{name}\"]'){then}"


def enter(page: browser.Page, name: str, number: int, text: str) -> None:
    """Types into the text field of that number."""
    field = section(name, f".querySelectorAll('textarea, input[type=text]')[{number}]")
    page.run(f"{field}.select()")
    page.type(text)
    page.settle()


def words(page: browser.Page, name: str, selector: str) -> list[str]:
    return page.run(f"[...{section(name, '')}.querySelectorAll({json.dumps(selector)})].map((e) => e.innerText.trim())")


def shown(page: browser.Page, name: str) -> dict[str, str]:
    """What stands under each name in a section."""
    parts = f"[...{section(name, '')}.querySelectorAll('.part')]"
    return dict(page.run(f"{parts}.map((part) => [part.querySelector('h3').firstChild.textContent, part.innerText])"))


@needs_zig
def test_results_follow_what_is_entered(page):
    enter(page, "score", 0, "1 2 0.5\n-1 3 4")
    shares = np.exp([1, 2, 0.5]) / np.exp([1, 2, 0.5]).sum()
    told = shown(page, "score")
    assert set(told) == {"rows", "negate", "index", "shares", "column", "product", "large"}
    assert re.findall(r"\S+ %", told["shares"]) == [f"{100 * share:.1f} %" for share in shares]
    assert "false\ttrue\tfalse" in told["large"] and "false\ttrue\ttrue" in told["large"]
    weights = np.random.default_rng(1).standard_normal([3, 2]).astype(F32)
    cells = [float(x) for x in re.findall(r"-?\d+\.\d+", told["product"])]
    np.testing.assert_allclose(cells, (np.array([[1, 2, 0.5], [-1, 3, 4]], F32) @ weights).reshape(-1), rtol=1e-5)
    page.click_on(section("score", ".querySelector('input[type=checkbox]')"))
    shares = np.exp([-1, -2, -0.5]) / np.exp([-1, -2, -0.5]).sum()
    told = shown(page, "score")
    assert re.findall(r"\S+ %", told["shares"]) == [f"{100 * share:.1f} %" for share in shares]
    assert page.complaints() == []


@needs_zig
def test_what_is_wrong_is_told_and_mended(page):
    enter(page, "score", 0, "1 2 3")
    enter(page, "score", 1, "3")
    assert "there are three columns" in words(page, "score", "[role=alert]")[0]
    enter(page, "score", 1, "1")
    assert words(page, "score", "[role=alert]") == [""]
    enter(page, "score", 0, "1 2 oops")
    assert '"oops" is no number' in words(page, "score", ".part .wrong")[0]
    assert page.run(section("score", ".querySelector('textarea').getAttribute('aria-invalid')")) == "true"
    enter(page, "score", 0, "1 2")
    assert "input rows must have shape [n, 3]" in words(page, "score", "[role=alert]")[0]
    enter(page, "score", 0, "1 2 3")
    assert words(page, "score", ".part .wrong")[0] == "" and shown(page, "score")["column"].split()[-1] == "2"


@needs_zig
def test_variables_change_when_it_is_asked_for(page):
    enter(page, "add", 0, "1 1 2")
    assert words(page, "variables", ".bars .value") == ["1", "2", "3"]
    for wanted in (["2", "3", "5"], ["3", "4", "7"]):
        press(page, "add", "Run")
        assert words(page, "variables", ".bars .value") == wanted
    assert words(page, "add", ".number") == ["14"]
    press(page, "variables", "Start again")
    assert words(page, "variables", ".bars .value") == ["1", "2", "3"]


def choose(page: browser.Page, name: str, way: int) -> None:
    """How to give a picture: drawn, or as numbers."""
    choice = section(name, ".querySelector('select')")
    page.run(f"(() => {{ {choice}.selectedIndex = {way}; {choice}.dispatchEvent(new Event('change')); }})()")
    page.settle()


def press(page: browser.Page, name: str, button: str) -> None:
    """Presses the button of that text in a section."""
    page.run(f"[...{section(name, '')}.querySelectorAll('button')].find((b) => b.textContent === '{button}').click()")
    page.settle()


@needs_zig
def test_pictures_are_drawn_and_shown(page):
    canvas = section("look", ".querySelector('canvas.paper')")
    assert words(page, "look", ".bars .value") == ["1", "1", "1"]  # white
    page.run(f"{canvas}.scrollIntoView()")
    page.settle()
    left, top, wide, high = page.run(f"(() => {{ const b = {canvas}.getBoundingClientRect(); "
                                     "return [b.x, b.y, b.width, b.height]; })()")
    page.run(section("look", ".querySelector('input[type=color]').value = '#ff0000'"))
    page.run(section("look", ".querySelector('input[type=range]').value = 25"))
    page.drag([(left + wide * x, top + high / 2) for x in (0.0, 0.5, 1.0)])
    red, green, blue = map(float, words(page, "look", ".bars .value"))
    assert red == 1.0 and green == blue and 0.7 < green < 0.8  # a quarter of it is red
    assert page.run(section("look", ".querySelectorAll('canvas.picture').length")) == 2
    choose(page, "look", 1)
    assert [float(x) for x in words(page, "look", ".bars .value")] == [red, green, blue]  # the same as numbers
    assert page.complaints() == []


@needs_zig
def test_a_picture_comes_from_a_file(page, tmp_path):
    """A wide one lies in the middle of white paper."""
    pixels = np.zeros((32, 64, 3), np.uint8)
    pixels[..., 1] = 255
    (tmp_path / "green.png").write_bytes(tf.io.encode_png(pixels).numpy())
    choose(page, "look", 0)
    document = page.send("DOM.getDocument")["root"]["nodeId"]
    field = page.send("DOM.querySelector", nodeId=document, selector="section[aria-label=look] input[type=file]")
    page.send("DOM.setFileInputFiles", nodeId=field["nodeId"], files=[str(tmp_path / "green.png")])
    page.until(section("look", ".querySelectorAll('.bars .value')[1].textContent === '1'"))
    page.settle()
    assert words(page, "look", ".bars .value") == ["0.5", "1", "0.5"]
    press(page, "look", "Clear")
    assert words(page, "look", ".bars .value") == ["1", "1", "1"]
    assert page.complaints() == []


@needs_zig
def test_a_picture_says_the_sizes_that_are_open(page, tmp_path):
    assert words(page, "measure", ".bars .value") == ["1", "1", "1", "64", "64"]  # white paper
    pixels = np.random.default_rng(2).integers(0, 256, (30, 50, 3), dtype=np.uint8)
    (tmp_path / "noise.png").write_bytes(tf.io.encode_png(pixels).numpy())
    document = page.send("DOM.getDocument")["root"]["nodeId"]
    field = page.send("DOM.querySelector", nodeId=document, selector="section[aria-label=measure] input[type=file]")
    page.send("DOM.setFileInputFiles", nodeId=field["nodeId"], files=[str(tmp_path / "noise.png")])
    values = section("measure", ".querySelectorAll('.bars .value')")
    page.until(f"{values}[4].textContent === '50'")
    assert words(page, "measure", ".bars .value")[3:] == ["30", "50"]
    length = section("measure", ".querySelector('input[aria-label=\"width in pixels\"]')")
    assert page.run(f"{length}.value") == "50"
    choose(page, "measure", 1)
    text = page.run(section("measure", ".querySelector('textarea').value"))
    numbers = np.array(json.loads(text), F32)
    np.testing.assert_allclose(numbers[0], pixels / 255, atol=1e-6)  # each pixel, in its place
    choose(page, "measure", 0)
    page.run(f"(() => {{ {length}.value = 100; {length}.dispatchEvent(new Event('change')); }})()")
    page.until(f"{values}[4].textContent === '100'")
    colors = [float(x) for x in words(page, "measure", ".bars .value")[:3]]
    np.testing.assert_allclose(colors, 0.5 + pixels.mean((0, 1)) / 510, atol=0.01)  # between white paper on both sides
    assert page.complaints() == []


@needs_zig
def test_buttons_fill_a_field(page):
    enter(page, "score", 0, "1 2 3\n4 5 6")
    field = section("score", ".querySelector('textarea').value")
    for name in ("Random", "Zeros"):
        press(page, "score", name)
        values = np.array([line.split(", ") for line in page.run(field).split("\n")], np.float64)
        assert values.shape == (2, 3) and bool(values.any()) == (name == "Random")
    assert re.findall(r"\S+ %", shown(page, "score")["shares"]) == ["33.3 %"] * 3


@needs_zig
def test_colors_are_those_that_one_prefers(page):
    grounds = []
    for colors in ("dark", "light"):
        page.prefer(colors)
        grounds.append(page.run("getComputedStyle(document.body).backgroundColor"))
    assert [sum(map(int, re.findall(r"\d+", ground))) < 384 for ground in grounds] == [True, False]
