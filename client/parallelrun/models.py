"""The server's answers as objects. Unknown fields are ignored."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import msgspec

from parallelrun_core.failure import JobFailure
from parallelrun_core.progress import Progress
from parallelrun_core.states import TERMINAL

__all__ = [
    "Asset",
    "BatchDeployment",
    "BatchEndpoint",
    "Compute",
    "ComputeNode",
    "ComputeStatus",
    "Datastore",
    "Failure",
    "Fire",
    "Job",
    "Metric",
    "MetricPoint",
    "MiniBatch",
    "NamedOutput",
    "Node",
    "OutputFile",
    "Progress",
    "RemoteFile",
    "Schedule",
    "Step",
    "StepOf",
]


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
    """One step of a pipeline."""

    name: str
    type: str = "parallel"
    """parallel, command or pipeline."""
    state: str = "waiting"
    """waiting, running, completed, failed, canceled or skipped."""
    reused: bool = False
    """It has not run: `job` is an earlier one, which did the same, and whose outputs are taken."""
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
    """Which step of which pipeline a job is."""

    job: str
    step: str


class NamedOutput(msgspec.Struct, kw_only=True, frozen=True):
    """One output of a pipeline."""

    name: str
    type: str = "uri_folder"
    step: str | None = None
    """The step that makes it."""
    path: str | None = None
    """The folder, file or URL, as the server and the nodes name it, once the job that makes it has begun."""


class Job(msgspec.Struct, kw_only=True, frozen=True):
    """One job as it was when the server answered."""

    id: str
    state: str
    """queued, processing, finalizing, completed, failed or canceled."""
    type: str = "parallel"
    """parallel, command or pipeline."""
    parent: StepOf | None = None
    """The pipeline of which it is a step, if it is one."""
    name: str = ""
    version: int = 0
    submitted: str | None = None
    """RFC 3339, UTC; so are the other times."""
    started: str | None = None
    ended: str | None = None
    progress: Progress = msgspec.field(default_factory=Progress)
    failure: Failure | None = None
    output: OutputFile | None = None
    warnings: list[str] = []
    """Warnings about the output of a job that completed."""
    metrics: dict[str, Any] = {}
    """Once it has ended: the last value of each metric that its script has logged."""
    spec: dict[str, Any] = {}
    steps: list[Step] = []
    """Of a pipeline, in an order in which they can run. Empty in a list of jobs."""
    outputs: list[NamedOutput] = []
    """Of a pipeline. Empty in a list of jobs."""
    notes: list[str] = []
    """What in the submitted document has no effect here, or works differently than in Azure ML."""
    links: dict[str, Any] = {}

    @property
    def is_pipeline(self) -> bool:
        """Whether it has steps, and no mini-batches."""
        return self.type == "pipeline"

    def step(self, name: str) -> Step:
        """One of a pipeline's steps.

        Raises:
            KeyError: it has no such step.
        """
        return {step.name: step for step in self.steps}[name]

    @property
    def has_ended(self) -> bool:
        """Whether it has ended and its end is recorded. A canceled job is shown as such a moment earlier."""
        return self.state in TERMINAL and self.ended is not None

    def _repr_html_(self) -> str:
        """How it stands, for notebooks."""
        return self._repr_mimebundle_()["text/html"]

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        """The same, with text for front ends that show no HTML."""
        # By its name: what draws jobs is built upon them, and is loaded in notebooks only.
        bundle: dict[str, str] = import_module("parallelrun.notebook.widget").bundle_of(self)
        return bundle


class MiniBatch(msgspec.Struct, kw_only=True, frozen=True):
    """One mini-batch of a job. While it is `ready` or `running`, most fields are empty."""

    id: int
    status: str
    """ready, running, done or failed."""
    tries: int | None = None
    node: str | None = None
    process: str | None = None
    items: int | None = None
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
    """One value of a metric."""

    time: str
    value: Any = None
    step: int | None = None
    source: str = ""
    """The node; of a pipeline, the step."""
    process: str = ""


class Metric(msgspec.Struct, kw_only=True, frozen=True):
    """What the entry script of a job has logged under one name."""

    name: str
    count: int = 0
    """How many values."""
    points: list[MetricPoint] = []
    """The last ones, in the order of their times."""


class Finding(msgspec.Struct, kw_only=True, frozen=True):
    """What a node has found out about itself."""

    level: str
    """ok; warn, if it could be better; bad, if it is to be mended."""
    what: str
    todo: str = ""


class NodeCheck(msgspec.Struct, kw_only=True, frozen=True):
    """A node's answer to a request to check itself."""

    id: str
    findings: list[Finding] = []


