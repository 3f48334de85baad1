"""The token of a cluster in the background: the same at each start, so browsers that have signed in stay so.

It is among the state of the user and never in the cluster's folder, which workers see. Each folder has a token of its
own: who could use one cluster gets no access to another that is started later.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final

from parallelrun.errors import ClusterFailed
from parallelrun_core.durable_files import write_once
from parallelrun_core.service.state_folder import state_folder

_OF_OTHERS: Final = 0o077


def token_file(home: Path) -> Path:
    """Return the file with the token of the cluster that has its data in a folder."""
    return state_folder() / "tokens" / hashlib.sha256(os.fsencode(home.resolve())).hexdigest()[:32]


def kept_token(home: Path) -> str:
    """Return the token of the cluster that has its data in a folder, a new one at its first start.

    Raises:
        ClusterFailed: others can read the file with the token, or it is none of ours.
    """
    path = token_file(home)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not path.exists():
        with suppress(FileExistsError):
            write_once(path, secrets.token_urlsafe(32).encode(), mode=0o600)
    status = path.lstat()
    if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & _OF_OTHERS:
        raise ClusterFailed(f"{path} is not a private file of this user. Remove it: a new token is created then.")
    return path.read_text()
