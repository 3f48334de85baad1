"""The references of a root folder: what its documents name. What is named stays.

Documents are read as bytes, and everything in them that looks like the id of a job, the hash of a snapshot or a path of
an uploaded file counts. So a field that a later release adds is a reference, too, and a document that can't be read is
never a reason to remove something.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from parallelrun_core.ids import JOB_ID
from parallelrun_core.layout import asset_store, blobstore_of, is_outbox, listed, outboxes_of, uploads_of

_JOB: Final = re.compile(JOB_ID.encode())
_HASH: Final = re.compile(rb"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
_DEFAULT_DATASTORE: Final = re.compile(rb'workspaceblobstore/paths/([^"\\]*)')
_NOT_DOCUMENTS: Final = frozenset(
    {"jobs", "code", "asset_files", "reuse", "keys", "uploads", "blobstore", "azure", "retention"}
)
_NO_REFERENCES: Final = frozenset({"fires", "chosen", "archived"})
"""Folders of documents that say what has happened, and need nothing of it."""
_MOST_BYTES: Final = 64 << 20


def jobs_in(text: bytes) -> set[str]:
    """Return everything in a text that looks like the id of a job."""
    return {match.decode() for match in _JOB.findall(text)}


def hashes_in(text: bytes) -> set[str]:
    """Return everything in a text that looks like the name of a snapshot."""
    return {match.decode() for match in _HASH.findall(text)}


@dataclass(slots=True)
class References:
    """The names in the documents of a root folder, and in the records of its jobs.

    Args:
        root: the root folder.
    """

    root: Path
    jobs: dict[str, str] = field(default_factory=dict)
    """Jobs that documents name, each with one of these documents, for people."""
    hashes: set[str] = field(default_factory=set)
    texts: list[bytes] = field(default_factory=list)
    """Documents that are no assets, and the specs of jobs that have not ended."""
    asset_texts: list[bytes] = field(default_factory=list)
    paths: set[bytes] = field(default_factory=set)
    """Uploaded files and folders, each as the beginning of a path below the root folder."""

    def read_documents(self) -> None:
        """Add all documents of the root folder; raises OSError if one can't be read."""
        for path in documents_of(self.root):
            text = text_of(path)
            name = str(path.relative_to(self.root))
            for job_id in jobs_in(text):
                self.jobs.setdefault(job_id, name)
            self.hashes |= hashes_in(text)
            (self.asset_texts if path.is_relative_to(asset_store(self.root)) else self.texts).append(text)
            self._add_paths(text)
        for outbox in outboxes_of(self.root):
            for name in listed(outbox):
                for job_id in jobs_in(os.fsencode(name)):
                    self.jobs.setdefault(job_id, f"{outbox.name}/{name}")

    def add_running(self, spec: bytes) -> None:
        """Add the record of a job that has not ended."""
        self.texts.append(spec)
        self._add_paths(spec)

    def names_file(self, path: Path) -> bool:
        """Return whether an uploaded file is named, or a folder or a pattern that it may belong to."""
        raw = os.fsencode(path)
        return any(raw.startswith(each) or each.startswith(raw) for each in self.paths)

    def names_text(self, *texts: str) -> bool:
        """Return whether one of these texts stands in a document, assets included."""
        raws = [text.encode() for text in texts if text]
        return any(raw in text for text in (*self.texts, *self.asset_texts) for raw in raws)

    def names_elsewhere(self, text: str) -> bool:
        """Return whether a text stands in a document that is no asset, or in a job that has not ended."""
        raw = text.encode()
        return bool(raw) and any(raw in each for each in self.texts)

    def _add_paths(self, text: bytes) -> None:
        for store in (uploads_of(self.root), blobstore_of(self.root)):
            beginning = os.fsencode(store)
            for match in re.finditer(re.escape(beginning) + rb'(/[^"\\]*)', text):
                self.paths.add(beginning + _fixed(match[1]))
        for match in _DEFAULT_DATASTORE.finditer(text):
            self.paths.add(os.fsencode(blobstore_of(self.root)) + _fixed(b"/" + match[1].lstrip(b"/")))


def _fixed(path: bytes) -> bytes:
    """Return the part of a path before the first character of a pattern."""
    return re.split(rb"[*?\[{]", path, maxsplit=1)[0]


def documents_of(root: Path) -> Iterator[Path]:
    """The files of a root folder that are documents: all but jobs, snapshots and users' files."""
    for current, folders, names in os.walk(root):
        top = Path(current) == root
        skipped = {name for name in folders if top and (name in _NOT_DOCUMENTS or is_outbox(name))} | _NO_REFERENCES
        folders[:] = sorted(name for name in folders if name[0] != "." and name not in skipped)
        for name in sorted(names):
            path = Path(current, name)
            if name[0] != "." and path.is_file() and path.stat().st_size <= _MOST_BYTES:
                yield path


def text_of(path: Path) -> bytes:
    """Return the content of a file; empty if it isn't there."""
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):  # removed since it was listed
        return b""
