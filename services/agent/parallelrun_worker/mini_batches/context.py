"""The optional second argument of run()."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from parallelrun_worker.mini_batches.mini_batch import MiniBatch


class Context:
    """Describes a mini-batch to the user's run()."""

    def __init__(self, mini_batch: int, batch: MiniBatch, job_id: str, part: tuple[int, int] | None) -> None:
        self.minibatch_index = mini_batch
        """Its id; of a mini-batch without data, its rank."""
        self.partition_key_value = batch.partition_key_value
        """The values of the job's partition_keys, in their order; empty without keys."""
        self.dataset = batch.dataset
        """Where its rows or files come from; None for a plain list of files."""
        self.global_row_index_lower_bound = batch.first_row
        """Index of its first row in the whole input; None when rows were not counted."""
        self.idempotency_key = f"{job_id}:{mini_batch}" + (f":{part[0]}+{part[1]}" if part else "")
        """The same for every try of this mini-batch: for scripts that write to other places themselves. Of a part of
        one whose items are run apart, it ends in the index of the part's first item, and its number of items."""
