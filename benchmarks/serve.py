"""Measure `twofold serve`: requests a second and their times beside ONNX Runtime, memory over time, bad bodies.

    python benchmarks/serve.py load                    requests a second, p50 and p99, by how many clients there are
    python benchmarks/serve.py soak --seconds 600      memory of the server while it is under load
    python benchmarks/serve.py malformed --count 5000  bodies that make no sense, each of which must give a 4xx

The model is the digits classifier of `benchmarks/deploy.py`: 64 pixels, 128 hidden units, 10 classes; a request has one
image. Clients are connections of one other process, each of which sends its next request when it has the response to
the one before. ONNX Runtime answers the same requests behind the same server: one function is exchanged, which runs a
session of one thread instead of the saved model; results are compared first. It is optional: the interpreter that
TWOFOLD_BENCH_PYTHON_ONNXRUNTIME names, by default this one, must have twofold with its extra `serve`, `onnx` and
`onnxruntime`. Servers take turns, round after round; the table has the medians of rounds.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import platform
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tests" / "serve")]

import deploy  # noqa: E402  it lies beside this file

PEER = deploy.PEER
CLIENTS = (1, 16, 64)


# -- servers ------------------------------------------------------------------------------------------
def save(folder: Path) -> None:
    """The saved model, as version 1 of `net`, and its weights for the peer."""
    import twofold as tf

    values = deploy.weights()
    w1, b1, w2, b2 = (tf.Variable(v, name=name) for name, v in values.items())

    @tf.function(input_signature=[tf.TensorSpec([None, 64], tf.float32, "x")])
    def predict(x: Any) -> Any:
        return {"scores": tf.nn.softmax(tf.nn.relu(x @ w1 + b1) @ w2 + b2)}
    module = tf.Module()
    module.values, module.predict = [w1, b1, w2, b2], predict
    tf.saved_model.save(module, folder / "net" / "1", signatures=predict)
    np.savez(folder / "weights.npz", **values)


def serve_peer(path: str) -> None:
    """Serves the same model by ONNX Runtime, behind the same server; run in the peer's interpreter."""
    import onnxruntime

    from twofold.ir.dtypes import float32
    from twofold.serve.app import Service
    from twofold.serve.batching import Runner
    from twofold.serve.metrics import Metrics
    from twofold.serve.models import AVAILABLE, Model, Models, Version
    from twofold.serve.servable import Function, Servable, TensorInfo
    from twofold.serve.server import listening, serve
    from twofold.serve.settings import Settings

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, ["CPUExecutionProvider"])
    function = Function([TensorInfo("x", float32, (None, 64))], [TensorInfo("scores", float32, (None, 10))],
                        lambda arrays: session.run(None, {"x": arrays[0]}), True)
    metrics, settings = Metrics(), Settings()
    models = Models(Path(path).parent, None, metrics)
    version = Version(1, AVAILABLE, (), Servable({"serving_default": function}, "peer"))
    models.models = {"net": Model("net", {1: version})}
    service = Service(models, settings, metrics, Runner(settings.workers, settings.rows, settings.window, metrics))
    bound = listening("127.0.0.1", 0)
    serve(service, bound, settings, lambda: print(f"serving at :{bound.getsockname()[1]}", flush=True))


