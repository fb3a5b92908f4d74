"""The graph page: where boxes lie, what the file holds, and what a browser shows of it."""

from __future__ import annotations

import html.parser
import json
import re
import sys
import xml.etree.ElementTree as xml

import numpy as np
import pytest
from cli import browser
from house.tree import ROOT

import twofold as tf
from twofold.ir import graph as g
from twofold.ir import graph_text
from twofold.ir.spec import TensorSpec
from twofold.tracer import kernels
from twofold.tracer.page import html as page_html
from twofold.tracer.page import layout, whole

HOSTILE = "</script><img src=x onerror=alert(1)>\"'&${title}\u2028"


def data_of(page: str) -> dict:
    """What the script of a page reads."""
    [actual] = re.findall(r'<script id="graph" type="application/json">(.*?)</script>', page, re.DOTALL)
    return json.loads(actual)


def inside(box: layout.Box, around: layout.Box) -> bool:
    return around.x <= box.x and around.y <= box.y and box.x + box.width <= around.x + around.width + 1e-6 \
        and box.y + box.height <= around.y + around.height + 1e-6


def overlap(a: layout.Box, b: layout.Box) -> bool:
    return a.x < b.x + b.width and b.x < a.x + a.width and a.y < b.y + b.height and b.y < a.y + a.height


def check(box: layout.Box) -> None:
    """Children are inside and apart."""
    for n, child in enumerate(box.children):
        assert inside(child, box)
        assert not any(overlap(child, other) for other in box.children[n + 1:])
        check(child)


# -- layout -------------------------------------------------------------------------------------------
def test_edges_lead_down_and_boxes_stay_apart():
    rng = np.random.default_rng(5)
    for _ in range(30):
        root = layout.Box(0, 0)
        around = [root, *[root.add(layout.Box(50, 0, 20)) for _ in range(3)]]
        leaves = [around[rng.integers(4)].add(layout.Box(float(rng.integers(30, 200)), 40)) for _ in range(40)]
        edges = [layout.Edge(leaves[a], leaves[b]) for a in range(40) for b in range(a + 1, 40) if rng.random() < 0.07]
        layout.lay_out(root, edges)
        check(root)
        for edge in edges:
            assert edge.segments
            start, end = edge.segments[0].points[0], edge.segments[-1].points[-1]
            assert start[1] == pytest.approx(edge.source.y + edge.source.height)
            assert end[1] == pytest.approx(edge.target.y)
            for before, after in zip(edge.segments, edge.segments[1:], strict=False):
                assert before.points[-1] == pytest.approx(after.points[0])
        for edge in edges:  # within one box, links between those that hold no cycle together go down
            if edge.source.parent is edge.target.parent is not root:
                assert edge.source.y + edge.source.height < edge.target.y


def test_a_chain_stands_straight_and_few_edges_cross():
    root = layout.Box(0, 0)
    chain = [root.add(layout.Box(80, 40)) for _ in range(200)]
    layout.lay_out(root, [layout.Edge(a, b) for a, b in zip(chain, chain[1:], strict=False)])
    assert len({box.x for box in chain}) == 1
    # Two rows of 8 whose partners stand in reverse: an order without crossings exists.
    root = layout.Box(0, 0)
    upper, lower = [[root.add(layout.Box(60, 40)) for _ in range(8)] for _ in range(2)]
    top = root.add(layout.Box(60, 40))
    edges = [layout.Edge(a, b) for a, b in zip(upper, lower[::-1], strict=True)]
    layout.lay_out(root, edges + [layout.Edge(a, top) for a in lower])
    ranks = [sorted(row, key=lambda box: box.x) for row in (upper, lower[::-1])]
    assert [upper.index(b) for b in ranks[0]] == [lower[::-1].index(b) for b in ranks[1]]


def test_cycles_between_boxes_do_no_harm():
    root = layout.Box(0, 0)
    a, b = root.add(layout.Box(10, 0, 20)), root.add(layout.Box(10, 0, 20))
    first, last, middle = a.add(layout.Box(60, 40)), a.add(layout.Box(60, 40)), b.add(layout.Box(60, 40))
    layout.lay_out(root, [layout.Edge(first, middle), layout.Edge(middle, last)])
    check(root)


