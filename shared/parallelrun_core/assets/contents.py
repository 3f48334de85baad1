"""The files of assets: copied once below the root folder, by the hash of their content, and never changed.

    asset_files/<sha256>/<name>...      the file or folder of this name, as it was uploaded
    asset_files/<sha256>.files          the hash of each file (code/stored.py)

A copy has the name of what was copied in it: scripts look for a model by that name, below AZUREML_MODEL_DIR.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Final

from parallelrun_core.code.context import snapshot_context
from parallelrun_core.code.snapshots import MAX_ZIP_BYTES, SnapshotLimits, snapshot_folder, snapshot_zip, store_files
from parallelrun_core.code.source import CodeSource
from parallelrun_core.code.stored import add_snapshot, folder_beside
from parallelrun_core.durable_files import sync_folder, sync_tree
from parallelrun_core.errors import InvalidInput
from parallelrun_core.layout import asset_files, code_store
from parallelrun_core.names.assets import code_called
from parallelrun_core.storage.path_rule import PathRule
from parallelrun_core.untrusted.paths import relative_parts

_WHERE_IT_IS: Final = "put it where the nodes can read it, and name it there: `--no-upload` (docs/assets.md)"
_UPLOADED: Final = SnapshotLimits(
    noun="what is uploaded", pointer="/path", hint=_WHERE_IT_IS, files=100_000, bytes=4 * MAX_ZIP_BYTES
)
_COPIED: Final = SnapshotLimits(noun="what is copied", pointer="/path", hint=_WHERE_IT_IS, files=1 << 40, bytes=1 << 60)


def contents_of(root: Path, files: str) -> Path:
    """The folder of a copy."""
    return asset_files(root) / files


def keep_zip(root: Path, archive: IO[bytes], file: str) -> str:
    """Unpack what was uploaded; durable when this returns.

    Args:
        file: the name of the only file or folder in it.

    Returns:
        The name of the copy.

    Raises:
        InvalidInput: it isn't a zip with that in it, is over a limit, or has a path that leads elsewhere.
    """
    parts = relative_parts(file)
    return _stored_snapshot(asset_files(root), lambda store: snapshot_zip(archive, store, _UPLOADED), parts)


def keep_copy(root: Path, path: Path) -> str:
    """Copy a file or folder of this machine; durable when this returns. Links are followed.

    It is for whoever copies what is theirs, in a process of their own, as the client does: each file is opened by its
    name, with their rights. A service that copies for others opens beneath a descriptor (`keep_code`, `keep_context`).

    Returns:
        The name of the copy.

    Raises:
        InvalidInput: there is no such file or folder, or it is empty, or a link in it leads to a folder above itself.
        OSError: a file can't be read.
    """
    if not path.exists():
        raise InvalidInput.at("/path", f"there is no file or folder {str(path)!r}")
    return _stored_snapshot(asset_files(root), lambda store: store_files(files_of(path), store, _COPIED), (path.name,))


def keep_code(root: Path, source: Path | CodeSource | IO[bytes], rule: PathRule | None = None) -> str:
    """Copy code, or unpack a zip of it, into the store of the jobs' code; durable when this returns.

    Args:
        rule: what a folder is checked by, once it is open.

    Returns:
        The name of the snapshot.

    Raises:
        InvalidInput: as `code/snapshots.py` says.
    """

    def take_snapshot(store: Path) -> str:
        if isinstance(source, Path | CodeSource):
            return snapshot_folder(source, store, rule=rule)
        return snapshot_zip(source, store)

    return _stored_snapshot(code_store(root), take_snapshot, ())


def keep_context(root: Path, folder: Path, dockerfile: str, rule: PathRule | None = None) -> str:
    """Copy what an image is built of into the same store; durable when this returns.

    Args:
        rule: what the folder is checked by, once it is open.

    Returns:
        The name of the snapshot.

    Raises:
        InvalidInput: as `code/context.py` says.
    """
    return _stored_snapshot(
        code_store(root), lambda store: snapshot_context(folder, dockerfile, store, leave_out=root, rule=rule), ()
    )


def keep_named(root: Path, source: Path | CodeSource, dockerfile: str) -> str:
    """Store code, or with the path of a Dockerfile what an image is built of; returns what a document has for it.

    Raises:
        InvalidInput: as `keep_code` and `keep_context` say.
    """
    if dockerfile and isinstance(source, Path):
        return code_called(keep_context(root, source, dockerfile))
    return code_called(keep_code(root, source))


def files_of(path: Path) -> Iterator[tuple[tuple[str, ...], int, IO[bytes]]]:
    """The files that make up a file or folder: where each is, beginning with its name; its mode; the file, open until
    the next one. Raises InvalidInput if a link leads to a folder above itself."""
    name = path.name
    if path.is_file():
        with path.open("rb") as file:
            yield (name,), path.stat().st_mode, file
        return
    for current, folders, names in os.walk(path, followlinks=True):
        here = Path(current)
        for folder in folders:
            if (here / folder).is_symlink() and here.resolve().is_relative_to((here / folder).resolve()):
                raise InvalidInput.at("/path", f"{here / folder} is a link to a folder above it")
        folders.sort()
        for each in sorted(names):
            if (here / each).is_file():
                with (here / each).open("rb") as file:
                    yield (name, *here.relative_to(path).parts, each), (here / each).stat().st_mode, file


def _stored_snapshot(store: Path, take: Callable[[Path], str], needed: tuple[str, ...]) -> str:
    with folder_beside(store) as beside:
        name = take(beside)
        if not os.path.lexists(beside.joinpath(name, *needed)):
            raise InvalidInput.at("/path", f"{'/'.join(needed)!r} is not in what was uploaded, or has no files")
        sync_tree(beside)
        add_snapshot(beside / name, store)
        sync_folder(store)
    return name
