"""Jobs, what they have made, and what is known of their mini-batches."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Literal

import msgspec

from parallelrun.models.waiting import Waiting
from parallelrun_core.wire.failure import ErrorCount, JobFailure
from parallelrun_core.wire.progress import Progress
from parallelrun_core.wire.states import TERMINAL


class Failure(JobFailure, kw_only=True, frozen=True):
    """Why a job failed: the first cause, and where to look. A server of another release may leave out fields."""

    code: str = ""
    summary: str = ""


class OutputFile(msgspec.Struct, kw_only=True, frozen=True):
    """The file with the rows of an append_row job."""

    path: str
    bytes: int = 0
    sha256: str = ""
    order: str = ""
    """`sorted`, or `listing` when a folder was too large to be sorted."""


class Step(msgspec.Struct, kw_only=True, frozen=True):
    """A step of a pipeline."""

    name: str
    type: str = "parallel"
    """parallel, command or pipeline."""
    loop: str | None = None
    """parallel_for or do_while, if its job is a loop, whose steps are its turns."""
    turns: int | None = None
    """Number of turns of a loop that have begun."""
    most_turns: int | None = None
    """Number of turns that there are, of a parallel_for, or that there may be, of a do_while."""
    state: str = "waiting"
    """waiting, running, completed, failed, canceled or skipped."""
    reused: bool = False
    """True if it has not run: `job` is an earlier one, which did the same, and whose outputs are taken."""
    needs: list[str] = []
    """The steps that must have ended before it can begin."""
    job: str | None = None
    """The id of the job that runs it, once there is one."""
    job_state: str | None = None
    progress: Progress | None = None
    started: str | None = None
    ended: str | None = None
    why: str = ""
    """Why it has failed, is skipped, or was run again."""


class StepOf(msgspec.Struct, kw_only=True, frozen=True):
    """The pipeline and the step that a job is of."""

    job: str
    step: str


class NamedOutput(msgspec.Struct, kw_only=True, frozen=True):
    """An output of a pipeline."""

    name: str
    type: str = "uri_folder"
    step: str | None = None
    """The step that makes it."""
    path: str | None = None
    """The folder, file or URL, as the server and the nodes name it, once the job that makes it has begun."""


class Pace(msgspec.Struct, kw_only=True, frozen=True):
    """Pace of a job, and what is left of it, when the server answered."""

    standing: str = ""
    """queued, waiting_for_workers, starting, running, finalizing or ended."""
    as_of: str = ""
    waited_s: float = 0.0
    """Seconds from the submission, or the last resume or retry, until a mini-batch first had a worker."""
    ran_s: float = 0.0
    """Seconds since then, until the end."""
    items_per_s: float | None = None
    """Items decided per second in the last minutes; of a job that has ended, in all of its last run."""
    mini_batches_per_s: float | None = None
    left_s: float | None = None
    ends: str | None = None


class Job(msgspec.Struct, kw_only=True, frozen=True):
    """A job as it was when the server answered."""

    id: str
    state: str
    """queued, processing, finalizing, completed, failed or canceled."""
    type: str = "parallel"
    """parallel, command or pipeline."""
    parent: StepOf | None = None
    """The pipeline of which it is a step, if it is one."""
    name: str = ""
    owner: str = ""
    """The person whose job it is: the name of a token. Empty: whoever runs the server."""
    version: int = 0
    submitted: str | None = None
    """RFC 3339, UTC; so are the other times."""
    started: str | None = None
    ended: str | None = None
    progress: Progress = msgspec.field(default_factory=Progress)
    summary: str = ""
    """Once it has ended: how, in one sentence. Empty of a server of an earlier release."""
    pace: Pace | None = None
    waiting: Waiting | None = None
    """The first thing that it waits for. None: it runs, has ended, or just begins; and in a list of jobs."""
    failure: Failure | None = None
    errors: list[ErrorCount] = []
    """Once it has ended: the errors that have cost the most items."""
    skipped: int = 0
    """Once it has ended: files that were left out of the inputs, with a warning."""
    output: OutputFile | None = None
    warnings: list[str] = []
    """Warnings about the output of a job that completed."""
    metrics: dict[str, Any] = {}
    """Once it has ended: the last value of each metric that its script has logged."""
    spec: dict[str, Any] = {}
    steps: list[Step] = []
    """The steps of a pipeline, in an order in which they can run. Empty in a list of jobs."""
    outputs: list[NamedOutput] = []
    """The outputs of a pipeline. Empty in a list of jobs."""
    paused: bool = False
    """True if somebody has paused it: nodes begin nothing more of it."""
    priority: str = "normal"
    """The priority that counts now: low, normal, high or urgent."""
    archived: bool = False
    """True if it is hidden from lists."""
    removed_at: str | None = None
    """Time when a rule of the operator will remove it. Empty in a list of jobs."""
    notes: list[str] = []
    """Notes on what in the submitted document has no effect here, or works differently than in Azure ML."""
    links: dict[str, Any] = {}

    @property
    def is_pipeline(self) -> bool:
        """Return whether it has steps, and no mini-batches."""
        return self.type == "pipeline"

    def step(self, name: str) -> Step:
        """Return one of a pipeline's steps.

        Raises:
            KeyError: it has no such step.
        """
        return {step.name: step for step in self.steps}[name]

    @property
    def has_ended(self) -> bool:
        """Return whether it has ended and its end is recorded. A canceled job is shown as such a moment earlier."""
        return self.state in TERMINAL and self.ended is not None

    def _repr_html_(self) -> str:
        """Return how it stands, for notebooks."""
        return self._repr_mimebundle_()["text/html"]

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        """Return the card, with text for front ends that show no HTML."""
        # By its name: what draws jobs is built upon them, and is loaded in notebooks only.
        bundle: dict[str, str] = import_module("parallelrun.progress.widget").bundle_of(self)
        return bundle


class FailedItem(msgspec.Struct, kw_only=True, frozen=True):
    """An item of a job that has failed for good."""

    item: str
    """Its path; of a table, the number of the row in its mini-batch."""
    mini_batch: int
    category: str = ""
    """The kind of its failure, such as `RUN_EXCEPTION`."""
    message: str = ""
    place: str = ""
    """The innermost line of the user's code, as in `score.py:17`; empty: none of it is to blame."""


