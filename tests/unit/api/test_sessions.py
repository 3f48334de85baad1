"""Cookies of browsers, by the clock."""

from __future__ import annotations

from pathlib import Path

import pytest

from parallelrun_api.http.named_tokens import NamedTokens
from parallelrun_api.http.sessions import CODE_S, SESSION_S, Sessions
from parallelrun_api.http.token import Token
from parallelrun_core.errors import Conflict, Unauthorized


class Clock:
    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def cookie(header: str) -> bytes:
    return header.partition(";")[0].encode()


def test_a_session_ends(tmp_path: Path) -> None:
    clock = Clock()
    sessions = Sessions(Token("secret"), tmp_path, clock)
    headers = {b"host": b"127.0.0.1:8080"}
    _, header = sessions.new_cookie("default", headers)
    shown = {**headers, b"cookie": cookie(header)}

    clock.now += SESSION_S - 1
    assert sessions.of(shown) is not None
    clock.now += 1
    assert sessions.of(shown) is None


def test_another_server_that_knows_the_token_takes_it_and_no_other(tmp_path: Path) -> None:
    headers = {b"host": b"127.0.0.1:8080"}
    _, header = Sessions(Token("secret"), tmp_path).new_cookie("default", headers)
    shown = {**headers, b"cookie": cookie(header)}

    assert Sessions(Token("secret"), tmp_path).of(shown) is not None
    assert Sessions(Token("another"), tmp_path).of(shown) is None


def test_servers_on_two_ports_of_a_machine_have_cookies_of_their_own(tmp_path: Path) -> None:
    sessions = Sessions(Token("secret"), tmp_path)
    one, other = ({b"host": host} for host in (b"127.0.0.1:8080", b"127.0.0.1:9090"))

    names = {sessions.new_cookie("default", each)[1].partition("=")[0] for each in (one, other)}

    assert names == {"parallelrun-8080", "parallelrun-9090"}


def test_a_code_ends_and_is_for_the_browser_that_shows_it_first(tmp_path: Path) -> None:
    clock = Clock()
    sessions = Sessions(Token("secret"), tmp_path, clock)
    asking = {b"host": b"127.0.0.1:8080", b"authorization": b"Bearer secret"}
    code, _ = sessions.new_code("default", asking)
    late, _ = sessions.new_code("default", asking)
    browser = {b"host": b"127.0.0.1:8080"}

    session, header = sessions.redeemed(code, browser)
    assert (session.token_name, session.ends) == ("default", int(clock.now) + SESSION_S)
    assert sessions.redeemed(code, {**browser, b"cookie": cookie(header)}) == (session, "")
    with pytest.raises(Unauthorized, match="Get another one"):
        sessions.redeemed(code, browser)
    clock.now += CODE_S
    with pytest.raises(Unauthorized, match="Get another one"):
        sessions.redeemed(late, browser)


def test_a_link_of_somebody_else_replaces_no_session(tmp_path: Path) -> None:
    names = tmp_path / "tokens"
    names.write_text("ann aaaaaaaaaaaaaaaaaaaa\nbob bbbbbbbbbbbbbbbbbbbb\n")
    names.chmod(0o600)
    sessions = Sessions(Token("secret", named=NamedTokens(names)), tmp_path)
    browser = {b"host": b"127.0.0.1:8080"}
    _, header = sessions.new_cookie("ann", browser)
    of_ann = {**browser, b"cookie": cookie(header)}
    code, _ = sessions.new_code("bob", {**browser, b"authorization": b"Bearer x"})
    own_code, _ = sessions.new_code("ann", {**browser, b"authorization": b"Bearer x"})

    with pytest.raises(Conflict, match="Sign out first"):
        sessions.redeemed(code, of_ann)
    kept, none = sessions.redeemed(own_code, of_ann)
    assert (kept.token_name, none) == ("ann", "")
    assert sessions.redeemed(code, browser)[0].token_name == "bob"


