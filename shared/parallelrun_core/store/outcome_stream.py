"""The entries of a job's outcome stream: how agents, the concatenator and the scripts notify the leader."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from parallelrun_core import message
from parallelrun_core.folder.decisions import LostRows
from parallelrun_core.outcome import Failure, Outcome, decode_list
from parallelrun_core.phases import InitFailure, Phase
from parallelrun_core.store.keys import JobKeys

if TYPE_CHECKING:
    from redis import Redis

MAX_ENTRIES = 200
"""Entries of the outcome stream that are read at once."""


class Concatenated(msgspec.Struct, array_like=True, frozen=True):
    """The output that the concatenator put together, or why it could not."""

    path: str
    length: int
    sha256: str
    problem: str = ""
    notes: list[str] = []
    """What the user should know about it."""
    is_postponed: bool = False
    """There is no output yet, for a reason that may pass: the disk is full, or the service was asked to stop. If there
    is a problem, too, the leader does not wait for it without end."""
    lost: list[LostRows] = []
    """Rows that are not what was committed. Their mini-batches have to be run again."""
    lacks_decisions: bool = False
    """The decision log can't be read as far as the leader has written it."""


@dataclass(frozen=True, slots=True)
class StreamEntry:
    """One entry of the outcome stream, decoded: only what it carries is set."""

    entry_id: bytes
    outcomes: tuple[Outcome, ...] = ()
    encoded: bytes = b""
    """The outcomes as they came, a JSON array; empty when the leader made them itself."""
    init_failure: InitFailure | None = None
    phases: tuple[Phase, ...] = ()
    concatenated: Concatenated | None = None
    preparing: str = ""
    """A node that is still building the environment of the workers. Entries that carry nothing only wake the leader: a
    state has changed, a session has left."""


_phases_decoder = msgspec.json.Decoder(list[Phase])


def decode_entry(entry_id: bytes, fields: dict[bytes, bytes], generation: int) -> StreamEntry:
    """Decode an entry of the stream. A mini-batch that was given up is an outcome of the leader's `generation`."""
    if records := fields.get(b"r"):
        return StreamEntry(entry_id, outcomes=tuple(decode_list(records)), encoded=records)
    if mini_batch := fields.get(b"given_up"):
        return StreamEntry(entry_id, outcomes=(_given_up(int(mini_batch), generation, fields),))
    if failure := fields.get(b"init_failed"):
        return StreamEntry(entry_id, init_failure=msgspec.json.decode(failure, type=InitFailure))
    if phases := fields.get(b"phases"):
        return StreamEntry(entry_id, phases=tuple(_phases_decoder.decode(phases)))
    if concatenated := fields.get(b"concatenated"):
        return StreamEntry(entry_id, concatenated=msgspec.json.decode(concatenated, type=Concatenated))
    return StreamEntry(entry_id, preparing=fields.get(b"preparing", b"").decode())


def _given_up(mini_batch: int, generation: int, fields: dict[bytes, bytes]) -> Outcome:
    raw = fields[b"message"]
    return Outcome(
        mini_batch=mini_batch,
        generation=generation,
        status="failed",
        token="",
        tries=int(fields[b"tries"]),
        node="",
        process="",
        part="",
        offset=0,
        length=0,
        crc=0,
        items=message.decode(raw).items if raw else 0,
        rows=0,
        started=0.0,
        elapsed_s=0.0,
        run_s=0.0,
        process_s=0.0,
        failure=Failure("NODE_LOST", "Given up: the nodes that held it were lost too often (see lost_leases)."),
    )


def report_init_failure(redis: Redis, job_id: str, failure: InitFailure) -> None:
    """Tell the leader, from an agent, that a worker didn't get through `init()`."""
    _add(redis, job_id, {"init_failed": msgspec.json.encode(failure)})


def report_preparing(redis: Redis, job_id: str, node: str) -> None:
    """Tell the leader, from an agent, that it is still building the environment of the workers."""
    _add(redis, job_id, {"preparing": node})


def report_phases(redis: Redis, job_id: str, phases: list[Phase]) -> None:
    """Tell the leader, from an agent, how long init() and shutdown() took in some workers; for the reports."""
    _add(redis, job_id, {"phases": msgspec.json.encode(phases)})


def report_concatenated(redis: Redis, job_id: str, concatenated: Concatenated) -> None:
    """Tell the leader, from the concatenator, what became of the output."""
    _add(redis, job_id, {"concatenated": msgspec.json.encode(concatenated)})


def _add(redis: Redis, job_id: str, entry: dict[str, str | bytes]) -> None:
    """Add an entry for the leader. A job that was retired has no stream any more, and a late entry creates none."""
    redis.xadd(JobKeys(job_id).outcomes, entry, nomkstream=True)  # type: ignore[arg-type]
