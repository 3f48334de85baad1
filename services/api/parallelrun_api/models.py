"""The answers of the API: the schemas of `docs/openapi.json`.

Progress and failures are those of `parallelrun_core`, field by field, which `tests/unit/api/test_openapi.py` checks: a
schema with descriptions can only be made from pydantic's models, which other services shall not need.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from parallelrun_core.states import JobState, NodeState, StepState

Time = str
"""RFC 3339, UTC, milliseconds."""

_TIME_EXAMPLE = "2026-11-21T09:30:00.000Z"
_JOB_ID_EXAMPLE = "job_01kav3x8n2h7q5m9c4t6"


class _Answer(BaseModel):
    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)


class ProblemEntry(_Answer):
    """One wrong field."""

    pointer: str = Field(examples=["/mini_batch_sise"])
    """Where it is: a JSON pointer into the job spec, or `/query/…`, `/header/…`."""
    message: str = Field(examples=["unknown field"])
    hint: str | None = Field(default=None, examples=["did you mean 'mini_batch_size'?"])


class Problem(_Answer):
    """An error (RFC 9457)."""

    type: str = Field(examples=["urn:parallelrun:problem:invalid_input"])
    title: str = Field(examples=["The request is not valid."])
    status: int = Field(examples=[422])
    detail: str
    instance: str = Field(default="", examples=["/v1/jobs"])
    """The path of the request."""
    code: str = Field(examples=["invalid_input"])
    """Stable; for programs."""
    errors: list[ProblemEntry] = []
    """All wrong fields at once."""
    trace_id: str | None = None
    """Only with status 500: finds the error in the server's log."""


class Progress(_Answer):
    """How far a job is. Counts are mini-batches, unless the name says otherwise."""

    scheduled: int = 0
    """Found so far; the total once `listing_done`."""
    listing_done: bool = False
    published: int = 0
    running: int = 0
    """With a worker: at most one each, though agents hold more."""
    preparing: int = 0
    """Nodes that are building the Python environment of the workers."""
    done: int = 0
    failed: int = 0
    empty: int = 0
    """Those of `done` without any item: ranges of a table in which no record begins."""
    resumed: int = 0
    """Those of `done` whose rows were taken over from an earlier job (`resume_from`)."""
    retried: int = 0
    """Tries that failed and were followed by another."""
    lost: int = 0
    """Deliveries that ended because their node was lost."""
    bytes_shuffled: int = 0
    """Progress of grouping a table's rows by keys before it is cut; of `bytes_to_shuffle`."""
    bytes_to_shuffle: int = 0
    items_scheduled: int = 0
    """Found so far; for a table, the rows that were read."""
    items_done: int = 0
    items_failed: int = 0
    rows: int = 0
    bytes_concatenated: int = 0
    bytes_to_concatenate: int = 0


class ErrorCount(_Answer):
    """Tries that failed in the same way: with the same type of exception, at the same line of the user's code."""

    category: str
    message: str
    """Of the first of them."""
    count: int
    sample_mini_batches: list[int] = []
    log: str = ""
    """The log that has the first of them in full: a path below `links.logs`."""


class Failure(_Answer):
    """Why a job failed."""

    code: str = Field(examples=["error_threshold"])
    summary: str
    error_category: str = ""
    """Of the first cause."""
    first_cause: str = ""
    traceback: str = ""
    sample_mini_batches: list[int] = []
    log: str = ""
    """The log to open first: a path below `links.logs`."""
    hint: str = ""
    errors: list[ErrorCount] = []
    """The five most frequent errors."""


class OutputFile(_Answer):
    """The file with all rows."""

    path: str
    bytes: int
    sha256: str
    order: str
    """`sorted`, or `listing` when an input folder was too large to be sorted."""


JobType = Literal["parallel", "command", "pipeline"]


class ParentStep(_Answer):
    """Which step of which pipeline a job is."""

    job: str = Field(examples=[_JOB_ID_EXAMPLE])
    step: str = Field(examples=["score"])


