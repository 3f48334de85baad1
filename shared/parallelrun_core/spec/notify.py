"""The `notify` of a job: who is told when it has ended."""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final

from pydantic import Field, field_validator

from parallelrun_core.described import Strict

_NAME: Final = r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$"
_PLAIN: Final = re.compile(r"[!-~]+")
_URL: Final = re.compile(
    r"https?://(?P<user>[^/?#]*@)?(?P<host>\[[0-9A-Fa-f:.]+\]|[\w.-]+)(:(?P<port>\d{1,5}))?([/?][^#]*)?(?P<fragment>#.*)?"
)
_LAST_PORT: Final = 65535
_OF_CLOUDS: Final = frozenset({"fd00:ec2::254", "100.100.100.200", "168.63.129.16"})
"""Where machines of clouds get their credentials and settings, if not at link-local addresses: those of AWS for IPv6,
Alibaba Cloud and Azure, by their documentation."""


class Notify(Strict):
    """The request that is sent when the job has ended."""

    url: str = Field(max_length=2048)
    """`https://` or `http://`, without credentials."""
    secret: str = Field(default="", pattern=rf"{_NAME}|^$")
    """Name of the key that signs the request: the file `webhooks/HOST/NAME` in the masters' folder of secrets, for the
    host of the URL. Not signed when empty."""

    @field_validator("url")
    @classmethod
    def _of_the_web(cls, value: str) -> str:
        return checked_url(value)


def plain_notify(value: object) -> object:
    """The field as a mapping, if it was given as a URL alone."""
    return {"url": value} if isinstance(value, str) else value


def checked_url(value: str) -> str:
    """The URL, if a notice may be sent there as far as one can tell without asking for its address.

    Raises:
        ValueError: it can't.
    """
    parts = _URL.fullmatch(value) if _PLAIN.fullmatch(value) else None
    if parts is None or int(parts["port"] or 0) > _LAST_PORT:
        raise ValueError("must be a URL such as https://example.com/hook")
    if parts["user"]:
        raise ValueError("must not have credentials; name a key with `secret`, which signs the request")
    if parts["fragment"]:
        raise ValueError("must not have a part after '#', which is sent to nobody")
    host = parts["host"].strip("[]")
    address = _literal(host)
    if address is not None and is_never_told(address):
        raise ValueError(f"{host} is an address that no notice is sent to")
    return value


def is_never_told(address: IPv4Address | IPv6Address) -> bool:
    """Return whether only a machine itself has business there: it is link-local, or that of a cloud's metadata."""
    if str(address) in _OF_CLOUDS:
        return True
    return address.is_link_local or address.is_multicast or address.is_unspecified or address.is_reserved


def plain_address(text: str) -> IPv4Address | IPv6Address:
    """An address without its zone; an IPv4 address in the clothes of an IPv6 one is that.

    Raises:
        ValueError: it is none.
    """
    address = ip_address(text.partition("%")[0])
    if isinstance(address, IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        nat64 = IPv4Address(int(address) & 0xFFFFFFFF) if int(address) >> 32 == 0x64FF9B << 64 else None
        return inner or nat64 or address
    return address


def _literal(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return plain_address(host)
    except ValueError:
        return None
