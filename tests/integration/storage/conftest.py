"""Real stores, started once for all tests of a process."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from parallelrun_core.storage.objects import clients
from parallelrun_core.storage.objects.uploads import s3
from tests.integration.storage.tables import Job, Make
from tests.object_servers import Azurite, GoogleStub, Moto, ObjectServer, SeaweedFS


@pytest.fixture(scope="module", params=[Moto, SeaweedFS, Azurite, GoogleStub], ids=lambda kind: kind.__name__)
def server(request: pytest.FixtureRequest) -> Iterator[ObjectServer]:
    server: ObjectServer = request.param()
    server.require()
    with server:
        yield server


class Bucket:
    """A part of a bucket for one test: a bucket for each would be too many for a store that reserves room for them."""

    def __init__(self, server: ObjectServer) -> None:
        self._outside = server.outside()
        self._url = server.bucket_url
        self.prefix = f"test-{secrets.token_hex(8)}"

    def url(self, key: str = "") -> str:
        return f"{self._url}/{self._key(key)}"

    def put(self, key: str, content: bytes = b"x") -> str:
        return self._outside.put(self._key(key), content)

    def content(self, key: str) -> bytes:
        return self._outside.content(self._key(key))

    def keys(self) -> list[str]:
        return self._outside.keys(f"{self.prefix}/")

    def close(self) -> None:
        self._outside.close()

    def _key(self, key: str) -> str:
        return f"{self.prefix}/{key}" if key else self.prefix


@pytest.fixture
def bucket(server: ObjectServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    clients.forget()
    s3.forget()
    bucket = Bucket(server)
    yield bucket
    bucket.close()
    s3.forget()


@pytest.fixture
def job(bucket: Bucket, tmp_path: Path) -> Iterator[Make]:
    made: list[Job] = []

    def make(path: str, *steps: Any, **options: Any) -> Job:
        given = {"path": path, **({"transformations": steps} if steps else {"type": "mltable"})}
        made.append(Job(tmp_path / f"job-{secrets.token_hex(4)}", given, **options))
        return made[-1]

    yield make
    for each in made:
        each.close()
