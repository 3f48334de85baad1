"""Proxies that people sign in at, and that tell the server in a header who they are."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Final

from parallelrun_api.people.person import ONLY_ONE
from parallelrun_core.names.patterns import OWNER_NAME

_NAME: Final = re.compile(OWNER_NAME)


@dataclass(frozen=True)
class Proxies:
    """Proxies by their addresses, and the header in which they name the person.

    Only what comes from these addresses is believed: anybody can write a header.
    """

    networks: tuple[IPv4Network | IPv6Network, ...]
    header: bytes
    """Names in lower case."""

    @classmethod
    def parse(cls, addresses: str, header: str) -> Proxies | None:
        """The proxies of a setting; None: there are none.

        Args:
            addresses: addresses and networks, such as `10.0.0.0/8`, separated by ','.

        Raises:
            ValueError: one of them is none.
        """
        networks = tuple(ip_network(each.strip()) for each in addresses.split(",") if each.strip())
        return cls(networks, header.lower().encode("ascii")) if networks else None

    def name_of(self, client: tuple[str, int] | None, headers: Mapping[bytes, bytes]) -> str:
        """The person of a request; empty: it comes from elsewhere, or names nobody who can be one.

        Args:
            client: the other end of the connection.
        """
        text = headers.get(self.header, b"").decode("latin-1").strip()
        if not text or client is None or not _NAME.fullmatch(text) or text == ONLY_ONE:
            return ""
        try:
            address = ip_address(client[0])
        except ValueError:
            return ""
        return text if any(address in network for network in self.networks) else ""
