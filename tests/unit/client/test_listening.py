"""The address on which an embedded cluster's Redis server is reached by other machines, and its certificate."""

from __future__ import annotations

import socket
import ssl
import stat
from pathlib import Path

import pytest

from parallelrun.embedded import redis_server
from parallelrun.embedded.listening import Listener
from parallelrun.errors import ClusterFailed


@pytest.mark.parametrize(
    "text, host, port, begins",
    [
        ("login1", "login1", 6380, "rediss://login1:6380/0?ssl_ca_certs="),
        ("login1.example.org:7000", "login1.example.org", 7000, "rediss://login1.example.org:7000/0?"),
        ("10.0.0.5:7000", "10.0.0.5", 7000, "rediss://10.0.0.5:7000/0?"),
        ("[fd00::1]:7000", "fd00::1", 7000, "rediss://[fd00::1]:7000/0?"),
        ("[fd00::1]", "fd00::1", 6380, "rediss://[fd00::1]:6380/0?"),
    ],
)
def test_addresses(tmp_path: Path, text: str, host: str, port: int, begins: str) -> None:
    listener = Listener.parse(text, tmp_path)
    assert (listener.host, listener.port) == (host, port)
    assert listener.url.startswith(begins)


@pytest.mark.parametrize(
    "text", ["", ":6380", "login1:", "login1:0", "login1:99999", "../x", "a b", "0.0.0.0", "[::]:6380", "fd00::1"]
)
def test_what_nodes_could_not_reach_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(ClusterFailed, match="login1:6380"):
        Listener.parse(text, tmp_path)


def test_an_address_that_this_machine_can_not_have_is_told_at_once(tmp_path: Path) -> None:
    for text, why in (("no-such-name.invalid", "no address is known"), ("192.0.2.1", "no address of this machine")):
        with pytest.raises(ClusterFailed, match=why):
            Listener.parse(text, tmp_path).check()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ClusterFailed, match=f"port {port} of 127.0.0.1 is taken"):
            Listener.parse(f"127.0.0.1:{port}", tmp_path).check()
    Listener.parse(f"127.0.0.1:{port}", tmp_path).check()


@pytest.mark.parametrize("host", ["login1.example.org", "10.0.0.5", "[fd00::1]"])
def test_the_certificate_is_made_once_for_this_host(tmp_path: Path, host: str) -> None:
    listener = Listener.parse(host, tmp_path / "tls")
    listener.prepare()
    made = listener.certificate.read_text()
    assert stat.S_IMODE(listener.key.stat().st_mode) == 0o600
    context = ssl.create_default_context(cafile=str(listener.certificate))
    context.load_cert_chain(listener.certificate, listener.key)
    [known] = context.get_ca_certs()
    names = [pair[1] for pair in known["subjectAltName"]]
    assert names[0] == host or str(names[0]).strip() == "FD00:0:0:0:0:0:0:1"
    listener.prepare()
    assert listener.certificate.read_text() == made


def test_says_which_server_it_needs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ClusterFailed, match="with TLS on PATH"):
        redis_server.find_binary(needs_tls=True)
