"""Paths that are something else when they are used than when they were checked."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from io import BytesIO
from pathlib import Path

from parallelrun_core.code.snapshots import snapshot_zip
from tests.acceptance.http_user import HttpUser, zip_of
from tests.security.attack import Attack, Target
from tests.security.attacks.paths import placed

_VICTIM = "def run(mini_batch):\n    return ['of another job']\n"
_TRIES = 240
_AT_ONCE = 4
_SWAP = """
import ctypes, os, sys
mine, other = sys.argv[1:]
exchange = getattr(ctypes.CDLL(None), "renameat2", lambda *_: -1)
print("begun", flush=True)
while os.getppid() == int({parent}):
    if exchange(-100, os.fsencode(mine), -100, os.fsencode(other), 2) != 0:
        os.rename(mine, mine + "-aside")
        os.rename(other, mine)
        os.rename(mine, other)
        os.rename(mine + "-aside", mine)
"""
"""Lets two names change places many thousand times a second, where it can in one step: both are there all the time."""


@contextmanager
def swapping(mine: Path, other: Path) -> Iterator[None]:
    """Let two paths change places until the end of this context, in a process of its own."""
    script = _SWAP.replace("{parent}", str(os.getpid()))
    command = [sys.executable, "-I", "-S", "-c", script, str(mine), str(other)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"begun\n"
            yield
        finally:
            process.kill()


def _stolen(part: str, target: Target) -> str:
    """Swap a folder of code, or a part of it, for a link to another job's stored code while it is copied.

    The code of one's own is refused, so none but that of the other job is ever accepted.
    """
    with HttpUser(target.url, target.token) as user, placed(target) as folder:
        archive = zip_of({"entry.py": _VICTIM})
        spec = {"entry_script": "entry.py", "inputs": {"data": f"{target.inputs_there}/one"}}
        user.client.post(f"/v1/jobs/{user.submit(spec, archive)}:cancel")
        with tempfile.TemporaryDirectory() as copy:
            store = f"{target.root}/code/{snapshot_zip(BytesIO(archive), Path(copy))}"
        code, link = folder / "code", folder / "link"
        (code / "deep").mkdir(parents=True)
        for name in ("entry.py", "deep/entry.py"):
            (code / name).write_text("def run(mini_batch) it can't be read\n")
        link.symlink_to(f"{store}/entry.py" if part == "entry.py" else store)
        spec |= {"code": f"{target.inputs_there}/{folder.name}/code"}
        spec |= {"entry_script": "deep/entry.py"} if part == "deep" else {}
        with swapping(code / part if part else code, link), ThreadPoolExecutor(_AT_ONCE) as pool:
            answers = pool.map(lambda _: user.client.post("/v1/jobs", json=spec), range(_TRIES))
            bad = next((answer for answer in answers if answer.status_code != 422), None)
        return "" if bad is None else f"{bad.status_code}: {bad.text[:200]}"


def _table_stolen(part: str, target: Target) -> str:
    """Swap a folder with an MLTable file, or that file, for a link to one of another job's code while it is read.

    Neither is right, so what is told of it says which one was read.
    """
    with HttpUser(target.url, target.token) as user, placed(target) as folder:
        archive = zip_of({"entry.py": _VICTIM, "MLTable": "of_another_job: 1\npaths: []\n"})
        spec = {"entry_script": "entry.py", "inputs": {"data": f"{target.inputs_there}/one"}}
        user.client.post(f"/v1/jobs/{user.submit(spec, archive)}:cancel")
        with tempfile.TemporaryDirectory() as copy:
            store = f"{target.root}/code/{snapshot_zip(BytesIO(archive), Path(copy))}"
        table, link = folder / "table", folder / "link"
        table.mkdir()
        (table / "MLTable").write_text("of_mine: 1\npaths: []\n")
        link.symlink_to(f"{store}/{part}" if part else store)
        rows = {"path": f"{target.inputs_there}/{folder.name}/table", "type": "mltable"}
        spec |= {"inputs": {"rows": rows}}
        with swapping(table / part if part else table, link), ThreadPoolExecutor(_AT_ONCE) as pool:
            answers = list(pool.map(lambda _: user.post(spec, archive), range(_TRIES)))
        if not any("of_mine" in answer.text for answer in answers):
            return "its own table was never read"
        bad = next((a for a in answers if a.status_code != 422 or "of_another_job" in a.text), None)
        return "" if bad is None else f"{bad.status_code}: {bad.text[:200]}"


ATTACKS: list[Attack] = [
    Attack("a folder of code that becomes a link while it is copied", partial(_stolen, "")),
    Attack("a file of code that becomes a link while it is copied", partial(_stolen, "entry.py")),
    Attack("a folder below the code that becomes a link while it is copied", partial(_stolen, "deep")),
    Attack("a folder with an MLTable that becomes a link while it is read", partial(_table_stolen, "")),
    Attack("an MLTable that becomes a link while it is read", partial(_table_stolen, "MLTable")),
]
