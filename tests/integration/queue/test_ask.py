"""One packed command and its answer, past redis-py's own layers: the same answers and errors, none mixed up."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import redis
from hiredis import pack_command

from parallelrun_core.store.connection import ServerUnable, ask, connect, limit_wait
from parallelrun_core.store.scripts import QuickScript
from tests.proxy import Proxy

pytestmark = pytest.mark.integration


def packed(*words: Any) -> bytes:
    return bytes(pack_command(words))


WHO = packed("ECHO", "who")


@pytest.fixture
def proxy(redis_url: str) -> Iterator[Proxy]:
    with Proxy(redis_url) as proxy:
        yield proxy


def test_answers_are_those_of_the_usual_way(redis_url: str) -> None:
    client = connect(redis_url, one_connection=True)
    assert ask(client, WHO) == client.echo("who") == b"who"
    long = b"x" * 1_000_000  # comes in many pieces
    assert ask(client, packed("ECHO", long)) == long
    assert ask(client, packed("EVAL", "return {1, {'a', false}, 'b'}", 0)) == [1, [b"a", None], b"b"]


def test_an_error_that_the_server_tells_leaves_the_connection_as_it_is(redis_url: str) -> None:
    client = connect(redis_url, one_connection=True)
    number = client.client_id()
    with pytest.raises(redis.exceptions.NoScriptError):
        ask(client, packed("EVALSHA", "0" * 40, 0))
    with pytest.raises(redis.ResponseError, match="wrong number"):
        ask(client, packed("ECHO"))
    assert ask(client, WHO) == b"who"
    assert client.client_id() == number


def test_a_server_that_can_write_nothing_is_away(redis_url: str) -> None:
    client = connect(redis_url, one_connection=True)
    with pytest.raises(ServerUnable, match="OOM"):
        ask(client, packed("EVAL", "return redis.error_reply('OOM no room')", 0))
    assert ask(client, WHO) == b"who"


def test_an_answer_that_is_too_late_is_not_taken_for_the_next_one(proxy: Proxy) -> None:
    client = connect(proxy.url, one_connection=True)
    assert ask(client, WHO) == b"who"
    limit_wait(client, 0.2)
    proxy.set("one-way")
    with pytest.raises(redis.TimeoutError):
        ask(client, packed("ECHO", "late"))
    proxy.set("pass")
    limit_wait(client, 30)
    assert ask(client, WHO) == b"who"


def test_a_connection_that_breaks_is_made_anew(proxy: Proxy) -> None:
    client = connect(proxy.url, one_connection=True)
    assert ask(client, WHO) == b"who"
    proxy.set("reset")
    for _ in range(2):
        with pytest.raises(redis.ConnectionError):
            ask(client, WHO)
    proxy.set("pass")
    assert ask(client, WHO) == b"who"


def test_a_server_that_was_replaced_behind_a_connection_is_noticed_once(redis_url: str) -> None:
    """By a script that it knew and doesn't know any more."""
    client = connect(redis_url, one_connection=True)
    quick = QuickScript(client, client.register_script("return ARGV[1]"), [], ["here"])
    assert quick([]) == quick([]) == b"here"
    client.script_flush()
    with pytest.raises(redis.ConnectionError):
        quick([])
    assert quick([]) == b"here"
    client.script_flush()
    connection: Any = client.connection
    connection.disconnect()  # this has been noticed
    assert quick([]) == b"here"
