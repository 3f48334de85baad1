"""A monitor of a node's use that takes two samples."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from parallelrun_agent.node import monitor
from parallelrun_agent.node.monitor import ResourceMonitor


def sample_twice(
    folder: Path, workers: dict[str, int], monkeypatch: pytest.MonkeyPatch, *, gpus: Sequence[str] = ()
) -> None:
    """Monitor workers until the first sample was taken; stopping takes the last one."""
    monkeypatch.setattr(monitor, "_FIRST_SAMPLE_S", 0.0)
    is_sampled = threading.Event()

    def pids() -> dict[str, int]:
        is_sampled.set()
        return workers

    watching = ResourceMonitor(folder, 600, pids, gpus=gpus)
    assert is_sampled.wait(60)
    watching.stop()
