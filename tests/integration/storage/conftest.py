"""Real stores, started once for all tests of a process."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any

import pytest

from parallelrun_core.storage.objects import clients
from parallelrun_core.storage.objects.uploads import s3
from tests.object_servers import BUCKET, Moto, ObjectServer, SeaweedFS, require_programs


@pytest.fixture(scope="module", params=[Moto, SeaweedFS], ids=lambda kind: kind.__name__)
def server(request: pytest.FixtureRequest) -> Iterator[ObjectServer]:
    require_programs()
    with request.param() as server:
        yield server


class Bucket:
    """A part of a bucket for one test: a bucket for each would be too many for a store that reserves room for them."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.prefix = f"test-{secrets.token_hex(8)}"

    def url(self, key: str = "") -> str:
        return f"s3://{BUCKET}/{self._key(key)}"

    def put(self, key: str, content: bytes = b"x") -> str:
        return str(self.client.put_object(Bucket=BUCKET, Key=self._key(key), Body=content)["ETag"])

    def content(self, key: str) -> bytes:
        return bytes(self.client.get_object(Bucket=BUCKET, Key=self._key(key))["Body"].read())

    def keys(self) -> list[str]:
        listed = self.client.list_objects_v2(Bucket=BUCKET, Prefix=f"{self.prefix}/").get("Contents", ())
        return [each["Key"] for each in listed]

    def _key(self, key: str) -> str:
        return f"{self.prefix}/{key}" if key else self.prefix


@pytest.fixture
def bucket(server: ObjectServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    clients.forget()
    s3.forget()
    client = server.client()
    yield Bucket(client)
    client.close()
    s3.forget()
