"""What a client is told instead of a result, and with which status."""

from __future__ import annotations

__all__ = ["Refusal"]


class Refusal(Exception):
    """A request gets no result.

    Attributes:
        status: of HTTP.
        text: of the error, in the body.
        headers: of the response, besides its own.
    """

    def __init__(self, status: int, text: str, headers: dict[str, str] | None = None) -> None:
        self.status, self.text, self.headers = status, text, headers or {}
        super().__init__(self.status, self.text, self.headers)

    def __str__(self) -> str:
        return self.text
