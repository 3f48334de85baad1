"""Secrets stay out of what the API shows."""

from __future__ import annotations

import json

import pytest

from parallelrun_api.routes.events import masked_data
from parallelrun_core.store.event_stream import EventId, StreamEvent
from parallelrun_core.wire.masking import Mask, masked_spec

SPEC = {"name": "n", "environment_variables": {"A": "long secret", "B": "1", "C": "long secret, too"}}


def test_a_spec_keeps_the_names_of_its_variables() -> None:
    assert masked_spec(SPEC) == {"name": "n", "environment_variables": {"A": "***", "B": "***", "C": "***"}}
    assert masked_spec({"name": "n"}) == {"name": "n", "environment_variables": {}}


def test_in_a_text_the_longest_secret_is_masked_first() -> None:
    assert Mask(SPEC).text("1 long secret, too; long secret") == "1 ***; ***"


@pytest.mark.parametrize("name, shown", [("error", "no *** here: ***"), ("progress", 'no quo"te\nü here: count ')])
def test_an_event_is_masked_where_the_users_own_words_are(name: str, shown: str) -> None:
    data = {"message": 'no quo"te\nü here: count ', "count": 100_000, "category": "RUN_EXCEPTION"}
    mask = Mask({"environment_variables": {"A": 'quo"te\nü', "B": "count ", "C": "100000", "D": "message"}})
    event = StreamEvent(EventId(1, 0), name, json.dumps(data))

    assert json.loads(masked_data(event, mask)) == data | {"message": shown}
