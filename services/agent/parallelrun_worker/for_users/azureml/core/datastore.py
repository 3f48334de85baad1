"""`Datastore`, under the name that scripts import it by."""

from parallelrun_worker.shims.workspace import Datastore

__all__ = ["Datastore"]
