"""Owners of uploads: of several people, each writes only to what they have begun themselves.

A client calls a folder of uploads by a digest of its content, which nobody checks: whoever knows the content could put
something else there first, or beside it later. What somebody has begun is theirs, so others add and change nothing.
Who uploads the same content again is told that it is there.
"""

from __future__ import annotations

import hashlib
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from parallelrun_api.azure.blobs.names import OF_UPLOADS, OF_VERSIONS
from parallelrun_api.people.access import NotAllowed
from parallelrun_api.people.person import CURRENT
from parallelrun_core.durable_files import write_once
from parallelrun_core.layout import PRIVATE_FILE, PRIVATE_FOLDER

_ABANDONED_S: Final = 24 * 3600


class UploadOwners:
    """The owners of the uploads below a folder. Safe to share between threads and processes.

    Args:
        uploads: the folder with the containers.
        records: the folder with a file for each owner's upload, which no job can write to. What an admin uploads has
            none, nor what jobs have put there.
    """

    def __init__(self, uploads: Path, records: Path) -> None:
        self._uploads: Final = uploads
        self._records: Final = records

    def claim(self, container: str, blob: str) -> bool:
        """Make what a blob is part of the person's, durably, if nobody has begun it.

        Returns:
            Whether the person of this request may write the blob.
        """
        person = CURRENT.get()
        if person.is_admin:
            return True
        upload = _upload_of(container, blob)
        if not os.path.lexists(self._uploads / upload):
            self._forget_if_old(upload)
            self._records.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
            with suppress(FileExistsError):
                write_once(self._record_of(upload), person.owner.encode(), mode=PRIVATE_FILE)
        return self._owner_of(upload) == person.owner

    def trusts(self, container: str, blob: str) -> bool:
        """Return whether a blob can be taken for what its name says: the person has uploaded it, or an admin, or it
        was there before uploads had owners."""
        person = CURRENT.get()
        return person.is_admin or self._owner_of(_upload_of(container, blob)) in (None, person.owner)

    def refusal(self, container: str, blob: str) -> NotAllowed:
        """Return the error of who would change what somebody else has uploaded."""
        owner = self._owner_of(_upload_of(container, blob))
        owner_words = f"{owner!r}" if owner else "whoever runs this server, or a job"
        return NotAllowed(
            f"{blob[:200]!r} is part of an upload of {owner_words}, who alone can add to it or change it: upload under "
            "another name, or ask somebody with the scope admin."
        )

    def _forget_if_old(self, upload: str) -> None:
        """Forget whose an upload was that is not there any more, once nobody can be about to write it."""
        record = self._record_of(upload)
        with suppress(FileNotFoundError):
            if time.time() - record.stat().st_mtime > _ABANDONED_S:
                record.unlink()

    def _owner_of(self, upload: str) -> str | None:
        try:
            return self._record_of(upload).read_text()
        except FileNotFoundError:
            return None

    def _record_of(self, upload: str) -> Path:
        return self._records / hashlib.sha256(upload.encode(errors="surrogatepass")).hexdigest()


def _upload_of(container: str, blob: str) -> str:
    """Return what a blob is uploaded with: all of a version, all of a folder that a client calls by a digest, or the
    blob alone."""
    if container.startswith(OF_VERSIONS):
        return container
    if blob.startswith(OF_UPLOADS):
        return "/".join((container, *blob.split("/")[:2]))
    return f"{container}/{blob}"
