"""Reports of a job: its progress, what each try took, and why it ended as it did (reference §5)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from parallelrun_core.folder.engine_log import EngineLog
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.records import JobResult
from parallelrun_core.folder.storage_report import RequestReport
from parallelrun_core.layout import Logs
from parallelrun_core.service.pacing import Every
from parallelrun_core.spec import JobSpec
from parallelrun_core.wire.data_warnings import WarningTotals
from parallelrun_core.wire.masking import Mask
from parallelrun_core.wire.progress import Progress
from parallelrun_master.policy.error_groups import ErrorGroups
from parallelrun_master.reports.files import replace_text
from parallelrun_master.reports.overview import EVERY_S, Overview
from parallelrun_master.reports.result import how_it_ended, write_job_result, write_user_errors
from parallelrun_master.reports.summaries import Summaries
from parallelrun_master.reports.tries import TryReport

__all__ = ["Reports"]

_README: Final = Path(__file__).with_name("readme.txt")
"""The text that says what is where below logs/."""


class Reports:
    """All that a leader writes below logs/ in one term. What doesn't fit on a full disk is lost, and fails nothing.

    Args:
        mask: hides secrets in all of it.
    """

    def __init__(self, folder: JobFolder, spec: JobSpec, term: int, mask: Mask) -> None:
        self.mask = mask
        self.log = EngineLog(folder.logs, f"master_role.{term}", level=spec.logging_level)
        self.overview = Overview(folder.logs)
        self._folder = folder
        self._spec = spec
        self._summaries = Summaries(folder.logs)
        self.tries = TryReport(folder.logs, self.mask, self._summaries)
        self._storage = RequestReport(folder.logs, "master")
        self._due = Every(EVERY_S)
        self._errors_written = 0
        self._warnings_written: list[str] = []

    def begin(self) -> None:
        replace_text(self._folder.logs / _README.name, _README.read_text(encoding="utf-8"))

    def say(self, text: str) -> None:
        """A change of phase, for the overview and the leader's log."""
        self.overview.say(text)
        self.log.info(text)

    def refresh(
        self,
        progress: Progress,
        errors: ErrorGroups,
        elapsed_s: float,
        now: float,
        warnings: Callable[[], WarningTotals] = WarningTotals,
    ) -> None:
        """Write what is written now and then while mini-batches are processed.

        Args:
            warnings: sums up those about the data.
        """
        self._summaries.step()
        if self._due.is_due(now):
            self.overview.progress(progress, elapsed_s)
            self._bring_up_to_date(errors)
            self.write_warnings(warnings())

    def write_warnings(self, warnings: WarningTotals) -> None:
        """Write logs/warnings.txt, if there is anything new to say about the data."""
        lines = warnings.lines()
        if lines != self._warnings_written:
            self._warnings_written = lines
            replace_text(Logs(self._folder.logs).warnings, "".join(f"{line}\n" for line in lines))

    def refresh_concatenation(self, progress: Progress, now: float) -> None:
        """Write how much of the output is there, now and then while it is put together."""
        if self._due.is_due(now):
            self.overview.concatenation(progress)

    def _bring_up_to_date(self, errors: ErrorGroups) -> None:
        self.tries.flush()
        self._summaries.write()
        self._storage.write()
        if errors.count != self._errors_written:
            self._errors_written = errors.count
            write_user_errors(self._folder.logs, errors)

    def conclude(self, result: JobResult, errors: ErrorGroups) -> None:
        """The job has ended, though a worker may still report its shutdown()."""
        while self._summaries.step():
            pass
        self._bring_up_to_date(errors)
        write_job_result(self._folder.logs, result, errors, self._spec)
        if result.started is not None:  # the last line of those written now and then
            self.overview.progress(result.progress, result.ended - result.started)
        self.say(f"The job {how_it_ended(result)}.")

    def close(self) -> None:
        """The leader's term is over."""
        self.tries.close()
        self._summaries.write()
