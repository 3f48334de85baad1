"""Fixtures of the client's tests."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.client.fake_api import FakeApi


@pytest.fixture
def api() -> Iterator[FakeApi]:
    """A server that answers as the test says."""
    with FakeApi() as server:
        yield server


@pytest.fixture
def _at_the_api(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands ask that server if nothing names another one."""
    monkeypatch.setenv("PARALLELRUN_URL", api.url)
    monkeypatch.setenv("PARALLELRUN_TOKEN", "canary")


@pytest.fixture(autouse=True)
def _no_cluster_but_the_tests_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What runs on the developer's machine must not affect tests."""
    for name in ("PARALLELRUN_URL", "PARALLELRUN_TOKEN", "REDIS_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def processes_about(folder: Path) -> dict[int, str]:
    """The processes that have this folder in their environment, as all parts of a cluster of a test have."""
    processes = {}
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if int(path.name) != os.getpid() and os.fsencode(folder) in (path / "environ").read_bytes():
                processes[int(path.name)] = (path / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
    return processes


def wait_until_gone(folder: Path, *, within_s: float) -> None:
    """Wait for the end of all processes about a folder; fails if some remain."""
    deadline = time.monotonic() + within_s
    while left := processes_about(folder):
        assert time.monotonic() < deadline, left
        time.sleep(0.02)
