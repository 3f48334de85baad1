"""`EntryScript` for entry scripts: a worker's logger and folders. Outside a job it logs as any script does.

Where a worker's Python has no ParallelRun installed, the worker brings a module of this name along.
"""

from parallelrun_worker.entry_script import EntryScript

__all__ = ["EntryScript"]
