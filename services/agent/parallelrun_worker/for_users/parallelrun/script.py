"""Functions for entry scripts, under the name that they are imported by."""

from parallelrun_worker.script import WorkerBroken, aremember, recall, remember

__all__ = ["WorkerBroken", "aremember", "recall", "remember"]
