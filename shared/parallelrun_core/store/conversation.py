"""Several commands on one connection, with a round trip for as many as are sent at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from hiredis import pack_command
from redis.exceptions import ResponseError

if TYPE_CHECKING:
    from redis import Redis

Command = tuple[Any, ...]
Ask = Callable[..., list[Any]]
"""Sends these commands, and returns an answer for each."""


@contextmanager
def conversation(client: Redis) -> Iterator[Ask]:
    """One connection, to one server, for as long as this lasts: what `WATCH` and `MULTI` need.

    It does what a pipeline of redis-py does, without its layers, which take longer than Redis does. Raises redis-py's
    errors; after any error the connection is closed, so that nothing is watched or half-said on it.
    """
    pool: Any = client.connection_pool
    connection = pool.get_connection()

    def ask(*commands: Command) -> list[Any]:
        packed: Iterator[bytes] = map(pack_command, commands)
        connection.send_packed_command([b"".join(packed)])
        answers = [_answer(connection) for _ in commands]
        for answer in answers:
            for each in answer if isinstance(answer, list) else (answer,):
                if isinstance(each, Exception):
                    raise each
        return answers

    try:
        yield ask
    except BaseException:
        connection.disconnect()
        raise
    finally:
        pool.release(connection)


def _answer(connection: Any) -> Any:
    try:
        return connection.read_response()
    except ResponseError as error:
        return error
