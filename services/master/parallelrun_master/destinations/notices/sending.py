"""The request of a webhook, to an address that was checked: what is looked up is what is connected to.

Redirects are not followed, and no proxy of the environment is asked: both would lead elsewhere.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from http.client import HTTPConnection, HTTPException
from threading import Event, Timer
from typing import Final
from urllib.parse import urlsplit

from parallelrun_core.untrusted.connecting import AddressRefused, connect_checked
from parallelrun_master.policy.notices import Allowed, refusal

TIMEOUT_S: Final = 10.0
"""To connect to one address, and from one part of an answer to the next."""
TOTAL_S: Final = 15.0
"""Once it is connected: far more than receivers should need."""
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
        plain = connect_checked(host, port, lambda address: refusal(host, address, allowed), TIMEOUT_S)
        with closing(plain), _no_longer_than(TOTAL_S, plain), closing(HTTPConnection(host, port)) as connection:
            connection.sock = _over_tls(plain, host) if is_tls else plain
            name = f"[{host}]" if ":" in host else host
            at_port = "" if parts.port is None else f":{port}"
            connection.request("POST", target, content, {**headers, "Host": f"{name}{at_port}"})
            answer = connection.getresponse()
            with suppress(OSError, HTTPException):  # it has answered, whatever else it says
                answer.read(_MOST_READ)
    except AddressRefused as error:
        raise NotDelivered(str(error.strerror)) from error
    except (OSError, HTTPException, UnicodeError) as error:
        raise NotDelivered(f"{type(error).__name__}: {error}") from error
    if not 200 <= answer.status < 300:
        raise NotDelivered(f"it was answered with {answer.status}", is_final=answer.status == _GONE)
    return answer.status


def _over_tls(plain: socket.socket, host: str) -> socket.socket:
    return ssl.create_default_context().wrap_socket(plain, server_hostname=host)


@contextmanager
def _no_longer_than(seconds: float, connected: socket.socket) -> Iterator[None]:
    """End a connection that lasts longer: by a byte now and then, a receiver could hold it for ever.

    Raises:
        NotDelivered: it was ended.
    """
    late = Event()
    with connected.dup() as same:  # TLS takes the descriptor of the other

        def end() -> None:
            late.set()
            with suppress(OSError):
                same.shutdown(socket.SHUT_RDWR)

        timer = Timer(seconds, end)
        timer.daemon = True
        timer.start()
        try:
            yield
        except (OSError, HTTPException) as error:
            if late.is_set():
                raise NotDelivered(f"it has not answered within {seconds:g} s") from error
            raise
        finally:
            timer.cancel()
            timer.join()
