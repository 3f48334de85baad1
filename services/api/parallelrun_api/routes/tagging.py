"""Change the tags of jobs."""

from __future__ import annotations

from typing import Annotated

from fastapi import Response
from pydantic import Field, StringConstraints, model_validator

from parallelrun_api.context import Ctx
from parallelrun_api.http.answers import json_answer
from parallelrun_api.models import Asked
from parallelrun_api.routes.responses import JobId
from parallelrun_api.routes.router import Operations
from parallelrun_core.answers.jobs import Job
from parallelrun_core.errors import InvalidInput
from parallelrun_core.folder.job_folder import job_folder
from parallelrun_core.folder.tags import tags_of, write_tags

router = Operations("jobs")
MOST_TAGS = 100
"""A job has at most so many once they are changed."""
TagName = Annotated[str, StringConstraints(min_length=1, max_length=256, pattern=r"^[^=\x00]+$")]
TagValue = Annotated[str, StringConstraints(max_length=1024, pattern=r"^[^\x00]*$")]


class TagChange(Asked):
    """Changes of the tags of a job."""

    set: dict[TagName, TagValue] = Field(default={}, max_length=MOST_TAGS)
    """Tags that the job is to have, each with its value; the value may be empty."""
    remove: list[TagName] = Field(default=[], max_length=MOST_TAGS)
    """Names of tags that the job is to have no more; a name that it doesn't have changes nothing."""

    @model_validator(mode="after")
    def _is_one_thing(self) -> TagChange:
        if both := sorted({*self.set}.intersection(self.remove)):
            raise ValueError(f"{both[0]!r} is in `set` and in `remove`")
        return self


@router.operation("POST /jobs/{job_id:job}:tag", "Change the tags of a job", Job, (400, 403, 404), "It has these tags.")
def tag(job_id: JobId, context: Ctx, change: TagChange) -> Response:
    """Set and remove tags of a job, also of one that has ended. Other tags stay as they are."""
    context.jobs.get(job_id)  # a job that was deleted has no tags
    folder = job_folder(context.jobs.root, job_id)
    earlier = tags_of(folder, folder.record().spec)
    changed = {name: value for name, value in {**earlier, **change.set}.items() if name not in change.remove}
    if len(changed) > MOST_TAGS:
        raise InvalidInput(f"Job {job_id} would have {len(changed)} tags, more than {MOST_TAGS}: remove some.")
    if changed != earlier:
        write_tags(folder, changed)
    return json_answer(context.with_waiting(context.jobs.get(job_id)))
