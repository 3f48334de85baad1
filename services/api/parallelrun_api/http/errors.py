"""Errors of HTTP; they extend the tree in `parallelrun_core.errors`.

ParallelRunError
└── HttpError
    ├── Forbidden               a page of another origin sent the request               403
    ├── NotAnOperator           the token may run jobs, and not change the cluster      403
    ├── KeyInFlight             the first request with this Idempotency-Key isn't done  409
    ├── BodyTooLarge            the body is over a limit                                413
    ├── UnsupportedMediaType    the body has an unsupported format                      415
    ├── RangeNotSatisfiable     the file has no such bytes                              416
    ├── Misdirected             the Host header names another server                    421
    ├── KeyReused               the Idempotency-Key was used for something else         422
    ├── TooManyReads            too many costly lists are being made                    429
    ├── TooManyStreams          too many clients are watching jobs                      429
    └── Crowded                 the rest of the server is kept for health and control   503
"""

from __future__ import annotations

from parallelrun_core.errors import ParallelRunError


class HttpError(ParallelRunError):
    """The request can't be answered."""

    def __init__(self, message: str = "", *, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.headers = headers or {}


class Forbidden(HttpError):
    """This request comes from a page of another origin."""

    code = "cross_origin"
    http_status = 403


class NotAnOperator(HttpError):
    """The request is for those who run the cluster."""

    code = "not_an_operator"
    http_status = 403


class KeyInFlight(HttpError):
    """The first request with this Idempotency-Key is still in progress."""

    code = "idempotency_key_in_flight"
    http_status = 409
    retryable = True


class BodyTooLarge(HttpError):
    """The request body is too large."""

    code = "body_too_large"
    http_status = 413


class UnsupportedMediaType(HttpError):
    """The body has an unsupported format."""

    code = "unsupported_media_type"
    http_status = 415


class RangeNotSatisfiable(HttpError):
    """The file has no such bytes."""

    code = "range_not_satisfiable"
    http_status = 416


class Misdirected(HttpError):
    """The Host header names another server."""

    code = "misdirected"
    http_status = 421


class KeyReused(HttpError):
    """This Idempotency-Key was used for a different request."""

    code = "idempotency_key_reused"
    http_status = 422


class TooManyReads(HttpError):
    """Too many lists that take long are being made."""

    code = "too_many_reads"
    http_status = 429
    retryable = True


class TooManyStreams(HttpError):
    """Too many clients are watching jobs."""

    code = "too_many_streams"
    http_status = 429
    retryable = True


class Crowded(HttpError):
    """Too many requests are being answered."""

    code = "crowded"
    http_status = 503
    retryable = True
