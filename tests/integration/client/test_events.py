"""Following a job through everything that can happen to a connection."""

import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from parallelrun import Client, ConnectionFailed, NotFound
from parallelrun.http import retry
from parallelrun.http.transport import Transport
from parallelrun.resources.events import follow_events
from tests.integration.client.fake_api import COMPLETED, HANG_UP, JOB, Answer, FakeApi

PATH = "/v1/jobs/job_1/events"
STREAM = {"Content-Type": "text/event-stream"}
BEGINNING = Answer.events(("", "snapshot", JOB), ("1-0", "progress", {"done": 1}), ("2-0", "progress", {"done": 2}))
CUT = Answer.events(("", "snapshot", JOB), ("1-0", "progress", {"done": 1}), cut=True)
END = Answer.events(("", "snapshot", JOB), ("3-0", "state", {"state": "completed"}), ("", "end", COMPLETED))


def test_a_stream_continues_after_the_last_event_that_was_seen(api: FakeApi) -> None:
    busy = Answer.of({"code": "too_many_streams"}, 503)
    api.on("GET", PATH, BEGINNING, HANG_UP, CUT, busy, END)
    reasons: list[Exception] = []

    with Client(api.url) as client:
        events = list(client.jobs.events("job_1", on_disconnect=reasons.append))

    assert [event.event for event in events] == [
        "snapshot", "progress", "progress", "snapshot", "progress", "snapshot", "state", "end",
    ]  # fmt: skip
    assert [request.headers.get("Last-Event-ID") for request in api.requests] == [None, "2-0", "2-0", "1-0", "1-0"]
    assert len(reasons) == 4
    assert events[1].progress().done == 1
    assert events[-1].job().state == "completed"


def test_a_stream_can_continue_after_an_event_of_an_earlier_process(api: FakeApi) -> None:
    api.on("GET", PATH, END)

    with Client(api.url) as client:
        list(client.jobs.events("job_1", last_event_id="2-0"))

    assert api.requests[0].headers["Last-Event-ID"] == "2-0"


def test_the_time_that_the_caller_takes_is_no_silence_of_the_server(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr(retry, "time", SimpleNamespace(monotonic=lambda: now))
    api.on("GET", PATH, BEGINNING, END)
    transport = Transport(api.url)
    seen = []
    for event in follow_events(transport, PATH, patience_s=60, sleep=lambda _: None):
        seen.append(event.event)
        now += 1000
    assert seen[-1] == "end"
    transport.close()


def test_a_refusal_is_not_a_disconnect(api: FakeApi) -> None:
    with Client(api.url) as client, pytest.raises(NotFound):
        list(client.jobs.events("job_1"))

    assert len(api.requests) == 1


def test_patience_is_limited_and_counts_from_the_last_sign_of_the_server(api: FakeApi) -> None:
    api.on("GET", PATH, BEGINNING, HANG_UP)
    transport = Transport(api.url)
    pauses: list[float] = []

    events = follow_events(transport, PATH, patience_s=0.2, sleep=pauses.append)

    with pytest.raises(ConnectionFailed, match="Gave up"):
        list(events)
    assert len(api.requests) > 3
    assert max(pauses) <= 5
    transport.close()


def test_pauses_grow_and_start_again_once_the_server_was_heard(api: FakeApi) -> None:
    api.on("GET", PATH, *[HANG_UP] * 6, BEGINNING, HANG_UP, END)
    transport = Transport(api.url)
    pauses: list[float] = []

    list(follow_events(transport, PATH, sleep=pauses.append))

    assert pauses[5] > 2
    assert pauses[6] <= 0.2
    transport.close()


def test_an_event_without_what_it_should_carry_is_no_bug_of_the_client(api: FakeApi) -> None:
    api.on(
        "GET", PATH, Answer.events(("", "snapshot", {"state": "queued"}), ("1-0", "progress", {"done": "x"}), cut=True)
    )

    with Client(api.url) as client:
        stream = client.jobs.events("job_1")
        with pytest.raises(ConnectionFailed, match="can't be understood"):
            next(stream).job()
        with pytest.raises(ConnectionFailed, match="can't be understood"):
            next(stream).progress()


def test_data_that_is_no_json_object_does_no_harm(api: FakeApi) -> None:
    api.on("GET", PATH, Answer(b"event: error\ndata: plain words\n\nevent: end\ndata: 3\n\n", headers=STREAM))

    with Client(api.url) as client:
        assert [event.data for event in client.jobs.events("job_1")] == [{"message": "plain words"}, {"value": 3}]


def test_an_event_has_its_own_id_or_none(api: FakeApi) -> None:
    api.on("GET", PATH, END)

    with Client(api.url) as client:
        assert [event.id for event in client.jobs.events("job_1")] == ["", "3-0", ""]


def test_an_event_that_was_cut_off_does_not_count_as_seen(api: FakeApi) -> None:
    cut_off = b"id: 4-0\nevent: progress\ndata: {}\n\nid: 5-0\nevent: progress\ndata: {}\n"
    api.on("GET", PATH, Answer(cut_off, headers=STREAM, cut=True), END)

    with Client(api.url) as client:
        ids = [event.id for event in client.jobs.events("job_1")]

    assert ids == ["4-0", "", "3-0", ""]
    assert api.requests[1].headers["Last-Event-ID"] == "4-0"


@pytest.mark.parametrize("character", ["\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029"])
def test_what_ends_a_line_elsewhere_does_not_end_an_event(api: FakeApi, character: str) -> None:
    """JSON may hold all of these, and `str.splitlines` splits at each."""
    text = f'event: error\ndata: {{"message": "a{character}b"}}\n\nevent: end\ndata: {{}}\n\n'.encode()
    api.on("GET", PATH, Answer(text.replace(b"\x0b", b"\\u000b").replace(b"\x0c", b"\\f"), headers=STREAM))

    with Client(api.url) as client:
        first = next(client.jobs.events("job_1"))

    assert first.event == "error"


def trickle(*, every_s: float, times: int) -> Iterator[bytes]:
    """Heartbeats, which say nothing about the job; then the connection breaks."""
    for _ in range(times):
        yield b": heartbeat\n\n"
        threading.Event().wait(every_s)


def test_a_silent_job_is_fine_as_long_as_heartbeats_come(api: FakeApi) -> None:
    hours = Answer(parts=lambda: trickle(every_s=0.1, times=15), headers=STREAM)
    silence = Answer(parts=lambda: trickle(every_s=60, times=1), headers=STREAM)
    api.on("GET", PATH, hours, silence, END)
    transport = Transport(api.url)
    reasons: list[Exception] = []
    began = time.monotonic()

    seen = follow_events(transport, PATH, silence_s=1.0, patience_s=0.7, on_disconnect=reasons.append)

    assert [event.event for event in seen] == ["snapshot", "state", "end"]
    assert time.monotonic() - began > 2.5
    assert len(reasons) == 2
    assert "closed" in str(reasons[0]), "neither silence nor the end of patience"
    assert "timed out" in str(reasons[1])
    transport.close()


def test_what_is_no_stream_of_events_is_not_asked_for_ever(api: FakeApi) -> None:
    api.on("GET", PATH, Answer(b"<html>Sign in</html>\n\n", headers={"Content-Type": "text/html"}))
    transport = Transport(api.url)

    with pytest.raises(ConnectionFailed, match=r"text/event-stream.* Gave up"):
        list(follow_events(transport, PATH, patience_s=0.1, sleep=lambda _: None))

    transport.close()
