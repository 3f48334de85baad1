"""What a script remembers is there for every later process, wherever the one before it died."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from parallelrun_worker.script_api.memory import Memory
from parallelrun_worker.script_api.refusals import MemoryFull


def memory_of(folder: Path, node: str = "n0", process: str = "p0", **options: int) -> Memory:
    return Memory(str(folder / node / f"{process}.jsonl"), [str(folder)], **options)


def test_memory_of_one_process_is_that_of_all(tmp_path: Path) -> None:
    first, other = memory_of(tmp_path), memory_of(tmp_path, "n1")
    assert other.recall("a") is None
    first.remember("a", {"rows": [1, None, "é"]})
    assert other.recall("a") == first.recall("a") == {"rows": [1, None, "é"]}
    other.remember("b", None)
    assert first.recall("b", "missing") is None
    assert first.recall("c", "missing") == "missing"


def test_memory_is_on_the_disk_when_the_process_is_killed_right_after(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys; from parallelrun_worker.script_api.memory import Memory\n"
        "Memory(sys.argv[1], []).remember('paid', 7); os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "n0" / "p0.jsonl")], check=False)
    assert memory_of(tmp_path, "n1").recall("paid") == 7


def test_memory_has_synced_what_it_returns_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []

    def sync(fd: int) -> None:
        synced.append(os.fstat(fd).st_size)

    monkeypatch.setattr(os, "fdatasync", sync)
    store = memory_of(tmp_path)
    for number in range(3):
        store.remember(str(number), number)
        assert synced[-1] == (tmp_path / "n0" / "p0.jsonl").stat().st_size


def test_memory_shares_a_sync_among_those_that_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first_begun, goes_on, count = threading.Event(), threading.Event(), 0

    def sync(fd: int) -> None:
        nonlocal count
        count += 1
        first_begun.set()
        goes_on.wait(30)

    monkeypatch.setattr(os, "fdatasync", sync)
    store = memory_of(tmp_path)

    async def all_at_once() -> None:
        first = asyncio.create_task(store.aremember("first", 0))
        await asyncio.to_thread(first_begun.wait, 30)
        rest = [asyncio.create_task(store.aremember(str(number), number)) for number in range(20)]
        await asyncio.sleep(0.05)
        goes_on.set()
        await asyncio.gather(first, *rest)

    asyncio.run(all_at_once())
    assert count == 2, "the others have waited for one sync together"
    assert memory_of(tmp_path, "n1").recall("19") == 19


def test_memory_passes_over_a_line_that_was_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "n0" / "p0.jsonl"
    path.parent.mkdir()
    path.write_bytes(b'{"key":"a","value":1}\n{"key":"b","val')
    assert memory_of(tmp_path, "n1").recall("b") is None
    again = memory_of(tmp_path)  # the agent was started anew, and calls its worker by the same name
    again.remember("c", 3)
    for reader in (again, memory_of(tmp_path, "n1")):
        assert [reader.recall(key) for key in "abc"] == [1, None, 3]


def test_memory_has_bounds_that_are_said(tmp_path: Path) -> None:
    store = memory_of(tmp_path, max_bytes=200)
    with pytest.raises(ValueError, match="too long: a key has up to 1,024 bytes"):
        store.remember("k" * 1025, 1)
    with pytest.raises(ValueError, match="Out of range float values"):
        store.remember("k", float("nan"))
    store.remember("a", "x" * 100)
    with pytest.raises(MemoryFull, match="may not remember more"):
        store.remember("b", "x" * 100)
    assert store.recall("a") == "x" * 100


def test_memory_of_a_child_is_apart_from_that_of_its_parent(tmp_path: Path) -> None:
    parent = memory_of(tmp_path)
    parent.remember("before", 1)
    pid = os.fork()
    if not pid:
        parent.in_child()
        parent.remember("child", 2)
        os._exit(0 if parent.recall("before") == 1 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    parent.remember("after", 3)
    assert [parent.recall(key) for key in ("before", "child", "after")] == [1, 2, 3]


def test_memory_without_a_job_lasts_as_long_as_the_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = Memory()
    store.remember("a", (1, 2))
    assert store.recall("a") == [1, 2], "as JSON has it, so that a test shows what a job would get"
    assert list(tmp_path.iterdir()) == []


def test_memory_is_lines_that_people_can_read(tmp_path: Path) -> None:
    memory_of(tmp_path).remember("a", {"b": 1})
    assert json.loads((tmp_path / "n0" / "p0.jsonl").read_text()) == {"key": "a", "value": {"b": 1}}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_memory_goes_on_in_another_file_where_its_own_is_the_servers_by_now(tmp_path: Path) -> None:
    folder = Path(tempfile.mkdtemp(dir="/tmp"))  # that of pytest is closed to others
    folder.chmod(0o755)
    (folder / "n0").mkdir()
    (folder / "n0").chmod(0o777)
    memory_of(folder).remember("old", 1)
    if not (child := os.fork()):
        os.setuid(20_001)
        again = memory_of(folder)
        again.remember("new", 2)
        os._exit(0 if (again.recall("old"), again.recall("new")) == (1, 2) else 1)
    try:
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert memory_of(folder, "n1").recall("new") == 2
    finally:
        shutil.rmtree(folder)
