"""Connections to hosts that a user has named: what is looked up is checked, and what was checked is connected to.

A name may lead elsewhere the next time that it is looked up, so it is looked up once for each connection.
"""

from __future__ import annotations

import errno
import socket
import urllib.request
from collections.abc import Callable
from typing import Any

from parallelrun_core.untrusted.addresses import LOCAL_NAMES, Reach, address_in, is_literal_of, reach_of


class AddressRefused(OSError):
    """A host has an address that nothing is sent to."""


def connect_checked(host: str, port: int, refusal: Callable[[str], str], timeout_s: float) -> socket.socket:
    """A connection to the first address of a host that takes it; all of them must be allowed.

    Args:
        refusal: says why an address is not allowed; empty if it is.
        timeout_s: for each address, and afterwards for each part of an answer.

    Raises:
        AddressRefused: one of them is not.
        OSError: the host has no address, or none takes the connection.
    """
    looked_up = [str(info[4][0]) for info in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    addresses = list(dict.fromkeys(looked_up))
    for address in addresses:
        if why := refusal(address):
            raise AddressRefused(errno.EACCES, why)
    failure = OSError(f"{host} has no address")
    for address in addresses:
        try:
            return socket.create_connection((address, port), timeout=timeout_s)
        except OSError as error:
            failure = error
    raise failure


def looked_up_reach(host: str) -> Reach:
    """Return the most private kind of the addresses that a host has now, for what others connect to; public if it has
    none here."""
    try:
        infos = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return Reach.PUBLIC
    return max((reach_of(address_in(str(info[4][0]))) for info in infos), default=Reach.PUBLIC)


def refusal_to_read(host: str, address: str) -> str:
    """Return why nothing is read from this address of a host; empty if it may be.

    A server of a private network is a matter of which hosts an operator allows; a name that leads to this machine or to
    the metadata of a cloud is not what was allowed.
    """
    reach = reach_of(address_in(address))
    if reach is Reach.MACHINE:
        return f"{host} leads to {address}, where only machines themselves have business"
    if reach is Reach.LOOPBACK and host.lower() not in LOCAL_NAMES and not is_literal_of(host, reach):
        return f"{host} leads to {address}, which is this machine itself"
    return ""


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


def open_directly(request: urllib.request.Request, timeout_s: float) -> Any:
    """Open a request of a service to a server of its operator, without following it elsewhere: the headers, which may
    have a token, would go there, too.

    Raises:
        urllib.error.HTTPError: any answer but a success, redirects among them.
    """
    return urllib.request.build_opener(_NoRedirects).open(request, timeout=timeout_s)
