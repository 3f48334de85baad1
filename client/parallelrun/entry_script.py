"""`EntryScript` for entry scripts: a worker's logger and folders. Outside a job it logs as any script does.

If ParallelRun isn't installed in a worker's Python, the worker provides a module of this name.
"""

from parallelrun_worker.script_api.entry_script import EntryScript

__all__ = ["EntryScript"]
