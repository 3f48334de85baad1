"""The outcome of one try of a mini-batch: the record that goes unchanged from the agent to the decision log.

The agent encodes it once; the same bytes are journaled as a *candidate*, committed on Redis, and
copied by the leader into the decision log as the *decision*. It is a JSON array, in field order.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from parallelrun_core.wire.data_warnings import DataWarning

Status = Literal["done", "failed", "retry", "lost"]

ErrorCategory = Literal[
    "RUN_EXCEPTION",
    "RUN_TIMEOUT",
    "BAD_RETURN",
    "SIGNAL",
    "OOM_KILLED",
    "GPU_OUT_OF_MEMORY",
    "EXITED",
    "INIT_EXCEPTION",
    "INIT_DIED",
    "ENVIRONMENT_FAILED",
    "CODE_DAMAGED",
    "INIT_TIMEOUT",
    "LOAD_TIMEOUT",
    "NODE_LOST",
    "INPUT_UNREADABLE",
    "INPUT_CHANGED",
    "OUTPUT_UNWRITABLE",
    "WORKER_BROKEN",
]
PhaseName = Literal["INIT", "SHUTDOWN"]


class Failure(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Why a try failed, in words for the user. Why the job failed, if it did, is a `JobFailure`."""

    category: ErrorCategory
    message: str
    traceback: str = ""


