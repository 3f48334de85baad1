"""Functions for entry scripts, under the name that they are imported by."""

from parallelrun_worker.script_api.script import (
    ItemError,
    MemoryFull,
    PermitRefused,
    WorkerBroken,
    aremember,
    limit,
    mini_batch_context,
    recall,
    remember,
    report_cost,
)

__all__ = [
    "ItemError",
    "MemoryFull",
    "PermitRefused",
    "WorkerBroken",
    "aremember",
    "limit",
    "mini_batch_context",
    "recall",
    "remember",
    "report_cost",
]
