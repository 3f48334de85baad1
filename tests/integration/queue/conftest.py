"""A fresh job for each test, on each kind of server that is supported and installed."""

from __future__ import annotations

import gc
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.integration.queue.job_context import Led
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


@pytest.fixture
def led(redis: Redis, redis_url: str, tmp_path: Path) -> Iterator[Callable[..., Led]]:
    """Make a job for a leader."""
    yield lambda files, **options: Led(redis, redis_url, tmp_path, files, **options)
    gc.collect()  # a leader's open files are found here, and not in the middle of somebody else's test
