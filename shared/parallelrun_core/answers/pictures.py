"""A job in pictures: any number of mini-batches and tries, in as many buckets as a screen has room for."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from parallelrun_core.answers.answer import Answer, JobId, OpenEnum, Time


class AsRead(Answer, kw_only=True, frozen=True):
    """An answer that is computed from the records of tries: of a job that runs, as far as they were read."""

    read_share: Annotated[float, Meta(examples=[1.0])] = 1.0
    """Share of the existing records that is in the answer; 1: all. If less, ask again: each answer reads on."""


class Tiles(AsRead, kw_only=True, frozen=True):
    """Mini-batches in buckets of neighbors: bucket `i` has those from `first + i * bucket_size` on, the last one up to
    `end`. Each list has a value for each bucket. `waiting`, `running`, `completed` and `failed` add up to all of it."""

    first: int = 0
    """The first mini-batch: the one asked for, or an earlier one, as buckets of 64 mini-batches and more begin at
    multiples of their size."""
    end: int = 0
    """Exclusively."""
    bucket_size: int = 1
    """Mini-batches in each bucket, but the last one: a power of two."""
    total: int = 0
    """Found so far; of the whole job once `listing_done`."""
    listing_done: bool = False
    waiting: list[int] = []
    """Neither decided nor with an agent."""
    running: list[int] = []
    """Mini-batches that agents hold."""
    completed: list[int] = []
    failed: list[int] = []
    retried: list[int] = []
    """Mini-batches of which a try has failed, whatever came after it."""
    failed_items: list[int] = []
    """Failed items of completed and of failed mini-batches."""
    min_run_s: list[float | None] = []
    """Seconds in `run()` of the try that was decided upon; null: none was."""
    median_run_s: list[float | None] = []
    """The lower one of two."""
    max_run_s: list[float | None] = []
    median_of: OpenEnum[Literal["all", "samples"]] = "all"
    """`samples`: buckets have more than 4,096 mini-batches, and medians are those of every n-th one."""


class TrySpans(Answer, kw_only=True, frozen=True):
    """The tries of a worker one by one: each list has a value for each of them."""

    mini_batch: list[int]
    begin_s: list[float]
    load_s: list[float]
    run_s: list[float]
    elapsed_s: list[float]
    outcome: list[OpenEnum[Literal["completed", "failed", "retried"]]]
    """`failed`: for good; `retried`: another try followed."""


class RunningTry(Answer, kw_only=True, frozen=True):
    """A try that a worker has begun and not ended."""

    mini_batch: int
    number: int
    """Number of the try: 1 is the first one."""
    items: int | None
    """null: not known yet."""
    begin_s: float
    """Time when the worker got it, in seconds since the start of the timeline."""
    load_s: float | None
    """Seconds until `run()` was called; null: its data are being read."""
    times_median: float | None
    """Its time in `run()` as a multiple of the median of all tries; null: nothing can be said."""


class DoingNow(Answer, kw_only=True, frozen=True):
    """The work of a worker of a running job now, as its node has said within the last seconds."""

    doing: OpenEnum[Literal["init", "loading", "running", "waiting_for_data", "idle", "ending"]]
    since_s: float
    """Time when that began, in seconds since the start of the timeline."""
    tries: list[RunningTry] = []
    """Several for a worker that runs several mini-batches at once: the oldest 64."""
    in_flight: int = 0
    """Number of mini-batches that it runs."""


class Lane(Answer, kw_only=True, frozen=True):
    """A worker in time. `init`, `load` and `run` have seconds for each bucket; the rest of it the worker was idle, or
    not there: see `begin_s` and `end_s`."""

    node: str
    process: str
    begin_s: float = 0.0
    """Time when it began its first `init()` or try."""
    end_s: float = 0.0
    """Time when its last one ended."""
    tries: int = 0
    """Tries in the window."""
    failed_tries: int = 0
    init: list[float] = []
    load: list[float] = []
    run: list[float] = []
    """Seconds of each bucket from the end of loading to the result, with what is around `run()`. Those of mini-batches
    in flight at the same time are added up: more than the bucket has."""
    spans: TrySpans | None = None
    """If the window has few enough."""
    now: DoingNow | None = None
    """null: the job has ended, or the worker has."""


class SlowTry(Answer, kw_only=True, frozen=True):
    """A try that took long."""

    mini_batch: int
    node: str = ""
    process: str = ""
    begin_s: float = 0.0
    run_s: float = 0.0
    times_median: float | None = None
    """Number of times as long as the median of all tries of the job; null: that is 0."""


class Timeline(AsRead, kw_only=True, frozen=True):
    """The workers of a job in time, by node and process. All times are seconds since `start`."""

    start: Time | None = None
    """Time when the first worker began; null: none has."""
    length_s: float = 0.0
    """Seconds from the start to the end of the last try so far; while workers are there, until now."""
    preparing: list[str] = []
    """Nodes that get code, environment or data now, which all of their workers need."""
    begin_s: float = 0.0
    end_s: float = 0.0
    """The window."""
    bucket_s: float = 0.0
    resolution_s: float = 0.0
    """0: each try was looked at. Else there are too many in the window: what is in a bucket is exact to so many
    seconds at each of its ends."""
    lanes: list[Lane] = []
    lanes_total: int = 0
    slowest: list[SlowTry] = []
    """The slowest tries that are in the window, whatever their lanes: at most twenty."""
    median_run_s: float | None = None
    """Median of all tries of the job, or of 100,000 of them, in seconds."""
    next_page_token: str | None = None


class Throughput(AsRead, kw_only=True, frozen=True):
    """Throughput in time: each list has a value for each bucket, from `begin_s` on."""

    start: Time | None = None
    """The start of the timeline."""
    begin_s: float = 0.0
    """Seconds from there to the first bucket: negative, as buckets begin at multiples of their length."""
    bucket_s: float = 0.0
    mini_batches: list[int] = []
    """Decided."""
    items: list[int] = []
    """Items of those mini-batches, also those that failed or have no row: their sum is the decided items of the job."""
    failed: list[int] = []
    """Mini-batches that failed."""
    retried: list[int] = []
    """Tries that failed, and were followed by another."""
    busy_workers: list[float] = []
    """Number of workers that were loading or running, on the average; each counts once, whatever it has in flight."""
    first_try_s: float | None = None
    """Time when the first try of all began, in seconds since `start`; null: none has."""
    last_try_s: float | None = None
    """Time when the last one so far ended."""


class KindOfError(Answer, kw_only=True, frozen=True):
    """Tries that failed in the same way: with the same type of exception, at the same line of the user's code."""

    category: Annotated[str, Meta(examples=["RUN_EXCEPTION"])]
    place: Annotated[str, Meta(examples=['File "score.py", line 12'])] = ""
    """The line; empty if there is none."""
    message: str = ""
    """The message of the first failure; the traceback is that failure's, too."""
    traceback: str = ""
    has_several_messages: bool = False
    count: int = 0
    """Tries."""
    mini_batches: list[int] = []
    """The first ones, at most ten."""
    node: str = ""
    process: str = ""
    log: str = ""
    """The log that has the first of them in full: a path below `links.logs`."""


