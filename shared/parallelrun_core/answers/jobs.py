"""Jobs, with the steps of pipelines, and pages of them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, field

from parallelrun_core.answers.answer import Answer, JobId, JobStateText, OpenEnum, StepStateText, Time
from parallelrun_core.answers.waiting import Waiting
from parallelrun_core.wire.failure import ErrorCount, JobFailure
from parallelrun_core.wire.progress import Progress
from parallelrun_core.wire.states import TERMINAL

Standing = Literal["queued", "waiting_for_workers", "starting", "running", "paused", "finalizing", "ended"]


class Pace(Answer, kw_only=True, frozen=True):
    """Pace of a job, and what is left of it, at the time of the answer."""

    standing: OpenEnum[Standing] = "queued"
    """`waiting_for_workers`: no node has a worker for it; `starting`: its workers begin, with their environment and
    `init()`."""
    as_of: Time = ""
    """Time of the answer."""
    waited_s: float = 0.0
    """Seconds from the submission, or the last resume or retry, until a mini-batch first had a worker; they grow while
    it waits."""
    ran_s: float = 0.0
    """Seconds since then, until the end."""
    items_per_s: float | None = None
    """Items decided per second in the last minutes; of a job that has ended, in all of its last run."""
    mini_batches_per_s: float | None = None
    left_s: float | None = None
    """Seconds until all is decided at this pace; null: not known yet."""
    ends: Time | None = None
    """Time at which it then ends."""


class OutputFile(Answer, kw_only=True, frozen=True):
    """The file with all rows."""

    path: str
    bytes: int = 0
    sha256: str = ""
    order: str = ""
    """`sorted`, or `listing` when an input folder was too large to be sorted."""


JobType = Literal["parallel", "command", "pipeline"]
LoopType = Literal["parallel_for", "do_while"]


class ParentStep(Answer, kw_only=True, frozen=True):
    """The pipeline and the step that a job is of."""

    job: JobId
    step: Annotated[str, Meta(examples=["score"])]


class PipelineStep(Answer, kw_only=True, frozen=True):
    """A step of a pipeline."""

    name: Annotated[str, Meta(examples=["score"])]
    type: OpenEnum[JobType] = "parallel"
    loop: OpenEnum[LoopType] | None = None
    """The kind of loop that it is, whose turns are the steps of its job; null: it runs once."""
    turns: int | None = None
    """Number of turns of a loop that have begun; null: it is none, or has not begun."""
    most_turns: int | None = None
    """Number of turns that there are, of a `parallel_for`, or that there may be, of a `do_while`."""
    state: StepStateText = "waiting"
    reused: bool = False
    """True if it has not run: `job` is an earlier one, which did the same, and whose outputs are taken."""
    needs: list[str] = []
    """The steps that must have ended before it can begin."""
    job: JobId | None = None
    """The job that runs it, once there is one."""
    link: str | None = None
    """The path of that job."""
    job_state: JobStateText | None = None
    progress: Progress | None = None
    started: Time | None = None
    ended: Time | None = None
    why: str = ""
    """Why it has failed, is skipped, or was run again."""


class NamedOutput(Answer, kw_only=True, frozen=True):
    """An output of a pipeline."""

    name: str
    type: OpenEnum[Literal["uri_folder", "uri_file"]] = "uri_folder"
    step: str | None = None
    """The step that makes it; null: none does."""
    path: str | None = None
    """The folder, file or URL, once the job that makes it has begun."""


class Links(Answer, kw_only=True, frozen=True):
    """Paths with more about a job."""

    self: str = ""
    events: str = ""
    mini_batches: str = ""
    logs: str = ""
    outputs: str = ""
    metrics: str = ""
    cancel: str = ""


class Job(Answer, kw_only=True, frozen=True):
    """A job."""

    id: JobId
    type: OpenEnum[JobType] = "parallel"
    name: str = ""
    owner: str = ""
    """The person whose job it is: the name of a token. Empty: whoever runs the server."""
    state: JobStateText
    version: int = 0
    """Grows with every change that a watcher may want to see; that of a pipeline not with the progress of its steps."""
    parent: ParentStep | None = None
    """The pipeline of which it is a step, if it is one."""
    submitted: Time = ""
    started: Time | None = None
    ended: Time | None = None
    progress: Progress = field(default_factory=Progress)
    summary: str = ""
    """Outcome, as `completed, but 150 of 5,000 items failed (3 %): ValueError in score.py:17`; empty before."""
    pace: Pace | None = None
    """Null: of a pipeline, whose steps have a pace each."""
    waiting: Waiting | None = None
    """The first thing that it waits for; null: it runs, has ended, or just begins. Not in a list of jobs."""
    failure: JobFailure | None = None
    errors: list[ErrorCount] = []
    """Once it has ended: the errors that have cost the most items, up to five."""
    skipped: int = 0
    """Once it has ended: files that were left out of the inputs, with a warning."""
    output: OutputFile | None = None
    warnings: list[str] = []
    """Warnings about the output of a completed job: rows with line breaks, columns that differ, …"""
    metrics: dict[str, bool | int | float | str | None] = {}
    """The last value of each metric that the script of a job that has ended has logged, of the first fifty."""
    spec: dict[str, Any] = {}
    """The submitted spec, also its tags of then; the values of `environment_variables` are masked. In a list of jobs,
    without `steps`."""
    tags: dict[str, str] = {}
    """The tags that it has now: the submitted ones, until somebody changes them."""
    steps: list[PipelineStep] = []
    """The steps of a pipeline, in an order in which they can run; not in a list of jobs."""
    outputs: list[NamedOutput] = []
    """The outputs of a pipeline; not in a list of jobs."""
    paused: bool = False
    """True if somebody has paused it: nodes begin nothing more of it."""
    priority: OpenEnum[Literal["low", "normal", "high", "urgent"]] = "normal"
    """The priority that counts now: the submitted one, or the one that it was given since."""
    archived: bool = False
    """True if it is hidden from lists."""
    removed_at: Time | None = None
    """Time when a rule of the operator will remove it; null: none will within the next week. Not in a list of jobs."""
    notes: list[str] = []
    """Fields of the submitted document that have no effect here, or work differently than in Azure ML."""
    links: Links = field(default_factory=Links)

    @property
    def is_pipeline(self) -> bool:
        """Return whether it has steps, and no mini-batches."""
        return self.type == "pipeline"

    @property
    def has_ended(self) -> bool:
        """Return whether it has ended and its end is recorded. A canceled job is shown as such a moment earlier."""
        return self.state in TERMINAL and self.ended is not None

    def step(self, name: str) -> PipelineStep:
        """Return one of a pipeline's steps.

        Raises:
            KeyError: it has no such step.
        """
        return {step.name: step for step in self.steps}[name]


class JobPage(Answer, kw_only=True, frozen=True):
    """Some of the jobs, newest first."""

    items: list[Job]
    next_page_token: str | None = None
    """Pass it as `page_token` for the jobs that follow; null: there are none."""
