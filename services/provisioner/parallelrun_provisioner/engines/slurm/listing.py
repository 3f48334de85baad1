"""Batch jobs as engine nodes: parses the columns of squeue. Pure.

squeue is asked for columns of our choice, not for JSON: its JSON needs a plugin that many clusters lack, and has other
names and types in nearly every release, while these columns are the same since Slurm 2. Jobs that have ended are there
for `MinJobAge` (five minutes by default), so that no accounting is needed to learn how a node has ended.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from parallelrun_core.computes.launch import compute_of
from parallelrun_provisioner.engines.interface import EngineNode, NodeStanding
from parallelrun_provisioner.engines.slurm.words import ENDED, WANTED_BY_SLURM, end_in_words, wait_in_words

FORMAT: Final = "%A|%T|%e|%r|%j|%k"
"""Id, state, end, reason, name, comment; the last one is free text."""
TIMES: Final = {"SLURM_TIME_FORMAT": "%s"}
"""The variable that makes times seconds since the epoch."""
_WAITING: Final = frozenset({"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "RESV_DEL_HOLD"})


@dataclass(frozen=True, kw_only=True)
class SlurmJob:
    id: int
    name: str
    state: str
    reason: str
    ends_at: float | None

    @property
    def standing(self) -> NodeStanding:
        """The standing by Slurm's state; of a state that this release doesn't know: running, so that nobody takes its
        place."""
        if self.state in ENDED:
            return NodeStanding.ENDED
        return NodeStanding.PENDING if self.state in _WAITING else NodeStanding.RUNNING


def jobs_in(text: str, *, mark: str, compute: str) -> list[SlurmJob]:
    """The jobs with this mark among the lines of squeue, in order of their ids."""
    fields = (line.split("|", 5) for line in text.splitlines())
    jobs = [
        SlurmJob(id=int(number), name=name, state=state, reason=reason, ends_at=_time(end))
        for number, state, end, reason, name, comment in (row for row in fields if len(row) == 6)
        if comment.strip() == mark and compute_of(name) == compute and number.isdecimal()
    ]
    return sorted(jobs, key=lambda job: job.id)


def nodes_of(jobs: Iterable[SlurmJob]) -> list[EngineNode]:
    """The nodes that these jobs are: of several of one name, the first that has not ended, or the last one."""
    chosen: dict[str, SlurmJob] = {}
    for job in jobs:
        before = chosen.get(job.name)
        if before is None or before.standing is NodeStanding.ENDED:
            chosen[job.name] = job
    return [_node(job) for job in chosen.values()]


def _node(job: SlurmJob) -> EngineNode:
    standing = job.standing
    words = ""
    if standing is NodeStanding.PENDING:
        words = wait_in_words(job.reason)
    elif standing is NodeStanding.ENDED:
        words = end_in_words(job.state, job.reason)
    return EngineNode(
        launch_id=job.name,
        standing=standing,
        words=words,
        exit_code=0 if job.state == "COMPLETED" else None,
        ends_at=job.ends_at if standing is NodeStanding.RUNNING else None,
        was_preempted=job.state in WANTED_BY_SLURM,
    )


def _time(text: str) -> float | None:
    return float(text) if text.isdecimal() else None
