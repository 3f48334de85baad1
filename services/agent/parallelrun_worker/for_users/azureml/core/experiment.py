"""`Experiment`, under the name that scripts import it by."""

from parallelrun_worker.shims.workspace import Experiment

__all__ = ["Experiment"]
