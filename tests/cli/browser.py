"""A browser without a window, for tests of pages: Chromium, driven through its own protocol over two pipes.

Nothing but the standard library and the browser itself is needed. The browser gets no network: every name resolves to
nowhere, so that a page that asked for anything would fail to load it; a test may except this machine.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome", "headless_shell")
_FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
          "--disable-component-update", "--disable-sync", "--hide-scrollbars", "--mute-audio",
          "--window-size=1400,900", "--disable-dev-shm-usage",
          "--remote-debugging-pipe")


def find() -> str | None:
    """The browser of this machine."""
    chosen = os.environ.get("TWOFOLD_BROWSER")
    return chosen or next((path for name in NAMES if (path := shutil.which(name))), None)


class Page:
    """One open page."""

    def __init__(self, read: int, write: int) -> None:
        self._read, self._write, self._rest, self._count = read, write, b"", 0
        self.events: list[dict[str, Any]] = []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session: str | None = None
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.send(f"{domain}.enable")
        self.prefer("light")

    _session: str | None = None

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        """The result of a command."""
        self._count += 1
        message = {"id": self._count, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._count:
                assert "error" not in answer, answer
                return answer["result"]
            self.events.append(answer)

    def _next(self, seconds: float = 60.0) -> dict[str, Any]:
        end = time.monotonic() + seconds
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._read], [], [], max(end - time.monotonic(), 0))
            assert ready, "the browser does not answer"
            part = os.read(self._read, 1 << 20)
            assert part, "the browser has ended"
            self._rest += part
        text, _, self._rest = self._rest.partition(b"\0")
        return json.loads(text)

    def open(self, path: Path | str) -> None:
        """Load a file, or an address, and wait until it is there."""
        self.events.clear()
        self.send("Page.navigate", url=path if isinstance(path, str) else path.resolve().as_uri())
        while not any(e.get("method") == "Page.loadEventFired" for e in self.events):
            self.events.append(self._next())
        self.settle()

    def until(self, script: str, seconds: float = 60.0) -> Any:
        """The value of an expression, as soon as it is true."""
        end = time.monotonic() + seconds
        while not (actual := self.run(script)):
            if time.monotonic() > end:
                raise TimeoutError(f"not within {seconds:.0f} seconds: {script}")
            time.sleep(0.1)
        return actual

    def settle(self) -> None:
        """Wait for two frames."""
        self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def run(self, script: str) -> Any:
        """The value of an expression, a promise's when it comes."""
        actual = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in actual, actual["exceptionDetails"]
        return actual["result"].get("value")

    @contextlib.contextmanager
    def inside_frame(self) -> Iterator[None]:
        """What is run within the block runs in the frame of the page, which is a target of its own."""
        outer = self._session
        while not (actual := [e for e in self.events if e.get("method") == "Target.attachedToTarget"]):
            self.events.append(self._next())
        self._session = actual[-1]["params"]["sessionId"]
        try:
            self.settle()
            yield
        finally:
            self._session = outer

    def click(self, x: float, y: float, times: int = 1) -> None:
        """Press and lift the mouse at a place of the window."""
        for count in range(1, times + 1):
            for kind in ("mousePressed", "mouseReleased"):
                self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=count)
        self.settle()

    def click_on(self, script: str) -> None:
        """Click on the middle of the element that an expression gives."""
        x, y = self.run(f"(() => {{ const b = ({script}).getBoundingClientRect(); "
                        "return [b.x + b.width / 2, b.y + b.height / 2]; })()")
        self.click(x, y)

    def drag(self, points: Sequence[tuple[float, float]], finger: bool = False) -> None:
        """Move the pressed mouse, or a finger, along places of the window."""
        kinds = ["mousePressed", *["mouseMoved"] * (len(points) - 1), "mouseReleased"]
        for kind, (x, y) in zip(kinds, [*points, points[-1]], strict=True):
            if finger:
                kind = {"mousePressed": "touchStart", "mouseMoved": "touchMove", "mouseReleased": "touchEnd"}[kind]
                self.send("Input.dispatchTouchEvent", type=kind,
                          touchPoints=[] if kind == "touchEnd" else [{"x": x, "y": y}])
            else:
                self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=1, clickCount=1)
        self.settle()

    def key(self, name: str, text: str = "") -> None:
        """Press and lift a key."""
        for kind in ("keyDown", "keyUp"):
            self.send("Input.dispatchKeyEvent", type=kind, key=name, text=text if kind == "keyDown" else "")
        self.settle()

    def type(self, text: str) -> None:
        """Type into what has the focus."""
        self.send("Input.insertText", text=text)
        self.settle()

    def wheel(self, x: float, y: float, by: float) -> None:
        """Turn the mouse's wheel."""
        self.send("Input.dispatchMouseEvent", type="mouseWheel", x=x, y=y, deltaX=0, deltaY=by)
        self.settle()

    def prefer(self, colors: str) -> None:
        """The user prefers "light" or "dark" colors, and that nothing moves by itself."""
        self.send("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": colors}, {"name": "prefers-reduced-motion", "value": "reduce"}])

    def shot(self, path: Path) -> None:
        """A PNG picture of the window."""
        path.write_bytes(base64.b64decode(self.send("Page.captureScreenshot")["data"]))

    def complaints(self) -> list[str]:
        """What went wrong on the page: exceptions, errors in the console, what it asked the network for."""
        actual = []
        for event in self.events:
            method, params = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                actual.append(json.dumps(params["exceptionDetails"])[:500])
            elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
                actual.append(params["entry"]["text"])
            elif method == "Network.requestWillBeSent" and not params["request"]["url"].startswith("file:"):
                actual.append(f"asked for {params['request']['url']}")
        return actual


@contextlib.contextmanager
def opened(program: str, reach: str = "") -> Iterator[Page]:
    """A page of a browser that ends with the block.

    Args:
        reach: a host that it may reach.
    """
    rules = "MAP * ~NOTFOUND" + (f", EXCLUDE {reach}" if reach else "")
    ours, theirs = os.pipe(), os.pipe()  # what we write; what we read
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:

        def wire() -> None:
            os.dup2(ours[0], 103)
            os.dup2(theirs[1], 104)
            os.dup2(103, 3)
            os.dup2(104, 4)

        running = subprocess.Popen([program, *_FLAGS, f"--host-resolver-rules={rules}",
                                    f"--user-data-dir={folder}"], preexec_fn=wire, pass_fds=(3, 4),
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(ours[0])
        os.close(theirs[1])
        try:
            yield Page(theirs[0], ours[1])
        finally:
            os.close(ours[1])
            os.close(theirs[0])
            running.terminate()
            running.wait(20)