class KindsOfErrors(AsRead, kw_only=True, frozen=True):
    """The failures of a job by kind, the most frequent first."""

    items: list[KindOfError] = []
    count: int = 0
    """Tries that failed, of all kinds."""
    left_out: int = 0
    """Failures whose kinds are not shown, as there are too many."""


class Figures(AsRead, kw_only=True, frozen=True):
    """Key figures of a job. What isn't known (yet) is null."""

    waited_s: float | None = None
    """Seconds from the submission to the start."""
    first_try_s: float | None = None
    """Seconds from the start to the first try of a mini-batch."""
    took_s: float | None = None
    """Seconds from the start to the end, or until now."""
    nodes: int = 0
    workers: int = 0
    mini_batches: int = 0
    """Decided."""
    failed_mini_batches: int = 0
    tries: int = 0
    failed_tries: int = 0
    items: int = 0
    rows: int = 0
    min_run_s: float | None = None
    median_run_s: float | None = None
    """Median of the tries that succeeded, or of 100,000 of them, in seconds; so are the quantiles."""
    p95_run_s: float | None = None
    p99_run_s: float | None = None
    max_run_s: float | None = None
    run_s: float = 0.0
    """Seconds in `run()`, summed over all tries."""
    load_s: float = 0.0
    overhead_s: float = 0.0
    """Seconds from the hand-over to a worker to its result, without loading, `run()` and waiting for limits."""
    init_s: float = 0.0
    """Seconds in `init()`, summed over all workers."""
    wasted_s: float = 0.0
    """Seconds of tries that failed."""
    busy_share: float | None = None
    """Share of its workers' time that they were loading or running: since each began, until it ended."""
    items_per_s: float | None = None
    """Items decided per second in all of its last run, as the `pace` of a job that has ended."""
    mini_batches_per_s: float | None = None


class Compared(Answer, kw_only=True, frozen=True):
    """A job of two that are compared."""

    id: JobId
    name: str
    state: str
    figures: Figures


class SettingOfTwo(Answer, kw_only=True, frozen=True):
    """A setting in which two jobs differ."""

    name: str
    values: list[Any]
    """The values of the one job and of the other."""


class Comparison(Answer, kw_only=True, frozen=True):
    """Two jobs side by side."""

    jobs: list[Compared]
    settings: list[SettingOfTwo]
    """The settings that differ."""


class EffectiveSetting(Answer, kw_only=True, frozen=True):
    """A setting of a job."""

    name: str
    value: Any = None
    """The value in effect; values of environment variables are masked."""
    default: Any = None
    origin: OpenEnum[Literal["given", "default", "unknown"]] = "unknown"
    """`unknown`: an earlier release has accepted the job, and the value is not the default."""
    given_at: str = ""
    """The place of a setting that was given: a JSON pointer into the document that was submitted."""
    description: str = ""
    group: OpenEnum[Literal["job", "run", "parallel", "inputs", "outputs", "limits", "other"]] = "other"


class EffectiveSettings(Answer, kw_only=True, frozen=True):
    """The settings of a job, by groups."""

    items: list[EffectiveSetting] = []
