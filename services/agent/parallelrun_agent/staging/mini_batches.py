"""From a message to what is to be staged for it, and to what its worker gets then."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from parallelrun_agent.staging.stager import StagedFile
from parallelrun_agent.workers.payloads import decoded, payload_of
from parallelrun_core import message
from parallelrun_core.mltable.plan import load_plans
from parallelrun_core.storage.versions import unpacked
from parallelrun_worker import frames


class StagedMiniBatch(NamedTuple):
    """A mini-batch as its worker gets it, once these files are there."""

    kind: int
    items: int
    payload: bytes
    files: list[StagedFile]


class MiniBatches:
    """Those of one job on one node.

    Args:
        folder: of the job.
        tree: local folder below which files are to be, each with its path below its input.
    """

    def __init__(self, folder: Path, tree: Path) -> None:
        self._folder = folder
        self._tree = tree
        self._roots: list[str] | None = None

    def read(self, raw: bytes) -> StagedMiniBatch:
        """What a message needs. One without versions names files that are where they are.

        Raises:
            CorruptLog: it can't be read.
            OSError, StopIteration: the manifest or the plans can't be read, or are not there.
        """
        of = decoded(raw, self._folder)
        described = message.described_of(of) if message.is_described(of) else None
        if described is None or not described.versions:
            return StagedMiniBatch(*payload_of(raw, self._folder), [])
        urls = [os.fsdecode(path) for path in message.described_paths(described)]
        targets = [self._target(described.input, url) for url in urls]
        versions = map(unpacked, described.versions)
        files = [StagedFile(*each) for each in zip(urls, versions, targets, strict=True)]
        fields = {"input": described.input, "keys": described.keys, "pieces": [], "paths": list(map(str, targets))}
        return StagedMiniBatch(frames.DESCRIBED, of.items, json.dumps(fields).encode(), files)

    def _target(self, number: int, url: str) -> Path:
        """Where an object is found: below its input, or, if the input only names it, below its store."""
        root = self._input_roots()[number].rstrip("/") + "/"
        below = url[len(root) :] if url.startswith(root) else url.partition("://")[2]
        return self._tree / str(number) / below

    def _input_roots(self) -> Sequence[str]:
        if self._roots is None:
            self._roots = [plan.root for plan in load_plans(self._folder) or []]
        return self._roots
