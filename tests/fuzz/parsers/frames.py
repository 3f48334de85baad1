"""Answers of worker processes, in which the code of users runs: they are read, or refused."""

from __future__ import annotations

import json

from parallelrun_agent.workers.answers import (
    parse_answer,
    parse_failure,
    parse_items_failed,
    parse_part,
    parse_warnings,
)
from parallelrun_core.errors import CorruptLog
from parallelrun_core.wire.masking import Mask
from parallelrun_worker import frames
from tests.fuzz.parser import FuzzedParser

_READERS = (
    lambda data, mask: parse_answer(frames.DONE, data, mask),
    lambda data, mask: parse_answer(frames.FAILED, data, mask),
    parse_warnings,
    parse_items_failed,
    parse_part,
    parse_failure,
)
_FAILURE = json.dumps({"category": "RUN_EXCEPTION", "message": "m", "traceback": "t"}).encode()


def _read_frame(data: bytes) -> None:
    if data:
        _READERS[data[0] % len(_READERS)](data[1:], Mask({}))


PARSERS = [
    FuzzedParser(
        "frame",
        [
            b"\x00" + bytes(frames.RESULT.size + frames.USE.size),
            b"\x01" + bytes(frames.RESULT.size + frames.USE.size) + _FAILURE,
            b"\x02" + frames.MINI_BATCH.pack(3) + b'[["code", "file", 1, "column", "value", "text", 2]]',
            b"\x03" + frames.MINI_BATCH.pack(3) + b'[[0, 2, "ValueError: x"]]',
            b"\x04" + bytes(frames.PART_EVENT.size) + _FAILURE,
            b"\x05" + _FAILURE,
        ],
        _read_frame,
        (CorruptLog,),
    )
]
