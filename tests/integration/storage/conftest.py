"""Real stores, started once for all tests of a process."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from parallelrun_core.storage.objects import clients
from parallelrun_core.storage.objects.uploads import s3
from tests.integration.storage.tables import Job, Make
from tests.object_servers import Azurite, GoogleStub, Moto, ObjectServer, SeaweedFS

Store = Callable[[type[ObjectServer]], ObjectServer]


@pytest.fixture(scope="session")
def store() -> Iterator[Store]:
    """Gives the running store of a kind; it is started when the first test of this process asks for it."""
    running: dict[type[ObjectServer], ObjectServer] = {}
    with ExitStack() as stores:

        def of(kind: type[ObjectServer]) -> ObjectServer:
            if kind not in running:
                server = kind()
                server.require()
                running[kind] = stores.enter_context(server)
            return running[kind]

        yield of


@pytest.fixture(scope="module", params=[Moto, SeaweedFS, Azurite, GoogleStub], ids=lambda kind: kind.__name__)
def server(request: pytest.FixtureRequest, store: Store) -> ObjectServer:
    return store(request.param)


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
