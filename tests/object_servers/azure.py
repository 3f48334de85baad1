"""Azurite, the store that Azure gives to those who test."""

from __future__ import annotations

import base64
import email.utils
import hashlib
import hmac
import re
import shutil
from html import unescape
from typing import ClassVar
from urllib.parse import quote

import httpx

from tests.object_servers.server import AZURITE, BUCKET, ObjectServer, require_programs

ACCOUNT = "devstoreaccount1"
ACCOUNT_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""What is printed in its manual; every Azurite has it."""
_API = "2021-12-02"


class Azurite(ObjectServer):
    """Azure's blobs, with files behind them."""

    bucket_url = f"az://{BUCKET}"
    wrong: ClassVar[dict[str, str]] = {"AZURE_STORAGE_ACCOUNT_KEY": base64.b64encode(b"wrong").decode()}

    def environment_at(self, url: str) -> dict[str, str]:
        return {
            "AZURE_STORAGE_ENDPOINT": f"{url}/{ACCOUNT}",
            "AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT,
            "AZURE_STORAGE_ACCOUNT_KEY": ACCOUNT_KEY,
        }

    def require(self) -> None:
        require_programs(AZURITE)

    def command(self) -> list[str]:
        program = AZURITE / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js"
        return [
            str(shutil.which("node")), str(program),
            "--blobHost", "127.0.0.1", "--blobPort", str(self.port), "--silent",
            "--location", str(self.home), "--skipApiVersionCheck", "--disableTelemetry",
        ]  # fmt: skip

    def make_bucket(self) -> None:
        with self.outside() as outside:
            outside.ask("PUT", "", restype="container")

    def outside(self) -> AzureOutside:
        return AzureOutside(self.url)


class AzureOutside:
    """See `Outside`."""

    def __init__(self, url: str) -> None:
        self._client = httpx.Client(base_url=url, timeout=10)

    def __enter__(self) -> AzureOutside:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ask(self, method: str, key: str, content: bytes = b"", **query: str) -> httpx.Response:
        """Send a signed request for a blob, or for the container if there is no key; raises for errors."""
        path = f"/{ACCOUNT}/{BUCKET}" + (f"/{quote(key)}" if key else "")
        headers = {"x-ms-date": email.utils.formatdate(usegmt=True), "x-ms-version": _API}
        if method == "PUT" and key:
            headers["x-ms-blob-type"] = "BlockBlob"
        length = str(len(content)) if content else ""
        signed = [method, "", "", length, *[""] * 8, *(f"{name}:{headers[name]}" for name in sorted(headers))]
        signed += [f"/{ACCOUNT}{path}", *(f"{name}:{query[name]}" for name in sorted(query))]
        digest = hmac.new(base64.b64decode(ACCOUNT_KEY), "\n".join(signed).encode(), hashlib.sha256).digest()
        headers["Authorization"] = f"SharedKey {ACCOUNT}:{base64.b64encode(digest).decode()}"
        return self._client.request(method, path, params=query, content=content, headers=headers).raise_for_status()

    def put(self, key: str, content: bytes) -> str:
        return self.ask("PUT", key, content).headers["ETag"]

    def content(self, key: str) -> bytes:
        return self.ask("GET", key).content

    def keys(self, prefix: str) -> list[str]:
        listed = self.ask("GET", "", restype="container", comp="list", prefix=prefix)
        return [unescape(name) for name in re.findall(r"<Name>([^<]*)</Name>", listed.text)]

    def close(self) -> None:
        self._client.close()
