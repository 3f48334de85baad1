"""Jobs, with the steps of pipelines, and pages of them."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from parallelrun_api.models.answer import JOB_ID_EXAMPLE, TIME_EXAMPLE, Answer, Time
from parallelrun_api.models.waiting import Waiting
from parallelrun_core.wire.states import JobState, StepState


class Progress(Answer):
    """Progress of a job. Counts are mini-batches, unless the name says otherwise."""

    scheduled: int = 0
    """Found so far; the total once `listing_done`."""
    listing_done: bool = False
    published: int = 0
    running: int = 0
    """Mini-batches with a worker: at most one each, though agents hold more."""
    preparing: int = 0
    """Nodes that are building the Python environment of the workers."""
    nodes: int = 0
    """Nodes of the job's compute that are there for it."""
    nodes_wanted: int = 0
    """Nodes that it has or waits for; 0: it runs on no compute."""
    nodes_why: str = ""
    """Why there are fewer: what the compute's engine says."""
    done: int = 0
    failed: int = 0
    empty: int = 0
    """Mini-batches of `done` without any item: ranges of a table in which no record begins."""
    resumed: int = 0
    """Mini-batches of `done` whose rows were taken over from an earlier job (`resume_from`)."""
    retried: int = 0
    """Tries that failed and were followed by another."""
    lost: int = 0
    """Deliveries that ended because their node was lost."""
    bytes_shuffled: int = 0
    """Progress of grouping a table's rows by keys before it is cut; of `bytes_to_shuffle`."""
    bytes_to_shuffle: int = 0
    items_scheduled: int = 0
    """Found so far; for a table, the rows that were read."""
    items_ahead: int = 0
    """Found as well, and in no mini-batch yet: of a job that chooses the size of these (`mini_batch_size: auto`)."""
    all_found: bool = False
    """True if such a job has found all items, though not all of them are in mini-batches."""
    chosen_size: int = 0
    """Number of items a mini-batch of such a job has now; 0: it doesn't choose."""
    chosen_why: str = ""
    items_done: int = 0
    items_failed: int = 0
    """As Azure ML counts them: all items of mini-batches that failed, and those for which `run()` returned no row."""
    items_short: int = 0
    """Of `items_failed`: `run()` returned no row for them, and nothing was raised."""
    items_estimated: int = 0
    """Of `items_failed`: an estimate, for mini-batches that failed before anybody had counted their items."""
    waits_s: dict[str, float] = Field(default_factory=dict)
    """Seconds for which mini-batches that are done have waited for permits, by limit, all added up."""
    waits_of_s: float = 0.0
    """Seconds that those of them took which have asked for permits, waits included, all added up."""
    rows: int = 0
    bytes_concatenated: int = 0
    bytes_to_concatenate: int = 0
    workers: int = 0
    """Worker processes that nodes have for the job, those still in `init()` included."""
    init_since: float = 0.0
    """Start of the worker that is in `init()` for longest, in seconds since the epoch; 0: none is."""
    init_limit_s: float = 0.0
    """Seconds that `init()` may take; 0: not known yet."""
    longest: int = -1
    """Id of the mini-batch that runs for longest; -1: not known."""
    longest_since: float = 0.0
    """Time when that one began, in seconds since the epoch."""
    queued_at: float = 0.0
    """Time of the submission, or of the last resume or retry, in seconds since the epoch; 0: a leader of an earlier
    release."""
    worked_from: float = 0.0
    """Time at which a mini-batch first had a worker since `queued_at`, in seconds since the epoch; 0: none has had."""
    decided_before: int = 0
    """Mini-batches that were decided before `queued_at`: they say nothing about the pace."""
    items_before: int = 0
    recent_from: float = 0.0
    """Begin of the last minutes in which mini-batches were decided, in seconds since the epoch."""
    recent_to: float = 0.0
    """Time of the last change of the two counts that follow."""
    recent_mini_batches: int = 0
    """Mini-batches decided from `recent_from` on."""
    recent_items: int = 0


Standing = Literal["queued", "waiting_for_workers", "starting", "running", "finalizing", "ended"]


class Pace(Answer):
    """Pace of a job, and what is left of it, at the time of the answer."""

    standing: Standing
    """`waiting_for_workers`: no node has a worker for it; `starting`: its workers begin, with their environment and
    `init()`."""
    as_of: Time
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


class ErrorCount(Answer):
    """Tries that failed in the same way: with the same type of exception, at the same line of the user's code."""

    category: str
    message: str
    """The message of the first error; if others have another one, with `…` for names, paths and numbers."""
    count: int
    """Number of tries."""
    sample_mini_batches: list[int] = Field(default=[])
    log: str = ""
    """The log that has the first of them in full: a path below `links.logs`."""
    exception: str = Field(default="", examples=["ValueError"])
    """The type of the exception; empty: the script has raised none."""
    place: str = Field(default="", examples=["score.py:17"])
    """The innermost line of the user's code; empty: none of it is to blame."""
    mini_batches: int = 0
    """Number of mini-batches that have failed with it for good."""
    items: int = 0
    """Number of items that have failed with it for good, as far as they were counted."""


