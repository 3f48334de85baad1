"""One packed command and its answer, past redis-py's own layers: the same answers and errors, none mixed up.

All of it also holds when redis-py's private parts are other than expected, and its own methods are used.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
import redis
from hiredis import pack_command

from parallelrun_core.store import fast_path
from parallelrun_core.store.connection import ServerReplaced, ServerUnable, connect_directly
from parallelrun_core.store.scripts import QuickScript
from tests.proxy import Proxy
from tests.twins.sabotage import always

pytestmark = pytest.mark.integration


def packed(*words: Any) -> bytes:
    return bytes(pack_command(words))


WHO = packed("ECHO", "who")


@pytest.fixture(params=["its private parts", "its own methods"], autouse=True)
def through(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """What of redis-py is used."""
    if request.param == "its own methods":
        monkeypatch.setattr(fast_path, "has_private_parts", always(False))
    return str(request.param)


@pytest.fixture
def proxy(redis_url: str) -> Iterator[Proxy]:
    with Proxy(redis_url) as proxy:
        yield proxy


def test_the_private_parts_of_this_redis_py_are_as_expected(redis_url: str, through: str) -> None:
    """If this fails, a new redis-py has changed them: all still works, and an agent takes longer for each turn."""
    client = connect_directly(redis_url)
    expected = fast_path.send_through_redis_py if through == "its own methods" else fast_path.send_directly
    assert client.send is expected


def test_answers_are_those_of_the_usual_way(redis_url: str) -> None:
    client = connect_directly(redis_url)
    assert client.ask(WHO) == client.echo("who") == b"who"
    long = b"x" * 1_000_000  # comes in many pieces
    assert client.ask(packed("ECHO", long)) == long
    assert client.ask(packed("EVAL", "return {1, {'a', false}, 'b'}", 0)) == [1, [b"a", None], b"b"]


def test_an_error_that_the_server_tells_leaves_the_connection_as_it_is(redis_url: str) -> None:
    client = connect_directly(redis_url)
    number = client.client_id()
    with pytest.raises(redis.exceptions.NoScriptError):
        client.ask(packed("EVALSHA", "0" * 40, 0))
    with pytest.raises(redis.ResponseError, match="wrong number"):
        client.ask(packed("ECHO"))
    assert client.ask(WHO) == b"who"
    assert client.client_id() == number


def test_a_server_that_can_write_nothing_is_away(redis_url: str) -> None:
    client = connect_directly(redis_url)
    with pytest.raises(ServerUnable, match="OOM"):
        client.ask(packed("EVAL", "return redis.error_reply('OOM no room')", 0))
    assert client.ask(WHO) == b"who"


def test_an_answer_that_is_too_late_is_not_taken_for_the_next_one(proxy: Proxy) -> None:
    client = connect_directly(proxy.url)
    assert client.ask(WHO) == b"who"
    client.limit_wait(0.2)
    proxy.set("one-way")
    with pytest.raises(redis.TimeoutError):
        client.ask(packed("ECHO", "late"))
    proxy.set("pass")
    client.limit_wait(30)
    assert client.ask(WHO) == b"who"


def test_a_command_that_was_given_up_is_not_sent_any_more() -> None:
    """A server that reads nothing stands for a cut network: what it is sent waits in the kernel of the client."""
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 12)
        server.bind(("127.0.0.1", 0))
        server.listen()
        client = connect_directly(f"redis://127.0.0.1:{server.getsockname()[1]}/0")
        client.limit_wait(0.2)
        for _ in range(2):  # also of a connection that was made anew
            with pytest.raises(redis.TimeoutError):
                client.ask(packed("ECHO", b"x" * 200_000))
            with server.accept()[0] as end, suppress(ConnectionResetError):
                received = 0
                while data := end.recv(1 << 16):
                    received += len(data)
                    assert received < 200_000


def test_a_connection_that_breaks_is_made_anew(proxy: Proxy) -> None:
    client = connect_directly(proxy.url)
    assert client.ask(WHO) == b"who"
    proxy.set("reset")
    for _ in range(2):
        with pytest.raises(redis.ConnectionError):
            client.ask(WHO)
    proxy.set("pass")
    assert client.ask(WHO) == b"who"


def test_a_server_that_was_replaced_behind_a_connection_is_noticed_once(redis_url: str) -> None:
    """By a script that it knew and doesn't know any more."""
    client = connect_directly(redis_url)
    quick = QuickScript(client, client.register_script("return ARGV[1]"), [], ["here"])
    assert quick([]) == quick([]) == b"here"
    client.script_flush()
    with pytest.raises(ServerReplaced):
        quick([])
    assert quick([]) == b"here"
    client.script_flush()
    connection: Any = client.connection
    connection.disconnect()  # this has been noticed
    assert quick([]) == b"here"
