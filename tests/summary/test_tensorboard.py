"""TensorBoard itself, in a browser: its tabs show what `tf.summary` wrote, and the graphs that were traced."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli import browser

import twofold as tf

#: the whole text of the page, inside of its components, too
TEXT = """(() => {
  const found = [];
  const walk = (node) => {
    for (const child of [...(node.shadowRoot ? node.shadowRoot.childNodes : []), ...node.childNodes]) {
      if (child.nodeType === Node.TEXT_NODE) found.push(child.textContent.trim());
      else if (!['SCRIPT', 'STYLE', 'NOSCRIPT'].includes(child.tagName)) walk(child);
    }
  };
  walk(document.body);
  return found.filter((text) => text);
})()"""

#: what an expression gives for the elements of all components that a selector finds
ELEMENTS = """(() => {
  const found = [];
  const walk = (root) => {
    found.push(...root.querySelectorAll(%s));
    for (const each of root.querySelectorAll('*')) if (each.shadowRoot) walk(each.shadowRoot);
  };
  walk(document);
  return found.%s;
})()"""


def elements(selector: str, then: str) -> str:
    return ELEMENTS % (json.dumps(selector), then)


NODES = elements("g.node[data-name]", "map((node) => node.getAttribute('data-name'))")


@pytest.fixture(scope="module")
def board(tmp_path_factory) -> Iterator[Callable[[str], Any]]:
    """A function that opens a tab of TensorBoard, and gives the page."""
    pytest.importorskip("tensorboard", reason="the package tensorboard is not installed")
    program = browser.find()
    if program is None:
        pytest.skip("no Chromium on this machine")
    folder = tmp_path_factory.mktemp("logs")
    written(folder)
    command = [sys.executable, "-m", "tensorboard.main", "--logdir", str(folder), "--host", "127.0.0.1", "--port", "0",
               "--load_fast", "false"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as server:
        try:
            told = next((line for line in server.stderr or () if "http://" in line), "")
            address = re.search(r"http://[\d.]+:\d+/", told)
            assert address, told
            with browser.opened(program, reach="127.0.0.1") as page:
                def opened(tab: str) -> Any:
                    page.open("about:blank")
                    page.open(f"{address[0]}#{tab}")
                    return page
                yield opened
        finally:
            server.terminate()


def written(folder: Path) -> None:
    """Two runs: one with all kinds of summaries and a trace, the other with a graph."""
    @tf.function
    def step(x):
        y = tf.tanh(tf.matmul(x, x))
        if tf.reduce_sum(y) > 0.0:
            y = tf.sin(y)
        return tf.nn.softmax(y)

    writer = tf.summary.create_file_writer(folder / "first")
    with writer.as_default():
        for n in range(3):
            tf.summary.scalar("loss", 1.0 / (n + 1), step=n)
        tf.summary.histogram("weights", np.arange(100.0), step=0)
        tf.summary.image("digit", np.eye(8)[None, ..., None], step=0)
        tf.summary.text("note", "a note in **bold**", step=0)
        tf.summary.trace_on()
        step(tf.ones([3, 3]))
        tf.summary.trace_export("the_step", step=0)
    writer.close()
    writer = tf.summary.create_file_writer(folder / "second")
    with writer.as_default():
        tf.summary.graph(tf.function(lambda x: tf.cosh(x) + 1.0).get_concrete_function(tf.TensorSpec([None])).graph)
    writer.close()


def places(page: Any, *names: str) -> list[tuple[float, float]]:
    """Where the middles of nodes are, when nothing moves any more."""
    script = elements("g.node[data-name]", "map((node) => { const b = node.getBoundingClientRect(); return "
                      "[node.getAttribute('data-name'), b.x + b.width / 2, b.y + b.height / 2]; })")
    before, now = None, page.run(script)
    while now != before:
        time.sleep(0.3)
        before, now = now, page.run(script)
    actual = {name: (x, y) for name, x, y in now}
    return [actual[name] for name in names]


def test_the_graph_of_a_function_that_ran(board):
    page = board("graphs")
    page.until(f"{NODES}.includes('softmax')")
    assert {"x", "matmul", "tanh", "reduce_sum", "greater", "cond", "softmax"} <= set(page.run(NODES))
    assert "the_step" in page.run(TEXT)  # the tag that it was exported under
    # A node is above what it reads, as edges run from below.
    heights = [y for _, y in places(page, "softmax", "cond", "tanh", "matmul", "x")]
    assert all(above + 10 < below for above, below in zip(heights, heights[1:], strict=False))


def test_branches_open_to_what_is_in_them(board):
    page = board("graphs")
    page.until(f"{NODES}.includes('softmax')")
    for name, inside in (("cond", "cond/region_0"), ("cond/region_0", "cond/region_0/sin")):
        [(x, y)] = places(page, name)
        page.click(x, y, times=2)
        page.until(f"{NODES}.includes({json.dumps(inside)})")


def test_a_graph_that_was_written_as_such(board):
    page = board("graphs")
    page.until(f"{NODES}.includes('softmax')")
    page.run(elements("paper-item", "find((item) => item.textContent.trim() === 'second').click()"))
    page.until(f"{NODES}.includes('cosh')")
    assert "tanh" not in page.run(NODES)


@pytest.mark.parametrize(("tab", "tag"), [("scalars", "loss"), ("histograms", "weights"), ("images", "digit"),
                                          ("text", "note")])
def test_tabs_list_the_tags(board, tab, tag):
    page = board(tab)
    page.until(f"{TEXT}.some((text) => text.includes({json.dumps(tag)}))")
    if tab == "images":
        page.until(elements("img", "some((image) => image.naturalWidth === 8 && image.naturalHeight === 8)"))
    if tab == "text":
        page.until(f"{TEXT}.includes('bold')")  # the Markdown is made into an element of its own
