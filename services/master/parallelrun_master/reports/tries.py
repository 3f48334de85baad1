"""logs/sys/job_report/processed_mini-batches.csv: a row for each try and each of its phases (reference §5.1).

Rows are gathered and written in one go before Redis forgets their outcomes. So whatever Redis has forgotten is in the
file, and after a failover or a restart of Redis only what it delivers again has to be compared with the file's end. A
leader that takes over writes to a copy under the same name, so that nobody sees what a paused one adds to the old file.
"""

from __future__ import annotations

import os
import secrets
import shutil
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from parallelrun_core.folder.disk_trouble import is_disk_trouble
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.records import JobResult
from parallelrun_core.layout import Logs
from parallelrun_core.service.telemetry import logger
from parallelrun_core.untrusted.sanitize import csv_cell
from parallelrun_core.wire.masking import Mask
from parallelrun_core.wire.outcome import ErrorCategory, Failure, Outcome, Phase, Use
from parallelrun_master.reports.advice import LEAST_KEPT
from parallelrun_master.reports.columns import HEADER, Key, below, cells_of_use, key_of, row_of, row_of_part, row_of_try
from parallelrun_master.reports.summaries import Summaries

log = logger()

_MAX_BYTES = 1 << 30
_TAIL_BYTES = 32 << 20
_MAX_MESSAGE = 300
_LONGEST_HEADER = 4096
_STATUS: dict[ErrorCategory, str] = {
    "RUN_TIMEOUT": "RUN_TIMEOUT",
    "LOAD_TIMEOUT": "LOAD_TIMEOUT",
    "INPUT_UNREADABLE": "LOAD_EXCEPTION",
    "INPUT_CHANGED": "LOAD_EXCEPTION",
}
"""By category; whatever isn't here is a RUN_EXCEPTION."""
_DONE = "RUN_DONE", "", ""


