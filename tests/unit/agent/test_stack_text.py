"""What faulthandler writes is read as it is, and what a script puts there doesn't matter."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from parallelrun_agent.stacks.dumps import MOST_FRAMES, threads_of
from parallelrun_core.answers.stacks import StackFrame

OURS = "/site/parallelrun_worker/runner.py"
DUMP = """\
Thread 0x00007f01 [loader] (most recent call first):
  File "/usr/lib/python3.14/threading.py", line 320 in wait
  File "/code/helper.py", line ??? in load

Current thread 0x00007f02 (most recent call first):
  File "/code/score.py", line 7 in run
  File "{ours}/runner.py", line 99 in _run
  File "{ours}/__main__.py", line 3 in <module>
  File "<frozen runpy>", line 198 in _run_module_as_main
"""


def dump() -> str:
    import os

    import parallelrun_worker

    return DUMP.replace("{ours}", os.path.dirname(parallelrun_worker.__file__))


def test_the_main_thread_comes_first_without_our_own_calls() -> None:
    main, loader = threads_of(dump(), "/code", str)
    assert (main.is_main, main.frames) == (True, [StackFrame(file="score.py", line=7, function="run")])
    assert (loader.is_main, loader.name) == (False, "loader")
    assert loader.frames[1] == StackFrame(file="helper.py", line=0, function="load")


def test_when_no_thread_is_the_current_one_the_oldest_is_the_main_one() -> None:
    threads = threads_of(dump().replace("Current thread", "Thread"), "/code", str)
    assert [thread.is_main for thread in threads] == [True, False]
    assert threads[0].frames[0].function == "run"


def test_it_is_bounded() -> None:
    deep = "Thread 0x1 (most recent call first):\n" + '  File "a", line 1 in f\n' * 500
    assert len(threads_of(deep, "", str)[0].frames) == MOST_FRAMES
    assert len(threads_of("Thread 0x1 (most recent call first):\n" * 500, "", str)) == 100


@given(st.text())
def test_anything_else_is_passed_over(text: str) -> None:
    assert threads_of(text, "/code", str) == [] or "thread" in text.lower()
