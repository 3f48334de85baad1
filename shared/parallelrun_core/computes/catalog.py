"""The computes of a cluster: a file for each below its root folder, without any secret.

Whoever defines or deletes one replaces or removes its file, whole; readers need no lock.
"""

from __future__ import annotations

import json
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from parallelrun_core.computes.definition import Compute
from parallelrun_core.computes.kinds import kinds, model_of
from parallelrun_core.errors import CorruptLog, NotFound
from parallelrun_core.folder.files import replace_file, sync_file, sync_folder
from parallelrun_core.folder.layout import PRIVATE_FILE, PRIVATE_FOLDER

_FOLDER: Final = "computes"
_DELETED: Final = "deleted"
"""Below it: those that may still have nodes, for the provisioner to give back."""
_MAX_BYTES: Final = 1 << 20


class Catalog:
    """The computes below a cluster's root folder. Safe to share between threads and processes."""

    def __init__(self, root: Path) -> None:
        self.folder: Final = root / _FOLDER

    def file(self, name: str) -> Path:
        """Where the definition of a compute is."""
        return self.folder / f"{name}.json"

    def names(self) -> list[str]:
        """Those that there are, in order."""
        try:
            return sorted(file.stem for file in self.folder.iterdir() if file.suffix == ".json" and file.name[0] != ".")
        except FileNotFoundError:
            return []

    def get(self, name: str) -> Compute:
        """The compute of this name, as it is defined now.

        Raises:
            NotFound: there is none; says what there is, and how to define one.
            CorruptLog: the file can't be read as a definition.
            OSError: the volume can't be read.
        """
        try:
            return _read(self.file(name))
        except FileNotFoundError as error:
            raise NotFound(f"There is no compute {name!r}: {self.hint(name)}.") from error

    def revision(self, name: str) -> str:
        """Another one each time that a compute is defined, also when nothing changes. Raises OSError."""
        status = self.file(name).stat()
        return f"{status.st_mtime_ns}.{status.st_ino}"

    def put(self, definition: Compute) -> bool:
        """Define a compute, durably; returns whether there was none of this name.

        Raises:
            OSError: the volume can't be written.
        """
        self.folder.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        path = self.file(definition.name)
        is_new = not path.exists()
        with suppress(NotFound, CorruptLog):
            if (before := self.get(definition.name)).kind != definition.kind:
                self._give_back(before)  # its nodes are of another engine
        replace_file(path, _text(definition), mode=PRIVATE_FILE)
        sync_file(path)
        sync_folder(self.folder)
        self.given_back(definition)  # its nodes are those of this one
        return is_new

    def remove(self, name: str) -> None:
        """Forget a compute.

        Raises:
            NotFound: there is none of this name.
            OSError: the volume can't be written.
        """
        with suppress(CorruptLog):
            self._give_back(self.get(name))
        self.file(name).unlink(missing_ok=True)
        sync_folder(self.folder)

    def _give_back(self, definition: Compute) -> None:
        """Let the provisioner give back the nodes of a compute that is going to be no more. Raises OSError."""
        folder, path = self.folder / _DELETED, self._deleted(definition.name, definition.kind)
        folder.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
        replace_file(path, _text(definition), mode=PRIVATE_FILE)
        sync_file(path)
        sync_folder(folder)

    def deleted(self) -> list[Compute]:
        """Computes that were deleted, and may still have nodes."""
        there = []
        for path in sorted((self.folder / _DELETED).glob("*.json")):
            with suppress(CorruptLog, FileNotFoundError):
                there.append(_read(path))
        return there

    def given_back(self, definition: Compute) -> None:
        """No nodes have to be given back of a compute that was deleted."""
        self._deleted(definition.name, definition.kind).unlink(missing_ok=True)

    def _deleted(self, name: str, kind: str) -> Path:
        return self.folder / _DELETED / f"{name}.{kind}.json"

    def default(self) -> str:
        """The compute of jobs that name none; empty: the nodes without a compute.

        Raises:
            CorruptLog, OSError: a definition can't be read.
        """
        return next((name for name in self.names() if self.get(name).is_default), "")

    def hint(self, missing: str) -> str:
        """What to do about a name that isn't there."""
        names = self.names()
        close = get_close_matches(missing, names, n=1)
        there = f"did you mean {close[0]!r}? There are {', '.join(names[:20])}" if close else "there is none yet"
        if names and not close:
            there = f"there are {', '.join(names[:20])}"
        return f"{there}; define one with `parallelrun compute create -f FILE` (docs/computes.md)"


def _text(definition: Compute) -> bytes:
    return json.dumps(shown(definition), indent=2).encode() + b"\n"


def _read(path: Path) -> Compute:
    with path.open("rb") as file:
        text = file.read(_MAX_BYTES)
    try:
        kind = json.loads(text)["type"]
        if kind not in kinds():
            raise CorruptLog(f"{path} is a compute of a kind that this release doesn't know: {str(kind)[:50]!r}")
        return model_of(kind).model_validate_json(text)
    except (ValidationError, ValueError, TypeError, KeyError) as error:
        raise CorruptLog(f"{path} can't be read as a compute: define it again") from error


def shown(definition: Compute) -> dict[str, object]:
    """The fields of a definition that are not as by default, as users may write them."""
    fields: dict[str, object] = definition.model_dump(mode="json", exclude_defaults=True)
    return fields
