"""`EntryScript`, under the name that entry scripts import it by."""

from parallelrun_worker.helper import EntryScript

__all__ = ["EntryScript"]
