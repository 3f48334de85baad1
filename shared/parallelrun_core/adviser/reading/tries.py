"""All tries of a job as columns: decisions, and the tries that failed and were followed by others."""

from __future__ import annotations

from array import array
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from parallelrun_core.adviser.evidence import DONE, FAILED, RETRY, Tries
from parallelrun_core.folder.decisions import NAME
from parallelrun_core.folder.layout import RETRIES
from parallelrun_core.folder.term_log import read_term_log
from parallelrun_core.outcome import Outcome, decode_list

_STATUS = {"done": DONE, "failed": FAILED, "retry": RETRY}
_CLOCKS_S = 5.0
"""By so much may a node's clock be behind Redis'."""
_WHOLE = ("mini_batch", "status", "node", "process", "items", "category")
_REAL = ("started_s", "elapsed_s", "run_s", "load_s", "cpu_s", "peak_bytes", "read_bytes")


class Names:
    """Texts by number, in the order in which they came."""

    def __init__(self, *first: str) -> None:
        self._numbers = {name: number for number, name in enumerate(first)}

    def number(self, name: str) -> int:
        return self._numbers.setdefault(name, len(self._numbers))

    def all(self) -> list[str]:
        return list(self._numbers)


class ReadTries(NamedTuple):
    """Tries, and the names that their columns count."""

    tries: Tries
    nodes: list[str]
    processes: list[str]
    categories: list[str]


def read_tries(folder: Path, begun: float) -> ReadTries:
    """Those that were handed over since the job began, or was reopened; not those that it took over from another.

    A range of a log that can't be read is passed over.

    Args:
        begun: seconds since the epoch; the times of tries count from it.

    Raises:
        NewerSchema: a newer release has written them.
    """
    whole = {name: array("q") for name in _WHOLE}
    real = {name: array("d") for name in _REAL}
    nodes, processes, categories = Names(), Names(), Names("")
    for name in (NAME, RETRIES):
        for _, _, raw in read_term_log(folder, name, on_damage=lambda _: None):
            tried = [each for each in decode_list(raw) if each.started >= begun - _CLOCKS_S and each.status != "lost"]
            _add(tried, whole, real, begun)
            whole["node"].extend([nodes.number(each.node) for each in tried])
            whole["process"].extend([processes.number(f"{each.node}/{each.process}") for each in tried])
            whole["category"].extend([categories.number(_category(each)) for each in tried])
    order = np.lexsort((np.frombuffer(whole["mini_batch"], np.int64), np.frombuffer(real["started_s"], np.float64)))
    # One after the other, so that a million tries are in memory once.
    made: dict[str, Any] = {name: np.frombuffer(whole.pop(name), np.int64)[order] for name in _WHOLE}
    made |= {name: np.frombuffer(real.pop(name), np.float64)[order] for name in _REAL}
    return ReadTries(Tries(**made), nodes.all(), processes.all(), categories.all())


def _category(outcome: Outcome) -> str:
    return outcome.failure.category if outcome.failure is not None else ""


def _add(tried: list[Outcome], whole: dict[str, array[int]], real: dict[str, array[float]], begun: float) -> None:
    whole["mini_batch"].extend([each.mini_batch for each in tried])
    whole["status"].extend([_STATUS[each.status] for each in tried])
    whole["items"].extend([each.items for each in tried])
    real["started_s"].extend([each.started - begun for each in tried])
    real["elapsed_s"].extend([each.elapsed_s for each in tried])
    real["run_s"].extend([each.run_s for each in tried])
    real["load_s"].extend([each.load_s for each in tried])
    real["cpu_s"].extend([each.process_s for each in tried])
    real["peak_bytes"].extend([each.use.peak_bytes for each in tried])
    real["read_bytes"].extend([each.use.read_bytes for each in tried])
