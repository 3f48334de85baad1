"""Examination of a server, for those who want to know why something doesn't work. Nothing is written."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from redis.exceptions import AuthenticationError, NoPermissionError, ResponseError

from parallelrun_core.store.connection import connect
from parallelrun_core.store.errors import CONNECTION_ERRORS, RedisError
from parallelrun_core.store.fitness import unfit

_SECRETS = frozenset({"username", "password"})


@dataclass(frozen=True, kw_only=True)
class Examined:
    """A server that answers."""

    version: str
    problems: list[str]
    """Why it isn't fit to keep jobs (see `fitness.unfit`)."""
    is_open: bool
    """True if anybody who reaches it may do anything: its default user has no password."""
    ahead_s: float
    """Seconds that its clock is ahead of ours; negative: behind."""


def examine(url: str, *, timeout_s: float) -> Examined:
    """Ask a server what it is like.

    Raises:
        ValueError: the URL has no scheme that redis-py knows.
        RedisError: one of `CONNECTION_ERRORS` when it is away, or doesn't let us in.
    """
    with connect(url, timeout_s=timeout_s) as client:
        before = time.time()
        seconds, micros = client.time()
        ours = (before + time.time()) / 2
        try:
            info: dict[str, Any] = client.info()
            problems = unfit(info, may_forget=False)
            version = str(info.get("valkey_version") or info["redis_version"])
        except NoPermissionError:
            problems, version = ["INFO is not permitted, so nothing says whether it keeps its data"], "unknown"
    return Examined(
        version=version,
        problems=problems,
        is_open=_lets_in(_without_credentials(url), timeout_s),
        ahead_s=seconds + micros / 1e6 - ours,
    )


def _lets_in(url: str, timeout_s: float) -> bool:
    try:
        with connect(url, timeout_s=timeout_s) as client:
            client.ping()
            client.dbsize()
    except (AuthenticationError, NoPermissionError, ResponseError, *CONNECTION_ERRORS, RedisError):
        return False
    return True


def _without_credentials(url: str) -> str:
    parts = urlsplit(url)
    query = urlencode([(name, value) for name, value in parse_qsl(parts.query) if name not in _SECRETS])
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}{query and f'?{query}'}"  # unix:///path stays that
