"""Real workers with entry scripts of all kinds: every answer is received, and none is invented."""

from __future__ import annotations

import errno
import json
import os
import pty
import shlex
import sys
from pathlib import Path

import pytest

from parallelrun_worker import frames
from tests.integration.worker.worker_harness import ECHO, Start, WorkerHarness
from tests.unit.core.factories import open_descriptors

pytestmark = pytest.mark.integration


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
