"""A fresh job for each test, on each kind of server that is supported and installed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.integration.queue.job_on_redis import JobOnRedis
from tests.redis_server import RedisServer

if TYPE_CHECKING:
    from redis import Redis


@pytest.fixture(scope="session", params=["embedded", "redis-server"])
def redis_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """A server of each kind: the embedded Valkey, and this machine's Redis."""
    binary = None
    if request.param != "embedded":
        binary = shutil.which(request.param)
        if binary is None:
            pytest.skip(f"{request.param} is not installed (apt-get install redis-server)")
    with RedisServer(binary=binary) as server:
        yield server.url


@pytest.fixture
def job(redis: Redis) -> JobOnRedis:
    """A job that is processing, led by `job.leader`."""
    return JobOnRedis(redis)
