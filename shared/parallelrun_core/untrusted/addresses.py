"""The addresses of networks: which are public, which are somebody's own, and which only machines have business with.

The table is IANA's registries of special-purpose addresses (IPv4 and IPv6), with the addresses at which clouds give
machines their credentials, by the clouds' documentation. Python's own table differs from release to release.
"""

from __future__ import annotations

from enum import IntEnum
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final, TypeAlias

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network

LOCAL_NAMES: Final = frozenset({"127.0.0.1", "localhost", "::1"})
"""The names of this machine that a user may write."""


class Reach(IntEnum):
    """A kind of address; the larger, the fewer have business there."""

    PUBLIC = 0
    INNER = 1
    """An address of a private network, or of no use on the internet."""
    LOOPBACK = 2
    MACHINE = 3
    """Link-local, a cloud's own services, groups, or nobody's."""


def _networks(*texts: str) -> tuple[Network, ...]:
    return tuple(map(ip_network, texts))


_PUBLIC: Final = _networks(  # inside of blocks below
    "192.0.0.9/32", "192.0.0.10/32", "192.31.196.0/24", "192.52.193.0/24", "192.175.48.0/24",
    "2001:1::1/128", "2001:1::2/128", "2001:1::3/128", "2001:3::/32", "2001:4:112::/48", "2001:20::/28", "2001:30::/28",
    "2620:4f:8000::/48",
)  # fmt: skip
_BLOCKS: Final[tuple[tuple[Reach, tuple[Network, ...]], ...]] = (
    (
        Reach.MACHINE,
        _networks(
            # Metadata of Oracle Cloud; of AWS and Google by IPv6; of Alibaba Cloud; of Azure.
            "192.0.0.192/32", "fd00:ec2::/32", "fd20:ce::254/128", "100.100.100.200/32", "168.63.129.16/32",
            "0.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "240.0.0.0/4", "::/128", "fe80::/10", "fec0::/10", "ff00::/8",
        ),
    ),
    (Reach.LOOPBACK, _networks("127.0.0.0/8", "::1/128")),
    (
        Reach.INNER,
        _networks(
            "10.0.0.0/8", "100.64.0.0/10", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24",
            "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
            "64:ff9b:1::/48", "100::/64", "100:0:0:1::/64", "2001::/23", "2001:db8::/32", "2002::/16",
            "3fff::/20", "5f00::/16",
            "fc00::/7",
        ),
    ),
)  # fmt: skip
_GLOBAL_IPV6: Final = IPv6Network("2000::/3")
"""All that IANA has given out; the rest is reserved."""
_SAME: Final = (IPv6Network("::ffff:0:0/96"), IPv6Network("::ffff:0:0:0/96"), IPv6Network("64:ff9b::/96"))
"""Blocks of addresses that are others of IPv4, written differently: mapped, translated, NAT64."""
_TUNNELS: Final = ((IPv6Network("::/96"), 0), (IPv6Network("2002::/16"), 80), (IPv6Network("2001::/32"), 64))
"""Blocks by way of which an address of IPv4 is reached, and how many bits are behind that: compatible, 6to4, and the
server of Teredo."""
_TEREDO: Final = IPv6Network("2001::/32")
_ISATAP: Final = frozenset({0x00005EFE, 0x02005EFE})
_MASK: Final = 0xFFFFFFFF


def is_literal_of(host: str, kind: Reach) -> bool:
    """Return whether a host, as a URL has it, with a port or without one, is an address of this kind."""
    if host.startswith("["):
        host = host[1:].partition("]")[0]
    elif host.count(":") == 1:
        host = host.partition(":")[0]
    try:
        return reach_of(address_in(host)) is kind
    except ValueError:
        return False


def address_in(text: str) -> Address:
    """An address without its zone.

    Raises:
        ValueError: it is none.
    """
    return ip_address(text.partition("%")[0])


def plain_address(text: str) -> Address:
    """An address without its zone; the one of IPv4, if it is that, written differently.

    Raises:
        ValueError: it is none.
    """
    address = address_in(text)
    return _written_differently(address) or address


def reach_of(address: Address) -> Reach:
    """The kind of an address; of one by way of which others are reached, the most private of them all."""
    same = _written_differently(address)
    return _reach(same) if same is not None else max(map(_reach, [address, *_reached_through(address)]))


def _written_differently(address: Address) -> IPv4Address | None:
    is_same = isinstance(address, IPv6Address) and any(address in block for block in _SAME)
    return IPv4Address(int(address) & _MASK) if is_same else None


def _reach(address: Address) -> Reach:
    for kind, networks in _BLOCKS:
        if kind is Reach.INNER and any(address in network for network in _PUBLIC):
            return Reach.PUBLIC
        if any(address in network for network in networks):
            return kind
    if isinstance(address, IPv6Address) and address not in _GLOBAL_IPV6:
        return Reach.MACHINE
    return Reach.PUBLIC


def _reached_through(address: Address) -> list[IPv4Address]:
    """The addresses of IPv4 to which what is sent to an address may go."""
    if not isinstance(address, IPv6Address):
        return []
    number = int(address)
    inner = [number >> bits for block, bits in _TUNNELS if address in block and number > 1]
    if address in _TEREDO:
        inner.append(number ^ _MASK)
    if number >> 32 & _MASK in _ISATAP:
        inner.append(number)
    return [IPv4Address(each & _MASK) for each in inner]
