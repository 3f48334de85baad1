"""Starts `gcs_stub.py`: Google gives no store to those who test, and those of others don't know the calls we make."""

from __future__ import annotations

import re
import sys
from html import unescape
from pathlib import Path
from urllib.parse import quote

import httpx

from tests.object_servers.server import BUCKET, ObjectServer


class GoogleStub(ObjectServer):
    """As much of Google's store as its clients use here."""

    bucket_url = f"gs://{BUCKET}"

    def environment_at(self, url: str) -> dict[str, str]:
        return {"STORAGE_EMULATOR_HOST": url}

    def require(self) -> None:
        return

    def command(self) -> list[str]:
        return [sys.executable, str(Path(__file__).with_name("gcs_stub.py")), str(self.port)]

    def make_bucket(self) -> None:
        httpx.put(f"{self.url}/{BUCKET}", timeout=5).raise_for_status()

    def outside(self) -> GoogleOutside:
        return GoogleOutside(f"{self.url}/{BUCKET}")


class GoogleOutside:
    """See `Outside`."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._client = httpx.Client(timeout=10)

    def put(self, key: str, content: bytes) -> str:
        return self._client.put(f"{self._url}/{quote(key)}", content=content).raise_for_status().headers["ETag"]

    def content(self, key: str) -> bytes:
        return self._client.get(f"{self._url}/{quote(key)}").raise_for_status().content

    def keys(self, prefix: str) -> list[str]:
        listed = self._client.get(self._url, params={"list-type": "2", "prefix": prefix}).raise_for_status()
        return [unescape(name) for name in re.findall(r"<Key>([^<]*)</Key>", listed.text)]

    def close(self) -> None:
        self._client.close()
