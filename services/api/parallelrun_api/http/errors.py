"""Errors of HTTP, beside those in `parallelrun_core.errors`, and declared as these."""

from __future__ import annotations

from parallelrun_core.errors import ParallelRunError


class HttpError(ParallelRunError):
    """The request can't be answered."""

    def __init__(self, message: str = "", *, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.headers = headers or {}


class Forbidden(HttpError, code="cross_origin", http_status=403):
    """This request comes from a page of another origin."""


class NotAnOperator(HttpError, code="not_an_operator", http_status=403):
    """The request is for those who run the cluster."""


class KeyInFlight(HttpError, code="idempotency_key_in_flight", http_status=409, retryable=True):
    """The first request with this Idempotency-Key is still in progress."""


class BodyTooLarge(HttpError, code="body_too_large", http_status=413):
    """The request body is too large."""


class UnsupportedMediaType(HttpError, code="unsupported_media_type", http_status=415):
    """The body has an unsupported format."""


class RangeNotSatisfiable(HttpError, code="range_not_satisfiable", http_status=416):
    """The file has no such bytes."""


class Misdirected(HttpError, code="misdirected", http_status=421):
    """The Host header names another server."""


class KeyReused(HttpError, code="idempotency_key_reused", http_status=422):
    """This Idempotency-Key was used for a different request."""


class TooManyReads(HttpError, code="too_many_reads", http_status=429, retryable=True):
    """Too many lists that take long are being made."""


class TooManyStreams(HttpError, code="too_many_streams", http_status=429, retryable=True):
    """Too many clients are watching jobs."""


class Crowded(HttpError, code="crowded", http_status=503, retryable=True):
    """Too many requests are being answered."""
