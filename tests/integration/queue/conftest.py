"""A fresh job for each test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.integration.queue.desk import Desk

if TYPE_CHECKING:
    from redis import Redis


@pytest.fixture
def desk(redis: Redis) -> Desk:
    """A job that is processing, led by `desk.leader`."""
    return Desk(redis)
