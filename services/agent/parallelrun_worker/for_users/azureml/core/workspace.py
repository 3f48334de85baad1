"""`Workspace`, under the name that scripts import it by."""

from parallelrun_worker.shims.workspace import Workspace

__all__ = ["Workspace"]
