"""The private parts of redis-py: when they look different, they are left alone."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from hiredis import Reader
from redis._parsers.hiredis import NOT_ENOUGH_DATA

from parallelrun_core.store import fast_path


def test_private_parts_that_look_different_are_not_used() -> None:
    server = SimpleNamespace(recv_into=lambda buffer: 0)
    as_now = {"_reader": Reader(notEnoughData=NOT_ENOUGH_DATA), "_sock": server, "_buffer": bytearray()}
    as_later: list[dict[str, Any]] = [{"_reader": Reader()}, {"_reader": None}, {"_sock": None}, {"_buffer": [b""]}]
    assert fast_path.has_private_parts(SimpleNamespace(_parser=SimpleNamespace(**as_now)))
    for change in as_later:
        assert not fast_path.has_private_parts(SimpleNamespace(_parser=SimpleNamespace(**{**as_now, **change})))
    assert not fast_path.has_private_parts(SimpleNamespace())
