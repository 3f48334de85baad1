"""The channel from an agent to a worker: the ring, what is taken back, and mini-batches too large for it."""

from __future__ import annotations

import errno
import os
from mmap import mmap
from pathlib import Path

import pytest

from parallelrun_worker import frames
from tests.integration.worker.worker_harness import ECHO, Start

pytestmark = pytest.mark.integration


SLOW = """
import os, time
def run(items):
    open("running", "a").write(items[0] + "\\n")
    while not os.path.exists("go"):
        time.sleep(0.01)
    return items
"""


def test_take_back_takes_all_that_is_unread_and_only_that(start: Start) -> None:
    harness = start(SLOW).ready()
    harness.deliver(0, b"x")
    harness.until((harness.working_folder / "running").exists, "the first one runs")
    for number in range(1, 400):
        harness.deliver(number, b"y" * 5000)  # more than the ring holds
    assert harness.worker.take_back() == list(range(1, 400))
    assert harness.worker.take_back() == []
    harness.deliver(400, b"z")
    (harness.working_folder / "go").touch()
    assert [answer.mini_batch for answer in harness.wait_for_answers(2)] == [0, 400]
    harness.worker.end()
    harness.exited()
    assert [answer.mini_batch for answer in harness.answers()] == [0, 400]


def test_what_the_ring_does_not_take_follows_with_the_next_answer(start: Start) -> None:
    harness = start(ECHO).ready()
    for number in range(200):
        harness.deliver(number, b"y" * 20_000)
    while len(harness.answers()) < 200:
        harness.wait_for_answers(len(harness.answers()) + 1)
    assert [answer.mini_batch for answer in harness.answers()] == list(range(200))


def test_what_the_system_does_not_take_is_told_and_is_not_lost(start: Start) -> None:
    worker = start(ECHO).ready().worker
    control, worker.control = worker.control, os.open(os.devnull, os.O_RDONLY)
    worker.deliver(0, b"x")
    with pytest.raises(OSError, match=os.strerror(errno.EBADF)):
        worker.send()
    os.close(worker.control)
    worker.control = control
    assert worker.take_back() == [0]


def test_a_worker_that_has_written_over_the_ring_gets_nothing_more(start: Start) -> None:
    """Paths that nobody has read yet must not be taken for free room."""
    worker = start(SLOW).ready().worker
    with mmap(worker.ring.fd, frames.RING_SIZE) as memory:
        memory[: frames.POSITION.size] = frames.POSITION.pack(1 << 40)
    for number in range(9):
        worker.deliver(number, b"y" * frames.MAX_PAYLOAD)
    with pytest.raises(OSError, match="written over"):
        worker.send()
    assert worker.take_back() == list(range(9))


def test_a_script_can_not_cut_the_memory_that_its_agent_writes_to(start: Start) -> None:
    harness = start("""
        import os
        def run(items):
            for fd in os.listdir("/proc/self/fd"):
                if "memfd:parallelrun" in os.path.realpath(f"/proc/self/fd/{fd}"):
                    os.ftruncate(int(fd), 0)
            return items
    """).ready()
    assert "PermissionError" in harness.run("a").error["message"]


def test_payloads_go_round_the_ring_whole_and_in_order(start: Start) -> None:
    harness = start(ECHO).ready()
    sizes = [1 + 7919 * number % 40_000 for number in range(60)]
    for number, size in enumerate(sizes):
        harness.deliver(number, b"%d" % (number % 10) * size)
    answers = harness.wait_for_answers(len(sizes))
    expected = [b"%d" % (number % 10) * size + b"\n" for number, size in enumerate(sizes)]
    assert [answer.rows for answer in answers] == expected


def test_take_back_after_a_death_takes_what_it_never_read(start: Start) -> None:
    harness = start("import os\ndef run(items):\n    os._exit(1)\n").ready()
    for number in range(3):
        harness.deliver(number, b"x")
    assert harness.exited() == 1
    assert harness.worker.take_back() == [1, 2]


# Large mini-batches


@pytest.mark.parametrize("size", [65_535, 65_536, 65_537, 1 << 20])
def test_a_megabyte_of_paths_goes_through_a_file_which_is_removed(start: Start, size: int) -> None:
    harness = start("def run(items):\n    return [len(items), sum(map(len, items))]").ready()
    items = ["x" * 99] * (size // 100)
    items.append("y" * (size - len("\0".join(items)) - 1))
    assert len("\0".join(items)) == size
    answer = harness.run(*items)
    assert answer.rows.decode().split() == [str(len(items)), str(size - len(items) + 1)]
    assert harness.waiting_files() == []


def test_a_large_mini_batch_that_is_taken_back_leaves_no_file(start: Start) -> None:
    harness = start(SLOW).ready()
    harness.deliver(0, b"x")
    harness.until((harness.working_folder / "running").exists, "the first one runs")
    harness.deliver(1, b"x" * (1 << 20))
    assert harness.worker.take_back() == [1]
    assert harness.waiting_files() == []


def test_a_script_that_tidies_up_its_folder_does_no_harm_to_a_large_mini_batch(start: Start, tmp_path: Path) -> None:
    harness = start(
        """
        import os, shutil, time
        HERE = os.getcwd()
        def run(items):
            shutil.rmtree(HERE, ignore_errors=True)
            while items[0] == "wait" and not os.path.exists(os.environ["GO"]):
                time.sleep(0.01)
            return [len(items[0])]
    """,
        GO=str(tmp_path / "go"),
    ).ready()
    harness.deliver(0, b"wait")
    harness.until(lambda: not harness.working_folder.exists(), "it has tidied up")
    for number in (1, 2):
        harness.deliver(number, b"x" * 100_000)
    assert harness.worker.take_back() == [1, 2]
    harness.deliver(3, b"x" * 100_000)
    (tmp_path / "go").touch()
    assert [answer.rows for answer in harness.wait_for_answers(2)] == [b"4\n", b"100000\n"]
    harness.deliver(4, b"x" * 100_000)
    harness.close()
    assert harness.waiting_files() == []


def test_a_large_result_is_whole(start: Start) -> None:
    harness = start("def run(items):\n    return ['x' * 1000] * 20_000").ready()
    answer = harness.run("a")
    assert answer.returned == 20_000
    assert answer.rows == (b"x" * 1000 + b"\n") * 20_000


# Data that are read or copied first
