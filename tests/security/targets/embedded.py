"""The cluster of `parallelrun up`, of an ordinary user. Root gives it to a user who has nothing else."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from tests.security.as_user import command_for
from tests.security.local_store import LocalStore
from tests.security.target import HttpTarget, fill, give_secret, settings_of_installers

_FIRST_UID = 30_000
_UIDS = 30_000
"""These are nobody's on any usual machine."""
_COMMAND_S = 100


@contextmanager
def reach() -> Iterator[HttpTarget]:
    """Start it, and stop it at the end; nothing is left of it."""
    home = Path(tempfile.mkdtemp(prefix="pr-attack-", dir="/tmp"))  # pytest's folders are closed to other users
    uid = os.getuid() or _FIRST_UID + os.getpid() % _UIDS  # another run at the same time has another one
    try:
        fill(home / "inputs")
        give_secret(home / "secrets", uid)
        os.chown(home, uid, uid)
        _command(uid, home, "up", "--port", "0", "--processes", "2", "--root", str(home / "cluster"))
        try:
            known = json.loads((home / "state" / "parallelrun" / "cluster.json").read_text())
            with LocalStore() as store:
                yield HttpTarget(
                    name="embedded",
                    url=known["url"],
                    token=known["token"],
                    is_apart=False,
                    root=str(home / "cluster" / "data"),
                    inputs=home / "inputs",
                    inputs_there=str(home / "inputs"),
                    store=store,
                    offers_packages=True,
                )
        finally:
            _command(uid, home, "down")
    finally:
        if os.getuid() == 0:  # then it is nobody else's user
            _end_all_of(uid)
        shutil.rmtree(home, ignore_errors=True)


def _command(uid: int, home: Path, *arguments: str) -> None:
    command = [sys.executable, "-P", "-m", "parallelrun", *arguments]
    done = subprocess.run(
        command if uid == os.getuid() else command_for(uid, *command),
        cwd=home,
        env={
            **settings_of_installers(home / "inputs"),
            "PATH": os.environ["PATH"], "HOME": str(home), "XDG_STATE_HOME": str(home / "state"), "LANG": "C.UTF-8",
            "PARALLELRUN_SECRETS_DIR": str(home / "secrets"),
        },
        capture_output=True, text=True, timeout=_COMMAND_S, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 0, f"parallelrun {arguments[0]}: {done.stdout}{done.stderr}"


def _end_all_of(uid: int) -> None:
    """What an attack has left behind outside of the cluster's reach."""
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.uids().real == uid:
                process.kill()
