"""The lines of a worker's own log, and when they are in the file."""

from __future__ import annotations

import os
import shutil
import threading
import time
from pathlib import Path

import pytest

from parallelrun_worker.log_files import LineFile

TAIL = f"|{os.getpid()}|{threading.get_ident()}|"


def test_each_line_has_the_time_at_which_it_was_added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([1_000_000_000.0, 1_000_000_000.9996, 1_000_000_001.25, 999_999_999.5])  # the clock may be set back
    monkeypatch.setattr(time, "time", lambda: next(times))
    log = LineFile(str(tmp_path / "log.txt"))
    tell = log.often("INFO", "Mini-batch %d: run() took %.3f s.")
    tell(1, 0.25)
    tell(2, 0.0001)
    log.write("WARNING", "100 %\nmore")
    tell(3, 7)
    assert not (tmp_path / "log.txt").exists()
    log.flush()
    assert (tmp_path / "log.txt").read_text() == (
        f"2001-09-09 01:46:40,000|INFO{TAIL}Mini-batch 1: run() took 0.250 s.\n"
        f"2001-09-09 01:46:40,999|INFO{TAIL}Mini-batch 2: run() took 0.000 s.\n"
        f"2001-09-09 01:46:41,250|WARNING{TAIL}100 %\n    more\n"
        f"2001-09-09 01:46:39,500|INFO{TAIL}Mini-batch 3: run() took 7.000 s.\n"
    )


def test_lines_that_come_often_are_written_in_groups_and_each_once(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    log = LineFile(str(path))
    tell = log.often("INFO", "line %d")
    for number in range(600):
        tell(number)
    assert 350 <= path.read_text().count("\n") <= 600, "few are lost in a crash"
    log.flush()
    assert [line.rpartition("|")[2] for line in path.read_text().splitlines()] == [f"line {n}" for n in range(600)]


def test_the_folder_is_made_when_it_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "log.txt"
    log = LineFile(str(path))
    log.write("INFO", "one", at_once=True)
    shutil.rmtree(tmp_path / "a")
    log.write("INFO", "two", at_once=True)
    assert path.read_text().endswith("|two\n")


def test_a_log_that_can_not_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a file")
    LineFile(str(tmp_path / "a" / "log.txt")).write("INFO", "one", at_once=True)


def test_it_is_due_at_first_and_then_for_a_while_not(tmp_path: Path) -> None:
    log = LineFile(str(tmp_path / "log.txt"))
    assert time.perf_counter() >= log.due_at
    log.write("INFO", "one")
    log.flush_regularly()
    assert (tmp_path / "log.txt").exists()
    assert time.perf_counter() < log.due_at <= time.perf_counter() + 1


def test_a_full_log_says_so_and_takes_no_more(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    log = LineFile(str(path), max_bytes=1)
    log.write("INFO", "one", at_once=True)
    log.write("INFO", "two", at_once=True)
    assert path.read_text().endswith("|one\nThis log is full: nothing more is written to it.\n")
