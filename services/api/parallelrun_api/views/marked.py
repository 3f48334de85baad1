"""The marks of retention on a job as it is shown."""

from __future__ import annotations

import msgspec

from parallelrun_core.answers import jobs as answers
from parallelrun_core.answers.answer import rfc3339
from parallelrun_core.errors import Conflict
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.tags import tags_of
from parallelrun_core.retention.marks import Marks

_STRIPPED = {
    "parts": "the rows in its part files were removed: it can't be resumed or retried, nor its rows be taken over",
    "logs": "the logs of its workers were removed; its reports, errors and metrics stay",
}


def check_has_parts(folder: JobFolder) -> None:
    """Make sure that the part files of a job are there.

    Raises:
        Conflict: a rule of retention has removed them.
    """
    if Marks(folder).lacks_parts():
        raise Conflict(
            f"The part files of job {folder.job_id} were removed, some time after it had completed "
            "(PARALLELRUN_KEEP_PARTS_DAYS of the masters): submit it again."
        )


def with_marks(folder: JobFolder, job: answers.Job) -> answers.Job:
    marks = Marks(folder)
    changes: dict[str, object] = {}
    notes = list(job.notes)
    if marks.is_archived:
        changes["archived"] = True
    if (tags := tags_of(folder, job.spec)) != job.tags:
        changes["tags"] = tags
    if (notice := marks.notice) is not None:
        changes["removed_at"] = rfc3339(notice.removed_at)
        notes.append(
            f"It will be removed with its outputs on {rfc3339(notice.removed_at)}: {notice.why}. Fetch what you need "
            "of it before then: parallelrun job download."
        )
    if (stripped := marks.stripped) is not None:
        notes += [f"On {rfc3339(stripped.at)}, {_STRIPPED[kind]}." for kind in stripped.kinds if kind in _STRIPPED]
    return msgspec.structs.replace(job, **changes, notes=notes) if changes or notes != job.notes else job
