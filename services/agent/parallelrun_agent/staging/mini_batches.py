"""Staging of mini-batches: from a message to what is to be staged for it, and to what its worker gets then."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import NamedTuple

from parallelrun_agent.staging.parts import FilePart, parts_of
from parallelrun_agent.staging.staged import StagedObject
from parallelrun_agent.staging.tree import JobTree
from parallelrun_agent.workers.payloads import decoded, payload_of
from parallelrun_core.errors import CorruptLog
from parallelrun_core.mltable.input_plan import InputPlan
from parallelrun_core.storage.interface import Version, unpacked
from parallelrun_core.wire import message
from parallelrun_core.wire.message import DescribedMiniBatch, Message
from parallelrun_worker import frames


class StagedMiniBatch(NamedTuple):
    """A mini-batch as its worker gets it, once these files are there."""

    kind: int
    items: int
    payload: bytes
    files: list[StagedObject]


class MiniBatches:
    """The mini-batches of one job on one node.

    Args:
        folder: of the job.
        tree: where its files are to be.
        plans: of its inputs.
    """

    def __init__(self, folder: Path, tree: JobTree, plans: list[InputPlan]) -> None:
        self._folder = folder
        self._tree = tree
        self._plans = plans

    def read(self, raw: bytes) -> StagedMiniBatch:
        """Return what a message needs. One without versions names files that are where they are.

        Raises:
            CorruptLog: it can't be read.
            OSError, StopIteration: the manifest can't be read, or isn't there.
        """
        of = decoded(raw, self._folder)
        described = message.described_of(of) if message.is_described(of) else None
        if described is not None and any(piece.remote is not None for piece in described.pieces):
            return self._of_table(of, described)
        if described is None or not described.versions or not self._plans[described.input].is_staged:
            return StagedMiniBatch(*payload_of(raw, self._folder), [])
        urls = [os.fsdecode(path) for path in message.described_paths(described)]
        targets = [self._tree.place(described.input, url) for url in urls]
        versions = map(unpacked, described.versions)
        files = [StagedObject(*each) for each in zip(urls, versions, targets, strict=True)]
        fields = {"input": described.input, "keys": described.keys, "pieces": [], "paths": targets}
        return StagedMiniBatch(frames.DESCRIBED, of.items, json.dumps(fields).encode(), files)

    def _of_table(self, of: Message, described: DescribedMiniBatch) -> StagedMiniBatch:
        """Ranges of files: each part of a file is a file, which other mini-batches may need, too."""
        read = self._plans[described.input].read
        text = read.text if read is not None else None
        files: dict[str, StagedObject] = {}
        places: dict[str, tuple[int, list[tuple[int, str]]]] = {}
        for piece in described.pieces:
            if piece.remote is None:
                raise CorruptLog("a mini-batch of a table in a store has a piece without a version")
            url, version = os.fsdecode(piece.path), unpacked(piece.remote.version)
            _, here = places.setdefault(url, (version.size_bytes, []))
            for part in parts_of(piece, version.size_bytes, text):
                file = StagedObject(url, version, self._tree.part(_name_of(url, version, part)), part)
                files[file.target] = file
                here.append((part.start, file.target))
        pieces = [(os.fsdecode(piece.path), *piece.rest) for piece in described.pieces]
        fields = {"input": described.input, "keys": described.keys, "pieces": pieces, "paths": [], "places": places}
        return StagedMiniBatch(frames.DESCRIBED, of.items, json.dumps(fields).encode(), list(files.values()))


def _name_of(url: str, version: Version, part: FilePart) -> str:
    name = f"{url}\0{version.tag or version.modified}\0{part}".encode(errors="surrogateescape")
    return hashlib.sha256(name).hexdigest()[:40]
