"""Fail fast: when a job is given up because all of its mini-batches fail alike. Pure, no I/O.

A script with a mistake fails with each mini-batch, and so does one that lacks a file or a package. Nobody needs to wait
for the last of them. But a bad stretch of the input looks the same from within: so one mini-batch from the middle and
one from the end of the input are run out of order before the job is given up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from parallelrun_core.spec import JobSpec
from parallelrun_core.wire.error_kinds import Kind, cause_of, exception_of, in_words, short_place
from parallelrun_core.wire.failure import JobFailure, fewest_failures
from parallelrun_core.wire.masking import Mask
from parallelrun_core.wire.outcome import Outcome
from parallelrun_core.wire.progress import Progress
from parallelrun_master.policy.error_groups import ErrorGroups, with_cause

_MOST_CAUSES: Final = 20_000
"""Failed mini-batches after which nothing is looked at any more."""
_GO_ON = "to run all of it nevertheless, set fail_fast: false"


class FailFast:
    """Watches the failures of a job as long as nothing has succeeded.

    Each leader counts from zero: a failover costs some more failures.

    Args:
        progress: kept up to date by the ledger, read here.
        mask: hides secrets in messages.
    """

    def __init__(self, spec: JobSpec, progress: Progress, mask: Mask | None = None) -> None:
        self._fails = bool(spec.fail_fast)
        self._progress = progress
        self._errors = ErrorGroups(mask)
        self._causes: dict[int, Kind] = {}
        self._counts: Counter[Kind] = Counter()
        self._words: dict[Kind, str] = {}
        self._probes: tuple[int, ...] = ()
        self._is_over = spec.fail_fast is None or bool(spec.command)

    @property
    def is_open(self) -> bool:
        """Return whether nothing has succeeded yet, and the job may still be given up."""
        return not self._is_over and not self._progress.done

    @property
    def may_give_up(self) -> bool:
        """Return whether something has failed, nothing has succeeded, and the job may still be given up."""
        return bool(self._causes) and self._fails and self.is_open

    def observe(self, outcomes: Iterable[Outcome]) -> None:
        """Take note of mini-batches that have failed for good, or would have if their items were not run apart."""
        if not self.is_open:
            return
        for outcome in outcomes:
            if outcome.failure is None or outcome.mini_batch in self._causes:
                continue
            cause = cause_of(outcome.failure)
            self._causes[outcome.mini_batch] = cause
            self._counts[cause] += 1
            self._errors.add(outcome)
            if cause not in self._words:
                category, place = outcome.failure.category, short_place(outcome.failure.traceback)
                self._words[cause] = in_words(category, exception_of(outcome.failure), place)
        self._is_over = len(self._causes) > _MOST_CAUSES

    def probes(self, scheduled: int, workers: int) -> tuple[int, ...]:
        """Return the mini-batches to run out of order now: once, when half of the failures are there.

        Args:
            scheduled: how many are listed.
            workers: processes that the job has.
        """
        fewest = fewest_failures(workers)
        if self._probes or not self._fails or scheduled < fewest or 2 * len(self._causes) < fewest:
            return ()
        self._probes = scheduled // 2, scheduled - 1
        return self._probes

    def verdict(self, workers: int) -> JobFailure | None:
        """Return the failure of a job that is given up."""
        cause = self._common_cause(workers) if self._fails and self._probes else None
        if cause is None or not self._is_everywhere(cause):
            return None
        self._is_over = True
        summary = (
            f"Nothing has succeeded, and {self._counts[cause]:,} mini-batches have failed alike, among them one from "
            f"the middle and one from the end of the input: {self._words[cause]}."
        )
        return with_cause(JobFailure(code="FAIL_FAST", summary=summary, hint=_GO_ON), self._errors)

    def remark(self, workers: int) -> str:
        """Return once what would have become of a job that is not to be given up; empty: nothing else, so far."""
        cause = None if self._fails or self._is_over else self._common_cause(workers)
        if cause is None:
            return ""
        self._is_over = True
        return (
            f"Nothing had succeeded when {self._counts[cause]:,} mini-batches had failed alike ({self._words[cause]}): "
            "with fail_fast: true, the job would have tried one from the middle and one from the end of the input, and "
            "failed if these had failed like that, too"
        )

    def _is_everywhere(self, cause: Kind) -> bool:
        """Return whether those from the middle and the end of the input have failed with this cause, too."""
        return all(self._causes.get(probe) == cause for probe in self._probes)

    def _common_cause(self, workers: int) -> Kind | None:
        """Return the cause with which enough have failed."""
        cause, count = self._counts.most_common(1)[0] if self._counts else (None, 0)
        return cause if count >= fewest_failures(workers) else None
