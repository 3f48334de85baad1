"""Removes folders beside the agent's one thread: a script may leave millions of files, and leases must be renewed."""

from __future__ import annotations

import secrets
import shutil
import threading
from pathlib import Path


def throw_away(folder: Path, local_folder: Path) -> None:
    """Free a folder's name now, and its room soon. An agent that ends waits for that.

    Args:
        local_folder: the agent's, on the same file system. What is being removed lies in it, so what a killed agent did
            not get through with goes when the next one empties it.
    """
    try:
        folder.rmdir()  # most are empty
    except FileNotFoundError:
        return
    except OSError:
        aside = local_folder / f".trash-{secrets.token_hex(8)}"
        try:
            folder.rename(aside)
        except OSError:  # a disk that is full needs the room more than we the time
            shutil.rmtree(folder, ignore_errors=True)
        else:
            remover = threading.Thread(
                target=shutil.rmtree, args=(aside,), kwargs={"ignore_errors": True}, name="trash"
            )
            try:
                remover.start()
            except RuntimeError:  # no process more may be started here, perhaps for what a script has left running
                shutil.rmtree(aside, ignore_errors=True)
