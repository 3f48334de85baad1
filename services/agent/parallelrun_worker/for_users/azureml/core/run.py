"""`Run`, under the name that scripts import it by."""

from parallelrun_worker.shims.run import Run, _OfflineRun, get_run

__all__ = ["Run", "_OfflineRun", "get_run"]
