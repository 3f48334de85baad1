"""`python -P -m parallelrun_master.planning.extent`: how much a job is, before anything runs.

On standard input an `ExtentRequest` (`core/checks/extent.py`), on standard output an `Extent`. The inputs are listed
and cut as by a leader; nothing of the user's runs.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

import msgspec

from parallelrun_core.checks.extent import Extent, ExtentRequest
from parallelrun_core.errors import ParallelRunError
from parallelrun_core.mltable.input_plan import load_plans
from parallelrun_core.spec import JobSpec
from parallelrun_core.storage.path_rule import PathRule
from parallelrun_core.storage.stores import storage_of
from parallelrun_core.wire.message import decode, described_of, files_of, is_described
from parallelrun_master.planning.input_cuts import InputCuts, KnownInput

_LISTING_S: Final = 60.0
"""How long inputs are listed; more would be a wait that a person takes for a hang."""
_SAMPLE: Final = 500
"""Files whose sizes are asked for: each may cost a request of a store."""


class _Files:
    """The files that were listed, of which a sample is measured."""

    def __init__(self) -> None:
        self.count = 0
        self.most = 0
        """Files in the largest mini-batch."""
        self._sample: list[bytes] = []
        self._random = random.Random(0)  # noqa: S311 - a sample

    def add(self, paths: list[bytes]) -> None:
        """Count the files of a mini-batch; each of all is in the sample with the same chance."""
        self.most = max(self.most, len(paths))
        for path in paths:
            self.count += 1
            if len(self._sample) < _SAMPLE:
                self._sample.append(path)
            elif (place := self._random.randrange(self.count)) < _SAMPLE:
                self._sample[place] = path

    def mean_bytes(self) -> float:
        sizes = [storage_of(os.fsdecode(path)).version(path).size_bytes for path in self._sample]
        return sum(sizes) / len(sizes) if sizes else 0.0


def extent_of(spec: JobSpec, folder: Path, listing_s: float = _LISTING_S, rule: PathRule | None = None) -> Extent:
    """Return the amount of a job.

    Args:
        folder: an empty one, for what cutting writes.
        listing_s: seconds after which listing ends, wherever it is.
        rule: which files may be listed and opened; None: any.

    Raises:
        ParallelRunError, OSError: an input can't be listed or cut.
    """
    extent, files = Extent(), _Files()
    until = time.monotonic() + listing_s
    cuts = InputCuts(folder, spec, KnownInput(), rule=rule)
    for cut in cuts:
        if cut is None:
            continue
        extent.mini_batches += 1
        message = decode(cut.raw)
        pieces = described_of(message).pieces if is_described(message) else []
        if not pieces:
            files.add(list(files_of(message)))
        else:
            if whole := [piece.path for piece in pieces if piece.end < 0]:
                files.add(whole)
            extent.largest_bytes = max(extent.largest_bytes, sum(max(0, piece.end - piece.start) for piece in pieces))
        if time.monotonic() > until:
            break
    else:
        extent.is_complete = True
    mean_bytes = files.mean_bytes()
    extent.files, extent.rows = files.count, cuts.tables.rows
    extent.bytes = cuts.tables.bytes + int(mean_bytes * files.count)
    extent.largest_bytes = max(extent.largest_bytes if not extent.rows else 0, int(mean_bytes * files.most))
    extent.is_staged = any(plan.is_staged or plan.is_copied for plan in load_plans(folder) or [])
    return extent


def main() -> int:
    request = msgspec.json.decode(sys.stdin.buffer.read(), type=ExtentRequest)
    rule = request.bounds.impose() if request.bounds is not None else None
    spec = JobSpec.model_validate(request.spec)
    with tempfile.TemporaryDirectory(prefix="parallelrun-plan-") as folder:
        try:
            extent = extent_of(spec, Path(folder), request.listing_s, rule)
        except (ParallelRunError, OSError) as error:
            extent = Extent(error=str(error))
    sys.stdout.buffer.write(msgspec.json.encode(extent))
    return 0


if __name__ == "__main__":
    sys.exit(main())
