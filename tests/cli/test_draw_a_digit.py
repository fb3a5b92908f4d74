"""The page that reads digits while one draws them: made by its program, drawn on in a browser, called from Node.js."""

from __future__ import annotations

import importlib.util
import json
import math
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from cli import browser
from house.tree import ROOT
from quick.start import python

import twofold as tf

Stroke = list[tuple[float, float]]
PROBABILITIES = "[...document.querySelectorAll('.bars .value')].map((value) => parseFloat(value.textContent))"

pytestmark = pytest.mark.skipif(importlib.util.find_spec("ziglang") is None, reason="the package ziglang is not there")


def arc(x: float, y: float, wide: float, high: float, begin: float, end: float) -> Stroke:
    """A part of an ellipse, between two angles in degrees, clockwise from the right."""
    angles = np.radians(np.linspace(begin, end, 16))
    return [(x + wide * math.cos(a), y + high * math.sin(a)) for a in angles]


#: the strokes of each digit, on paper from 0 to 1
DIGITS: dict[int, list[Stroke]] = {
    0: [arc(0.5, 0.5, 0.22, 0.33, -90, 270)],
    1: [[(0.40, 0.30), (0.52, 0.18), (0.52, 0.5), (0.52, 0.82)]],
    2: [[*arc(0.5, 0.35, 0.2, 0.17, 180, 380), (0.32, 0.8), (0.72, 0.8)]],
    3: [[*arc(0.48, 0.34, 0.2, 0.16, -150, 90), *arc(0.48, 0.66, 0.22, 0.17, -90, 150)]],
    4: [[(0.55, 0.18), (0.28, 0.58), (0.74, 0.58)], [(0.6, 0.38), (0.6, 0.84)]],
    5: [[(0.7, 0.2), (0.38, 0.2), (0.35, 0.47), *arc(0.47, 0.62, 0.21, 0.19, -120, 150)]],
    6: [[(0.62, 0.18), (0.45, 0.3), (0.36, 0.5), *arc(0.5, 0.64, 0.17, 0.17, 180, 540)]],
    7: [[(0.3, 0.2), (0.7, 0.2), (0.45, 0.82)]],
    8: [[*arc(0.5, 0.34, 0.16, 0.15, 90, 450), *arc(0.5, 0.66, 0.19, 0.17, -90, 270)]],
    9: [arc(0.5, 0.36, 0.17, 0.17, 0, 360), [(0.66, 0.55), (0.6, 0.82)]],
}


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Any:
    """The folder that the program leaves, and what it prints."""
    folder = tmp_path_factory.mktemp("demo")
    done = subprocess.run(python(ROOT / "examples" / "draw_a_digit.py", "--output", folder),
                          capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    return folder, done.stdout


@pytest.fixture(scope="module")
def page(made) -> Iterator[browser.Page]:
    program = browser.find()
    if program is None:
        pytest.skip("no Chromium on this machine")
    with browser.opened(program) as opened:
        opened.open(made[0] / "draw_a_digit" / "index.html")
        opened.until("document.querySelector('main').getAttribute('aria-busy') === 'false'")
        yield opened


def clear(page: browser.Page) -> None:
    page.click_on("[...document.querySelectorAll('button')].find((button) => button.textContent === 'Clear')")
    page.until(f"{PROBABILITIES}.every((share) => share === 10)")


def draw(page: browser.Page, strokes: list[Stroke], finger: bool = False) -> None:
    left, top, wide, high = page.run("(() => { const b = document.querySelector('canvas').getBoundingClientRect(); "
                                     "return [b.x, b.y, b.width, b.height]; })()")
    for stroke in strokes:
        page.drag([(left + wide * x, top + high * y) for x, y in stroke], finger)
    page.settle()


def test_the_program_says_what_it_made(made):
    folder, printed = made
    assert (folder / "draw_a_digit.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    assert float(re.search(r"accuracy (\d\.\d+)", printed)[1]) >= 0.97
    assert str(folder / "draw_a_digit" / "index.html") in printed


def test_the_page_is_small(made):
    """Below 100 kB beyond the weights, of which the page holds every one."""
    folder, printed = made
    size, weights = map(float, re.search(r": (\S+) kB, of which (\S+) kB are weights", printed).groups())
    assert weights == pytest.approx(4 * (64 * 128 + 128 + 128 * 64 + 64 + 64 * 10 + 10) / 1000, abs=0.05)
    assert size == pytest.approx((folder / "draw_a_digit" / "index.html").stat().st_size / 1000, abs=0.05)
    assert size - weights < 100


def test_what_is_drawn_is_read(page):
    clear(page)
    read = {}
    for digit, strokes in DIGITS.items():
        draw(page, strokes)
        shares = page.run(PROBABILITIES)
        read[digit] = int(np.argmax(shares))
        assert sum(shares) == pytest.approx(100, abs=0.6)
        assert page.run("document.querySelector('.bars .most').firstChild.textContent") == str(read[digit])
        clear(page)
    assert read == {digit: digit for digit in DIGITS}
    assert page.complaints() == []  # and nothing was asked for


def test_the_bars_move_while_a_finger_draws(page):
    clear(page)
    [stroke] = DIGITS[2]
    shares = []
    for points in (stroke[:12], stroke[11:]):
        draw(page, [points], finger=True)
        shares.append(page.run(PROBABILITIES))
    assert shares[0] != shares[1] and int(np.argmax(shares[1])) == 2
    clear(page)


CALL = """
import fs from "node:fs";
import { load } from "./draw_a_digit/draw_a_digit.mjs";
const here = (name) => new URL(name, import.meta.url);
const library = await load(fs.readFileSync(here("draw_a_digit/draw_a_digit.wasm")));
const drawings = new Float32Array(new Uint8Array(fs.readFileSync(here("drawings.bin"))).buffer);
const told = [];
for (let n = 0; n < drawings.length; n += 4096) {
  const drawing = { data: drawings.slice(n, n + 4096), shape: [64, 64] };
  told.push([...library.read({ drawing }).probabilities.data]);
}
console.log(JSON.stringify(told));
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no Node.js")
def test_programs_get_what_the_drawing_shows(made):
    """In Node.js: dots near a digit's strokes are ink; nothing at all is any digit."""
    folder, _ = made
    drawings = np.zeros((len(DIGITS) + 1, 64, 64), np.float32)
    y, x = (np.mgrid[:64, :64] + 0.5) / 64
    for digit, strokes in DIGITS.items():
        for stroke in strokes:
            for (x0, y0), (x1, y1) in zip(stroke, stroke[1:], strict=False):
                length = max((x1 - x0) ** 2 + (y1 - y0) ** 2, 1e-9)
                along = np.clip(((x - x0) * (x1 - x0) + (y - y0) * (y1 - y0)) / length, 0, 1)
                far = np.hypot(x - x0 - along * (x1 - x0), y - y0 - along * (y1 - y0))
                drawings[digit][far < 0.05] = 1
    (folder / "drawings.bin").write_bytes(drawings.tobytes())
    (folder / "call.mjs").write_text(CALL)
    done = subprocess.run(["node", folder / "call.mjs"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    told = np.array(json.loads(done.stdout))
    np.testing.assert_array_equal(told[:-1].argmax(axis=1), list(DIGITS))
    np.testing.assert_allclose(told[-1], 0.1, rtol=1e-6)


def test_what_is_not_reached_shows_in_the_status(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "examples")
    program = importlib.import_module("draw_a_digit")
    for reached, status in ((0.96, 1), (0.97, 0)):
        monkeypatch.setattr(program, "tell", lambda *options, reached=reached: reached)
        monkeypatch.setattr(sys, "argv", ["draw_a_digit", "--output", str(tmp_path)])
        assert program.main() == status


def test_ink_is_centred_and_scaled(monkeypatch):
    """A square of ink, wherever it is and however large, fills the image as far as its windows reach."""
    monkeypatch.syspath_prepend(ROOT / "examples")
    program = importlib.import_module("draw_a_digit")
    images = []
    for top, left, size in ((0, 0, 16), (30, 20, 32), (0, 0, 64)):
        drawing = np.zeros((64, 64), np.float32)
        drawing[top:top + size, left:left + size] = 1
        images.append(program.centred(tf.constant(drawing)).numpy())
    edge = np.array([0.75, *[1.0] * 6, 0.75], np.float32)
    np.testing.assert_allclose(images[0], np.minimum(1.5 * np.outer(edge, edge), 1), atol=1e-6)
    for image in images[1:]:
        np.testing.assert_allclose(image, images[0], atol=1e-6)
