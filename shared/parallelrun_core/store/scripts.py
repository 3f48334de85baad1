"""Loads the Lua scripts that ship beside this module."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hiredis import pack_command
from redis import Redis
from redis.commands.core import Script
from redis.exceptions import NoScriptError

from parallelrun_core.store import script_texts
from parallelrun_core.store.errors import ServerReplaced
from parallelrun_core.store.fast_path import DirectClient


def script(redis: Redis, name: str) -> Script:
    """The script `lua/<name>.lua`, bound to a client; it is sent once, and called by its hash from then on."""
    return redis.register_script(script_texts.source(name))


class QuickScript:
    """A script that is called many times each second: partly packed in advance, and sent past redis-py's layers.

    Only a `DirectClient` is quick; any other has it run in the usual way. Raises the same errors as any other script,
    and `ServerReplaced` when the server behind a connection has become another one, as behind a proxy: this one may
    have forgotten something.

    Args:
        keys: those of every call, packed only once.
        args: the first arguments of every call, likewise.
    """

    def __init__(self, client: Redis, of: Script, keys: list[str], args: list[Any]) -> None:
        self._client = client if isinstance(client, DirectClient) else None
        self._script = of
        self._keys = keys
        self._args = args
        self._words, self._packed = _pack(("EVALSHA", of.sha, len(keys), *keys, *args))
        self._known_since = -1
        """The `connects` of the connection whose server has run it."""

    def __call__(self, args: list[Any]) -> Any:
        """Run the script with these further arguments, and return its answer."""
        client = self._client
        if client is None:
            return self._script(keys=self._keys, args=self._args + args)
        words, packed = _pack(args)
        command = b"*%d\r\n" % (self._words + words) + self._packed + packed
        try:
            answer = client.send(client.connection, command)
        except NoScriptError:  # the server was restarted
            known_since, self._known_since = self._known_since, -1
            if known_since == client.connects:
                raise ServerReplaced("another server has taken over this connection") from None
            answer = self._script(keys=self._keys, args=self._args + args)
        self._known_since = client.connects
        return answer


def _pack(words: Sequence[Any]) -> tuple[int, bytes]:
    """The number of words, and the words in Redis' protocol, without the line that gives their number."""
    _, _, packed = pack_command(tuple(words)).partition(b"\r\n")
    return len(words), packed
