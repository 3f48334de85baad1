"""Delivery of webhooks: the addresses that they may go to, and the keys that sign them. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Final

from parallelrun_core.untrusted.addresses import Reach, address_in, plain_address, reach_of

_HOST: Final = re.compile(r"(\*\.)?[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?")


@dataclass(frozen=True)
class Allowed:
    """The addresses that an operator allows besides public ones."""

    networks: tuple[IPv4Network | IPv6Network, ...] = ()
    hosts: frozenset[str] = frozenset()
    is_anywhere: bool = False

    @classmethod
    def parse(cls, text: str) -> Allowed:
        """Parse `10.0.0.0/8, hooks.example.com, *.example.org`; `*`: anywhere.

        Raises:
            ValueError: an entry is none of these.
        """
        networks, hosts = list[IPv4Network | IPv6Network](), set[str]()
        entries = {entry.strip().lower() for entry in text.split(",")} - {""}
        for entry in entries - {"*"}:
            try:
                networks.append(ip_network(entry, strict=False))
            except ValueError as error:
                if not _HOST.fullmatch(entry):
                    raise ValueError(f"{entry!r} is neither a network, a host, *.DOMAIN nor *") from error
                hosts.add(entry)
        return cls(tuple(networks), frozenset(hosts), "*" in entries)

    def has_host(self, host: str) -> bool:
        """Return whether it is named, or below a domain that is."""
        parts = host.lower().rstrip(".").split(".")
        domains = {f"*.{'.'.join(parts[at:])}" for at in range(1, len(parts))}
        return not self.hosts.isdisjoint({".".join(parts), *domains})


def refusal(host: str, address: str, allowed: Allowed) -> str:
    """Why nothing is sent to this address of a host; empty if it may be.

    What only machines themselves have business with is refused whatever name leads there; a network that is allowed by
    its address isn't.
    """
    plain, reach = plain_address(address), reach_of(address_in(address))
    if any(plain in network for network in allowed.networks):
        return ""
    if reach is Reach.MACHINE:
        return f"{host} leads to {plain}, which no notice is sent to"
    if allowed.is_anywhere or reach is Reach.PUBLIC or allowed.has_host(host):
        return ""
    return f"{host} leads to {plain}, which is not public; masters can allow it (--notify-allow)"


def key_file(host: str, name: str) -> str:
    """The file of a key, below the folder of all keys: in a folder with the name of the host that it is meant for.

    So nobody can have something signed for one receiver with the key of another.

    Raises:
        ValueError: no file can have the name of this host.
    """
    host = host.lower().rstrip(".")
    if not _HOST.fullmatch(host):
        host = str(ip_address(host))
    return f"{host}/{name}"
