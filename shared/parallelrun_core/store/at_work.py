"""Reports on Redis of what the workers of a job do at present."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from parallelrun_core.store.keys import JobKeys

if TYPE_CHECKING:
    from parallelrun_core.store.connection import Redis
    from parallelrun_core.wire.at_work import NodeAtWork


def report_at_work(redis: Redis, job_id: str, node: str, report: NodeAtWork) -> None:
    """Replace what a node has said before. Raises redis-py's errors."""
    redis.hset(JobKeys(job_id).at_work, node, msgspec.json.encode(report))
