"""The end of a worker by itself, its agent or a signal, and what becomes of its children."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from parallelrun_worker import frames
from parallelrun_worker.__main__ import BATCH_JOBS
from tests.integration.worker.worker_harness import ECHO, Start, WorkerHarness, is_alive

pytestmark = pytest.mark.integration


CHILD_ENDS_S = 30.0
DEATHS = {
    "os.abort()": -signal.SIGABRT,
    "ctypes.string_at(0)": -signal.SIGSEGV,
    "os._exit(0)": 0,
    "os._exit(3)": 3,
    "os.kill(os.getpid(), signal.SIGKILL)": -signal.SIGKILL,
}


@pytest.mark.parametrize("body", DEATHS)
def test_what_was_answered_before_a_death_is_heard_and_nothing_more(start: Start, body: str) -> None:
    script = (
        f"import ctypes, os, signal\ndef run(items):\n    if items[0] == 'bad':\n        {body}\n    return items\n"
    )
    harness = start(script).ready()
    for number, item in enumerate(["a", "b", "bad", "c"]):
        harness.deliver(number, item.encode())
    assert harness.exited() == DEATHS[body]
    assert [(answer.mini_batch, answer.rows) for answer in harness.answers()] == [(0, b"a\n"), (1, b"b\n")]
    if DEATHS[body] in (-signal.SIGABRT, -signal.SIGSEGV):
        assert "score.py" in harness.stderr.read_text()


def test_frames_survive_a_kill_in_the_middle_of_many(start: Start) -> None:
    harness = start(ECHO).ready()
    for number in range(300):
        harness.deliver(number, b"x" * 50)
    harness.until(lambda: harness.part is not None and harness.part.stat().st_size > 51 * 100, "a hundred are done")
    harness.worker.kill()
    assert harness.exited() == -signal.SIGKILL
    answers = harness.answers()
    assert len(answers) >= 100 - 1
    assert [answer.mini_batch for answer in answers] == list(range(len(answers)))
    assert {answer.rows for answer in answers} == {b"x" * 50 + b"\n"}


def test_sigterm_that_is_ignored_does_not_save_it_from_the_agent(start: Start) -> None:
    harness = start("""
        import signal, time
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        def run(items):
            open("running", "w").close()
            time.sleep(1000)
    """).ready()
    harness.deliver(0, b"x")
    harness.until((harness.working_folder / "running").exists, "it runs")
    os.kill(harness.worker.pid, signal.SIGTERM)
    assert is_alive(harness.worker.pid)
    harness.worker.kill()
    assert harness.exited() == -signal.SIGKILL


def test_a_worker_that_has_left_its_group_is_ended_all_the_same(start: Start) -> None:
    harness = start("""
        import os, subprocess, time
        def run(items):
            child = subprocess.Popen(["sleep", "1000"], preexec_fn=os.setpgrp)
            os.setpgid(0, child.pid)
            open("running", "w").close()
            time.sleep(1000)
    """).ready()
    harness.deliver(0, b"x")
    harness.until((harness.working_folder / "running").exists, "it runs")
    harness.worker.kill()
    assert harness.exited() == -signal.SIGKILL


@pytest.mark.parametrize("end", ["kill", "exit"])
def test_children_that_the_user_started_end_with_their_worker(start: Start, end: str) -> None:
    harness = start("""
        import os, subprocess
        def run(items):
            child = subprocess.Popen(["sleep", "1000"])
            if os.fork() == 0:
                while True:
                    import time
                    time.sleep(1)
            return [str(child.pid)]
    """).ready()
    child = int(harness.run("x").rows)
    assert is_alive(child)
    if end == "kill":
        harness.worker.kill()
    else:
        harness.worker.end()
    harness.exited()
    harness.until(lambda: not is_alive(child), "the child ends", CHILD_ENDS_S)


def test_a_forked_child_that_falls_out_of_run_does_not_answer_for_its_parent(start: Start) -> None:
    """`if os.fork() == 0: …; sys.exit()` is what people write; the child must not go on as a second worker."""
    harness = start("""
        import os, sys
        def run(items):
            child = os.fork()
            if child == 0:
                sys.exit(0)
            os.waitpid(child, 0)
            return items
    """).ready()
    answers = [harness.run(str(number), mini_batch=number) for number in range(3)]
    assert [answer.rows for answer in answers] == [b"0\n", b"1\n", b"2\n"]
    harness.worker.end()
    harness.exited()
    assert [answer.mini_batch for answer in harness.answers()] == [0, 1, 2]


def test_a_child_that_is_forked_while_rows_become_text_writes_none(start: Start) -> None:
    harness = start("""
        import os
        class Row:
            def __str__(self):
                child = os.fork()
                if child:
                    os.waitpid(child, 0)
                return "row"
        def run(items):
            return [Row()]
    """).ready()
    assert [harness.run("x", mini_batch=number).rows for number in range(3)] == [b"row\n"] * 3
    assert harness.part is not None
    assert harness.part.read_bytes() == b"row\n" * 3
    assert harness.kinds() == [frames.READY, *[frames.DONE] * 3]


@pytest.mark.parametrize("end", ["return", "sys.exit(0)", "raise ValueError('in the child')"])
def test_a_forked_child_that_falls_out_of_init_or_shutdown_says_nothing(start: Start, end: str) -> None:
    harness = start(f"""
        import os, sys
        def init():
            child = os.fork()
            if child == 0:
                {end}
            else:
                os.waitpid(child, 0)
        shutdown = init
        def run(items):
            return items
    """).ready()
    assert harness.run("a").rows == b"a\n"
    harness.worker.end()
    assert harness.exited() == 0
    assert harness.kinds() == [frames.READY, frames.DONE, frames.STOPPED]
    assert harness.received[-1][1] == b"", "shutdown() has not failed"


def test_a_child_that_holds_the_pipe_does_not_keep_the_agent_from_seeing_the_end(start: Start) -> None:
    harness = start("""
        import os, time
        def run(items):
            if os.fork() == 0:
                os.setsid()
                open("child", "w").write(str(os.getpid()))
                time.sleep(60)
                os._exit(0)
            while not os.path.exists("child") or not open("child").read():
                time.sleep(0.01)
            os._exit(5)
    """).ready()
    harness.deliver(0, b"x")
    assert harness.exited() == 5
    child = int((harness.working_folder / "child").read_text())
    if is_alive(child):
        os.kill(child, signal.SIGKILL)


def test_it_dies_when_its_agent_dies(tmp_path: Path) -> None:
    script = (
        "import os, sys, time\nfrom pathlib import Path\n"
        "from tests.integration.worker.worker_harness import WorkerHarness\n"
        "harness = WorkerHarness(Path(sys.argv[1]), 'import time\\ndef run(items): time.sleep(1000)\\n').ready()\n"
        "harness.deliver(0, b'x')\nprint(harness.worker.pid, flush=True)\ntime.sleep(1000)\n"
    )
    root = Path(__file__).parents[3]
    with subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, cwd=root, text=True
    ) as agent:
        assert agent.stdout is not None
        worker = int(agent.stdout.readline())
        assert is_alive(worker)
        agent.kill()
    bench_until(lambda: not is_alive(worker))


def bench_until(condition: Callable[[], bool]) -> None:
    WorkerHarness.until(None, condition, "it ends")  # type: ignore[arg-type]


# Taking back


@pytest.mark.parametrize("variable", BATCH_JOBS)
def test_in_a_job_of_a_batch_system_a_worker_leaves_sigterm_to_its_agent(start: Start, variable: str) -> None:
    """It is sent to all processes of a job. What a worker starts or forks ends by it, as everywhere else."""
    harness = start(
        """
        import multiprocessing, os, signal, subprocess, time
        def run(items):
            os.kill(os.getpid(), signal.SIGTERM)
            child = subprocess.Popen(["sleep", "60"])
            child.terminate()
            forked = multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,))
            forked.start()
            forked.terminate()
            forked.join()
            return [child.wait(), forked.exitcode]
        """,
        **{variable: "7"},
    ).ready()
    assert harness.run("a").rows == b"-15\n-15\n"
