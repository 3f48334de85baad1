"""The event stream format, as the WHATWG standard has it."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parallelrun.sse import EventParser, ServerSentEvent, lines_of


def parse(text: str, last_id: str = "") -> tuple[list[ServerSentEvent], EventParser]:
    parser = EventParser(last_id)
    return [event for line in lines_of([text.encode()]) if (event := parser.feed(line))], parser


def test_an_event_has_name_data_and_id() -> None:
    events, parser = parse('event: progress\nid: 5-0\ndata: {"done": 1}\n\n')

    assert events == [ServerSentEvent(event="progress", data='{"done": 1}', id="5-0")]
    assert parser.last_id == "5-0"


def test_an_event_without_an_id_leaves_the_last_one() -> None:
    events, parser = parse("event: snapshot\ndata: {}\n\n", last_id="4-0")

    assert events == [ServerSentEvent(event="snapshot", data="{}", id="")]
    assert parser.last_id == "4-0"


def test_an_event_that_was_cut_off_does_not_count_as_seen() -> None:
    events, parser = parse("id: 4-0\ndata: a\n\nid: 5-0\ndata: b\n")

    assert [event.id for event in events] == ["4-0"]
    assert parser.last_id == "4-0"


def test_comments_and_unknown_fields_are_ignored() -> None:
    events, _ = parse(": heartbeat\nwhatever: 1\nnothing\n\ndata: x\n\n")

    assert [event.data for event in events] == ["x"]


def test_lines_of_data_are_joined_and_one_space_is_dropped() -> None:
    events, _ = parse("data:  two\ndata:one\ndata\n\n")

    assert [event.data for event in events] == [" two\none\n"]


def test_an_event_without_a_name_is_a_message() -> None:
    assert parse("data: x\n\n")[0][0].event == "message"


def test_an_empty_id_resets_and_one_with_nul_is_ignored() -> None:
    assert parse("id\ndata: x\n\n", last_id="7-0")[1].last_id == ""
    assert parse("id: a\0b\ndata: x\n\n", last_id="7-0")[1].last_id == "7-0"


@pytest.mark.parametrize("character", ["\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029"])
def test_only_cr_and_lf_end_a_line(character: str) -> None:
    """JSON may hold all of these, and `str.splitlines` splits at each."""
    assert list(lines_of([f"data: a{character}b\n".encode()])) == [f"data: a{character}b"]


@given(
    st.lists(st.tuples(st.text(alphabet="ab\u2028ü", max_size=4), st.sampled_from(["\n", "\r\n", "\r"])), max_size=8),
    st.lists(st.integers(0, 60), max_size=6),
)
def test_lines_are_the_same_however_the_bytes_arrive(lines: list[tuple[str, str]], cuts: list[int]) -> None:
    raw = "".join(text + end for text, end in lines).encode()
    whole = list(lines_of([raw]))
    edges = [0, *sorted(min(cut, len(raw)) for cut in cuts), len(raw)]

    arrived = [raw[begin:end] for begin, end in pairwise(edges)]

    assert list(lines_of(arrived)) == whole
    # The empty string before "\n" may merge with a "\r" that ended the line before it.
    assert "".join(whole) == "".join(text for text, _ in lines)