class NodePressure(msgspec.Struct, kw_only=True, frozen=True):
    """The part of the last minute, 0 to 1, in which something on a node waited for a resource (PSI)."""

    of: str
    """`cgroup`: in that of its agent, as in a container; `machine`: anywhere on it."""
    cpu: float = 0.0
    io: float = 0.0
    memory: float = 0.0


class NodeGpu(msgspec.Struct, kw_only=True, frozen=True):
    """One GPU of a node, or a part of one (MIG)."""

    device: str
    """As CUDA_VISIBLE_DEVICES names it."""
    name: str = ""
    utilization: float | None = None
    """The part of the time, 0 to 1, in which something ran on it lately."""
    memory_used_bytes: int | None = None
    memory_bytes: int | None = None


class Node(msgspec.Struct, kw_only=True, frozen=True):
    """One node of the cluster."""

    node: str
    state: str
    """ready; disk_full, while it waits for free space; draining, after it was asked to stop; lost."""
    slots: int = 0
    """How many workers it can run at the same time."""
    busy: int = 0
    host: str = ""
    version: str = ""
    started: str | None = None
    jobs: list[str] = []
    """The jobs that it works for."""
    workers_apart: bool = False
    """Whether user code runs as another user than the agent."""
    memory_bytes: int = 0
    """All that the node has; 0: a server of an earlier release doesn't say."""
    disk_free_bytes: int = 0
    """Free where its workers have their working folders."""
    clock_ahead_s: float = 0.0
    """How far its clock is ahead of Redis'."""
    compute: str = ""
    """The compute that it belongs to; empty: none."""
    ends_at: str | None = None
    """When its engine is going to end it."""
    pressure: NodePressure | None = None
    """None: its kernel doesn't measure it."""
    gpus: list[NodeGpu] = []
    """Those that workers get, if they can be measured there."""
    check: NodeCheck | None = None
    """Its answer to the last `check`, for a minute."""

    @property
    def is_alive(self) -> bool:
        return self.state != "lost"


class RemoteFile(msgspec.Struct, kw_only=True, frozen=True):
    """A log or an output of a job."""

    path: str
    bytes: int
    modified: str | None = None


class ComputeNode(msgspec.Struct, kw_only=True, frozen=True):
    """A node of a compute, as its provisioner sees it."""

    node: str
    stage: str
    """asked, pending, starting, ready, leaving, left or lost."""
    since: str = ""
    words: str = ""
    """The engine's own, on why it waits or has ended."""


class ComputeStatus(msgspec.Struct, kw_only=True, frozen=True):
    """How a compute stands, as the provisioner says."""

    at: str
    """When it said so."""
    wanted: int = 0
    """Nodes that its jobs can keep busy, within its limits."""
    ready: int = 0
    launching: int = 0
    """Asked for, and not there yet."""
    leaving: int = 0
    failures: int = 0
    """Launches that have failed in a row."""
    why: str = ""
    """What the engine said of the last one."""
    next_attempt: str | None = None
    """When it is asked again."""
    nodes: list[ComputeNode] = []
    plan: str = ""
    """Exactly what is sent to the engine for a node."""
    plans: dict[str, str] = {}
    """The same for nodes of images that jobs name, by the image."""


