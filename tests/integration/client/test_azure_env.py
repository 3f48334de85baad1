"""`parallelrun azure-env`: TLS in front of a server, made on the spot, and what a shell needs to use it."""

from __future__ import annotations

import asyncio
import json
import os
import select
import shutil
import ssl
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from parallelrun.azure.certificate import Certificate
from parallelrun.azure.front import Front
from parallelrun.azure.fronts import running
from parallelrun.embedded.cluster import reserve_port
from tests.integration.api.server import ApiServer
from tests.security.azure_target import ML, TOKEN

pytestmark = [pytest.mark.integration, pytest.mark.skipif(not shutil.which("openssl"), reason="there is no openssl")]

_PATIENCE_S = 20.0


def azure_env(state: Path, url: str, *options: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "XDG_STATE_HOME": str(state), "PARALLELRUN_URL": url, "PARALLELRUN_TOKEN": TOKEN}
    command = [sys.executable, "-m", "parallelrun", "azure-env", *options]
    return subprocess.run(command, env=env, cwd=cwd, capture_output=True, text=True, timeout=120, check=False)


@contextmanager
def server_with_front(state: Path, root: Path, redis_url: str) -> Iterator[tuple[ApiServer, dict[str, str]]]:
    with ApiServer(root, redis_url, "--token", TOKEN) as server:
        url = f"http://127.0.0.1:{server.port}"
        try:
            yield server, json.loads(azure_env(state, url, "-o", "json").stdout)
        finally:
            azure_env(state, url, "--stop")


def client(variables: dict[str, str]) -> httpx.Client:
    return httpx.Client(verify=ssl.create_default_context(cafile=variables["REQUESTS_CA_BUNDLE"]), trust_env=False)


def test_a_shell_gets_a_way_to_the_server_and_a_token_there(redis_url: str, tmp_path: Path) -> None:
    with server_with_front(tmp_path / "state", tmp_path / "root", redis_url) as (_, variables):
        face, http = variables["AZUREML_DEV_URL_MFE"], client(variables)
        headers = {"X-IDENTITY-HEADER": variables["IDENTITY_HEADER"]}
        given = http.get(variables["IDENTITY_ENDPOINT"], params={"resource": ML}, headers=headers).json()
        url = f"{face}/subscriptions/s/resourceGroups/g/providers/Microsoft.MachineLearningServices/workspaces/w"
        assert http.get(url).status_code == 401
        answer = http.get(url, headers={"Authorization": f"Bearer {given['access_token']}"})
        assert answer.json()["properties"]["discoveryUrl"] == f"{face}/discovery"
        http.close()


