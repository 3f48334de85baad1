"""What the leader's log says about scheduling: the lines by which users measure it (reference §5.4)."""

from __future__ import annotations

from datetime import UTC, datetime

from parallelrun_core.folder.engine_log import EngineLog

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
        self._due = float("inf")
        self._has_first = False
        self._shuffling_due = 0.0

    def start(self) -> None:
        """Scheduling begins, or continues that of another leader."""
        self._log.info("Start scheduling.")

    def enter(self, index: int, is_table: bool) -> None:
        """This input is next; nothing of it is listed yet."""
        if self._input < 0:
            self._log.info(
                f"The task provider type is {'TabularDatasetProvider' if is_table else 'FileDatasetProvider'}."
            )
            self._log.info(f"Input folders {self._inputs}, from index {index}.")
        self._input = index
        self._log.info(f"Scheduling tasks for input {index}: {self._inputs[index]}.")

    def shuffled(self, done: int, total: int, now: float) -> None:
        """How many bytes of the input's rows have been grouped by their keys."""
        if done >= total or now >= self._shuffling_due:
            self._shuffling_due = now + _CHECKPOINT_EVERY_S
            self._log.info(f"Shuffling input {self._input} by its partition keys: {done:,} of {total:,} bytes.")

    def look(self, mini_batches: int, items: int, now: float, *, finished: bool) -> None:
        """A part of the scheduling is done, and its result is durable."""
        if mini_batches and not self._has_first:
            self._has_first = True
            self._save(mini_batches, items, finished)
            at = datetime.now(UTC).isoformat(sep=" ", timespec="microseconds").removesuffix("+00:00")
            reason = f"The first task created at {at}."
            self._log.info(f"{self._node}: setting job stage to FIRST_TASK_SCHEDULED, reason: {reason}")
            self._saved_input = self._input
            self._due = now + _CHECKPOINT_EVERY_S
        if self._has_first and self._input != self._saved_input:
            self._saved_input = self._input
            self._due = now
        if finished or now >= self._due:
            self._due = now + _CHECKPOINT_EVERY_S
            self._save(mini_batches, items, finished)
        if finished:
            self._log.info(
                f"Scheduling finished: {mini_batches:,} mini-batches with {items:,} items. "
                f"{self._node}: setting job stage to ALL_TASKS_SCHEDULED."
            )

    def _save(self, mini_batches: int, items: int, finished: bool) -> None:
        state = mini_batches + finished
        if state != self._saved:
            self._saved = state
            self._log.info(
                f"Save checkpoint for folder {max(0, self._input)}, offset {items}, task_id {mini_batches}, "
                f"total_items {items}, finished={finished}."
            )
