"""What `job top` draws: everything, in the room that there is, and nothing that controls the terminal."""

import io

from msgspec import structs
from rich.console import Console

from parallelrun.models import Job, Node, Progress, Step
from parallelrun.top.screen import bars, screen, strip
from parallelrun.top.snapshot import Snapshot
from parallelrun_core.answers.nodes import NodePressure
from parallelrun_core.answers.pictures import DoingNow, KindOfError, KindsOfErrors, Lane, Throughput, Timeline


def drawn(shown: Snapshot, *, height: int = 60, width: int = 120) -> list[str]:
    stream = io.StringIO()
    console = Console(file=stream, width=width, highlight=False, markup=False, emoji=False)
    console.print(screen(shown, lasted_s=62.0, items_per_s=20.0, left_s=30.0, height=height))
    return [line.rstrip() for line in stream.getvalue().splitlines()]


def running() -> Job:
    progress = Progress(
        scheduled=100, listing_done=True, done=40, failed=3, running=4, items_scheduled=1000, items_done=400
    )
    return Job(id="job_1", name="words", state="processing", progress=progress)


def lane(number: int, failed_tries: int = 0) -> Lane:
    return Lane(
        node="n\x1b1",
        process=f"p{number}",
        tries=1200,
        failed_tries=failed_tries,
        run=[2.0, 0.0],
        init=[0.0, 2.0],
        load=[0.0, 0.0],
    )


def test_a_running_job_is_on_one_screen() -> None:
    node = Node(
        node="n1", state="ready", slots=4, busy=3, memory_bytes=8 * 10**9, pressure=NodePressure(of="machine", io=0.31)
    )
    error = KindOfError(category="RUN_EXCEPTION", message="bad \x1b[2Jrow", place='File "a.py", line 3', count=7)

    lines = drawn(
        Snapshot(
            job=running(),
            nodes=[node],
            throughput=Throughput(bucket_s=2.0, mini_batches=[1, 2], items=[10, 40], failed=[0, 0]),
            workers=Timeline(bucket_s=2.0, lanes=[lane(1, failed_tries=2)], lanes_total=1),
            errors=KindsOfErrors(items=[error], count=9),
        )
    )

    text = "\n".join(lines)
    assert lines[0] == "words  job_1  processing  1:02"
    assert "43/100 mini-batches" in lines[1]
    assert "20 items/s · about 30 s left" in lines[2]
    assert "▂█  at most 20/s" in lines[3]
    assert "n1    ready  3/4      8.0 GB" in text
    assert "io 31%" in text
    assert "n\\x1b1  p1      1,200       2  █▒" in text
    assert '7  RUN_EXCEPTION: bad \\x1b[2Jrow  (File "a.py", line 3)' in text
    assert "2  of other kinds" in text
    assert "\x1b" not in text


def test_several_mini_batches_in_flight_of_a_worker_are_counted() -> None:
    busy = structs.replace(lane(1), now=DoingNow(doing="running", since_s=1.0, in_flight=64))
    lines = drawn(Snapshot(job=running(), workers=Timeline(bucket_s=2.0, lanes=[busy, lane(2)], lanes_total=2)))
    [at] = [number for number, line in enumerate(lines) if line.startswith("NODE")]
    assert lines[at].split() == ["NODE", "WORKER", "IN", "FLIGHT", "TRIES", "FAILED", "LAST", "MINUTE"]
    assert lines[at + 1].split()[:4] == ["n\\x1b1", "p1", "64", "1,200"]
    assert lines[at + 2].split()[:3] == ["n\\x1b1", "p2", "1,200"]


def test_what_has_no_room_is_counted() -> None:
    many = Snapshot(
        job=running(),
        nodes=[Node(node=f"n{number}", state="ready") for number in range(40)],
        workers=Timeline(bucket_s=2.0, lanes=[lane(number) for number in range(100)], lanes_total=1000),
    )

    lines = drawn(many, height=40)

    assert len(lines) <= 40
    assert "and 28 more" in lines
    assert any(line.startswith("and 98") or line.startswith("and 99") for line in lines)
    steps = [Step(name=f"s{number}", state="waiting") for number in range(30)]
    assert len(drawn(structs.replace(many, job=structs.replace(running(), steps=steps)))) <= 60


def test_a_pipeline_shows_its_steps() -> None:
    job = Job(id="job_1", type="pipeline", state="processing", steps=[Step(name="a", state="failed", why="no\x1bne")])
    assert drawn(Snapshot(job=job))[1] == "a: failed: no\\x1bne"


def test_bars_show_whatever_is_not_nothing() -> None:
    assert bars([0, 1, 5000, 10000]) == " ▁▄█"
    assert bars([]) == bars([0, 0]).strip() == ""


def test_a_moment_is_drawn_as_what_most_of_it_was() -> None:
    shown = strip(Lane(node="n", process="p", run=[1.0, 0.0, 0.01], load=[0.9, 0.2, 0], init=[0.0, 0.3, 0]), 2.0)
    assert shown.plain == "█▒·"
