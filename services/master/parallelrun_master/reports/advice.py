"""What would make the job faster next time, for job_result.txt."""

from __future__ import annotations

from typing import Final

from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.records import JobResult
from parallelrun_core.service.telemetry import logger

log = logger()

_LEAST_S: Final = 60.0
"""In a shorter job, nothing can be worth saying."""
_MOST_TRIES: Final = 200_000
"""Of more, `parallelrun job advise` tells: no job is to end more than half a second later for this."""


def lines_of_advice(folder: JobFolder, result: JobResult) -> list[str]:
    """A section with the findings; none if there is nothing to say. No job fails for it."""
    progress = result.progress
    seconds = result.ended - result.started if result.started is not None else 0.0
    if seconds < _LEAST_S or not 0 < progress.decided + progress.retried <= _MOST_TRIES:
        return []
    try:
        # Numpy is imported by the few leaders that get here.
        from parallelrun_core.adviser.advising import advise
        from parallelrun_core.adviser.reading.evidence import evidence_of
        from parallelrun_core.adviser.words import lines_of

        lines = lines_of(advise(evidence_of(folder, result)))
    except Exception as error:  # a mistake in here must not cost anybody a result
        log.warning("no_advice", job_id=folder.job_id, error=repr(error))
        return []
    return ["", "What would make it faster (parallelrun job advise):", *lines] if lines else []
