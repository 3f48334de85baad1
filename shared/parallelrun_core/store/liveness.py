"""Whether a server answers, for those who start one: without the libraries of a client, which take long to import."""

from __future__ import annotations

import socket
from pathlib import Path


def is_answering(path: Path, *, timeout_s: float = 1.0) -> bool:
    """Whether the server behind this unix socket accepts commands; while it loads its data it doesn't."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(timeout_s)
            connection.connect(str(path))
            connection.sendall(b"PING\r\n")
            return connection.recv(64).startswith(b"+PONG")
    except OSError:
        return False
