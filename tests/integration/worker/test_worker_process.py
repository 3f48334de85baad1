"""Real workers with entry scripts of all kinds: every answer is received, and none is invented."""

from __future__ import annotations

import errno
import json
import os
import pty
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from mmap import mmap
from pathlib import Path

import pytest

from parallelrun_worker import frames
from parallelrun_worker.__main__ import BATCH_JOBS
from tests.integration.worker.worker_harness import WorkerHarness, is_alive
from tests.unit.core.factories import open_descriptors

pytestmark = pytest.mark.integration

Start = Callable[..., WorkerHarness]

CHILD_ENDS_S = 30.0
ECHO = "def run(items):\n    return items\n"


def test_rows_are_written_and_answered_in_order(start: Start) -> None:
    harness = start(ECHO).ready()
    assert harness.run("a", "b", mini_batch=7) == (7, b"a\nb\n", 2, {})
    assert harness.run("c", mini_batch=3) == (3, b"c\n", 1, {})
    assert harness.part is not None
    assert harness.part.read_bytes() == b"a\nb\nc\n"


def test_any_path_arrives_as_the_operating_system_has_it(start: Start) -> None:
    harness = start("import os\ndef run(items):\n    return [os.fsencode(item).hex() for item in items]").ready()
    names = [b"/a b", b"/\xff\xfe", b"/new\nline", "/é\U0001f600".encode()]
    answer = harness.run(*(name.decode("utf-8", "surrogateescape") for name in names))
    assert answer.rows.decode().split() == [name.hex() for name in names]


def test_a_worker_without_rows_counts_them_all_the_same(start: Start) -> None:
    harness = start(ECHO, rows=False).ready()
    assert harness.run("a", "b") == (0, b"", 2, {})


def cpu_seconds(harness: WorkerHarness) -> list[float]:
    return [result["process_s"] for result in harness.results()]


def test_the_cpu_time_of_each_mini_batch_is_told_once(start: Start) -> None:
    harness = start("""
        import time
        def run(items):
            began = time.process_time()
            while items == ["busy"] and time.process_time() < began + 0.2:
                pass
            return [time.process_time()]
    """).ready()
    before = float(harness.run("x").rows)
    for number in range(300):
        harness.worker.deliver(1 + number, b"busy" if number == 100 else b"x")
    used = float(harness.wait_for_answers(301)[-1].rows) - before
    _, *each = cpu_seconds(harness)
    assert each[100] >= 0.2
    assert min(each) > 0
    assert sum(each) <= used + 0.01  # the last one's, after its own look at the clock


def test_what_a_thread_uses_between_two_mini_batches_belongs_to_none(start: Start) -> None:
    harness = start("""
        import threading, time, zlib
        data = bytes(50_000_000)
        def spin():
            while True:
                zlib.crc32(data)  # meanwhile, run() can run
        threading.Thread(target=spin, daemon=True).start()
        def run(items):
            return [time.process_time()]
    """).ready()
    first = float(harness.run("x").rows)
    harness.until(lambda: float(harness.run("x").rows) > first + 1, "the thread has run for a second")
    assert sum(cpu_seconds(harness)) < 0.5 * (float(harness.run("x").rows) - first)


def test_orderly_end_finishes_the_line_calls_shutdown_and_says_so(start: Start) -> None:
    harness = start(ECHO + "def shutdown():\n    open('done', 'w').close()\n").ready()
    for number in range(5):
        harness.deliver(number, b"x")
    harness.worker.end()
    assert harness.exited() == 0
    assert [answer.mini_batch for answer in harness.answers()] == [0, 1, 2, 3, 4]
    assert harness.kinds()[-1] == frames.STOPPED
    assert (harness.working_folder / "done").exists()


def test_shutdown_that_raises_is_told_and_the_end_is_still_orderly(start: Start) -> None:
    harness = start(ECHO + "def shutdown():\n    raise RuntimeError('no shutdown')\n").ready()
    harness.worker.end()
    assert harness.exited() == 0
    kind, payload = harness.received[-1]
    assert kind == frames.STOPPED
    assert b"no shutdown" in payload


OWN_FILE = """
    import atexit, threading, time
    from concurrent.futures import ThreadPoolExecutor
    def wait_for_ever():
        while True:
            time.sleep(1)
    def wait_in_a_thread():
        wait_for_ever()
    own, pool = open("own.csv", "w"), ThreadPoolExecutor(1)
    atexit.register(lambda: open("handler", "w").close())
    def run(items):
        own.write("a row\\n")
        pool.submit(lambda: (time.sleep(0.1), open("uploaded", "w").close()))
        return items
"""


def test_it_ends_like_any_python_program(start: Start) -> None:
    """What a script has not closed itself is written; what it has put off until the end is done."""
    harness = start(OWN_FILE).ready()
    harness.run("a")
    harness.worker.end()
    assert harness.exited() == 0
    assert (harness.working_folder / "own.csv").read_text() == "a row\n"
    assert (harness.working_folder / "handler").exists()
    assert (harness.working_folder / "uploaded").exists()


