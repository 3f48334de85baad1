"""When a node asks how a job goes on: often while leader and node wait for each other, once where it may be over."""

from __future__ import annotations

from functools import partial

from parallelrun_agent.policy.early_questions import EarlyQuestions
from parallelrun_agent.policy.worker import NEVER
from parallelrun_core.spec import JobSpec


def test_an_idle_node_asks_a_few_times_soon_after_each_report() -> None:
    questions = EarlyQuestions(JobSpec.parse({"entry_script": "e.py", "inputs": "/in", "mini_batch_size": "auto"}))
    answered = partial(questions.answered, is_at_rest=True)
    for _ in range(2):
        count, now = 0, 100.0
        answered(0, now, has_reported=True, is_idle=True)
        while questions.at != NEVER:
            count, now = count + 1, questions.at
            answered(0, now, has_reported=False, is_idle=True)
        assert count == 4, "then its polls have to do"
        assert now < 100.2
    answered(3, 200.0, has_reported=True, is_idle=True)
    assert questions.at == 200.0, "what is ready is taken at once"
    answered(0, 200.0, has_reported=False, is_idle=False)
    assert questions.at == NEVER

    questions = EarlyQuestions(JobSpec.parse({"entry_script": "e.py", "inputs": "/in"}))
    for has_reported, is_at_rest in ((True, True), (True, False), (False, True)):
        questions.answered(0, 300.0, has_reported=has_reported, is_idle=True, is_at_rest=is_at_rest)
        assert (questions.at == NEVER) is not (has_reported and is_at_rest)
