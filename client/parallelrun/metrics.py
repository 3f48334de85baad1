"""`log_metric` for entry scripts: what they log is in the job's record. Outside of a job it is only remembered.

If ParallelRun isn't installed in a worker's Python, the worker provides a function of this name.
"""

from parallelrun_worker.script_api.metrics import log_metric

__all__ = ["log_metric"]
