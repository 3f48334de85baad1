"""What a worker's frames say, as the values that the policy takes: the other side of `parallelrun_worker.frames`."""

from __future__ import annotations

import json
import struct

import msgspec

from parallelrun_agent.policy.outcomes import Answer
from parallelrun_core.errors import CorruptLog
from parallelrun_core.outcome import ErrorCategory, Failure
from parallelrun_worker import frames


def parse_answer(kind: int, payload: bytes) -> Answer:
    """Read a DONE or FAILED frame.

    Raises:
        CorruptLog: it is neither; something other than the worker wrote it.
    """
    try:
        answer = Answer(*frames.RESULT.unpack_from(payload))
    except struct.error as error:
        raise CorruptLog(f"not the answer of a worker: {error}") from error
    if kind == frames.FAILED:
        return msgspec.structs.replace(answer, failure=parse_failure(payload[frames.RESULT.size :]))
    return answer


def parse_failure(text: bytes, category: ErrorCategory | None = None) -> Failure:
    """Read a worker's report of an exception.

    Raises:
        CorruptLog: our worker doesn't write this.
    """
    try:
        report = json.loads(text)
        texts = [report["category"], report["message"], report["traceback"]]
        # A message may hold a file name that is not UTF-8; a record may not.
        words = [each.encode("utf-8", "backslashreplace").decode() for each in texts]
        return msgspec.convert([category or words[0], *words[1:]], Failure)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise CorruptLog(f"not a worker's report of an error: {error}") from error