class TryReport:
    """Appends to the report of one job.

    Args:
        logs: the job's.
        mask: hides secrets in messages of errors.
        max_bytes: the limit, at which a last row says that the file is full.
    """

    def __init__(self, logs: Path, mask: Mask, summaries: Summaries, *, max_bytes: int = _MAX_BYTES) -> None:
        self.path = Logs(logs).job_report / "processed_mini-batches.csv"
        self._mask = mask
        self._summaries = summaries
        self._lines: list[str] = []
        self._known: set[Key] | None = None
        self._second = 0
        self._stamp = ""
        self._uses: dict[Use, str] = {}
        """Cells: the tries between two measurements of a process have the same."""
        self._fd = -1
        self._size = 0
        self._other_header: list[str] = []
        """The columns of a report that another release began; empty: it has ours."""
        self._max_bytes = max_bytes
        try:
            self._take_over()
        except OSError as error:
            log.warning("report_not_stored", path=str(self.path), error=str(error))

    def _take_over(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        mine = self.path.with_name(f".{self.path.name}.{secrets.token_hex(6)}")
        try:
            if self.path.exists():
                shutil.copyfile(self.path, mine)
                _cut_last_line(mine)
                with mine.open(encoding="utf-8", errors="replace") as file:
                    header = file.readline(_LONGEST_HEADER)
                self._other_header = header.rstrip("\n").split(",") if header not in ("", HEADER) else []
                self._summaries.read_later(self.path, mine.stat().st_size)
                self._read_end(mine)
            else:
                mine.write_text(HEADER)
            mine.replace(self.path)
        finally:
            mine.unlink(missing_ok=True)
        self._fd = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        self._size = os.fstat(self._fd).st_size

    def _read_end(self, path: Path) -> None:
        """Remember the last tries in the file: Redis may deliver them again."""
        with path.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL_BYTES))
            lines = file.read().decode(errors="replace").splitlines()
        self._known = set()
        for line in lines:
            with suppress(IndexError):
                self._known.add(key_of(line))

    def start_over(self) -> None:
        """Redis will deliver some tries again."""
        self.flush()
        with suppress(OSError):
            self._read_end(self.path)

    def caught_up(self) -> None:
        """Redis has delivered all that it had: what comes now is new."""
        self._known = None

    @property
    def is_catching_up(self) -> bool:
        return self._known is not None

    def add(self, outcomes: Iterable[Outcome], picked_before: Mapping[int, int]) -> None:
        """Add the rows of these tries, unless they are there.

        Args:
            picked_before: tries of the same mini-batch before the user let the job go on; missing: none.
        """
        reported, uses = self._known, self._uses
        for outcome in outcomes:
            number, items, rows = outcome.mini_batch, outcome.items, outcome.rows
            picked = picked_before.get(number, 0) + outcome.tries
            start = self._time(outcome.started) if outcome.started else ""
            process = f"{outcome.node}/{outcome.process}" if outcome.process else outcome.node
            if reported is not None and (str(number), str(picked), process, start) in reported:
                continue
            succeeded, has_loaded, ending = rows if rows < items else items, bool(process), _DONE
            detail = f'"{{""id"":{number},""items"":{items}}}"'
            if outcome.failure is not None:
                ending = self._described(outcome.failure)
                succeeded, has_loaded = 0, has_loaded and not ending[0].startswith("LOAD")
                detail = csv_cell(outcome.detail) if outcome.detail else detail
            use = outcome.use
            used = uses.get(use) or cells_of_use(use, uses)
            if outcome.parts:
                self._add_parts(outcome, picked)
            key = (number, picked, process, start)
            self._lines.append(
                row_of_try(outcome, key, succeeded, ending, detail=detail, used=used, has_loaded=has_loaded)
            )
            self._summaries.add(
                process, ending[0], items=items, succeeded=succeeded, elapsed_s=outcome.elapsed_s,
                process_s=outcome.process_s, run_s=outcome.run_s, load_s=outcome.load_s, read_bytes=use.read_bytes,
            )  # fmt: skip

    def _add_parts(self, outcome: Outcome, picked: int) -> None:
        """Add a row for each call of run() for a part of a mini-batch whose items were run apart."""
        for part in outcome.parts:
            ending = "PART_DONE", "", ""
            if part.failure is not None:
                ending = "PART_EXCEPTION", *self._described(part.failure)[1:]
            key = outcome.mini_batch, picked, f"{outcome.node}/{part.process}", self._time(part.started)
            detail = f'"{{""id"":{outcome.mini_batch},""first"":{part.first},""items"":{part.items}}}"'
            self._lines.append(row_of_part(part, key, ending, detail=detail, used=cells_of_use(Use(), self._uses)))

    def _described(self, failure: Failure) -> tuple[str, str, str]:
        """The status of a try that failed, and the cells that say why."""
        status = _STATUS.get(failure.category, "RUN_EXCEPTION")
        return status, failure.category, csv_cell(self._mask.text(failure.message)[:_MAX_MESSAGE])

    def add_phase(self, phase: Phase) -> bool:
        """Add the rows of init() or shutdown() in one worker; returns whether they are new."""
        process, start = f"{phase.node}/{phase.process}", self._time(phase.started)
        if self._known is not None and ("", "", process, start) in self._known:
            return False
        cells = {"Process": process, "Process Start Time": start}
        if phase.name == "INIT":
            self._lines.append(row_of({**cells, "Status": "ENTRY_SCRIPT_INIT_START"}))
        how = "DONE"
        if phase.failure is not None:
            how = "TIMEOUT" if phase.failure.category == "INIT_TIMEOUT" else "EXCEPTION"
            _, cells["Error Category"], cells["Error Message"] = self._described(phase.failure)
        cells |= {"Elapsed Seconds": f"{phase.seconds:.6f}", "Status": f"ENTRY_SCRIPT_{phase.name}_{how}"}
        self._lines.append(row_of(cells))
        return True

    def flush(self) -> None:
        """Pass all that was added to the operating system. What doesn't fit on a full disk is lost."""
        if not self._lines:
            return
        data = self._encoded("".join(self._lines))
        self._lines.clear()
        if self._fd < 0 or self._size > self._max_bytes:
            return
        if self._size + len(data) > self._max_bytes:
            why = "This file is full: later tries are in the summaries only."
            data = self._encoded(row_of({"Status": "REPORT_FULL", "Error Message": why}))
            self._size = self._max_bytes
        try:
            self._size += os.write(self._fd, data)
        except OSError as error:
            if not is_disk_trouble(error):
                log.warning("report_not_stored", path=str(self.path), error=str(error))

    def _encoded(self, rows: str) -> bytes:
        rows = below(self._other_header, rows) if self._other_header else rows
        return rows.encode("utf-8", "backslashreplace")

    def close(self) -> None:
        self.flush()
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _time(self, seconds: float) -> str:
        """UTC, ISO 8601 with microseconds (reference §5.1)."""
        whole = int(seconds)
        if whole != self._second:
            self._second = whole
            self._stamp = time.strftime("%Y-%m-%dT%H:%M:%S.", time.gmtime(whole))
        return self._stamp + "%06d" % ((seconds - whole) * 1e6)  # noqa: UP031 - an f-string takes twice as long


def _cut_last_line(path: Path) -> None:
    """Remove what follows the last line break: a row whose writer died."""
    with path.open("r+b") as file:
        size = file.seek(0, os.SEEK_END)
        back = min(size, 1 << 20)
        file.seek(size - back)
        file.truncate(size - back + file.read().rfind(b"\n") + 1)


def keep_tries(folder: JobFolder, result: JobResult) -> None:
    """Store the history of the job's tries beside its logs, so that nobody waits for it (`core/tries/snapshot.py`)."""
    if result.progress.decided + result.progress.retried < LEAST_KEPT:
        return
    try:
        # Numpy is imported by the few leaders that get here.
        from parallelrun_core.tries.snapshot import keep_of

        keep_of(folder)
    except Exception as error:  # the job has ended well without
        log.warning("tries_not_kept", job_id=folder.job_id, error=repr(error))
