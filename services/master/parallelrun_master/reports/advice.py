"""Advice for job_result.txt: what would make the job faster next time."""

from __future__ import annotations

from typing import Final

from parallelrun_core.adviser.kept import keep_common_answers
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.records import JobResult
from parallelrun_core.service.telemetry import logger

log = logger()

LEAST_KEPT: Final = 10_000
"""Tries: what is computed of fewer takes no longer than to read it."""

_LEAST_S: Final = 60.0
"""In a shorter job, nothing can be worth saying."""


def lines_of_advice(folder: JobFolder, result: JobResult) -> list[str]:
    """A section with the findings; none if there is nothing to say. What takes long to compute is kept for the page.

    Takes a second or two and some hundred megabytes for any job (`core/adviser/reading/stretches.py`); nobody waits.
    """
    progress = result.progress
    seconds = result.ended - result.started if result.started is not None else 0.0
    tries = progress.decided + progress.retried
    if not tries or (seconds < _LEAST_S and tries < LEAST_KEPT):
        return []
    try:
        # Numpy is imported by the few leaders that get here.
        from parallelrun_core.adviser.advising import advise
        from parallelrun_core.adviser.reading.evidence import evidence_of
        from parallelrun_core.adviser.words import lines_of

        evidence = evidence_of(folder, result)
        advice = advise(evidence)
        if tries >= LEAST_KEPT:
            keep_common_answers(folder, evidence, advice)
        lines = lines_of(advice)
    except Exception as error:  # the job has ended well without
        log.warning("no_advice", job_id=folder.job_id, error=repr(error))
        return []
    return ["", "What would make it faster (parallelrun job advise):", *lines] if lines else []
