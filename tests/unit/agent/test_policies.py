"""How far to look ahead, how long to rely on a lease, and other small rules of a node."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from parallelrun_agent.node.memory import OomWatch
from parallelrun_agent.policy.lease_clock import LeaseClock
from parallelrun_agent.policy.look_ahead import HORIZON_S, MAX_DEPTH, LookAhead
from parallelrun_agent.workers import capped_log
from parallelrun_agent.workers.capped_log import CappedLog
from parallelrun_core.leasing import RENEW_AFTER

seconds = st.floats(0, 1e5)


@given(times=st.lists(seconds, max_size=30))
def test_the_depth_stays_within_its_bounds(times: list[float]) -> None:
    look_ahead = LookAhead(enabled=True)
    assert look_ahead.depth == 1
    for run_s in times:
        look_ahead.observe(run_s)
        assert 1 <= look_ahead.depth <= MAX_DEPTH
    off = LookAhead(enabled=False)
    for run_s in times:
        off.observe(run_s)
    assert off.depth == 1


@given(before=st.lists(st.floats(0, 0.001), max_size=30))
def test_one_long_run_is_believed_at_once(before: list[float]) -> None:
    look_ahead = LookAhead(enabled=True)
    for run_s in before:
        look_ahead.observe(run_s)
    look_ahead.observe(10.0)
    assert look_ahead.depth == 1


def test_short_runs_are_believed_in_time() -> None:
    look_ahead = LookAhead(enabled=True)
    look_ahead.observe(1.0)
    for _ in range(200):
        look_ahead.observe(0.0001)
    assert look_ahead.depth > 100


@given(run_s=st.floats(1e-4, 10))
def test_about_as_much_waits_as_the_horizon_says(run_s: float) -> None:
    look_ahead = LookAhead(enabled=True)
    for _ in range(3):
        look_ahead.observe(run_s)
    assert (look_ahead.depth - 1) * run_s <= HORIZON_S


@given(lease=st.floats(0.06, 3600), sent=seconds, later=st.floats(0, 7200))
@example(lease=3600.0, sent=0.0, later=3590.0)
def test_the_local_deadline_is_before_the_end_of_the_lease(lease: float, sent: float, later: float) -> None:
    clock = LeaseClock(lease)
    assert not clock.is_valid(sent)
    clock.renewed(sent)
    if clock.is_valid(sent + later):
        assert later < lease * (1 - RENEW_AFTER)  # a quick turn doesn't renew it in full
    assert not clock.is_valid(sent + lease)
    assert clock.is_valid(sent) or lease < 1e-9 * sent


@given(lease=st.floats(1, 100), times=st.lists(seconds, min_size=1, max_size=10), now=seconds)
def test_an_older_renewal_that_is_confirmed_late_takes_nothing_away(
    lease: float, times: list[float], now: float
) -> None:
    clock, newest = LeaseClock(lease), LeaseClock(lease)
    newest.renewed(max(times))
    for sent in times:
        clock.renewed(sent)
    assert clock.is_valid(now) == newest.is_valid(now)


def test_the_kernels_count_of_kills_is_seen_once(tmp_path: Path) -> None:
    counter = tmp_path / "vmstat"
    counter.write_text("pgfault 7\noom_kill 3\n")
    watch = OomWatch(proc=tmp_path, cgroups=tmp_path)
    assert not watch.look(), "what was before it came counts for nobody"
    counter.write_text("pgfault 9\noom_kill 4\n")
    assert watch.look()
    assert not watch.look()


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
        patched.setattr(capped_log, "_remove_blocks", fail)
        patched.setattr(os, call, fail)
        assert not log.trim()
        log.close()


@pytest.mark.parametrize("way", ["blocks are taken out", "it is cut off"])
def test_what_is_dropped_is_counted_to_the_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    path, limit, written = tmp_path / "stdout.txt", 50_000, 0
    log = CappedLog(path, limit)
    remove_blocks, taken = capped_log._remove_blocks, []

    def meanwhile(fd: int, begin: int, length: int) -> None:
        if way == "it is cut off":
            raise OSError
        os.write(fd, b"written meanwhile\n")  # behind the look at the size, before anything is removed
        remove_blocks(fd, begin, length)
        taken.append(length)

    monkeypatch.setattr(capped_log, "_remove_blocks", meanwhile)
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