def long_graph(length: int) -> g.Graph:
    """A chain of `length` additions in which every value is also read far below."""
    graph = g.Graph("long")
    values = [graph.add_input((4,), tf.float32, "x")]
    add = graph_text.parse("graph f(%0: f32[4]) { %1 = add(%0, %0) : f32[4] return %1 }").nodes[0].op
    for n in range(length):
        other = values[max(0, n - 1 - n % 97)]
        values.append(graph.add(add, [values[-1], other], {}, [TensorSpec((4,), tf.float32)]).outputs[0])
    graph.outputs = [values[-1]]
    return graph


def lines_run(function) -> int:
    """How many lines of Python a call runs."""
    count = [0]

    def tell(frame, event, arg):
        count[0] += event == "line"
        return tell
    before = sys.gettrace()
    sys.settrace(tell)
    try:
        function()
    finally:
        sys.settrace(before)
    return count[0]


def test_work_grows_as_the_graph_does():
    few, many = long_graph(100), long_graph(800)
    count = [lines_run(lambda graph=graph: page_html.page("long", "", [
        page_html.View("all", whole.scene_of(graph), "long", "")])) for graph in (few, many)]
    assert count[1] < 16 * count[0]  # 8 times the nodes; quadratic work would be 64 times as much


def test_five_thousand_nodes():
    page = page_html.page("long", "", [page_html.View("all", whole.scene_of(long_graph(5000)), "long", "")])
    [view] = data_of(page)["views"]
    assert len(view["items"]) == 5002
    assert view["w"] < 20_000
    assert len(page) < 12e6


# -- what the page holds ------------------------------------------------------------------------------
def softmax_step():
    weights = tf.Variable(tf.ones([4, 3]))

    @tf.function
    def predict(x):
        scores = tf.matmul(x, weights) * 2.0
        return tf.nn.relu(scores - tf.reduce_max(scores, axis=1, keepdims=True))
    return predict.get_concrete_function(tf.TensorSpec([None, 4], tf.float32))


def test_kernels_hold_every_node_that_runs():
    concrete = softmax_step()
    actual, plans = kernels.kernels_of(concrete.graph)
    held = [node for kernel in actual for node in kernel.nodes]
    assert len(held) == len(set(held))
    assert {n.op.name for n in held} == {"matmul", "multiply", "reduce_max", "subtract", "relu"}
    assert len(plans) == 1
    [product] = [k for k in actual if k.title == "matmul"]
    rows = concrete.graph.inputs[0].dims[0]
    assert str(product.reads) == str(rows * 16 + 48)  # x and the weights, float32
    assert str(product.writes) == str(rows * 12)


def test_times_are_those_of_the_work():
    @tf.function
    def f(x, y):
        return tf.matmul(x, x), tf.exp(y)
    a, b = tf.ones([400, 400]), tf.ones([8])
    concrete = f.get_concrete_function(a, b)
    view = data_of(concrete.to_html(a, b))["views"][0]
    times = {item["t"]: item["us"] for item in view["items"] if item["k"] == "kernel"}
    assert set(times) == {"matmul", "exp"}
    flops = 2 * 400 ** 3
    assert flops / 1e6 < times["matmul"] < 2e6  # no machine does a million operations a nanosecond, nor is it seconds
    assert times["exp"] < times["matmul"]
    assert dict(view["facts"])["kernels"] == "2"


def test_loops_and_python_are_measured_too():
    @tf.function
    def f(x, n):
        for _ in tf.range(n):
            x = tf.exp(x) * 0.1
            tf.py_function(lambda t: t, [x], tf.float32)
        return x
    args = tf.ones([3]), tf.constant(3)
    before = f(*args).numpy()
    view = data_of(f.get_concrete_function(*args).to_html(*args))["views"][0]
    assert any(item["k"] == "kernel" and item.get("us", 0) > 0 for item in view["items"])
    assert "time in Python" in dict(view["facts"])
    assert np.array_equal(f(*args).numpy(), before)


def test_measuring_leaves_variables_alone():
    total = tf.Variable(1.0)

    @tf.function
    def f(x):
        total.assign_add(tf.reduce_sum(x))
        return total * 2.0
    x = tf.ones([4])
    concrete = f.get_concrete_function(x)
    assert '"us":' in concrete.to_html(x)
    assert total.numpy() == 1.0