class PipelineStep(_Answer):
    """One step of a pipeline."""

    name: str = Field(examples=["score"])
    type: JobType
    state: StepState
    reused: bool = False
    """It has not run: `job` is an earlier one, which did the same, and whose outputs are taken."""
    needs: list[str] = []
    """The steps that must have ended before it can begin."""
    job: str | None = Field(default=None, examples=[_JOB_ID_EXAMPLE])
    """The job that runs it, once there is one."""
    link: str | None = None
    """The path of that job."""
    job_state: JobState | None = None
    progress: Progress | None = None
    started: Time | None = None
    ended: Time | None = None
    why: str = ""
    """Why it has failed, is skipped, or was run again."""


class NamedOutput(_Answer):
    """One output of a pipeline."""

    name: str
    type: Literal["uri_folder", "uri_file"]
    step: str | None
    """The step that makes it; null: none does."""
    path: str | None
    """The folder, file or URL, once the job that makes it has begun."""


class Links(_Answer):
    """Paths with more about a job."""

    self: str
    events: str
    mini_batches: str
    logs: str
    outputs: str
    metrics: str
    cancel: str


class Job(_Answer):
    """One job."""

    id: str = Field(examples=[_JOB_ID_EXAMPLE])
    type: JobType
    name: str
    state: JobState
    version: int
    """Grows with every change that a watcher may want to see; that of a pipeline not with the progress of its steps."""
    parent: ParentStep | None = None
    """The pipeline of which it is a step, if it is one."""
    submitted: Time = Field(examples=[_TIME_EXAMPLE])
    started: Time | None = None
    ended: Time | None = None
    progress: Progress
    failure: Failure | None = None
    output: OutputFile | None = None
    warnings: list[str] = []
    """Warnings about the output of a completed job: rows with line breaks, columns that differ, …"""
    metrics: dict[str, bool | int | float | str | None] = {}
    """Of a job that has ended: the last value of each metric that its script has logged, of the first fifty."""
    spec: dict[str, Any]
    """What was submitted; the values of `environment_variables` are masked. In a list of jobs, without `steps`."""
    steps: list[PipelineStep] = []
    """Of a pipeline, in an order in which they can run; not in a list of jobs."""
    outputs: list[NamedOutput] = []
    """Of a pipeline; not in a list of jobs."""
    notes: list[str] = []
    """Fields of the submitted document that have no effect here, or work differently than in Azure ML."""
    links: Links


class Datastore(_Answer):
    """A named place in an object store."""

    name: str = Field(examples=["images"])
    type: Literal["s3", "gcs", "azure_blob", "azure_data_lake_gen2"]
    location: str = Field(examples=["s3://our-images"])
    """The URL that paths in it begin from."""
    access: Literal["node", "secret", "anonymous"]
    """Where credentials come from: what the nodes have by themselves, a file in their folders of secrets, nowhere."""
    definition: dict[str, Any]
    """As it was given, without what is the same as by default."""


class DatastoreList(_Answer):
    """All datastores."""

    items: list[Datastore]


class JobPage(_Answer):
    """Some of the jobs, newest first."""

    items: list[Job]
    next_page_token: str | None = None
    """Pass it as `page_token` for the jobs that follow; null: there are none."""


class MiniBatchFailure(_Answer):
    """Why a mini-batch failed."""

    category: str = Field(examples=["RUN_EXCEPTION"])
    message: str
    traceback: str = ""


class MiniBatch(_Answer):
    """One mini-batch. One that is `ready` or `running` has few fields yet."""

    id: int
    status: Literal["done", "failed", "running", "ready"]
    tries: int | None = None
    """Since the job began, or was last reopened."""
    node: str | None = None
    process: str | None = None
    items: int | None = None
    rows: int | None = None
    failed_items: int | None = None
    started: Time | None = None
    elapsed_s: float | None = None
    """From the hand-over by the agent to the result."""
    run_s: float | None = None
    """In `run()` itself."""
    process_s: float | None = None
    """In `run()` and around it, in the worker."""
    peak_memory_bytes: int | None = None
    """The most memory that the worker process had meanwhile."""
    read_bytes: int | None = None
    """What the worker process read by system calls meanwhile. Mini-batches that follow each other within milliseconds
    are measured together: see `Peak Memory (MB)` and `Read (MB)` in docs/logs.md."""
    failure: MiniBatchFailure | None = None


