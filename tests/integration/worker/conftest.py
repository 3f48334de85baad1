"""Workers that end with their test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.integration.worker.bench import Bench


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Bench]]:
    """Start a worker with this entry script."""
    started: list[Bench] = []

    def begin(script: str, **options: object) -> Bench:
        bench = Bench(tmp_path / f"worker{len(started)}", script, **options)  # type: ignore[arg-type]
        started.append(bench)
        return bench

    yield begin
    for bench in started:
        bench.close()
