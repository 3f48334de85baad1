"""The policy of retention by itself: which jobs go, by time, number and bytes."""

from __future__ import annotations

import random

import msgspec
import pytest

from parallelrun_core.answers.retention import rule_in_words
from parallelrun_core.retention.policy import DAY_S, JobFacts, StoredFile, SweepPlan, plan_files, plan_jobs
from parallelrun_core.retention.rules import Rules, from_record, to_record

NOW = 1_790_000_000.0


def job(number: int, *, days_ago: float, size: int = 1, **changes: object) -> JobFacts:
    """A completed job that ended some days ago."""
    at = NOW - days_ago * DAY_S
    name = f"job_{number:020d}"
    facts = JobFacts(job_id=name, unit=name, submitted=at, ended=at, is_completed=True, bytes=size)
    return msgspec.structs.replace(facts, **changes)


def removed(plan: SweepPlan) -> list[str]:
    """The jobs that go."""
    return [name for unit in plan.remove for name in unit.members]


def test_a_rule_has_one_name_as_a_setting_in_files_and_in_words() -> None:
    rules = Rules(keep_jobs_days=0.5, keep_uploads_bytes=10**12)
    record = to_record(rules)
    assert (record["jobs_days"], record["uploads_bytes"], record["steps"]) == (0.5, 10**12, 100_000)
    assert from_record({**record, "of_a_later_release": 1.0}) == rules
    assert from_record({}) == Rules()
    assert rule_in_words("uploads_bytes", record["uploads_bytes"]) == "keep_uploads_bytes=1000000000000"


def test_a_job_that_runs_is_never_removed() -> None:
    running = job(1, days_ago=100, ended=0.0, is_completed=False, deleted=1.0)
    assert removed(plan_jobs([running], Rules(keep_jobs_days=1, keep_jobs=1, keep_notice_days=0), now=NOW)) == []


def test_a_pipeline_whose_step_runs_is_never_removed() -> None:
    pipeline = job(1, days_ago=100, noticed=1.0)
    step = job(2, days_ago=100, unit=pipeline.unit, ended=0.0)
    assert removed(plan_jobs([pipeline, step], Rules(keep_jobs_days=1), now=NOW)) == []
    done = msgspec.structs.replace(step, ended=step.submitted)
    assert removed(plan_jobs([done, pipeline], Rules(keep_jobs_days=1), now=NOW)) == [pipeline.job_id, step.job_id]


def test_steps_whose_pipeline_is_gone_go_as_well() -> None:
    step = job(2, days_ago=1, unit="job_of_a_pipeline_that_is_gone")
    assert removed(plan_jobs([step], Rules(), now=NOW)) == [step.job_id]


def test_a_limit_that_a_notice_does_not_allow_is_told() -> None:
    facts = [job(number, days_ago=number / 100, size=10) for number in range(1000)]
    assert "1,000 may stay" in plan_jobs(facts, Rules(keep_jobs_bytes=1000), now=NOW).problem
    assert not plan_jobs(facts, Rules(keep_jobs_bytes=100_000), now=NOW).problem


@pytest.mark.parametrize("seed", range(5))
def test_a_limit_holds_though_each_job_is_noticed_a_week_before(seed: int) -> None:
    """Days with different numbers of jobs of different sizes, a sweep each six hours, some jobs that others need."""
    draw, facts, now = random.Random(seed), dict[str, JobFacts](), NOW
    rules, number, noticed_s = Rules(keep_jobs_bytes=90_000), 0, dict[str, float]()
    for _ in range(4 * 80):
        for _ in range(draw.randrange(6, 10)):
            number += 1
            facts[f"job_{number:020d}"] = job(
                number, days_ago=0, size=draw.randrange(100, 200), submitted=now, ended=now,
                names=(f"job_{max(1, number - 10):020d}",) if draw.random() < 0.02 else (),
            )  # fmt: skip
        plan = plan_jobs(list(facts.values()), rules, now=now)
        for notice in plan.notices:
            noticed_s[notice.unit] = now
            facts[notice.unit] = msgspec.structs.replace(facts[notice.unit], noticed=now)
        for name in plan.withdrawn:
            facts[name] = msgspec.structs.replace(facts[name], noticed=0.0)
        for name in removed(plan):
            assert now - noticed_s[name] >= 7 * DAY_S
            assert not any(name in each.names for each in facts.values())
            del facts[name]
        assert sum(each.bytes for each in facts.values()) <= rules.keep_jobs_bytes
        now += DAY_S / 4
    assert number > len(facts)


def test_files_go_by_age_and_then_by_bytes_the_oldest_first() -> None:
    files = [StoredFile(name=str(days), bytes=10, written=NOW - days * DAY_S) for days in range(1, 6)]
    assert plan_files(files, days=0, most_bytes=0, now=NOW) == []
    assert plan_files(files, days=4, most_bytes=0, now=NOW) == ["5", "4"]
    assert plan_files(files, days=0, most_bytes=25, now=NOW) == ["5", "4", "3"]
    assert plan_files(files, days=5, most_bytes=30, now=NOW) == ["5", "4"]
