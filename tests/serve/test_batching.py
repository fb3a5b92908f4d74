"""How requests are joined: which, in what order, and what becomes of those that fail or are given up."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from serve.running import BODY, serving, until

import twofold as tf
from twofold.serve.batching import Runner
from twofold.serve.metrics import Metrics
from twofold.serve.servable import Function


class Gate:
    """A function that notes the arrays that it is called with; a first element of -1 waits until the gate opens."""

    def __init__(self, joins=True):
        self.calls, self.opened, self.entered = [], threading.Event(), threading.Event()
        self.function = Function([], [], self.run, joins)

    def run(self, arrays):
        values = arrays[0].ravel().tolist()
        self.calls.append(values)
        if values[0] == -1:
            self.entered.set()
            self.opened.wait()
        if 13 in values:
            raise ValueError(f"{values}")
        return [arrays[0] * 10]


def row(*values):
    return [np.array([values])]


def during(gate, work, **options):
    """Runs `work(runner, submit)` while the one thread is at work in `gate`, and opens it; what was submitted gave."""
    async def main():
        runner = Runner(1, options.get("rows", 8), options.get("window", 0.0), Metrics())
        tasks = []

        def submit(other, arrays):
            tasks.append(asyncio.ensure_future(runner.run("m", other.function, arrays)))
            return tasks[-1]
        blocker = submit(gate, row(-1))
        await asyncio.to_thread(gate.entered.wait)
        await work(runner, submit)
        await asyncio.sleep(0)
        gate.opened.set()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert blocker.done() and runner.close()
        return [r if isinstance(r, BaseException) else r[0].tolist() for r in results[1:]]
    return asyncio.run(main())


def test_requests_that_wait_are_joined_up_to_the_rows_and_split_again():
    gate = Gate()

    async def work(runner, submit):
        for n in range(5):
            submit(gate, [np.full([2, 1], n)])
    results = during(gate, work, rows=6)
    assert results == [[[10 * n], [10 * n]] for n in range(5)]
    assert gate.calls == [[-1], [0, 0, 1, 1, 2, 2], [3, 3, 4, 4]]


def test_other_sizes_and_functions_that_mix_rows_are_not_joined():
    gate, apart = Gate(), Gate(joins=False)

    async def work(runner, submit):
        for n in range(2):
            submit(gate, row(n))
            submit(gate, row(n, n))
            submit(apart, row(n))
    assert during(gate, work) == [[[0]], [[0, 0]], [[0]], [[10]], [[10, 10]], [[10]]]
    assert gate.calls[1:] == [[0, 1], [0, 0, 1, 1]] and apart.calls == [[0], [1]]


def test_lines_take_turns():
    gate, other, order = Gate(joins=False), Gate(joins=False), []
    for line, name in ((gate, "a"), (other, "b")):
        line.function.run = lambda arrays, line=line, name=name: order.append(name) or line.run(arrays)

    async def work(runner, submit):
        for n in range(3):
            submit(gate, row(n))
        for n in range(2):
            submit(other, row(n))
    during(gate, work)
    assert order == ["a", "a", "b", "a", "b", "a"]


def test_a_request_that_fails_harms_no_other():
    gate = Gate()

    async def work(runner, submit):
        for n in (1, 13, 2):
            submit(gate, row(n))
    first, failed, last = during(gate, work)
    assert (first, last) == ([[10]], [[20]]) and str(failed) == "[13]"
    assert gate.calls == [[-1], [1, 13, 2], [1], [13], [2]]


@pytest.mark.parametrize("error", [StopIteration, SystemExit])
def test_whatever_a_model_raises_reaches_its_request_and_no_thread_is_lost(error):
    gate, other = Gate(), Gate()

    def fail(arrays):
        raise error
    other.function.run = fail

    async def work(runner, submit):
        submit(other, row(1))
        submit(gate, row(2))
    failed, result = during(gate, work)
    assert isinstance(failed, RuntimeError) and result == [[20]]


def test_results_without_a_row_for_each_row_are_made_again_one_by_one():
    gate = Gate()
    gate.function.run = lambda arrays: [gate.run(arrays)[0].sum(axis=0)]

    async def work(runner, submit):
        submit(gate, row(1))
        submit(gate, row(2))
    assert during(gate, work) == [[10], [20]]


def test_requests_that_are_given_up_do_not_run():
    gate = Gate()

    async def work(runner, submit):
        given_up = submit(gate, row(1))
        submit(gate, row(2))
        await asyncio.sleep(0)
        given_up.cancel()
    given_up, result = during(gate, work)
    assert isinstance(given_up, asyncio.CancelledError) and result == [[20]]
    assert gate.calls == [[-1], [2]]


def test_a_window_that_is_full_or_over():
    gate = Gate()

    async def work(runner, submit):
        gate.opened.set()
        await asyncio.gather(*[submit(gate, row(n)) for n in range(4)])  # full: it would last for minutes
        runner.window = 0.01
        await submit(gate, row(5))
    during(gate, work, rows=4, window=0.0)  # the gate's own request begins at once
    assert gate.calls[1:] == [[0, 1, 2, 3], [5]]


@pytest.fixture(scope="module")
def patient(models):
    """A server whose requests wait for four rows, for minutes."""
    with serving(models, "--batch-window", "1e6", "--batch-rows", "4", "--workers", "1", "--timeout", "1e4",
                 "--queue", "4") as running:
        yield running


def test_a_server_joins_requests_with_the_bits_of_direct_calls(models, patient):
    direct = tf.saved_model.load(models / "net" / "12").signatures["serving_default"]
    given = np.random.default_rng(5).standard_normal((4, 1, 4)).astype(np.float32)
    with ThreadPoolExecutor(4) as clients:
        for model, signature in (("net", "serving_default"), ("native", "predict")):
            body = [{"inputs": x.tolist(), "signature_name": signature} for x in given]
            answers = list(clients.map(lambda b, m=model: patient.post(f"{m}:predict", b), body))
            assert [status for status, _ in answers] == [200] * 4
            assert patient.metric(f'twofold_calls_total{{model="{model}"}}') == 1
            assert patient.metric(f'twofold_call_requests_sum{{model="{model}"}}') == 4
            assert patient.metric(f'twofold_call_rows_sum{{model="{model}"}}') == 4
            if model == "net":
                for x, (_, document) in zip(given, answers, strict=True):
                    expected = direct(x=tf.constant(x))["scores"].numpy()
                    assert np.array_equal(np.array(document["outputs"]).astype(np.float32), expected)


def test_what_mixes_rows_waits_for_nobody(patient):
    body = {"signature_name": "mixed", "inputs": [1.0, 4.0]}
    assert patient.post("net:predict", body) == (200, {"outputs": [-1.5, 1.5]})


def test_a_full_server_says_come_again(patient, begun):
    waiting = [begun(patient)[0] for _ in range(4)]
    until(lambda: patient.metric("twofold_requests_inside") == 4)
    status, document, headers = patient.request("POST", "/v1/models/net:predict", BODY)
    assert (status, list(document), headers["retry-after"]) == (429, ["error"], "1")
    assert patient.get("/healthz")[0] == 200  # which has no queue
    with ThreadPoolExecutor(4) as clients:
        assert [status for status, *_ in clients.map(lambda finish: finish(), waiting)] == [200] * 4
