"""Certificates as an operator makes them for an engine, and an engine's socket behind them."""

from __future__ import annotations

import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final

_PIECE: Final = 1 << 16
_EXTENSIONS: Final = {"server": "serverAuth", "client": "clientAuth"}


def certificates(folder: Path, address: str) -> None:
    """Make `ca.pem`; `server-cert.pem` and `server-key.pem` for this address; `cert.pem` and `key.pem` for a client."""
    _openssl(folder, "-subj", "/CN=ca", "-keyout", "ca-key.pem", "-out", "ca.pem")
    by_ca = ("-CA", "ca.pem", "-CAkey", "ca-key.pem")
    for name, prefix in (("server", "server-"), ("client", "")):
        _openssl(
            folder, *by_ca, "-subj", f"/CN={name}", "-addext", f"subjectAltName=IP:{address}", "-addext",
            "basicConstraints=critical,CA:FALSE", "-addext", f"extendedKeyUsage={_EXTENSIONS[name]}",
            "-keyout", f"{prefix}key.pem", "-out", f"{prefix}cert.pem",
        )  # fmt: skip


def _openssl(folder: Path, *options: str) -> None:
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", *options],
        cwd=folder, check=True, capture_output=True, timeout=60,
    )  # fmt: skip


@contextmanager
def behind_tls(path: str, address: str, folder: Path) -> Iterator[int]:
    """Let whoever has the client's certificate of a folder reach a socket of this machine; gives the port."""
    trust = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trust.load_cert_chain(folder / "server-cert.pem", folder / "server-key.pem")
    trust.load_verify_locations(folder / "ca.pem")
    trust.verify_mode = ssl.CERT_REQUIRED
    with socket.create_server((address, 0)) as listener:
        threading.Thread(target=_accept, args=(listener, trust, path), daemon=True).start()
        try:
            yield listener.getsockname()[1]
        finally:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)


def _accept(listener: socket.socket, trust: ssl.SSLContext, path: str) -> None:
    with suppress(OSError):
        while True:
            client, _ = listener.accept()
            threading.Thread(target=_carry, args=(client, trust, path), daemon=True).start()


def _carry(client: socket.socket, trust: ssl.SSLContext, path: str) -> None:
    with (
        suppress(OSError),
        closing(client),
        trust.wrap_socket(client, server_side=True) as outer,
        socket.socket(socket.AF_UNIX) as inner,
    ):
        inner.connect(path)
        back = threading.Thread(target=_copy, args=(inner, outer), daemon=True)
        back.start()
        _copy(outer, inner)
        back.join()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while piece := source.recv(_PIECE):
            target.sendall(piece)
    with suppress(OSError):
        target.shutdown(socket.SHUT_RDWR)
