"""A worker's ended children, as its agent counts them."""

from __future__ import annotations

import os

from parallelrun_agent.workers.orphans import Orphans


def test_ended_children_are_counted_until_somebody_waits_for_them() -> None:
    orphans = Orphans()
    orphans.begin(lambda: True)  # without becoming a subreaper
    before = orphans.unwaited(0.0)[os.getpid()]
    assert orphans.unwaited_of(os.getpid()) == before
    child = os.posix_spawn("/bin/true", ["true"], {})
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    assert orphans.unwaited(1.0)[os.getpid()] == before, "it is not counted all the time"
    assert orphans.unwaited(100.0)[os.getpid()] == before + 1
    is_above = child > os.getpid()  # process ids may have begun again from the lowest
    assert orphans.unwaited_of(os.getpid()) == before + is_above
    os.waitpid(child, 0)
    assert orphans.unwaited(200.0)[os.getpid()] == before
