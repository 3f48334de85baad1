"""The history of a job's tries in a file of columns: to read that takes a twentieth of the time that the logs take.

It holds up to which byte of each log it was made, so what is added later, as when a job is reopened, is read from the
logs. Nothing rests on it: what is missing, damaged, of another format, or made of a log that was cut since, is not
loaded, and all is read from the logs.

A file of framed records (`folder/record_log.py`): a header, then an array for each entry of `Header.arrays`.
"""

from __future__ import annotations

import math
import secrets
from contextlib import closing, suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np

from parallelrun_core.folder.record_log import RecordReader, RecordWriter
from parallelrun_core.service.telemetry import logger
from parallelrun_core.tries.history import History, RecordedWorker
from parallelrun_core.tries.kinds_so_far import SavedKind
from parallelrun_core.tries.summary import Totals
from parallelrun_core.tries.worker_phases import WorkerPhase

if TYPE_CHECKING:
    from pathlib import Path

    from parallelrun_core.folder.job_folder import JobFolder
    from parallelrun_core.tries.columns import Array

log = logger()

LEAST_TRIES: Final = 10_000
"""The logs of fewer are read in some hundredths of a second."""
MOST_AT_ONCE: Final = 3_000_000
"""Tries for which a leader has memory."""
_STEP_S: Final = 1.0
_FORMAT: Final = 3
"""Another one for each change of what is in the file: releases load only their own."""


class SnapshotHeader(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a snapshot beside arrays."""

    format: int
    logs: dict[str, dict[int, int]]
    """The byte up to which each term's file was read, of each log."""
    report_at: int
    workers: list[RecordedWorker]
    phases: list[WorkerPhase]
    categories: list[str]
    failures: int
    failures_left_out: int
    kinds: list[SavedKind]
    totals: dict[str, int | float]
    """Counts of the whole job, as far as they are known."""
    cell_s: float
    first_cell: int
    used_cells: int
    arrays: list[tuple[str, str, list[int]]]
    """Name, numpy type and shape of each array."""


_HEADER: Final = msgspec.json.Decoder(SnapshotHeader)


def path_of(folder: Path) -> Path:
    return folder / "tries.snapshot"


def keep(history: History) -> None:
    """Store the history of a job that has ended, once all of it is read, if to read it again would take long."""
    new_tries = history.tries.count - history.saved_tries
    if history.read_share == 1 and new_tries >= LEAST_TRIES and history.folder.has_ended:
        save(history)


def keep_of(folder: JobFolder) -> None:
    """Store the history of a job that has just ended, so that the first look at it takes no longer than any other.

    Takes two seconds of CPU and 85 MB of memory for a million tries. One of more than `MOST_AT_ONCE` is stored by the
    first server that is asked for its pictures.

    Raises:
        NotFound, CorruptLog, NewerSchema: its records can't be read.
    """
    history = History(folder, folder.record())
    load(history)
    is_new = True
    while is_new and history.tries.count < MOST_AT_ONCE:
        before = history.positions, history.report_at
        history.refresh(_STEP_S)
        is_new = (history.positions, history.report_at) != before
    keep(history)


def save(history: History) -> None:
    """Store what is read of a history. In a folder that can't be written to, nothing is."""
    history.saved_tries = history.tries.count
    path = path_of(history.folder.path)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    try:
        with history.lock:
            _write(history, draft)
        draft.replace(path)
    except OSError as error:
        log.warning("snapshot_not_stored", path=str(path), error=str(error))
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)


def _write(history: History, path: Path) -> None:
    arrays, totals, grid = _arrays(history), history.summary.totals, history.summary.grid
    header = SnapshotHeader(
        format=_FORMAT,
        logs=history.positions,
        report_at=history.report_at,
        workers=list(history.workers),
        phases=history.phases,
        categories=history.categories,
        failures=history.errors.count,
        failures_left_out=history.errors.left_out,
        kinds=history.errors.saved(),
        totals={name: value for name, value in asdict(totals).items() if value is not None and math.isfinite(value)},
        cell_s=grid.cell_s,
        first_cell=grid.first,
        used_cells=grid.used,
        arrays=[(name, array.dtype.str, list(array.shape)) for name, array in arrays.items()],
    )
    with closing(RecordWriter(path)) as file:
        file.append(msgspec.json.encode(header))
        for array in arrays.values():
            file.append(np.ascontiguousarray(array).tobytes())
        file.sync()


def _arrays(history: History) -> dict[str, Array]:
    summary, used = history.summary, history.summary.grid.used
    rows, times, slowest = summary.chunks()
    return {
        **{f"tries.{name}": history.tries[name] for name in history.tries.names},
        "decided_by": history.decided_by.range(0, history.decided_by.end),
        "has_failed_try": history.has_failed_try.range(0, history.has_failed_try.end),
        "category_by": history.category_by.range(0, history.category_by.end),
        "lives": summary.lives,
        "rows": rows,
        "times": times,
        "slowest": slowest,
        **{f"of_lanes.{name}": cells[:, :used] for name, cells in summary.grid.of_lanes.items()},
        **{f"of_all.{name}": cells[:used] for name, cells in summary.grid.of_all.items()},
    }


def load(history: History) -> None:
    """Let a history begin with the snapshot of its job, if there is one; does nothing when called again."""
    with history.lock:
        if not history.is_begun:
            history.is_begun = True
            _load(history, path_of(history.folder.path))


def _load(history: History, path: Path) -> None:
    if not path.exists():
        return
    try:
        with closing(RecordReader(path)) as file:
            header = _HEADER.decode(file.read() or b"")
            if header.format != _FORMAT:
                return
            arrays = dict[str, Any]()
            for name, kind, shape in header.arrays:
                arrays[name] = np.frombuffer(file.read() or b"", kind).reshape(shape)
        _restore(history, header, arrays)
    except (OSError, ValueError, KeyError) as error:  # nothing rests on it
        log.warning("snapshot_unreadable", path=str(path), error=repr(error))
        history.begin()


def _restore(history: History, header: SnapshotHeader, arrays: dict[str, Array]) -> None:
    history.positions, history.report_at = header.logs, header.report_at
    for number, worker in enumerate(header.workers):
        history.workers[worker] = number
    history.phases = list(header.phases)
    history.tries.extend(**{name: arrays[f"tries.{name}"] for name in history.tries.names})
    history.categories = list(header.categories)
    for name in ("decided_by", "has_failed_try", "category_by"):
        getattr(history, name).set(np.arange(len(arrays[name])), arrays[name])
    errors, summary = history.errors, history.summary
    errors.restore(header.kinds, count=header.failures, left_out=header.failures_left_out)
    history.saved_tries = history.tries.count
    chunks = arrays["rows"], arrays["times"], arrays["slowest"]
    summary.restore(msgspec.convert(header.totals, Totals), arrays["lives"], chunks)
    summary.grid.restore(
        {name: arrays[f"of_lanes.{name}"] for name in summary.grid.of_lanes},
        {name: arrays[f"of_all.{name}"] for name in summary.grid.of_all},
        cell_s=header.cell_s,
        first=header.first_cell,
        used=header.used_cells,
    )