def test_what_hangs_at_the_end_is_broken_off_and_the_rest_of_the_end_is_not(start: Start) -> None:
    hanging = "    threading.Thread(target=wait_in_a_thread).start()\n    atexit.register(wait_for_ever)\n"
    harness = start(OWN_FILE + hanging, config={"exit_s": 3.0}).ready()
    harness.run("a")
    harness.worker.end()
    assert harness.exited() == 0
    assert (harness.working_folder / "own.csv").read_text() == "a row\n"
    assert (harness.working_folder / "handler").exists()
    told = harness.stderr.read_text()
    assert told.count("TimeoutError: Interrupted: the process did not exit within") >= 2
    assert "in wait_in_a_thread" in told
    assert "in wait_for_ever" in told


def test_without_the_last_flush_the_rows_that_a_hanging_thread_knows_are_lost(start: Start) -> None:
    twin = """
    import __main__
    def shutdown():
        __main__._flush_open_files = lambda: None
    threading.Thread(target=wait_in_a_thread).start()
    """
    harness = start(OWN_FILE + twin, config={"exit_s": 3.0}).ready()
    harness.run("a")
    harness.worker.end()
    assert harness.exited() == 0
    assert (harness.working_folder / "own.csv").read_text() == ""


def test_an_init_that_fails_beside_threads_that_hang_ends_all_the_same(start: Start) -> None:
    script = "import threading, time\nthreading.Thread(target=time.sleep, args=(1000,)).start()\n"
    harness = start(script + "raise ValueError('no model')", config={"exit_s": 3.0})
    assert harness.exited() == 1
    assert harness.kinds() == [frames.INIT_FAILED]


# Mini-batches that fail and leave the worker alive

FAILING = {
    "raise ValueError('bad file')": ("RUN_EXCEPTION", "ValueError: bad file"),
    "sys.exit(3)": ("RUN_EXCEPTION", "SystemExit: 3"),
    "raise KeyboardInterrupt": ("RUN_EXCEPTION", "KeyboardInterrupt"),
    "return None": ("BAD_RETURN", "NoneType"),
    "return 'text'": ("BAD_RETURN", "str"),
    "return (x for x in items)": ("BAD_RETURN", "generator"),
    "raise Broken()": ("RUN_EXCEPTION", "Broken"),
    "raise ValueError('x' * 10**6)": ("RUN_EXCEPTION", "ValueError: xxx"),
    "raise ValueError('\\udcff\\ud800')": ("RUN_EXCEPTION", "ValueError"),
    "return f(0)": ("RUN_EXCEPTION", "RecursionError"),
    "return [Broken()]": ("RUN_EXCEPTION", "mine"),
}


@pytest.mark.parametrize("body", FAILING)
def test_a_run_that_fails_is_told_with_its_cause_and_the_next_one_runs(start: Start, body: str) -> None:
    script = (
        "import sys\nclass Broken(Exception):\n    def __str__(self): raise ValueError('mine')\n"
        f"def f(n): return f(n + 1)\ndef run(items):\n    if items[0] == 'bad':\n        {body}\n    return items\n"
    )
    harness = start(script).ready()
    category, words = FAILING[body]
    assert harness.run("good").rows == b"good\n"
    error = harness.run("bad", mini_batch=1).error
    assert error["category"] == category
    assert words in error["message"]
    assert "parallelrun_worker" not in error["traceback"]
    if category == "RUN_EXCEPTION" and "Broken()]" not in body:
        assert 'File "score.py", line' in error["traceback"], "as the user has it, not where it was copied to"
    assert harness.run("good again", mini_batch=2).rows == b"good again\n"


@pytest.mark.parametrize(
    "script, words",
    [
        ("raise RuntimeError('at import')", "at import"),
        ("import sys\nsys.exit(0)", "SystemExit"),
        ("def init():\n    raise RuntimeError('no model')\n" + ECHO, "no model"),
        ("import module_that_is_not_there", "module_that_is_not_there"),
        ("def run(:", "SyntaxError"),
        ("x = 1", "run"),
    ],
)
def test_a_script_that_does_not_begin_is_told_with_its_cause(start: Start, script: str, words: str) -> None:
    harness = start(script)
    assert harness.exited() == 1
    ((kind, payload),) = harness.received
    assert kind == frames.INIT_FAILED
    assert words in payload.decode()


# Standard streams


def test_whatever_is_printed_goes_to_its_own_file_and_nowhere_else(start: Start) -> None:
    harness = start("""
        import logging, os, sys
        def run(items):
            os.write(1, b"direct\\n")
            os.system("echo from a child; echo complaint >&2")
            print("printed", flush=True)
            print("error", file=sys.stderr)
            logging.getLogger("mine").info("logged")
            return items
    """).ready()
    assert harness.run("a").rows == b"a\n"
    printed, direct = harness.stdout.read_text(), harness.child_stdout.read_text()
    assert all(words in printed and words not in direct for words in ("printed", "logged"))
    assert all(words in direct and words not in printed for words in ("direct", "from a child"))
    assert "error" in harness.stderr.read_text()
    assert harness.child_stderr.read_text() == "complaint\n"


