"""The ids of events compare as they were added."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from parallelrun_core.store.event_stream import EventId


def test_ids_of_events_compare_as_they_were_added() -> None:
    assert EventId.parse("9-10") > EventId.parse("9-9") > EventId.parse("8-99")
    assert str(EventId.parse("5")) == "5-0"


@given(text=st.text())
def test_nothing_else_is_taken_for_the_id_of_an_event(text: str) -> None:
    try:
        event_id = EventId.parse(text)
    except ValueError:
        return
    assert str(event_id).isascii()
