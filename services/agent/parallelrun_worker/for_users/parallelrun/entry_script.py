"""`EntryScript`, under the name that entry scripts import it by."""

from parallelrun_worker.script_api.entry_script import EntryScript

__all__ = ["EntryScript"]
