"""The scheduling log of a leader: the lines by which users measure scheduling (reference §5.4)."""

from __future__ import annotations

from datetime import UTC, datetime
from math import inf

from parallelrun_core.figures import counted
from parallelrun_core.folder.engine_log import EngineLog
from parallelrun_core.service.pacing import Every
from parallelrun_master.planning.amount import TableAmount

_CHECKPOINT_EVERY_S = 10.0


class SchedulingLog:
    """Watches one leader's scheduling. From "Scheduling tasks for input" to the first checkpoint is the listing.

    Args:
        node: where the leader runs.
    """

    def __init__(self, log: EngineLog, inputs: list[str], node: str) -> None:
        self._log = log
        self._inputs = inputs
        self._node = node
        self._input = self._saved_input = -1
        self._saved = -1
        self._checkpoint = Every(_CHECKPOINT_EVERY_S, first_at=inf)
        self._has_first = False
        self._shuffling = Every(_CHECKPOINT_EVERY_S)

    def start(self) -> None:
        """Scheduling begins, or continues that of another leader."""
        self._log.info("Start scheduling.")

    def begin_input(self, index: int, is_table: bool) -> None:
        """This input is next; nothing of it is listed yet."""
        if self._input < 0:
            self._log.info(
                f"The task provider type is {'TabularDatasetProvider' if is_table else 'FileDatasetProvider'}."
            )
            self._log.info(f"Input folders {self._inputs}, from index {index}.")
        self._input = index
        self._log.info(f"Scheduling tasks for input {index}: {self._inputs[index]}.")

    def shuffled(self, done: int, total: int, now: float) -> None:
        """Log how many bytes of the input's rows have been grouped by their keys."""
        if self._shuffling.is_due(now) or done >= total:
            self._log.info(f"Shuffling input {self._input} by its partition keys: {done:,} of {total:,} bytes.")

    def scheduled(self, mini_batches: int, items: int, now: float, *, finished: bool, tables: TableAmount) -> None:
        """A part of the scheduling is done, and its result is durable.

        Args:
            tables: what is in these mini-batches beside the items.
        """
        if mini_batches and not self._has_first:
            self._has_first = True
            self._save(mini_batches, items, finished, tables)
            at = datetime.now(UTC).isoformat(sep=" ", timespec="microseconds").removesuffix("+00:00")
            reason = f"The first task created at {at}."
            self._log.info(f"{self._node}: setting job stage to FIRST_TASK_SCHEDULED, reason: {reason}")
            self._saved_input = self._input
            self._checkpoint.delay(now)
        if self._has_first and self._input != self._saved_input:
            self._saved_input = self._input
            self._checkpoint.soon()
        if self._checkpoint.is_due(now) or finished:
            self._save(mini_batches, items, finished, tables)
        if finished:
            self._log.info(
                f"Scheduling finished: {counted(mini_batches, 'mini-batch')} with {tables.words(items)}. "
                f"{self._node}: setting job stage to ALL_TASKS_SCHEDULED."
            )

    def _save(self, mini_batches: int, items: int, finished: bool, tables: TableAmount) -> None:
        state = mini_batches + finished
        if state != self._saved:
            self._saved = state
            self._log.info(
                f"Save checkpoint for folder {max(0, self._input)}, offset {items}, task_id {mini_batches}, "
                f"total_items {tables.total(items)}, finished={finished}."
            )
