"""What becomes of requests while versions come, change and go, while a server is full, and when it stops."""

from __future__ import annotations

import contextlib
import http.client
import json
import shutil
import threading
import time

from serve.conftest import save
from serve.running import BODY, answer_of, serving, until


class Clients:
    """Threads that ask again and again until the block ends, or the server takes no connection any more.

    Attributes:
        answers: all statuses with their documents.
        lost: what went wrong after a connection was there.
    """

    def __init__(self, server, count=2):
        self.server, self.answers, self.lost, self.ended = server, [], [], threading.Event()
        self.threads = [threading.Thread(target=self._ask) for _ in range(count)]

    def _ask(self):
        while not self.ended.is_set():
            connection = self.server.connection()
            with contextlib.closing(connection):
                try:
                    connection.connect()
                except ConnectionRefusedError:
                    return
                try:
                    connection.request("POST", "/v1/models/net:predict", json.dumps(BODY).encode())
                    self.answers.append(answer_of(connection)[:2])
                except (OSError, http.client.HTTPException) as error:
                    self.lost.append(error)
            time.sleep(0.002)

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        for thread in self.threads:
            thread.join()


def test_versions_come_change_and_go_without_a_request_lost(tmp_path):
    folder = tmp_path / "net"
    save(folder / "1", 1.0)
    with serving(tmp_path, "--poll", "0.02", "--latest", "2") as server, Clients(server) as clients:
        def answer():
            return server.post("net:predict", BODY)

        def numbers():
            return [v["version"] for v in server.get("/v1/models/net")[1]["model_version_status"]
                    if v["state"] == "AVAILABLE"]
        first = answer()
        (folder / "2").mkdir()
        (folder / "2" / "manifest.json").write_text("{")  # cannot be loaded, and takes nobody's place
        until(lambda: len(server.get("/v1/models/net")[1]["model_version_status"]) == 2)
        assert (numbers(), answer()) == (["1"], first)
        shutil.rmtree(folder / "2")
        save(folder / "2", 2.0)
        until(lambda: answer() != first)
        second = answer()
        assert numbers() == ["2", "1"]
        (folder / "serve.json").write_text('{"labels": {"old": 1}}')
        until(lambda: server.post("net/labels/old:predict", BODY) == first)
        save(folder / "2", 3.0)  # in place
        until(lambda: answer() != second)
        changed = answer()
        save(folder / "3", 2.0)
        until(lambda: numbers() == ["3", "2"])
        assert answer() == second
        shutil.rmtree(folder / "3")
        until(lambda: answer() == changed)
        (tmp_path / "other" / "1").mkdir(parents=True)  # a copy whose manifest comes first, and all else later
        shutil.copy2(folder / "2" / "manifest.json", tmp_path / "other" / "1")
        until(lambda: "cannot" in str(server.get("/v1/models/other")[1]))
        shutil.copytree(folder / "2", tmp_path / "other" / "1", dirs_exist_ok=True)
        until(lambda: server.post("other:predict", BODY) == changed)
    assert clients.lost == [] and {status for status, _ in clients.answers} == {200}
    assert all(answer in [first, second, changed] for answer in clients.answers)


def inside(server):
    return server.metric("twofold_requests_inside")


def test_late_requests_are_told_so(models, begun):
    with serving(models, "--timeout", "0.2", "--batch-window", "1e6") as server:
        _, connection = begun(server)
        assert answer_of(connection)[0] == 408  # nothing more was sent
        assert server.post("net:predict", BODY)[0] == 504  # it waits for others to be joined with
        assert inside(server) == 0


def test_a_server_that_stops_finishes_what_it_has_begun(models, begun):
    with serving(models, "--drain", "0.2") as server, Clients(server) as clients:
        until(lambda: clients.answers)
        waiting = [begun(server)[0] for _ in range(3)]
        until(lambda: inside(server) >= 3)
        server.process.terminate()
        with contextlib.suppress(ConnectionRefusedError):
            until(lambda: server.get("/readyz")[0] == 503)
        for thread in clients.threads:
            thread.join()  # no connection is taken any more
        assert server.process.poll() is None
        answers = [finish() for finish in waiting]
        assert [status for status, *_ in answers] == [200] * 3
        assert answers[0][2]["connection"] == "close"
        assert server.process.wait(60) == 0
    assert clients.lost == [] and {status for status, _ in clients.answers} == {200}


def test_a_server_waits_only_so_long(models, begun):
    with serving(models, "--drain", "0", "--stop-timeout", "1") as server:
        begun(server)
        until(lambda: inside(server) == 1)
        assert server.stop() == 0


def test_a_second_signal_ends_it_at_once(models, begun):
    with serving(models, "--stop-timeout", "1000", "--drain", "1000") as server:
        begun(server)
        until(lambda: inside(server) == 1)
        server.process.terminate()
        until(lambda: server.get("/readyz")[0] == 503)
        assert server.stop() == 0