class MiniBatchPage(_Answer):
    """Some of a job's mini-batches. A page may hold fewer than asked for, and still not be the last."""

    items: list[MiniBatch]
    next_page_token: str | None = None


class StorageRequests(_Answer):
    """What one process has asked of one object store by one operation, while it worked for a job."""

    node: str
    """A node; `master` lists, `concatenator` writes the output of rows."""
    store: str = Field(examples=["s3://bucket"])
    operation: Literal["list", "head", "get", "put", "upload", "copy", "delete"]
    """`upload`: to begin, complete or abort one in parts; each part is a `put`."""
    since: Time
    until: Time
    requests: int
    bytes: int
    failures: int
    """Calls that failed in the end."""
    throttled: int
    """Of those, the ones to which the store said that it has too much to do."""
    retries: int
    """As far as they are known: see docs/logs.md."""
    p50_ms: float
    p95_ms: float
    p99_ms: float
    mean_ms: float


class StorageReport(_Answer):
    """What a job has asked of object stores, by process. Nothing was, if there are no items."""

    items: list[StorageRequests]


class MetricPoint(_Answer):
    """One value of a metric."""

    time: Time
    """By the clock of the node."""
    value: Any
    step: int | None = None
    source: str
    """The node; of a pipeline, the step."""
    process: str


class Metric(_Answer):
    """What the entry script has logged under one name."""

    name: str
    count: int
    """How many values."""
    points: list[MetricPoint]
    """The last 500 of them, in the order of their times."""


class MetricReport(_Answer):
    """The metrics of a job, by name. None were logged, if there are no items."""

    items: list[Metric]
    left_out: int
    """Values that were too many, too long, or came too fast."""


class FileEntry(_Answer):
    """One file."""

    path: str = Field(examples=["user/stdout/node0/process000.stdout.txt"])
    bytes: int
    modified: Time


class OutputElsewhere(_Answer):
    """An output in an object store, which the server doesn't read: fetch it from there."""

    output: str
    """The name of the output; empty for that of the job, which has the rows."""
    url: str = Field(examples=["s3://bucket/out/parallel_run_step.txt"])


class FileList(_Answer):
    """The files below a folder, by path; so many that one answer can tell of."""

    items: list[FileEntry]
    truncated: bool = False
    """There are more, on the pages that follow."""
    next_page_token: str | None = None
    elsewhere: list[OutputElsewhere] = []
    """Outputs in object stores, on each page."""


class Finding(_Answer):
    """What a node has found out about itself."""

    level: Literal["ok", "warn", "bad"]
    what: str
    todo: str
    """What to do about it; empty if nothing is to be done."""


class NodeCheck(_Answer):
    """A node's answer to a request to check itself."""

    id: str
    """Of the request."""
    findings: list[Finding]
    """What is not as it should be, and what of the paths of the request can be read there."""


class NodeCheckAsked(_Answer):
    """All nodes were asked."""

    id: str
    """Nodes that have answered show a `check` with this id, after some seconds."""


class Node(_Answer):
    """One node."""

    node: str
    host: str
    slots: int
    """Workers that it runs at the same time."""
    busy: int
    state: NodeState
    version: str
    started: Time
    jobs: list[str]
    """The jobs that it works for."""
    workers_apart: bool
    """Whether user code runs as another user than the agent."""
    memory_bytes: int
    """All that the node has; 0: an agent of an earlier release doesn't say."""
    disk_free_bytes: int
    """Free where its workers have their working folders."""
    clock_ahead_s: float
    """How far its clock is ahead of Redis'; negative: behind."""
    check: NodeCheck | None
    """Its answer to the last `:check`, for a minute."""


class NodeList(_Answer):
    """All nodes, by name."""

    items: list[Node]


class Health(_Answer):
    """Whether the server is ready."""

    status: Literal["ok", "unavailable"]
    checks: dict[str, str] = {}
    """What was checked, and what is wrong with it."""
