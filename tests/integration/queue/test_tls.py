"""Connections to Redis by TLS: to the server of one certificate authority, and with a certificate of the client."""

from __future__ import annotations

import asyncio
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest

from parallelrun_core.computes.kinds.slurm import SlurmCompute
from parallelrun_core.store.connection import CONNECTION_ERRORS, connect, connect_async, connect_directly
from parallelrun_core.store.roles import Role
from tests.redis_server import SECRETS, RedisServer

pytestmark = pytest.mark.integration

_BINARY = shutil.which("redis-server")
LOGIN = f"master:{SECRETS[Role.MASTER]}@"
HOST = f"{LOGIN}127.0.0.1"
OWN = {"ssl_ca_certs": "ca.crt", "ssl_certfile": "own.crt", "ssl_keyfile": "own.key"}
_CURVE = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2")


def openssl(folder: Path, *line: str) -> None:
    subprocess.run(["openssl", *line], cwd=folder, check=True, capture_output=True)


def certificates(folder: Path) -> None:
    """Make an authority (ca), another one (other), and a certificate of the first for this machine (own)."""
    for name in ("ca", "other"):
        openssl(
            folder, "req", "-x509", *_CURVE, "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.crt"
        )
    openssl(folder, "req", *_CURVE, "-subj", "/CN=own", "-keyout", "own.key", "-out", "own.csr")
    (folder / "names").write_text("subjectAltName=IP:127.0.0.1\n")
    openssl(folder, "x509", "-req", "-in", "own.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial",
            "-days", "2", "-extfile", "names", "-out", "own.crt")  # fmt: skip


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., str]]:
    """Makes URLs of a server that wants certificates of its clients, with these files as options."""
    if not (_BINARY and shutil.which("openssl")):
        pytest.skip("needs a server with TLS, and openssl")
    folder = tmp_path_factory.mktemp("tls")
    certificates(folder)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    files = {"tls-cert-file": "own.crt", "tls-key-file": "own.key", "tls-ca-cert-file": "ca.crt"}
    options = [word for name, file in files.items() for word in (f"--{name}", str(folder / file))]
    server = RedisServer("--tls-port", str(port), "--tls-auth-clients", "yes", *options, binary=_BINARY)
    try:
        server.start()
        yield lambda host=HOST, **files: f"rediss://{host}:{port}/0?{query(folder, files)}"
    except AssertionError as error:
        if "Bad directive" not in str(error):
            raise
        pytest.skip("the redis-server here has no TLS")
    finally:
        server.__exit__()


def query(folder: Path, files: dict[str, str]) -> str:
    return urlencode({name: folder / file for name, file in files.items()}, safe="/")


def test_every_client_comes_with_its_certificate(url: Callable[..., str]) -> None:
    async def is_reached() -> bool:
        async with connect_async(url(**OWN), timeout_s=5, connections=1) as client:
            return bool(await client.ping())

    with connect(url(**OWN)) as client, connect_directly(url(**OWN)) as direct:
        assert client.ping()
        assert direct.ping()
    assert asyncio.run(is_reached())
    for _ in range(10):  # a server says something first, sooner or later
        with connect(url(host="127.0.0.1", **OWN)) as client, connect_directly(url(host="127.0.0.1", **OWN)) as direct:
            assert client.ping(), "without a login"
            assert direct.ping(), "without a login"


@pytest.mark.parametrize(
    "parts",
    [{"ssl_ca_certs": "ca.crt"}, {**OWN, "ssl_ca_certs": "other.crt"}, {**OWN, "host": f"{LOGIN}localhost"}],
    ids=["of no client", "of another authority", "of another name"],
)
def test_without_the_right_certificates_there_is_no_connection(url: Callable[..., str], parts: dict[str, str]) -> None:
    with connect(url(**parts)) as client, pytest.raises(CONNECTION_ERRORS):
        client.ping()


def test_nodes_of_slurm_may_be_given_such_a_url(url: Callable[..., str]) -> None:
    place = url(host="127.0.0.1", **OWN)
    assert SlurmCompute(name="hpc", type="slurm", redis_url=place).redis_url == place