def test_wrong_inputs_are_told():
    concrete = softmax_step()
    with pytest.raises(ValueError, match=r"has 2 inputs, 1 arrays were given"):
        concrete.graph.to_html(inputs=[np.ones((2, 4), np.float32)])
    with pytest.raises(ValueError, match=r"input 1 .* is f32\[4,3\]; given was an array of dtype float64"):
        concrete.graph.to_html(inputs=[np.ones((2, 4), np.float32), np.ones((4, 3))])


class _Reader(html.parser.HTMLParser):
    """Collects the tags of a page, and what would fetch something."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.fetching: list[tuple[str, str | None]] = []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.fetching += [(k, v) for k, v in attrs if k in ("src", "href", "srcset", "action", "data")
                          or k.startswith("on")]


def hostile_graph() -> g.Graph:
    graph = g.Graph(HOSTILE)
    value = graph.add_input((2,), tf.float32, HOSTILE)
    exp = graph_text.parse("graph f(%0: f32[2]) { %1 = exp(%0) : f32[2] return %1 }").nodes[0].op
    node = graph.add(exp, [value], {}, [TensorSpec((2,), tf.float32)], (), g.Location(HOSTILE, 1, HOSTILE))
    graph.outputs = [node.outputs[0]]
    return graph


def test_no_name_becomes_markup():
    page = hostile_graph().to_html()
    reader = _Reader()
    reader.feed(page)
    assert "img" not in reader.tags
    assert reader.tags.count("script") == 2
    assert reader.fetching == []
    assert data_of(page)["views"][0]["title"] == HOSTILE
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org/2000/svg", "")
    xml.fromstring(whole.picture_of(hostile_graph()))


def test_picture_is_svg_with_every_node():
    concrete = softmax_step()
    root = xml.fromstring(whole.picture_of(concrete.graph))
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    texts = {e.text for e in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {"matmul", "relu", "reduce_max", "output 0"} <= texts


def test_notebooks_get_a_frame_of_its_own():
    frame = softmax_step()._repr_html_()
    assert frame.startswith('<iframe sandbox="allow-scripts" srcdoc="&lt;!doctype html&gt;')
    assert frame.count('"') % 2 == 0 and "<script" not in frame
    assert frame.isascii()


def test_a_program_of_fast_math_is_shown_as_it_runs():
    fast = tf.function(lambda x: tf.exp(x + 0.0), fast_math=True)  # -0.0 + 0.0 is 0.0
    concrete = fast.get_concrete_function(tf.TensorSpec([4], tf.float32))
    exact, free = (data_of(page)["views"][0] for page in (concrete.graph.to_html(), concrete.to_html()))
    assert [dict(view["facts"])["nodes"] for view in (exact, free)] == ["3", "1"]


# -- in a browser -------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def page():
    program = browser.find()
    if program is None:
        pytest.skip("no Chromium on this machine")
    with browser.opened(program) as actual:
        yield actual


def test_a_click_on_a_kernel_fills_the_panel(page, tmp_path):
    x = tf.ones([5, 4])
    softmax_step().to_html(x, path=tmp_path / "graph.html")
    page.open(tmp_path / "graph.html")
    assert page.run("document.querySelector('#panel h2').textContent") == "predict"
    page.click_on("document.querySelector('#nodes .kernel text')")
    panel = page.run("document.querySelector('#panel').innerText")
    assert "time" in panel and "GB/s" in panel and "test_graph_page.py" in panel
    assert "scores = tf.matmul(x, weights) * 2.0" in panel
    # A node in a kernel: its text, shapes and dtype.
    page.click_on("[...document.querySelectorAll('#nodes .node text')].find(t => t.textContent === 'relu')")
    panel = page.run("document.querySelector('#panel').innerText")
    assert re.search(r"= relu\(%\d+\) : f32\[\w+,3\]", panel), panel
    assert "float32" in panel and "tf.nn.relu(scores" in panel
    # What it reads is a link.
    page.click_on("[...document.querySelectorAll('#panel .link')].find(b => b.textContent.startsWith('%'))")
    assert page.run("document.querySelector('#panel h2').textContent") == "subtract"
    assert page.complaints() == []


def test_keys_search_zoom_and_themes(page, tmp_path):
    softmax_step().to_html(path=tmp_path / "graph.html")
    page.open(tmp_path / "graph.html")
    page.key("/")
    page.type("reduce_max")
    assert page.run("document.querySelectorAll('#results button').length") >= 1
    page.key("Enter", "\r")
    assert "reduce_max" in page.run("document.querySelector('#panel h2').textContent")
    page.key("Escape")
    page.run("document.querySelector('#stage').focus()")
    page.key("Escape")
    assert page.run("document.querySelector('#panel h2').textContent") == "predict"
    page.key("ArrowDown")
    assert page.run("document.querySelector('#panel h2').textContent") == "x"
    page.key("ArrowDown")
    assert page.run("document.querySelector('#panel h2').textContent") == "matmul"
    scale = "document.querySelector('#world').getAttribute('transform')"
    before = page.run(scale)
    page.key("+", "+")
    assert page.run(scale) != before
    page.wheel(400, 400, -300)
    page.key("0", "0")
    assert page.run(scale) == before
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.run(ground)
    page.prefer("dark")
    assert page.run(ground) != light
    page.run("document.querySelector('#theme').click()")
    assert page.run(ground) == light
    page.prefer("light")
    page.click_on("document.querySelector('#views').lastElementChild")
    assert "before any pass" in page.run("document.querySelector('#panel').innerText")
    assert page.complaints() == []


def test_a_hostile_name_is_only_shown(page, tmp_path):
    hostile_graph().to_html(tmp_path / "graph.html")
    page.open(tmp_path / "graph.html")
    assert page.run("document.querySelector('h1').textContent") == HOSTILE
    assert page.run("document.querySelectorAll('img').length") == 0
    page.click_on("document.querySelector('#nodes .item')")
    assert page.complaints() == []


def test_a_page_runs_within_a_notebook(page, tmp_path):
    frame = softmax_step()._repr_html_()
    (tmp_path / "cell.html").write_text(f"<!doctype html><title>notebook</title><p>Out[1]:</p>{frame}")
    page.send("Target.setAutoAttach", autoAttach=True, waitForDebuggerOnStart=False, flatten=True)
    page.open(tmp_path / "cell.html")
    with page.inside_frame():
        assert page.run("document.querySelector('#panel h2').textContent") == "predict"
        assert page.run("document.querySelectorAll('#nodes .item').length") > 3
    assert page.complaints() == []


def test_a_large_graph_stays_quick(page, tmp_path):
    text = page_html.page("long", "", [page_html.View("all", whole.scene_of(long_graph(5000)), "long", "")])
    (tmp_path / "graph.html").write_text(text)
    page.open(tmp_path / "graph.html")
    page.run("document.querySelector('#stage').focus()")
    for _ in range(6):
        page.key("-", "-")
    assert page.run("document.querySelectorAll('#world *').length") < 20_000
    assert "v40" in page.run("document.querySelector('#cheap path').getAttribute('d')")
    spent = page.run("""(async () => {
        const start = performance.now();
        for (let n = 0; n < 30; n++) {
            document.querySelector('#stage').dispatchEvent(new WheelEvent('wheel', {deltaY: n % 2 ? 90 : -90}));
            await new Promise(requestAnimationFrame);
        }
        return (performance.now() - start) / 30;
    })()""")
    assert spent < 400, f"{spent} ms for a frame"
    assert page.complaints() == []


# -- colors -------------------------------------------------------------------------------------------
def _luminance(color: str) -> float:
    parts = [int(color[n:n + 2], 16) / 255 for n in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a: str, b: str) -> float:
    """As WCAG 2 defines it."""
    high, low = sorted([_luminance(a), _luminance(b)], reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_texts_can_be_read_on_all_grounds():
    style = (ROOT / "tracer" / "page" / "page.css").read_text()
    blocks = re.findall(r"color-scheme: (light|dark);(.*?)\}", style, re.DOTALL)
    assert [name for name, _ in blocks] == ["light", "dark", "dark"]
    assert re.findall(r"--[\w-]+: #\w+", blocks[1][1]) == re.findall(r"--[\w-]+: #\w+", blocks[2][1])
    for name, block in blocks[:2]:
        colors = dict(re.findall(r"--([\w-]+): (#\w{6})", block))
        fills = ["elementwise", "reduction", "structured", "view", "data", "input", "output", "python", "control",
                 "random", "kernel", "frame", "region", "sheet", "ground"]
        for fill in fills:
            assert contrast(colors["ink"], colors[fill]) >= 7, (name, fill)
            assert contrast(colors["soft"], colors[fill]) >= 4.5, (name, fill)
        assert contrast(colors["accent"], colors["sheet"]) >= 4.5
        assert contrast(colors["hot"], colors["frame"]) >= 4.5
