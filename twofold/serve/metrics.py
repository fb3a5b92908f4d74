"""What Prometheus reads at `/metrics`."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["Metrics"]

_ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class Metrics:
    """Counters of one server.

    Labels take few values: names of models that are there, versions, verbs and statuses.
    """

    def __init__(self) -> None:
        from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

        self.registry = registry = CollectorRegistry()
        self.requests = Counter("twofold_requests", "Requests that were answered", ["model", "verb", "status"],
                                registry=registry)
        self.seconds = Histogram("twofold_request_seconds", "From the head of a request to its response",
                                 ["model", "verb"], registry=registry, buckets=_SECONDS)
        self.inside = Gauge("twofold_requests_inside", "Requests being read, waiting or running", registry=registry)
        self.calls = Counter("twofold_calls", "Calls of models, each for one request or several", ["model"],
                             registry=registry)
        self.joined = Histogram("twofold_call_requests", "Requests that a call served", ["model"], registry=registry,
                                buckets=_ROWS)
        self.rows = Histogram("twofold_call_rows", "Rows of a call whose requests may be joined", ["model"],
                              registry=registry, buckets=_ROWS)
        self.available = Gauge("twofold_model_available", "1 for each version that is served", ["model", "version"],
                               registry=registry)
        self.loads = Counter("twofold_model_loads", "Versions that were loaded, or failed to", ["model", "outcome"],
                             registry=registry)

    def show(self, versions: Iterable[tuple[str, int]]) -> None:
        """The versions that are served now."""
        self.available.clear()
        for model, version in versions:
            self.available.labels(model, str(version)).set(1)

    def text(self) -> bytes:
        """All of it in Prometheus's text format."""
        from prometheus_client import generate_latest
        return generate_latest(self.registry)
