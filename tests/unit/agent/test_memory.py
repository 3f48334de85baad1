"""What the kernel counts of the processes that it has killed for want of memory."""

from __future__ import annotations

from pathlib import Path

from parallelrun_agent.node.memory import OomWatch


def test_the_kernels_count_of_kills_is_seen_once(tmp_path: Path) -> None:
    counter = tmp_path / "vmstat"
    counter.write_text("pgfault 7\noom_kill 3\n")
    watch = OomWatch(proc=tmp_path, cgroups=tmp_path)
    assert not watch.poll(), "what was before it came counts for nobody"
    counter.write_text("pgfault 9\noom_kill 4\n")
    assert watch.poll()
    assert not watch.poll()
