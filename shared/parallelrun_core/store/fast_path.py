"""Past redis-py's layers, for calls that are made thousands of times each second.

Its layers for pools, pushed messages and metrics take as long as the rest of a call when caches are cold, as they are
in an agent. This is the only module that knows of redis-py's private parts. Whether they are as expected is checked
once for each client (`has_private_parts`); if they aren't, calls go through redis-py's own methods, slower and with
the same answers and errors.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import redis
from hiredis import Reader, pack_command

Command = tuple[Any, ...]
Ask = Callable[..., list[Any]]
"""Sends these commands, and returns an answer for each."""


def _incomplete() -> object:
    try:
        from redis._parsers import hiredis
    except ImportError:
        return None
    return getattr(hiredis, "NOT_ENOUGH_DATA", None)


_DROP_UNSENT: Final = struct.pack("ii", 1, 0)
"""An option of a socket (`SO_LINGER`): what was not received when it is closed is not sent any more."""

_INCOMPLETE: Final = _incomplete()
"""What the reader of redis-py returns while an answer is incomplete."""


class DirectClient(redis.Redis):
    """A client with one connection, for a process that asks from one thread.

    Attributes:
        send: `send(connection, command)`: the answer to a packed command, as `ask` returns it.
        connects: grows whenever the connection is made anew, perhaps to another server.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.connects = 0
        self.send: Callable[[Any, bytes], Any] = send_through_redis_py
        connection: Any = self.connection
        connection.register_connect_callback(self._connected)
        _drop_unsent_at_end(connection)
        if has_private_parts(connection):
            self.send = send_directly

    def ask(self, command: bytes) -> Any:
        """The server's answer to a packed command; raises what redis-py raises."""
        return self.send(self.connection, command)

    def limit_wait(self, timeout_s: float) -> None:
        """Wait at most this long for an answer from now on."""
        connection: Any = self.connection
        connection.socket_timeout = connection.socket_connect_timeout = timeout_s
        if connection.is_connected and not _set_timeout(connection, timeout_s):
            connection.disconnect()  # the next one has it

    def _connected(self, connection: object) -> None:
        self.connects += 1
        _drop_unsent_at_end(connection)


def has_private_parts(connection: Any) -> bool:
    """Return whether a connection, which is there, has the parts that `send_directly` uses."""
    parser = getattr(connection, "_parser", None)
    reader = getattr(parser, "_reader", None)
    return (
        isinstance(reader, Reader)
        and reader.gets() is _INCOMPLETE is not None
        and isinstance(getattr(parser, "_buffer", None), bytearray)
        and hasattr(getattr(parser, "_sock", None), "recv_into")
    )


def send_directly(connection: Any, command: bytes) -> Any:
    """Do what redis-py does, and raise the same, with the parts that its parser has for one connection."""
    if not connection.is_connected:
        connection.connect()
    try:
        parser = connection._parser
        sock, reader = parser._sock, parser._reader
        sock.sendall(command)
        while (answer := reader.gets()) is _INCOMPLETE:
            size = sock.recv_into(parser._buffer)
            if not size:
                raise ConnectionResetError("the server has closed the connection")
            reader.feed(parser._buffer, 0, size)
        if isinstance(answer, redis.ConnectionError):
            raise answer
    except BaseException as error:
        connection.disconnect()  # or its answer would be taken for that of the next command
        if isinstance(error, TimeoutError):
            raise redis.TimeoutError("Redis has not answered in time") from error
        if isinstance(error, OSError) and not isinstance(error, redis.RedisError):
            raise redis.ConnectionError(f"the connection to Redis is broken: {error}") from error
        raise
    if isinstance(answer, Exception):
        raise answer
    return answer


def socket_of(connection: Any) -> socket.socket | None:
    """Return the socket of a connection, to wait for it beside others; None: redis-py has none, or has it elsewhere."""
    own_socket = getattr(connection, "_sock", None)
    return own_socket if isinstance(own_socket, socket.socket) else None


def _drop_unsent_at_end(connection: object) -> None:
    """Have the kernel drop what a cut network has kept from the server, once the connection is closed.

    It would go on sending that for minutes. When the network is back, a turn that its agent has given up could so come
    after what the agent has said since, and lease mini-batches of which no session knows, for as long as the session
    lives.
    """
    if (own_socket := socket_of(connection)) is not None:
        own_socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _DROP_UNSENT)


def send_through_redis_py(connection: Any, command: bytes) -> Any:
    """Send a command by redis-py's own methods alone, and return the answer."""
    try:
        connection.send_packed_command([command])
        return connection.read_response()
    except redis.ConnectionError:
        connection.disconnect()
        raise


def _set_timeout(connection: Any, timeout_s: float) -> bool:
    """Change how long an open connection waits; whether redis-py has a way to do so."""
    update = getattr(connection, "update_current_socket_timeout", None)
    if update is None:
        return False
    update(timeout_s)
    return True


@contextmanager
def conversation(client: redis.Redis) -> Iterator[Ask]:
    """Hold one connection to one server for as long as this lasts: `WATCH` and `MULTI` need that.

    It does what a pipeline of redis-py does, with a round trip for as many commands as are sent at once, and without
    its layers, which take longer than Redis does. Raises redis-py's errors; after any error the connection is closed,
    so that nothing is watched or half-said on it.
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


def in_one_step(client: redis.Redis, commands: Iterable[Command]) -> None:
    """Carry out all of these commands in one transaction, or none of them; raises redis-py's errors."""
    with conversation(client) as ask:
        ask(("MULTI",), *commands, ("EXEC",))


def _answer(connection: Any) -> Any:
    try:
        return connection.read_response()
    except redis.ResponseError as error:
        return error
