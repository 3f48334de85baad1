"""When a node asks how a job goes on: often while leader and node wait for each other, once where it may be over."""

from __future__ import annotations

from functools import partial

from parallelrun_agent.policy.asking import asking_of
from parallelrun_agent.policy.worker import NEVER
from parallelrun_core.spec import JobSpec


def test_an_idle_node_asks_a_few_times_soon_after_each_report() -> None:
    asking = asking_of(JobSpec.parse({"entry_script": "e.py", "inputs": "/in", "mini_batch_size": "auto"}))
    answered = partial(asking.answered, is_at_rest=True)
    assert asking.is_awaited(0)
    assert not asking.is_awaited(1)
    for _ in range(2):
        count, now = 0, 100.0
        answered(0, now, has_reported=True, is_idle=True)
        while asking.at != NEVER:
            count, now = count + 1, asking.at
            answered(0, now, has_reported=False, is_idle=True)
        assert count == 4, "then its polls have to do"
        assert now < 100.2
    answered(3, 200.0, has_reported=True, is_idle=True)
    assert asking.at == 200.0, "what is ready is taken at once"
    answered(0, 200.0, has_reported=False, is_idle=False)
    assert asking.at == NEVER

    asking = asking_of(JobSpec.parse({"entry_script": "e.py", "inputs": "/in"}))
    for has_reported, is_at_rest in ((True, True), (True, False), (False, True)):
        asking.answered(0, 300.0, has_reported=has_reported, is_idle=True, is_at_rest=is_at_rest)
        assert (asking.is_awaited(0), asking.at == NEVER) == (False, not (has_reported and is_at_rest))
