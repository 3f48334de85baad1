"""`log_metric`, under the name that entry scripts import it by."""

from parallelrun_worker.script_api.metrics import log_metric

__all__ = ["log_metric"]
