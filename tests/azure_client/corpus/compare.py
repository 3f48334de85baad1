"""Whether two jobs mean the same: what one door has made of a document, and what another one has."""

from __future__ import annotations

import hashlib
import os
import re
import zipfile
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from parallelrun_core.ids import JOB_ID
from parallelrun_core.layout import code_store
from parallelrun_core.names.assets import stored_code
from parallelrun_core.spec.fields import MiniBatchSize

_JOB_ID: Final = re.compile(JOB_ID)
_OF_THE_DOOR: Final = ("name", "description", "tags", "experiment")
"""Labels. The client gives a name to what has none."""


def meaning(spec: Mapping[str, Any], root: Path, code: Path | None) -> Any:
    """A job's spec with digests of files in place of their paths, and numbers of bytes in place of their spellings.

    Args:
        root: the root folder of the cluster.
        code: the snapshot of the job's code; None: it is a pipeline, whose steps have theirs.
    """
    named = {key: value for key, value in spec.items() if key not in _OF_THE_DOOR}
    return _plain(_with_code(named, code, code_store(root)), "", root)


def _with_code(spec: Mapping[str, Any], code: Path | None, store: Path) -> dict[str, Any]:
    """A spec with the snapshots of the code of its jobs in place of where that was."""
    whole = dict(spec)
    if steps := whole.get("steps"):
        whole["steps"] = {name: _step_with_code(step, store) for name, step in steps.items()}
    elif code is not None:
        whole["code"] = str(code)
    return whole


def _step_with_code(step: Mapping[str, Any], store: Path) -> dict[str, Any]:
    snapshot = step.get("code")
    job = _with_code(step["job"], store / snapshot if snapshot else None, store)
    return {**{name: value for name, value in step.items() if name != "code"}, "job": job}


def differences(one: Any, other: Any, at: str = "") -> Iterator[str]:
    """Where two meanings differ, and how."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted({*one, *other}):
            yield from differences(one.get(key), other.get(key), f"{at}/{key}")
    elif one != other:
        yield f"{at}: {one!r} by the client, {other!r} by the command line"


def _plain(part: Any, key: str, root: Path) -> Any:
    match part:
        case dict():
            kept = {name: _plain(value, str(name), root) for name, value in _without_noise(part, key).items()}
            return {name: value for name, value in kept.items() if value not in (None, "", {}, [])}
        case list() | tuple():
            return [_plain(each, key, root) for each in part]
        case str() if stored_code(part) or part.startswith("/"):
            path = str(code_store(root) / stored_code(part)) if stored_code(part) else part.rstrip("/")
            return _JOB_ID.sub("JOB", _digest(path, str(root)))
    if key == "mini_batch_size":
        return MiniBatchSize.parse(part).number
    return str(part) if key == "value" else part


def _without_noise(part: dict[str, Any], key: str) -> dict[str, Any]:
    """A part of a spec without what the client doesn't send, with what it sends though it is the default."""
    if key == "environment":
        return {name: value for name, value in part.items() if name != "name"}
    return {"dockerfile_path": "Dockerfile", **part} if key == "build" else part


@lru_cache(maxsize=1000)
def _digest(path: str, root: str) -> str:
    """What stands for a path: the digest of what is there, or the path below the root folder."""
    if os.path.isfile(path):
        return f"file {hashlib.sha256(Path(path).read_bytes()).hexdigest()[:12]}"
    if not os.path.isdir(path):
        return os.path.relpath(path, root) if path.startswith(root) else path
    whole = hashlib.sha256()
    for folder, folders, files in sorted(os.walk(path)):
        folders.sort()
        for name in sorted(files):
            whole.update(f"{os.path.relpath(os.path.join(folder, name), path)}\n".encode())
            whole.update(_content(Path(folder) / name))
    return f"folder {whole.hexdigest()[:12]}"


def _content(file: Path) -> bytes:
    """The bytes of a file; of a zip, those of its files: the client writes their times into it, too."""
    if file.suffix != ".zip":
        return file.read_bytes()
    with zipfile.ZipFile(file) as archive:
        names = sorted(name for name in archive.namelist() if not name.endswith("/"))
        return b"".join(name.encode() + b"\n" + archive.read(name) for name in names)