class Use(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Resources that a try used, in the order in which its worker says them (`Use` in `worker/frames.py`).

    A new field is the last one, with a default: it is missing in what earlier releases wrote, and ignored by them.
    docs/logs.md says how each is measured.
    """

    peak_bytes: int = 0
    """The most memory that the worker had; 0: unknown."""
    read_bytes: int = -1
    """Bytes that the worker read by system calls; -1: unknown."""
    minor_faults: int = -1
    """Pages of memory that it was given without reading a disk; -1: unknown, as in the next three."""
    major_faults: int = -1
    """Pages that had to be read from a disk first."""
    voluntary_switches: int = -1
    """Times that a thread of it waited: for a disk, a lock, another process."""
    involuntary_switches: int = -1
    """Times that a thread of it had to leave its CPU to others."""


class PartTry(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A call of run() for a part of a mini-batch whose items were run apart."""

    first: int
    """Index of its first item in the mini-batch."""
    items: int
    process: str
    started: float
    """Seconds since the epoch on the node's clock."""
    run_s: float
    failure: Failure | None = None
    """None: it has returned a row for each item."""


class LostItems(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Consecutive items of a mini-batch that have failed, though others of it have not."""

    first: int
    """Index of the first one in the mini-batch."""
    items: int
    failure: Failure


class RowsPlace(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The place of a try's rows: the first fields of its outcome. Who needs no others saves time by reading these."""

    mini_batch: int
    generation: int
    status: Status
    token: str
    tries: int
    """Number of tries the mini-batch has had, this one included (its dequeue count)."""
    node: str
    process: str
    part: str
    """Name of the part file below `parts/`; empty when no rows were written."""
    offset: int
    length: int
    crc: int
    items: int
    rows: int
    """Number of rows `run()` returned: the items that succeeded."""


class Outcome(RowsPlace, array_like=True, frozen=True, gc=False):
    """The end of one try: `done` and `failed` are decisions; after `retry` another try follows. Only in a decision log:
    `lost`, for a decision whose rows the disk has lost; the other fields are those of that decision.

    Flat, and in this order for ever: journals and decision logs hold the fields without their names. A new field is the
    last one, with a default.
    """

    started: float
    """Time when the agent handed it over, seconds since the epoch on the node's clock."""
    elapsed_s: float
    run_s: float
    process_s: float
    """CPU seconds of the worker meanwhile; below 0: unknown, as others ran in it at the same time."""
    failure: Failure | None = None
    load_s: float = 0.0
    """Seconds that reading or copying the data took, before run()."""
    line_breaks: int = 0
    """Line breaks inside rows of text: each makes one row look like two."""
    detail: str = ""
    """Details of a failed try: JSON with the first of the mini-batch's files."""
    shortened: int = 0
    """Rows of text with an array whose text leaves out values."""
    use: Use = Use()
    warnings: tuple[DataWarning, ...] = ()
    """About the data of the mini-batch, as this try has read and written them."""
    parts: tuple[PartTry, ...] = ()
    """Calls of run() for parts of it, in their order, if its items were run apart."""
    lost: tuple[LostItems, ...] = ()
    """Its items that have failed, in order, if they were run apart: `done` if others have not."""
    waits: dict[str, float] = {}
    """Seconds for which it has waited for permits, for each limit that it has asked; no time of its run()."""

    @property
    def items_lost(self) -> int:
        """Return how many items have failed of a mini-batch whose items were run apart."""
        return sum(each.items for each in self.lost)

    @property
    def failed_items(self) -> int:
        """A failed mini-batch fails all its items; a short return fails the missing ones (reference §3.5).

        One that failed before anybody had counted its items counts as one here; in the totals of its job (`Decided`),
        as many as others have on average.
        """
        return max(1, self.items) if self.status == "failed" else max(0, self.items - self.rows)


class BriefOutcome(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The fields of an `Outcome` that are numbers or names, in the same places. Reading a million of them takes a
    quarter of the time, as nothing else is decoded."""

    mini_batch: int
    generation: int
    status: Status
    token: msgspec.Raw
    tries: int
    node: str
    process: str
    part: msgspec.Raw
    offset: int
    length: int
    crc: int
    items: int
    rows: int
    started: float
    elapsed_s: float
    run_s: float
    process_s: float
    failure: msgspec.Raw = msgspec.Raw(b"null")
    load_s: float = 0.0


_EMPTY_END: Final = b",[],[],[],{}]"
"""The end of an outcome whose last four fields, all with defaults, are empty."""
_EMPTY_END_BYTES: Final = len(_EMPTY_END)
_encoder: Final = msgspec.json.Encoder()
_list_decoder: Final = msgspec.json.Decoder(list[Outcome])
_brief_decoder: Final = msgspec.json.Decoder(list[BriefOutcome])
_raw_decoder: Final = msgspec.json.Decoder(list[msgspec.Raw])
_place_decoder: Final = msgspec.json.Decoder(list[RowsPlace])


def encode(outcome: Outcome) -> bytes:
    """Encode an outcome, without the last fields if these are empty: reading them takes half as long as all others."""
    raw = _encoder.encode(outcome)
    return raw[:-_EMPTY_END_BYTES] + b"]" if raw.endswith(_EMPTY_END) else raw


def encode_all(outcomes: list[Outcome]) -> bytes:
    return encode_list(list(map(encode, outcomes)))


def encode_list(encoded: list[bytes]) -> bytes:
    """Join encoded outcomes to one JSON array."""
    return b"[" + b",".join(encoded) + b"]"


def decode_list(raw: bytes) -> list[Outcome]:
    return _list_decoder.decode(raw)


def brief_outcomes(raw: bytes) -> list[BriefOutcome]:
    """The outcomes that `decode_list` returns, without what isn't a number or a name."""
    return _brief_decoder.decode(raw)


def encoded_outcomes(raw: bytes) -> list[bytes]:
    """The outcomes of a JSON array, each as it was encoded."""
    return [bytes(each) for each in _raw_decoder.decode(raw)]


def decode_places(raw: bytes) -> list[RowsPlace]:
    """The first fields of the outcomes that `decode_list` returns."""
    return _place_decoder.decode(raw)


class LostRows(msgspec.Struct, frozen=True, array_like=True):
    """Rows of a decision that are gone, or not what was committed."""

    mini_batch: int
    part: str
    offset: int


class InitFailure(msgspec.Struct, array_like=True, frozen=True):
    """A worker that died or raised before its first mini-batch."""

    node: str
    process: str
    failure: Failure
    started: float = 0.0
    seconds: float = 0.0


class Phase(msgspec.Struct, array_like=True, frozen=True):
    """A worker's init() or shutdown() that has ended."""

    node: str
    process: str
    name: PhaseName
    started: float
    """Seconds since the epoch on the node's clock."""
    seconds: float
    failure: Failure | None = None