def test_a_flood_of_output_holds_nobody_up(start: Start) -> None:
    harness = start("def run(items):\n    for _ in range(2000):\n        print('x' * 5000)\n    return items").ready()
    assert harness.run("a").returned == 1
    assert harness.stdout.stat().st_size > 10_000_000


def test_a_closed_standard_output_is_the_users_own_trouble(start: Start) -> None:
    harness = start("""
        import os, sys
        def run(items):
            sys.stdout.close()
            os.close(2)
            return items
    """).ready()
    assert harness.run("a").rows == b"a\n"
    assert harness.run("b", mini_batch=1).error["category"] == "RUN_EXCEPTION"  # stdout is closed already


def test_standard_input_is_empty(start: Start) -> None:
    harness = start("import sys\ndef run(items):\n    return [repr(sys.stdin.read())]").ready()
    assert harness.run("a").rows == b"''\n"


# Deaths

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


def test_a_disk_without_room_for_copies_is_nobodys_fault_and_keeps_no_part_of_them(
    start: Start, tmp_path: Path
) -> None:
    harness = start('''
        import errno, os, shutil
        copy = shutil.copyfile
        def copy_where_there_is_room(path, to):
            copy(path, to)
            if not os.path.exists(os.environ["GO"]):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), to)
        shutil.copyfile = copy_where_there_is_room
        def run(items):
            return [open(item).read() for item in items]
    ''', GO=str(tmp_path / "go")).ready()  # fmt: skip
    (tmp_path / "data.txt").write_text("what is in it")
    plan = {"name": "data", "kind": "files", "is_copied": True, "root": str(tmp_path), "keys": []}
    (harness.logs.parent / "inputs.json").write_text(json.dumps([plan]))
    described = json.dumps({"input": 0, "keys": [], "pieces": [], "paths": [str(tmp_path / "data.txt")]}).encode()
    harness.deliver(7, described, frames.DESCRIBED)
    harness.until_heard(frames.NOT_STORED)
    kind, payload = harness.received[-1]
    assert (kind, payload[:8]) == (frames.NOT_STORED, frames.MINI_BATCH.pack(7))
    assert b"No space left" in payload
    assert not list(harness.working_folder.rglob("data.txt"))
    (tmp_path / "go").touch()
    harness.deliver(7, described, frames.DESCRIBED)
    (answer,) = harness.wait_for_answers(1)
    assert answer.rows == b"what is in it\n"


# Starting


def test_a_part_file_is_never_written_by_two(tmp_path: Path) -> None:
    harness = WorkerHarness(tmp_path, ECHO)
    before = len(open_descriptors())
    with pytest.raises(FileExistsError):
        WorkerHarness(tmp_path, ECHO)
    assert len(open_descriptors()) == before
    harness.close()


def test_a_worker_that_cannot_be_started_leaves_nothing_open(tmp_path: Path) -> None:
    before = open_descriptors()
    with pytest.raises(OSError, match="too long"):
        WorkerHarness(tmp_path, ECHO, LARGE="x" * 200_000)
    assert open_descriptors() == before


def test_a_worker_frees_all_its_descriptors(tmp_path: Path) -> None:
    before = open_descriptors()
    harness = WorkerHarness(tmp_path, ECHO).ready()
    harness.worker.end()
    harness.exited()
    harness.close()
    assert open_descriptors() == before


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


def test_a_worker_has_no_terminal_even_if_its_agent_has_one(tmp_path: Path) -> None:
    """One that reads from its agent's would be stopped, not told."""
    told = tmp_path / "told"
    code = f"""
import os, sys
sys.path.insert(0, {str(Path(frames.__file__).parent.parent)!r})
from parallelrun_worker.__main__ import _leave_the_terminal
def has_one():
    try:
        os.close(os.open("/dev/tty", os.O_RDWR))
    except OSError as error:
        return error.strerror
    return "there is one"
before = has_one()
_leave_the_terminal()
open({str(told)!r}, "w").write(before + ", " + has_one())
"""
    script = tmp_path / "script.py"
    script.write_text(code)
    # The shell leads the session, as that of a person does, and waits for its child.
    pty.spawn(["/bin/sh", "-c", f"{shlex.join([sys.executable, str(script)])}; :"])
    assert told.read_text() == f"there is one, {os.strerror(errno.ENXIO)}"


def test_workers_share_the_session_of_their_agent(start: Start) -> None:
    harness = start("import os\ndef run(items):\n    return [os.getsid(0), os.getpgid(0) == os.getpid()]").ready()
    assert harness.run("x").rows.decode().split() == [str(os.getsid(0)), "True"]
