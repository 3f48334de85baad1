"""Frames of a worker as the values that the policy takes: the other side of `parallelrun_worker.frames`. Each of the
functions raises CorruptLog for what our worker doesn't write."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from typing import Final, TypeVar

import msgspec

from parallelrun_agent.policy.isolation import PartEvent
from parallelrun_agent.policy.outcomes import WorkerAnswer
from parallelrun_core.errors import CorruptLog
from parallelrun_core.wire.data_warnings import DataWarning
from parallelrun_core.wire.masking import Mask
from parallelrun_core.wire.outcome import ErrorCategory, Failure, LostItems, Use
from parallelrun_worker import frames

T = TypeVar("T")

_result_of: Final = frames.RESULT.unpack_from
_use_of: Final = frames.USE.unpack_from
_USE_AT: Final = frames.RESULT.size
_GPU: Final = "GPU_OUT_OF_MEMORY"
_warnings_of: Final = msgspec.json.Decoder(list[DataWarning]).decode
_runs_of: Final = msgspec.json.Decoder(list[tuple[int, int, str]]).decode


class _Waits(msgspec.Struct):
    waited_s: float
    limits: dict[str, float]


_waits_of: Final = msgspec.json.Decoder(_Waits).decode
_MOST_WARNINGS: Final = 51
_ERROR_AT: Final = _USE_AT + frames.USE.size


def parse_answer(kind: int, payload: bytes, mask: Mask) -> WorkerAnswer:
    """Read a DONE or FAILED frame. What `mask` hides is in no record of ours, then.

    Raises:
        CorruptLog: it is neither; something other than the worker wrote it.
    """
    try:
        # By name, because a call with a star and a value after it would take longer.
        mini_batch, offset, length, crc, items, rows, line_breaks, shortened, run_s, process_s = _result_of(payload)
        use = Use(*_use_of(payload, _USE_AT))
    except struct.error as error:
        raise CorruptLog(f"not the answer of a worker: {error}") from error
    failure = parse_failure(payload[_ERROR_AT:], mask) if kind == frames.FAILED else None
    return WorkerAnswer(
        mini_batch, offset, length, crc, items, rows, line_breaks, shortened, run_s, process_s, use, failure
    )


def parse_warnings(payload: bytes, mask: Mask) -> tuple[int, list[DataWarning]]:
    """Read a WARNED frame: the mini-batch, and the warnings about its data, without secrets."""
    mini_batch, warnings = _of_mini_batch(payload, _warnings_of, "warnings")
    return mini_batch, list(map(mask.warning, warnings[:_MOST_WARNINGS]))


def parse_items_failed(payload: bytes, mask: Mask) -> tuple[int, list[LostItems]]:
    """Read an ITEMS_FAILED frame: the mini-batch, and the items that have failed."""
    mini_batch, runs = _of_mini_batch(payload, _runs_of, "failed items")
    return mini_batch, [
        LostItems(first, items, mask.failure(Failure("RUN_EXCEPTION", text))) for first, items, text in runs
    ]


def parse_waited(payload: bytes) -> tuple[int, float, dict[str, float]]:
    """Read a WAITED frame: the mini-batch, and the seconds for which it has waited for permits, in all and by limit."""
    mini_batch, waits = _of_mini_batch(payload, _waits_of, "waits")
    return mini_batch, waits.waited_s, waits.limits


def _of_mini_batch(payload: bytes, decode: Callable[[bytes], T], subject: str) -> tuple[int, T]:
    try:
        (mini_batch,) = frames.MINI_BATCH.unpack_from(payload)
        return mini_batch, decode(payload[frames.MINI_BATCH.size :])
    except (struct.error, ValueError) as error:
        raise CorruptLog(f"not the {subject} of a mini-batch: {error}") from error


def parse_part(payload: bytes, mask: Mask) -> tuple[int, PartEvent]:
    """Read a PART frame: the mini-batch, and what has become of one of its parts."""
    try:
        mini_batch, first, count, event, run_s = frames.PART_EVENT.unpack_from(payload)
    except struct.error as error:
        raise CorruptLog(f"not an event of a part: {error}") from error
    failure = parse_failure(payload[frames.PART_EVENT.size :], mask) if event == frames.PART_FAILED else None
    return mini_batch, PartEvent((first, count), event == frames.PART_BEGUN, run_s, failure)


def parse_failure(text: bytes, mask: Mask, category: ErrorCategory | None = None) -> Failure:
    """Read a worker's report of an exception, fit to be recorded: without secrets, and visible (see `Mask`).

    Args:
        category: instead of the worker's own, unless that says that a GPU's memory has run out.
    """
    try:
        report = json.loads(text)
        texts = [report["category"], report["message"], report["traceback"]]
        if category is not None and texts[0] != _GPU:
            texts[0] = category
        failure = msgspec.convert(texts, Failure)
        return mask.failure(failure)  # which is UTF-8, though the name of a file in a message need not be
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise CorruptLog(f"not a worker's report of an error: {error}") from error