def test_a_session_that_was_ended_stays_so_on_all_servers_and_after_a_restart(tmp_path: Path) -> None:
    clock = Clock()
    sessions = Sessions(Token("secret"), tmp_path, clock)
    browser = {b"host": b"127.0.0.1:8080"}
    _, header = sessions.new_cookie("default", browser)
    _, other_header = sessions.new_cookie("default", browser)
    shown, other = ({**browser, b"cookie": cookie(each)} for each in (header, other_header))
    assert sessions.of(shown) is not None

    assert "Max-Age=0" in sessions.ended(shown)

    for server in (sessions, Sessions(Token("secret"), tmp_path, clock)):
        assert server.of(shown) is None
        assert server.of(other) is not None
    clock.now += SESSION_S + 1
    _, header = sessions.new_cookie("default", browser)
    sessions.ended({**browser, b"cookie": cookie(header)})
    assert len(list((tmp_path / "ended-sessions").glob("[0-9]*"))) == 1, "what has ended by itself is forgotten"


def test_behind_a_proxy_that_speaks_tls_the_cookie_is_for_that_only(tmp_path: Path) -> None:
    headers = {b"host": b"jobs.example", b"x-forwarded-proto": b"https"}

    assert "Secure" in Sessions(Token("secret"), tmp_path).new_cookie("default", headers)[1].split("; ")


def test_a_cookie_can_not_be_renewed(tmp_path: Path) -> None:
    clock = Clock()
    sessions = Sessions(Token("secret"), tmp_path, clock)
    headers = {b"host": b"127.0.0.1:8080"}
    first, header = sessions.new_cookie("default", headers)
    for _ in range(3):
        clock.now += SESSION_S // 4
        code, _ends = sessions.new_code("default", {**headers, b"cookie": cookie(header)})
        renewed, header = sessions.redeemed(code, headers)
        assert renewed.ends == first.ends

    clock.now = first.ends - 1
    code, ends = sessions.new_code("default", {**headers, b"cookie": cookie(header)})
    assert ends == first.ends


@pytest.mark.parametrize(
    "sent", ["ZGVmYXVsdA.9999999999.a.\u00e9", "\u00e9.9999999999.x", "w6k.9999999999.x", "..", "\u00b2"]
)
def test_a_cookie_with_anything_in_it_is_none(sent: str, tmp_path: Path) -> None:
    headers = {b"host": b"127.0.0.1:8080", b"cookie": f"parallelrun-8080={sent}".encode("latin-1")}
    quoted = {**headers, b"cookie": b'parallelrun-8080="ZGVmYXVsdA.9999999999.\\351"'}

    for each in (headers, quoted):
        with pytest.raises(Unauthorized):
            Sessions(Token("secret"), tmp_path).admit("GET", each)


def test_a_code_is_of_one_token_and_not_of_its_name(tmp_path: Path) -> None:
    sessions = Sessions(Token("secret"), tmp_path)
    browser = {b"host": b"127.0.0.1:8080"}
    code, _ = sessions.new_code("default", {**browser, b"authorization": b"Bearer secret"})

    sessions.token = Token("another")

    with pytest.raises(Unauthorized, match="Get another one"):
        sessions.redeemed(code, browser)


def test_what_comes_of_a_session_ends_with_it(tmp_path: Path) -> None:
    sessions = Sessions(Token("secret"), tmp_path)
    browser = {b"host": b"127.0.0.1:8080"}
    shown = [{**browser, b"cookie": cookie(sessions.new_cookie("default", browser)[1])}]
    for _ in range(2):
        code, _ = sessions.new_code("default", shown[-1])
        shown.append({**browser, b"cookie": cookie(sessions.redeemed(code, browser)[1])})
    unused, _ = sessions.new_code("default", shown[1])
    assert all(sessions.of(each) is not None for each in shown)

    sessions.ended(shown[1])

    assert [sessions.of(each) is not None for each in shown] == [True, False, False]
    with pytest.raises(Unauthorized, match="Get another one"):
        sessions.redeemed(unused, browser)
