"""Fixtures of the attacks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster import Cluster


@pytest.fixture(scope="package", autouse=True)
def _programs() -> Iterator[None]:
    """Services are programs, whose environment with its secrets is in /proc: what is forked has none there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Cluster, "is_forked", False)
        yield