class MiniBatch(msgspec.Struct, kw_only=True, frozen=True):
    """A mini-batch of a job. While it is `ready` or `running`, most fields are empty."""

    id: int
    status: str
    """ready, running, done or failed."""
    tries: int | None = None
    node: str | None = None
    process: str | None = None
    items: int | None = None
    first_input: str = ""
    """The first of its files; empty: nobody has asked for it."""
    rows: int | None = None
    failed_items: int | None = None
    started: str | None = None
    elapsed_s: float | None = None
    run_s: float | None = None
    process_s: float | None = None
    peak_memory_bytes: int | None = None
    """The most memory that the worker had meanwhile; docs/logs.md says how this and `read_bytes` are measured."""
    read_bytes: int | None = None
    minor_page_faults: int | None = None
    major_page_faults: int | None = None
    voluntary_context_switches: int | None = None
    involuntary_context_switches: int | None = None
    failure: dict[str, Any] | None = None
    """`category`, `message`, `traceback`."""


class MetricPoint(msgspec.Struct, kw_only=True, frozen=True):
    """A value of a metric."""

    time: str
    value: Any = None
    step: int | None = None
    source: str = ""
    """The node; of a pipeline, the step."""
    process: str = ""


class Metric(msgspec.Struct, kw_only=True, frozen=True):
    """The values that the entry script of a job has logged under one name."""

    name: str
    kind: Literal["metric", "param", "tag"] = "metric"
    """Params and tags are texts that the script has logged with MLflow."""
    count: int = 0
    """Number of values."""
    points: list[MetricPoint] = []
    """The last ones, in the order of their times."""


class RemoteFile(msgspec.Struct, kw_only=True, frozen=True):
    """A log or an output of a job."""

    path: str
    bytes: int
    modified: str | None = None
