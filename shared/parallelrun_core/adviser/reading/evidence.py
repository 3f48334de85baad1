"""Puts together what is known of a job."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from parallelrun_core.adviser.evidence import Evidence, Init, MeasuredSettings, Tries
from parallelrun_core.adviser.reading.phases import read_inits
from parallelrun_core.adviser.reading.tries import read_tries
from parallelrun_core.adviser.reading.usage import read_uses
from parallelrun_core.errors import CorruptLog, InvalidInput
from parallelrun_core.folder.costs import budget_usd, spent_usd
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.records import JobRecord, JobResult
from parallelrun_core.layout import Logs
from parallelrun_core.mltable.input_plan import load_plans
from parallelrun_core.spec import JobSpec
from parallelrun_core.spec.fields import MiniBatchSize
from parallelrun_core.untrusted.paths import open_ordinary

_LISTED: Final = "setting job stage to FIRST_TASK_SCHEDULED"
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}")
_MOST_BYTES: Final = 1 << 20


def evidence_of(folder: JobFolder, result: JobResult | None = None) -> Evidence:
    """Return what is known of a job, now: all of its tries since it began, or was reopened.

    Args:
        result: how it ended, if that isn't recorded yet.

    Raises:
        NotFound, NewerSchema, CorruptLog: its records can't be read.
    """
    record, result = folder.record(), result or folder.result()
    begun = begun_at(folder, record, result)
    spec = record.job_spec()
    read = read_tries(folder.path, begun)
    inits = read_inits(folder.logs, begun)
    listed = _first_listed(folder.logs, begun)
    return Evidence(
        job_id=folder.job_id,
        tries=read.tries,
        sample=read.sample,
        nodes=list(dict.fromkeys([*read.nodes, *(init.node for init in inits)])),
        processes=read.processes,
        categories=read.categories,
        waits_s=read.waits_s,
        waits_of_s=read.waits_of_s,
        spent_usd=spent_usd(folder.path),
        budget_usd=budget_usd(spec, folder.reopenings()),
        seconds=max(_last_end(read.tries), result.ended - begun if result is not None else 0.0),
        is_running=result is None,
        inits=inits,
        first_listed_s=listed,
        environment_s=_environment_s(spec, inits, listed),
        uses=read_uses(folder.logs, read.nodes),
        settings=settings_of(spec, is_table=_is_table(folder)),
    )


def begun_at(folder: JobFolder, record: JobRecord, result: JobResult | None) -> float:
    """Return when the job began, or began again after it was reopened: times of evidence count from it.

    Raises:
        CorruptLog: the records of its reopenings can't be read.
    """
    begun = max([record.submitted, *(each.at for each in folder.reopenings()[-1:])])
    return max(begun, result.started) if result is not None and result.started is not None else begun


def _last_end(tries: Tries) -> float:
    return float((tries.started_s + tries.elapsed_s).max()) if len(tries) else 0.0


def _environment_s(spec: JobSpec, inits: list[Init], listed: float | None) -> float:
    """Return the seconds from the first mini-batch, which nodes wait for, to the first worker, if the job asks for a
    Python of its own."""
    if not spec.environment.is_own or not inits:
        return 0.0
    return max(0.0, min(init.started_s for init in inits) - (listed or 0.0))


def _first_listed(logs: Path, begun: float) -> float | None:
    times = [at - begun for at in _times(Logs(logs).sys) if at >= begun - 1]
    return max(0.0, min(times)) if times else None


def _times(folder: Path) -> Iterator[float]:
    """Return when leaders say that the first mini-batch was there."""
    for path in folder.glob("master_role.*.txt"):
        with suppress(OSError), open_ordinary(path) as file:
            for line in file.read(_MOST_BYTES).decode(errors="replace").splitlines():
                if _LISTED in line and (stamp := _TIME.match(line)):
                    at = datetime.strptime(stamp[0], "%Y-%m-%d %H:%M:%S,%f").replace(tzinfo=UTC)
                    yield at.timestamp()


def _is_table(folder: JobFolder) -> bool:
    with suppress(InvalidInput, CorruptLog):
        return any(plan.is_table for plan in load_plans(folder.path) or ())
    return False


def settings_of(spec: JobSpec, *, is_table: bool) -> MeasuredSettings:
    """The settings that findings are about."""
    size = MiniBatchSize.parse(spec.mini_batch_size)
    is_sized = not (spec.partition_keys or spec.rank_mini_batch_count or spec.command or size.is_auto)
    unit = ("rows" if size.unit == "rows" else "bytes") if is_table else "files"
    number = size.number if unit == "rows" and size.number else size.bytes if unit == "bytes" else size.files
    return MeasuredSettings(
        size=number,
        unit=unit if is_sized else "",
        is_auto=size.is_auto,
        has_keys=bool(spec.partition_keys),
        fails_whole=spec.on_failure != "isolate" and is_sized,
        run_invocation_timeout_s=spec.run_invocation_timeout,
        processes=spec.max_concurrency_per_instance,
        workers_per_gpu=0 if (spec.gpus_per_worker or 1) > 1 else spec.workers_per_gpu or 1,
        has_several_in_flight=spec.mini_batches_in_flight != 1,
    )
