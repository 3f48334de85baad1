"""Which addresses are public is what IANA's registries say, on every release of Python.

`special_addresses.csv` has the address blocks of the IPv4 and IPv6 Special-Purpose Address Registries, and whether
they are globally reachable. Those for which the registries say "N/A" (6to4 and its relays, Teredo) count as not.
"""

from __future__ import annotations

import csv
from ipaddress import IPv4Address, IPv6Address, ip_network
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parallelrun_core.untrusted.addresses import Address, Network, Reach, address_in, plain_address, reach_of

ROWS = list(csv.DictReader((Path(__file__).parent / "special_addresses.csv").read_text().splitlines()))
REGISTRY = {ip_network(row["block"]): row["globally_reachable"] == "True" for row in ROWS}
STANDS_FOR_IPV4 = {ip_network(block) for block in ("::ffff:0:0/96", "64:ff9b::/96")}


def most_specific(address: Address) -> Network | None:
    """The block of the registries that decides about an address."""
    blocks = [block for block in REGISTRY if address.version == block.version and address in block]
    return max(blocks, key=lambda block: block.prefixlen, default=None)


@pytest.mark.parametrize("block", REGISTRY, ids=str)
def test_a_block_is_what_the_registry_says(block: Network) -> None:
    edges = {block[0], block[-1], block[block.num_addresses // 2], block[block.num_addresses // 3]}
    for address in edges:
        if most_specific(address) == block and block not in STANDS_FOR_IPV4:
            assert (reach_of(address) is Reach.PUBLIC) == REGISTRY[block], address


@given(st.one_of([st.ip_addresses(), *(st.ip_addresses(network=block) for block in REGISTRY)]))
def test_what_is_public_is_global_in_the_registries(address: Address) -> None:
    block = most_specific(plain_address(str(address)))
    if reach_of(address) is Reach.PUBLIC:
        assert block is None or REGISTRY[block]
        assert not plain_address(str(address)).is_multicast


@pytest.mark.parametrize(
    "text",
    [
        "169.254.169.254", "192.0.0.192", "100.100.100.200", "168.63.129.16", "fd00:ec2::254", "fd00:ec2::23",
        "fd20:ce::254", "fe80::1", "fe80::1%eth0", "fec0::1", "feff::1", "0.0.0.0", "0.1.2.3", "::",
        "224.0.0.1", "ff02::1", "255.255.255.255", "240.0.0.1", "4000::1",
        "::ffff:169.254.169.254", "::169.254.169.254", "::10.0.0.7", "::ffff:0:169.254.169.254",
        "64:ff9b::a9fe:a9fe",
        "2002:a9fe:a9fe::1", "2001:0:a9fe:a9fe::1", "2001:0:5db8:d822::5601:5601", "2606:4700::5efe:169.254.169.254",
        "::ffff:192.0.0.192",
    ],
)  # fmt: skip
def test_only_machines_have_business_with(text: str) -> None:
    assert reach_of(address_in(text)) is Reach.MACHINE


@pytest.mark.parametrize(
    "text",
    ["10.0.0.7", "192.168.1.1", "192.88.99.1", "::ffff:10.0.0.7", "64:ff9b::a00:7", "2002:a00:7::1",
     "2002:5db8:d822::1", "2001:0:5db8:d822::f7f7:f7f7",
     "fd12::1", "64:ff9b:1::1", "2001:db8::1", "198.18.0.1"],
)  # fmt: skip
def test_a_private_address_is_one_in_all_its_forms(text: str) -> None:
    assert reach_of(address_in(text)) is Reach.INNER


@pytest.mark.parametrize("text", ["127.0.0.1", "127.255.0.3", "::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1"])
def test_this_machine_is_itself_in_all_forms(text: str) -> None:
    assert reach_of(address_in(text)) is Reach.LOOPBACK


@pytest.mark.parametrize("text", ["93.184.216.34", "2606:4700::1111", "::ffff:93.184.216.34", "64:ff9b::5db8:d822"])
def test_others_are_public(text: str) -> None:
    assert reach_of(address_in(text)) is Reach.PUBLIC


@given(st.ip_addresses(v=4))
def test_an_address_in_another_form_is_the_same(address: IPv4Address) -> None:
    for prefix in ("::ffff:0:0", "64:ff9b::", "::ffff:0:0:0"):
        embedded = IPv6Address(int(IPv6Address(prefix)) + int(address))
        assert reach_of(embedded) == reach_of(address)
        assert plain_address(str(embedded)) == address
