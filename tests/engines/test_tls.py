"""A Docker Engine that is asked over TLS: only who has its client's certificate may, and only it is trusted."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from parallelrun_provisioner.engines.docker.client import Connection
from parallelrun_provisioner.engines.interface import EngineError
from tests.acceptance import engine as docker_engine
from tests.engines.deployed.tls import certificates

pytestmark = [pytest.mark.acceptance, pytest.mark.docker, pytest.mark.slow]

_START_S = 60
_BRIDGE = "pr-tls"


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """An Engine of this test on the loopback interface; its address, and its certificates."""
    if os.getuid() != 0 or shutil.which("dockerd") is None:
        if docker_engine.is_required():
            pytest.fail("an Engine needs root and `dockerd` on the path", pytrace=False)
        pytest.skip("an Engine needs root and `dockerd` on the path")
    folder = tmp_path_factory.mktemp("tls")
    certificates(folder, "127.0.0.1")
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    # Its own, without which it would remove that of another Engine here.
    _ip("link", "add", _BRIDGE, "type", "bridge")
    _ip("address", "add", "192.0.2.1/24", "dev", _BRIDGE)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            ["dockerd", "--host", address, "--tlsverify", "--tlscacert", folder / "ca.pem",
             "--tlscert", folder / "server-cert.pem", "--tlskey", folder / "server-key.pem",
             "--data-root", folder / "data", "--exec-root", folder / "exec", "--pidfile", folder / "pid",
             "--bridge", _BRIDGE, "--iptables=false", "--ip6tables=false", "--storage-driver", "vfs"],
            stdout=log, stderr=log,
        )  # fmt: skip
    try:
        deadline = time.monotonic() + _START_S
        while "API listen on" not in (folder / "log").read_text():
            is_starting = process.poll() is None and time.monotonic() < deadline
            assert is_starting, (folder / "log").read_text()[-2000:]
            time.sleep(0.05)  # it gives no sign but its log
        yield address, folder
    finally:
        process.terminate()
        process.wait(_START_S)
        _ip("link", "delete", _BRIDGE)


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True, timeout=_START_S)


@pytest.fixture
def variables(engine: tuple[str, Path], monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setenv("DOCKER_HOST", engine[0])
    monkeypatch.setenv("DOCKER_TLS_VERIFY", "1")
    monkeypatch.setenv("DOCKER_CERT_PATH", str(engine[1]))
    return monkeypatch


def asked() -> str:
    """What the Engine calls itself, which is asked as the provisioner does."""
    connection = Connection()
    try:
        with connection.asking() as client:
            return str(client.info()["OSType"])
    finally:
        connection.close()


def test_who_has_the_certificate_is_answered_whatever_else_the_machine_trusts(
    variables: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert asked() == "linux"
    certificates(tmp_path, "127.0.0.1")
    variables.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "ca.pem"))
    assert asked() == "linux"


@pytest.mark.parametrize("names", [("ca",), ("cert", "key")], ids=["another Engine", "another client"])
def test_a_certificate_of_somebody_else_is_not_taken(
    variables: pytest.MonkeyPatch, engine: tuple[str, Path], tmp_path: Path, names: tuple[str, ...]
) -> None:
    certificates(tmp_path, "127.0.0.1")
    for name in {"ca", "cert", "key"}.difference(names):
        shutil.copy(engine[1] / f"{name}.pem", tmp_path)
    variables.setenv("DOCKER_CERT_PATH", str(tmp_path))

    with pytest.raises(EngineError, match="doesn't answer"):
        asked()
