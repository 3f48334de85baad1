"""Tables as whole jobs read them, without the processes: planned by a master, staged by an agent, and loaded."""

from __future__ import annotations

import io
import os
import select
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import deltalake
import fastavro
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from parallelrun_agent.staging.cache import StageCache
from parallelrun_agent.staging.mini_batches import MiniBatches
from parallelrun_agent.staging.staged import Staged
from parallelrun_agent.staging.stager import Stager
from parallelrun_agent.staging.tree import JobTree
from parallelrun_core.folder.manifest import ManifestWriter, read_manifest
from parallelrun_core.layout import Layout
from parallelrun_core.mltable.input_plan import load_plans
from parallelrun_core.spec import JobSpec
from parallelrun_master.planning.input_cuts import InputCuts, known_in
from parallelrun_worker.mini_batches.mini_batch import Loader, MiniBatch
from tests.unit.tables.cutting import values


class Job:
    """A job with one input, planned when it is made.

    Attributes:
        messages: of its mini-batches.
        fetched_bytes: by the agent.
    """

    def __init__(
        self, folder: Path, given: Mapping[str, Any], size: int | str = "1mb", keys: Sequence[str] = ()
    ) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        fields: dict[str, Any] = {"inputs": {"data": dict(given)}}
        fields |= {"partition_keys": list(keys)} if keys else {"mini_batch_size": size}
        spec = JobSpec.parse({"entry_script": "e.py", "code": str(folder), **fields})
        cuts = [cut for cut in InputCuts(folder, spec, known_in(folder)) if cut is not None]
        writer = ManifestWriter(folder, 1)
        for cut in cuts:
            writer.add(cut.raw, cut.items)
        writer.close(order="sorted")
        self.messages = [entry.raw for entry in read_manifest(folder)]
        self.fetched_bytes = 0
        self.failures: list[str] = []
        self._wake, self._end = os.pipe()
        plans = load_plans(folder) or []
        self._mini_batches = MiniBatches(folder, JobTree(folder / "staged", spec), plans)
        self._cache = StageCache(folder / "cache", 1 << 30)
        self._stager = Stager(self._cache, folder / "staged", wake=self._end)
        layout = Layout(folder)
        self._schemas = [str(layout.schema(number)) for number in range(len(plans))]

    def loaded(self, raw: bytes) -> MiniBatch | None:
        """A mini-batch as run() gets it, by a worker that has seen none before; None if it can't be staged."""
        mini_batch = self._mini_batches.read(raw)
        self._stager.stage("token", mini_batch.files)
        staged = self._next()
        self.fetched_bytes += staged.fetched_bytes
        try:
            if staged.failure is not None:
                self.failures.append(f"{staged.failure.category}: {staged.failure.message}")
                return None
            return Loader(str(Layout(self.folder).inputs), self._schemas).load(mini_batch.payload)
        finally:
            self._stager.release("token")

    def _next(self) -> Staged:
        deadline = time.monotonic() + 60
        while not self._stager.done:
            assert select.select([self._wake], [], [], deadline - time.monotonic())[0], "nothing has ended"
            os.read(self._wake, 1)
        return self._stager.done.popleft()

    def run(self) -> list[MiniBatch]:
        """All mini-batches, one after the other."""
        loaded = [self.loaded(raw) for raw in self.messages]
        assert self.failures == []
        return [each for each in loaded if each is not None]

    def close(self) -> None:
        self._stager.close()
        os.close(self._wake)
        os.close(self._end)


def seen(mini_batches: Sequence[MiniBatch]) -> list[tuple[Any, ...]]:
    """What scripts see of them that doesn't depend on where the table is."""
    frames: list[tuple[pd.DataFrame, MiniBatch]] = [(each.value, each) for each in mini_batches]  # type: ignore[misc]
    types = [{name: str(dtype) for name, dtype in frame.dtypes.items()} for frame, _ in frames]
    rows = [(values(frame), each.partition_key_value, each.first_row) for frame, each in frames]
    return list(zip(types, rows, strict=True))


Make = Callable[..., Job]
"""Makes a job of a path and the steps by which it is read; without steps, it is an MLTable."""


def lines(rows: range, width: int = 30) -> str:
    return "".join(f"{number},{'x' * (number % width)},2020-01-{1 + number % 28:02}\n" for number in rows)


def avro(rows: int) -> bytes:
    schema = {
        "type": "record", "name": "row",
        "fields": [{"name": "number", "type": "long"}, {"name": "text", "type": ["null", "string"]}],
    }  # fmt: skip
    records = [{"number": number, "text": None if number % 7 == 0 else f"row {number}"} for number in range(rows)]
    file = io.BytesIO()
    fastavro.writer(file, fastavro.parse_schema(schema), records, sync_interval=2000)
    return file.getvalue()


def parquet(rows: int, group: int = 1000) -> bytes:
    file = io.BytesIO()
    columns = {"number": range(rows), "text": [f"row {n}" for n in range(rows)], "half": [n / 2 for n in range(rows)]}
    pq.write_table(pa.table(columns), file, row_group_size=group)
    return file.getvalue()


def delta(folder: Path, partitions: Sequence[str] = ()) -> None:
    """A table of two versions."""
    for start in (0, 100):
        rows = range(start, start + 100)
        days = [f"a b/{number % 3}" if number % 5 else None for number in rows]
        frame = pd.DataFrame({"number": rows, "day": days, "half": [number / 2 for number in rows]})
        deltalake.write_deltalake(str(folder), frame, mode="append", partition_by=list(partitions) or None)
