"""Checks the one promise, every row exactly once, by nothing but a job's output, manifest and decision log."""

from __future__ import annotations

import itertools
import os
import zlib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from parallelrun_core.folder.decisions import read_decisions
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.manifest import read_manifest
from parallelrun_core.folder.records import JobResult
from parallelrun_core.wire import message

ENTRY_SCRIPT = """
import os, random, time, zlib
def init():
    time.sleep(float(os.environ.get("INIT_S", "0")))
    open(os.path.join(os.environ["MARKS"], str(os.getpid())), "w").close()
def run(mini_batch):
    time.sleep(random.uniform(0.001, 0.010) + len(mini_batch) * float(os.environ.get("ITEM_S", "0")))
    names = [os.path.basename(path) for path in mini_batch]
    return [f"{name} {zlib.crc32(name.encode())}" for name in names]
"""
"""Takes 1 to 10 ms for a mini-batch, and ITEM_S for each item; each row carries a checksum of itself. MARKS: a folder
of those past init()."""


@dataclass(frozen=True)
class Finding:
    """What is wrong with an output; the job kept its promise if all of these are zero."""

    missing: int
    doubled: int
    strange: int
    """Rows that are torn, or that belong to no item; files of an output that are missing, torn or nobody's."""
    out_of_order: int
    miscounted: int
    """Differences between the reported counts and a recount."""

    @property
    def is_clean(self) -> bool:
        return not any((self.missing, self.doubled, self.strange, self.out_of_order, self.miscounted))


def examine(folder: JobFolder, result: JobResult, output: str | None = None) -> Finding:
    """Compare the output of an ENTRY_SCRIPT job with what its manifest and decisions ask for.

    Args:
        output: what it is, if it isn't on this machine's disk.
    """
    decisions = {outcome.mini_batch: outcome for outcome in read_decisions(folder.path)}
    expected: list[str] = []
    items = 0
    for entry in read_manifest(folder.path):
        names = [os.fsdecode(os.path.basename(path)) for path in _paths(message.decode(entry.raw))]
        items += len(names)
        outcome = decisions.get(entry.mini_batch)
        if outcome is None or outcome.status == "done":
            expected += names
    rows = (Path(result.output).read_text() if output is None else output).splitlines()
    names = [row.partition(" ")[0] for row in rows]
    counts = Counter(names)
    wanted = set(expected)
    strange = sum(
        row != f"{name} {zlib.crc32(name.encode())}" or name not in wanted
        for row, name in zip(rows, names, strict=True)
    )
    position = {name: number for number, name in enumerate(expected)}
    places = [position[name] for name in names if name in position]
    progress = result.progress
    return Finding(
        missing=sum(name not in counts for name in expected),
        doubled=sum(count - 1 for count in counts.values()),
        strange=strange,
        out_of_order=sum(after < before for before, after in itertools.pairwise(places)),
        miscounted=abs(progress.items_scheduled - items)
        + abs(progress.done + progress.failed - len(decisions))
        + abs(progress.items_done + progress.items_failed - items),
    )


def _paths(of: message.Message) -> list[bytes]:
    if message.is_described(of):
        return message.described_paths(message.described_of(of))
    return message.paths_of(of).split(b"\0")
