"""Fixtures that every kind of test may use."""

from __future__ import annotations

import gc
import inspect
import os
import signal
import tempfile
from collections.abc import Iterator
from typing import TYPE_CHECKING

import httpx
import pytest
from hypothesis import HealthCheck, settings

from tests.redis_server import RedisServer

if TYPE_CHECKING:
    from redis import Redis

# How fast a busy machine draws examples says nothing about them. CI has the same examples each time, so that its result
# is about the change; developers get new ones with each run.
settings.register_profile(
    "shared-machine",
    deadline=None,
    derandomize=bool(os.environ.get("CI")),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("shared-machine")

# Of itself, httpx waits for five seconds. What is asked in a test on a busy machine may answer later.
_PATIENCE = inspect.signature(httpx.get).parameters["timeout"].default
_PATIENCE.connect = _PATIENCE.read = _PATIENCE.write = _PATIENCE.pool = 60.0

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as for `make test &` in a script: what tests start inherits it
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """Leave modules and tests, which stay until the end, out of every collection of garbage that follows.

    There are thousands, and tests that look for what was left open collect after each.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Whatever tests create with `tempfile` is in pytest's own folder of this run, and is removed with it.

    A run that passes leaves nothing. Of those that fail pytest keeps the last ones, and it removes what a killed one
    has left.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(tmp_path_factory.getbasetemp()))
        yield


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """The URL of a server that all tests of this run share; the fixture `redis` empties it before a test."""
    with RedisServer() as server:
        yield server.url


@pytest.fixture
def redis(redis_url: str) -> Iterator[Redis]:
    """A connection to the shared server, which is empty when the test begins."""
    from parallelrun_core.store.connection import connect

    with connect(redis_url) as client:
        client.flushall()
        yield client
