"""What is looked up is checked, and what was checked is connected to."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from parallelrun_core.storage.interface import Version
from parallelrun_core.storage.objects.trouble import AccessDenied, StoreError
from parallelrun_core.storage.objects.web import web_get, web_version
from parallelrun_core.untrusted.connecting import AddressRefused, connect_checked, refusal_to_read

NAME = "data.example.com"
RESOLVE = socket.getaddrinfo


@contextmanager
def listening(address: str = "127.0.0.1") -> Iterator[tuple[int, list[str]]]:
    """A port, and the addresses at which somebody has connected to it."""
    reached: list[str] = []
    with socket.create_server((address, 0)) as server:

        def accept() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    reached.append(connection.getsockname()[0])

        thread = threading.Thread(target=accept)
        thread.start()
        try:
            yield server.getsockname()[1], reached
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


def leading(monkeypatch: pytest.MonkeyPatch, *answers: list[str]) -> list[str]:
    """Let a name lead to these addresses, one answer after another; returns the names that were looked up."""
    asked: list[str] = []

    def resolve(host: str, port: int, *args: Any, **kwargs: Any) -> Any:
        if host != NAME:
            return RESOLVE(host, port, *args, **kwargs)
        asked.append(host)
        addresses = answers[min(len(asked), len(answers)) - 1]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    return asked


def test_a_name_is_looked_up_once_and_what_was_checked_is_connected_to(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = leading(monkeypatch, ["127.0.0.1"], ["127.0.0.2"])
    checked: list[str] = []

    def check(address: str) -> str:
        checked.append(address)
        return ""

    with listening("0.0.0.0") as (port, _):
        connection = connect_checked(NAME, port, check, 5.0)
        with connection:
            assert connection.getpeername()[0] == "127.0.0.1"

    assert (asked, checked) == ([NAME], ["127.0.0.1"])


def test_one_address_that_is_refused_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    leading(monkeypatch, ["127.0.0.1", "169.254.169.254"])
    with listening() as (port, reached), pytest.raises(AddressRefused, match=r"169\.254\.169\.254"):
        connect_checked(NAME, port, lambda address: address if address.startswith("169.254.") else "", 5.0)

    assert reached == []


@pytest.mark.parametrize(
    "host, address, is_read",
    [
        ("localhost", "127.0.0.1", True), ("127.0.0.1", "127.0.0.1", True), ("::1", "::1", True),
        (NAME, "127.0.0.1", False), (NAME, "::1", False), (NAME, "::ffff:127.0.0.1", False),
        ("127.1", "127.0.0.1", False),
        (NAME, "10.0.0.7", True), (NAME, "fd12::1", True), (NAME, "93.184.216.34", True),
        (NAME, "169.254.169.254", False), (NAME, "fe80::1%eth0", False), ("169.254.169.254", "169.254.169.254", False),
        (NAME, "64:ff9b::a9fe:a9fe", False), (NAME, "192.0.0.192", False), (NAME, "0.0.0.0", False),
    ],
)  # fmt: skip
def test_where_a_name_leads_decides_whether_it_is_read(host: str, address: str, *, is_read: bool) -> None:
    assert (refusal_to_read(host, address) == "") == is_read


def test_a_name_that_leads_to_this_machine_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """As when its owner changes the name after the URL was allowed."""
    leading(monkeypatch, ["127.0.0.1"])
    for name in ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("parallelrun_core.storage.objects.web._RETRY_FOR_S", 0.0)
    with listening() as (port, reached):
        url = f"https://{NAME}:{port}/x"
        for ask in (lambda: web_version(url), lambda: web_get(url, Version(1, 0.0))):
            with suppress(OSError):  # what is not refused is found by who was reached
                ask()
    assert reached == []


def test_a_proxy_that_is_no_url_is_told_without_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://user:secret@proxy:99999")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(StoreError, match="https_proxy is no URL") as told:
        web_version("https://example.org/x")
    assert "secret" not in str(told.value)


def test_a_refusal_says_where_a_name_leads(monkeypatch: pytest.MonkeyPatch) -> None:
    leading(monkeypatch, ["169.254.169.254"])
    monkeypatch.setenv("no_proxy", NAME)

    with pytest.raises(AccessDenied, match=r"leads to 169\.254\.169\.254"):
        web_version(f"https://{NAME}/x")
