"""Workers that end with their test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.integration.worker.worker_harness import WorkerHarness


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., WorkerHarness]]:
    """Start a worker with this entry script."""
    started: list[WorkerHarness] = []

    def begin(script: str, **options: object) -> WorkerHarness:
        harness = WorkerHarness(tmp_path / f"worker{len(started)}", script, **options)  # type: ignore[arg-type]
        started.append(harness)
        return harness

    yield begin
    for harness in started:
        harness.close()
