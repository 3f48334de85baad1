"""Cookies of browsers, by the clock."""

from __future__ import annotations

import pytest

from parallelrun_api.http.sessions import CODE_S, SESSION_S, Sessions
from parallelrun_api.http.token import Token
from parallelrun_core.errors import Unauthorized


class Clock:
    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def cookie(header: str) -> bytes:
    return header.partition(";")[0].encode()


def test_a_session_ends() -> None:
    clock = Clock()
    sessions = Sessions(Token("secret"), clock)
    headers = {b"host": b"127.0.0.1:8080"}
    _, header = sessions.new_cookie("default", headers)
    shown = {**headers, b"cookie": cookie(header)}

    clock.now += SESSION_S - 1
    assert sessions.of(shown) is not None
    clock.now += 1
    assert sessions.of(shown) is None


def test_another_server_that_knows_the_token_takes_it_and_no_other() -> None:
    headers = {b"host": b"127.0.0.1:8080"}
    _, header = Sessions(Token("secret")).new_cookie("default", headers)
    shown = {**headers, b"cookie": cookie(header)}

    assert Sessions(Token("secret")).of(shown) is not None
    assert Sessions(Token("another")).of(shown) is None


def test_servers_on_two_ports_of_a_machine_have_cookies_of_their_own() -> None:
    sessions = Sessions(Token("secret"))
    one, other = ({b"host": host} for host in (b"127.0.0.1:8080", b"127.0.0.1:9090"))

    names = {sessions.new_cookie("default", each)[1].partition("=")[0] for each in (one, other)}

    assert names == {"parallelrun-8080", "parallelrun-9090"}


def test_a_code_ends_and_is_used_up() -> None:
    clock = Clock()
    sessions = Sessions(Token("secret"), clock)
    headers = {b"host": b"127.0.0.1:8080", b"authorization": b"Bearer secret"}
    code, _ = sessions.new_code("default", headers)
    late, _ = sessions.new_code("default", headers)

    assert sessions.redeemed(code) == ("default", int(clock.now) + CODE_S + SESSION_S)
    assert sessions.redeemed(code) is None
    clock.now += CODE_S
    assert sessions.redeemed(late) is None


def test_behind_a_proxy_that_speaks_tls_the_cookie_is_for_that_only() -> None:
    headers = {b"host": b"jobs.example", b"x-forwarded-proto": b"https"}

    assert "Secure" in Sessions(Token("secret")).new_cookie("default", headers)[1].split("; ")


def test_a_cookie_can_not_be_renewed() -> None:
    clock = Clock()
    sessions = Sessions(Token("secret"), clock)
    headers = {b"host": b"127.0.0.1:8080"}
    first, header = sessions.new_cookie("default", headers)
    for _ in range(3):
        clock.now += SESSION_S // 4
        code, _ends = sessions.new_code("default", {**headers, b"cookie": cookie(header)})
        _, until = sessions.redeemed(code) or ("", 0)
        renewed, header = sessions.new_cookie("default", headers, until)
        assert renewed.ends == first.ends

    clock.now = first.ends - 1
    code, ends = sessions.new_code("default", {**headers, b"cookie": cookie(header)})
    assert ends == first.ends


@pytest.mark.parametrize(
    "sent", ["ZGVmYXVsdA.9999999999.\u00e9", "\u00e9.9999999999.x", "w6k.9999999999.x", "..", "\u00b2"]
)
def test_a_cookie_with_anything_in_it_is_none(sent: str) -> None:
    headers = {b"host": b"127.0.0.1:8080", b"cookie": f"parallelrun-8080={sent}".encode("latin-1")}
    quoted = {**headers, b"cookie": b'parallelrun-8080="ZGVmYXVsdA.9999999999.\\351"'}

    for each in (headers, quoted):
        with pytest.raises(Unauthorized):
            Sessions(Token("secret")).admit("GET", each)
