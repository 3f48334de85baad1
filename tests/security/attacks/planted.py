"""Configuration that a job leaves where programs of its agent look for that of their user."""

from __future__ import annotations

import fcntl
import io
import os
import pwd
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

from tests.acceptance.http_user import HttpUser
from tests.security import planting
from tests.security.attack import Attack, Target
from tests.security.attacks.paths import submit
from tests.security.local_store import ALLOWED, reached_store
from tests.security.target import DROP

_SCRIPT = Path(planting.__file__).read_text(encoding="utf-8")
_PACKAGE, _MODULE = "parallelrun-planted", "parallelrun_planted"
_WHEEL = f"{_MODULE}-1.0+job-py3-none-any.whl"
_PROGRAM = "planted-program"
_INSTALLED = f"import {_MODULE}\ndef run(mini_batch):\n    return ['planted']\n"


def _wheel() -> bytes:
    info = f"{_MODULE}-1.0+job.dist-info"
    files = {
        f"{_MODULE}.py": "", f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {_PACKAGE}\nVersion: 1.0+job\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n", f"{info}/RECORD": "",
    }  # fmt: skip
    with io.BytesIO() as file:
        with zipfile.ZipFile(file, "w") as archive:
            for name, text in files.items():
                archive.writestr(zipfile.ZipInfo(name), text)
        return file.getvalue()


_FILES = {
    ".config/pip/pip.conf": b"[global]\nindex-url = file://HOME/.planted/simple\n",
    ".pip/pip.conf": b"[global]\nindex-url = file://HOME/.planted/simple\n",
    ".config/uv/uv.toml": b"[[index]]\nurl = 'file://HOME/.planted/simple'\ndefault = true\n",
    ".aws/config": b"[default]\ncredential_process = /bin/sh HOME/.planted/program\n",
    ".planted/program": f"#!/bin/sh\nid -u >DROP/{_PROGRAM}\n".encode(),
    f".planted/simple/{_PACKAGE}/index.html": f"<a href={_WHEEL}>x</a>".encode(),
    f".planted/simple/{_PACKAGE}/{_WHEEL}": _wheel(),
}


@contextmanager
def _planted(target: Target) -> Iterator[None]:
    """Let a job leave these files. Where it runs on this machine, nobody else of this user does so meanwhile, and those
    that were not there before are removed in the end."""
    drop = f"{target.inputs_there}/{DROP}"
    is_here = str(target.inputs) == target.inputs_there
    with _removed_in_the_end() if is_here else nullcontext():
        paths = target.rows_of(f"{_SCRIPT}\n\nFILES, DROP = {_FILES!r}, {drop.encode()!r}\n")
        assert any(path.endswith(_WHEEL) for path in paths), f"nothing could be left anywhere: {paths}"
        yield


@contextmanager
def _removed_in_the_end() -> Iterator[None]:
    """Remove what the job may leave on this machine, and nothing that it only says it has left."""
    homes = {Path("/tmp"), Path("/"), *(Path(user.pw_dir) for user in pwd.getpwall())}
    files = [home / name for home in homes for name in _FILES]
    folders = {folder for path in files for folder in path.parents}
    with open(f"/tmp/parallelrun-planted.{os.getuid()}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        absent = {path for path in (*files, *folders) if not path.exists()}
        try:
            yield
        finally:
            for path in sorted(absent, reverse=True):  # what is in a folder before the folder
                with suppress(OSError):  # it is not there, or there is something else in it by now
                    path.rmdir() if path in folders else path.unlink()


def _index(target: Target) -> str:
    # No public index has such a version.
    with _planted(target):
        rows = target.rows_of(_INSTALLED, environment={"pip": [f"{_PACKAGE}==1.0+job"]})
    return f"another job's package comes from there: {rows}" if rows else ""


def _program(target: Target) -> str:
    """Read from a bucket for which the node has no credentials of its own."""
    store = reached_store(target)
    told = target.inputs / DROP / _PROGRAM
    with _planted(target), HttpUser(target.url, target.token) as user:
        datastore = {"type": "s3", "bucket": ALLOWED, "endpoint": store.url, "region": "x", "path_style": True}
        user.client.put("/v1/datastores/unsecured", json=datastore).raise_for_status()
        submit(user, target, inputs={"data": "azureml://datastores/unsecured/paths/x"})
    return f"a program from there was run by user {told.read_text().strip()}" if told.exists() else ""


ATTACKS = [
    Attack("configurations that a job plants for installers", _index, apart_only=True),
    Attack("configurations that a job plants for clients of stores", _program, apart_only=True),
]