def test_the_front_is_shared_private_and_only_of_this_machine(redis_url: str, tmp_path: Path) -> None:
    state = tmp_path / "state"
    with server_with_front(state, tmp_path / "root", redis_url) as (server, variables):
        again = json.loads(azure_env(state, f"http://127.0.0.1:{server.port}", "-o", "json").stdout)
        folder = state / "parallelrun" / "azure"
        private = [path for path in folder.rglob("*") if path.name != "ca-bundle.pem" and path.is_file()]
        names = subprocess.run(
            ["openssl", "x509", "-in", folder / "server.pem", "-noout", "-ext", "subjectAltName,basicConstraints"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout

        assert again == variables
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert {stat.S_IMODE(path.stat().st_mode) & 0o077 for path in private if path.suffix == ".pem"} == {0}
        assert "127.0.0.1" in names
        assert "CA:FALSE" in names
        assert [path for path in folder.rglob("*") if "ca.key" in path.name] == []
        with pytest.raises(httpx.ConnectError):
            httpx.get(variables["AZUREML_DEV_URL_MFE"], trust_env=False)


def test_lines_for_a_shell_and_a_config(tmp_path: Path) -> None:
    printed = azure_env(tmp_path, "https://example.org/", "--config", cwd=tmp_path)

    assert printed.returncode == 0
    assert "export AZUREML_DEV_URL_MFE=https://example.org/azure\n" in printed.stdout
    assert f"export IDENTITY_HEADER={TOKEN}\n" in printed.stdout
    assert "REQUESTS_CA_BUNDLE" not in printed.stdout
    assert set(json.loads((tmp_path / "config.json").read_text())) == {
        "subscription_id", "resource_group", "workspace_name",
    }  # fmt: skip
    assert azure_env(tmp_path, "ftp://example.org").returncode == 1


def test_a_front_says_when_its_server_is_away_and_ends_when_it_is_asked_to(redis_url: str, tmp_path: Path) -> None:
    state = tmp_path / "state"
    with server_with_front(state, tmp_path / "root", redis_url) as (server, variables):
        server.stop()
        with client(variables) as http:
            answer = http.get(f"{variables['AZUREML_DEV_URL_MFE']}/discovery")
            assert answer.status_code == 503
            assert "does not answer" in answer.text
        assert "stopped" in azure_env(state, f"http://127.0.0.1:{server.port}", "--stop").stderr
        with client(variables) as http, pytest.raises(httpx.ConnectError):
            http.get(f"{variables['AZUREML_DEV_URL_MFE']}/discovery")


def test_a_front_ends_though_a_client_keeps_its_connection_open(redis_url: str, tmp_path: Path) -> None:
    state = tmp_path / "state"
    with server_with_front(state, tmp_path / "root", redis_url) as (server, variables), client(variables) as http:
        discovery = f"{variables['AZUREML_DEV_URL_MFE']}/discovery"
        assert http.get(discovery).status_code == 200  # httpx keeps the connection
        (folder,) = (path.parent for path in (state / "parallelrun" / "azure").glob("*/front.json"))
        front = running(folder)
        assert front is not None
        ended = os.pidfd_open(front.pid)
        assert "stopped" in azure_env(state, f"http://127.0.0.1:{server.port}", "--stop").stderr
        assert not (folder / "front.json").exists()  # it has ended by itself, and has cleared up
        assert select.select([ended], [], [], 60)[0], "the process has not ended"
        os.close(ended)


def test_a_front_that_is_stopped_has_ended_all_its_connections(tmp_path: Path) -> None:
    certificate = Certificate(tmp_path)
    certificate.make()
    asyncio.run(check_that_connections_end(certificate))


async def check_that_connections_end(certificate: Certificate) -> None:
    """A client and a server keep a connection open, and say nothing more."""
    came, gone = asyncio.Event(), asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.read(1)
            came.set()
            await reader.read()
        finally:
            writer.transport.abort()
            gone.set()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    listener = reserve_port(0)
    listener.listen()
    listener.setblocking(False)
    front, stopping = Front("127.0.0.1", server.sockets[0].getsockname()[1], certificate.chain), asyncio.Event()
    serving = asyncio.create_task(front.serve(listener, stopping))
    trusted = ssl.create_default_context(cafile=certificate.bundle)
    reader, writer = await asyncio.open_connection("127.0.0.1", listener.getsockname()[1], ssl=trusted)
    writer.write(b"x")
    await came.wait()
    stopping.set()
    reading = asyncio.create_task(reader.read())
    _, still_open = await asyncio.wait({serving, reading}, timeout=_PATIENCE_S)
    writer.transport.abort()
    server.close()
    await asyncio.gather(serving, reading, return_exceptions=True)
    await gone.wait()
    assert not still_open, "a connection outlives the front, or the front waits for it"


def test_a_certificate_is_renewed_before_it_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate = Certificate(tmp_path)
    certificate.make()
    first = certificate.chain.read_bytes()
    certificate.make()
    assert certificate.chain.read_bytes() == first

    later = time.time() + 85 * 24 * 3600
    monkeypatch.setattr("parallelrun.azure.certificate.time.time", lambda: later)
    certificate.make()

    assert certificate.chain.read_bytes() != first
