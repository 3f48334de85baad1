"""All tries of a job as columns: decisions, and the tries that failed and were followed by others."""

from __future__ import annotations

from array import array
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from parallelrun_core.adviser.evidence import DONE, FAILED, RETRY, Ints, Sample, Tries
from parallelrun_core.adviser.reading.stretches import MOST_BYTES, LogStretches, parts_of, records_in
from parallelrun_core.folder.decisions import NAME
from parallelrun_core.layout import RETRIES
from parallelrun_core.wire.outcome import Outcome, decode_list

_STATUS = {"done": DONE, "failed": FAILED, "retry": RETRY}
_CLOCKS_S = 5.0
"""By so much may a node's clock be behind Redis'."""
_WHOLE = ("mini_batch", "status", "node", "process", "items", "category")
_REAL = ("started_s", "elapsed_s", "run_s", "load_s", "cpu_s", "peak_bytes", "read_bytes")


class NumberedTexts:
    """Texts by number, in the order in which they came."""

    def __init__(self, *first: str) -> None:
        self._numbers = {name: number for number, name in enumerate(first)}

    def number(self, name: str) -> int:
        return self._numbers.setdefault(name, len(self._numbers))

    def all(self) -> list[str]:
        return list(self._numbers)


class ReadTries(NamedTuple):
    tries: Tries
    sample: Sample
    nodes: list[str]
    processes: list[str]
    categories: list[str]
    waits_s: dict[str, float]
    """Seconds for which these tries have waited for permits, by limit."""
    waits_of_s: float
    """Seconds that those of them took which have asked for permits."""


class _Columns:
    def __init__(self, begun: float) -> None:
        self._begun = begun
        self._whole = {name: array("q") for name in _WHOLE}
        self._real = {name: array("d") for name in _REAL}
        self.waits_s: dict[str, float] = {}
        self.waits_of_s = 0.0
        self.nodes, self.processes, self.categories = NumberedTexts(), NumberedTexts(), NumberedTexts("")

    def add(self, outcomes: list[Outcome], only: set[int] | None) -> int:
        """Add those of the job, perhaps only of some mini-batches; returns how many there are of all."""
        least = self._begun - _CLOCKS_S
        tried = [each for each in outcomes if each.started >= least and each.status != "lost"]
        count = len(tried)
        if only is not None:
            tried = [each for each in tried if each.mini_batch in only]
        whole = self._whole
        _add(tried, whole, self._real, self._begun)
        for each in tried:
            if each.waits:
                self._add_waits(each)
        whole["node"].extend([self.nodes.number(each.node) for each in tried])
        whole["process"].extend([self.processes.number(f"{each.node}/{each.process}") for each in tried])
        failures = [each.failure for each in tried]
        whole["category"].extend([self.categories.number(each.category if each else "") for each in failures])
        return count

    def _add_waits(self, outcome: Outcome) -> None:
        self.waits_of_s += outcome.elapsed_s
        for limit, seconds in outcome.waits.items():
            self.waits_s[limit] = self.waits_s.get(limit, 0.0) + seconds

    def __len__(self) -> int:
        return len(self._whole["mini_batch"])

    def mini_batches(self) -> Ints:
        return np.array(self._whole["mini_batch"], np.int64)

    def tries(self) -> Tries:
        """All of them, in their order; nothing can be added any more."""
        whole, real = self._whole, self._real
        order = np.lexsort((np.frombuffer(whole["mini_batch"], np.int64), np.frombuffer(real["started_s"], np.float64)))
        # One after the other, so that all tries are in memory once.
        arrays: dict[str, Any] = {name: np.frombuffer(whole.pop(name), np.int64)[order] for name in _WHOLE}
        arrays |= {name: np.frombuffer(real.pop(name), np.float64)[order] for name in _REAL}
        return Tries(**arrays)


def read_tries(folder: Path, begun: float, most_bytes: int = MOST_BYTES) -> ReadTries:
    """Read the tries that were handed over since the job began, or was reopened; not those that it took over from
    another.

    Of a huge job, only some of them, and of the tries that were repeated those of the same mini-batches: `sample` says
    how many each stands for. A range of a log that can't be read is passed over.

    Args:
        begun: seconds since the epoch; the times of tries count from it.
        most_bytes: of each of the two logs that are read.

    Raises:
        NewerSchema: a newer release has written them.
    """
    columns = _Columns(begun)
    decisions = parts_of(folder, NAME, most_bytes)
    all_decisions = _read(decisions, columns)
    decided = len(columns)
    retries = parts_of(folder, RETRIES, most_bytes)
    all_retries = _read(retries, columns, None if decisions.is_all else set(columns.mini_batches().tolist()))
    each, repeated = all_decisions / max(1, decided), len(columns) - decided
    sample = Sample(
        each=1.0 if decisions.is_all else each,
        each_retry=1.0 if decisions.is_all and retries.is_all else all_retries / max(1.0, repeated * each),
        stretches=1 if decisions.is_all else len(decisions.stretches),
    )
    names = columns.nodes.all(), columns.processes.all(), columns.categories.all()
    return ReadTries(columns.tries(), sample, *names, columns.waits_s, columns.waits_of_s)


def _read(parts: LogStretches, columns: _Columns, only: set[int] | None = None) -> float:
    """Add what is in these, perhaps only that of some mini-batches; returns about how many tries all of the log has."""
    count = read_bytes = 0
    for stretch in parts.stretches:
        for size, raw in records_in(stretch):
            count += columns.add(decode_list(raw), only)
            read_bytes += size
    return count * parts.total_bytes / max(1, read_bytes)


def _add(tried: list[Outcome], whole: dict[str, array[int]], real: dict[str, array[float]], begun: float) -> None:
    whole["mini_batch"].extend([each.mini_batch for each in tried])
    whole["status"].extend([_STATUS[each.status] for each in tried])
    whole["items"].extend([each.items for each in tried])
    real["started_s"].extend([each.started - begun for each in tried])
    real["elapsed_s"].extend([each.elapsed_s for each in tried])
    real["run_s"].extend([each.run_s for each in tried])
    real["load_s"].extend([each.load_s for each in tried])
    real["cpu_s"].extend([max(0.0, each.process_s) for each in tried])
    real["peak_bytes"].extend([each.use.peak_bytes for each in tried])
    real["read_bytes"].extend([each.use.read_bytes for each in tried])
