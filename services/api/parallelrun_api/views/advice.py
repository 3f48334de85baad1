"""Advice on a job, as the API shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from parallelrun_core.adviser.asked import parse_what_if
from parallelrun_core.errors import Conflict

if TYPE_CHECKING:
    from parallelrun_core.adviser.evidence import Evidence
    from parallelrun_core.folder.job_folder import JobFolder


def advice_on(folder: JobFolder, min_saving_s: float) -> str:
    """The advice as JSON.

    Raises:
        NotFound: there is no such job.
        Conflict: it is a pipeline.
    """
    from parallelrun_core.adviser.advice import Thresholds
    from parallelrun_core.adviser.advising import advise

    return msgspec.json.encode(advise(_evidence(folder), Thresholds(seconds=min_saving_s))).decode()


def curve_for(folder: JobFolder, what_if: str, price: float | None) -> str:
    """A curve as JSON.

    Raises:
        NotFound: there is no such job.
        Conflict: it is a pipeline, or has no measurements yet.
        InvalidInput: what is asked for has no such form.
    """
    setting, values = parse_what_if(what_if)
    from parallelrun_core.adviser.what_if import curve_of

    return msgspec.json.encode(curve_of(_evidence(folder), setting, values, price=price)).decode()


def _evidence(folder: JobFolder) -> Evidence:
    # Numpy is imported with the first question.
    from parallelrun_core.adviser.reading.evidence import evidence_of

    if folder.record().is_pipeline:
        raise Conflict(f"Job {folder.job_id} is a pipeline: ask for advice on the job of one of its `steps`.")
    return evidence_of(folder)
