"""What is said about a job's progress: words, speed, and plain lines."""

import io
import os
import sys
import time
import unicodedata
from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parallelrun.cli.output import say
from parallelrun.progress.live import LiveDisplay
from parallelrun.progress.plain import PlainDisplay, display_on
from parallelrun.progress.text import chosen_size, clean, describe, done_of, rate, size
from parallelrun_core.answers.waiting import Waiting
from parallelrun_core.figures import about, clock
from parallelrun_core.wire.pace import Speed
from parallelrun_core.wire.progress import Progress


@given(st.text(max_size=200))
def test_no_text_can_control_the_terminal(text: str) -> None:
    assert [char for char in clean(text) if unicodedata.category(char) in {"Cc", "Cf", "Cs", "Zl", "Zp"}] == []


@pytest.mark.parametrize(
    "text, expected",
    [
        ("a\x1b[31mb", "a\\x1b[31mb"),
        ("bell\x07", "bell\\x07"),
        ("abc\rd", "abc\\rd"),
        ("one\ntwo", "one two"),
        ("a\tb", "a    b"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("naïve 漢字 é", "naïve 漢字 é"),
    ],
)
def test_control_characters_are_shown_not_obeyed(text: str, expected: str) -> None:
    assert clean(text) == expected


def test_lines_stay_when_they_are_wanted_and_length_has_a_limit() -> None:
    assert clean("one\r\ntwo", lines=True) == "one\ntwo"
    assert clean("x" * 50, most=10) == "x" * 10 + "…"


def test_a_growing_total_says_so() -> None:
    progress = Progress(scheduled=36, done=12, running=4, items_scheduled=899, items_done=300)

    line = describe("processing", progress, items_per_s=None, left_s=None)

    assert line == "processing: 12/36+ mini-batches, 4 running, 0 failed, 0 retried; 300/899+ items"


def test_all_that_is_known_is_said() -> None:
    progress = Progress(
        scheduled=36, listing_done=True, done=11, failed=1, retried=2, lost=1, running=4,
        items_scheduled=899, items_done=275, items_failed=25,
    )  # fmt: skip

    line = describe("processing", progress, items_per_s=150.4, left_s=4.0)

    assert line == (
        "processing: 12/36 mini-batches, 4 running, 1 failed, 2 retried, 1 lost; "
        "300/899 items, 25 items failed, 150 items/s, about 4 s left"
    )


def test_nodes_that_build_an_environment_are_shown() -> None:
    progress = Progress(scheduled=8, listing_done=True, items_scheduled=8, preparing=2)
    line = describe("processing", progress, items_per_s=None, left_s=None)
    assert line == (
        "processing: 0/8 mini-batches, preparing workers on 2 nodes, 0 running, 0 failed, 0 retried; 0/8 items"
    )


def test_nodes_that_a_compute_has_not_yet_are_shown_with_why() -> None:
    progress = Progress(scheduled=8, listing_done=True, nodes=1, nodes_wanted=3, nodes_why="no room\x1b[2J")
    line = describe("processing", progress, items_per_s=None, left_s=None)
    assert line.startswith("processing: 0/8 mini-batches, provisioning nodes (1 of 3: no room")
    assert "\x1b" not in line
    early = Progress(nodes_wanted=3)
    assert describe("processing", early, items_per_s=None, left_s=None) == "processing: provisioning nodes (0 of 3)"


def test_what_was_taken_over_is_shown() -> None:
    progress = Progress(scheduled=8, listing_done=True, done=5, resumed=5, items_scheduled=8, items_done=5)
    line = describe("processing", progress, items_per_s=None, left_s=None)
    assert line == "processing: 5/8 mini-batches, 5 taken over, 0 running, 0 failed, 0 retried; 5/8 items"


def test_while_the_output_is_written_its_bytes_count() -> None:
    progress = Progress(scheduled=1, bytes_concatenated=1_500_000, bytes_to_concatenate=3_000_000)

    assert describe("finalizing", progress, items_per_s=None, left_s=None) == "finalizing: 1.5 MB of 3.0 MB written"
    assert describe("queued", Progress(), items_per_s=None, left_s=None) == "queued"


@pytest.mark.parametrize(
    "seconds, expected",
    [(0, "0 s"), (99, "99 s"), (240, "4 min"), (7500, "2 h 5 min"), (400_000, "5 days"), (-1, "0 s")],
)
def test_durations_are_rounded(seconds: float, expected: str) -> None:
    assert about(seconds) == expected


def test_numbers_have_the_unit_that_fits() -> None:
    assert [size(999), size(1000), size(2.5e15)] == ["999 B", "1.0 kB", "2,500.0 TB"]
    assert [rate(0.123), rate(1234.5)] == ["0.12", "1,234"]
    assert [clock(7), clock(3727)] == ["0:07", "1:02:07"]


def test_a_job_that_chooses_its_size_shows_its_items() -> None:
    progress = Progress(
        scheduled=30,
        done=20,
        items_scheduled=900,
        items_done=500,
        items_ahead=1100,
        chosen_size=64,
        chosen_why="why\x1b",
    )
    for all_found, total, known in ((False, "2,000+", None), (True, "2,000", (500, 2000))):
        progress.all_found = all_found
        assert f"20/30+ mini-batches, 0 running, 0 failed, 0 retried; 500/{total} items" in describe(
            "processing", progress, items_per_s=None, left_s=None
        )
        assert done_of(progress) == known
    assert chosen_size(progress).startswith("auto: 64 items; why")
    assert "\x1b" not in chosen_size(progress)
    assert chosen_size(Progress()) == ""


def recent(items: int, *, lasted: float, total: int = 1000, listing_done: bool = True) -> Progress:
    """What a leader says that has decided some items of one each in the last seconds."""
    return Progress(
        items_done=items,
        items_scheduled=total,
        listing_done=listing_done,
        recent_from=5000.0,
        recent_to=5000.0 + lasted,
        recent_mini_batches=items,
        recent_items=items,
    )


def test_speed_and_time_left_are_those_that_the_leader_counts() -> None:
    speed = Speed()
    speed.add(140, recent(400, lasted=40))
    assert speed.items_per_s(140) == pytest.approx(10)
    assert speed.left_s(140, recent(500, lasted=50)) == pytest.approx(50)


def test_a_job_that_stands_still_is_seen_to_slow_down_whatever_the_clocks_say() -> None:
    speed = Speed()
    speed.add(10, recent(100, lasted=10))
    speed.add(50, recent(100, lasted=10))

    assert speed.items_per_s(10) == 10
    assert speed.items_per_s(100) == 1


def test_no_speed_is_shown_while_it_is_too_early() -> None:
    speed = Speed()
    assert speed.items_per_s(0) is None
    speed.add(0, Progress(items_done=100, items_scheduled=200))  # a server of an earlier release
    assert speed.items_per_s(50) is None
    speed.add(50, recent(5, lasted=0.5))
    assert speed.items_per_s(50) is None
    assert speed.left_s(60, recent(5, lasted=0.5, listing_done=False)) is None


def shown_by(story: Callable[[PlainDisplay], None], *, every_s: float = 0.05) -> list[str]:
    stream = io.StringIO()
    with PlainDisplay(stream, every_s=every_s, still_there_s=60) as display:
        story(display)
    return stream.getvalue().splitlines()


def test_states_show_at_once_and_the_last_numbers_in_the_end() -> None:
    def story(display: PlainDisplay) -> None:
        display.update("queued", Progress())
        for done in range(50):
            display.update("processing", Progress(scheduled=50, listing_done=True, done=done + 1))

    lines = shown_by(story, every_s=60)

    assert [line.partition(":")[0] for line in lines] == ["queued", "processing", "processing"]
    assert "50/50" in lines[-1]


def test_a_job_that_is_finalizing_waits_for_nothing() -> None:
    def story(display: PlainDisplay) -> None:
        display.update("processing", Progress())
        display.waiting(Waiting(condition="slots", text="waiting behind job a"))
        display.update("finalizing", Progress())

    lines = shown_by(story, every_s=60)
    assert [line for line in lines if "waiting behind" in line] == ["processing: waiting behind job a"]
    assert lines[-1].startswith("finalizing")


def test_the_newest_numbers_show_though_no_further_change_comes() -> None:
    stream = io.StringIO()
    with PlainDisplay(stream, every_s=0.05) as display:
        display.update("processing", Progress(scheduled=9, done=1))
        display.update("processing", Progress(scheduled=9, done=2))
        deadline = time.monotonic() + 10
        while "2/9" not in stream.getvalue():
            assert time.monotonic() < deadline
            time.sleep(0.005)


def test_a_long_silence_is_broken() -> None:
    stream = io.StringIO()
    with PlainDisplay(stream, still_there_s=0.05) as display:
        display.update("processing", Progress(scheduled=9, done=1))
        deadline = time.monotonic() + 10
        while stream.getvalue().count("1/9") < 3:
            assert time.monotonic() < deadline
            time.sleep(0.005)


def test_notes_are_clean_and_a_reader_that_left_is_no_error() -> None:
    assert shown_by(lambda display: display.note("a\x1b[2Jb")) == ["a\\x1b[2Jb"]

    closed = io.StringIO()
    closed.close()
    with PlainDisplay(closed) as display:
        display.note("nobody hears this")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_live_display_draws_counts_and_cleans_what_users_wrote(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    with LiveDisplay(stream, title="my\x1b]0;job") as display:
        display.update("processing", Progress(scheduled=36, listing_done=True, done=12, running=4))
        display.note("RUN_EXCEPTION: [bold]\x07")
    text = stream.getvalue()

    assert "12/36" in text
    assert "4 running" in text
    assert "RUN_EXCEPTION: [bold]\\x07" in text
    assert "\x1b]0;job" not in text


def test_a_terminal_that_is_closed_stops_nothing() -> None:
    keyboard, screen = os.openpty()
    with os.fdopen(screen, "w") as stream:
        with LiveDisplay(stream, title="job") as display:
            display.update("processing", Progress(scheduled=36, listing_done=True, done=12))
            os.close(keyboard)
            display.note("to nobody")
        with suppress(OSError):
            stream.close()


def test_what_is_said_to_a_closed_terminal_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr(sys, "stderr", closed)
    say("to nobody")


@pytest.mark.parametrize("no_color, coloured", [("", True), ("1", False)])
def test_colours_can_be_declined(monkeypatch: pytest.MonkeyPatch, no_color: str, coloured: bool) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", no_color)
    stream = Terminal()

    with LiveDisplay(stream, title="job") as display:
        display.update("processing", Progress(scheduled=36, listing_done=True, done=12, failed=1))

    assert ("\x1b[31m" in stream.getvalue()) is coloured


@pytest.mark.parametrize(
    "stream, term, kind",
    [(Terminal(), "xterm", LiveDisplay), (Terminal(), "dumb", PlainDisplay), (io.StringIO(), "xterm", PlainDisplay)],
)
def test_only_a_terminal_gets_a_live_display(
    monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, term: str, kind: type
) -> None:
    monkeypatch.setenv("TERM", term)

    assert type(display_on(stream, title="job")) is kind