@contextlib.contextmanager
def running(command: list[Any]) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A server in a process of its own, and its port."""
    process = subprocess.Popen([str(c) for c in command], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        line = process.stdout.readline().strip()
        if not line.startswith("serving at"):
            raise OSError("the server did not start")
        yield process, int(line.rsplit(":", 1)[1])
        process.send_signal(signal.SIGTERM)
        process.wait(60)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def ours(folder: Path, *options: str) -> list[Any]:
    """The command of our server."""
    return [sys.executable, "-m", "twofold", "serve", folder, "--port", "0", *options]


# -- clients ------------------------------------------------------------------------------------------
def _message(path: str, body: bytes) -> bytes:
    return (f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body)}\r\n\r\n").encode() + body


async def _exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, message: bytes) -> tuple[int, bytes]:
    """Status and body of the response."""
    writer.write(message)
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
    return int(head[9:12]), await reader.readexactly(length)


async def _client(port: int, message: bytes, until: float, seconds: list[float]) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while (begun := time.perf_counter()) < until:
        status, body = await _exchange(reader, writer, message)
        if status != 200:
            raise OSError(f"status {status}: {body[:200]!r}")
        seconds.append(time.perf_counter() - begun)
    writer.close()


def image() -> list[list[float]]:
    """What a request holds."""
    return [[round(float(v), 4) for v in np.random.default_rng(1).random(64)]]


async def _clients(port: int, count: int, duration: float) -> dict[str, float]:
    message = _message("/v1/models/net:predict", json.dumps({"instances": image()}).encode())
    seconds: list[float] = []
    begun = time.perf_counter()
    await asyncio.gather(*[_client(port, message, begun + duration, seconds) for _ in range(count)])
    ordered = np.sort(seconds)
    return {"requests": len(seconds), "per_second": len(seconds) / (time.perf_counter() - begun),
            "p50": float(np.quantile(ordered, 0.5)), "p99": float(np.quantile(ordered, 0.99))}


def ask(port: int, count: int, duration: float) -> dict[str, float]:
    """Requests a second and their times, of clients in a process of their own."""
    done = subprocess.run([sys.executable, __file__, "clients", str(port), str(count), str(duration)],
                          capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def answer(port: int) -> np.ndarray[Any, Any]:
    """The scores of the image."""
    async def once() -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        body = json.dumps({"instances": image()}).encode()
        given = (await _exchange(reader, writer, _message("/v1/models/net:predict", body)))[1]
        writer.close()
        return given
    return np.array(json.loads(asyncio.run(once()))["predictions"])


# -- what is measured ---------------------------------------------------------------------------------
def load(rounds: int, duration: float) -> None:
    """Prints a table of all servers, by number of clients."""
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        save(folder)
        servers = {"twofold": stack.enter_context(running(ours(folder)))}
        if deploy.peer(folder)[1] is not None:
            command = [PEER, __file__, "peer", folder / "digits.onnx"]
            servers["onnxruntime"] = stack.enter_context(running(command))
        scores = [answer(port) for _, port in servers.values()]
        assert all(np.allclose(s, scores[0], rtol=1e-5, atol=1e-7) for s in scores), scores
        samples: dict[tuple[str, int], list[dict[str, float]]] = {}
        for _, port in servers.values():
            ask(port, 4, 1.0)
        for _ in range(rounds):
            for count in CLIENTS:
                for server, (process, port) in servers.items():
                    before = _worked(process)
                    taken = ask(port, count, duration)
                    work = (_worked(process) - before) / taken["requests"]
                    samples.setdefault((server, count), []).append({**taken, "work": work})
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores; {rounds} rounds of {duration:g} s, "
          f"load average {os.getloadavg()[0]:.1f}\n")
    print("| clients | server | requests a second | p50 | p99 | processor time a request |",
          "| --- | --- | --- | --- | --- | --- |", sep="\n")
    for (server, count), taken in sorted(samples.items(), key=lambda item: (item[0][1], item[0][0] != "twofold")):
        rate, p50, p99, work = (statistics.median(s[key] for s in taken)
                                for key in ("per_second", "p50", "p99", "work"))
        print(f"| {count} | {server} | {rate:,.0f} | {p50 * 1e3:.2f} ms | {p99 * 1e3:.2f} ms | {work * 1e6:.0f} us |")


def _worked(process: subprocess.Popen[str]) -> float:
    """Seconds that processors have worked for a process."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _resident(process: subprocess.Popen[str]) -> float:
    """Megabytes of a process that are in memory."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def soak(duration: float, reload: float) -> None:
    """Prints the server's memory ten times while it is under load; it may be given a new version now and then."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        save(folder)
        with running(ours(folder, "--latest", "1")) as (process, port):
            ask(port, 16, min(5.0, duration))
            begun, version, total = time.monotonic(), 1, 0.0
            print(f"at   0 %: {_resident(process):.1f} MB")
            for part in range(1, 11):
                end = begun + duration * part / 10
                while (left := end - time.monotonic()) > 0.05:
                    span = min(left, reload or left)
                    total += ask(port, 16, span)["per_second"] * span
                    if reload:
                        version += 1
                        (folder / "net" / str(version - 1)).rename(folder / "net" / str(version))
                print(f"at {part * 10:3d} %: {_resident(process):.1f} MB", flush=True)
            print(f"{total:,.0f} requests in {duration:g} s, all with status 200"
                  + (f"; {version - 1} new versions" if reload else ""))


def malformed(count: int, seed: int) -> None:
    """Sends bodies that make no sense; each must be refused, and the server go on."""
    from malformed import bodies

    statuses: dict[int, int] = {}

    async def send(port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for body, path in bodies(seed, count):
            status, given = await _exchange(reader, writer, _message(path, body))
            statuses[status] = statuses.get(status, 0) + 1
            assert 400 <= status < 500 and set(json.loads(given)) == {"error"}, (status, body[:500])
        writer.close()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        save(folder)
        with running(ours(folder)) as (_, port):
            asyncio.run(send(port))
            assert answer(port).shape == (1, 10)
    print(f"{count} bodies from seed {seed}: {statuses}")


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("load")
    command.add_argument("--rounds", type=int, default=3)
    command.add_argument("--seconds", type=float, default=4.0)
    command = commands.add_parser("soak")
    command.add_argument("--seconds", type=float, default=600.0)
    command.add_argument("--reload", type=float, default=0.0, help="give it a new version every so many seconds")
    command = commands.add_parser("malformed")
    command.add_argument("--count", type=int, default=5000)
    command.add_argument("--seed", type=int, default=1)
    commands.add_parser("peer").add_argument("model")
    command = commands.add_parser("clients")
    command.add_argument("port", type=int)
    command.add_argument("count", type=int)
    command.add_argument("seconds", type=float)
    args = parser.parse_args()
    if args.command == "load":
        load(args.rounds, args.seconds)
    elif args.command == "soak":
        soak(args.seconds, args.reload)
    elif args.command == "malformed":
        malformed(args.count, args.seed)
    elif args.command == "peer":
        serve_peer(args.model)
    else:
        print(json.dumps(asyncio.run(_clients(args.port, args.count, args.seconds))))


if __name__ == "__main__":
    main()
