"""For entry scripts: `from parallelrun.script import ItemError, recall, remember, report_cost, WorkerBroken`.

All of it works where a script runs alone, as in its own unit test.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from parallelrun_worker.script_api.refusals import MemoryFull, PermitRefused

__all__ = [
    "ItemError",
    "MemoryFull",
    "PermitRefused",
    "WorkerBroken",
    "aremember",
    "limit",
    "mini_batch_context",
    "recall",
    "remember",
    "report_cost",
]


def remember(key: str, value: Any) -> None:
    """Keep an answer that has cost money or time, for later tries, and for jobs that resume from this one.

    It is on the disk when this returns. Outside of a job, it is kept for as long as the process lives.

    Args:
        key: names the question by its content, such as a hash of the request: up to 1,024 bytes.
        value: anything that JSON can hold, up to 4 MiB.

    Raises:
        ValueError: key or value is too long, or is nothing that JSON can hold.
        MemoryFull: this worker has remembered 1 GiB.
        OSError: the disk doesn't take it.
    """
    _memory().remember(key, value)


async def aremember(key: str, value: Any) -> None:
    """Do what `remember` does, without blocking the event loop: calls at the same time share a write to the disk."""
    await _memory().aremember(key, value)


def recall(key: str, default: Any = None) -> Any:
    """Return what was remembered under a key: by any worker of this job, or of the job that it resumes from."""
    return _memory().recall(key, default)


def limit(name: str, *, tokens: int = 0) -> Any:
    """Wait for a permit of one of the cluster's limits, for as long as a `with` or `async with` block lasts.

        async with limit("openai", tokens=1200) as permit:
            answer = await client.post(…)
            if answer.status_code == 429:
                await asyncio.sleep(permit.retry_after(answer))

    Outside of a job everybody gets a permit at once.

    Args:
        name: that of a limit in the job's `rate_limits`.
        tokens: how many the call has, about, for a limit on tokens per minute.

    Returns:
        a `parallelrun_worker.script_api.permits.Permit`.

    Raises:
        PermitRefused: by the block's begin, if the job doesn't name the limit, or the call has more tokens than the
            limit has in a minute.
        ValueError: `tokens` is no number of tokens.
    """
    from parallelrun_worker.script_api.permits import Permit, PermitClient

    return Permit(name, tokens, PermitClient.process)


def report_cost(usd: float) -> float:
    """Report what a call has cost. When the costs of a job reach its `budget`, no more of its mini-batches are begun.

    It counts at once, whatever becomes of the mini-batch, and even if the worker is killed a moment later. Outside of a
    job, it is only added up.

    Args:
        usd: US dollars.

    Returns:
        the US dollars that this process has reported so far.

    Raises:
        ValueError: it is no amount of money.
        RuntimeError: this isn't the worker's own process, but one that the script has forked.
    """
    from parallelrun_worker.script_api.costs import CostCounter

    return CostCounter.process.add(usd)


def mini_batch_context(
    minibatch_index: int = 0,
    *,
    partition_key_value: Mapping[str, Any] | None = None,
    global_row_index_lower_bound: int | None = None,
) -> Any:
    """Return what run() gets as its second argument, and enqueue(): for a script's own test, outside of a job.

    Args:
        minibatch_index: the id of the mini-batch, by which a streaming script hands back its rows.
        partition_key_value: the values of the job's partition keys.
        global_row_index_lower_bound: index of the first row in the whole input.

    Returns:
        a `parallelrun_worker.mini_batches.mini_batch.Context`, whose `dataset` is None.
    """
    from parallelrun_worker.mini_batches.mini_batch import Context, MiniBatch

    mini_batch = MiniBatch([], 0)
    mini_batch.partition_key_value = dict(partition_key_value or {})
    mini_batch.first_row = global_row_index_lower_bound
    return Context(minibatch_index, mini_batch, "", None)


def _memory() -> Any:
    from parallelrun_worker.script_api.memory import Memory

    return Memory.of_this_process()


class WorkerBroken(Exception):
    """Raised by an entry script when its worker can't do anything more: its engine is dead, its GPU lost.

    The worker is replaced by a new process, which calls init() again. The mini-batch is run again without having used
    up a try, as long as others succeed in between.
    """


class ItemError(Exception):
    """Returned by run() in the place of an item's row: this item has failed, and the others of its mini-batch count.

        rows.append(ItemError("no text in the file"))

    Lists, tuples, Series and arrays of objects have one value for each item, in their order. A row of a DataFrame with
    an ItemError in one of its cells is a failed item, too. The item has no row in the output, is not tried again, and
    is in `logs/failed_items.csv` with the reason. If it is raised, it fails the mini-batch as any exception does.
    """

    is_used = False
    """True if this process has one: ordinary rows aren't searched for any."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        ItemError.is_used = True
