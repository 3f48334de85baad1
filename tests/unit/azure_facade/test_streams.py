"""Whether a client that prints a job's logs is told that it has ended."""

from parallelrun_api.azure.streams import Streams


def test_the_first_answer_about_a_job_that_has_ended_lets_the_client_read_its_logs() -> None:
    streams = Streams(clock=lambda: 0.0)
    assert [streams.status("me", "job", "Completed") for _ in range(4)] == [
        "Finalizing", "Completed", "Finalizing", "Completed",
    ]  # fmt: skip


def test_a_client_that_has_waited_for_the_end_is_told_at_once() -> None:
    streams = Streams(clock=lambda: 0.0)
    statuses = [streams.status("me", "job", status) for status in ("Queued", "Running", "Failed")]
    assert statuses == ["Queued", "Running", "Failed"]


def test_persons_and_jobs_are_told_apart_and_forgotten() -> None:
    now = [0.0]
    streams = Streams(clock=lambda: now[0])
    assert streams.status("me", "job", "Completed") == "Finalizing"
    assert streams.status("you", "job", "Completed") == "Finalizing"
    assert streams.status("me", "other", "Completed") == "Finalizing"
    now[0] = 3600.0
    assert streams.status("me", "job", "Completed") == "Finalizing"
    for number in range(5000):
        streams.status("me", f"job{number}", "Completed")
    assert len(streams._asked) <= 1000
