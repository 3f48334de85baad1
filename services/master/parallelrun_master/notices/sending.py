"""One request, to an address that was checked: what is looked up is what is connected to.

Redirects are not followed, and no proxy of the environment is asked: both would lead elsewhere.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException
from typing import Final
from urllib.parse import urlsplit

from parallelrun_master.policy.notices import Allowed, refusal

TIMEOUT_S: Final = 10.0
_GONE: Final = 410
_MOST_READ: Final = 64 << 10


class NotDelivered(Exception):
    """Nobody has accepted a notice."""

    def __init__(self, why: str, *, is_final: bool = False) -> None:
        super().__init__(why)
        self.is_final = is_final
        """Whether the receiver never wants it."""


def post(url: str, headers: Mapping[str, str], content: bytes, allowed: Allowed) -> int:
    """Send one notice; returns the status with which it was accepted.

    Raises:
        NotDelivered: it was not.
    """
    parts = urlsplit(url)
    host, is_tls = str(parts.hostname), parts.scheme == "https"
    port = parts.port or (443 if is_tls else 80)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    try:
        connection = HTTPConnection(host, port, timeout=TIMEOUT_S)
        connection.sock = _connected(host, port, allowed, is_tls=is_tls)
        try:
            name = f"[{host}]" if ":" in host else host
            at_port = "" if parts.port is None else f":{port}"
            connection.request("POST", target, content, {**headers, "Host": f"{name}{at_port}"})
            answer = connection.getresponse()
            answer.read(_MOST_READ)
        finally:
            connection.close()
    except (OSError, HTTPException, UnicodeError) as error:
        raise NotDelivered(f"{type(error).__name__}: {error}") from error
    if not 200 <= answer.status < 300:
        raise NotDelivered(f"it was answered with {answer.status}", is_final=answer.status == _GONE)
    return answer.status


def _connected(host: str, port: int, allowed: Allowed, *, is_tls: bool) -> socket.socket:
    """A connection to the first address of the host that takes it; all of them must be allowed."""
    addresses = [str(info[4][0]) for info in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    for address in addresses:
        if why := refusal(host, address, allowed):
            raise NotDelivered(why)
    failure = OSError(f"{host} has no address")
    for address in addresses:
        try:
            plain = socket.create_connection((address, port), timeout=TIMEOUT_S)
        except OSError as error:
            failure = error
            continue
        if not is_tls:
            return plain
        try:
            return ssl.create_default_context().wrap_socket(plain, server_hostname=host)
        except BaseException:
            plain.close()
            raise
    raise failure
