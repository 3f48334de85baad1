"""`Dataset`, under the name that scripts import it by."""

from parallelrun_worker.shims.dataset import Dataset

__all__ = ["Dataset"]
