"""The API of a cluster."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from email.utils import parsedate_to_datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Final

import msgspec

from parallelrun_core.wire.finding import Check, Finding, Place, bad, ok, warn

if TYPE_CHECKING:
    from parallelrun.client import Client
    from parallelrun.http.transport import Transport

_START: Final = "start it (`parallelrun up`, `make up`), or mend PARALLELRUN_URL"
_CLOCK_S: Final = 5.0
ANSWER_S: Final = 10.0
"""Seconds that an answer may take: a server on a machine that is fully at work is slow, and not broken."""


def api(place: Place) -> Iterator[Finding]:
    """Return whether it is there, lets us in, is ready, and is of our version."""
    if not place.url:
        yield ok("no cluster to ask: PARALLELRUN_URL is not set, and none of `parallelrun up` is running")
        return
    from parallelrun.errors import ConnectionFailed, ParallelRunError, Unauthorized

    try:
        with closing(_transport(place.url, place.token)) as transport:
            if not transport.is_answered("/livez", timeout_s=ANSWER_S):
                yield bad(f"{place.url} does not answer", _START)
                return
            request_time = time.time()
            with transport.stream("/v1/openapi.json") as answer:
                date, contract = answer.headers.get("Date", ""), answer.read()
            yield _version(place.url, contract)
            yield from _clock(date, request_time, time.time())
            if transport.is_answered("/readyz", timeout_s=ANSWER_S):
                yield ok("it takes jobs")
            else:
                yield bad("it can't take jobs now: it does not reach Redis, or its volume", "see its log")
    except Unauthorized:
        yield bad(f"{place.url} does not take this token", "set PARALLELRUN_TOKEN, or give --token")
    except ConnectionFailed as error:
        yield bad(str(error), "mend PARALLELRUN_URL or --url, as in http://127.0.0.1:8080")
    except ParallelRunError as error:
        yield bad(f"{place.url}: {error}", "see the log of the API")


def token(place: Place) -> Iterator[Finding]:
    if not place.url:
        return
    from parallelrun.errors import ConnectionFailed, ParallelRunError

    try:
        with closing(_transport(place.url, "")) as anonymous:
            anonymous.request("GET", "/v1/nodes", idempotent=False)
    except ConnectionFailed:
        return  # said by `api`
    except ParallelRunError:
        yield ok("nobody gets in without a token")
    else:
        yield bad("it takes jobs from anybody who can reach it: no token is required", "start it with a token")


def client_of(place: Place) -> Client:
    """Return a client of a server that waits for no answer for long, and asks once."""
    from parallelrun.client import Client
    from parallelrun.http.transport import RetryPolicy

    return Client(place.url, place.token, timeout_s=ANSWER_S, retry=RetryPolicy(attempts=1))


def _transport(url: str, token: str) -> Transport:
    from parallelrun.http.transport import RetryPolicy, Transport

    return Transport(url, token, timeout_s=ANSWER_S, retry=RetryPolicy(attempts=1))


def _version(url: str, contract: bytes) -> Finding:
    ours = version("parallelrun")
    try:
        theirs = str(msgspec.json.decode(contract)["info"]["version"])
    except (msgspec.DecodeError, KeyError, TypeError):
        return bad(f"{url} does not answer as a ParallelRun API", "mend PARALLELRUN_URL or --url")
    message = f"{url} answers with version {theirs}"
    return (
        ok(message) if theirs == ours else warn(f"{message}, this is {ours}", "install the same version here and there")
    )


def _clock(date: str, request_time: float, answer_time: float) -> Iterator[Finding]:
    """Compare the date of an answer with the time in which it came: on a machine at work, that is a while."""
    try:
        theirs = parsedate_to_datetime(date).timestamp()
    except ValueError:
        return
    ahead_s = max(0.0, theirs - answer_time) + min(0.0, theirs - request_time)
    if abs(ahead_s) > _CLOCK_S:
        yield warn(f"its clock is {ahead_s:+.0f} s ahead of ours", "use NTP on both machines")
    else:
        yield ok("its clock agrees with ours")


CHECKS: Final[tuple[Check, ...]] = (api, token)
