"""Functions for entry scripts: what they remember, permits for calls, and how they give up a worker.

If ParallelRun isn't installed in a worker's Python, the worker provides a module of this name.
"""

from parallelrun_worker.script import WorkerBroken, aremember, limit, recall, remember

__all__ = ["WorkerBroken", "aremember", "limit", "recall", "remember"]
