"""One API for most of the tests, with a Redis that is empty at the beginning of each."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tests.integration.api.server import ApiServer, Master

if TYPE_CHECKING:
    from redis import Redis

ENTRY_SCRIPT = "def run(mini_batch):\n    return mini_batch\n"


@dataclass(frozen=True)
class Site:
    """What a user has: code and data. `spec()` is a job that is fine."""

    folder: Path

    @property
    def code(self) -> Path:
        return self.folder / "code"

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @classmethod
    def made(cls, folder: Path) -> Site:
        """One with a script and a file in a folder."""
        made = cls(folder)
        made.code.mkdir()
        (made.code / "main.py").write_text(ENTRY_SCRIPT)
        made.data.mkdir()
        (made.data / "one.txt").write_text("1\n")
        return made

    def spec(self, **changes: Any) -> dict[str, Any]:
        plain = {"code": str(self.code), "entry_script": "main.py", "inputs": {"data": str(self.data)}}
        return {name: value for name, value in {**plain, **changes}.items() if value is not None}


def footprint(root: Path) -> set[str]:
    """What there is of jobs and code: their folders, and what lies about beside those."""
    places = [root, root / "jobs", root / "code"]
    return {str(path.relative_to(root)) for place in places if place.exists() for path in place.iterdir()}


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site.made(tmp_path)


@pytest.fixture(scope="session")
def shared_api(redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    with ApiServer(tmp_path_factory.mktemp("root"), redis_url) as server:
        deadline = time.monotonic() + 20
        while not (server.root / "keys").exists():  # from then on, only requests leave anything
            assert time.monotonic() < deadline
            time.sleep(0.01)
        yield server


@pytest.fixture
def api(shared_api: ApiServer, redis: Redis) -> Iterator[httpx.Client]:
    """A client of an API whose Redis knows nothing yet; jobs of other tests may be in its root folder."""
    with shared_api.client() as client:
        yield client


@pytest.fixture
def key() -> str:
    """An idempotency key that no other test has used."""
    return secrets.token_hex(8)


@pytest.fixture
def root(shared_api: ApiServer) -> Path:
    return shared_api.root


@pytest.fixture
def master(root: Path, redis: Redis) -> Master:
    return Master(root, redis)


@pytest.fixture
def job_id(api: httpx.Client, site: Site) -> str:
    """A job that waits for its master."""
    answer = api.post("/v1/jobs", json=site.spec())
    assert answer.status_code == 202, answer.text
    return str(answer.json()["id"])
