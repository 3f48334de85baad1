"""The computes of a cluster: a file for each below its root folder, without any secret.

Whoever defines or deletes one replaces or removes its file, whole; readers need no lock.

On some nodes, code of jobs is the services' user, and may write there. So a definition can be sealed, with a key that
only the API and the provisioner have; who has the key believes no other one.
"""

from __future__ import annotations

import errno
import hmac
import json
import os
import re
import stat
from collections.abc import Mapping
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from parallelrun_core.computes.definition import Compute
from parallelrun_core.computes.kinds import kinds, model_of
from parallelrun_core.computes.launch import COMPUTE_NAME
from parallelrun_core.errors import CorruptLog, NotFound
from parallelrun_core.folder.files import replace_file, sync_file, sync_folder
from parallelrun_core.folder.layout import PRIVATE_FILE, PRIVATE_FOLDER
from parallelrun_core.service.telemetry import logger

FOLDER: Final = "computes"
"""Below the root folder."""
_NAME: Final = re.compile(COMPUTE_NAME)
_DELETED: Final = "deleted"
"""Below it: those that may still have nodes, for the provisioner to give back."""
_MAX_BYTES: Final = 1 << 20
_SEAL: Final = "seal"


class Catalog:
    """The computes below a cluster's root folder. Safe to share between threads and processes.

    Args:
        key: seals what is put, and tells whether what is there was put with it; empty: there are no seals.
    """

    def __init__(self, root: Path, key: bytes = b"") -> None:
        self.folder: Final = root / FOLDER
        self._key = key

    def file(self, name: str) -> Path:
        """Where the definition of a compute is."""
        return self.folder / f"{name}.json"

    def names(self) -> list[str]:
        """Those that there are, in order."""
        try:
            there = [file.stem for file in self.folder.iterdir() if file.suffix == ".json"]
        except FileNotFoundError:
            return []
        return sorted(name for name in there if _NAME.fullmatch(name))

    def has(self, name: str) -> bool:
        """Whether there is one of this name, readable or not."""
        return os.path.lexists(self.file(name))

    def get(self, name: str) -> Compute:
        """The compute of this name, as it is defined now.

        Raises:
            NotFound: there is none; says what there is, and how to define one.
            CorruptLog: the file can't be read as a definition, or has none that is believed.
            OSError: the volume can't be read.
        """
        path = self.file(name)
        try:
            compute = self._read(path)
        except FileNotFoundError as error:
            raise NotFound(f"There is no compute {name!r}: {self.hint(name)}.") from error
        if compute.name != name:
            raise CorruptLog(f"{path} is the definition of another compute, {compute.name!r}: define {name!r} again")
        return compute

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
        replace_file(path, self._text(definition), mode=PRIVATE_FILE)
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
        replace_file(path, self._text(definition), mode=PRIVATE_FILE)
        sync_file(path)
        sync_folder(folder)

    def deleted(self) -> list[Compute]:
        """Computes that were deleted, and may still have nodes."""
        there = []
        for path in sorted((self.folder / _DELETED).glob("*.json")):
            with suppress(CorruptLog, OSError):
                compute = self._read(path)
                if path == self._deleted(compute.name, compute.kind):
                    there.append(compute)
        return there

    def given_back(self, definition: Compute) -> None:
        """No nodes have to be given back of a compute that was deleted."""
        self._deleted(definition.name, definition.kind).unlink(missing_ok=True)

    def _deleted(self, name: str, kind: str) -> Path:
        return self.folder / _DELETED / f"{name}.{kind}.json"

    def default(self) -> str:
        """The compute of jobs that name none; empty: the nodes without a compute.

        A definition that can't be read is none of a default one; the log names it.
        """
        for name in self.names():
            try:
                if self.get(name).is_default:
                    return name
            except (CorruptLog, NotFound, OSError) as error:
                logger().warning("compute_unreadable", compute=name, error=str(error))
        return ""

    def _text(self, definition: Compute) -> bytes:
        fields = shown(definition)
        sealed = {**fields, _SEAL: _seal(self._key, fields)} if self._key else fields
        return json.dumps(sealed, indent=2).encode() + b"\n"

    def _read(self, path: Path) -> Compute:
        try:
            given = json.loads(_text_of(path))
            seal = given.pop(_SEAL, "")
            if not self._is_believed(given, str(seal)):
                raise CorruptLog(f"{path} was not defined through this cluster's API: define it again")
            kind = given["type"]
            if kind not in kinds():
                raise CorruptLog(f"{path} is a compute of a kind that this release doesn't know: {str(kind)[:50]!r}")
            return model_of(kind).model_validate(given)
        except (ValidationError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise CorruptLog(f"{path} can't be read as a compute: define it again") from error

    def _is_believed(self, fields: Mapping[str, object], seal: str) -> bool:
        return not self._key or hmac.compare_digest(_seal(self._key, fields), seal)

    def hint(self, missing: str) -> str:
        """What to do about a name that isn't there."""
        names = self.names()
        close = get_close_matches(missing, names, n=1)
        there = f"did you mean {close[0]!r}? There are {', '.join(names[:20])}" if close else "there is none yet"
        if names and not close:
            there = f"there are {', '.join(names[:20])}"
        return f"{there}; define one with `parallelrun compute create -f FILE` (docs/computes.md)"


def _text_of(path: Path) -> bytes:
    """What a file has; it may also be a link, or a pipe to which nobody writes."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise CorruptLog(f"{path} is a link: define it again") from error
        raise
    with open(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise CorruptLog(f"{path} is no file: define it again")
        return file.read(_MAX_BYTES)


def _seal(key: bytes, fields: Mapping[str, object]) -> str:
    """What only who has the key can make of these fields."""
    return hmac.new(key, json.dumps(fields, sort_keys=True).encode(), "sha256").hexdigest()


def shown(definition: Compute) -> dict[str, object]:
    """The fields of a definition that are not as by default, as users may write them."""
    fields: dict[str, object] = definition.model_dump(mode="json", exclude_defaults=True)
    return fields
