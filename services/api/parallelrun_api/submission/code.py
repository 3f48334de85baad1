"""Stores the code of what is submitted: that of a job, or of each step of a pipeline, whose equal codes are one.

It comes from folders that the server can read, or from a zip that was sent. A job's zip is its code. In that of a
pipeline, each step's `code` names a folder, relative to the top of the zip.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

from parallelrun_api.submission.step_problems import Names, StepProblems
from parallelrun_core.code.entry_script_check import Contract, check_entry_script
from parallelrun_core.code.snapshots import snapshot_folder, snapshot_name, snapshot_nothing, snapshot_zip
from parallelrun_core.code.source import CodeSource, source_of
from parallelrun_core.code.stored import add_snapshot, folder_beside, list_of, renew_snapshot
from parallelrun_core.durable_files import sync_file, sync_folder, sync_tree
from parallelrun_core.errors import InvalidInput
from parallelrun_core.layout import code_store
from parallelrun_core.names.assets import INCLUDES, stored_code
from parallelrun_core.spec import JobSpec
from parallelrun_core.spec.pipeline_steps import LeafStep
from parallelrun_core.storage.path_rule import PathRule
from parallelrun_core.untrusted.paths import relative_parts


def store_code(root: Path, spec: JobSpec, archive: IO[bytes] | None, rule: PathRule) -> str:
    """Store the code of a job, durably; returns the name of the snapshot.

    Args:
        rule: what the folder of the code is checked by, once it is open.

    Raises:
        InvalidInput: it can't be stored, or the entry script can't be run. Nothing is left of it.
    """
    store, source = code_store(root), _source(spec)
    if archive is None and source.folder is not None and not stored_code(spec.code):
        name = snapshot_name(source, leave_out=root, rule=rule)
        stored = store / name
        if renew_snapshot(stored):
            _check_stored_script(stored, spec.entry_script, spec.environment.python, spec.contract)
            sync_folder(store)  # whoever stored it may have been killed before it did so
            return name
    with folder_beside(store) as beside:
        if archive is not None:
            archive.seek(0)
            name = snapshot_zip(archive, beside)
        else:
            name = _snapshot(spec.code, source, beside, root, rule)
        _check_script(beside / name, spec)
        _move(beside, [name], store)
    return name


def store_steps_code(
    root: Path, steps: Sequence[LeafStep], archive: IO[bytes] | None, problems: StepProblems, rule: PathRule
) -> dict[Names, str]:
    """Store the code of the steps of a pipeline, durably; returns the name of each one's snapshot.

    Args:
        rule: what folders of code are checked by, once they are open.
        problems: gathers what is wrong with the code, or with an entry script.

    Raises:
        InvalidInput: something was wrong, with this or before, and nothing is left of any code.
    """
    store = code_store(root)
    snapshots: dict[CodeSource, str] = {}
    names: dict[Names, str] = {}
    with folder_beside(store) as beside:
        sent = _unpacked(archive, beside)
        for step in steps:
            code, source = step.spec.code, _source(step.spec)
            with problems.of(step.names):
                if source not in snapshots:
                    place = _place_of(code, sent)
                    placed = source if place == code else CodeSource(Path(place))
                    snapshots[source] = _snapshot(place, placed, beside, root, rule if place == code else None)
                _check_script(beside / snapshots[source], step.spec)
                names[step.names] = snapshots[source]
        problems.check()
        _move(beside, sorted({*names.values()}), store)
    return names


def _source(spec: JobSpec) -> CodeSource:
    return source_of(spec.code, spec.additional_includes)


def code_is_whole(spec: JobSpec) -> dict[str, Any]:
    """The fields of a recorded spec once the code is stored: what was to be put beside its files is among them."""
    return {INCLUDES: []} if spec.additional_includes else {}


def _unpacked(archive: IO[bytes] | None, beside: Path) -> Path | None:
    """The folder with what was sent, if anything was."""
    if archive is None:
        return None
    archive.seek(0)
    unpacked = beside / "sent"
    unpacked.mkdir(mode=0o700)
    folder = unpacked / snapshot_zip(archive, unpacked)
    with zipfile.ZipFile(archive) as opened:
        for name in opened.namelist():
            if name.endswith("/") and len(parts := relative_parts(name)) == 1:
                folder.joinpath(*parts).mkdir(exist_ok=True)  # of a step whose code has no files
    return folder


def _place_of(code: str, sent: Path | None) -> str:
    """The folder that a step names: a relative path is one in the zip."""
    if sent is None or not code or os.path.isabs(code) or stored_code(code):
        return code
    folder = sent.joinpath(*_parts(code))
    if not folder.is_dir():
        folders = ", ".join(sorted(each.name for each in sent.iterdir() if each.is_dir())[:10]) or "none"
        raise InvalidInput.at("/code", f"the zip has no folder {code!r}", f"at its top: {folders}")
    return str(folder)


def _parts(code: str) -> tuple[str, ...]:
    try:
        return relative_parts(code.removeprefix("./").rstrip("/"))
    except InvalidInput as error:
        raise InvalidInput.at("/code", f"{code!r} is no folder of the zip", "a path from its top, as in src") from error


def _snapshot(code: str, source: CodeSource, beside: Path, root: Path, rule: PathRule | None) -> str:
    if stored := stored_code(code):
        folder = code_store(root) / stored
        if not folder.is_dir():
            raise InvalidInput.at("/code", "this code is not stored here", "register what it is of, and name that")
        return snapshot_folder(folder, beside)
    is_empty = source.folder is None and not source.includes
    return snapshot_nothing(beside) if is_empty else snapshot_folder(source, beside, leave_out=root, rule=rule)


def _check_script(folder: Path, spec: JobSpec) -> None:
    if spec.entry_script:
        check_entry_script(folder, spec.entry_script, spec.environment.python, spec.contract)


@lru_cache(maxsize=1000)
def _check_stored_script(snapshot: Path, entry_script: str, python: str, contract: Contract) -> None:
    """Check the entry script of a snapshot that is what its name, a hash, says: once is enough."""
    if entry_script:
        check_entry_script(snapshot, entry_script, python, contract)


def _move(beside: Path, names: Sequence[str], store: Path) -> None:
    """Put snapshots into the store, durably: a job must not outlive its code."""
    for name in names:
        sync_tree(beside / name)
        sync_file(list_of(beside / name))
    sync_folder(beside)
    for name in names:
        add_snapshot(beside / name, store)
    sync_folder(store)
