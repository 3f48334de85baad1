"""Requests with one key come one after another, and are the same job."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parallelrun_api.http.errors import KeyInFlight
from parallelrun_api.submission.idempotency import KeyLocks, checked_key
from parallelrun_core.errors import InvalidInput


def test_the_quotes_of_the_draft_are_not_part_of_a_key() -> None:
    assert checked_key('"8e03978e-40d5"') == checked_key("8e03978e-40d5") == "8e03978e-40d5"
    assert checked_key(None) == ""


@given(key=st.text(alphabet=st.characters(exclude_categories=["L", "N"]), min_size=1))
def test_keys_with_other_characters_are_refused(key: str) -> None:
    if not set(key) <= set("_.:~-"):
        with pytest.raises(InvalidInput):
            checked_key(key)


def test_requests_with_one_key_come_one_after_another() -> None:
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


def test_patience_with_the_first_request_has_an_end() -> None:
    async def second_of_two() -> None:
        key_locks = KeyLocks(patience_s=0.01)
        async with key_locks.hold("k"), key_locks.hold("k"):
            pass

    with pytest.raises(KeyInFlight):
        asyncio.run(second_of_two())
