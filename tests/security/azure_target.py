"""An API with its facade for Azure ML's client, and a client that can send anything."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.integration.api.server import ApiServer

TOKEN = "right-token-of-the-cluster"
WORKSPACE = "/azure/subscriptions/s/resourceGroups/g/providers/Microsoft.MachineLearningServices/workspaces/w"
UPLOADS = "/azure/blob/store/azureml-blobstore"
ML = "https://ml.azure.com"


class AzureTarget:
    """One server; every request goes out as it is, with no path made shorter."""

    def __init__(self, server: ApiServer) -> None:
        self.server = server

    @property
    def root(self) -> Path:
        return self.server.root

    def ask(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> tuple[int, bytes]:
        """Status and body of the answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=30)
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def send(self, data: bytes, *, ends: bool = False) -> bytes:
        """Send these bytes, whatever they are, and break off or read what comes back first."""
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=30) as connection:
            connection.sendall(data)
            return b"" if ends else connection.recv(1 << 16)

    def token(self, audience: str = ML) -> str:
        """A token, as the client gets it."""
        status, body = self.ask("GET", f"/azure/identity?resource={audience}", headers={"X-IDENTITY-HEADER": TOKEN})
        assert status == 200, body
        return str(json.loads(body)["access_token"])

    def call(self, method: str, path: str, value: Any = None, token: str = "") -> tuple[int, Any]:
        """Ask as the client does; returns the status and the value of the answer."""
        body = json.dumps(value).encode() if value is not None else None
        headers = {"Authorization": f"Bearer {token or self.token()}", "Content-Type": "application/json"}
        status, text = self.ask(method, path, body, headers)
        return status, json.loads(text) if text else None

    def signature(self, datastore: str = "workspaceblobstore") -> str:
        """What the client appends to URLs of a datastore's container."""
        status, value = self.call("POST", f"{WORKSPACE}/datastores/{datastore}/listSecrets", {})
        assert status == 200, value
        return str(value["sasToken"])

    def upload(self, blob: str, content: bytes, query: str = "", signature: str = "") -> int:
        """Put a blob, or a part of one."""
        path = f"{UPLOADS}/{blob}?{signature or self.signature()}{query}"
        return self.ask("PUT", path, content, {"x-ms-blob-type": "BlockBlob"})[0]


@contextmanager
def azure_target(root: Path, redis_url: str, *flags: str, without: str = "") -> Iterator[AzureTarget]:
    """A running one."""
    with ApiServer(root, redis_url, "--token", TOKEN, *flags, without=without) as server:
        yield AzureTarget(server)
