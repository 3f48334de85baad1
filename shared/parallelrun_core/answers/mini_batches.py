"""Mini-batches of a job."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from parallelrun_core.answers.answer import Answer, OpenEnum, Time


class MiniBatchFailure(Answer, kw_only=True, frozen=True):
    """Why a mini-batch failed."""

    category: Annotated[str, Meta(examples=["RUN_EXCEPTION"])]
    message: str
    traceback: str = ""


class MiniBatch(Answer, kw_only=True, frozen=True):
    """A mini-batch. One that is `ready` or `running` has few fields yet."""

    id: int
    status: OpenEnum[Literal["done", "failed", "running", "ready"]]
    tries: int | None = None
    """Since the job began, or was last reopened."""
    node: str | None = None
    process: str | None = None
    first_input: str = ""
    """The first of its files; empty: nobody has asked for it."""
    items: int | None = None
    rows: int | None = None
    failed_items: int | None = None
    started: Time | None = None
    elapsed_s: float | None = None
    """Seconds from the hand-over by the agent to the result."""
    run_s: float | None = None
    """Seconds in `run()` itself."""
    process_s: float | None = None
    """CPU seconds of the worker in `run()` and around it; null: others ran in it at the same time."""
    peak_memory_bytes: int | None = None
    """The most memory that the worker process had meanwhile."""
    read_bytes: int | None = None
    """Bytes that the worker process read by system calls meanwhile. Mini-batches that follow each other within
    milliseconds are measured together: see `Peak Memory (MB)` and `Read (MB)` in docs/logs.md."""
    minor_page_faults: int | None = None
    """Pages of memory that the worker process was given meanwhile without reading a disk."""
    major_page_faults: int | None = None
    """Pages that had to be read from a disk first."""
    voluntary_context_switches: int | None = None
    """Times that a thread of it waited meanwhile: for a disk, a lock, another process."""
    involuntary_context_switches: int | None = None
    """Times that a thread of it had to leave its CPU to others."""
    failure: MiniBatchFailure | None = None


class MiniBatchPage(Answer, kw_only=True, frozen=True):
    """Some of a job's mini-batches. A page may hold fewer than asked for, and still not be the last."""

    items: list[MiniBatch]
    next_page_token: str | None = None
    nodes: list[str] = []
    """The nodes that have tried one, with another order than that of decisions."""
    processes: list[str] = []
    """The workers that have tried one, by their names on their nodes, with another order than that of decisions."""
    categories: list[str] = []
    """The categories of errors with which mini-batches have failed, with another order than that of decisions."""


class FailedItem(Answer, kw_only=True, frozen=True):
    """An item that has failed for good."""

    item: str
    """Its path; of a table, the number of the row in its mini-batch."""
    mini_batch: int
    category: Annotated[str, Meta(examples=["RUN_EXCEPTION"])] = ""
    message: str = ""
    """The first line of the error's message."""
    place: str = ""
    """The innermost line of the user's code, as in `score.py:17`; empty: none of it is to blame."""


class FailedItemPage(Answer, kw_only=True, frozen=True):
    """Some of the items of a job that have failed for good; none is listed before the job has ended."""

    items: list[FailedItem]
    total: int
    """Number of items that have failed for good; the first 100,000 are listed."""
    next_page_token: str | None = None


class MiniBatchTry(MiniBatch, kw_only=True, frozen=True):
    """A try of a mini-batch."""

    outcome: OpenEnum[Literal["completed", "failed", "retried", "lost"]]
    """`failed`: for good; `retried`: another try followed; `lost`: it has completed, and the disk has lost its rows."""
    generation: int
    """Number of times that the job had been reopened before it."""
    begin_s: float | None
    """Seconds since the start of the job's timeline."""
    logs: list[str] = []
    """The logs of its worker that exist: paths below `links.logs`."""


class MiniBatchNow(Answer, kw_only=True, frozen=True):
    """A try that a worker has begun and not ended, as its node has said within the last seconds."""

    node: str
    process: str
    number: int
    """Number of the try: 1 is the first one."""
    doing: OpenEnum[Literal["loading", "running"]]
    started: Time
    """Time when the worker got it."""
    run_started: Time | None
    """Time when `run()` was called; null: its data are being read."""
    logs: list[str] = []
    """The logs of its worker that exist: paths below `links.logs`."""


class MiniBatchTries(Answer, kw_only=True, frozen=True):
    """A mini-batch with all of its tries, in the order in which they were recorded."""

    id: int
    status: OpenEnum[Literal["done", "failed", "running", "ready"]]
    node: str | None = None
    """The node of a mini-batch that is `running`."""
    now: MiniBatchNow | None = None
    """The try that runs now; null: none does, or no worker of that node has begun it."""
    median_run_s: float | None = None
    """Median of all tries of the job, to compare with."""
    tries: list[MiniBatchTry]
    read_share: float
    """Share of the existing records that was looked at; 1: all. If less, ask again."""


class InputRange(Answer, kw_only=True, frozen=True):
    """A range of one file of a table."""

    path: str
    start: int
    """The first byte; of Parquet, the first row of the file."""
    end: int | None
    """The first one after it; null: to the end of the file."""
    first_row: int | None
    """Index of its first row in the whole input; null: nobody has counted."""
    rows: int | None


class MiniBatchInputs(Answer, kw_only=True, frozen=True):
    """The inputs of a mini-batch, in the order in which `run()` gets them."""

    items: int
    """Number of items; of a table, 0 until its rows were counted."""
    total: int
    """Number of files and ranges; the first 1,000 are listed."""
    files: list[str]
    ranges: list[InputRange] = []
    keys: list[str | None] = []
    """Values of the job's `partition_keys`, in their order."""
