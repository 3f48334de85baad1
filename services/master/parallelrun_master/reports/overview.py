"""The progress of a job: a text for people, and a table for programs (reference §5.3, §5.4)."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path

from parallelrun_core.figures import counted
from parallelrun_core.layout import Logs
from parallelrun_core.wire import pace
from parallelrun_core.wire.progress import Progress
from parallelrun_master.reports.files import append_text

EVERY_S = 10.0
_COLUMNS = "Datetime,Total Tasks,Scheduled Tasks,Completed Tasks,Failed Tasks,Elapsed Time,Estimated Remaining Time\n"


class Overview:
    """logs/job_progress_overview.<yyyymmddhh>.txt: a line now and then, and at each change of phase.

    And logs/sys/metrics/<timestamp>/progress.csv, a row for each of the former, unless the job takes less than the time
    between two of them; the timestamp is when the leader's term began.
    """

    def __init__(self, logs: Path) -> None:
        self._logs = logs
        self._table = Logs(logs).metrics(f"{datetime.now(UTC):%Y%m%d%H%M%S}") / "progress.csv"

    def say(self, text: str) -> None:
        """Add one line."""
        now = datetime.now(UTC)
        path = self._logs / f"job_progress_overview.{now:%Y%m%d%H}.txt"
        append_text(path, f"{now.isoformat(timespec='milliseconds')} {text}\n")

    def progress(self, progress: Progress, elapsed_s: float, *, now: float | None = None) -> None:
        """Say how much is processed.

        Args:
            now: the time in seconds since the epoch, if it isn't that of the call.
        """
        is_decided = progress.listing_done and progress.decided >= progress.scheduled > 0
        left_s = 0.0 if is_decided else pace.left_s(progress, time.time() if now is None else now)
        self._add_row(progress, elapsed_s, left_s)
        total = f"{progress.scheduled:,}" + ("" if progress.listing_done else " so far")
        if not progress.decided:
            self.say(f"No mini-batch of {total} is processed yet; with workers: {progress.running:,}.")
            return
        remaining = "unknown" if left_s is None else f"{left_s:.0f} s"
        self.say(
            f"Processed {progress.decided:,} of {total} mini-batches in {elapsed_s:.0f} s; "
            f"{progress.running:,} running, {progress.failed:,} failed, "
            f"{counted(progress.retried, 'try', 'tries')} repeated; estimated remaining {remaining}."
        )

    def concatenation(self, progress: Progress) -> None:
        """Say how much of the output is written."""
        done, total = progress.bytes_concatenated, progress.bytes_to_concatenate
        self.say(f"Concatenated {done:,} of {total:,} bytes." if total else "Concatenation has not begun yet.")

    def _add_row(self, progress: Progress, elapsed_s: float, left_s: float | None) -> None:
        if elapsed_s < EVERY_S:
            return  # a file in two folders of its own, for what the end of the job says in any case
        now = datetime.now(UTC).isoformat(timespec="microseconds").removesuffix("+00:00")
        total = str(progress.scheduled) if progress.listing_done else "N/A"
        remaining = "N/A" if left_s is None else f"{left_s:.1f}"
        row = f"{now},{total},{progress.scheduled},{progress.decided},{progress.failed},{elapsed_s:.1f},{remaining}\n"
        append_text(self._table, row if self._table.exists() else _COLUMNS + row)
