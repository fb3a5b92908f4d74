"""The ASGI application: routes, limits and deadlines.

    GET  /v1/models/NAME[/versions/N|/labels/L]                 status
    GET  /v1/models/NAME[/versions/N|/labels/L]/metadata        signatures
    POST /v1/models/NAME[/versions/N|/labels/L]:VERB            predict, classify, regress
    GET  /healthz, /readyz                                      alive; ready to serve
    GET  /metrics, /monitoring/prometheus/metrics               for Prometheus

Every error is a JSON object `{"error": "..."}` with a status that fits it.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
from collections.abc import Awaitable, Callable
from typing import Any

from twofold.ir.errors import InvalidArgumentError, OpError, OutOfRangeError

from .batching import Runner
from .metrics import Metrics
from .models import Models
from .protocol import VERBS, metadata, parse
from .refusals import Refusal
from .settings import Settings
from .tensors import document_of

__all__ = ["Service"]

_LOG = logging.getLogger("twofold.serve")
_PATH = re.compile(r"(?P<name>[^/:]{1,128})(?:/versions/(?P<version>[0-9]{1,18})|/labels/(?P<label>[^/:]{1,128}))?"
                   r"(?:(?P<metadata>/metadata)|:(?P<verb>[A-Za-z]{1,32}))?")
_DISCARDED = 8  # times the allowed size of a body, up to which one that is too large is read and dropped
_BLAMELESS = (InvalidArgumentError, OutOfRangeError)  # what the values of a request bring about


class Service:
    """Answers requests.

    Args:
        models: to serve.
        settings: limits and deadlines.
        metrics: to count in.
        runner: to run models.
    """

    def __init__(self, models: Models, settings: Settings, metrics: Metrics, runner: Runner) -> None:
        self.models, self.settings, self.metrics, self.runner = models, settings, metrics, runner
        self.inside = 0
        self.stopping = False

    def application(self) -> Any:
        """The ASGI application."""
        from starlette.applications import Starlette
        from starlette.exceptions import HTTPException
        from starlette.routing import Route

        def refused(request: Any, error: Any) -> Any:
            return self._response({"error": f"{error.detail}: {request.method} {request.url.path}"[:300]},
                                  error.status_code, dict(error.headers or {}))
        own = ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"]
        made = Starlette(routes=[
            Route("/v1/models/{path:path}", self._model, methods=own),
            Route("/healthz", self._health), Route("/readyz", self._ready),
            Route("/metrics", self._metrics), Route("/monitoring/prometheus/metrics", self._metrics),
        ], exception_handlers={HTTPException: refused})
        made.router.redirect_slashes = False
        return made

    def _response(self, document: Any, status: int = 200, headers: dict[str, str] | None = None) -> Any:
        from starlette.responses import Response

        closing = {"connection": "close"} if self.stopping else {}
        return Response(json.dumps(document), status, {**closing, **(headers or {})}, "application/json")

    # -- about the server -------------------------------------------------------------------------
    async def _health(self, request: Any) -> Any:
        return self._response({"status": "alive"})

    async def _ready(self, request: Any) -> Any:
        if self.stopping:
            return self._response({"error": "the server is stopping"}, 503)
        if not self.models.ready():
            return self._response({"error": "not every model has an available version"}, 503)
        return self._response({"status": "ready"})

    async def _metrics(self, request: Any) -> Any:
        from starlette.responses import Response
        return Response(self.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    # -- about models -----------------------------------------------------------------------------
    async def _model(self, request: Any) -> Any:
        begun = time.perf_counter()
        parts = _PATH.fullmatch(request.path_params["path"])
        verb = "" if parts is None else parts["verb"] or ("metadata" if parts["metadata"] else "status")
        try:
            response = await self._answer(request, parts, verb)
        except Refusal as refusal:
            response = self._response({"error": refusal.text}, refusal.status, refusal.headers)
        except Exception as error:  # noqa: BLE001  a client learns that there was one, the log which
            _LOG.exception("a request failed")
            response = self._response({"error": f"internal error: {type(error).__name__}"}, 500)
        name = parts["name"] if parts and parts["name"] in self.models.models else ""
        verb = verb if verb in VERBS or verb in ("metadata", "status") else ""
        self.metrics.requests.labels(name, verb, str(response.status_code)).inc()
        self.metrics.seconds.labels(name, verb).observe(time.perf_counter() - begun)
        return response

    async def _answer(self, request: Any, parts: re.Match[str] | None, verb: str) -> Any:
        if parts is None:
            raise Refusal(404, f"no such path: {request.url.path}"[:300])
        method = "POST" if parts["verb"] else "GET"
        if parts["verb"] and verb not in VERBS:
            raise Refusal(404, f"there is no verb {verb!r}; there is {', '.join(VERBS)}")
        if request.method not in (method, "HEAD" if method == "GET" else method):
            raise Refusal(405, f"{request.method} is not allowed here; {method} is", {"allow": method})
        if parts["verb"]:
            return await self._admitted(lambda: self._call(request, parts, verb))
        model = self.models.get(parts["name"])
        if parts["metadata"]:
            version = model.version(parts["version"], parts["label"])
            assert version.servable is not None
            return self._response(metadata(model.name, version.number, version.servable))
        return self._response(self._status(model, parts))

    def _status(self, model: Any, parts: re.Match[str]) -> Any:
        versions = sorted(model.versions.values(), key=lambda v: -v.number)
        if parts["version"] or parts["label"]:
            number = int(parts["version"]) if parts["version"] else model.labels.get(parts["label"])
            versions = [v for v in versions if v.number == number]
            if not versions:
                raise Refusal(404, f"model {model.name} has no such version")
        return {"model_version_status": [
            {"version": str(v.number), "state": v.state, "status": {
                "error_code": "UNKNOWN" if v.error else "OK", "error_message": v.error}} for v in versions]}

    async def _admitted(self, work: Callable[[], Awaitable[Any]]) -> Any:
        """Does the work if the server is not full."""
        if self.inside >= self.settings.queue:
            raise Refusal(429, f"{self.inside} requests are in the server already; come again", {"retry-after": "1"})
        self.inside += 1
        self.metrics.inside.set(self.inside)
        try:
            return await work()
        finally:
            self.inside -= 1
            self.metrics.inside.set(self.inside)

    async def _call(self, request: Any, parts: re.Match[str], verb: str) -> Any:
        """Reads, runs and answers a request within its time."""
        model = self.models.get(parts["name"])
        servable = model.version(parts["version"], parts["label"]).servable
        assert servable is not None
        reading = True
        try:
            async with asyncio.timeout(self.settings.timeout):
                body = await self._body(request)
                reading = False
                call = parse(verb, *document_of(body, self.settings.nan), servable)
                results = await self._run(model.name, call)
        except TimeoutError:
            told = "the request was not sent" if reading else "there was no result"
            raise Refusal(408 if reading else 504, f"{told} within {self.settings.timeout:g} seconds") from None
        return self._response(call.answer(results))

    async def _run(self, model: str, call: Any) -> Any:
        try:
            return await self.runner.run(model, call.function, call.arrays)
        except _BLAMELESS as error:
            raise Refusal(400, str(error.message)[:2000]) from None
        except OpError as error:
            _LOG.warning("model %s failed: %s", model, error.message)
            raise Refusal(500, str(error.message)[:2000]) from None
        except ValueError as error:  # sizes that do not fit one another
            raise Refusal(400, str(error)[:2000]) from None

    async def _body(self, request: Any) -> bytes:
        """The body, as far as it is allowed to be long."""
        from starlette.requests import ClientDisconnect

        if request.headers.get("content-encoding", "identity").lower() != "identity":
            raise Refusal(415, "bodies must not be compressed", {"accept-encoding": "identity"})
        limit, length, chunks = self.settings.body, 0, []
        try:
            async for chunk in request.stream():
                length += len(chunk)
                if length > limit * _DISCARDED:
                    break
                if length <= limit:
                    chunks.append(chunk)
                else:
                    chunks.clear()
        except ClientDisconnect:
            raise Refusal(400, "the client is gone") from None
        if length > limit:
            raise Refusal(413, f"the body is longer than {limit} bytes")
        return b"".join(chunks)
