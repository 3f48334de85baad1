"""Where a worker is, as it says at a signal: whatever its script does, and without harm to it."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from parallelrun_agent.stacks import dumps
from parallelrun_agent.stacks.dumps import AskedWorker, stacks_of
from parallelrun_agent.users.worker_user import SAME_USER
from parallelrun_core.answers.stacks import WorkerStacks
from parallelrun_worker import frames
from tests.integration.worker.worker_harness import WorkerHarness

Start = Callable[..., WorkerHarness]

pytestmark = pytest.mark.integration


def shown(harness: WorkerHarness) -> WorkerStacks:
    worker = harness.worker
    assert worker.stacks is not None
    asked = AskedWorker("process000", worker.pid, os.dup(worker.pidfd), worker.stacks.copy())
    code = str(harness.logs.parent / "code")
    try:
        (stacks,) = stacks_of([asked], code=code, sanitize=str.upper, user=SAME_USER)
    finally:
        asked.close()
    return stacks


def begin(harness: WorkerHarness, tmp_path: Path) -> None:
    """Hand over a mini-batch, and wait until its script says that it has begun."""
    harness.deliver(0, os.fsencode(tmp_path / "begun"))
    harness.until((tmp_path / "begun").exists, "run() has begun")


def test_all_threads_of_a_script_that_waits_are_shown_and_it_goes_on(start: Start, tmp_path: Path) -> None:
    harness = start("""
        import threading, time
        from pathlib import Path
        def wait_in_a_thread(path):
            time.sleep(2)
        def run(mini_batch):
            thread = threading.Thread(target=wait_in_a_thread, args=mini_batch)
            thread.start()
            Path(mini_batch[0]).touch()
            thread.join()
            return ["row"]
    """).ready()
    idle = shown(harness)
    assert (idle.doing, [thread.frames for thread in idle.threads]) == ("waits_for_work", [[]])
    begin(harness, tmp_path)
    stacks = shown(harness)
    assert stacks.doing == "waits"
    main, other = stacks.threads
    assert (main.is_main, other.is_main) == (True, False)
    assert [(frame.file, frame.function) for frame in main.frames][-1] == ("SCORE.PY", "RUN"), "ours are left out"
    assert (other.frames[0].file, other.frames[0].function) == ("SCORE.PY", "WAIT_IN_A_THREAD")
    assert other.frames[0].line > 0
    assert harness.wait_for_answers(1)[0].rows == b"row\n"


def test_a_script_that_computes_in_c_is_told_as_such(start: Start, tmp_path: Path) -> None:
    harness = start("""
        from pathlib import Path
        def run(mini_batch):
            Path(mini_batch[0]).touch()
            sum(range(10**11))
    """).ready()
    begin(harness, tmp_path)
    stacks = shown(harness)
    assert stacks.doing == "computes"
    assert stacks.note == dumps.IN_C
    assert stacks.threads[0].frames[0].function == "RUN"


def test_a_script_that_computes_in_python_is_not(start: Start, tmp_path: Path) -> None:
    harness = start("""
        from pathlib import Path
        def run(mini_batch):
            Path(mini_batch[0]).touch()
            while True: pass
    """).ready()
    begin(harness, tmp_path)
    stacks = shown(harness)
    assert stacks.doing == "computes"
    assert stacks.note.startswith("It was in this line for all of")


def test_what_reads_is_not_interrupted(start: Start, tmp_path: Path) -> None:
    harness = start("""
        import os
        from pathlib import Path
        def run(mini_batch):
            Path(mini_batch[0]).touch()
            os.read(os.pipe()[0], 1)
    """).ready()
    begin(harness, tmp_path)
    stacks = shown(harness)
    assert (stacks.doing, stacks.note) == ("waits", dumps.IN_A_CALL)
    assert stacks.threads[0].frames[0].function == "RUN"


def test_a_script_that_gives_the_signals_another_meaning_is_left_alone(start: Start, tmp_path: Path) -> None:
    harness = start(f"""
        import signal, time
        from pathlib import Path
        def run(mini_batch):
            signal.signal({int(frames.SHOW_STACK)}, signal.SIG_DFL)
            Path(mini_batch[0]).touch()
            time.sleep(60)
    """).ready()
    begin(harness, tmp_path)
    assert shown(harness).note == dumps.NOT_YET


def test_a_script_that_closes_what_that_needs_has_nothing_in_its_files(start: Start, tmp_path: Path) -> None:
    harness = start("""
        import os, time
        from pathlib import Path
        FILES = []
        def run(mini_batch):
            os.closerange(3, 100)
            FILES.extend(open(mini_batch[0] + str(number), "wb", 0) for number in range(50))
            Path(mini_batch[0]).touch()
            time.sleep(60)
    """).ready()
    begin(harness, tmp_path)
    stacks = shown(harness)
    assert not any(path.stat().st_size for path in tmp_path.glob("begun*"))
    assert (stacks.doing, stacks.note) == ("unknown", dumps.LOST)


def test_one_that_is_stopped_does_not_answer(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dumps, "_PATIENCE_S", 0.2)
    harness = start("def run(items): return []").ready()
    os.kill(harness.worker.pid, signal.SIGSTOP)
    assert shown(harness).note == dumps.NO_ANSWER