class Compute(msgspec.Struct, kw_only=True, frozen=True):
    """A named pool of like nodes."""

    name: str
    type: str
    """The kind: the engine that has its nodes."""
    min_instances: int = 0
    max_instances: int = 1
    is_default: bool = False
    """Whether it runs the jobs that name no compute."""
    definition: dict[str, Any] = {}
    """As it was given, without what is the same as by default."""
    status: ComputeStatus | None = None
    """None: no provisioner has said anything of it."""


class Datastore(msgspec.Struct, kw_only=True, frozen=True):
    """A named place in an object store."""

    name: str
    type: str
    """s3, gcs, azure_blob or azure_data_lake_gen2."""
    location: str = ""
    """The URL that paths in it begin from."""
    access: str = ""
    """Where credentials come from: `node`, `secret` (a file in the nodes' folders of secrets), or `anonymous`."""
    definition: dict[str, Any] = {}
    """As it was given; there is no secret in it."""


class Asset(msgspec.Struct, kw_only=True, frozen=True):
    """One version of an asset."""

    type: str
    """data, model, environment, component or code."""
    name: str
    version: str
    id: str = ""
    """How a job's document names it: `azureml:NAME:VERSION`."""
    created: str | None = None
    description: str = ""
    tags: dict[str, str] = {}
    properties: dict[str, str] = {}
    archived: bool = False
    """Hidden from lists and from `latest`."""
    content: dict[str, Any] = {}
    """What it is, which never changes. `path`, if there is one, is where its files are."""

    @property
    def path(self) -> str:
        """Where its files are; empty if it has none."""
        return str(self.content.get("path", ""))


class Fire(msgspec.Struct, kw_only=True, frozen=True):
    """What became of a time at which a schedule was due."""

    due: str
    """RFC 3339, UTC; so are the other times."""
    outcome: str
    """started; skipped, since an earlier job had not ended; missed, since it was too late; manual: somebody asked."""
    at: str = ""
    """When that was decided."""
    job_id: str | None = None
    """The job that was made."""
    passed_over: int = 0
    """Times before it for which nothing was done, up to 1,000."""
    why: str = ""
    """Why no job was made."""


class Schedule(msgspec.Struct, kw_only=True, frozen=True):
    """A schedule as it was when the server answered."""

    name: str
    enabled: bool = True
    trigger: dict[str, Any] = {}
    display_name: str = ""
    description: str = ""
    tags: dict[str, str] = {}
    missed_runs: str = "once"
    allow_overlap: bool = False
    created: str | None = None
    modified: str | None = None
    revision: int = 0
    """Grows whenever it is defined, enabled or disabled."""
    next: list[str] = []
    """When it is due next, up to five times; none while it is disabled, or when it has ended."""
    last: Fire | None = None
    """What became of the last time."""
    job: dict[str, Any] = {}
    """What its jobs are: `name`, `type`, `notes`, `spec`."""


class BatchEndpoint(msgspec.Struct, kw_only=True, frozen=True):
    """A batch endpoint as it was when the server answered."""

    name: str
    display_name: str = ""
    description: str = ""
    tags: dict[str, str] = {}
    default_deployment: str = ""
    """The deployment that is invoked when a request names none; empty: it must name one."""
    deployments: list[str] = []
    created: str | None = None
    modified: str | None = None


class BatchDeployment(msgspec.Struct, kw_only=True, frozen=True):
    """A deployment of a batch endpoint as it was when the server answered."""

    name: str
    endpoint: str = ""
    type: str = "model"
    """model or pipeline."""
    description: str = ""
    tags: dict[str, str] = {}
    inputs: dict[str, dict[str, Any]] = {}
    """Of a pipeline, what an invocation gives: `type`, and `default` if there is one. A model takes any data."""
    created: str | None = None
    modified: str | None = None
    notes: list[str] = []
    spec: dict[str, Any] = {}
    """Its job, with placeholders for what an invocation gives."""
