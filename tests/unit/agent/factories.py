"""A machine for tests, and what it is made with."""

from __future__ import annotations

from typing import Any

from parallelrun_agent.policy.job_machine import JobMachine
from parallelrun_agent.policy.outcomes import OutcomeBuilder
from parallelrun_agent.policy.worker import KillReason
from parallelrun_core.spec import JobSpec
from parallelrun_core.spec.retry_policy import MiniBatchRetryPolicy

LEASE_S = 8.0
RUN_S = 5
MAX_TRY = 2
SLOTS = 3
UNCHARGED: tuple[KillReason, ...] = ("drained", "disk_full", "distrusted")
"""Reasons for ending a worker that cost nobody a try."""


def machine(*, lease_s: float = LEASE_S, stages: bool = False, **fields: Any) -> JobMachine:
    spec = JobSpec.parse({"entry_script": "e.py", "inputs": "/in", "run_invocation_timeout": RUN_S, **fields})
    builder = OutcomeBuilder("node", generation=0, retries=MiniBatchRetryPolicy(MAX_TRY))
    return JobMachine(spec, builder, limit=SLOTS, lease_s=lease_s, shutdown_s=2.0, stages=stages)
