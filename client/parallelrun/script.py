"""Functions for entry scripts: what they remember, permits for calls, what calls have cost, items that fail alone, and
how they give up a worker. All of them work where a script runs alone, as in its own test.

If ParallelRun isn't installed in a worker's Python, the worker provides a module of this name.
"""

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
