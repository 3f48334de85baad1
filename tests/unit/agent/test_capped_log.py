"""Output of workers stays short, and what is dropped is counted."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path

import pytest

from parallelrun_agent.workers import capped_log
from parallelrun_agent.workers.capped_log import CappedLog


def test_output_stays_short_and_what_is_dropped_is_counted(tmp_path: Path) -> None:
    path, limit = tmp_path / "stdout.txt", 40_000
    log = CappedLog(path, limit)
    os.write(log.fd, b"the first words\n")
    for _ in range(5):
        os.write(log.fd, b"x" * limit)
        assert log.trim()
        assert path.stat().st_size <= limit
    os.write(log.fd, b"the last words\n")
    log.close()
    text = path.read_text()
    assert path.stat().st_size < limit + 100
    assert text.startswith("the first words\n")
    assert text.endswith("the last words\n")
    assert "bytes were dropped here" in text


@pytest.mark.parametrize("call", ["fstat", "ftruncate"])
def test_a_log_that_its_disk_does_not_let_be_cut_is_left_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))

    log = CappedLog(tmp_path / "stdout.txt", 40_000)
    os.write(log.fd, b"x" * 50_000)
    with monkeypatch.context() as patched:
        patched.setattr(capped_log, "remove_blocks", fail)
        patched.setattr(os, call, fail)
        assert not log.trim()
        log.close()


@pytest.mark.parametrize("way", ["blocks are taken out", "it is cut off"])
def test_what_is_dropped_is_counted_to_the_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    path, limit, written = tmp_path / "stdout.txt", 50_000, 0
    log = CappedLog(path, limit)
    remove_blocks, taken = capped_log.remove_blocks, []

    def meanwhile(fd: int, begin: int, length: int) -> None:
        if way == "it is cut off":
            raise OSError
        os.write(fd, b"written meanwhile\n")  # behind the look at the size, before anything is removed
        remove_blocks(fd, begin, length)
        taken.append(length)

    monkeypatch.setattr(capped_log, "remove_blocks", meanwhile)
    for number in range(5):
        written += os.write(log.fd, b"%05d " % number * 10_000)
        assert log.trim()
        if way == "blocks are taken out" and not taken:
            log.close()
            pytest.skip("this file system takes no blocks out")
        assert path.stat().st_size <= limit
    written += 18 * len(taken)
    size = path.stat().st_size
    log.close()
    text = path.read_text()
    (said,) = re.findall(r"\n\[parallelrun\] ([\d,]+) bytes were dropped here\n", text)
    kept = len(text) - len(f"\n[parallelrun] {said} bytes were dropped here\n")
    assert kept <= size
    assert int(said.replace(",", "")) + kept == written
    assert text.startswith("00000 ")
    assert text.endswith("written meanwhile\n") == (way == "blocks are taken out")
