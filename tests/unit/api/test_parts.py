"""The small parts that need no server: ranges, last lines, tokens of pages, masks, keys, event ids, checks of Redis."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parallelrun_api.http.errors import KeyInFlight
from parallelrun_api.http.paging import clamped, decode_numbers, decode_token, encode_token
from parallelrun_api.routes.events import masked_data
from parallelrun_api.submission.idempotency import KeyLocks, checked_key
from parallelrun_api.submission.upload import _parse_json
from parallelrun_api.views.files import last_lines
from parallelrun_core.errors import InvalidInput
from parallelrun_core.masking import Mask, masked_spec
from parallelrun_core.store.event_stream import Event, EventId
from parallelrun_core.store.fitness import unfit


@given(
    data=st.lists(st.sampled_from([b"\n", b"a", b"bc", b"\n\n", b"x" * 70_000])).map(b"".join),
    lines=st.integers(0, 6),
)
def test_last_lines_are_those_of_splitting(data: bytes, lines: int) -> None:
    fd = os.memfd_create("log")
    try:
        os.write(fd, data)
        begin = last_lines(fd, len(data), lines)
    finally:
        os.close(fd)

    whole = data.removesuffix(b"\n").split(b"\n") if data else []
    expected = b"\n".join(whole[max(0, len(whole) - lines) :]) if lines else b""
    assert data[begin:].removesuffix(b"\n") == expected


class TestPages:
    def test_a_token_comes_back(self) -> None:
        assert decode_numbers(encode_token("decided", 1, 2, 3), "decided", 3) == [1, 2, 3]
        assert decode_token(encode_token("jobs", "job_x"), "jobs", 1) == ["job_x"]

    @given(token=st.text())
    def test_anything_else_is_refused(self, token: str) -> None:
        with pytest.raises(InvalidInput):
            decode_numbers(token, "decided", 3)

    @pytest.mark.parametrize("limit, used", [(-1, 1), (0, 1), (7, 7), (10**30, 500)])
    def test_limits(self, limit: int, used: int) -> None:
        assert clamped(limit) == used


def test_a_key_that_is_given_twice_in_json_is_refused() -> None:
    with pytest.raises(InvalidInput, match="not readable as JSON: the key 'data' is given twice"):
        _parse_json(b'{"entry_script": "main.py", "inputs": {"data": "/a", "more": "/b", "data": "/c"}}')


SPEC = {"name": "n", "environment_variables": {"A": "long secret", "B": "1", "C": "long secret, too"}}


class TestMasks:
    def test_the_spec_keeps_the_names(self) -> None:
        assert masked_spec(SPEC) == {"name": "n", "environment_variables": {"A": "***", "B": "***", "C": "***"}}
        assert masked_spec({"name": "n"}) == {"name": "n", "environment_variables": {}}

    def test_texts(self) -> None:
        assert Mask(SPEC).text("1 long secret, too; long secret") == "1 ***; ***"

    @pytest.mark.parametrize("name, shown", [("error", "no *** here: ***"), ("progress", 'no quo"te\nü here: count ')])
    def test_events(self, name: str, shown: str) -> None:
        told = {"message": 'no quo"te\nü here: count ', "count": 100_000, "category": "RUN_EXCEPTION"}
        mask = Mask({"environment_variables": {"A": 'quo"te\nü', "B": "count ", "C": "100000", "D": "message"}})
        event = Event(EventId(1, 0), name, json.dumps(told))

        assert json.loads(masked_data(event, mask)) == told | {"message": shown}


class TestKeys:
    def test_the_quotes_of_the_draft_are_not_part_of_it(self) -> None:
        assert checked_key('"8e03978e-40d5"') == checked_key("8e03978e-40d5") == "8e03978e-40d5"
        assert checked_key(None) == ""

    @given(key=st.text(alphabet=st.characters(exclude_categories=["L", "N"]), min_size=1))
    def test_others_are_refused(self, key: str) -> None:
        if not set(key) <= set("_.:~-"):
            with pytest.raises(InvalidInput):
                checked_key(key)

    def test_requests_with_one_key_come_one_after_another(self) -> None:
        story: list[str] = []

        async def request(key_locks: KeyLocks, key: str, name: str) -> None:
            async with key_locks.hold(key):
                story.append(f"{name} begins")
                await asyncio.sleep(0)
                story.append(f"{name} ends")

        async def both(*keys: str) -> list[str]:
            story.clear()
            key_locks = KeyLocks()
            await asyncio.gather(*(request(key_locks, key, str(n)) for n, key in enumerate(keys)))
            return story

        assert asyncio.run(both("k", "k")) == ["0 begins", "0 ends", "1 begins", "1 ends"]
        assert asyncio.run(both("k", "l")) == ["0 begins", "1 begins", "0 ends", "1 ends"]
        assert asyncio.run(both("", "")) == ["0 begins", "1 begins", "0 ends", "1 ends"]

    def test_patience_has_an_end(self) -> None:
        async def second_of_two() -> None:
            key_locks = KeyLocks(patience_s=0.01)
            async with key_locks.hold("k"), key_locks.hold("k"):
                pass

        with pytest.raises(KeyInFlight):
            asyncio.run(second_of_two())


class TestEventIds:
    def test_they_compare_as_they_were_added(self) -> None:
        assert EventId.parse("9-10") > EventId.parse("9-9") > EventId.parse("8-99")
        assert str(EventId.parse("5")) == "5-0"

    @given(text=st.text())
    def test_nothing_else_is_taken(self, text: str) -> None:
        try:
            found = EventId.parse(text)
        except ValueError:
            return
        assert str(found).isascii()


GOOD = {"redis_version": "7.2.4", "maxmemory_policy": "noeviction", "aof_enabled": 1}


@pytest.mark.parametrize(
    "change, count",
    [
        ({}, 0),
        ({"redis_version": "6.2.0"}, 0),
        ({"redis_version": "6.0.16"}, 1),
        ({"redis_version": ""}, 1),
        ({"maxmemory_policy": "allkeys-lru"}, 1),
        ({"aof_enabled": 0}, 1),
        ({"aof_enabled": 0, "maxmemory_policy": "volatile-ttl", "redis_version": "5.0.0"}, 3),
    ],
)
def test_which_redis_is_fit(change: dict[str, Any], count: int) -> None:
    assert len(unfit({**GOOD, **change}, may_forget=False)) == count


def test_a_volatile_redis_can_be_allowed() -> None:
    assert unfit({**GOOD, "aof_enabled": 0}, may_forget=True) == []


def test_it_starts_without_what_it_can_do_without(tmp_path: Path) -> None:
    """Its start-up is part of the wait for every job on an embedded cluster."""
    code = "import sys, parallelrun_api.main; print(*{name.partition('.')[0] for name in sys.modules})"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True, cwd=tmp_path)

    assert {"rq", "pandas", "numpy", "httpx", "docker", "rich"} & set(done.stdout.split()) <= {"rich"}
