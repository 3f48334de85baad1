"""From a message to what is to be staged for it, and to what its worker gets then."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import NamedTuple

from parallelrun_agent.staging.stager import StagedFile
from parallelrun_agent.staging.tree import JobTree
from parallelrun_agent.workers.payloads import decoded, payload_of
from parallelrun_core import message
from parallelrun_core.mltable.plan import InputPlan
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
        tree: where its files are to be.
        plans: of its inputs.
    """

    def __init__(self, folder: Path, tree: JobTree, plans: list[InputPlan]) -> None:
        self._folder = folder
        self._tree = tree
        self._plans = plans

    def read(self, raw: bytes) -> StagedMiniBatch:
        """What a message needs. One without versions names files that are where they are.

        Raises:
            CorruptLog: it can't be read.
            OSError, StopIteration: the manifest can't be read, or isn't there.
        """
        of = decoded(raw, self._folder)
        described = message.described_of(of) if message.is_described(of) else None
        if described is None or not described.versions or not self._plans[described.input].is_staged:
            return StagedMiniBatch(*payload_of(raw, self._folder), [])
        urls = [os.fsdecode(path) for path in message.described_paths(described)]
        targets = [self._tree.place(described.input, url) for url in urls]
        versions = map(unpacked, described.versions)
        files = [StagedFile(*each) for each in zip(urls, versions, targets, strict=True)]
        fields = {"input": described.input, "keys": described.keys, "pieces": [], "paths": list(map(str, targets))}
        return StagedMiniBatch(frames.DESCRIBED, of.items, json.dumps(fields).encode(), files)