class Failure(Answer):
    """Why a job failed."""

    code: str = Field(examples=["error_threshold"])
    summary: str
    error_category: str = ""
    """The category of the first cause."""
    first_cause: str = ""
    traceback: str = ""
    sample_mini_batches: list[int] = Field(default=[])
    log: str = ""
    """The log to open first: a path below `links.logs`."""
    hint: str = ""
    errors: list[ErrorCount] = Field(default=[])
    """The five most frequent errors."""


class OutputFile(Answer):
    """The file with all rows."""

    path: str
    bytes: int
    sha256: str
    order: str
    """`sorted`, or `listing` when an input folder was too large to be sorted."""


JobType = Literal["parallel", "command", "pipeline"]
LoopType = Literal["parallel_for", "do_while"]


class ParentStep(Answer):
    """The pipeline and the step that a job is of."""

    job: str = Field(examples=[JOB_ID_EXAMPLE])
    step: str = Field(examples=["score"])


class PipelineStep(Answer):
    """A step of a pipeline."""

    name: str = Field(examples=["score"])
    type: JobType
    loop: LoopType | None = None
    """The kind of loop that it is, whose turns are the steps of its job; null: it runs once."""
    turns: int | None = Field(default=None, ge=0)
    """Number of turns of a loop that have begun; null: it is none, or has not begun."""
    most_turns: int | None = Field(default=None, ge=1)
    """Number of turns that there are, of a `parallel_for`, or that there may be, of a `do_while`."""
    state: StepState
    reused: bool = False
    """True if it has not run: `job` is an earlier one, which did the same, and whose outputs are taken."""
    needs: list[str] = Field(default=[])
    """The steps that must have ended before it can begin."""
    job: str | None = Field(default=None, examples=[JOB_ID_EXAMPLE])
    """The job that runs it, once there is one."""
    link: str | None = None
    """The path of that job."""
    job_state: JobState | None = None
    progress: Progress | None = None
    started: Time | None = None
    ended: Time | None = None
    why: str = ""
    """Why it has failed, is skipped, or was run again."""


class NamedOutput(Answer):
    """An output of a pipeline."""

    name: str
    type: Literal["uri_folder", "uri_file"]
    step: str | None
    """The step that makes it; null: none does."""
    path: str | None
    """The folder, file or URL, once the job that makes it has begun."""


class Links(Answer):
    """Paths with more about a job."""

    self: str
    events: str
    mini_batches: str
    logs: str
    outputs: str
    metrics: str
    cancel: str


class Job(Answer):
    """A job."""

    id: str = Field(examples=[JOB_ID_EXAMPLE])
    type: JobType
    name: str
    owner: str = ""
    """The person whose job it is: the name of a token. Empty: whoever runs the server."""
    state: JobState
    version: int
    """Grows with every change that a watcher may want to see; that of a pipeline not with the progress of its steps."""
    parent: ParentStep | None = None
    """The pipeline of which it is a step, if it is one."""
    submitted: Time = Field(examples=[TIME_EXAMPLE])
    started: Time | None = None
    ended: Time | None = None
    progress: Progress
    summary: str = ""
    """How it ended, as `completed, but 150 of 5,000 items failed (3 %): ValueError in score.py:17`; empty before."""
    pace: Pace | None = None
    """Null: of a pipeline, whose steps have a pace each."""
    waiting: Waiting | None = None
    """The first thing that it waits for; null: it runs, has ended, or just begins. Not in a list of jobs."""
    failure: Failure | None = None
    errors: list[ErrorCount] = Field(default=[])
    """Once it has ended: the errors that have cost the most items, up to five."""
    skipped: int = 0
    """Once it has ended: files that were left out of the inputs, with a warning."""
    output: OutputFile | None = None
    warnings: list[str] = Field(default=[])
    """Warnings about the output of a completed job: rows with line breaks, columns that differ, …"""
    metrics: dict[str, bool | int | float | str | None] = Field(default={})
    """The last value of each metric that the script of a job that has ended has logged, of the first fifty."""
    spec: dict[str, Any]
    """The submitted spec; the values of `environment_variables` are masked. In a list of jobs, without `steps`."""
    steps: list[PipelineStep] = Field(default=[])
    """The steps of a pipeline, in an order in which they can run; not in a list of jobs."""
    outputs: list[NamedOutput] = Field(default=[])
    """The outputs of a pipeline; not in a list of jobs."""
    paused: bool = False
    """True if somebody has paused it: nodes begin nothing more of it."""
    priority: Literal["low", "normal", "high", "urgent"] = "normal"
    """The priority that counts now: the submitted one, or the one that it was given since."""
    archived: bool = False
    """True if it is hidden from lists."""
    removed_at: Time | None = None
    """Time when a rule of the operator will remove it; null: none will within the next week. Not in a list of jobs."""
    notes: list[str] = Field(default=[])
    """Fields of the submitted document that have no effect here, or work differently than in Azure ML."""
    links: Links


class JobPage(Answer):
    """Some of the jobs, newest first."""

    items: list[Job]
    next_page_token: str | None = None
    """Pass it as `page_token` for the jobs that follow; null: there are none."""
