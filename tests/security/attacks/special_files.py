"""Pipes, sockets, devices and files without an end where a job names files, and what the kernel says of processes."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import httpx

from tests.acceptance.http_user import HttpUser, zip_of
from tests.security.attack import Attack, NotPlayable, Target
from tests.security.attacks.paths import READING, placed
from tests.security.target import ONE

_ENTRY: Final = "def run(mini_batch):\n    return mini_batch\n"
_ANSWERED_S: Final = 15.0
_NO_END_BYTES: Final = 1 << 40
_FIRST: Final = {"version_as_of": 0}


def _without_end(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(_NO_END_BYTES)


def _socket_at(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        here = os.open(path.parent, os.O_PATH)
        try:
            made.bind(f"/proc/self/fd/{here}/{path.name}")  # the whole path may be too long for one
        finally:
            os.close(here)


_SPECIAL: Final[Mapping[str, Callable[[Path], None]]] = {
    "pipe": os.mkfifo,
    "socket": _socket_at,
    "link": lambda path: path.symlink_to("/dev/zero"),
    "endless": _without_end,
}


def _taken(target: Target, user: HttpUser, named: Iterator[tuple[str, dict[str, Any], bool]]) -> str:
    """Submit a job for each; returns the first that isn't refused, or keeps the server busy.

    Args:
        named: what it is, the fields of the job, and whether the code is sent with it.
    """
    for what, fields, is_sent in named:
        spec = {"entry_script": "entry.py", "inputs": {"data": f"{target.inputs_there}/{ONE}"}, **fields}
        try:
            answer = (
                user.post(spec, zip_of({"entry.py": _ENTRY})) if is_sent else user.client.post("/v1/jobs", json=spec)
            )
        except httpx.TimeoutException:
            return f"{what} keeps the server busy"
        if answer.status_code == 202:
            user.client.post(f"/v1/jobs/{answer.json()['id']}:cancel")
        if answer.status_code != 422:
            return f"{what} is answered with {answer.status_code}: {answer.text[:200]}"
    return ""


def _instead_of_files(target: Target) -> str:
    """Name them as tables, side inputs, code, what is put beside it, its ignore file, and what an image is built of."""
    with HttpUser(target.url, target.token) as user, placed(target) as folder:
        user.client.timeout = _ANSWERED_S
        there = f"{target.inputs_there}/{folder.name}"

        def named() -> Iterator[tuple[str, dict[str, Any], bool]]:
            for kind, make in _SPECIAL.items():
                for name in ("MLTable", "entry.py", ".amlignore", "Dockerfile"):
                    at = folder / kind / name.removeprefix(".")
                    at.mkdir(parents=True)
                    make(at / name)
                    if name != "entry.py":
                        (at / "entry.py").write_text(_ENTRY)
                make(folder / kind / "special")
                place = f"{there}/{kind}"
                yield f"a table: {kind}", {"inputs": {"data": {"type": "mltable", "path": f"{place}/MLTable"}}}, True
                yield f"code: {kind}", {"code": f"{place}/entry.py"}, False
                yield f"an ignore file: {kind}", {"code": f"{place}/amlignore"}, False
                if kind != "endless":  # a file like any other, to scripts
                    beside = {"data": f"{target.inputs_there}/{ONE}", "model": {"path": f"{place}/special"}}
                    yield f"a file: {kind}", {"inputs": {"data": f"{place}/special"}}, True
                    yield f"a side input: {kind}", {"inputs": beside, "input_data": ["data"]}, True
                yield f"an include: {kind}", {"additional_includes": [f"{place}/special"]}, False

        return _taken(target, user, named())


def _of_the_kernel(target: Target) -> str:
    """Name what the kernel says of the process that looks, in other spellings, and links of its that lead to files
    which jobs may use: each process finds another one there."""
    own = f"{target.inputs_there}/{ONE}"
    with HttpUser(target.url, target.token) as user, placed(target) as folder:
        user.client.timeout = _ANSWERED_S
        (folder / "code").mkdir()
        (folder / "code" / "entry.py").write_text(_ENTRY)
        (folder / "root").symlink_to("/proc/self/root")
        there = f"{target.inputs_there}/{folder.name}"
        roots = ("/proc/self/root", "/proc/thread-self/root", "/proc/1/root", f"{there}/root", "/dev/fd/../root",
                 "/proc/self/cwd" + "/.." * 30, "/proc/self/task/../root")  # fmt: skip
        others = ("/dev/fd/0", "/dev/stdin", "/dev/fd", "/dev/zero", "/proc/self/environ", "/sys/kernel")
        forms = ("{}", "file:{}", "FILE://{}", "file://localhost{}", "azureml:{}", "azureml:file:{}", "/.{}", "//{}")

        def named() -> Iterator[tuple[str, dict[str, Any], bool]]:
            for path in (*(f"{root}{own}" for root in roots), *others):
                yield f"{path} as an input", {"inputs": {"data": path}}, True
                beside = {"data": own, "model": {"path": path}}
                yield f"{path} as a side input", {"inputs": beside, "input_data": ["data"]}, True
                yield f"{path} as an output", {"output": f"{path}/made"}, True
            for root in roots:
                code = f"{root}{there}/code"
                yield f"{code} as code", {"code": code}, False
                yield f"{code} beside code", {"code": f"{there}/code", "additional_includes": [code]}, False
            for form in forms:
                path = form.format(f"/proc/self/root{own}")
                yield f"{path} as an input", {"inputs": {"data": path}}, True

        return _taken(target, user, named())


def _among_files(target: Target) -> str:
    """Put links to pipes and devices beside a file; who lists and reads tables must find that file alone."""
    table: dict[str, Any] = {"transformations": [{"read_delimited": {}}]}
    with placed(target) as folder:
        (folder / "a.csv").write_text("one small file\n")
        os.mkfifo(folder / "pipe")
        (folder / "b.csv").symlink_to("pipe")  # a container has another path to it
        (folder / "c.csv").symlink_to("/dev/zero")
        there = f"{target.inputs_there}/{folder.name}"
        rows = [*filter(None, target.rows_of(READING, inputs={"data": there}, mini_batch_size=1))]
        if rows != ["one small file"]:
            return f"of the file beside them there is {rows}"
        with HttpUser(target.url, target.token) as user:
            shown = user.client.post("/v1/jobs:preview", json={"inputs": {"rows": {"path": there, **table}}})
            return "" if shown.is_success else f"a preview is answered with {shown.status_code}: {shown.text[:200]}"


def _logs_of_tables(target: Target) -> str:
    """Put a pipe, or a file without an end, where the library for Delta tables opens files by itself."""
    try:
        import deltalake
        import pyarrow as pa
    except ImportError as error:
        raise NotPlayable("no Delta tables can be made here") from error
    with placed(target) as folder, HttpUser(target.url, target.token) as user:
        deltalake.write_deltalake(str(folder / "sound"), pa.table({"a": [1]}))
        for name, make in (("_last_checkpoint", os.mkfifo), ("00000000000000000001.json", _without_end)):
            shutil.copytree(folder / "sound", folder / name)
            make(folder / name / "_delta_log" / name)
            rows = {
                "path": f"{target.inputs_there}/{folder.name}/{name}",
                "transformations": [{"read_delta_lake": _FIRST}],
            }
            shown = user.client.post("/v1/jobs:preview", json={"inputs": {"rows": rows}}, timeout=60)
            if "in its log is" not in shown.text:
                return f"with {name}, a preview is answered with {shown.status_code}: {shown.text[:200]}"
    return ""


ATTACKS: list[Attack] = [
    Attack("pipes, sockets, devices and files without an end as what jobs name", _instead_of_files),
    Attack("links of processes as what jobs name", _of_the_kernel),
    Attack("links to pipes and devices among the inputs", _among_files),
    Attack("a pipe or a file without an end in the log of a table", _logs_of_tables),
]
