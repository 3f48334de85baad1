"""A ping of a server for those who start one: without the libraries of a client, which take long to import."""

from __future__ import annotations

import socket
from pathlib import Path


def is_answering(path: Path, *, login: tuple[str, str] | None = None, timeout_s: float = 1.0) -> bool:
    """Return whether the server behind this unix socket accepts commands; while it loads its data it doesn't.

    Args:
        login: a user and a password, of letters and digits, if it asks for some.
    """
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(timeout_s)
            connection.connect(str(path))
            if login is not None:
                connection.sendall(f"AUTH {login[0]} {login[1]}\r\n".encode())
                if not connection.recv(64).startswith(b"+OK"):
                    return False
            connection.sendall(b"PING\r\n")
            return connection.recv(64).startswith(b"+PONG")
    except OSError:
        return False
